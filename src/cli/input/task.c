/* task.c - the table of the kinds of data that networks learn (task.h). */
#include "cli/input/task.h"

static const task *const tasks[] = {
    [NET_TREES] = &task_trees,
    [NET_TAGGING] = &task_tagging,
    [NET_SENTENCES] = &task_sentences,
    [NET_TEXT] = &task_text_model,
    [NET_LATTICES] = &task_lattices,
    [NET_PAIRS] = &task_pairs,
    [NET_LATTICE_PAIRS] = &task_lattice_pairs,
    [NET_DEPENDENCIES] = &task_dependencies,
    [NET_NODES] = &task_nodes,
    [NET_GRAPHS] = &task_graphs,
};

const task *task_of(net_kind kind) { return tasks[kind]; }
