/* gpu_scripts.c - the Tree-LSTM's scripts for a GPU with 132 SMs, and what making them costs the host. */
#include "gpu.h"
#include "nodes/script.h"
#include "plan/partition.h"
#include "runtime/layout.h"
#include "workload.h"

enum { REPEATS = 20, WARM_UP = 2 };

static uint64_t thread_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* As the GPU device makes its plan, for the first choice that fits; free(plan->values). */
static vpps_status make_plan(const vpps_model *model, vpps_plan *plan) {
    const vpps_partition_choice any = {0};
    vpps_partition_choice choice;
    vpps_machine machine;
    vpps_options options;
    vpps_rows gradients;
    vpps_partition p;
    vpps_options_default(&options);
    VPPS_TRY(vpps_machine_named(&machine, "sm_90", 132));
    if (!vpps_partition_choices(model, &machine, &any, false, &choice, 1)) return vpps_fail(VPPS_POOL, "no plan fits");
    VPPS_TRY(vpps_lay_out_pool(plan, model, &options, 2 * machine.sms, "bench", &gradients));
    const vpps_status status = vpps_partition_create(&p, model, &machine, &choice);
    plan->n_vps = p.n_vps;
    plan->row_block = choice.rpw;
    plan->ew_grain = 1024;
    plan->transposed = choice.transposed ? VPPS_TRANSPOSED_ALWAYS : VPPS_TRANSPOSED_NEVER;
    plan->host_products = choice.deferred;
    vpps_partition_destroy(&p);
    return status;
}

/* How many levels the tree has, from its deepest leaf to its root; of a huge one, those of the nodes looked at. */
static uint32_t tree_levels(const vpps_tree *tree) {
    enum { MAX_NODES = 4096 }; /* the Stanford Sentiment Treebank's largest tree has 103 */
    uint32_t levels[MAX_NODES], most = 0;
    for (uint32_t i = 0; i < tree->n_nodes && i < MAX_NODES; i++) {
        const vpps_tree_node *node = &tree->nodes[i];
        levels[i] = node->left < 0 ? 1 : 1 + vpps_max_u32(levels[node->left], levels[node->right]);
        most = vpps_max_u32(most, levels[i]);
    }
    return most;
}

typedef struct counts {
    double build_ns[REPEATS], schedule_ns[REPEATS]; /* a node */
    uint64_t nodes, own_words, common_words, bytes, instructions, levels, phases;
    uint64_t tree_levels; /* of the highest tree of each batch */
} counts;

static vpps_status make_script(workload *w, vpps_scheduler *s, const vpps_plan *plan, uint32_t batch, counts *c,
                               int i) {
    vpps_options defaults;
    vpps_options_default(&defaults);
    vpps_request request = {.optimizer = &defaults.optimizer, .step = 1, .guard = true};
    const uint32_t first = w->next;
    uint32_t highest = 0;
    const uint64_t t0 = thread_ns();
    VPPS_TRY(workload_batch(w, batch, &request.loss));
    const uint64_t t1 = thread_ns();
    VPPS_TRY(vpps_schedule(s, plan, w->g, &request));
    const uint64_t t2 = thread_ns();
    if (i < 0) return VPPS_OK;
    for (uint32_t k = first; k < w->next; k++) {
        const vpps_tree tree = vpps_treebank_tree(w->trees, k % vpps_treebank_size(w->trees));
        highest = vpps_max_u32(highest, tree_levels(&tree));
    }
    const uint32_t nodes = vpps_graph_size(w->g), *starts = vpps_script_starts(s->script);
    c->build_ns[i] = (double)(t1 - t0) / nodes;
    c->schedule_ns[i] = (double)(t2 - t1) / nodes;
    c->nodes += nodes;
    c->own_words += starts[plan->n_vps] - starts[0];
    c->common_words += starts[0] - VPPS_HEADER_WORDS - plan->n_vps - 1;
    c->bytes += s->script_words * 4;
    c->instructions += s->n_instructions;
    c->levels += s->n_levels;
    c->tree_levels += highest;
    c->phases += s->n_phases;
    return VPPS_OK;
}

static vpps_status measure(workload *w, vpps_scheduler *s, const vpps_plan *plan, uint32_t hidden, uint32_t batch) {
    counts c = {0};
    w->next = 0;
    for (int i = -WARM_UP; i < REPEATS; i++) VPPS_TRY(make_script(w, s, plan, batch, &c, i));
    const double trees = (double)REPEATS * batch;
    const gpu_figure build = gpu_figure_of(c.build_ns, REPEATS), schedule = gpu_figure_of(c.schedule_ns, REPEATS);
    const double own = (double)c.own_words / trees, common = (double)c.common_words / trees;
    const double bytes = (double)c.bytes / REPEATS, barriers = (double)c.phases / (double)c.tree_levels;
    fprintf(
        stderr,
        "| %6u | %3u | %5u | %7.0f | %9.1f | %8.1f | %8.0f | %6.1f | %6.1f | %4.2f | %5.1f | %5.1f (%.1f - %.1f) |\n",
        hidden, plan->n_vps, batch, (double)c.nodes / REPEATS, own, common, bytes, (double)c.tree_levels / REPEATS,
        (double)c.phases / REPEATS, barriers, build.median, schedule.median, schedule.low, schedule.high);
    json_t *o = json_pack("{ss si si si sf sf sf sf sf}", "bench", "script", "hidden", (int)hidden, "vps",
                          (int)plan->n_vps, "batch", (int)batch, "nodes", (double)c.nodes / REPEATS,
                          "own_words_per_tree", own, "common_words_per_tree", common, "script_bytes", bytes,
                          "instructions_per_tree", (double)c.instructions / trees);
    json_object_set_new(o, "levels", json_real((double)c.levels / REPEATS));
    json_object_set_new(o, "tree_levels", json_real((double)c.tree_levels / REPEATS));
    json_object_set_new(o, "phases", json_real((double)c.phases / REPEATS));
    json_object_set_new(o, "phases_per_tree_level", json_real(barriers));
    json_object_set_new(o, "build_ns_per_node", gpu_figure_json(build));
    json_object_set_new(o, "schedule_ns_per_node", gpu_figure_json(schedule));
    return gpu_emit(o);
}

static vpps_status measure_size(const gpu_settings *settings, uint32_t hidden) {
    static const uint32_t batches[] = {1, 16, 128};
    workload w = {0};
    vpps_plan plan = {0};
    vpps_scheduler *scheduler = NULL;
    vpps_status status = workload_create(&w, settings->trees, hidden, hidden);
    if (status == VPPS_OK) status = vpps_scheduler_create(&scheduler);
    if (status == VPPS_OK) status = make_plan(w.model, &plan);
    for (size_t i = 0; i < VPPS_COUNT(batches) && status == VPPS_OK; i++) {
        status = measure(&w, scheduler, &plan, hidden, batches[i]);
    }
    free(plan.values);
    vpps_scheduler_destroy(scheduler);
    workload_destroy(&w);
    return status;
}

vpps_status gpu_bench_scripts(const gpu_settings *settings) {
    fprintf(stderr,
            "\nScripts, a mean over %d batches; host: thread CPU time, ns a node, median (lowest - highest)\n\n",
            REPEATS);
    fprintf(stderr,
            "| hidden | VPs | batch | nodes | own words a tree | common words a tree | bytes a batch | tree levels | "
            "phases | phases a tree level | build | schedule |\n");
    fprintf(stderr, "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for (const uint32_t *hidden = gpu_sizes; *hidden; hidden++) VPPS_TRY(measure_size(settings, *hidden));
    return VPPS_OK;
}
