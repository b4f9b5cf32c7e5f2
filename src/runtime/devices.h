/* devices.h - the table of devices, and which of them a name means. */
#pragma once

#include "runtime/device.h"

/* The devices there are; NULL ends them. The first is the default. */
extern const vpps_device_table *const vpps_devices[];

/* The device of that name or alias, in letters of any case. NULL: there is none. */
const vpps_device_table *vpps_device_named(const char *name);

/* The device that a handle takes by that name. "auto": the first device that must be found and is; without one the default, and the message
 * says why. Fails with DEVICE: the name is unknown; the message has those that are known. */
vpps_status vpps_device_meant(const char *name, const vpps_device_table **out);
