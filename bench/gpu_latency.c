/* gpu_latency.c - what a signal and its wait cost, by kernels that do nothing else, and do it as those of cells do: one
 * thread adds with release or polls with acquire, between barriers of its CTA. Or it polls relaxed, with one fence after. */
#include "gpu.h"

typedef struct latency_arguments {
    uint64_t counters;
    uint32_t rounds, all, sleep, relaxed;
} latency_arguments;

enum { THREADS = 256, COUNTER_BYTES = 32 }; /* a sector of the L2 cache for each counter */
enum { WARM_UP_NS = 1000000000 };

static const char kernel_source[] =
    "struct vpps_arguments { unsigned long long counters; unsigned rounds, all, sleep, relaxed; };\n"
    "#ifndef VPPS_SIMT\n"
    "__device__ __forceinline__ void VPPS_RELEASE_ADD(unsigned *at, unsigned value) {\n"
    "    asm volatile(\"red.release.gpu.global.add.u32 [%0], %1;\" ::\"l\"(at), \"r\"(value) : \"memory\");\n"
    "}\n"
    "__device__ __forceinline__ unsigned VPPS_ACQUIRE_LOAD(const unsigned *at) {\n"
    "    unsigned value;\n"
    "    asm volatile(\"ld.acquire.gpu.global.u32 %0, [%1];\" : \"=r\"(value) : \"l\"(at) : \"memory\");\n"
    "    return value;\n"
    "}\n"
    "__device__ __forceinline__ unsigned relaxed_load(const unsigned *at) {\n"
    "    unsigned value;\n"
    "    asm volatile(\"ld.relaxed.gpu.global.u32 %0, [%1];\" : \"=r\"(value) : \"l\"(at) : \"memory\");\n"
    "    return value;\n"
    "}\n"
    "#define ACQUIRE_FENCE() asm volatile(\"fence.acq_rel.gpu;\" ::: \"memory\")\n"
    "#else\n"
    "#define relaxed_load VPPS_ACQUIRE_LOAD\n"
    "#define ACQUIRE_FENCE() (void)0\n"
    "#endif\n"
    "__device__ __forceinline__ void wait_for(const vpps_arguments &a, unsigned counter, unsigned wanted) {\n"
    "    if (threadIdx.x == 0) {\n"
    "        const unsigned *at = (const unsigned *)a.counters + counter * 8;\n"
    "        if (a.relaxed) {\n"
    "            while (relaxed_load(at) < wanted)\n"
    "                if (a.sleep) __nanosleep(16);\n"
    "            ACQUIRE_FENCE();\n"
    "        } else {\n"
    "            while (VPPS_ACQUIRE_LOAD(at) < wanted)\n"
    "                if (a.sleep) __nanosleep(16);\n"
    "        }\n"
    "    }\n"
    "    __syncthreads();\n"
    "}\n"
    "__device__ __forceinline__ void signal_to(const vpps_arguments &a, unsigned counter) {\n"
    "    __syncthreads();\n"
    "    if (threadIdx.x == 0) VPPS_RELEASE_ADD((unsigned *)a.counters + counter * 8, 1u);\n"
    "}\n"
    "extern \"C\" __global__ void __launch_bounds__(256, 1) vpps_kernel(const vpps_arguments a) {\n"
    "    const bool first = blockIdx.x == 0, last = blockIdx.x == gridDim.x - 1;\n"
    "    for (unsigned round = 0; round < a.rounds; round++) {\n"
    "        if (a.all) {\n"
    "            signal_to(a, round);\n"
    "            wait_for(a, round, gridDim.x);\n"
    "        } else if (first) { /* counters 0 and 1 count how often the first and the last CTA had the turn */\n"
    "            signal_to(a, 0);\n"
    "            wait_for(a, 1, round + 1);\n"
    "        } else if (last) {\n"
    "            wait_for(a, 0, round + 1);\n"
    "            signal_to(a, 1);\n"
    "        }\n"
    "    }\n"
    "}\n";

typedef struct bench {
    vpps_driver *driver;
    vpps_kernel *kernel;
    vpps_launch_shape shape;
    latency_arguments arguments;
} bench;

static vpps_status time_rounds(bench *b, uint32_t rounds, double *ns) {
    const vpps_driver_table *t = b->driver->table;
    uint64_t device_ns;
    b->arguments.rounds = rounds;
    VPPS_TRY(t->clear(b->driver, b->arguments.counters, (size_t)(rounds + 2) * COUNTER_BYTES));
    VPPS_TRY(t->start_clock(b->driver));
    VPPS_TRY(t->launch(b->driver, b->kernel, &b->shape, &b->arguments, sizeof b->arguments));
    VPPS_TRY(t->stop_clock(b->driver));
    VPPS_TRY(t->wait(b->driver, &device_ns));
    *ns = (double)device_ns;
    return VPPS_OK;
}

/* An idle GPU's clock is low. */
static vpps_status warm_up(bench *b, uint32_t rounds, uint64_t ns) {
    double unused;
    b->arguments.all = 1;
    for (const uint64_t start = vpps_now_ns(); vpps_now_ns() - start < ns;) VPPS_TRY(time_rounds(b, rounds, &unused));
    return VPPS_OK;
}

/* ns a round: the difference of two launches, so that the launch itself is not in it. */
static vpps_status time_round(bench *b, uint32_t rounds, double share, gpu_figure *out) {
    enum { REPEATS = 11 };
    double ns[REPEATS], few, many;
    VPPS_TRY(time_rounds(b, rounds, &few)); /* warms up */
    for (int i = 0; i < REPEATS; i++) {
        VPPS_TRY(time_rounds(b, rounds, &few));
        VPPS_TRY(time_rounds(b, 3 * rounds, &many));
        ns[i] = share * (many - few) / (2.0 * rounds);
    }
    *out = gpu_figure_of(ns, REPEATS);
    return VPPS_OK;
}

static vpps_status report(const char *what, const bench *b, gpu_figure f) {
    return gpu_emit(json_pack("{ss ss ss si sb so}", "bench", "latency", "what", what, "polls",
                              b->arguments.relaxed ? "relaxed" : "acquire", "ctas", (int)b->shape.ctas, "sleeps",
                              (int)b->arguments.sleep, "ns", gpu_figure_json(f)));
}

static vpps_status measure(bench *b, bool simt) {
    const uint32_t rounds = simt ? 20 : 2000;
    const vpps_driver_table *t = b->driver->table;
    vpps_cubin_report unused;
    gpu_figure f;
    VPPS_TRY(t->load(b->driver, kernel_source, "signals and waits", &b->shape, &b->kernel, &unused));
    VPPS_TRY(t->allocate(b->driver, (size_t)(3 * rounds + 2) * COUNTER_BYTES, &b->arguments.counters));
    VPPS_TRY(warm_up(b, rounds, simt ? 0 : WARM_UP_NS));
    for (uint32_t variant = simt ? 1 : 0; variant < (simt ? 2 : 4); variant++) { /* software SIMT must sleep */
        b->arguments.sleep = variant & 1;
        b->arguments.relaxed = variant >> 1;
        b->arguments.all = 0;
        VPPS_TRY(time_round(b, rounds, 0.5, &f));
        VPPS_TRY(report("hand-over", b, f));
        b->arguments.all = 1;
        VPPS_TRY(time_round(b, rounds, 1, &f));
        VPPS_TRY(report("barrier", b, f));
    }
    return VPPS_OK;
}

vpps_status gpu_bench_latency(const gpu_settings *settings) {
    vpps_machine machine;
    bench b = {0};
    VPPS_TRY(gpu_driver_of(settings->device)->open(&b.driver, 0, &machine));
    b.shape = (vpps_launch_shape){machine.sms, THREADS, 0};
    const vpps_status status = measure(&b, strcmp(settings->device, "simt") == 0);
    b.driver->table->close(b.driver);
    return status;
}
