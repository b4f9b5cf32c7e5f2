/* gpu.c - see gpu.h: figures, lines of JSON, and what the machine is. */
#include "gpu.h"
#include "runtime/gpu/cuda_api.h"
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

/* fp32 lanes of an SM (CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions"). */
static int lanes_of(int major, int minor) { return (major == 7) || (major == 8 && minor == 0) ? 64 : 128; }

/* Memory transfers twice a cycle of the clock that the driver tells. */
static gpu_speed ask(const vpps_cuda *cuda) {
    enum { MAJOR, MINOR, SMS, CLOCK, MEMORY_CLOCK, BUS, ATTRIBUTES };
    static const unsigned attributes[ATTRIBUTES] = {
        [MAJOR] = VPPS_CU_DEVICE_ARCH_MAJOR,
        [MINOR] = VPPS_CU_DEVICE_ARCH_MINOR,
        [SMS] = VPPS_CU_DEVICE_SMS,
        [CLOCK] = VPPS_CU_DEVICE_CLOCK_KHZ,
        [BUS] = VPPS_CU_DEVICE_MEMORY_BUS_BITS,
        [MEMORY_CLOCK] = VPPS_CU_DEVICE_MEMORY_CLOCK_KHZ,
    };
    int value[ATTRIBUTES] = {0};
    vpps_cu_device device;
    if (cuda->cuInit(0) != VPPS_CU_SUCCESS || cuda->cuDeviceGet(&device, 0) != VPPS_CU_SUCCESS) return (gpu_speed){0};
    for (int i = 0; i < ATTRIBUTES; i++) {
        if (cuda->cuDeviceGetAttribute(&value[i], attributes[i], device) != VPPS_CU_SUCCESS) value[i] = 0;
    }
    return (gpu_speed){2e3 * value[MEMORY_CLOCK] * value[BUS] / 8,
                       2e3 * value[CLOCK] * value[SMS] * lanes_of(value[MAJOR], value[MINOR])};
}

gpu_speed gpu_speed_of(const char *device) {
    vpps_cuda cuda;
    if (strcmp(device, "cuda") != 0 || vpps_cuda_open(&cuda) != VPPS_OK) return (gpu_speed){0};
    const gpu_speed speed = ask(&cuda);
    vpps_cuda_close(&cuda);
    return speed;
}
