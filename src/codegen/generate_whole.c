/* generate_whole.c - values of a stage that need whole vectors, or whole matrices of one VP. See generate_stage.h. */
#include "codegen/generate_stage.h"

typedef vpps_stage_work work;

static bool needs_top(uint32_t opcode) {
    return opcode == VPPS_I_CROSS_ENTROPY || opcode == VPPS_I_SOFTMAX || opcode == VPPS_I_LOG_SOFTMAX;
}

/* The arguments of the instruction's functions, for element k of the tensors. */
static void put_arguments(const work *w, const vpps_cell_value *x) {
    uint32_t tensor = 0, scalar = 0;
    fprintf(w->out, "(totals");
    for (const char *t = vpps_instructions[x->run.opcode].operands; *t; t++) {
        if (*t == 't') fprintf(w->out, ", p%u[k]", tensor++);
        if (*t == 's') fprintf(w->out, ", q%u", scalar++);
        if (*t == 'f') fprintf(w->out, ", f");
        if (*t == 'u') fprintf(w->out, ", vpps_pick{k == label, picked}");
    }
    fprintf(w->out, ")");
}

/* The sums over `length` elements of p0, p1 ..., by a warp. */
static void put_totals(const work *w, const vpps_cell_value *x, const char *length) {
    const char *name = vpps_instructions[x->run.opcode].name, *types = vpps_instructions[x->run.opcode].operands;
    if (strchr(types, 'u')) {
        fprintf(w->out, "const unsigned label = ");
        vpps_put_u(w, x);
        fprintf(w->out, ";\nconst float picked = p0[label];\n");
    }
    if (strchr(types, 'f')) {
        fprintf(w->out, "const float f = ");
        vpps_put_f(w, x);
        fprintf(w->out, ";\n");
    }
    fprintf(w->out, "vpps_totals totals = {0.0f, 0.0f};\n");
    if (needs_top(x->run.opcode)) {
        fprintf(
            w->out,
            "totals.top = __uint_as_float(0xff800000u);\nfor (unsigned k = VPPS_LANE; k < %s; k += 32) totals.top = "
            "fmaxf(totals.top, p0[k]);\ntotals.top = vpps_warp_max(totals.top);\n",
            length);
    }
    fprintf(w->out, "{ float sum = 0.0f;\nfor (unsigned k = VPPS_LANE; k < %s; k += 32) sum += vpps_term_%s", length,
            name);
    put_arguments(w, x);
    fprintf(w->out, ";\ntotals.sum = vpps_warp_sum(sum);\nconst unsigned k = 0;\n(void)k;\n");
    fprintf(w->out, "totals.sum = vpps_finish_%s", name);
    put_arguments(w, x);
    fprintf(w->out, "; }\n");
}

static void put_values(const work *w, uint32_t v, const char *length, const char *to) {
    const vpps_cell_value *x = vpps_stage_value(w, v);
    if (vpps_instructions[x->run.opcode].form == VPPS_FORM_REDUCE) {
        fprintf(w->out, "if (VPPS_LANE == 0) %s[0] = totals.sum;\n", to);
        return;
    }
    fprintf(w->out, "for (unsigned k = VPPS_LANE; k < %s; k += 32) %s[k] = vpps_value_%s", length, to,
            vpps_instructions[x->run.opcode].name);
    put_arguments(w, x);
    fprintf(w->out, ";\n");
}

void vpps_put_whole(const work *w, uint32_t v) {
    const vpps_cell_value *x = vpps_stage_value(w, v);
    const char *types = vpps_instructions[x->run.opcode].operands;
    char length[32], to[64];
    snprintf(length, sizeof length, "%uu", vpps_value_words(vpps_stage_value(w, vpps_stage_arg(w, x, 0)->value)));
    fprintf(w->out, "#pragma unroll 1\nfor (unsigned item = VPPS_WARP; item < n%u; item += VPPS_WARPS) {\n", x->domain);
    if (x->domain) {
        fprintf(w->out, "const unsigned vx = vpps_vertex_of(ls%u, f0, n0, f%u + item);\n", x->domain, x->domain);
    } else {
        fprintf(w->out, "const unsigned vx = item;\n");
    }
    fprintf(w->out, "(void)vx;\n");
    uint32_t arg = 0, tensor = 0, scalar = 0;
    for (const char *t = types; *t; t++) {
        const uint32_t u = strchr("ts", *t) ? vpps_stage_arg(w, x, arg)->value : 0;
        if (*t == 't') {
            fprintf(w->out, "const float *p%u = ", tensor++);
            vpps_put_pointer(w, u, vpps_item_for(w, x, u));
            fprintf(w->out, ";\n");
            arg++;
        } else if (*t == 's') {
            char element[16];
            snprintf(element, sizeof element, "%u", vpps_stage_arg(w, x, arg)->element);
            fprintf(w->out, "const float q%u = ", scalar++);
            vpps_put_at(w, u, vpps_item_for(w, x, u), element);
            fprintf(w->out, ";\n");
            arg++;
        }
    }
    put_totals(w, x, length);
    snprintf(to, sizeof to, "(s%u + item * %uu)", v, vpps_segment_width(&w->s, v));
    put_values(w, v, length, to);
    fprintf(w->out, "}\n");
}

/* SOFTMAX and its gradient of each vertex's list of scalars, which lie side by side in their slots. */
void vpps_put_lists(const work *w, uint32_t v) {
    const vpps_cell_value *x = vpps_stage_value(w, v);
    char to[64];
    fprintf(w->out,
            "#pragma unroll 1\nfor (unsigned item = VPPS_WARP; item < n0; item += VPPS_WARPS) {\nconst unsigned vx = "
            "item, member = "
            "ls%u[f0 + "
            "item] - f%u, length = ls%u[f0 + item + 1] - ls%u[f0 + item];\n(void)vx;\n",
            x->domain, x->domain, x->domain, x->domain);
    for (uint32_t i = 0; i < x->n_args; i++)
        fprintf(w->out, "const float *p%u = s%u + member;\n", i, vpps_stage_arg(w, x, i)->value);
    put_totals(w, x, "length");
    snprintf(to, sizeof to, "(s%u + member)", v);
    put_values(w, v, "length", to);
    fprintf(w->out, "}\n");
}

/* ---------------------------------------------------------------- products by one VP */

static void put_start(const work *w, const vpps_cell_value *x, const char *row, const char *element) {
    if (vpps_bias_of(x) != VPPS_NO_PARAM) fprintf(w->out, " + pool[%uu + %s]", w->g->pool->values[x->bias], row);
    for (uint32_t i = 0; i < x->n_args; i++) {
        if (vpps_stage_arg(w, x, i)->matrix != VPPS_NO_PARAM) continue;
        fprintf(w->out, " + ");
        vpps_put_at(w, vpps_stage_arg(w, x, i)->value, "item", element);
    }
}

void vpps_put_matrices(const work *w, uint32_t v) {
    const vpps_cell_value *x = vpps_stage_value(w, v);
    const bool transposed = x->kind == VPPS_VALUE_PRODUCT_T;
    const uint32_t words = vpps_value_words(x);
    fprintf(w->out, "#pragma unroll 1\nfor (unsigned i = %s; i < n%u * %uu; i += %s) {\n",
            transposed ? "threadIdx.x" : "VPPS_WARP", x->domain, words, transposed ? "VPPS_THREADS" : "VPPS_WARPS");
    fprintf(
        w->out,
        "const unsigned item = i / %uu, el = i %% %uu, row = el %% %uu, column = el / %uu;\n(void)column;\nconst float "
        "first = 0.0f",
        words, words, x->rows, x->rows);
    put_start(w, x, "row", "el");
    fprintf(w->out, ";\nfloat sum = 0.0f;\n");
    for (uint32_t k = 0; k < x->n_args; k++) {
        const vpps_cell_arg *a = vpps_stage_arg(w, x, k);
        if (a->matrix == VPPS_NO_PARAM) continue;
        const vpps_parameter_data *m = &w->g->model->params[a->matrix];
        const uint32_t length = vpps_stage_value(w, a->value)->rows;
        fprintf(w->out, "{ const float *x = ");
        vpps_put_pointer(w, a->value, "item");
        fprintf(w->out, " + column * %uu;\nconst float *m = (const float *)a.matrices + %uu + row * %uu;\n", length,
                w->g->matrix_at[a->matrix], transposed ? 1 : m->cols);
        if (transposed) {
            fprintf(
                w->out,
                "#pragma unroll 8\nfor (unsigned k = 0; k < %u; k++) sum = vpps_multiply_add(m[k * %uu], x[k], sum); "
                "}\n",
                length, m->cols);
        } else {
            fprintf(
                w->out,
                "#pragma unroll 8\nfor (unsigned k = VPPS_LANE; k < %u; k += 32) sum = vpps_multiply_add(m[k], x[k], "
                "sum); }\n",
                length);
        }
    }
    if (!transposed) fprintf(w->out, "sum = vpps_warp_sum(sum);\n");
    fprintf(w->out, "%ss%u[i] = sum + first;\n}\n", transposed ? "" : "if (VPPS_LANE == 0) ", v);
}
