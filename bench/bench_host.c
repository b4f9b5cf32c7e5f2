/* bench_host.c - measures the host's time per batch: building the graph, then making its script, for the CPU and for
 * a GPU.
 *
 *     bench_host [DATA]        a folder with sst/train.txt and wikiner/train.txt; without it, and for gat, generated data
 *
 * Hidden 256; the CPU with a VP per core, and an sm_90 with 132 SMs, which need not exist.
 * Measures thread CPU time, which other work on the machine disturbs little: medians of many batches after warm-up,
 * and quartiles of the sum. Then measures the cost of recording a task for a trace, as the least of many runs. */
#include "peak.h"
#include "runtime/gpu/gpu.h"
#include "runtime/handle.h"
#include "runtime/trace.h"
#include "workload.h"

enum { REPEATS = 60, WARM_UP = 5 };
#define SIZE "256"

/* ---------------------------------------------------------------- scripts that are made, but not run */

typedef struct maker {
    workload *w;
    const vpps_target *plan; /* the GPU or CPU that scripts are made for */
    vpps_history history;
    vpps_batch *batch;
    double build_ns, script_ns; /* the latest batch: CPU time of building the graph, of making the script */
} maker;

static vpps_status maker_make(maker *m, uint32_t n) {
    vpps_batch_request request = {.optimizer = &m->w->x.handle->options.optimizer, .guard = true, .step = 1};
    const uint64_t t0 = vpps_thread_ns();
    VPPS_TRY(workload_batch(m->w, n, &request.loss));
    const uint64_t t1 = vpps_thread_ns();
    VPPS_TRY(vpps_schedule_batch(m->batch, &m->history, m->plan, m->w->x.graph, &request));
    m->build_ns = (double)(t1 - t0);
    m->script_ns = (double)(vpps_thread_ns() - t1);
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

static vpps_status measure_all(workload *w, const char *device, const vpps_target *plan) {
    static const uint32_t batches[] = {1, 16, 128};
    maker m = {.w = w, .plan = plan};
    char what[64];
    snprintf(what, sizeof what, "%s, %s", w->s.network->name, device);
    vpps_status status = vpps_batch_create(&m.batch);
    w->next = 0;
    for (size_t i = 0; i < VPPS_COUNT(batches) && status == VPPS_OK; i++) status = measure(&m, what, batches[i]);
    vpps_batch_destroy(m.batch);
    vpps_history_free(&m.history);
    return status;
}

static vpps_status measure_gpu(workload *w) {
    vpps_machine machine;
    vpps_gpu_layout layout;
    VPPS_TRY(vpps_machine_named(&machine, "sm_90", 132));
    vpps_status status = vpps_gpu_lay_out(&layout, w->x.model, &w->x.handle->options, &machine, "bench");
    if (status == VPPS_OK) status = measure_all(w, "sm_90", &layout.target);
    vpps_gpu_layout_free(&layout);
    return status;
}

static double note_ns(void) {
    enum { RUNS = 101, NOTES = 500 };
    vpps_task_note *notes = NULL;
    double ns[RUNS];
    if (!VPPS_RESERVE(notes, NOTES)) return 0;
    for (int r = 0; r < RUNS; r++) {
        vpps_track track = {notes, 0};
        const uint64_t begin = vpps_now_ns();
        for (uint32_t i = 0; i < NOTES; i++)
            vpps_trace_note(&track, (vpps_task_note){.kind = VPPS_TASK_STAGE, .stage = i, .number = i});
        ns[r] = (double)(vpps_now_ns() - begin) / NOTES;
    }
    sort_doubles(ns, RUNS);
    VPPS_FREE_ARRAYS(notes);
    return ns[0];
}

static vpps_status measure_network(const char *name, const char *data) {
    static workload w;
    vpps_status s = workload_open(&w, name, data, SIZE);
    if (s == VPPS_OK) s = measure_all(&w, "CPU", w.x.handle->target);
    if (s == VPPS_OK) s = measure_gpu(&w);
    workload_close(&w);
    return s;
}

int main(int argc, char **argv) {
    static const char *const rows[][2] = {
        {"tree-lstm", "sst"}, {"bilstm-tagger", "wikiner"}, {"gat", NULL}, {"transformer-tagger", "wikiner"}};
    vpps_status s = VPPS_OK;
    printf("Host, us a batch: medians of %d batches, and quartiles; hidden " SIZE "; %s data\n\n"
           "| for | batch | vertices | build | script | both (quartiles) | ns a vertex | phases | script KB |\n"
           "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
           REPEATS, argc > 1 ? "real" : "generated");
    for (size_t i = 0; i < VPPS_COUNT(rows) && s == VPPS_OK; i++) {
        const bool real = argc > 1 && rows[i][1];
        char path[4096];
        if (real) snprintf(path, sizeof path, "%s/%s/train.txt", argv[1], rows[i][1]);
        s = measure_network(rows[i][0], real ? path : NULL);
    }
    if (s == VPPS_OK) printf("\nNoting a task for a trace: %.0f ns\n", note_ns());
    if (s != VPPS_OK) fprintf(stderr, "bench_host: %s\n", vpps_error_message());
    return s != VPPS_OK;
}
