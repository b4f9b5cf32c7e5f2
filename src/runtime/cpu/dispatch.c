/* dispatch.c - which of the kernels compiled in this CPU runs. */
#include "runtime/cpu/kernels.h"

extern const vpps_kernels vpps_kernels_generic;
#if defined(__x86_64__)
extern const vpps_kernels vpps_kernels_avx2, vpps_kernels_avx512;
#endif

const vpps_kernels *vpps_kernels_choose(bool portable) {
    const vpps_kernels *runnable[3] = {&vpps_kernels_generic}; /* from slow to fast */
    uint32_t n = 1;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        runnable[n++] = &vpps_kernels_avx2;
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
            runnable[n++] = &vpps_kernels_avx512;
    }
#endif
    if (portable) return runnable[0];
    const char *wanted = getenv("VPPS_ISA");
    for (uint32_t i = 0; wanted && i < n; i++)
        if (strcmp(wanted, runnable[i]->isa) == 0) return runnable[i];
    return runnable[n - 1];
}
