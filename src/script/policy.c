/* policy.c - which vertices run together. Types of vertices and what they read form a graph; its strongly connected parts
 * run one after the other. A part without a cycle is one step, whatever the levels of its vertices: classifiers, embeddings
 * and everything else that is no recurrence run once, over all vertices. Inside a recurrence vertices run level by level. */
#include "script/work.h"

/* ---------------------------------------------------------------- strongly connected parts */

static bool find_edges(vpps_batch_work *w) {
    w->edge_words = (w->n_used + 63) / 64;
    const size_t words = (size_t)w->n_used * w->edge_words;
    if (!VPPS_RESERVE(w->edges, w->edges_capacity, words + 1)) return false;
    memset(w->edges, 0, words * sizeof *w->edges);
    for (uint32_t r = 0; r < w->n_vertices; r++) {
        const vpps_vertex_work *v = &w->vertices[r];
        if (!v->needed) continue;
        uint64_t *row = w->edges + (size_t)v->type * w->edge_words;
        const uint32_t *sources = w->sources + v->first_source;
        for (uint32_t i = 0; i < v->n_sources; i++) {
            const uint32_t t = w->vertices[w->output_vertex[sources[i]]].type;
            row[t / 64] |= (uint64_t)1 << (t % 64);
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

/* The input of a vertex that its source number i belongs to. */
static uint32_t input_of(const vpps_compiled_cell *c, const vpps_vertex_work *v, uint32_t i) {
    if (!c->list_inputs) return i;
    for (uint32_t k = 0, at = 0; k < c->n_inputs; k++) {
        at += c->input_is_list[k] ? v->members : 1;
        if (i < at) return k;
    }
    return 0;
}

/* From the loss down: a vertex's output has a gradient when it is a term of the loss, or when a vertex reads it for an
 * output that has one. What has none is neither computed nor counts as used. */
static void find_needs(vpps_batch_work *w) {
    for (uint32_t i = 0; i < w->n_seeds; i++) {
        const uint32_t out = w->seeds[i].output;
        vpps_vertex_work *v = &w->vertices[w->output_vertex[out]];
        w->used[v->type].needs.read_out |= (uint64_t)1 << (out - v->first_output);
        if (w->used[v->type].differentiable) v->gradients |= (uint64_t)1 << (out - v->first_output);
    }
    for (uint32_t i = 0; i < w->request->n_outputs && !w->training; i++) {
        const vpps_vertex_work *v = &w->vertices[w->output_vertex[w->requested[i]]];
        w->used[v->type].needs.read_out |= (uint64_t)1 << (w->requested[i] - v->first_output);
    }
    for (uint32_t r = w->n_vertices; r-- > 0;) {
        vpps_vertex_work *v = &w->vertices[r];
        if (!v->needed) continue;
        vpps_used_type *reader = &w->used[v->type];
        uint64_t reached = 0, lookups = 0;
        for (uint64_t k = 0, left = v->gradients; left; k++, left >>= 1) {
            if (!(left & 1)) continue;
            reached |= reader->type->reads_inputs[k];
            lookups |= reader->type->reads_lookups[k];
        }
        v->inputs = reached;
        v->lookups = lookups;
        reader->needs.gradient_out |= v->gradients;
        for (uint32_t i = 0; i < v->n_sources; i++) {
            const uint32_t out = w->sources[v->first_source + i];
            vpps_vertex_work *read = &w->vertices[w->output_vertex[out]];
            vpps_used_type *source = &w->used[read->type];
            const uint64_t in = (uint64_t)1 << input_of(reader->type->base, v, i);
            const uint64_t output = (uint64_t)1 << (out - read->first_output);
            source->needs.read_out |= output;
            if (source->part == reader->part) {
                reader->needs.recurrent_in |= in;
                source->needs.recurrent_out |= output;
            }
            if (source->differentiable && (reached & in)) {
                reader->needs.gradient_in |= in;
                read->gradients |= output;
            }
        }
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
                const uint32_t b = find_root(parent, w->output_vertex[w->sources[v->first_source + i]]);
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

static void set_levels(vpps_batch_work *w) {
    w->n_levels = 0;
    for (uint32_t r = 0; r < w->n_vertices; r++) {
        vpps_vertex_work *v = &w->vertices[r];
        if (!v->needed) continue;
        const uint32_t part = w->used[v->type].part;
        v->level = v->depth = 0;
        for (uint32_t i = 0; i < v->n_sources; i++) {
            const vpps_vertex_work *read = &w->vertices[w->output_vertex[w->sources[v->first_source + i]]];
            v->depth = vpps_max_u32(v->depth, read->depth + 1);
            if (w->used[read->type].part == part) v->level = vpps_max_u32(v->level, read->level + 1);
        }
        w->n_levels = vpps_max_u32(w->n_levels, v->depth + 1);
    }
}

/* Blocks in the order of parts; of one type, group after group. */
static bool make_blocks(vpps_batch_work *w) {
    const uint32_t G = w->n_groups;
    w->n_blocks = 0;
    if (!VPPS_RESERVE(w->blocks, w->blocks_capacity, (size_t)w->n_used * G + 1) ||
        !VPPS_RESERVE(w->order, w->order_capacity, w->n_vertices + 1u)) {
        return false;
    }
    uint8_t *seen = calloc(w->n_used + 1u, 1);
    if (!seen) return false;
    for (uint32_t r = 0; r < w->n_vertices; r++)
        if (w->vertices[r].needed) seen[w->vertices[r].type] = 1;
    for (uint32_t part = 0; part < w->n_parts; part++) {
        for (uint32_t t = 0; t < w->n_used; t++) {
            if (w->used[t].part != part || !seen[t]) continue;
            w->used[t].first_block = w->n_blocks;
            for (uint32_t i = 0; i < G; i++) w->blocks[w->n_blocks++] = (vpps_block_work){.type = t, .group = i};
        }
    }
    free(seen);
    for (uint32_t r = 0; r < w->n_vertices; r++) {
        vpps_vertex_work *v = &w->vertices[r];
        if (!v->needed) continue;
        v->block = w->used[v->type].first_block + w->component[r];
        vpps_block_work *b = &w->blocks[v->block];
        b->n++;
        b->members += v->members;
        b->n_levels = vpps_max_u32(b->n_levels, v->level + 1);
    }
    /* by level, in the graph's order */
    w->n_level_starts = 0;
    uint32_t first = 0;
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        vpps_block_work *b = &w->blocks[i];
        b->first = first;
        first += b->n;
        b->levels = (uint32_t)w->n_level_starts;
        if (!VPPS_RESERVE(w->level_starts, w->level_starts_capacity, w->n_level_starts + b->n_levels + 2)) return false;
        memset(w->level_starts + b->levels, 0, (b->n_levels + 2) * sizeof *w->level_starts);
        w->n_level_starts += b->n_levels + 2;
    }
    for (uint32_t r = 0; r < w->n_vertices; r++) {
        const vpps_vertex_work *v = &w->vertices[r];
        if (v->needed) w->level_starts[w->blocks[v->block].levels + v->level + 2]++;
    }
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        uint32_t *starts = w->level_starts + w->blocks[i].levels;
        for (uint32_t l = 2; l < w->blocks[i].n_levels + 2; l++) starts[l] += starts[l - 1];
    }
    for (uint32_t r = 0; r < w->n_vertices; r++) { /* starts[l + 1] runs from level l's start to its end */
        vpps_vertex_work *v = &w->vertices[r];
        if (!v->needed) continue;
        v->position = w->level_starts[w->blocks[v->block].levels + v->level + 1]++;
        w->order[w->blocks[v->block].first + v->position] = r;
    }
    for (uint32_t i = 0; i < w->n_blocks; i++) {
        const vpps_block_work *b = &w->blocks[i];
        if (!w->used[b->type].type->base->list_inputs) continue;
        uint32_t members = 0;
        for (uint32_t p = 0; p < b->n; p++) {
            w->vertices[w->order[b->first + p]].member_position = members;
            members += w->vertices[w->order[b->first + p]].members;
        }
    }
    return true;
}

vpps_status vpps_choose_steps(vpps_batch_work *w, vpps_batch *b) {
    if (!find_edges(w) || !find_parts(w)) return vpps_no_memory();
    find_differentiable(w);
    find_needs(w);
    set_levels(w);
    if (!choose_groups(w) || !make_blocks(w)) return vpps_no_memory();
    return compile(w, b);
}
