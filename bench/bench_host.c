/* bench_host.c - what the host spends on a batch: building the graph, then making its script.
 *
 *     bench_host [TREES.txt]        binary trees in brackets; without a file, generated ListOps
 *
 * Thread CPU time of both steps, microseconds a batch and nanoseconds a vertex: median, and 10th and 90th percentile, of
 * many batches after warm-up. What is asked for: 30 us at batch 1, 600 us at batch 128.
 */
#include "runtime/device.h"
#include "workload.h"

enum { EMBED = 256, HIDDEN = 256, REPEATS = 60, VPS = 2 };

static uint64_t thread_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

typedef struct maker {
    vpps_batch *batch;
    vpps_types types;
    vpps_device *device; /* the CPU, for its plan */
} maker;

/* One batch; the two steps' microseconds. */
static vpps_status run_batch(workload *w, maker *m, uint32_t n, double *build_us, double *script_us) {
    vpps_options defaults;
    vpps_options_default(&defaults);
    vpps_batch_request request = {.optimizer = &defaults.optimizer, .guard = true, .step = 1};
    const uint64_t t0 = thread_ns();
    VPPS_TRY(workload_batch(w, n, &request.loss));
    const uint64_t t1 = thread_ns();
    VPPS_TRY(vpps_schedule_batch(m->batch, &m->types, vpps_device_cpu.machine(m->device), w->g, &request));
    const uint64_t t2 = thread_ns();
    *build_us = (double)(t1 - t0) * 1e-3;
    *script_us = (double)(t2 - t1) * 1e-3;
    return VPPS_OK;
}

static vpps_status measure(workload *w, maker *m, uint32_t n) {
    enum { WARM_UP = 5 };
    double build[REPEATS], script[REPEATS], both[REPEATS], vertices = 0;
    for (uint32_t i = 0; i < REPEATS + WARM_UP; i++) {
        double x = 0, y = 0;
        VPPS_TRY(run_batch(w, m, n, &x, &y));
        if (i < WARM_UP) continue;
        build[i - WARM_UP] = x;
        script[i - WARM_UP] = y;
        both[i - WARM_UP] = x + y;
        vertices += m->batch->n_vertices / (double)REPEATS;
    }
    sort_doubles(build, REPEATS);
    sort_doubles(script, REPEATS);
    sort_doubles(both, REPEATS);
    printf("| %5u | %8.0f | %7.1f | %7.1f | %7.1f (%.1f - %.1f) | %6.1f | %7zu |\n", n, vertices, build[REPEATS / 2],
           script[REPEATS / 2], both[REPEATS / 2], both[REPEATS / 10], both[REPEATS - 1 - REPEATS / 10],
           both[REPEATS / 2] * 1e3 / vertices, m->batch->script_words * 4);
    return VPPS_OK;
}

int main(int argc, char **argv) {
    static const uint32_t batches[] = {1, 4, 16, 64, 128};
    workload w;
    maker m = {0};
    vpps_status s = workload_create(&w, argc > 1 ? argv[1] : NULL, EMBED, HIDDEN);
    vpps_options options;
    vpps_plan plan;
    vpps_options_default(&options);
    options.vps = VPS;
    if (s == VPPS_OK) s = vpps_batch_create(&m.batch);
    if (s == VPPS_OK) s = vpps_device_cpu.create(&m.device, w.model, &options, &plan);
    if (s == VPPS_OK) {
        printf("Host, us a batch: median (10 %% - 90 %%) of %d batches; asked: 30 at batch 1, 600 at batch 128\n\n",
               REPEATS);
        printf("| batch | vertices | build | script | both (10 %% - 90 %%) | ns a vertex | script bytes |\n");
        printf("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
        for (size_t i = 0; i < VPPS_COUNT(batches) && s == VPPS_OK; i++) s = measure(&w, &m, batches[i]);
    }
    if (s != VPPS_OK) fprintf(stderr, "bench_host: %s\n", vpps_error_message());
    if (m.device) vpps_device_cpu.destroy(m.device);
    vpps_batch_destroy(m.batch);
    vpps_types_free(&m.types);
    workload_destroy(&w);
    return s != VPPS_OK;
}
