/* reads.h - reads several values from the device's memory pool in few copies, since each copy from a GPU costs some 10 us. */
#pragma once

#include "runtime/device.h"

typedef struct vpps_pool_read {
    uint32_t offset, words; /* place of the value in the pool, in words; offset VPPS_NONE: `out` gets zeros */
    float *out;
} vpps_pool_read;

/* Reads all n values, in any order. Sorts `reads` by offset. Fails with the device's error. */
vpps_status vpps_read_pool(vpps_device *d, uint32_t n, vpps_pool_read *reads);
