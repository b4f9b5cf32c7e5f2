/* steps.c - runs steps of a stage (part of a cell), except products, for some vertices or the nodes in their lists. */
#include "runtime/cpu/tile.h"

static uint32_t members_of(const vpps_tile *t, uint32_t axis, uint32_t vertex) {
    return t->view->lists[axis][vertex + 1] - t->view->lists[axis][vertex];
}

/* ---------------------------------------------------------------- to and from memory */

static void copy(uint32_t n, uint32_t width, const vpps_span *to, const vpps_span *from) {
    for (uint32_t i = 0; i < n && width == 1; i++) *vpps_span_at(to, i) = *vpps_span_at(from, i);
    for (uint32_t i = 0; i < n && width > 1; i++)
        memcpy(vpps_span_at(to, i), vpps_span_at(from, i), width * sizeof(float));
}

/* Loads a value into a slot (a buffer of the tile). If threads have made partial sums, adds them in order. */
static void load(const vpps_tile *t, const vpps_program_step *s) {
    const vpps_operand *o = vpps_operands_of(t, s);
    const vpps_span from = vpps_span_of(t, o, true), to = vpps_span_of(t, &s->to, false);
    const uint32_t width = vpps_width_of(t, &s->to), n = t->n[s->axis];
    const size_t share = vpps_share_words(vpps_operand_words(o));
    copy(n, width, &to, &from);
    for (uint32_t i = 0; i < n && o->shares; i++)
        for (uint32_t m = 1; m < t->c->needs.group; m++)
            t->kernels->add(width, vpps_span_at(&to, i), vpps_span_at(&from, i) + m * share);
}

/* Returns the *n pairs (offset of a scalar, offset of a vector) whose products are terms of a vertex's gradient; NULL: out of memory. */
static const uint32_t *pairs_of(const vpps_tile *t, uint32_t output, uint32_t vertex, uint32_t *n) {
    const uint32_t *starts = t->view->pair_starts[output];
    const uint64_t all = vpps_count_pairs(t->view, output, vertex, vertex + 1);
    *n = (uint32_t)all;
    if (!t->view->runs) return t->view->pairs[output] + 2 * (size_t)starts[vertex];
    if (all > UINT32_MAX || !VPPS_RESERVE(t->vp->pairs, 2 * (size_t)all + 1)) return NULL;
    uint32_t *to = t->vp->pairs;
    for (uint32_t i = starts[vertex]; i < starts[vertex + 1]; i++)
        for (vpps_pair_run x = vpps_run_of_pairs(t->view, output, i); x.n > 0;
             x.n--, x.by += x.by_step, x.of += x.of_step)
            *to++ = x.by, *to++ = x.of;
    return t->vp->pairs;
}

/* Adds up the terms of a gradient, one from each vertex that reads the value: first terms stored as vectors, in the order of their list;
 * then products of pairs (scalar, vector). Returns false if out of memory. */
static bool add_gradients(const vpps_tile *t, const vpps_program_step *s) {
    const uint32_t *starts = t->view->gradient_starts[s->output] + t->first[0];
    const uint32_t *entries = t->view->gradients[s->output], *pairs = t->view->pairs[s->output];
    const uint32_t width = vpps_width_of(t, &s->to), first = vpps_first_of(t, &s->to);
    const float *pool = t->vp->cpu->pool;
    float *to = vpps_slot_of(t, &s->to);
    for (uint32_t i = 0; i < t->n[0]; i++, to += width) {
        const uint32_t n = starts[i + 1] - starts[i], *list = entries + starts[i];
        uint32_t n_pairs = 0;
        if (pairs && !(pairs = pairs_of(t, s->output, t->first[0] + i, &n_pairs))) return false;
        if (!n && !n_pairs) memset(to, 0, width * sizeof *to);
        if (n) t->kernels->add_up(width, n, pool, list, first, to);
        if (n_pairs) t->kernels->add_scaled(width, n_pairs, pool, pairs, first, n > 0, to);
    }
    return true;
}

static void store(const vpps_tile *t, const vpps_program_step *s) {
    const vpps_span to = vpps_span_of(t, &s->to, false), from = vpps_span_of(t, vpps_operands_of(t, s), false);
    copy(t->n[s->axis], vpps_width_of(t, &s->to), &to, &from);
}

/* ---------------------------------------------------------------- instructions */

/* A vertex, or a node that a vertex's list input (of any number of nodes) reads, for which a step runs. */
typedef struct item {
    uint32_t number, vertex; /* number: index among the items that the step runs for; vertex: index in the block */
    uint32_t in_part;        /* index, among the vertices of the step, of the vertex or of the node's reader */
    uint32_t member; /* for a node: its position in the list input of the vertex that reads it; for a vertex: 0 */
} item;

/* Returns a number that depends on list lengths: count->base, plus count->list[d] for each member of the vertex's list d. */
static uint32_t count_of(const vpps_tile *t, const vpps_cell_count *count, uint32_t vertex) {
    uint32_t n = count->base;
    for (uint32_t d = 1; d <= t->c->n_lists; d++)
        if (count->list[d]) n += count->list[d] * members_of(t, d, vertex);
    return n;
}

static void set_numbers(const vpps_tile *t, const vpps_program_step *s, const item *at, vpps_operands *o) {
    const vpps_cell_number *f = &s->run.of.f, *u = &s->run.of.u;
    o->f = f->real;
    o->u = u->whole;
    if (f->kind == VPPS_NUMBER_WORD) memcpy(&o->f, &t->view->words[f->word][at->vertex], sizeof o->f);
    if (f->kind == VPPS_NUMBER_INVERSE) {
        const uint32_t n = count_of(t, &f->count, at->vertex);
        o->f = n ? 1.0f / (float)n : 0.0f;
    }
    if (u->kind == VPPS_NUMBER_WORD) o->u = t->view->words[u->word][at->vertex];
    if (u->kind == VPPS_NUMBER_POSITION) o->u = count_of(t, &u->count, at->vertex) + at->member;
    if (u->kind == VPPS_NUMBER_ELEMENT)
        o->e = t->view->words[u->word][at->vertex] + count_of(t, &u->count, at->vertex) + vpps_first_of(t, &s->to) +
               at->member * vpps_operand_words(&s->to);
}

/* Returns which of operand o's values a step reads for `at`, a vertex or a node that its list input reads: the value of `at` itself; the
 * vertex's, if `at` is a node and o has one value per vertex; or, if the step reads all nodes of the vertex's list, the first node's. */
static uint32_t number_of(const vpps_tile *t, const vpps_operand *o, uint32_t axis, const item *at) {
    if (o->access == VPPS_ACCESS_MEMBERS) return t->view->lists[o->axis][at->vertex] - t->first[o->axis];
    return o->axis != axis ? at->in_part : at->number;
}

static float *operand_at(const vpps_tile *t, const vpps_operand *o, uint32_t axis, const item *at) {
    const uint32_t number = number_of(t, o, axis, at);
    if (o->place == VPPS_PLACE_SLOT) return vpps_slot_of(t, o) + (size_t)number * t->layout->slots[o->at].width;
    const vpps_span w = vpps_span_of(t, o, false);
    return vpps_span_at(&w, number);
}

/* Sets o->list to the addresses of operands from k on, for `at`, a vertex or a node that its list input reads. False: out of memory. */
static bool set_list(const vpps_tile *t, const vpps_program_step *s, uint32_t k, const item *at, vpps_operands *o) {
    vpps_vp *vp = t->vp;
    o->n_list = 0;
    for (; k < s->n; k++) {
        const vpps_operand *x = vpps_operands_of(t, s) + k;
        const uint32_t n = x->access == VPPS_ACCESS_MEMBERS ? members_of(t, x->axis, at->vertex) : 1;
        if (!VPPS_RESERVE(vp->pointers, (size_t)o->n_list + n + 1)) return false;
        const vpps_span span = vpps_span_of(t, x, false);
        const uint32_t first = number_of(t, x, s->axis, at);
        for (uint32_t m = 0; m < n; m++) vp->pointers[o->n_list++] = vpps_span_at(&span, first + m);
    }
    o->list = vp->pointers;
    return true;
}

/* Sets an instruction's operands for `at`, a vertex or a node in a vertex's list. Returns false if out of memory. */
static bool set_operands(const vpps_tile *t, const vpps_program_step *s, const item *at, vpps_operands *o) {
    const vpps_operand *x = vpps_operands_of(t, s);
    uint32_t k = 0;
    set_numbers(t, s, at, o);
    for (uint32_t i = 0; i < s->run.tensors; i++, k++) o->t[i] = operand_at(t, &x[k], s->axis, at);
    for (uint32_t i = 0; i < s->run.scalars; i++, k++) o->s[i] = operand_at(t, &x[k], s->axis, at)[x[k].element];
    if (s->run.weights) o->weights = operand_at(t, &x[k++], s->axis, at);
    if (s->run.positions.place) o->indices = (uint32_t *)(void *)operand_at(t, &s->run.positions, s->axis, at);
    return k == s->n || set_list(t, s, k, at, o);
}

/* Makes `at` the next vertex (axis 0) or node in a list; the first if at->number is UINT32_MAX. False: none left. */
static bool next_item(const vpps_tile *t, uint32_t axis, item *at) {
    if (++at->number >= t->n[axis]) return false;
    if (!axis) {
        at->in_part = at->number;
        at->vertex = t->live ? t->live[t->first[0] + at->number] : t->first[0] + at->number;
        return true;
    }
    if (!at->number) at->in_part = 0;
    while (t->view->lists[axis][t->first[0] + at->in_part + 1] <= t->first[axis] + at->number) at->in_part++;
    at->vertex = t->first[0] + at->in_part;
    at->member = t->first[axis] + at->number - t->view->lists[axis][at->vertex];
    return true;
}

/* Returns how many elements the step's kernel computes or, if it reduces them to one number, reads per vertex (or list node). */
static uint32_t length_of(const vpps_tile *t, const vpps_program_step *s) {
    const bool whole = vpps_instructions[s->run.of.opcode].form == VPPS_FORM_REDUCE;
    return whole ? vpps_operand_words(vpps_operands_of(t, s)) : vpps_width_of(t, &s->to);
}

enum { MOST_PLAIN = 5 }; /* most tensors and scalars that an instruction has together */

/* Returns whether the step differs between vertices (or nodes in lists) only by addresses of tensors and scalars. */
static bool is_plain(const vpps_program_step *s) {
    const vpps_cell_run *of = &s->run.of;
    const vpps_form form = vpps_instructions[of->opcode].form;
    return s->n == s->run.tensors + s->run.scalars && s->n <= MOST_PLAIN && !of->over_list && !s->run.positions.place &&
           (form == VPPS_FORM_EW || form == VPPS_FORM_REDUCE) && vpps_step_columns(s) == 1 &&
           of->f.kind <= VPPS_NUMBER_CONSTANT && of->u.kind <= VPPS_NUMBER_CONSTANT;
}

static void set_member(const vpps_program_step *s, const vpps_operand *x, const vpps_span *from, uint32_t i, uint32_t m,
                       vpps_operands *o) {
    for (uint32_t k = 0; k < s->n; k++) {
        const float *at = vpps_span_at(&from[k], x[k].axis ? m : i);
        if (k < s->run.tensors)
            o->t[k] = at;
        else
            o->s[k - s->run.tensors] = at[x[k].element];
    }
}

static bool run_plain(const vpps_tile *t, const vpps_program_step *s, vpps_operands *o) {
    const vpps_operand *x = vpps_operands_of(t, s);
    const vpps_cpu_kernel kernel = t->kernels->run[s->run.of.opcode];
    const uint32_t length = length_of(t, s);
    const vpps_span to = vpps_span_of(t, &s->to, false);
    vpps_span from[MOST_PLAIN] = {{0}};
    bool adjacent = s->run.uniform && to.stride == length && !to.live;
    for (uint32_t k = 0; k < s->n; k++) {
        from[k] = vpps_span_of(t, &x[k], false);
        adjacent = adjacent && from[k].stride == length && !from[k].live;
    }
    o->f = s->run.of.f.real;
    o->u = s->run.of.u.whole;
    const uint32_t items = adjacent ? 1 : t->n[0];
    for (uint32_t i = 0; i < items && (!s->axis || adjacent); i++) {
        set_member(s, x, from, i, i, o);
        kernel(adjacent ? length * t->n[s->axis] : length, vpps_span_at(&to, i), o);
    }
    if (!s->axis || adjacent) return true;
    /* true: DOT multiplies the tensor of each node in a list with one tensor of the vertex */
    const bool dot = s->run.of.opcode == VPPS_I_DOT && !x[0].axis != !x[1].axis && to.stride == 1;
    const uint32_t list = x[0].axis ? 0 : 1; /* the operand with a value per node in a list, not per vertex */
    if (dot && !VPPS_RESERVE(t->vp->pointers, t->n[s->axis] + 1u)) return false;
    for (uint32_t i = 0, m = 0, end; i < t->n[0]; i++, m = end) {
        end = m + members_of(t, s->axis, t->first[0] + i);
        if (m == end) continue;
        for (uint32_t j = m; j < end && dot; j++) t->vp->pointers[j - m] = vpps_span_at(&from[list], j);
        if (dot)
            t->kernels->dots(end - m, length, t->vp->pointers, vpps_span_at(&from[!list], i), vpps_span_at(&to, m));
        for (; m < end && !dot; m++) {
            set_member(s, x, from, i, m, o);
            kernel(length, vpps_span_at(&to, m), o);
        }
    }
    return true;
}

/* Runs an instruction for each vertex, over the scalars of the nodes in the vertex's list, adjacent in memory. */
static void run_over_lists(const vpps_tile *t, const vpps_program_step *s, vpps_cpu_kernel kernel) {
    vpps_operands o = {0};
    for (uint32_t i = 0; i < t->n[0]; i++) {
        const uint32_t vertex = t->first[0] + i, n = members_of(t, s->axis, vertex);
        /* index of the list's first node among the nodes of all vertices of the tile */
        const uint32_t first = t->view->lists[s->axis][vertex] - t->first[s->axis];
        for (uint32_t k = 0; k < s->n; k++) o.t[k] = vpps_slot_of(t, vpps_operands_of(t, s) + k) + first;
        if (n) kernel(n, vpps_slot_of(t, &s->to) + first, &o);
    }
}

/* Runs an instruction on each column of the operands of a vertex (or node in a list), one after the other. */
static void run_columns(const vpps_tile *t, const vpps_program_step *s, const item *at, vpps_operands *o, float *to) {
    const uint32_t columns = vpps_step_columns(s), length = length_of(t, s) / columns;
    const uint32_t made = vpps_width_of(t, &s->to) / columns;
    const vpps_operand *scalars = vpps_operands_of(t, s) + s->run.tensors;
    for (uint32_t column = 0; column < columns; column++, to += made) {
        for (uint32_t i = 0; i < s->run.scalars; i++)
            if (scalars[i].access == VPPS_ACCESS_COLUMN) o->s[i] = operand_at(t, &scalars[i], s->axis, at)[column];
        t->kernels->run[s->run.of.opcode](length, to, o);
        for (uint32_t i = 0; i < s->run.tensors; i++) o->t[i] += length;
    }
}

static bool run_kernel(const vpps_tile *t, const vpps_program_step *s) {
    const uint32_t opcode = s->run.of.opcode, width = vpps_width_of(t, &s->to), n = t->n[s->axis];
    const uint32_t *key = t->vp->cpu->batch.header.dropout_key;
    const vpps_cpu_kernel kernel = t->kernels->run[opcode];
    vpps_operands o = {.key = key[0] | (uint64_t)key[1] << 32};
    if (!n || !width) return true;
    if (s->run.of.over_list && s->axis) {
        run_over_lists(t, s, kernel);
        return true;
    }
    if (is_plain(s)) return run_plain(t, s, &o);
    const vpps_form form = vpps_instructions[opcode].form;
    if (form == VPPS_FORM_MATMUL || form == VPPS_FORM_MOVE) {
        const vpps_operand *a = vpps_operands_of(t, s);
        o.r = s->to.rows;
        o.c = s->to.cols;
        o.k = opcode == VPPS_I_MATMUL || opcode == VPPS_I_MATMUL_NT ? a->cols : a->rows;
    }
    const vpps_span to = vpps_span_of(t, &s->to, false);
    const uint32_t length = length_of(t, s);
    for (item at = {.number = UINT32_MAX}; next_item(t, s->axis, &at);) {
        if (!set_operands(t, s, &at, &o)) return false;
        if (vpps_step_columns(s) > 1)
            run_columns(t, s, &at, &o, vpps_span_at(&to, at.number));
        else
            kernel(length, vpps_span_at(&to, at.number), &o);
    }
    return true;
}

/* ---------------------------------------------------------------- parts of values */

/* Copies rows [from_row, from_row + n) of every column of a value to rows from to_row on of another value. */
static void copy_rows(float *to, uint32_t to_rows, uint32_t to_row, const float *from, uint32_t from_rows,
                      uint32_t from_row, uint32_t n, uint32_t cols) {
    for (uint32_t col = 0; col < cols; col++)
        memcpy(to + (size_t)col * to_rows + to_row, from + (size_t)col * from_rows + from_row, n * sizeof *to);
}

/* Runs an instruction that copies rows. SLICE takes some rows of a value. PLACE puts a value's rows into a value of zeros. STACK writes the
 * rows of several values, or of the nodes in a list, below each other. */
static void copy_parts(const vpps_tile *t, const vpps_program_step *s) {
    const uint32_t opcode = s->run.of.opcode, rows = s->to.rows, cols = s->to.cols, first = s->run.of.u.whole;
    const bool slice = opcode == VPPS_I_SLICE, list = s->run.of.over_list;
    const vpps_span made = vpps_span_of(t, &s->to, false);
    for (item at = {.number = UINT32_MAX}; next_item(t, s->axis, &at);) {
        float *to = vpps_span_at(&made, at.number);
        uint32_t row = first;
        if (opcode == VPPS_I_PLACE || (list && !slice)) memset(to, 0, (size_t)rows * cols * sizeof *to);
        for (uint32_t k = 0; k < s->n; k++) {
            const vpps_operand *o = vpps_operands_of(t, s) + k;
            const float *from = operand_at(t, o, s->axis, &at);
            const uint32_t n = o->access == VPPS_ACCESS_MEMBERS ? members_of(t, o->axis, at.vertex) : 1;
            if (slice) copy_rows(to, rows, 0, from, o->rows, list ? at.member * rows : first, rows, cols);
            for (uint32_t m = 0; m < n && !slice; m++, row += o->rows)
                copy_rows(to, rows, row, from + (size_t)m * vpps_operand_words(o), o->rows, 0, o->rows, cols);
        }
    }
}

/* Writes the index of the greatest element, the first of equals, and its log softmax, which is not finite if the vector is not. */
static void argmax(const vpps_tile *t, const float *x, uint32_t n, float *to) {
    float best = x[0], loss;
    uint32_t at = 0;
    for (uint32_t i = 1; i < n; i++) {
        if (!(x[i] > best)) continue;
        best = x[i];
        at = i;
    }
    const vpps_operands o = {.t = {x}, .u = at};
    t->kernels->run[VPPS_I_CROSS_ENTROPY](n, &loss, &o);
    to[0] = (float)at;
    to[1] = -loss;
}

/* Copies entry `number` of a lookup table; the number is rounded down, and clamped to the existing entries. */
static void look_up(const vpps_tile *t, vpps_param param, float number, uint32_t words, float *to) {
    const vpps_cpu *cpu = t->vp->cpu;
    const uint32_t last = cpu->model->params[param].count - 1;
    const uint32_t entry = !(number > 0) ? 0 : number < (float)last ? (uint32_t)number : last;
    memcpy(to, cpu->pool + cpu->plan.values[param] + (size_t)entry * words, words * sizeof *to);
}

static void decide(const vpps_tile *t, const vpps_program_step *s) {
    const vpps_operand *o = vpps_operands_of(t, s);
    const uint32_t words = vpps_operand_words(&s->to);
    float *to = vpps_slot_of(t, &s->to);
    for (item at = {.number = UINT32_MAX}; next_item(t, s->axis, &at); to += words) {
        const float *x = operand_at(t, o, s->axis, &at);
        if (s->run.of.opcode == VPPS_I_ARGMAX)
            argmax(t, x, vpps_operand_words(o), to);
        else
            look_up(t, s->run.of.table, x[o->element], words, to);
    }
}

/* Copies a whole matrix from its blocks of rows to the step's result, once for each vertex (or node in a list). */
static void copy_weights(const vpps_tile *t, const vpps_program_step *s) {
    const vpps_cpu_matrix *m = &t->vp->cpu->matrices[s->run.of.table];
    const size_t rows = s->to.rows, words = rows * s->to.cols;
    float *to = vpps_slot_of(t, &s->to);
    for (uint32_t b = 0; b < m->n_blocks && t->n[s->axis]; b++) {
        const vpps_matrix_block *block = &m->blocks[b];
        for (uint32_t k = 0; k < s->to.cols; k++)
            memcpy(to + k * rows + block->first_row, block->values + k * block->ld, block->rows * sizeof *to);
    }
    for (uint32_t i = 1; i < t->n[s->axis]; i++) memcpy(to + i * words, to, words * sizeof *to);
}

static bool run(const vpps_tile *t, const vpps_program_step *s) {
    switch (vpps_instructions[s->run.of.opcode].form) {
    case VPPS_FORM_PARTS: copy_parts(t, s); return true;
    case VPPS_FORM_DECIDED: decide(t, s); return true;
    case VPPS_FORM_WEIGHTS: copy_weights(t, s); return true;
    default: return run_kernel(t, s);
    }
}

static bool run_step(const vpps_tile *t, const vpps_program_step *s) {
    switch (s->kind) {
    case VPPS_STEP_LOAD: load(t, s); return true;
    case VPPS_STEP_GRADIENT: return add_gradients(t, s);
    case VPPS_STEP_RUN: return run(t, s);
    case VPPS_STEP_PRODUCT: return vpps_tile_product(t, s);
    default: store(t, s); return true;
    }
}

/* Runs a stage's (part of a cell) steps over a tile (vertices computed together). Between products, which take the
 * whole tile, steps run over a few vertices at a time, whose values stay in L1; not if lists are read. */
bool vpps_run_tile(vpps_tile *t) {
    enum { L1_FLOATS = 8 * 1024, FEW = 4 };
    const vpps_program_step *s = t->p->steps, *end = s + t->p->n;
    const uint32_t first = t->first[0], n = t->n[0];
    const uint32_t count = t->c->n_lists ? n : vpps_max_u32(FEW, L1_FLOATS / (t->layout->floats[0] + 1));
    bool ok = true;
    while (s < end && ok) {
        const vpps_program_step *next = s;
        while (next < end && next->kind != VPPS_STEP_PRODUCT) next++;
        for (t->before = 0; t->before < n && s < next && ok; t->before += count) {
            t->first[0] = first + t->before;
            t->n[0] = vpps_min_u32(n - t->before, count);
            for (const vpps_program_step *o = s; o < next && ok; o++) ok = run_step(t, o);
        }
        t->first[0] = first;
        t->n[0] = n;
        t->before = 0;
        for (s = next; s < end && s->kind == VPPS_STEP_PRODUCT && ok; s++) ok = vpps_tile_product(t, s);
    }
    return ok;
}
