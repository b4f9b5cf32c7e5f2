/* task.c - finds in a batch's program (script) the arrays of a block (vertices of one cell), e.g. input offsets. */
#include "script/task.h"

const vpps_task_row vpps_task_rows[VPPS_TASK_COUNT] = {
#define TASK(id, operands, text) {#id, operands},
#include "script/tasks.def"
#undef TASK
};

/* Advances *at by n. Returns a pointer to n words of a batch's program, from the old *at on; NULL: it is shorter. */
static const uint32_t *take(const uint32_t *script, uint64_t *at, uint64_t n) {
    const uint64_t first = *at;
    *at += n;
    return *at <= vpps_task_header_of(script)->words ? script + first : NULL;
}

void vpps_view_block(const uint32_t *script, const vpps_block *block, const vpps_compiled_cell *cell,
                     vpps_block_view *out) {
    const uint32_t n = block->n;
    uint64_t at = block->arrays;
    const uint32_t *place;
    *out = (vpps_block_view){.block = block, .cell = cell, .vertices = take(script, &at, n)};
    out->runs = vpps_task_header_of(script)->pairs == VPPS_PAIRS_IN_RUNS ? script : NULL;
    for (uint32_t i = 0; i < cell->n_inputs; i++)
        if (!cell->input_axis[i]) out->inputs[i] = take(script, &at, n);
    for (uint32_t i = 0; i < cell->n_lookups; i++) out->lookups[i] = take(script, &at, n);
    for (uint32_t i = 0; i < cell->n_words; i++) out->words[i] = take(script, &at, n);
    if (cell->is_data) out->data = take(script, &at, n);
    for (uint32_t d = 1; d <= cell->n_lists; d++) {
        out->lists[d] = take(script, &at, n + (uint64_t)1);
        for (uint32_t i = 0; i < cell->n_inputs; i++)
            if (cell->input_axis[i] == d && (place = take(script, &at, 2))) {
                uint64_t end = place[0];
                out->inputs[i] = take(script, &end, vpps_items(block, d));
                out->shifts[i] = (int32_t)place[1];
                if (end > out->end) out->end = end;
            }
    }
    for (uint32_t k = 0; k < cell->n_outputs; k++) {
        if (!cell->needs.training || !(cell->needs.gradient_out >> k & 1)) continue;
        out->gradient_starts[k] = take(script, &at, n + (uint64_t)1);
        out->gradients[k] = out->gradient_starts[k] ? take(script, &at, out->gradient_starts[k][n]) : NULL;
        if (!vpps_task_header_of(script)->pairs) continue;
        out->pair_starts[k] = take(script, &at, n + (uint64_t)1);
        out->pairs[k] =
            out->pair_starts[k] ? take(script, &at, VPPS_PAIR_WORDS * (uint64_t)out->pair_starts[k][n]) : NULL;
        for (uint32_t i = 0; out->runs && out->pairs[k] && i < out->pair_starts[k][n]; i++) {
            const uint64_t end = out->pairs[k][VPPS_PAIR_WORDS * (size_t)i + 1] + (uint64_t)VPPS_RUN_WORDS;
            if (end > out->end) out->end = end;
        }
    }
    if (at > out->end) out->end = at;
}

static uint64_t work_of(const vpps_cell_stage *stage, const uint32_t *const *lists, uint32_t first, uint32_t n) {
    uint64_t sum = (uint64_t)stage->work[0] * n;
    for (uint32_t d = 1; d < VPPS_AXES; d++)
        if (stage->work[d]) sum += (uint64_t)stage->work[d] * (lists[d][first + n] - lists[d][first]);
    return sum;
}

/* The work over n vertices is divided into `shares` equal parts. Returns how many vertices lie in the first `share` parts; a vertex that
 * lies in two parts belongs to the one that has the middle of the vertex's work. */
static uint32_t end_of_share(const vpps_cell_stage *stage, const uint32_t *const *lists, uint32_t first, uint32_t n,
                             uint32_t share, uint32_t shares) {
    if (!stage->work[0]) return (uint32_t)((uint64_t)n * share / shares);
    const uint64_t most = 2 * work_of(stage, lists, first, n) * share;
    uint32_t low = 0, beyond = n + 1;
    while (beyond - low > 1) {
        const uint32_t v = low + (beyond - low) / 2;
        const uint64_t twice = work_of(stage, lists, first, v - 1) + work_of(stage, lists, first, v);
        *(twice * shares <= most ? &low : &beyond) = v;
    }
    return low;
}

vpps_rows vpps_share_of_stage(const vpps_cell_stage *stage, const uint32_t *const *lists, uint32_t first, uint32_t n,
                              uint32_t group, uint32_t member) {
    if (stage->owner) return (vpps_rows){first, first + (stage->owner == member + 1 ? n : 0)};
    return (vpps_rows){first + end_of_share(stage, lists, first, n, member, group),
                       first + end_of_share(stage, lists, first, n, member + 1, group)};
}
