/* fuzz_safetensors.c - reads any bytes as a safetensors file: refuses them with FORMAT, or all that the file claims to hold exists. */
#include "fuzz.h"
#include "fuzz/walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    vpps_safetensors *file;
    char path[32];
    const int fd = fuzz_file(data, n, path);
    const vpps_status status = vpps_safetensors_open(&file, path);
    if (status == VPPS_OK) {
        require(walk(file) <= n); /* the sanitizer checks each byte */
        vpps_safetensors_close(file);
    } else {
        require(status == VPPS_FORMAT && file == NULL);
        require(strstr(vpps_error_message(), ": not a valid safetensors file: "));
    }
    close(fd);
    return 0;
}
