/* reads.h - reads several values of the pool in few copies, since each copy from a GPU costs some 10 us. */
#pragma once

#include "runtime/device.h"

typedef struct vpps_pool_read {
    uint32_t offset, words; /* place of the value in the pool; offset VPPS_NONE: `out` gets zeros */
    float *out;
} vpps_pool_read;

/* Does all reads, in any order, and sorts `reads` by offset. Fails with the device's error. */
vpps_status vpps_read_pool(vpps_device *d, uint32_t n, vpps_pool_read *reads);
