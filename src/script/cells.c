/* cells.c - finds the compiled cells that a batch needs, or compiles them (batching.h). */
#include "script/batching.h"

/* Classifier heads (vertices that only the loss reads) run in slices (parts of a batch), one after the other in the same memory.
 * Returns whether vertices of head type t compute gradients for a vertex that is no head, which adds them up after all slices.
 * Stored as two factors (a scalar and a vector) in the heads' memory, such gradients would be overwritten by later slices. */
static bool outlive_slices(const vpps_batching *b, uint32_t t) {
    const vpps_batch_needs *n = b->needs;
    if (!b->heads[t]) return false;
    for (uint32_t u = 0; u < n->reading->n_types; u++)
        if (vpps_reads(n, t, u) && !b->heads[u] && n->types[u].cell.gradient_out) return true;
    return false;
}

/* Twins are recurrences of equal work that read the same other types, but not each other, such as the two directions of
 * a bidirectional LSTM. A thread or CTA (VP) of a group of VPs can run one twin alone while another VP runs another
 * twin. Returns 1 + number of the VP that runs type t alone; 0: all VPs of the group share the work of t. */
static uint32_t owner_of(const vpps_batching *b, uint32_t t) {
    const vpps_batch_needs *n = b->needs;
    const vpps_batched_type *types = b->types;
    uint32_t twins = 0, number = 0;
    for (uint32_t u = 0; u < n->reading->n_types; u++) {
        bool twin = n->types[u].needed && vpps_reads(n, u, u) && vpps_types_of_scc(n, n->types[u].scc) == 1 &&
                    types[u].items[0] == types[t].items[0] && types[u].n_levels == types[t].n_levels &&
                    n->reading->types[u].base->n_values == n->reading->types[t].base->n_values;
        for (uint32_t x = 0; x < n->reading->n_types && twin; x++)
            twin = (x != t && vpps_reads(n, t, x)) == (x != u && vpps_reads(n, u, x));
        twins += twin;
        if (twin && u == t) number = twins;
    }
    return number && twins % b->group_size == 0 ? (number - 1) % b->group_size + 1 : 0;
}

vpps_status vpps_compile_cells(const vpps_batching *b, vpps_history *history, const vpps_target *target,
                               vpps_arena *arena, vpps_batching *out) {
    const vpps_reading *r = b->needs->reading;
    vpps_compiled_cell **own;
    uint32_t n = 0;
    *out = *b;
    if (!VPPS_TAKE_ZEROS(arena, out->cells, r->n_types) || !VPPS_TAKE(arena, out->cell_numbers, r->n_types) ||
        !VPPS_TAKE(arena, own, r->n_types))
        return vpps_no_memory();
    for (uint32_t t = 0; t < r->n_types; t++) {
        if (!b->needs->types[t].needed) continue;
        vpps_cell_needs needs = b->needs->types[t].cell;
        needs.group = b->group_size;
        needs.rows = target->rows;
        if (needs.rows.wide && b->types[t].items[0] >= (uint64_t)needs.rows.wide * b->n_vps * b->types[t].n_levels)
            needs.rows.split_elems = needs.rows.wide_elems;
        if (needs.rows.wide && b->group_size > 1) needs.owner = owner_of(b, t);
        /* the compiler does not read these two members; equal values make equal cells compare equal */
        needs.rows.wide = needs.rows.wide_elems = 0;
        needs.scales = target->scales && r->types[t].base->n_lists && !outlive_slices(b, t);
        needs.in_place = target->in_place;
        VPPS_TRY(vpps_compiled_for(history, r->g->model, r->types[t].index, needs,
                                   target->most_cells ? &b->needs->types[t].differentiable : NULL, &out->cells[t]));
        out->cell_numbers[t] = n;
        own[n++] = out->cells[t];
    }
    out->kernel = own, out->n_kernel = n;
    if (!target->most_cells) return VPPS_OK;
    if (!VPPS_TAKE(arena, out->kernel, history->n_compiled)) return vpps_no_memory();
    out->n_kernel = vpps_kernel_set(history, n, own, target->most_cells, out->kernel);
    for (uint32_t t = 0; t < r->n_types; t++)
        for (uint32_t i = 0; i < out->n_kernel; i++)
            if (out->kernel[i] == out->cells[t]) out->cell_numbers[t] = i;
    return VPPS_OK;
}
