/* steps.c - sorts a batch's vertices into blocks (vertices of one type that run together), and each block by level (steps.h). */
#include "script/steps.h"

#include "script/deal.h"

/* State while vertices are sorted into blocks (of one type, one group of threads or CTAs, one part of the batch). */
typedef struct maker {
    const vpps_batching *b;
    vpps_arena *arena;
    vpps_steps *out;
    vpps_step_block *blocks;
    vpps_ordered_vertex *order, *unsorted; /* unsorted: scratch, a copy of the vertices that are being sorted */
    uint32_t *level_starts;
    vpps_first_members *first_members;
} maker;

static bool open_blocks(maker *m) {
    const vpps_batch_needs *needs = m->b->needs;
    const uint32_t n_places = vpps_all_slices(m->out) * m->b->n_groups, n_types = needs->reading->n_types;
    uint32_t n = 0, *first_block;
    if (!VPPS_TAKE(m->arena, m->blocks, (size_t)n_types * n_places) || !VPPS_TAKE(m->arena, first_block, n_types))
        return false;
    memset(first_block, 0xff, n_types * sizeof *first_block);
    for (uint32_t scc = 0; scc < needs->n_sccs; scc++) {
        for (uint32_t t = 0; t < n_types; t++) {
            if (needs->types[t].scc != scc || !needs->types[t].needed) continue;
            first_block[t] = n;
            for (uint32_t i = 0; i < n_places; i++)
                m->blocks[n++] = (vpps_step_block){
                    .type = t, .group = i % m->b->n_groups, .slice = i / m->b->n_groups, .gradients = UINT64_MAX};
        }
    }
    m->out->first_block = first_block;
    m->out->n_blocks = n;
    return true;
}

/* Writes the vertices of every block (each block: of one cell) to `order`, in the graph's order. */
static bool fill_blocks(maker *m) {
    const vpps_batch_needs *needs = m->b->needs;
    const vpps_reading *r = needs->reading;
    if (!VPPS_TAKE(m->arena, m->order, r->n_vertices)) return false;
    for (uint32_t v = 0; v < r->n_vertices; v++) {
        if (!needs->needed[v]) continue;
        m->blocks[vpps_block_of(m->out, v)].n++;
        m->out->n_levels = vpps_max_u32(m->out->n_levels, r->vertices[v].depth + 1);
    }
    uint32_t first = 0;
    for (uint32_t i = 0; i < m->out->n_blocks; i++) {
        m->blocks[i].first = first;
        first += m->blocks[i].n;
        m->blocks[i].n = 0;
    }
    for (uint32_t v = 0; v < r->n_vertices; v++) {
        const vpps_read_vertex *x = &r->vertices[v];
        if (!needs->needed[v]) continue;
        vpps_step_block *b = &m->blocks[vpps_block_of(m->out, v)];
        b->n_levels = vpps_max_u32(b->n_levels, m->b->levels[v] + 1);
        b->gradients &= needs->gradients[v];
        m->order[b->first + b->n++] = (vpps_ordered_vertex){v, x->first_source, x->first_output, x->words};
    }
    return true;
}

/* Allocates level_starts (for each block, i.e. the vertices of one cell, n_levels + 2 elements, as the counting sort in
 * sort_block needs) and `unsorted` (room for the largest block). */
static bool open_levels(maker *m) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < m->out->n_blocks; i++) {
        vpps_step_block *b = &m->blocks[i];
        b->levels = (uint32_t)m->out->n_level_starts;
        m->out->n_level_starts += b->n_levels + (size_t)2;
        most = vpps_max_u32(most, b->n);
    }
    return VPPS_TAKE_ZEROS(m->arena, m->level_starts, m->out->n_level_starts) && VPPS_TAKE(m->arena, m->unsorted, most);
}

/* Sorts the vertices of a block by level (an order in which a vertex follows the vertices that it reads). */
static void sort_block(maker *m, const vpps_step_block *b) {
    const uint32_t *levels = m->b->levels;
    uint32_t *starts = m->level_starts + b->levels;
    if (b->n_levels < 2) {
        starts[b->n_levels] = b->n;
        return;
    }
    vpps_ordered_vertex *order = m->order + b->first;
    memcpy(m->unsorted, order, b->n * sizeof *order);
    for (uint32_t p = 0; p < b->n; p++) starts[levels[order[p].vertex] + 2]++;
    for (uint32_t l = 2; l < b->n_levels + 2; l++) starts[l] += starts[l - 1];
    for (uint32_t p = 0; p < b->n; p++) /* moves starts[l + 1] from level l's start to its end */
        order[starts[levels[m->unsorted[p].vertex] + 1]++] = m->unsorted[p];
}

static void count_members(maker *m, vpps_step_block *b) {
    const vpps_reading *r = m->b->needs->reading;
    const uint32_t n_lists = r->types[b->type].n_lists;
    for (uint32_t p = 0; p < b->n && n_lists; p++) {
        const uint32_t v = m->order[b->first + p].vertex;
        for (uint32_t l = 0; l < n_lists; l++) {
            m->first_members[v].of[l] = b->members[l];
            b->members[l] += r->lists[v].members[l];
        }
    }
}

static bool make_blocks(maker *m) {
    if (!fill_blocks(m) || !open_levels(m) || !VPPS_TAKE(m->arena, m->first_members, m->b->needs->reading->n_vertices))
        return false;
    for (uint32_t i = 0; i < m->out->n_blocks; i++) {
        sort_block(m, &m->blocks[i]);
        const uint32_t *starts = m->level_starts + m->blocks[i].levels;
        for (uint32_t l = 0; l < m->blocks[i].n_levels; l++) m->out->n_steps += starts[l + 1] > starts[l];
        count_members(m, &m->blocks[i]);
    }
    return true;
}

bool vpps_choose_steps(const vpps_batching *b, uint32_t n_waves, uint32_t n_slices, vpps_arena *arena,
                       vpps_steps *out) {
    *out = (vpps_steps){
        .batching = b, .needs = b->needs, .reading = b->needs->reading, .n_waves = n_waves, .n_slices = n_slices};
    maker m = {.b = b, .arena = arena, .out = out};
    uint32_t *place;
    if (!VPPS_TAKE(arena, place, b->needs->reading->n_vertices) ||
        !vpps_deal_components(b, arena, &out->n_waves, place) ||
        !vpps_deal_heads(b, arena, out->n_waves, &out->n_slices, place))
        return false;
    out->place = place;
    if (!open_blocks(&m) || !make_blocks(&m)) return false;
    out->blocks = m.blocks;
    out->order = m.order;
    out->level_starts = m.level_starts;
    out->first_members = m.first_members;
    return true;
}
