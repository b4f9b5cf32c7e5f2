/* policy.c - which vertices run together. Types of vertices and what they read form a graph; its strongly connected parts
 * run one after the other. A part without a cycle is one step, whatever the levels of its vertices: classifiers, embeddings
 * and everything else that is no recurrence run once, over all vertices. Inside a recurrence vertices run level by level. */
#include "script/scopes.h"

/* ---------------------------------------------------------------- levels and blocks */

/* Blocks in the order of parts; of one type, place after place. */
static bool open_blocks(vpps_batch_work *w) {
    const uint32_t n_places = vpps_all_slices(w) * w->n_groups;
    w->n_blocks = 0;
    if (!VPPS_RESERVE(w->blocks, w->blocks_capacity, (size_t)w->n_used * n_places + 1)) return false;
    for (uint32_t part = 0; part < w->n_parts; part++) {
        for (uint32_t t = 0; t < w->n_used; t++) {
            if (w->used[t].part != part || !w->used[t].needed) continue;
            w->used[t].first_block = w->n_blocks;
            for (uint32_t i = 0; i < n_places; i++)
                w->blocks[w->n_blocks++] = (vpps_block_work){
                    .type = t, .group = i % w->n_groups, .slice = i / w->n_groups, .gradients = UINT64_MAX};
        }
    }
    return true;
}

/* Puts every block's vertices into the graph's order. */
static bool fill_blocks(vpps_batch_work *w) {
    if (!VPPS_RESERVE(w->order, w->order_capacity, w->n_vertices + 1u)) return false;
    w->n_levels = 0;
    for (uint32_t r = 0; r < w->n_vertices; r++) {
        if (!w->needed[r]) continue;
        w->blocks[vpps_block_of(w, r)].n++;
        w->n_levels = vpps_max_u32(w->n_levels, w->vertices[r].depth + 1);
    }
    uint32_t first = 0;
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        w->blocks[i].first = first;
        first += w->blocks[i].n;
        w->blocks[i].n = 0;
    }
    for (uint32_t r = 0; r < w->n_vertices; r++) {
        const vpps_vertex_work *v = &w->vertices[r];
        if (!w->needed[r]) continue;
        vpps_block_work *b = &w->blocks[vpps_block_of(w, r)];
        b->n_levels = vpps_max_u32(b->n_levels, v->level + 1);
        b->gradients &= v->gradients;
        w->order[b->first + b->n++] = (vpps_ordered_vertex){r, v->first_source, v->first_output, v->words};
    }
    return true;
}

/* Sorts a block's vertices by level. */
static bool sort_block(vpps_batch_work *w, vpps_block_work *b) {
    const size_t n_starts = b->n_levels + 2;
    b->levels = (uint32_t)w->n_level_starts;
    if (!VPPS_RESERVE(w->level_starts, w->level_starts_capacity, w->n_level_starts + n_starts) ||
        !VPPS_RESERVE(w->unsorted, w->unsorted_capacity, b->n + 1u)) {
        return false;
    }
    w->n_level_starts += n_starts;
    uint32_t *starts = w->level_starts + b->levels;
    memset(starts, 0, n_starts * sizeof *starts);
    if (b->n_levels < 2) {
        starts[b->n_levels] = b->n;
        return true;
    }
    vpps_ordered_vertex *order = w->order + b->first;
    memcpy(w->unsorted, order, b->n * sizeof *order);
    for (uint32_t p = 0; p < b->n; p++) starts[w->vertices[order[p].vertex].level + 2]++;
    for (uint32_t l = 2; l < n_starts; l++) starts[l] += starts[l - 1];
    for (uint32_t p = 0; p < b->n; p++) /* starts[l + 1] runs from level l's start to its end */
        order[starts[w->vertices[w->unsorted[p].vertex].level + 1]++] = w->unsorted[p];
    return true;
}

static void count_steps(vpps_batch_work *w, const vpps_block_work *b) {
    const uint32_t *starts = w->level_starts + b->levels;
    for (uint32_t l = 0; l < b->n_levels; l++) w->n_steps += starts[l + 1] > starts[l];
}

static bool make_blocks(vpps_batch_work *w) {
    if (!fill_blocks(w)) return false;
    w->n_level_starts = 0;
    w->n_steps = 0;
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        vpps_block_work *b = &w->blocks[i];
        if (!sort_block(w, b)) return false;
        count_steps(w, b);
        const uint32_t n_lists = w->used[b->type].type->base->n_lists;
        for (uint32_t p = 0; p < b->n && n_lists; p++) {
            vpps_vertex_rest *rest = &w->rests[w->order[b->first + p].vertex];
            for (uint32_t l = 0; l < n_lists; l++) {
                rest->first_member[l] = b->members[l];
                b->members[l] += rest->members[l];
            }
        }
    }
    return true;
}

/* Numbers the cells that the batch's blocks are of. */
static vpps_status list_cells(vpps_batch_work *w, vpps_batch *b) {
    b->n_cells = 0;
    for (uint32_t t = 0; t < w->n_used; t++) {
        vpps_used_type *u = &w->used[t];
        if (!u->needed) continue;
        if (!VPPS_RESERVE(b->cells, b->cells_capacity, b->n_cells + 1u)) return vpps_no_memory();
        u->cell_number = b->n_cells;
        b->cells[b->n_cells++] = u->cell;
    }
    return VPPS_OK;
}

vpps_status vpps_choose_cells(vpps_batch_work *w, vpps_batch *b) {
    if (!vpps_find_needs(w)) return vpps_no_memory();
    VPPS_TRY(vpps_choose_levels(w));
    vpps_count_vertices(w);
    VPPS_TRY(vpps_choose_groups(w));
    return list_cells(w, b);
}

vpps_status vpps_choose_steps(vpps_batch_work *w) {
    return vpps_deal_components(w) && vpps_deal_heads(w) && open_blocks(w) && make_blocks(w) ? VPPS_OK
                                                                                             : vpps_no_memory();
}
