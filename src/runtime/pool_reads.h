/* pool_reads.h - reads several values from the device's memory pool in few copies, since each copy from a GPU takes some 10 us to start. */
#pragma once

#include "runtime/device.h"

/* Copies n values, given in any order, to the caller's arrays. May sort `reads` by offset. Fails with the device's error. */
vpps_status vpps_read_pool(vpps_device *d, const vpps_pointers *to, uint32_t n, vpps_pool_copy *reads);

/* Checks that the caller's array is in the device's memory if `pointers` say so. `what`: its name in the message. Fails with ARGUMENT. */
vpps_status vpps_check_array(vpps_device *d, const vpps_pointers *pointers, const float *array, uint32_t words,
                             const char *what);

/* Checks that n arrays, for values of nodes, are in device memory if `pointers` say so; ignores unknown nodes. */
vpps_status vpps_check_outs(vpps_device *d, const vpps_pointers *pointers, const vpps_graph *g, uint32_t n,
                            const vpps_node *nodes, float *const *arrays, const char *what);
