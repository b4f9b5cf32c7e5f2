/* generate_elements.c - writes kernel code for the elementwise steps of a stage (part of a cell), a line per step. */
#include "codegen/generate_stage.h"

typedef vpps_stage_work work;

/* ---------------------------------------------------------------- operands */

/* Writes a C++ expression for the element of operand i that a step reads: the loop's current element, or a fixed one. */
static void put_operand(const work *w, const vpps_program_step *s, uint32_t i) {
    const vpps_operand *o = vpps_operand_of(&w->s, s, i);
    const char *item = vpps_item_for(s->axis, o);
    const bool alike = vpps_reads_alike(s, o), made = vpps_made_in_loop(w, o->value);
    if (alike && (made || !vpps_in_slot(w, o->value)))
        fprintf(w->out, made ? "v%u" : "m%u", o->value);
    else if (alike)
        vpps_put_slot(w, o->value, "item", "e");
    else if (o->access == VPPS_ACCESS_SCALAR)
        vpps_put_at(w, o->value, item, "%uu", o->element);
    else
        vpps_put_element(w, o->value, item, "e", "element");
}

static bool is_list(const work *w, const vpps_program_step *s, uint32_t i) {
    return vpps_operand_of(&w->s, s, i)->access == VPPS_ACCESS_MEMBERS;
}

static void put_listed(const work *w, const vpps_program_step *s, uint32_t i) {
    if (is_list(w, s, i))
        vpps_put_element(w, vpps_operand_of(&w->s, s, i)->value, "m", "e", "element");
    else
        put_operand(w, s, i);
}
static void end_listed(const work *w, const vpps_program_step *s, uint32_t i) {
    fputs(is_list(w, s, i) ? "; });\n" : ";\n", w->out);
}

/* ---------------------------------------------------------------- steps */

/* Writes the call of an instruction's function. Arguments: elements of 3 vectors, a scalar, real, integer, random number; 0 if unused. */
static void make_formula(const work *w, const vpps_program_step *s) {
    const char *letters = vpps_instructions[s->run.of.opcode].operands;
    uint32_t i = 0;
    fprintf(w->out, "const float v%u = vpps_value_%s(", s->to.value, vpps_instructions[s->run.of.opcode].name);
    for (uint32_t k = 0; k < 4; k++) {
        if (k < 3 ? k < s->run.tensors : s->run.scalars)
            put_operand(w, s, i++);
        else
            fputs("0.0f", w->out);
        fputs(", ", w->out);
    }
    static const struct {
        char letter;
        const char *otherwise;
        void (*put)(const work *w, const vpps_program_step *s);
    } numbers[] = {{'f', "0.0f", vpps_put_f}, {'u', "0u", vpps_put_u}, {'e', "0.0f", vpps_put_random}};
    for (size_t k = 0; k < VPPS_COUNT(numbers); k++) {
        if (k) fputs(", ", w->out);
        if (strchr(letters, numbers[k].letter))
            numbers[k].put(w, s);
        else
            fputs(numbers[k].otherwise, w->out);
    }
    fprintf(w->out, ");\n");
}

/* Writes code that folds a list, such as a weighted sum. The weights are a vector of the vertex, or one scalar per member. */
static void make_fold(const work *w, const vpps_program_step *s) {
    const char *name = vpps_instructions[s->run.of.opcode].name;
    const vpps_operand *weights = vpps_operand_of(&w->s, s, 0);
    const uint32_t v = s->to.value;
    const bool list = s->run.weights && weights->access == VPPS_ACCESS_MEMBERS;
    fprintf(w->out, "float v%u = 0.0f;\n", v);
    if (s->run.weights && !list) fprintf(w->out, "unsigned number%u = 0;\n", v);
    for (uint32_t i = s->run.weights; i < s->n; i++) {
        const uint32_t axis = vpps_operand_of(&w->s, s, i)->axis;
        if (is_list(w, s, i))
            fprintf(w->out, "vpps_add_members(ls%u, f0 + item, f%u, v%u, [&](unsigned m) { ", axis, axis, v);
        fprintf(w->out, "v%u = vpps_next_%s(v%u, ", v, name, v);
        put_listed(w, s, i);
        fputs(", ", w->out);
        if (s->run.weights)
            vpps_put_at(w, weights->value, list ? "m" : vpps_item_for(s->axis, weights), list ? "0u" : "number%u++", v);
        else
            fputs("0.0f", w->out);
        fputc(')', w->out);
        end_listed(w, s, i);
    }
    fprintf(w->out, "v%u = vpps_made_%s(v%u, ", v, name, v);
    if (strchr(vpps_instructions[s->run.of.opcode].operands, 'f'))
        vpps_put_f(w, s);
    else
        fputs("0.0f", w->out);
    fprintf(w->out, ");\n");
}

static void make_found(const work *w, const vpps_program_step *s) {
    const uint32_t v = s->to.value;
    fprintf(w->out, "vpps_found<vpps_beats_%s> x%u;\n", vpps_instructions[s->run.of.opcode].name, v);
    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t axis = vpps_operand_of(&w->s, s, i)->axis;
        if (is_list(w, s, i)) fprintf(w->out, "vpps_each_member(ls%u, f0 + item, f%u, [&](unsigned m) { ", axis, axis);
        fprintf(w->out, "x%u.take(", v);
        put_listed(w, s, i);
        fputc(')', w->out);
        end_listed(w, s, i);
    }
    fprintf(w->out, "const float v%u = x%u.value, v%u = __uint_as_float(x%u.position);\n", v, v, s->run.positions.value,
            v);
}

static void make_matmul(const work *w, const vpps_program_step *s) {
    const vpps_operand *a = vpps_operand_of(&w->s, s, 0), *b = vpps_operand_of(&w->s, s, 1);
    const uint32_t r = s->to.rows, c = s->to.cols, opcode = s->run.of.opcode;
    const bool tn = opcode == VPPS_I_MATMUL_TN, nt = opcode == VPPS_I_MATMUL_NT;
    const uint32_t k = tn ? a->rows : a->cols;
    fprintf(w->out, "const float v%u = vpps_inner<%u>([&](unsigned k) { return ", s->to.value, k);
    vpps_put_at(w, a->value, vpps_item_for(s->axis, a), tn ? "element %% %uu * %uu + k" : "k * %uu + element %% %uu", r,
                tn ? k : r);
    fprintf(w->out, "; }, [&](unsigned k) { return ");
    vpps_put_at(w, b->value, vpps_item_for(s->axis, b), nt ? "k * %uu + element / %uu" : "element / %uu * %uu + k",
                nt ? c : r, nt ? r : k);
    fprintf(w->out, "; });\n");
}

/* Writes code that copies an element from its place in an operand of another shape (transpose, reshape). */
static void make_moved(const work *w, const vpps_program_step *s) {
    const vpps_operand *a = vpps_operand_of(&w->s, s, 0);
    fprintf(w->out, "const float v%u = ", s->to.value);
    vpps_put_at(w, a->value, vpps_item_for(s->axis, a),
                s->run.of.opcode == VPPS_I_TRANSPOSE ? "vpps_turned<%u, %u>(element)" : "element", s->to.rows,
                s->to.cols);
    fprintf(w->out, ";\n");
}

/* Writes code for an element of SELECT_ROWS: row r of the result is row numbers[r] of a value. Backward: row r of the value's gradient is
 * the sum of all rows k of the result's gradient for which numbers[k] is r. */
static void make_selected(const work *w, const vpps_program_step *s) {
    const vpps_operand *a = vpps_operand_of(&w->s, s, 0), *b = vpps_operand_of(&w->s, s, 1);
    const bool backward = s->run.of.opcode == VPPS_I_SELECT_ROWS_B;
    const vpps_operand *numbers = backward ? a : b, *from = backward ? b : a;
    fprintf(w->out, "const float v%u = %s<%u>(", s->to.value, backward ? "vpps_sum_of_row" : "vpps_of_row", a->rows);
    if (backward) fprintf(w->out, "element %% %uu, [&](unsigned k) { return ", s->to.rows);
    vpps_put_at(w, numbers->value, vpps_item_for(s->axis, numbers), backward ? "k" : "element %% %uu", s->to.rows);
    fprintf(w->out, "%s, [&](unsigned k) { return ", backward ? "; }" : "");
    vpps_put_at(w, from->value, vpps_item_for(s->axis, from), "element / %uu * %uu + k", s->to.rows, a->rows);
    fprintf(w->out, "; });\n");
}

/* Writes code for an element of a slice: consecutive rows of an operand, such as one of the vectors stacked in it. */
static void make_slice(const work *w, const vpps_program_step *s) {
    const vpps_operand *o = vpps_operand_of(&w->s, s, 0);
    const bool list = s->run.of.over_list;
    char first[64];
    if (list)
        snprintf(first, sizeof first, "(f%u + item - ls%u[f0 + vx]) * %uu", s->axis, s->axis, s->to.rows);
    else
        snprintf(first, sizeof first, "%uu", s->run.of.u.whole);
    fprintf(w->out, "const float v%u = ", s->to.value);
    vpps_put_at(w, o->value, list ? "vx" : vpps_item_for(s->axis, o), "vpps_moved<%u, %u>(element, %s)", s->to.rows,
                o->rows, first);
    fprintf(w->out, ";\n");
}

/* Writes code for an element of a result that consists of several operands, or of a list's members, stacked on top of each other. */
static void make_stack(const work *w, const vpps_program_step *s) {
    const vpps_operand *o = vpps_operand_of(&w->s, s, 0);
    fprintf(w->out, "const float v%u = ", s->to.value);
    if (s->run.of.over_list) {
        fprintf(w->out,
                "vpps_of_stack<%u, %u>(ls%u, f0 + item, f%u, element, [&](unsigned m, unsigned element) { return ",
                s->to.rows, o->rows, o->axis, o->axis);
        vpps_put_at(w, o->value, "m", "element");
        fprintf(w->out, "; });\n");
        return;
    }
    fprintf(w->out, "vpps_of_parts<%u, %u", s->to.rows, s->run.of.opcode == VPPS_I_PLACE ? s->run.of.u.whole : 0);
    for (uint32_t i = 0; i < s->n; i++) fprintf(w->out, ", %u", vpps_operand_of(&w->s, s, i)->rows);
    fprintf(w->out, ">(element");
    for (uint32_t i = 0; i < s->n; i++) {
        o = vpps_operand_of(&w->s, s, i);
        fprintf(w->out, ", [&](unsigned element) { return ");
        vpps_put_at(w, o->value, vpps_item_for(s->axis, o), "element");
        fprintf(w->out, "; }");
    }
    fprintf(w->out, ");\n");
}

static void make_element(const work *w, const vpps_program_step *s) {
    if (s->kind == VPPS_STEP_GRADIENT) {
        fprintf(w->out, "const float v%u = g%u.total(pool, ge%u, gp%u, b->n, f0 + item, element);\n", s->to.value,
                s->to.value, s->output, s->output);
    } else if (s->kind == VPPS_STEP_LOAD) { /* a number that the caller gave for the vertex, in the batch's program */
        fprintf(w->out, "const float v%u = ", s->to.value);
        vpps_put_memory(w, s->to.value, "item", "element");
        fprintf(w->out, ";\n");
    } else if (vpps_instructions[s->run.of.opcode].form == VPPS_FORM_PARTS) {
        (s->run.of.opcode == VPPS_I_SLICE ? make_slice : make_stack)(w, s);
    } else if (s->run.of.opcode == VPPS_I_MATRIX) {
        fprintf(w->out, "const float v%u = ((const float *)a.matrices)[%uu + vpps_turned<%u, %u>(element)];\n",
                s->to.value, w->g->matrix_at[s->run.of.table], s->to.rows, s->to.cols);
    } else if (vpps_instructions[s->run.of.opcode].form == VPPS_FORM_MATMUL) {
        make_matmul(w, s);
    } else if (vpps_instructions[s->run.of.opcode].form == VPPS_FORM_MOVE) {
        (s->n == 2 ? make_selected : make_moved)(w, s);
    } else if (strchr(vpps_instructions[s->run.of.opcode].operands, '*')) {
        (s->run.positions.place ? make_found : make_fold)(w, s);
    } else {
        make_formula(w, s);
    }
}

/* ---------------------------------------------------------------- loads before computations
 *
 * The code first loads all the numbers that say where values lie, then the values, so that no value's load waits for another value's
 * place. */

/* Calls `put` for each value that segment g (list of steps) reads from memory at the current item (vertex or node of its list) and element. */
static void each_loaded(const work *w, const vpps_segment *g, uint8_t *loaded, void (*put)(const work *w, uint32_t v)) {
    memset(loaded, 0, w->c->n_values);
    for (uint32_t k = 0; k < g->n; k++) {
        const vpps_program_step *s = vpps_step_of(w, g, k)->step;
        for (uint32_t i = 0; s && s->kind == VPPS_STEP_RUN && i < s->n; i++) {
            const vpps_operand *o = vpps_operand_of(&w->s, s, i);
            const uint32_t v = o->value;
            if (loaded[v] || vpps_in_slot(w, v) || vpps_made_in_loop(w, v) || !vpps_reads_alike(s, o)) continue;
            loaded[v] = 1;
            put(w, v);
        }
    }
}

/* Returns the name, in the kernel's text, of the array that tells where value v of each vertex or node of its list lies; NULL: no array does. */
static const char *array_of(const work *w, uint32_t v) {
    const uint8_t place = w->s.memory[v]->place;
    return place == VPPS_PLACE_INPUT ? "in" : place == VPPS_PLACE_ENTRY ? "lk" : NULL;
}

static void find_operand(const work *w, uint32_t v) {
    const vpps_operand *o = w->s.memory[v];
    if (array_of(w, v)) fprintf(w->out, "unsigned p%u = %s%u[f%u + item];\n", v, array_of(w, v), o->at, o->axis);
}

static void know_operand(const work *w, uint32_t v) {
    if (array_of(w, v)) fprintf(w->out, "vpps_know(p%u);\n", v);
}

static void declare_operand(const work *w, uint32_t v) { fprintf(w->out, "float m%u = 0.0f;\n", v); }

static void load_declared(const work *w, uint32_t v) {
    fprintf(w->out, "m%u = ", v);
    if (array_of(w, v))
        fprintf(w->out, "vpps_at(pool, p%u, element)", v);
    else
        vpps_put_memory(w, v, "item", "element");
    fprintf(w->out, ";\n");
}

static void load_operand(const work *w, uint32_t v) {
    fprintf(w->out, "const float ");
    load_declared(w, v);
}

static void each_gradient(const work *w, const vpps_segment *g,
                          void (*put)(const work *w, const vpps_program_step *s)) {
    for (uint32_t k = 0; k < g->n; k++) {
        const vpps_program_step *s = vpps_step_of(w, g, k)->step;
        if (s && s->kind == VPPS_STEP_GRADIENT) put(w, s);
    }
}

static void find_gradient(const work *w, const vpps_program_step *s) {
    fprintf(w->out, "vpps_gradient g%u(gs%u, ge%u, f0 + item);\n", s->to.value, s->output, s->output);
}
static void know_gradient(const work *w, const vpps_program_step *s) { fprintf(w->out, "g%u.know();\n", s->to.value); }
static void load_gradient(const work *w, const vpps_program_step *s) {
    fprintf(w->out, "g%u.load(pool, element);\n", s->to.value);
}

/* ---------------------------------------------------------------- segments */

/* Returns how many elements of a tile (vertices processed together) a thread computes; 0: unknown, or so many that compilers unroll no loop. */
static uint32_t rounds_of(const work *w, const vpps_segment *g, uint32_t width) {
    enum { FEW = 4 /* most elements of a thread for which compilers unroll the loop */ };
    const uint32_t threads = w->g->plan->threads, rounds = (w->tile * width + threads - 1) / threads;
    return g->axis || rounds > FEW ? 0 : rounds;
}

static const char *const end_elements = "});\n";
static void begin_elements(const work *w, const vpps_segment *g, uint32_t first_thread) {
    const uint32_t v = vpps_step_of(w, g, 0)->value, width = vpps_segment_width(&w->s, v);
    fprintf(w->out, "vpps_elements<%u, %u>(", rounds_of(w, g, width), width);
    fprintf(w->out, first_thread ? "(threadIdx.x + %uu) %% VPPS_THREADS" : "threadIdx.x", first_thread);
    fprintf(w->out, g->dealt ? ", n%u, r%u" : ", n%u, vpps_rows{0, %u}", g->axis,
            g->dealt ? vpps_stage_value(w, v)->rows : width);
    fprintf(w->out, ", [&](unsigned item, unsigned e, unsigned element) {\n");
    vpps_put_vertex(w, g->axis);
}

bool vpps_put_early_loads(const work *w, const vpps_segment *g, uint8_t *loaded) {
    if (rounds_of(w, g, vpps_segment_width(&w->s, vpps_step_of(w, g, 0)->value)) != 1) return false;
    each_loaded(w, g, loaded, declare_operand);
    begin_elements(w, g, 0);
    each_loaded(w, g, loaded, find_operand);
    each_loaded(w, g, loaded, know_operand);
    each_loaded(w, g, loaded, load_declared);
    fputs(end_elements, w->out);
    return true;
}

/* Writes code that loads or computes the values of an elementwise segment (list of steps); put_stores stores them. */
static void put_makes(const work *w, const vpps_segment *g) {
    for (uint32_t k = 0; k < g->n; k++) {
        const vpps_segment_step *step = vpps_step_of(w, g, k);
        const uint32_t v = step->value;
        if (step->kind == VPPS_SEGMENT_MAKE) {
            make_element(w, step->step);
        } else if (step->kind == VPPS_SEGMENT_LOAD) {
            fprintf(w->out, "const float v%u = ", v);
            vpps_put_memory(w, v, "item", "element");
            fprintf(w->out, ";\n");
        } else if (vpps_made_in_loop(w, v)) {
            fprintf(w->out, "const float t%u = v%u;\n", v, v);
        } else {
            fprintf(w->out, "const float t%u = ", v);
            vpps_put_slot(w, v, "item", "e");
            fprintf(w->out, ";\n");
        }
    }
}

static void put_stores(const work *w, const vpps_segment *g) {
    for (uint32_t k = 0; k < g->n; k++) {
        const vpps_segment_step *step = vpps_step_of(w, g, k);
        const uint32_t v = step->value;
        if (step->kind == VPPS_SEGMENT_LOAD) {
            vpps_put_slot(w, v, "item", "e");
            fprintf(w->out, " = v%u;\n", v);
        } else if (step->kind == VPPS_SEGMENT_STORE) {
            char name[16];
            snprintf(name, sizeof name, "t%u", v);
            vpps_store_in_memory(w, v, name);
        } else {
            vpps_store_made(w, v);
            const bool positions = step->step->kind == VPPS_STEP_RUN && step->step->run.positions.place;
            if (positions) vpps_store_made(w, step->step->run.positions.value);
        }
    }
}

/* Writes a loop over the elements of an elementwise segment (list of steps), in which all reads come before all stores. */
static void put_loop(const work *w, const vpps_segment *g, uint8_t *loaded, uint32_t first_thread) {
    begin_elements(w, g, first_thread);
    each_gradient(w, g, find_gradient);
    if (!w->loaded_early) each_loaded(w, g, loaded, find_operand);
    each_gradient(w, g, know_gradient);
    if (!w->loaded_early) {
        each_loaded(w, g, loaded, know_operand);
        each_loaded(w, g, loaded, load_operand);
    }
    each_gradient(w, g, load_gradient);
    if (w->joined) vpps_put_joined(w, g - 1);
    put_makes(w, g);
    put_stores(w, g);
    for (uint32_t k = 0; w->joined && k < g[-1].n; k++) vpps_store_finished(w, vpps_step_of(w, g - 1, k)->value);
    fputs(end_elements, w->out);
}

/* Writes one loop, or one for each step if all are sums of gradients, which may have many terms: the loops then begin at different threads. */
void vpps_put_elements(const work *w, const vpps_segment *g, uint8_t *loaded) {
    bool apart = !w->joined && !w->c->needs.recurrent_in;
    const vpps_segment_step *s = vpps_step_of(w, g, 0), *end = s + g->n;
    for (; s < end; s++) apart &= s->kind == VPPS_SEGMENT_MAKE && s->step->kind == VPPS_STEP_GRADIENT;
    if (!apart) put_loop(w, g, loaded, 0);
    for (uint32_t k = 0; apart && k < g->n; k++)
        put_loop(w, &(vpps_segment){.axis = g->axis, .dealt = g->dealt, .first = g->first + k, .n = 1}, loaded,
                 k * g->words % w->g->plan->threads);
}
