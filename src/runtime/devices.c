/* devices.c - the list of devices, and the choice of one by name. */
#include "runtime/devices.h"

#include <strings.h>

#define X(name) &vpps_device_##name,
const vpps_device_table *const vpps_devices[] = {VPPS_DEVICES(X) NULL};
#undef X

const vpps_device_table *vpps_device_named(const char *name) {
    for (const vpps_device_table *const *d = vpps_devices; *d; d++)
        if (!strcasecmp((*d)->name, name) || ((*d)->alias && !strcasecmp((*d)->alias, name))) return *d;
    return NULL;
}

static const vpps_device_table *find_any(void) {
    for (const vpps_device_table *const *d = vpps_devices; *d; d++)
        if ((*d)->find && (*d)->find() == VPPS_OK) return *d;
    return vpps_devices[0];
}

static vpps_status unknown(const char *name) {
    char known[256];
    size_t n = 0;
    for (const vpps_device_table *const *d = vpps_devices; *d && n < sizeof known; d++)
        n += (size_t)snprintf(known + n, sizeof known - n, ", %s", (*d)->name);
    return vpps_fail(VPPS_DEVICE, "device %s: unknown; there are: auto%s", name, known);
}

vpps_status vpps_device_meant(const char *name, const vpps_device_table **out) {
    *out = strcasecmp(name, "auto") == 0 ? find_any() : vpps_device_named(name);
    return *out ? VPPS_OK : unknown(name);
}
