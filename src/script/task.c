/* task.c - see task.h. */
#include "script/task.h"

const vpps_task_row vpps_tasks[VPPS_TASK_COUNT] = {
#define TASK(id, words, text) {#id, words, text},
#include "script/tasks.def"
#undef TASK
};

void vpps_view_block(const uint32_t *script, const vpps_block *block, const vpps_compiled_cell *cell,
                     vpps_block_view *out) {
    const uint32_t *at = script + block->arrays;
    const uint32_t n = block->n;
    *out = (vpps_block_view){.block = block, .cell = cell, .vertices = at};
    at += n;
    for (uint32_t i = 0; i < cell->n_inputs; i++) {
        if (cell->input_is_list[i]) continue;
        out->inputs[i] = at;
        at += n;
    }
    for (uint32_t i = 0; i < cell->n_lookups; i++, at += n) out->lookups[i] = at;
    for (uint32_t i = 0; i < cell->n_words; i++, at += n) out->words[i] = at;
    if (cell->is_data) {
        out->data = at;
        at += n;
    }
    if (cell->list_inputs) {
        out->list = at;
        at += n + 1;
        for (uint32_t i = 0; i < cell->n_inputs; i++) {
            if (!cell->input_is_list[i]) continue;
            out->inputs[i] = at;
            at += block->members;
        }
    }
    for (uint32_t k = 0; k < cell->n_outputs; k++) {
        if (!cell->needs.training || !(cell->needs.gradient_out >> k & 1)) continue;
        out->gradient_starts[k] = at;
        out->gradients[k] = at + n + 1;
        at += n + 1 + at[n];
    }
    out->end = (uint64_t)(at - script);
}
