/* policy.c - which vertices run together. Types of vertices and what they read form a graph; its strongly connected parts
 * run one after the other. A part without a cycle is one step, whatever the levels of its vertices: classifiers, embeddings
 * and everything else that is no recurrence run once, over all vertices. Inside a recurrence vertices run level by level. */
#include "script/work.h"

/* ---------------------------------------------------------------- strongly connected parts */

/* Marks what the loss or the request is made of, and which types read which; readers come behind what they read. */
static bool find_needed(vpps_batch_work *w) {
    w->edge_words = (w->n_used + 63) / 64;
    const size_t words = (size_t)w->n_used * w->edge_words;
    if (!VPPS_RESERVE(w->edges, w->edges_capacity, words + 1)) return false;
    memset(w->edges, 0, words * sizeof *w->edges);
    for (uint32_t i = 0; i < w->n_seeds; i++) w->vertices[w->seeds[i].to.vertex].needed = true;
    for (uint32_t i = 0; i < w->request->n_outputs && !w->training; i++)
        w->vertices[w->requested[i].vertex].needed = true;
    for (uint32_t r = w->n_vertices; r-- > 0;) {
        const vpps_vertex_work *v = &w->vertices[r];
        if (!v->needed) continue;
        w->used[v->type].needed = true;
        uint64_t *row = w->edges + (size_t)v->type * w->edge_words;
        const vpps_output_ref *sources = w->sources + v->first_source;
        for (uint32_t i = 0; i < v->n_sources; i++) {
            vpps_vertex_work *read = &w->vertices[sources[i].vertex];
            const uint64_t bit = (uint64_t)1 << (read->type % 64);
            if (!(row[read->type / 64] & bit)) row[read->type / 64] |= bit;
            read->needed = true;
        }
    }
    return true;
}

/* Tarjan (1972), with a stack of its own: what is read comes first, so parts come out in topological order. */
static bool find_parts(vpps_batch_work *w) {
    const uint32_t n = w->n_used;
    uint32_t *memory = malloc((5 * (size_t)n + 1) * sizeof *memory);
    if (!memory) return false;
    uint32_t *index = memory, *low = memory + n, *stack = memory + 2 * n, *path = memory + 3 * n,
             *next = memory + 4 * n;
    uint32_t n_index = 0, n_stack = 0;
    memset(index, 0xff, n * sizeof *index);
    for (uint32_t t = 0; t < n; t++) w->used[t].part = VPPS_NONE;
    w->n_parts = 0;
    for (uint32_t root = 0; root < n; root++) {
        if (index[root] != VPPS_NONE) continue;
        uint32_t depth = 0;
        path[0] = root;
        index[root] = low[root] = n_index++;
        stack[n_stack++] = root;
        next[root] = 0;
        for (;;) {
            const uint32_t t = path[depth];
            uint32_t u = next[t];
            while (u < n && !vpps_reads(w, t, u)) u++;
            next[t] = u + 1;
            if (u < n) {
                if (index[u] == VPPS_NONE) {
                    index[u] = low[u] = n_index++;
                    stack[n_stack++] = u;
                    next[u] = 0;
                    path[++depth] = u;
                } else if (w->used[u].part == VPPS_NONE) {
                    low[t] = vpps_min_u32(low[t], index[u]);
                }
                continue;
            }
            if (low[t] == index[t]) {
                uint32_t size = 0, member;
                do {
                    member = stack[--n_stack];
                    w->used[member].part = w->n_parts;
                    size++;
                } while (member != t);
                for (uint32_t i = 0; i < n; i++)
                    if (w->used[i].part == w->n_parts) w->used[i].recurrent = size > 1 || vpps_reads(w, i, i);
                w->n_parts++;
            }
            if (!depth) break;
            depth--;
            low[path[depth]] = vpps_min_u32(low[path[depth]], low[t]);
        }
    }
    free(memory);
    return true;
}

/* ---------------------------------------------------------------- needs */

/* Types whose outputs have gradients: a parameter that is trained is in them or below them. */
static void find_differentiable(vpps_batch_work *w) {
    for (uint32_t t = 0; t < w->n_used; t++) w->used[t].differentiable = w->used[t].trains;
    for (bool changed = w->training; changed;) {
        changed = false;
        for (uint32_t t = 0; t < w->n_used; t++) {
            for (uint32_t u = 0; u < w->n_used && !w->used[t].differentiable; u++)
                if (vpps_reads(w, t, u) && w->used[u].differentiable) w->used[t].differentiable = changed = true;
        }
    }
}

/* What n sources, read for one input, mean for the reader and for those who are read. `reached`: an output of the reader
 * that has a gradient is made of the input. */
static inline void note_reads(vpps_batch_work *w, vpps_used_type *reader, uint32_t input, uint32_t n,
                              const vpps_output_ref *sources, bool reached) {
    const uint64_t in = (uint64_t)1 << input;
    for (uint32_t i = 0; i < n; i++) {
        vpps_vertex_work *read = &w->vertices[sources[i].vertex];
        vpps_used_type *source = &w->used[read->type];
        const uint64_t output = (uint64_t)1 << (sources[i].output - read->first_output);
        source->needs.read_out |= output;
        if (source->part == reader->part) {
            reader->needs.recurrent_in |= in;
            source->needs.recurrent_out |= output;
        }
        if (source->differentiable && reached) {
            reader->needs.gradient_in |= in;
            read->gradients |= output;
        }
    }
}

static void find_vertex_needs(vpps_batch_work *w, uint32_t r) {
    const vpps_vertex_work *v = &w->vertices[r];
    vpps_used_type *u = &w->used[v->type];
    const vpps_compiled_cell *c = u->type->base;
    if (v->gradients != u->reached_from) {
        u->reached_from = v->gradients;
        u->reached = vpps_reached(u->type->reads_inputs, v->gradients);
        u->needs.gradient_out |= v->gradients;
    }
    const vpps_output_ref *sources = w->sources + v->first_source;
    for (uint32_t k = 0; k < c->n_inputs; k++) {
        const uint32_t n = c->input_is_list[k] ? w->rests[r].members : 1;
        note_reads(w, u, k, n, sources, u->reached >> k & 1);
        sources += n;
    }
}

/* From the loss down: a vertex's output has a gradient when it is a term of the loss, or when a vertex reads it for an
 * output that has one. What has none is neither computed nor counts as used. Counts the blocks' vertices, too. */
static void find_needs(vpps_batch_work *w) {
    for (uint32_t i = 0; i < w->n_seeds; i++) {
        vpps_vertex_work *v = &w->vertices[w->seeds[i].to.vertex];
        const uint64_t output = (uint64_t)1 << (w->seeds[i].to.output - v->first_output);
        w->used[v->type].needs.read_out |= output;
        if (w->used[v->type].differentiable) v->gradients |= output;
    }
    for (uint32_t i = 0; i < w->request->n_outputs && !w->training; i++) {
        const vpps_vertex_work *v = &w->vertices[w->requested[i].vertex];
        w->used[v->type].needs.read_out |= (uint64_t)1 << (w->requested[i].output - v->first_output);
    }
    for (uint32_t r = w->n_vertices; r-- > 0;) {
        if (!w->vertices[r].needed) continue;
        vpps_block_work *b = &w->blocks[vpps_block_of(w, r)];
        b->n++;
        b->gradients &= w->vertices[r].gradients;
        find_vertex_needs(w, r);
    }
}

static vpps_status compile(vpps_batch_work *w, vpps_batch *b) {
    b->n_cells = 0;
    for (uint32_t t = 0; t < w->n_used; t++) {
        vpps_used_type *u = &w->used[t];
        if (u->first_block == VPPS_NONE) continue;
        u->needs.group = w->group_size;
        u->needs.split_elems = w->machine->split_elems;
        VPPS_TRY(vpps_compiled_for(w->types, w->g->model, u->type, &u->needs, &u->cell));
        if (!VPPS_RESERVE(b->cells, b->cells_capacity, b->n_cells + 1u)) return vpps_no_memory();
        u->cell_number = b->n_cells;
        b->cells[b->n_cells++] = u->cell;
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- groups */

static uint32_t find_root(uint32_t *parent, uint32_t v) {
    while (parent[v] != v) v = parent[v] = parent[parent[v]];
    return v;
}

static uint64_t matrix_elems(const vpps_batch_work *w) {
    uint64_t n = 0;
    for (uint32_t p = 0; p < w->g->model->n_params; p++)
        if (w->g->model->params[p].kind == VPPS_MATRIX) n += vpps_param_elems(&w->g->model->params[p]);
    return n;
}

/* Groups of one VP where the matrices stay close to each VP anyhow and there are components enough to deal; else one
 * group of all. Components are dealt by the number of their vertices, the largest first would be better balanced but
 * changes the order of sums with the data; in the order of the batch they come out even enough. */
static bool choose_groups(vpps_batch_work *w) {
    enum { COMPONENTS_A_VP = 4 };
    const uint32_t n_vps = w->machine->n_vps;
    w->n_groups = 1;
    if (!VPPS_RESERVE(w->component, w->component_capacity, w->n_vertices + 1u)) return false;
    const bool may =
        n_vps > 1 && (w->request->groups ? w->request->groups > 1 : matrix_elems(w) <= w->machine->close_elems);
    uint32_t n_components = 0, n_needed = 0;
    if (may) {
        uint32_t *parent = w->component;
        for (uint32_t r = 0; r < w->n_vertices; r++) parent[r] = r;
        for (uint32_t r = 0; r < w->n_vertices; r++) {
            const vpps_vertex_work *v = &w->vertices[r];
            for (uint32_t i = 0; v->needed && i < v->n_sources; i++) {
                const uint32_t a = find_root(parent, r);
                const uint32_t b = find_root(parent, w->sources[v->first_source + i].vertex);
                if (a != b) parent[a > b ? a : b] = a > b ? b : a; /* the root is the component's first vertex */
            }
        }
        for (uint32_t r = 0; r < w->n_vertices; r++) {
            if (!w->vertices[r].needed) continue;
            n_components += find_root(parent, r) == r;
            n_needed++;
        }
        if (n_components >= (w->request->groups ? 2 : COMPONENTS_A_VP * n_vps)) w->n_groups = n_vps;
        if (w->request->groups && w->n_groups > 1) w->n_groups = w->request->groups;
    }
    w->group_size = n_vps / w->n_groups;
    if (w->n_groups == 1) {
        memset(w->component, 0, w->n_vertices * sizeof *w->component);
        return true;
    }
    uint32_t *size = calloc(w->n_vertices + 1u, sizeof *size); /* of components, then the group of each root, + 1 */
    uint64_t *load = calloc(w->n_groups, sizeof *load);
    if (size && load) {
        for (uint32_t r = 0; r < w->n_vertices; r++)
            if (w->vertices[r].needed) size[find_root(w->component, r)]++;
        for (uint32_t r = 0; r < w->n_vertices; r++) { /* to the least loaded group, in order */
            if (!size[r] || w->component[r] != r) continue;
            uint32_t best = 0;
            for (uint32_t i = 1; i < w->n_groups; i++)
                if (load[i] < load[best]) best = i;
            load[best] += size[r];
            size[r] = best + 1;
        }
        for (uint32_t r = w->n_vertices; r-- > 0;) { /* roots come first, so they are overwritten last */
            const uint32_t root = find_root(w->component, r);
            if (root != r) w->component[r] = w->vertices[r].needed ? size[root] - 1 : 0;
        }
        for (uint32_t r = 0; r < w->n_vertices; r++)
            if (size[r]) w->component[r] = size[r] - 1;
    }
    const bool ok = size && load;
    free(size);
    free(load);
    return ok;
}

/* ---------------------------------------------------------------- levels and blocks */

/* Blocks in the order of parts; of one type, group after group. */
static bool open_blocks(vpps_batch_work *w) {
    w->n_blocks = 0;
    if (!VPPS_RESERVE(w->blocks, w->blocks_capacity, (size_t)w->n_used * w->n_groups + 1)) return false;
    for (uint32_t part = 0; part < w->n_parts; part++) {
        for (uint32_t t = 0; t < w->n_used; t++) {
            if (w->used[t].part != part || !w->used[t].needed) continue;
            w->used[t].first_block = w->n_blocks;
            for (uint32_t i = 0; i < w->n_groups; i++)
                w->blocks[w->n_blocks++] = (vpps_block_work){.type = t, .group = i, .gradients = UINT64_MAX};
        }
    }
    return true;
}

/* A vertex's level: behind all of its part that it reads. */
static uint32_t level_of(const vpps_batch_work *w, const vpps_vertex_work *v, uint32_t part) {
    const vpps_output_ref *sources = w->sources + v->first_source;
    uint32_t level = 0;
    for (uint32_t i = 0; i < v->n_sources; i++) {
        const vpps_vertex_work *read = &w->vertices[sources[i].vertex];
        if (w->used[read->type].part == part) level = vpps_max_u32(level, read->level + 1);
    }
    return level;
}

/* Sets levels, and puts every block's vertices into their order, but for levels: the graph's. */
static bool fill_blocks(vpps_batch_work *w) {
    if (!VPPS_RESERVE(w->order, w->order_capacity, w->n_vertices + 1u)) return false;
    uint32_t first = 0;
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        w->blocks[i].first = first;
        first += w->blocks[i].n;
        w->blocks[i].n = 0;
    }
    w->n_levels = 0;
    for (uint32_t r = 0; r < w->n_vertices; r++) {
        vpps_vertex_work *v = &w->vertices[r];
        if (!v->needed) continue;
        const vpps_used_type *u = &w->used[v->type];
        vpps_block_work *b = &w->blocks[vpps_block_of(w, r)];
        w->n_levels = vpps_max_u32(w->n_levels, v->level + 1);
        v->level = u->recurrent ? level_of(w, v, u->part) : 0;
        b->n_levels = vpps_max_u32(b->n_levels, v->level + 1);
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

static bool make_blocks(vpps_batch_work *w) {
    if (!fill_blocks(w)) return false;
    w->n_level_starts = 0;
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        vpps_block_work *b = &w->blocks[i];
        if (!sort_block(w, b)) return false;
        for (uint32_t p = 0; p < b->n && w->used[b->type].type->base->list_inputs; p++) {
            vpps_vertex_rest *rest = &w->rests[w->order[b->first + p].vertex];
            rest->first_member = b->members;
            b->members += rest->members;
        }
    }
    return true;
}

vpps_status vpps_choose_steps(vpps_batch_work *w, vpps_batch *b) {
    if (!find_needed(w) || !find_parts(w)) return vpps_no_memory();
    find_differentiable(w);
    if (!choose_groups(w) || !open_blocks(w)) return vpps_no_memory();
    find_needs(w);
    if (!make_blocks(w)) return vpps_no_memory();
    return compile(w, b);
}
