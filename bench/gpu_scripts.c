/* gpu_scripts.c - the Tree-LSTM's scripts for a GPU with 132 SMs, and what making them costs the host. */
#include "gpu.h"
#include "gpu_batch.h"

enum { REPEATS = 20, WARM_UP = 2 };

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
    double build_ns[REPEATS], script_ns[REPEATS]; /* a vertex */
    uint64_t vertices, task_words, words, tasks, levels, phases;
    uint64_t tree_levels; /* of the highest tree of each batch */
} counts;

/* Notes the script of `batch` trees from tree `first` on, the i-th that counts. */
static void note_script(const gpu_batch *b, uint32_t first, counts *c, int i) {
    const vpps_batch *made = b->batch;
    const uint32_t *starts = made->script + VPPS_TASK_HEADER_WORDS;
    uint32_t highest = 0;
    for (uint32_t k = first; k < b->w.next; k++) {
        const vpps_tree tree = vpps_treebank_tree(b->w.trees, k % vpps_treebank_size(b->w.trees));
        highest = vpps_max_u32(highest, tree_levels(&tree));
    }
    c->build_ns[i] = b->build_ns / made->n_vertices;
    c->script_ns[i] = b->script_ns / made->n_vertices;
    c->vertices += made->n_vertices;
    c->task_words += starts[made->n_groups] - starts[0];
    c->words += made->script_words;
    c->tasks += made->n_tasks;
    c->levels += made->n_levels;
    c->phases += made->n_phases;
    c->tree_levels += highest;
}

static vpps_status measure(gpu_batch *b, uint32_t hidden, uint32_t batch) {
    counts c = {0};
    b->w.next = 0;
    for (int i = -WARM_UP; i < REPEATS; i++) {
        const uint32_t first = b->w.next;
        VPPS_TRY(gpu_batch_make(b, batch));
        if (i >= 0) note_script(b, first, &c, i);
    }
    const gpu_figure build = gpu_figure_of(c.build_ns, REPEATS), script = gpu_figure_of(c.script_ns, REPEATS);
    const double vertices = (double)c.vertices / REPEATS, tasks = (double)c.task_words / REPEATS;
    const double bytes = 4.0 * (double)c.words / REPEATS, barriers = (double)c.phases / (double)c.tree_levels;
    const int vps = (int)b->layout.tasks.n_vps;
    fprintf(stderr,
            "| %6u | %3d | %5u | %7.0f | %8.0f | %8.0f | %6.1f | %6.1f | %4.2f | %5.1f | %5.1f (%.1f - %.1f) |\n",
            hidden, vps, batch, vertices, tasks, bytes, (double)c.tree_levels / REPEATS, (double)c.phases / REPEATS,
            barriers, build.median, script.median, script.low, script.high);
    json_t *o = json_pack("{ss si si si sf sf sf sf}", "bench", "script", "hidden", (int)hidden, "vps", vps, "batch",
                          (int)batch, "vertices", vertices, "task_words", tasks, "tasks", (double)c.tasks / REPEATS,
                          "script_bytes", bytes);
    json_object_set_new(o, "levels", json_real((double)c.levels / REPEATS));
    json_object_set_new(o, "tree_levels", json_real((double)c.tree_levels / REPEATS));
    json_object_set_new(o, "phases", json_real((double)c.phases / REPEATS));
    json_object_set_new(o, "phases_per_tree_level", json_real(barriers));
    json_object_set_new(o, "build_ns_per_vertex", gpu_figure_json(build));
    json_object_set_new(o, "script_ns_per_vertex", gpu_figure_json(script));
    return gpu_emit(o);
}

static vpps_status measure_size(const gpu_settings *settings, uint32_t hidden) {
    static const uint32_t batches[] = {1, 16, 128};
    gpu_batch b;
    vpps_status status = gpu_batch_open(&b, settings->trees, hidden);
    for (size_t i = 0; i < VPPS_COUNT(batches) && status == VPPS_OK; i++) status = measure(&b, hidden, batches[i]);
    gpu_batch_close(&b);
    return status;
}

vpps_status gpu_bench_scripts(const gpu_settings *settings) {
    fprintf(stderr,
            "\nScripts, a mean over %d batches; host: thread CPU time, ns a vertex, median (lowest - highest)\n\n",
            REPEATS);
    fprintf(stderr,
            "| hidden | VPs | batch | vertices | words of tasks | bytes a batch | tree levels | phases | phases a "
            "tree level | build | script |\n");
    fprintf(stderr, "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for (const uint32_t *hidden = gpu_sizes; *hidden; hidden++) VPPS_TRY(measure_size(settings, *hidden));
    return VPPS_OK;
}
