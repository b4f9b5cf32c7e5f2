/* needs.c - what the loss or the request is made of: which vertices are needed, which of their outputs have gradients, and
 * what that and the strongly connected parts of the types' graph say about the compiled cells. */
#include "script/work.h"

/* ---------------------------------------------------------------- types */

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
                uint32_t member;
                do {
                    member = stack[--n_stack];
                    w->used[member].part = w->n_parts;
                } while (member != t);
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

/* With no parameter frozen: all outputs of types in which, or below which, there is a parameter. */
static void spread_by_type(vpps_batch_work *w) {
    for (uint32_t t = 0; t < w->n_used; t++)
        if (w->used[t].differentiable) w->used[t].differentiable = UINT64_MAX;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t t = 0; t < w->n_used; t++) {
            for (uint32_t u = 0; u < w->n_used && !w->used[t].differentiable; u++) {
                if (!vpps_reads(w, t, u) || !w->used[u].differentiable) continue;
                w->used[t].differentiable = UINT64_MAX;
                changed = true;
            }
        }
    }
}

/* The input of a vertex with lists that its source number i belongs to. */
static uint32_t input_of(const vpps_compiled_cell *c, const uint32_t *members, uint32_t i) {
    uint32_t input = 0;
    for (uint32_t end = 0; input < c->n_inputs; input++) {
        end += vpps_members(members, c->input_domain[input]);
        if (i < end) break;
    }
    return input;
}

/* The input of its reader that source number s is. */
static inline uint32_t input_of_source(const vpps_batch_work *w, size_t s) {
    const vpps_read *x = &w->sources[s];
    const vpps_vertex_work *v = &w->vertices[x->reader];
    const vpps_used_type *reader = &w->used[v->type];
    const uint32_t i = (uint32_t)s - v->first_source;
    return reader->n_lists ? input_of(reader->base, w->rests[x->reader].members, i) : i;
}

/* The outputs of a type that are made of an input. */
static uint64_t made_of_input(const vpps_type *type, uint32_t input) {
    uint64_t outputs = 0;
    for (uint32_t k = 0; k < type->base->n_outputs; k++) outputs |= (type->reads_inputs[k] >> input & 1) << k;
    return outputs;
}

/* Only outputs that are made of a parameter that is trained. Sources are in their readers' order, so that only types that lead to
 * themselves take more than one turn. */
static void spread_by_output(vpps_batch_work *w) {
    for (uint32_t t = 0; t < w->n_used; t++) w->used[t].differentiable_in = 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t s = 0; s < w->n_sources; s++) {
            const vpps_read *x = &w->sources[s];
            const vpps_vertex_work *read = &w->vertices[x->vertex];
            vpps_used_type *reader = &w->used[w->vertices[x->reader].type];
            if (!w->needed[x->reader]) continue;
            if (!(w->used[read->type].differentiable >> (w->source_outputs[s] - read->first_output) & 1)) continue;
            const uint32_t input = input_of_source(w, s);
            if (reader->differentiable_in >> input & 1) continue;
            reader->differentiable_in |= (uint64_t)1 << input;
            reader->differentiable |= made_of_input(reader->type, input);
            changed = true;
        }
    }
}

/* Outputs whose gradients somebody can use: a parameter that is trained, or an output whose gradient is asked for, is in them or below
 * them. */
static void find_differentiable(vpps_batch_work *w) {
    for (uint32_t t = 0; t < w->n_used; t++)
        w->used[t].differentiable = w->used[t].trains | w->used[t].needs.asked_gradients;
    if (!w->training) return;
    if (w->some_frozen)
        spread_by_output(w);
    else
        spread_by_type(w);
}

/* Are all parts, and what has gradients, as in the batch before? They are the guess for the next one. */
static bool guessed_types(const vpps_batch_work *w) {
    bool same = true;
    for (uint32_t t = 0; t < w->n_used; t++) {
        const vpps_used_type *u = &w->used[t];
        same = same && u->type->last_part == u->part && u->type->last_differentiable == u->differentiable;
        u->type->last_part = u->part;
        u->type->last_differentiable = u->differentiable;
    }
    return same;
}

/* ---------------------------------------------------------------- vertices */

/* An output that is read from outside, or by a needed vertex; `read`: the type's set of those. */
static inline void need_output(vpps_batch_work *w, uint32_t vertex, uint64_t *read, uint64_t output) {
    w->needed[vertex] = true;
    w->used[w->vertices[vertex].type].needed = true;
    *read |= output;
}

static inline void give_gradient(vpps_used_type *type, vpps_vertex_work *v, uint64_t output) {
    v->gradients |= output;
    type->needs.gradient_out |= output;
}

/* What it means that a needed vertex reads x, output k of another, as its input, for its type and for the one that is read. */
static void note_types(vpps_batch_work *w, const vpps_read *x, uint32_t k, uint32_t input, vpps_noted_read *noted) {
    const vpps_vertex_work *v = &w->vertices[x->reader];
    vpps_vertex_work *read = &w->vertices[x->vertex];
    vpps_used_type *reader = &w->used[v->type], *source = &w->used[read->type];
    const uint64_t in = (uint64_t)1 << input, output = (uint64_t)1 << k;
    *noted = (vpps_noted_read){v->gradients, 0, read->type, k};
    w->edges[(size_t)v->type * w->edge_words + read->type / 64] |= (uint64_t)1 << (read->type % 64);
    need_output(w, x->vertex, &source->linked, output);
    if (source->part == reader->part) {
        reader->needs.recurrent_in |= in;
        source->needs.recurrent_out |= output;
    }
    if ((source->differentiable & output) && (vpps_reached(reader->type->reads_inputs, v->gradients) & in)) {
        reader->needs.gradient_in |= in;
        noted->gives = output;
        give_gradient(source, read, output);
    }
}

/* Source number s, of a needed vertex. */
static inline void note_read(vpps_batch_work *w, size_t s) {
    const vpps_read *x = &w->sources[s];
    const vpps_vertex_work *v = &w->vertices[x->reader];
    const vpps_used_type *reader = &w->used[v->type];
    const uint32_t input = input_of_source(w, s);
    vpps_vertex_work *read = &w->vertices[x->vertex];
    const uint32_t k = w->source_outputs[s] - read->first_output;
    vpps_noted_read *noted =
        &w->noted[VPPS_NOTED_TYPES * (reader->first_input + input) + read->type % VPPS_NOTED_TYPES];
    if (noted->type == read->type && noted->output == k && noted->gradients == v->gradients) {
        w->needed[x->vertex] = true;
        read->gradients |= noted->gives;
    } else {
        note_types(w, x, k, input, noted);
    }
}

/* From the loss down; readers come behind what they read. A vertex's output has a gradient when it is a term of the loss, or
 * when a vertex reads it for an output that has one. What has none is neither computed nor counts as used. */
static void note_reads(vpps_batch_work *w) {
    for (uint32_t i = 0; i < VPPS_NOTED_TYPES * w->n_inputs; i++) w->noted[i].type = VPPS_NONE;
    for (uint32_t i = 0; i < w->n_seeds; i++) {
        vpps_vertex_work *v = &w->vertices[w->seeds[i].to.vertex];
        const uint64_t output = (uint64_t)1 << (w->seeds[i].to.output - v->first_output);
        need_output(w, w->seeds[i].to.vertex, &w->used[v->type].needs.read_out, output);
        if (w->used[v->type].differentiable & output) give_gradient(&w->used[v->type], v, output);
    }
    for (uint32_t i = 0; i < w->n_requested; i++) {
        const vpps_vertex_work *v = &w->vertices[w->requested[i].vertex];
        need_output(w, w->requested[i].vertex, &w->used[v->type].needs.read_out,
                    (uint64_t)1 << (w->requested[i].output - v->first_output));
    }
    for (uint32_t i = 0; i < w->n_asked; i++) {
        const vpps_output_ref *x = &w->requested[w->n_requested + i];
        const vpps_vertex_work *v = &w->vertices[x->vertex];
        const uint64_t output = (uint64_t)1 << (x->output - v->first_output);
        w->used[v->type].needs.asked_gradients |= output;
        w->used[v->type].needs.read_out |= output;
    }
    for (size_t s = w->n_sources; s-- > 0;) {
        if (w->needed[w->sources[s].reader]) note_read(w, s);
    }
    for (uint32_t t = 0; t < w->n_used; t++) w->used[t].needs.read_out |= w->used[t].linked;
}

static void forget_gradients(vpps_batch_work *w) {
    for (uint32_t t = 0; t < w->n_used; t++) {
        vpps_cell_needs *needs = &w->used[t].needs;
        needs->gradient_in = needs->gradient_out = needs->recurrent_in = needs->recurrent_out = 0;
    }
    for (uint32_t r = 0; r < w->n_vertices; r++) w->vertices[r].gradients = 0;
}

/* ---------------------------------------------------------------- levels */

/* A vertex's level: behind all of its part that it reads. */
static void set_levels(vpps_batch_work *w) {
    for (uint32_t r = 0; r < w->n_vertices; r++) w->vertices[r].level = 0;
    for (size_t s = 0; s < w->n_sources; s++) {
        vpps_vertex_work *v = &w->vertices[w->sources[s].reader];
        const vpps_vertex_work *read = &w->vertices[w->sources[s].vertex];
        if (w->used[v->type].part == w->used[read->type].part) v->level = vpps_max_u32(v->level, read->level + 1);
    }
}

/* The types' graph is known only when all reads were noted, and what is noted depends on it. But it is nearly always that of
 * the batch before, by which levels are set, too; else vertices are gone over once more. */
bool vpps_find_needs(vpps_batch_work *w) {
    w->edge_words = (w->n_used + 63) / 64;
    const size_t words = (size_t)w->n_used * w->edge_words;
    if (!VPPS_RESERVE(w->edges, w->edges_capacity, words + 1)) return false;
    memset(w->edges, 0, words * sizeof *w->edges);
    note_reads(w);
    if (!find_parts(w)) return false;
    find_differentiable(w);
    if (guessed_types(w)) return true;
    forget_gradients(w);
    note_reads(w);
    set_levels(w);
    return true;
}
