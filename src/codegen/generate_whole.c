/* generate_whole.c - writes code for a cell's instructions that need whole vectors (such as softmax), and for
 * products that one virtual processor (CTA) computes alone, with whole matrices that it reads in memory. */
#include "codegen/generate_stage.h"

typedef vpps_stage_work work;

/* Writes a call of one of the C++ functions of an instruction that reads whole vectors, for element k: "term", an element's term of a sum; "finish", which computes
 * the result from the sum; or "value", which computes an element of the result. */
static void put_call(const work *w, const vpps_program_step *s, const char *function) {
    uint32_t tensor = 0, scalar = 0;
    fprintf(w->out, "vpps_%s_%s(totals", function, vpps_instructions[s->run.of.opcode].name);
    for (const char *l = vpps_instructions[s->run.of.opcode].operands; *l; l++) {
        if (*l == 't') fprintf(w->out, ", p%u[k]", tensor++);
        if (*l == 's') fprintf(w->out, ", q%u", scalar++);
        if (*l == 'f') fprintf(w->out, ", f");
        if (*l == 'u') fprintf(w->out, ", vpps_pick{k == label, picked}");
    }
    fprintf(w->out, ")");
}

/* Writes code in which `team` threads (a C expression) sum up an instruction's terms over `length` elements, then compute the result if the
 * variable `there` is true. */
static void put_result(const work *w, const vpps_program_step *s, const char *team, const char *length,
                       const char *to) {
    const char *letters = vpps_instructions[s->run.of.opcode].operands;
    if (strchr(letters, 'u')) {
        fprintf(w->out, "const unsigned label = ");
        vpps_put_u(w, s);
        fprintf(w->out, ";\nconst float picked = p0[label];\n");
    }
    if (strchr(letters, 'f')) {
        fprintf(w->out, "const float f = ");
        vpps_put_f(w, s);
        fprintf(w->out, ";\n");
    }
    const bool rare =
        s->run.of.opcode == VPPS_I_CROSS_ENTROPY_B; /* totals are of no elements unless the loss is large */
    fprintf(
        w->out,
        "vpps_totals totals = {};\n%stotals = vpps_total<vpps_head_%s, %s>(%s%s, p0, [&](const vpps_totals &totals, "
        "unsigned k) { return ",
        rare ? "if (__builtin_expect(__ballot_sync(0xffffffffu, q0 > 100.0f), 0))\n" : "",
        vpps_instructions[s->run.of.opcode].name, team, rare ? "!(q0 > 100.0f) ? 0u : " : "", length);
    put_call(w, s, "term");
    fprintf(w->out, "; });\nvpps_finish(totals, [&](unsigned k) { return ");
    put_call(w, s, "finish");
    fprintf(w->out, "; });\n");
    if (vpps_instructions[s->run.of.opcode].form == VPPS_FORM_REDUCE) {
        fprintf(w->out, "if (there && threadIdx.x %% %s == 0) %s[0] = totals.sum;\n", team, to);
        return;
    }
    fprintf(w->out, "if (there) vpps_each_of_row<%s>(%s, [&](unsigned k) { %s[k] = ", team, length, to);
    put_call(w, s, "value");
    fprintf(w->out, "; });\n");
}

void vpps_put_whole(const work *w, const vpps_program_step *s) {
    enum {
        LONG =
            8 /* vectors with at least LONG elements per thread are computed by the whole CTA, others by lanes of a warp */
    };
    char length[32], to[96], team[32] = "VPPS_THREADS";
    const uint32_t columns = vpps_step_columns(s), elems = vpps_operand_words(vpps_operand_of(&w->s, s, 0)) / columns;
    const bool by_warps = elems < LONG * w->g->plan->threads;
    uint32_t lanes = 1; /* of a warp, for each vector: short vectors share a warp */
    while (lanes < elems && lanes < 32) lanes *= 2;
    if (by_warps) snprintf(team, sizeof team, "%u", lanes);
    const uint32_t teams = by_warps ? 32 / lanes : 1;
    /* sums over list members: a warp makes several at once, since each waits long for its loads */
    const uint32_t code = s->run.of.opcode;
    const bool plain = code == VPPS_I_DOT || code == VPPS_I_SQUARED_DISTANCE || code == VPPS_I_SUM_ELEMENTS;
    const bool sums = plain && s->axis && by_warps;
    if (sums)
        fprintf(w->out, "vpps_multiply_by_warps(s%u, n%u * %uu, [&](unsigned i, float &start) {\nstart = 0.0f;\n",
                s->to.value, s->axis, columns);
    else
        fprintf(
            w->out,
            "vpps_by_turns(threadIdx.x / %s, (n%u * %uu + %uu) / %uu * %uu, VPPS_THREADS / %s, [&](unsigned turn) {\n"
            "const bool there = turn < n%u * %uu;\nconst unsigned i = there ? turn : 0;\n",
            team, s->axis, columns, teams - 1, teams, teams, team, s->axis, columns);
    fprintf(w->out, "const unsigned item = i / %uu, column = i %% %uu;\n(void)column;\n", columns, columns);
    vpps_put_vertex(w, s->axis);
    for (uint32_t i = 0; i < s->run.tensors; i++) {
        const vpps_operand *o = vpps_operand_of(&w->s, s, i);
        fprintf(w->out, "const float *const p%u = ", i);
        vpps_put_pointer(w, o->value, vpps_item_for(s->axis, o));
        if (columns > 1) fprintf(w->out, " + column * %uu", elems);
        fprintf(w->out, ";\n");
    }
    for (uint32_t i = 0; i < s->run.scalars; i++) {
        const vpps_operand *o = vpps_operand_of(&w->s, s, s->run.tensors + i);
        fprintf(w->out, "const float q%u = ", i);
        vpps_put_at(w, o->value, vpps_item_for(s->axis, o), o->access == VPPS_ACCESS_COLUMN ? "column" : "%uu",
                    o->element);
        fprintf(w->out, ";\n");
    }
    snprintf(length, sizeof length, "%uu", elems);
    if (sums) {
        fprintf(
            w->out,
            "const vpps_totals totals = {0.0f, 0.0f, %s};\nreturn vpps_add_up<4>(0.0f, VPPS_LANE, totals.length, 32, "
            "[&](unsigned k) { return ",
            length);
        put_call(w, s, "term");
        fprintf(w->out, "; });\n});\n");
        return;
    }
    snprintf(to, sizeof to, "(s%u + item * %uu + column * %uu)", s->to.value, vpps_segment_width(&w->s, s->to.value),
             vpps_operand_words(&s->to) / columns);
    put_result(w, s, team, length, to);
    fprintf(w->out, "});\n");
}

void vpps_put_lists(const work *w, const vpps_program_step *s) {
    char to[64];
    fprintf(
        w->out,
        "vpps_by_turns(VPPS_WARP, n0, VPPS_WARPS, [&](unsigned item) {\nconst unsigned first = ls%u[f0 + item] - f%u, "
        "length = vpps_members(ls%u, f0 + item);\nconst bool there = length;\nif (!length) return;\n",
        s->axis, s->axis, s->axis);
    for (uint32_t i = 0; i < s->n; i++)
        fprintf(w->out, "const float *const p%u = s%u + first;\n", i, vpps_operand_of(&w->s, s, i)->value);
    snprintf(to, sizeof to, "(s%u + first)", s->to.value);
    put_result(w, s, "32", "length", to);
    fprintf(w->out, "});\n");
}

/* Writes a call by which one CTA computes products of matrices and a vertex's vectors. Its argument is a lambda that
 * returns the sum for element i of the result (or a lane's part of it), and sets `start` to what is added to it. */
void vpps_put_matrices(const work *w, const vpps_program_step *s) {
    const bool transposed = s->product.transposed;
    const uint32_t words = vpps_operand_words(&s->to);
    const vpps_operand *start = vpps_start_of(s);
    fprintf(w->out,
            "vpps_multiply_by_%s(s%u, n%u * %uu, [&](unsigned i, float &start) {\nconst unsigned item = i / %uu, "
            "element = i %% %uu, "
            "row = element %% %uu, column = element / %uu;\nstart = 0.0f",
            transposed ? "threads" : "warps", s->to.value, s->axis, words, words, words, s->to.rows, s->to.rows);
    if (s->product.start.place == VPPS_PLACE_PARAMETER)
        fprintf(w->out, " + pool[%uu + row]", w->g->pool->values[s->product.start.at]);
    if (start) {
        fprintf(w->out, " + ");
        vpps_put_at(w, start->value, "item", "element");
    }
    fprintf(w->out, ";\nfloat sum = 0.0f;\n");
    for (uint32_t k = 0; k < s->n; k++) {
        const vpps_operand *o = vpps_operand_of(&w->s, s, k);
        const uint32_t cols = w->g->model->params[o->matrix].cols;
        fprintf(w->out, "sum = vpps_multiply_row<%u, %u, %s>(%s, sum, (const float *)a.matrices + %uu + row * %uu, ",
                o->rows, transposed ? cols : 1, transposed ? "1" : "32", transposed ? "0u" : "VPPS_LANE",
                w->g->matrix_at[o->matrix], transposed ? 1 : cols);
        vpps_put_pointer(w, o->value, "item");
        fprintf(w->out, " + column * %uu);\n", o->rows);
    }
    fprintf(w->out, "return sum;\n});\n");
}
