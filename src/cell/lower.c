/* lower.c - makes the forward values of a compiled cell, from a cell as the user recorded it or from a single op. */
#include "cell/cell.h"

uint32_t vpps_cell_add(vpps_compiled_cell *c, vpps_cell_value v) {
    if (!VPPS_RESERVE(c->values, c->n_values + 1u)) return VPPS_NONE;
    v.first_arg = c->n_args;
    c->values[c->n_values] = v;
    return c->n_values++;
}

bool vpps_cell_add_arg(vpps_compiled_cell *c, uint32_t value, uint32_t element, vpps_param matrix) {
    if (!VPPS_RESERVE(c->args, c->n_args + 1u)) return false;
    c->args[c->n_args++] = (vpps_cell_arg){value, element, matrix};
    c->values[c->n_values - 1].n_args++;
    return true;
}

/* ---------------------------------------------------------------- one op */

/* An op of the user's cell, for which values of the compiled cell are being made. */
typedef struct lowering {
    vpps_compiled_cell *c;
    const vpps_signature *s;
    const vpps_param *matrices; /* the matrices of an affine op */
    const uint32_t *args;       /* numbers of the arguments' values; all of a list input's many nodes are one value */
    uint32_t n_args;
    uint32_t axis;
    bool over_list, drops;
    uint32_t imm;
    /* The op's integer: `imm` for all vertices (STATIC), the vertex's index number `imm` that the caller gives (PULLED:
     * vpps_pull_index), or an integer that the batch's program (script) has for each vertex (OWN). */
    enum { IMM_STATIC, IMM_PULLED, IMM_OWN } imm_kind;
} lowering;

static vpps_cell_value value_of(const lowering *l, vpps_cell_kind kind) {
    return (vpps_cell_value){.kind = (uint8_t)kind, .axis = (uint8_t)l->axis, .rows = l->s->rows, .cols = l->s->cols};
}

static uint32_t word_of(vpps_compiled_cell *c, vpps_word_kind kind, uint32_t value) {
    for (uint32_t i = 0; i < c->n_words; i++)
        if (c->words[i].kind == kind && c->words[i].value == value) return i;
    if (c->n_words == VPPS_CELL_MOST) return VPPS_NONE;
    c->words[c->n_words] = (vpps_cell_word){(uint8_t)kind, value};
    return c->n_words++;
}

/* Adds to the cell the sum of an affine op's matrices times arguments: of all arguments if `all` is set, else of those
 * with one value for each vertex (axis 0) or for each node of list input axis - 1 (of any number of nodes). */
static uint32_t product_of(const lowering *l, uint32_t axis, bool all, vpps_param bias) {
    vpps_cell_value v = value_of(l, VPPS_VALUE_PRODUCT);
    v.axis = (uint8_t)axis;
    v.bias = bias;
    const uint32_t product = vpps_cell_add(l->c, v);
    bool ok = product != VPPS_NONE;
    for (uint32_t i = 0; i < l->n_args && ok; i++)
        if (all || l->c->values[l->args[i]].axis == axis) ok = vpps_cell_add_arg(l->c, l->args[i], 0, l->matrices[i]);
    return ok ? product : VPPS_NONE;
}

/* Makes the products of an affine op over list members. An operand that is the same for all members is multiplied once for the vertex, and
 * its product is added to the members' products. */
static uint32_t lower_affine(const lowering *l) {
    uint32_t n_shared = 0;
    for (uint32_t i = 0; i < l->n_args; i++) n_shared += l->axis && !l->c->values[l->args[i]].axis;
    if (!n_shared) return product_of(l, l->axis, true, l->s->param);
    const uint32_t shared = product_of(l, 0, false, l->s->param);
    const uint32_t product = shared == VPPS_NONE ? shared : product_of(l, l->axis, false, VPPS_NO_PARAM);
    if (product == VPPS_NONE) return product;
    vpps_cell_value add = value_of(l, VPPS_VALUE_RUN);
    add.run = (vpps_cell_run){.opcode = VPPS_I_ADD, .op = VPPS_OP_ADD};
    const uint32_t sum = vpps_cell_add(l->c, add);
    if (sum == VPPS_NONE || !vpps_cell_add_arg(l->c, product, 0, VPPS_NO_PARAM) ||
        !vpps_cell_add_arg(l->c, shared, 0, VPPS_NO_PARAM))
        return VPPS_NONE;
    return sum;
}

/* Returns the op's integer as a number operand of an instruction; with `real`, as the float that has these bits. */
static vpps_cell_number number_of(const lowering *l, bool real) {
    vpps_cell_number number = {.kind = VPPS_NUMBER_WORD};
    if (l->imm_kind == IMM_PULLED) {
        number.word = word_of(l->c, VPPS_WORD_INDEX, l->imm);
    } else if (l->imm_kind == IMM_OWN) {
        number.word = word_of(l->c, VPPS_WORD_IMM, 0);
    } else {
        number = real ? vpps_real_number(vpps_bits_float(l->imm)) : vpps_whole_number(l->imm);
    }
    return number;
}

/* Returns 1 / (number of an averaging op's arguments) as a number operand. Each of a list input's nodes counts. */
static vpps_cell_number average_of(const lowering *l) {
    vpps_cell_number f = {.kind = VPPS_NUMBER_INVERSE};
    for (uint32_t i = 0; i < l->n_args; i++) {
        const uint32_t axis = l->c->values[l->args[i]].axis;
        *(axis ? &f.count.list[axis] : &f.count.base) += 1;
    }
    return vpps_counts_members(&f.count) ? f : vpps_real_number(1.0f / (float)l->n_args);
}

/* Returns the number operand of a dropout op: the number of the op's first element in the batch, which chooses the random mask. */
static vpps_cell_number dropout_of(const lowering *l) {
    vpps_compiled_cell *c = l->c;
    vpps_cell_number e = {.kind = VPPS_NUMBER_ELEMENT, .word = word_of(c, VPPS_WORD_DROPOUT, 0)};
    e.count.base = (uint32_t)c->dropout_elems[0];
    for (uint32_t d = 1; d < VPPS_AXES; d++) e.count.list[d] = (uint32_t)c->dropout_elems[d];
    c->dropout_elems[l->axis] += vpps_words(l->s);
    return e;
}

/* Makes the value of an op that becomes one instruction. The letters of the op's row in ops.def tell the instruction's operands. */
static uint32_t lower_run(const lowering *l) {
    vpps_compiled_cell *c = l->c;
    const char *operands = vpps_ops[l->s->op].operands;
    vpps_cell_value v = value_of(l, VPPS_VALUE_RUN);
    v.run = (vpps_cell_run){.opcode = vpps_op_instructions[l->s->op].forward,
                            .op = l->s->op,
                            .over_list = l->over_list,
                            .table = l->s->param};
    for (const char *letter = operands; *letter; letter++) {
        switch (*letter) {
        case 'f': v.run.f = number_of(l, true); break;
        case 'p': v.run.f = vpps_real_number(l->s->op == VPPS_OP_DROPOUT && !l->drops ? 0 : l->s->p); break;
        case 'o': v.run.f = vpps_real_number(1); break;
        case 'n': v.run.f = average_of(l); break;
        case 'u': v.run.u = number_of(l, false); break;
        case 'e': v.run.u = dropout_of(l); break;
        default: break;
        }
    }
    if (v.run.f.word == VPPS_NONE || v.run.u.word == VPPS_NONE) return VPPS_NONE; /* too many words */
    const uint32_t y = vpps_cell_add(c, v);
    if (y == VPPS_NONE) return y;
    for (const char *letter = operands; *letter; letter++) {
        bool ok = true;
        if (*letter == 'a' || *letter == 'v') ok = vpps_cell_add_arg(c, l->args[0], 0, VPPS_NO_PARAM);
        if (*letter == 'b') ok = vpps_cell_add_arg(c, l->args[1], 0, VPPS_NO_PARAM);
        for (uint32_t i = vpps_weighs(l->s->op); ok && *letter == '*' && i < l->n_args; i++)
            ok = vpps_cell_add_arg(c, l->args[i], 0, VPPS_NO_PARAM);
        if (!ok) return VPPS_NONE;
    }
    if (!vpps_finds(l->s->op)) return y;
    const uint32_t positions = vpps_cell_add(c, value_of(l, VPPS_VALUE_POSITIONS));
    return positions == VPPS_NONE || !vpps_cell_add_arg(c, y, 0, VPPS_NO_PARAM) ? VPPS_NONE : y;
}

static uint32_t lower_source(const lowering *l) {
    vpps_compiled_cell *c = l->c;
    vpps_cell_value v = value_of(l, VPPS_VALUE_PARAMETER);
    if (l->s->op == VPPS_OP_LOOKUP) {
        static const uint8_t kinds[] = {
            [IMM_STATIC] = VPPS_WORD_DROPOUT, [IMM_PULLED] = VPPS_WORD_INDEX, [IMM_OWN] = VPPS_WORD_IMM};
        if (c->n_lookups == VPPS_CELL_MOST) return VPPS_NONE;
        v.kind = VPPS_VALUE_LOOKUP;
        v.lookup = c->n_lookups;
        c->lookups[c->n_lookups++] = (vpps_cell_lookup){l->s->param, kinds[l->imm_kind], l->imm};
    } else if (l->s->op == VPPS_OP_INPUT) {
        v.kind = VPPS_VALUE_DATA;
        c->is_data = true;
    } else if (l->s->op == VPPS_OP_MATRIX) {
        return lower_run(l);
    } else {
        v.vector = l->s->param;
    }
    return vpps_cell_add(c, v);
}

static uint32_t lower(const lowering *l) {
    /* the arguments were added to c->values, which is NULL only if memory ran out */
    if (l->n_args && !l->c->values) return VPPS_NONE;
    switch (vpps_ops[l->s->op].op_class) {
    case VPPS_CLASS_SOURCE: return lower_source(l);
    case VPPS_CLASS_AFFINE: return lower_affine(l);
    default: return lower_run(l);
    }
}

/* ---------------------------------------------------------------- whole cells */

static vpps_status begin(vpps_compiled_cell **out, const char *name) {
    vpps_compiled_cell *c = calloc(1, sizeof *c);
    *out = c;
    if (c) c->name = strdup(name);
    return c && c->name ? VPPS_OK : vpps_fail(VPPS_MEMORY, "cell %s: out of memory", name);
}

static vpps_status give_up(vpps_compiled_cell **out, vpps_status status, const char *what) {
    char name[64];
    snprintf(name, sizeof name, "%s", *out ? (*out)->name : "");
    vpps_compiled_cell_free(*out);
    *out = NULL;
    return vpps_fail(status, "cell %s: %s", name, what);
}

static bool add_input(vpps_compiled_cell *c, const vpps_cell_input *in, uint8_t axis) {
    const vpps_cell_value v = {
        .kind = VPPS_VALUE_INPUT, .axis = axis, .rows = in->rows, .cols = in->cols, .input = c->n_inputs};
    c->inputs[c->n_inputs] = *in;
    c->input_axis[c->n_inputs++] = axis;
    c->inputs_of[axis]++;
    c->n_lists = vpps_max_u32(c->n_lists, axis);
    return vpps_cell_add(c, v) != VPPS_NONE;
}

vpps_status vpps_lower_cell(const vpps_cell_data *cell, bool drops, vpps_compiled_cell **out) {
    vpps_status status = begin(out, cell->name);
    if (status != VPPS_OK) return status;
    vpps_compiled_cell *c = *out;
    c->condition = cell->condition;
    uint32_t *of_node = calloc((size_t)cell->n_nodes + 1, sizeof *of_node);
    uint32_t *args = calloc((size_t)cell->n_args + 2, sizeof *args);
    bool ok = of_node && args;
    for (uint32_t i = 0; ok && i < cell->n_inputs; i++) {
        const vpps_cell_input *in = &cell->inputs[i];
        ok = add_input(c, in, in->axis);
    }
    for (uint32_t t = 0; ok && t < cell->n_nodes; t++) {
        const vpps_op_node *node = &cell->nodes[t];
        const vpps_signature *s = &cell->signatures[node->signature];
        lowering l = {.c = c,
                      .s = s,
                      .matrices = cell->matrices + s->first_matrix,
                      .args = args,
                      .n_args = node->n_args,
                      .axis = cell->axis[t],
                      .over_list = cell->over_list[t],
                      .drops = drops,
                      .imm = node->imm,
                      .imm_kind = cell->imm_pulled[t] ? IMM_PULLED : IMM_STATIC};
        for (uint32_t i = 0; i < node->n_args; i++) { /* input number i is value number i */
            const uint32_t a = cell->args[node->args + i];
            args[i] = a & VPPS_CELL_INPUT ? a & ~VPPS_CELL_INPUT : of_node[a];
        }
        of_node[t] = lower(&l);
        ok = of_node[t] != VPPS_NONE;
    }
    for (uint32_t k = 0; ok && k < cell->n_outputs; k++) {
        const uint32_t otherwise =
            /* number of the input that replaces output k where the cell's condition does not hold */
            cell->condition.there ? cell->otherwise[k] : VPPS_NONE;
        c->outputs[c->n_outputs++] =
            (vpps_cell_output){.value = of_node[cell->outputs[k]], .node = cell->outputs[k], .otherwise = otherwise};
    }
    const uint32_t holds = cell->condition_node;
    if (ok && cell->condition.there) c->holds = holds & VPPS_CELL_INPUT ? holds & ~VPPS_CELL_INPUT : of_node[holds];
    VPPS_FREE(of_node, args);
    c->n_forward = c->n_values;
    if (!ok) return give_up(out, VPPS_MEMORY, "out of memory");
    return VPPS_OK;
}

vpps_status vpps_lower_op(const vpps_signature *s, const vpps_param *matrices, uint32_t n, const uint32_t *shapes,
                          bool as_list, uint32_t imm, bool drops, vpps_compiled_cell **out) {
    vpps_status status = begin(out, vpps_ops[s->op].name);
    if (status != VPPS_OK) return status;
    vpps_compiled_cell *c = *out;
    bool ok = true;
    const uint32_t n_args = as_list && n ? 1 : n;
    if (n_args > VPPS_CELL_MOST) {
        char what[96];
        snprintf(what, sizeof what, "%u arguments; expected at most %d, so apply it in steps", n_args, VPPS_CELL_MOST);
        return give_up(out, VPPS_ARGUMENT, what);
    }
    uint32_t args[VPPS_CELL_MOST] = {0};
    for (uint32_t i = 0; ok && i < n_args; i++) {
        const vpps_cell_input in = {.rows = shapes[2 * i], .cols = shapes[2 * i + 1], .child = i, .pulled = true};
        ok = add_input(c, &in, as_list);
        args[i] = i;
    }
    lowering l = {.c = c,
                  .s = s,
                  .matrices = matrices,
                  .args = args,
                  .n_args = n_args,
                  .drops = drops,
                  .imm = imm,
                  .imm_kind = s->op == VPPS_OP_SLICE ? IMM_STATIC : IMM_OWN};
    const uint32_t y = ok ? lower(&l) : VPPS_NONE;
    if (y == VPPS_NONE) return give_up(out, VPPS_MEMORY, "out of memory");
    c->outputs[c->n_outputs++] = (vpps_cell_output){.value = y};
    c->n_forward = c->n_values;
    return VPPS_OK;
}
