/* generate_outer.c - writes kernel code for the gradients of a cell's parameters: sums over vertices of outer products
 * dy x^T, or of vectors dy. The code is a C++ struct whose functions call the templates of outer.cuh. */
#include "codegen/generate_outer.h"
#include "codegen/packing.h"

typedef vpps_outer_work work;

/* Returns whether sum `outer` (of dy x^T or dy) is the first of its parameter's gradient: sums of dy come first. */
static bool is_first(const work *w, uint32_t outer) {
    const vpps_outer o = vpps_outer_of(w->c, outer);
    for (uint32_t j = 0; j < vpps_n_outers(w->c); j++) {
        const vpps_outer other = vpps_outer_of(w->c, j);
        const bool same_kind = !other.x == !o.x;
        if (other.param == o.param && (same_kind ? j < outer : !other.x)) return false;
    }
    return true;
}

uint32_t vpps_outer_added_to(const work *w, uint32_t outer) {
    return is_first(w, outer) ? vpps_outer_of(w->c, outer).param : VPPS_NONE;
}

/* Returns whether gradient number `outer` is that of a matrix that a cell reads as a value, not to multiply with it. */
static bool is_whole_matrix(const work *w, uint32_t outer) {
    const vpps_outer o = vpps_outer_of(w->c, outer);
    return !o.x && w->g->model->params[o.param].kind == VPPS_MATRIX;
}

static uint32_t most_rows(const work *w, uint32_t rows, uint32_t teams) {
    const vpps_cell_needs all = {.group = w->g->plan->n_vps / teams, .rows.unit = w->g->plan->row_unit};
    return vpps_most_rows(&all, rows, 1);
}

static uint32_t height(const work *w, uint32_t outer) { return vpps_outer_of(w->c, outer).dy->rows; }

bool vpps_outer_is_low(const work *w, uint32_t outer) { return height(w, outer) <= vpps_low_rows(w->g->plan); }

uint32_t vpps_outer_rows(const work *w, uint32_t outer) {
    return most_rows(w, height(w, outer), vpps_outer_is_low(w, outer) ? w->g->plan->n_vps : w->g->plan->teams);
}

uint32_t vpps_outer_blocks(const work *w, uint32_t outer) {
    const uint32_t length = vpps_outer_product_of(w->c, outer).x->rows;
    const uint32_t parts = vpps_outer_is_low(w, outer) ? w->g->plan->n_vps : w->g->plan->teams;
    return ((length + VPPS_OUTER_COLUMNS - 1) / VPPS_OUTER_COLUMNS + parts - 1) / parts;
}

static const vpps_operand *operand_of(const vpps_compiled_cell *c, uint32_t v) {
    const vpps_program *p = &c->programs[c->n_stages];
    uint32_t i = 0;
    while (i < p->n_operands && p->operands[i].value != v) i++;
    return i < p->n_operands ? &p->operands[i] : NULL;
}

/* Writes a C++ type vV for each value V that gradients of parameters (dy x^T) read. The type says where the value's vectors lie. */
static void put_values(const work *w) {
    const vpps_compiled_cell *c = w->c;
    for (uint32_t v = 0; v < c->n_values; v++) {
        const vpps_operand *x = operand_of(c, v);
        if (!x) continue;
        const uint32_t array = x->place == VPPS_PLACE_INPUT   ? x->at
                               : x->place == VPPS_PLACE_ENTRY ? c->n_inputs + x->at
                                                              : VPPS_NONE;
        const uint32_t stride = x->place == VPPS_PLACE_RECORD ? c->kept_words[x->axis] : 0;
        const uint32_t word = x->place == VPPS_PLACE_PARAMETER ? w->g->pool->values[x->at] : stride ? x->at : 0;
        fprintf(w->out, "typedef vpps_vectors<%u, %u, %u, %s, %s, %uu, %u, %u> v%u;\n", x->axis, x->rows, x->cols,
                vpps_truth(vpps_has_quads(x)), vpps_truth(vpps_is_kept_in_parts(w->g, c, v)), array, stride, word, v);
    }
}

/* Writes the kernel's function task(i). A task names some vertices of the cell; task(i) returns where the vectors dy and x of these
 * vertices lie in memory (a vpps_sum_task), from which gradients dy x^T are computed. */
static void put_task(const work *w) {
    const vpps_compiled_cell *c = w->c;
    fprintf(w->out,
            "__device__ __forceinline__ vpps_sum_task<%u, %u> task(unsigned i) const {\nconst vpps_task t = "
            "tasks[i];\n",
            c->n_lists + 1, c->n_inputs + c->n_lookups);
    vpps_generate_view(w->out, c, "t.operands[0]");
    fprintf(w->out, "return {pool, {t.operands[1]");
    for (uint32_t d = 1; d <= c->n_lists; d++) fprintf(w->out, ", ls%u[t.operands[1]]", d);
    fprintf(w->out, "}, {t.operands[2]");
    for (uint32_t d = 1; d <= c->n_lists; d++)
        fprintf(w->out, ", ls%u[t.operands[1] + t.operands[2]] - ls%u[t.operands[1]]", d, d);
    fprintf(w->out, "}, {k0");
    for (uint32_t d = 1; d <= c->n_lists; d++) fprintf(w->out, ", k%u", d);
    fprintf(w->out, "}, {");
    for (uint32_t i = 0; i < c->n_inputs; i++) fprintf(w->out, "in%u, ", i);
    for (uint32_t i = 0; i < c->n_lookups; i++) fprintf(w->out, "lk%u, ", i);
    fprintf(w->out, "}};\n}\n");
}

/* Returns whether code that reads the vectors of value x can read those of value y if a constant is added to each address. */
static bool lie_alike(const work *w, const vpps_operand *x, const vpps_operand *y) {
    if (x->value == y->value) return true;
    return x->place == VPPS_PLACE_RECORD && y->place == VPPS_PLACE_RECORD && x->record == y->record &&
           x->axis == y->axis && x->rows == y->rows && x->cols == y->cols &&
           vpps_is_kept_in_parts(w->g, w->c, x->value) == vpps_is_kept_in_parts(w->g, w->c, y->value);
}

static bool is_one_sum(const work *w, uint32_t outer, uint32_t other) {
    const vpps_outer o = vpps_outer_of(w->c, outer), p = vpps_outer_of(w->c, other);
    return !p.x && p.param == o.param && lie_alike(w, o.dy, p.dy);
}

static bool begins_sum(const work *w, uint32_t outer) {
    for (uint32_t j = 0; j < outer; j++)
        if (is_one_sum(w, outer, j)) return false;
    return !vpps_outer_of(w->c, outer).x && !is_whole_matrix(w, outer);
}

/* Gradients that one piece of code computes together, as numbers of outers. Gradients of matrices: outers (sums of dy x^T), each for
 * a different matrix. Gradients of vectors: the first outer of each gradient, which is a sum of one or more outers (sums of dy). */
typedef struct group {
    uint32_t outers[VPPS_MOST_OUTERS], n;
} group;

/* Adds a vector's gradient to `all`. Returns false if the gradient needs different code, or if `all` is full. */
static bool join_vectors(const work *w, group *all, uint32_t first) {
    if (all->n == VPPS_MOST_OUTERS) return false;
    if (all->n && !lie_alike(w, vpps_outer_of(w->c, all->outers[0]).dy, vpps_outer_of(w->c, first).dy)) return false;
    all->outers[all->n++] = first;
    return true;
}

/* Writes a call that computes gradients of vectors, one element per warp. Returns the number of elements. The call's
 * first warp follows the last one of earlier calls, which compute `before` elements. */
static uint32_t put_sums_of_vectors(const work *w, const group *all, uint32_t before) {
    const vpps_operand *dy = vpps_outer_of(w->c, all->outers[0]).dy;
    const uint32_t most = most_rows(w, dy->rows, 1), n = vpps_n_outers(w->c);
    uint32_t terms = 0;
    bool adds = false;
    for (uint32_t i = 0; i < all->n; i++) adds |= !is_first(w, all->outers[i]);
    fprintf(w->out, "vpps_sum_vectors<v%u, %u, %u, %s, vpps_constants<", dy->value, most, before, vpps_truth(adds));
    for (uint32_t i = 0; i < all->n; i++)
        for (uint32_t k = all->outers[i]; k < n; k++)
            if (is_one_sum(w, all->outers[i], k))
                fprintf(w->out, "%s%uu", k == all->outers[0] ? "" : ", ", vpps_outer_of(w->c, k).dy->at - dy->at);
    fprintf(w->out, ">");
    for (uint32_t i = 0; i < all->n; i++) {
        const uint32_t first = all->outers[i], begin = terms;
        for (uint32_t k = first; k < n; k++) terms += is_one_sum(w, first, k);
        fprintf(w->out, ", vpps_vector_sum<%u, %uu, %u, %u>", w->g->pool->gradients[vpps_outer_of(w->c, first).param],
                vpps_outer_added_to(w, first), begin, terms);
    }
    fprintf(w->out, ">(*this);\n");
    return all->n * most;
}

static void put_vectors(const work *w) {
    group all = {0};
    uint32_t before = 0;
    fprintf(w->out, "__device__ __forceinline__ void vectors() const {\n");
    for (uint32_t i = 0; i <= vpps_n_outers(w->c); i++) {
        const bool more = i < vpps_n_outers(w->c), begins = more && begins_sum(w, i);
        if (more && (!begins || join_vectors(w, &all, i))) continue;
        if (all.n) before += put_sums_of_vectors(w, &all, before);
        all = (group){0};
        if (begins) join_vectors(w, &all, i);
    }
    fprintf(w->out, "}\n");
}

/* Adds a matrix's gradient (a sum of dy x^T) to g. Returns false if g is full or cannot take this gradient. */
static bool join_group(const work *w, group *g, uint32_t outer) {
    const vpps_outer o = vpps_outer_product_of(w->c, outer);
    if (o.dy->cols != 1 || o.x->cols != 1 || o.dy->axis != o.x->axis || g->n == VPPS_MOST_OUTERS) return false;
    if (g->n && vpps_outer_of(w->c, g->outers[0]).dy->axis != o.dy->axis) return false;
    /* gradients that are computed together must be of different parameters */
    for (uint32_t i = 0; i < g->n; i++)
        if (vpps_outer_of(w->c, g->outers[i]).param == o.param) return false;
    g->outers[g->n++] = outer;
    return true;
}

static void put_blocks(const work *w, uint32_t outer) {
    const vpps_outer o = vpps_outer_product_of(w->c, outer);
    fprintf(w->out, "vpps_sum_blocks<v%u, v%u, %uu, %uu>(*this);\n", o.dy->value, o.x->value, w->g->matrix_at[o.param],
            vpps_outer_added_to(w, outer));
}

static void end_group(work *w, group *g) {
    if (g->n && w->g->plan->parts) {
        vpps_generate_outer_strips(w, g->outers, g->n);
    } else if (g->n && !vpps_generate_outer_tiles(w, g->outers, g->n)) {
        for (uint32_t i = 0; i < g->n; i++)
            if (!vpps_generate_outer_tiles(w, &g->outers[i], 1)) put_blocks(w, g->outers[i]);
    }
    *g = (group){0};
}

/* Writes code for the gradients of matrices. Consecutive gradients are computed together, in groups (join_group). A gradient that no group
 * can take is computed alone, by blocks of rows and columns (vpps_sum_blocks). */
static void put_matrices(work *w) {
    group g = {0};
    for (uint32_t i = 0; i < vpps_n_outers(w->c); i++) {
        if (!vpps_outer_of(w->c, i).x || join_group(w, &g, i)) continue;
        end_group(w, &g);
        if (!join_group(w, &g, i)) put_blocks(w, i);
    }
    end_group(w, &g);
}

static void put_whole_matrices(const work *w) {
    for (uint32_t i = 0; i < vpps_n_outers(w->c); i++) {
        const vpps_outer o = vpps_outer_of(w->c, i);
        if (is_whole_matrix(w, i))
            fprintf(w->out, "vpps_sum_values<v%u, %uu, %uu>(*this);\n", o.dy->value, w->g->matrix_at[o.param],
                    vpps_outer_added_to(w, i));
    }
}

/* Writes code that copies (packs) the vectors dy and x of matrices' gradients dy x^T for cuBLAS (packing.h). A task's
 * word `pass_record` is the place in the batch's program of a list that says where each packed vector goes. */
static void put_packing(const work *w) {
    for (uint32_t number = 0; number < vpps_packed_operands(w->c); number++) {
        const vpps_operand *o = vpps_packed_operand(w->c, number);
        if (o)
            fprintf(w->out, "vpps_pack<v%u, %u, %u>(*this);\n", o->value, number,
                    vpps_packed_stride(o->rows, w->g->plan->parts) / 4);
    }
}

/* Writes the function that computes the gradients of all parameters of a cell, one after the other. */
static void put_run(work *w) {
    const bool packs = w->g->plan->packs;
    const char *before = "";
    fprintf(w->out, "__device__ __forceinline__ void run() const {\n");
    put_whole_matrices(w);
    w->vectors_due = !w->g->plan->parts;
    if (!w->vectors_due) fprintf(w->out, "vectors();\n");
    if (packs)
        put_packing(w);
    else
        put_matrices(w);
    if (w->vectors_due) fprintf(w->out, "vectors();\n");
    fprintf(w->out, "vpps_begin_gradients<");
    for (uint32_t i = 0; i < vpps_n_outers(w->c); i++) {
        if (!is_first(w, i) || (packs && vpps_outer_of(w->c, i).x)) continue;
        fprintf(w->out, "%s%u", before, vpps_outer_of(w->c, i).param);
        before = ", ";
    }
    fprintf(w->out, ">(*this);\n}\n");
}

uint32_t vpps_generate_outer(const vpps_generation *g, const vpps_compiled_cell *c, uint32_t number) {
    work w = {.g = g, .c = c, .out = g->out};
    fputs("\n/* gradients of cell ", w.out);
    vpps_write_comment(w.out, c->name);
    fprintf(w.out, " */\nstruct vpps_sum_%u : vpps_sum {\n", number);
    put_values(&w);
    put_task(&w);
    put_vectors(&w);
    put_run(&w);
    fprintf(w.out,
            "};\nVPPS_PART void vpps_outer_%u(const vpps_arguments &a, float *shared, const vpps_task *tasks, unsigned "
            "n_tasks) {\nvpps_sum_%u{{a, shared + VPPS_SHARED_WEIGHTS, tasks, n_tasks, vpps_vp()}}.run();\n}\n",
            number, number);
    return w.shared_words;
}
