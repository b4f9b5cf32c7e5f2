/* reads.h - values that lie in the pool are read in few copies: each costs a GPU's host some 10 us. */
#pragma once

#include "runtime/device.h"

typedef struct vpps_pool_read {
    uint32_t offset, words; /* offset VPPS_NONE: zeros */
    float *out;
} vpps_pool_read;

/* Reads all, in any order; `reads` is sorted by it. Fails with the device's error. */
vpps_status vpps_read_pool(vpps_device *d, uint32_t n, vpps_pool_read *reads);
