/* walk.h - uses everything that a safetensors file offers, so that a sanitizer checks every byte that the file claims to hold. */
#pragma once

#include "io/safetensors.h"

/* Returns the number of bytes of all tensors; UINT64_MAX: something is not found, or reads otherwise than the file says. */
static inline uint64_t walk(const vpps_safetensors *file) {
    volatile unsigned sum = 0; /* no byte's read is left out */
    uint64_t bytes = 0;
    bool good = true;
    for (size_t i = 0; i < vpps_safetensors_count(file); i++) {
        const vpps_safetensors_info *info = vpps_safetensors_at(file, i);
        float *values = malloc(info->n_bytes + 1);
        const vpps_status status = vpps_safetensors_read_f32(file, info->name, info->n_dims, info->dims, values);
        good = good && vpps_safetensors_find(file, info->name) == info &&
               status == (strcmp(info->dtype, "F32") == 0 ? VPPS_OK : VPPS_FORMAT) &&
               (status == VPPS_OK || strstr(vpps_error_message(), "': expected dtype F32, found "));
        free(values);
        bytes += info->n_bytes;
    }
    for (size_t i = 0; i < vpps_safetensors_metadata_count(file); i++) {
        const vpps_metadata pair = vpps_safetensors_metadata_at(file, i);
        good = good && vpps_safetensors_metadata(file, pair.key) == pair.value;
        sum += (unsigned)strlen(pair.value);
    }
    (void)sum;
    return good ? bytes : UINT64_MAX;
}
