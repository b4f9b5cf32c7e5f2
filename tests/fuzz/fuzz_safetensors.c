/* fuzz_safetensors.c - reads any bytes as a safetensors file: refuses them with FORMAT, or all that the file claims to hold exists. */
#include "fuzz.h"
#include "io/safetensors.h"

static uint64_t walk(const vpps_safetensors *file) {
    uint64_t bytes = 0, sum = 0;
    for (size_t i = 0; i < vpps_safetensors_count(file); i++) {
        const vpps_safetensors_info *info = vpps_safetensors_at(file, i);
        require(vpps_safetensors_find(file, info->name) == info);
        for (uint64_t b = 0; b < info->n_bytes; b++) sum += info->bytes[b]; /* the sanitizer checks each byte */
        float *values = malloc(info->n_bytes + 1);
        vpps_status status = vpps_safetensors_read_f32(file, info->name, info->n_dims, info->dims, values);
        require(status == (strcmp(info->dtype, "F32") == 0 ? VPPS_OK : VPPS_FORMAT));
        free(values);
        bytes += info->n_bytes;
    }
    for (size_t i = 0; i < vpps_safetensors_metadata_count(file); i++) {
        vpps_metadata pair = vpps_safetensors_metadata_at(file, i);
        require(vpps_safetensors_metadata(file, pair.key) == pair.value);
        sum += strlen(pair.value);
    }
    return sum ? bytes : bytes + sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    vpps_safetensors *file;
    vpps_status status = vpps_safetensors_parse(&file, "fuzz", data, n);
    if (status == VPPS_OK) {
        require(walk(file) <= n);
        vpps_safetensors_close(file);
    } else {
        require(status == VPPS_FORMAT && file == NULL);
        require(strncmp(vpps_error_message(), "fuzz: not a valid safetensors file: ", 36) == 0);
    }
    return 0;
}
