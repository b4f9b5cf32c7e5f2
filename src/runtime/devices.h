/* devices.h - the list of devices, and which of them a name selects. */
#pragma once

#include "runtime/device.h"

/* All devices, ending with NULL. The first is the default. */
extern const vpps_device_table *const vpps_devices[];

/* Returns the device with that name or alias, in any case of letters, or NULL. */
const vpps_device_table *vpps_device_named(const char *name);

/* Sets *out to the device that the option `name` selects. "auto" selects the first device whose hardware can be checked for and is found,
 * else the default; the message then says why. Fails with DEVICE if the name is unknown; the message lists the known ones. */
vpps_status vpps_device_meant(const char *name, const vpps_device_table **out);
