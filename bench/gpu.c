/* gpu.c - see gpu.h: figures and lines of JSON. */
#include "gpu.h"
#include "workload.h"

gpu_figure gpu_figure_of(double *x, size_t n) {
    sort_doubles(x, n);
    return (gpu_figure){x[n / 2], x[0], x[n - 1]};
}

json_t *gpu_figure_json(gpu_figure f) { return json_pack("[f, f, f]", f.median, f.low, f.high); }

vpps_status gpu_emit(json_t *object) {
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(object);
    if (!text) return vpps_fail(VPPS_MEMORY, "no memory for a line of JSON");
    const bool written = printf("%s\n", text) > 0 && fflush(stdout) == 0;
    free(text);
    return written ? VPPS_OK : vpps_fail(VPPS_IO, "stdout cannot be written");
}

const vpps_driver_table *gpu_driver_of(const char *device) {
    return strcmp(device, "simt") == 0 ? &vpps_driver_simt : &vpps_driver_cuda;
}
