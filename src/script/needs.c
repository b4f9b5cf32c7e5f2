/* needs.c - finds the vertices and gradients on which the loss depends or for which the caller's request asks (needs.h). */
#include "script/needs.h"

/* Each input of a cell or op has a small cache of reads, so that equal reads are recorded once. NOTED_TYPES: number of
 * entries of a cache; the index of a read is the number of the cell or op that is read, modulo NOTED_TYPES. */
enum { NOTED_TYPES = 4 };

/* An entry of an input's cache of reads (a vertex reads another vertex's output): the latest read of any type whose number gives this index. */
typedef struct noted_read {
    uint64_t gradients;    /* outputs of the reading vertex that have a gradient, as bits */
    uint64_t gives;        /* 1 << output if the reading vertex adds to the output's gradient in backward; else 0 */
    uint32_t type, output; /* type of the vertex that is read; number of the output that is read */
} noted_read;

typedef struct finder {
    const vpps_reading *r;
    vpps_arena *arena;
    bool *needed;
    uint64_t *gradients;
    vpps_type_needs *types;
    uint64_t *edges;
    vpps_batch_needs *out;       /* result: the vertices, outputs and gradients that the batch needs */
    uint64_t *differentiable_in; /* by type: inputs (bits) that read outputs that depend on trained parameters */
    noted_read *noted;
} finder;

/* ---------------------------------------------------------------- types */

/* Finds the strongly connected components of the graph of cells and ops, in which an edge means that one reads another,
 * by Tarjan (1972), without recursion. A component's number exceeds the numbers of the components that it reads. */
static bool find_sccs(finder *f) {
    const uint32_t n = f->r->n_types;
    uint32_t *index;
    if (!VPPS_TAKE(f->arena, index, 5 * (size_t)n)) return false;
    uint32_t *low = index + n, *stack = index + 2 * (size_t)n, *path = index + 3 * (size_t)n,
             *next = index + 4 * (size_t)n;
    uint32_t n_index = 0, n_stack = 0;
    memset(index, 0xff, n * sizeof *index);
    for (uint32_t t = 0; t < n; t++) f->types[t].scc = VPPS_NONE;
    f->out->n_sccs = 0;
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
            while (u < n && !vpps_reads(f->out, t, u)) u++;
            next[t] = u + 1;
            if (u < n) {
                if (index[u] == VPPS_NONE) {
                    index[u] = low[u] = n_index++;
                    stack[n_stack++] = u;
                    next[u] = 0;
                    path[++depth] = u;
                } else if (f->types[u].scc == VPPS_NONE) {
                    low[t] = vpps_min_u32(low[t], index[u]);
                }
                continue;
            }
            if (low[t] == index[t]) {
                uint32_t member;
                do {
                    member = stack[--n_stack];
                    f->types[member].scc = f->out->n_sccs;
                } while (member != t);
                f->out->n_sccs++;
            }
            if (!depth) break;
            depth--;
            low[path[depth]] = vpps_min_u32(low[path[depth]], low[t]);
        }
    }
    return true;
}

/* If no parameter is frozen: sets `differentiable` to all outputs of cells and ops that depend on a parameter. */
static void spread_by_type(finder *f) {
    const uint32_t n = f->r->n_types;
    for (uint32_t t = 0; t < n; t++)
        if (f->types[t].differentiable) f->types[t].differentiable = UINT64_MAX;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t t = 0; t < n; t++) {
            for (uint32_t u = 0; u < n && !f->types[t].differentiable; u++) {
                if (!vpps_reads(f->out, t, u) || !f->types[u].differentiable) continue;
                f->types[t].differentiable = UINT64_MAX;
                changed = true;
            }
        }
    }
}

/* Returns the set, as bits, of a cell's or op's outputs that depend on an input. */
static uint64_t made_of_input(const vpps_type *type, uint32_t input) {
    uint64_t outputs = 0;
    for (uint32_t k = 0; k < type->base->n_outputs; k++) outputs |= (type->reads_inputs[k] >> input & 1) << k;
    return outputs;
}

/* If some parameters are frozen: sets `differentiable` of each cell or op to the outputs (bits) that depend on a trained parameter.
 * Visits each vertex after those that it reads. Cells in a recurrence read each other: the loop repeats until nothing changes. */
static void spread_by_output(finder *f) {
    const vpps_reading *r = f->r;
    memset(f->differentiable_in, 0, r->n_types * sizeof *f->differentiable_in);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t v = 0; v < r->n_vertices; v++) {
            const uint32_t reader = r->vertices[v].type;
            for (vpps_reader x = vpps_reads_of(r, v, f->needed[v]); f->needed[v] && vpps_next_input(&x);)
                for (size_t s = x.at; s < x.end && !(f->differentiable_in[reader] >> x.input & 1); s++) {
                    const vpps_read_vertex *read = &r->vertices[r->sources[s].vertex];
                    const uint32_t output = r->source_outputs[s] - read->first_output;
                    if (!(f->types[read->type].differentiable >> output & 1)) continue;
                    f->differentiable_in[reader] |= (uint64_t)1 << x.input;
                    f->types[reader].differentiable |= made_of_input(r->types[reader].type, x.input);
                    changed = true;
                }
        }
    }
}

/* Sets `differentiable` for each cell or op: the outputs that depend, directly or not, on a trained parameter or on an output whose
 * gradient is requested. If one output's gradient is requested, all outputs of its cell are in the set, since they may depend on it. */
static void find_differentiable(finder *f) {
    for (uint32_t t = 0; t < f->r->n_types; t++)
        f->types[t].differentiable = f->types[t].cell.asked_gradients ? UINT64_MAX : f->r->types[t].trains;
    if (!f->r->training) return;
    if (f->r->some_frozen)
        spread_by_output(f);
    else
        spread_by_type(f);
}

/* Returns whether the guess holds that, for each vertex type (a cell and its use), the cycle of types that it is in, and its differentiable
 * outputs, are as in the last batch. */
static bool guessed_types(const finder *f) {
    for (uint32_t t = 0; t < f->r->n_types; t++) {
        const vpps_type_guess *guess = &f->r->types[t].guess;
        if (guess->scc != f->types[t].scc || guess->differentiable != f->types[t].differentiable) return false;
    }
    return true;
}

/* ---------------------------------------------------------------- vertices */

/* Marks a vertex and its type as needed, and adds its output to *read, a set of the type's outputs that are read. */
static inline void need_output(finder *f, uint32_t vertex, uint64_t *read, uint64_t output) {
    f->needed[vertex] = true;
    f->types[f->r->vertices[vertex].type].needed = true;
    *read |= output;
}

static inline void give_gradient(finder *f, uint32_t vertex, uint64_t output) {
    f->gradients[vertex] |= output;
    f->types[f->r->vertices[vertex].type].cell.gradient_out |= output;
}

/* Vertex v, which the batch computes, reads output k of `vertex` through input `input`: records in both vertices' types
 * (cells) what must be computed for this read; in *noted, that equal reads need not be recorded. */
static void note_types(finder *f, uint32_t v, uint32_t vertex, uint32_t k, uint32_t input, noted_read *noted) {
    const uint32_t reader = f->r->vertices[v].type, source = f->r->vertices[vertex].type;
    vpps_type_needs *of_reader = &f->types[reader], *of_source = &f->types[source];
    const uint64_t in = (uint64_t)1 << input, output = (uint64_t)1 << k, gradients = f->gradients[v];
    *noted = (noted_read){gradients, 0, source, k};
    f->edges[(size_t)reader * f->out->edge_words + source / 64] |= (uint64_t)1 << (source % 64);
    need_output(f, vertex, &of_source->linked, output);
    if (of_source->scc == of_reader->scc) {
        of_reader->cell.recurrent_in |= in;
        of_source->cell.recurrent_out |= output;
    }
    if ((f->types[source].differentiable & output) &&
        (vpps_reached(f->r->types[reader].type->reads_inputs, gradients) & in)) {
        of_reader->cell.gradient_in |= in;
        noted->gives = output;
        give_gradient(f, vertex, output);
    }
}

/* Vertex v, which the batch computes, reads sources[s]: marks this vertex as needed, too, and its output as one with a gradient if v computes a
 * gradient for it. A read unlike those in the cache `noted` (in type and output read, in v's outputs with gradients) goes to note_types. */
static inline void note_read(finder *f, uint32_t v, size_t s, uint32_t input, noted_read *noted) {
    const uint32_t vertex = f->r->sources[s].vertex;
    const vpps_read_vertex *read = &f->r->vertices[vertex];
    const uint32_t k = f->r->source_outputs[s] - read->first_output;
    noted += read->type % NOTED_TYPES;
    if (noted->type == read->type && noted->output == k && noted->gradients == f->gradients[v]) {
        f->needed[vertex] = true;
        f->gradients[vertex] |= noted->gives;
    } else {
        note_types(f, v, vertex, k, input, noted);
    }
}

/* Marks as needed: the terms of the loss, and the outputs of which the request asks for values or gradients. */
static void note_outside(finder *f) {
    const vpps_reading *r = f->r;
    for (uint32_t i = 0; i < r->n_seeds; i++) {
        const vpps_output_ref x = r->seeds[i].to;
        const uint32_t type = r->vertices[x.vertex].type;
        const uint64_t output = vpps_output_bit(r, x);
        need_output(f, x.vertex, &f->types[type].cell.read_out, output);
        if (f->types[type].differentiable & output) give_gradient(f, x.vertex, output);
    }
    for (uint32_t i = 0; i < r->n_requested; i++) {
        const vpps_output_ref x = r->requested[i];
        need_output(f, x.vertex, &f->types[r->vertices[x.vertex].type].cell.read_out, vpps_output_bit(r, x));
    }
    for (uint32_t i = 0; i < r->n_asked; i++) {
        vpps_cell_needs *needs = &f->types[r->vertices[r->asked[i].vertex].type].cell;
        needs->asked_gradients |= vpps_output_bit(r, r->asked[i]);
        needs->read_out |= vpps_output_bit(r, r->asked[i]);
    }
}

/* Visits vertices from the last to the first, so that readers come before the vertices that they read. A vertex's output has a gradient if
 * it is a term of the loss, or if a vertex reads it for an output that has a gradient. */
static void note_reads(finder *f) {
    const vpps_reading *r = f->r;
    for (uint32_t i = 0; i < NOTED_TYPES * r->n_inputs; i++) f->noted[i].type = VPPS_NONE;
    memset(f->gradients, 0, r->n_vertices * sizeof *f->gradients);
    note_outside(f);
    for (size_t s = r->n_sources; s-- > 0;) {
        const uint32_t v = r->sources[s].reader, first = r->vertices[v].first_source, input = (uint32_t)s - first;
        const vpps_read_type *type = &r->types[r->vertices[v].type];
        noted_read *noted = &f->noted[NOTED_TYPES * type->first_input];
        if (type->n_lists) s = first;
        if (!f->needed[v]) continue;
        if (!type->n_lists) {
            note_read(f, v, s, input, &noted[NOTED_TYPES * input]);
            continue;
        }
        /* v + 1 came first: if its lists and outputs with gradients equal v's, the lists' nodes are already recorded */
        const bool noted_lists = r->lists[v + 1].repeats && f->needed[v + 1] && f->gradients[v + 1] == f->gradients[v];
        for (vpps_reader x = vpps_reads_of(r, v, !noted_lists); vpps_next_input(&x);)
            for (size_t k = x.at; k < x.end; k++) note_read(f, v, k, x.input, &noted[NOTED_TYPES * x.input]);
    }
    for (uint32_t t = 0; t < r->n_types; t++) f->types[t].cell.read_out |= f->types[t].linked;
}

static void forget_gradients(finder *f) {
    for (uint32_t t = 0; t < f->r->n_types; t++) {
        vpps_cell_needs *needs = &f->types[t].cell;
        needs->gradient_in = needs->gradient_out = needs->recurrent_in = needs->recurrent_out = 0;
    }
}

static const uint32_t *find_levels(const finder *f) {
    uint32_t *levels;
    if (!VPPS_TAKE_ZEROS(f->arena, levels, f->r->n_vertices)) return NULL;
    for (uint32_t v = 0; v < f->r->n_vertices; v++)
        for (vpps_reader x = vpps_reads_of(f->r, v, true); vpps_next_input(&x);)
            for (size_t s = x.at; s < x.end; s++)
                if (f->types[f->r->vertices[v].type].scc == f->types[f->r->vertices[f->r->sources[s].vertex].type].scc)
                    levels[v] = vpps_max_u32(levels[v], levels[f->r->sources[s].vertex] + 1);
    return levels;
}

/* ---------------------------------------------------------------- all needs */

static bool open_finder(finder *f) {
    const vpps_reading *r = f->r;
    *f->out = (vpps_batch_needs){.reading = r, .edge_words = (r->n_types + 63) / 64};
    if (!VPPS_TAKE_ZEROS(f->arena, f->needed, r->n_vertices) || !VPPS_TAKE(f->arena, f->gradients, r->n_vertices) ||
        !VPPS_TAKE_ZEROS(f->arena, f->types, r->n_types) ||
        !VPPS_TAKE_ZEROS(f->arena, f->edges, r->n_types * (size_t)f->out->edge_words) ||
        !VPPS_TAKE(f->arena, f->differentiable_in, r->n_types) ||
        !VPPS_TAKE(f->arena, f->noted, NOTED_TYPES * (size_t)r->n_inputs))
        return false;
    f->out->edges = f->edges;
    for (uint32_t t = 0; t < r->n_types; t++) {
        f->types[t].scc = r->types[t].guess.scc;
        f->types[t].differentiable = r->types[t].guess.differentiable;
        f->types[t].cell = (vpps_cell_needs){
            .training = r->training, .drops = r->drops, .fixed = r->fixed, .frozen = r->types[t].frozen};
    }
    return true;
}

/* One loop over all vertices finds what is needed. The loop must know which vertex types (cells) read each other in
 * cycles, which only the finished loop tells. So it assumes the preceding batch's answer; if wrong, it runs again. */
bool vpps_find_needs(const vpps_reading *r, vpps_arena *arena, vpps_batch_needs *out) {
    finder f = {.r = r, .arena = arena, .out = out};
    const uint32_t *levels = r->levels;
    if (!open_finder(&f)) return false;
    note_reads(&f);
    if (!find_sccs(&f)) return false;
    find_differentiable(&f);
    if (!guessed_types(&f)) {
        forget_gradients(&f);
        note_reads(&f);
        levels = find_levels(&f);
        if (!levels) return false;
    }
    out->needed = f.needed;
    out->gradients = f.gradients;
    out->levels = levels;
    out->types = f.types;
    return true;
}
