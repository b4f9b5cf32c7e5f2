/* bench_host.c - what the host spends on a batch: building the graph, then making its script, for the CPU and for a GPU.
 *
 *     bench_host [TREES.txt]        binary trees in brackets; without a file, generated ListOps
 *
 * Tree-LSTM, embedding and hidden 256; the CPU with a VP a core, and an sm_90 with 132 SMs, which need not be there. Thread CPU time,
 * which other work on the machine disturbs little: medians of many batches after warm-up, and quartiles of the sum. Then what
 * noting a task for a trace costs, of many runs the one that other work disturbed least.
 */
#include "peak.h"
#include "runtime/device.h"
#include "runtime/gpu/gpu.h"
#include "runtime/trace.h"
#include "workload.h"

enum { SIZE = 256, REPEATS = 60, WARM_UP = 5 };

/* ---------------------------------------------------------------- scripts that are made, but not run */

typedef struct maker {
    workload w;
    vpps_options options;
    vpps_device *cpu; /* NULL: scripts for a GPU, which the next two describe */
    vpps_machine machine;
    vpps_gpu_layout layout;
    const vpps_task_plan *plan; /* what scripts are made for; cpu's or layout's */
    vpps_types types;
    vpps_batch *batch;
    double build_ns, script_ns; /* of the latest: CPU time of building the graph, of making the script */
} maker;

static vpps_status open_workload(maker *m, const char *trees) {
    *m = (maker){0};
    vpps_options_default(&m->options);
    VPPS_TRY(workload_create(&m->w, trees, SIZE, SIZE));
    return vpps_batch_create(&m->batch);
}

static vpps_status maker_open_cpu(maker *m, const char *trees) {
    vpps_plan unused;
    VPPS_TRY(open_workload(m, trees));
    m->options.vps = peak_cores();
    VPPS_TRY(vpps_device_cpu.create(&m->cpu, m->w.model, &m->options, &unused));
    m->plan = vpps_device_cpu.machine(m->cpu);
    return VPPS_OK;
}

static vpps_status maker_open_gpu(maker *m, const char *trees) {
    VPPS_TRY(open_workload(m, trees));
    VPPS_TRY(vpps_machine_named(&m->machine, "sm_90", 132));
    VPPS_TRY(vpps_gpu_lay_out(&m->layout, m->w.model, &m->options, &m->machine, "bench"));
    m->plan = &m->layout.tasks;
    return VPPS_OK;
}

static void maker_close(maker *m) {
    vpps_batch_destroy(m->batch);
    vpps_types_free(&m->types);
    if (m->cpu) vpps_device_cpu.destroy(m->cpu);
    vpps_gpu_layout_free(&m->layout);
    workload_destroy(&m->w);
}

static uint64_t thread_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static vpps_status maker_make(maker *m, uint32_t n) {
    vpps_batch_request request = {.optimizer = &m->options.optimizer, .guard = true, .step = 1};
    const uint64_t t0 = thread_ns();
    VPPS_TRY(workload_batch(&m->w, n, &request.loss));
    const uint64_t t1 = thread_ns();
    VPPS_TRY(vpps_schedule_batch(m->batch, &m->types, m->plan, m->w.g, &request));
    m->build_ns = (double)(t1 - t0);
    m->script_ns = (double)(thread_ns() - t1);
    return VPPS_OK;
}

/* ---------------------------------------------------------------- measuring */

static vpps_status measure(maker *m, const char *what, uint32_t n) {
    double build[REPEATS], script[REPEATS], both[REPEATS], vertices = 0, phases = 0, words = 0;
    for (uint32_t i = 0; i < REPEATS + WARM_UP; i++) {
        VPPS_TRY(maker_make(m, n));
        if (i < WARM_UP) continue;
        build[i - WARM_UP] = m->build_ns * 1e-3;
        script[i - WARM_UP] = m->script_ns * 1e-3;
        both[i - WARM_UP] = (m->build_ns + m->script_ns) * 1e-3;
        vertices += m->batch->n_vertices / (double)REPEATS;
        phases += (double)m->batch->n_phases / REPEATS;
        words += (double)m->batch->script_words / REPEATS;
    }
    sort_doubles(build, REPEATS);
    sort_doubles(script, REPEATS);
    sort_doubles(both, REPEATS);
    printf("| %s, %u VPs | %u | %.0f | %.1f | %.1f | %.1f (%.1f - %.1f) | %.1f | %.1f | %.1f |\n", what, m->plan->n_vps,
           n, vertices, build[REPEATS / 2], script[REPEATS / 2], both[REPEATS / 2], both[REPEATS / 4],
           both[3 * REPEATS / 4], both[REPEATS / 2] * 1e3 / vertices, phases, words * 4e-3);
    return VPPS_OK;
}

static vpps_status measure_all(maker *m, const char *what) {
    static const uint32_t batches[] = {1, 16, 128};
    for (size_t i = 0; i < VPPS_COUNT(batches); i++) VPPS_TRY(measure(m, what, batches[i]));
    return VPPS_OK;
}

static double note_ns(void) {
    enum { RUNS = 101, NOTES = 500 };
    static vpps_task_note notes[NOTES];
    double ns[RUNS];
    for (int r = 0; r < RUNS; r++) {
        vpps_track track = {notes, 0, NOTES};
        const uint64_t begin = vpps_now_ns();
        for (uint32_t i = 0; i < NOTES; i++)
            vpps_trace_note(&track, (vpps_task_note){.kind = VPPS_TASK_STAGE, .stage = i, .number = i});
        ns[r] = (double)(vpps_now_ns() - begin) / NOTES;
    }
    sort_doubles(ns, RUNS);
    return ns[0];
}

int main(int argc, char **argv) {
    const char *trees = argc > 1 ? argv[1] : NULL;
    maker cpu, gpu;
    vpps_status s = maker_open_cpu(&cpu, trees);
    printf("Host, us a batch: medians of %d batches, and quartiles; Tree-LSTM %d on %s\n\n"
           "| for | batch | vertices | build | script | both (quartiles) | ns a vertex | phases | script KB |\n"
           "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
           REPEATS, SIZE, trees ? trees : "generated ListOps");
    if (s == VPPS_OK) s = measure_all(&cpu, "CPU");
    if (s == VPPS_OK) {
        s = maker_open_gpu(&gpu, trees);
        if (s == VPPS_OK) s = measure_all(&gpu, "sm_90");
        maker_close(&gpu);
    }
    maker_close(&cpu);
    if (s == VPPS_OK) printf("\nNoting a task for a trace: %.0f ns\n", note_ns());
    if (s != VPPS_OK) fprintf(stderr, "bench_host: %s\n", vpps_error_message());
    return s != VPPS_OK;
}
