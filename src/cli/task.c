/* task.c - the table of kinds, and which of two networks is better. */
#include "cli/task.h"
#include "base/base.h"

#include <math.h>

static const task *const tasks[] = {
    [NET_TREES] = &task_trees,
    [NET_TAGGING] = &task_tagging,
    [NET_SENTENCES] = &task_sentences,
    [NET_TEXT] = &task_text_model,
    [NET_LATTICES] = &task_lattices,
    [NET_PAIRS] = &task_pairs,
    [NET_LATTICE_PAIRS] = &task_lattice_pairs,
};

const task *task_of(net_kind kind) { return tasks[kind]; }

uint32_t measures_first(const task *t, const measures *m) {
    for (uint32_t i = 0; i < MAX_METRICS && t->metrics[i].name && m->known; i++) {
        if (isfinite(m->value[i])) return i;
    }
    return MAX_METRICS;
}

bool metric_better(const metric *kind, double a, double b) { return kind->falls ? a < b : a > b; }
