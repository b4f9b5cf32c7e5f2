/* reads.h - reads several values from the device's memory pool in few copies, since each copy from a GPU costs some 10 us. */
#pragma once

#include "runtime/device.h"

/* Reads all n values, in any order. Sorts `reads` by offset. Fails with the device's error. */
vpps_status vpps_read_pool(vpps_device *d, const vpps_pointers *to, uint32_t n, vpps_pool_copy *reads);

/* Checks that an array of the caller, `what`, is in the device's memory if `pointers` say so. Fails with ARGUMENT. */
vpps_status vpps_check_array(vpps_device *d, const vpps_pointers *pointers, const float *array, uint32_t words,
                             const char *what);

/* Checks the arrays for values of n nodes; unknown nodes are not reported. */
vpps_status vpps_check_outs(vpps_device *d, const vpps_pointers *pointers, const vpps_graph *g, uint32_t n,
                            const vpps_node *nodes, float *const *arrays, const char *what);
