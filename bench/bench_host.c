/* bench_host.c - what the host spends on a batch: building the graph, then scheduling and encoding it.
 *
 *     bench_host [TREES.txt]        binary trees in brackets; without a file, generated ListOps
 *
 * Thread CPU time of each step, ns a node of the expanded graph: median, and 10th and 90th percentile, of many batches
 * after warm-up. The limit it is held against is 60 ns a node for both together at batch 128.
 */
#include "nodes/script.h"
#include "workload.h"

enum { EMBED = 256, HIDDEN = 256, REPEATS = 40, VPS = 2, MAX_PARAMS = 64 };

static uint64_t thread_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* As the CPU device lays parameters out, near enough: offsets differ, work does not. */
static vpps_plan make_plan(const vpps_model *model, uint32_t *arrays) {
    uint32_t n = (uint32_t)model->n_params, next = 0;
    vpps_plan plan = {.n_vps = VPS,
                      .n_params = n,
                      .values = arrays,
                      .gradients = arrays + n,
                      .states = {arrays + 2 * n, arrays + 3 * n},
                      .pool_words = UINT32_MAX,
                      .row_block = 16,
                      .ew_grain = 128};
    for (uint32_t i = 0; i < n; i++) {
        arrays[i] = arrays[n + i] = next;
        next += model->params[i].kind == VPPS_MATRIX ? 0 : 2 * (uint32_t)vpps_param_elems(&model->params[i]);
    }
    plan.batch = next;
    return plan;
}

/* One batch; the two steps' ns a node. */
static vpps_status run_batch(workload *w, vpps_scheduler *s, const vpps_plan *plan, uint32_t batch, double *build_ns,
                             double *schedule_ns) {
    vpps_options defaults;
    vpps_options_default(&defaults);
    vpps_request request = {.optimizer = &defaults.optimizer, .step = 1};
    uint64_t t0 = thread_ns();
    VPPS_TRY(workload_batch(w, batch, &request.loss));
    uint64_t t1 = thread_ns();
    VPPS_TRY(vpps_schedule(s, plan, w->g, &request));
    uint64_t t2 = thread_ns();
    *build_ns = (double)(t1 - t0) / vpps_graph_size(w->g);
    *schedule_ns = (double)(t2 - t1) / vpps_graph_size(w->g);
    return VPPS_OK;
}

static vpps_status measure(workload *w, vpps_scheduler *s, const vpps_plan *plan, uint32_t batch) {
    enum { WARM_UP = 3 };
    double build[REPEATS], schedule[REPEATS], both[REPEATS];
    for (uint32_t i = 0; i < REPEATS + WARM_UP; i++) {
        double x = 0, y = 0;
        VPPS_TRY(run_batch(w, s, plan, batch, &x, &y));
        if (i < WARM_UP) continue;
        build[i - WARM_UP] = x;
        schedule[i - WARM_UP] = y;
        both[i - WARM_UP] = x + y;
    }
    sort_doubles(build, REPEATS);
    sort_doubles(schedule, REPEATS);
    sort_doubles(both, REPEATS);
    printf("| %5u | %7u | %5.1f | %8.1f | %6.1f (%.1f - %.1f) | %7zu |\n", batch, vpps_graph_size(w->g),
           build[REPEATS / 2], schedule[REPEATS / 2], both[REPEATS / 2], both[REPEATS / 10],
           both[REPEATS - 1 - REPEATS / 10], s->script_words * 4);
    return VPPS_OK;
}

int main(int argc, char **argv) {
    static const uint32_t batches[] = {1, 4, 16, 64, 128};
    uint32_t arrays[4 * MAX_PARAMS];
    workload w;
    vpps_scheduler *scheduler = NULL;
    vpps_status s = workload_create(&w, argc > 1 ? argv[1] : NULL, EMBED, HIDDEN);
    if (s == VPPS_OK) s = vpps_scheduler_create(&scheduler);
    if (s == VPPS_OK && w.model->n_params <= MAX_PARAMS) {
        vpps_plan plan = make_plan(w.model, arrays);
        printf("Host cost, ns a node: median (10 %% - 90 %%) of %d batches; limit 60 at batch 128\n\n", REPEATS);
        printf("| batch |   nodes | build | schedule | both (10 %% - 90 %%) | script bytes |\n");
        printf("| ---: | ---: | ---: | ---: | ---: | ---: |\n");
        for (size_t i = 0; i < VPPS_COUNT(batches) && s == VPPS_OK; i++) s = measure(&w, scheduler, &plan, batches[i]);
    }
    if (s != VPPS_OK) fprintf(stderr, "bench_host: %s\n", vpps_error_message());
    vpps_scheduler_destroy(scheduler);
    workload_destroy(&w);
    return s != VPPS_OK;
}
