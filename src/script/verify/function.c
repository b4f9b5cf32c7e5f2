/* function.c - writes a vertex's nodes, and by backpropagation (ops.def) their gradients, as formulas of its inputs. */
#include "script/verify/function.h"

/* ---------------------------------------------------------------- gradients that are owed */

static void add_owed(vpps_owed_list *list, vpps_owed owed) {
    if (owed.dy == VPPS_NONE || list->failed) return;
    if (VPPS_RESERVE(list->at, list->n + 1u))
        list->at[list->n++] = owed;
    else
        list->failed = true;
}

void vpps_owe(vpps_expressions *s, vpps_owed_list *list, vpps_owed_kind kind, uint32_t key, uint32_t dy) {
    for (uint32_t i = 0; i < list->n && dy != VPPS_NONE; i++) {
        if (list->at[i].kind != kind || list->at[i].key != key) continue;
        list->at[i].dy = vpps_express_add(s, list->at[i].dy, dy);
        return;
    }
    add_owed(list, (vpps_owed){.kind = kind, .key = key, .dy = dy});
}

void vpps_owe_matrix(vpps_owed_list *list, vpps_param matrix, uint32_t x, uint32_t axis, uint32_t dy) {
    add_owed(list, (vpps_owed){VPPS_OWED_MATRIX, matrix, x, axis, dy});
}

static int by_owed(const void *a, const void *b) { return memcmp(a, b, sizeof(vpps_owed)); }

void vpps_owed_sort(vpps_owed_list *list) {
    if (list->n) qsort(list->at, list->n, sizeof *list->at, by_owed);
}

/* ---------------------------------------------------------------- making a function */

static bool open_function(vpps_function *f, const vpps_graph *g, const vpps_param *matrices, uint32_t n_nodes,
                          uint32_t n_args) {
    const size_t n = n_nodes + 1u;
    f->g = g;
    f->matrices = matrices;
    f->n_nodes = n_nodes;
    f->holds = VPPS_NONE;
    f->nodes = calloc(n, sizeof *f->nodes);
    f->args = calloc(n_args + 1u, sizeof *f->args);
    f->value = calloc(n, sizeof *f->value);
    f->gradient = calloc(n, sizeof *f->gradient);
    f->dropout = calloc(n, sizeof *f->dropout);
    f->reads = calloc(n, sizeof *f->reads);
    f->trained = calloc(n, sizeof *f->trained);
    return f->nodes && f->args && f->value && f->gradient && f->dropout && f->reads && f->trained;
}

void vpps_function_free(vpps_function *f) {
    VPPS_FREE(f->nodes, f->args, f->value, f->gradient, f->dropout, f->reads, f->trained);
    *f = (vpps_function){0};
}

static bool is_trained(const vpps_function *f, vpps_param p) {
    return p != VPPS_NO_PARAM && !f->fixed && !f->g->model->params[p].frozen;
}

static uint32_t axis_of(const vpps_function *f, uint32_t arg) {
    return arg & VPPS_CELL_INPUT ? f->inputs[arg & ~VPPS_CELL_INPUT].axis : f->nodes[arg].axis;
}

/* Finds for each node: the inputs it depends on, whether it depends on a trained parameter, how many elements under dropout precede it. */
static void finish(vpps_function *f) {
    for (uint32_t t = 0; t < f->n_nodes; t++) {
        const vpps_function_node *node = &f->nodes[t];
        f->trained[t] = is_trained(f, node->s->param);
        for (uint32_t i = 0; i < node->n; i++) {
            const uint32_t a = f->args[node->first + i];
            f->reads[t] |= a & VPPS_CELL_INPUT ? (uint64_t)1 << (a & ~VPPS_CELL_INPUT) : f->reads[a];
            if (!(a & VPPS_CELL_INPUT)) f->trained[t] |= f->trained[a];
            if (i < node->s->n_matrices) f->trained[t] |= is_trained(f, f->matrices[node->s->first_matrix + i]);
        }
        for (uint32_t d = 0; d < VPPS_AXES; d++) f->dropout[t][d] = (uint32_t)f->dropout_elems[d];
        if (node->s->op == VPPS_OP_DROPOUT) f->dropout_elems[node->axis] += vpps_words(node->s);
    }
}

bool vpps_function_of_cell(vpps_function *f, const vpps_graph *g, const vpps_cell_data *cell) {
    if (cell->n_inputs > VPPS_CELL_MOST || !open_function(f, g, cell->matrices, cell->n_nodes, cell->n_args))
        return false;
    f->n_inputs = cell->n_inputs;
    if (cell->condition.there) f->holds = cell->condition_node;
    for (uint32_t i = 0; i < cell->n_inputs; i++) {
        const vpps_cell_input *in = &cell->inputs[i];
        f->inputs[i] = (vpps_function_input){in->rows, in->cols, in->axis};
    }
    if (cell->n_args) memcpy(f->args, cell->args, cell->n_args * sizeof *f->args);
    for (uint32_t t = 0; t < cell->n_nodes; t++) {
        const vpps_op_node *node = &cell->nodes[t];
        f->nodes[t] = (vpps_function_node){.s = &cell->signatures[node->signature],
                                           .first = node->args,
                                           .n = node->n_args,
                                           .imm = node->imm,
                                           .imm_source = cell->imm_pulled[t] ? VPPS_OPERAND_INDEX : VPPS_OPERAND_STATIC,
                                           .axis = cell->axis[t],
                                           .over_list = cell->over_list[t]};
    }
    finish(f);
    return true;
}

bool vpps_function_of_op(vpps_function *f, const vpps_graph *g, const vpps_signature *s, uint32_t imm) {
    if (!open_function(f, g, g->matrices, 1, f->n_inputs)) return false;
    /* vertices of one type share the first row of a SLICE op; the integer of any other op differs by vertex */
    const bool own = s->op != VPPS_OP_SLICE;
    f->nodes[0] = (vpps_function_node){
        .s = s, .n = f->n_inputs, .imm = own ? 0 : imm, .imm_source = own ? VPPS_OPERAND_OWN : VPPS_OPERAND_STATIC};
    for (uint32_t i = 0; i < f->n_inputs; i++) f->args[i] = VPPS_CELL_INPUT | i;
    finish(f);
    return true;
}

/* ---------------------------------------------------------------- values */

static uint32_t value_of(const vpps_function *f, uint32_t arg) {
    return arg & VPPS_CELL_INPUT ? f->input_value[arg & ~VPPS_CELL_INPUT] : f->value[arg];
}

static void shape_of(const vpps_function *f, uint32_t arg, uint32_t *rows, uint32_t *cols) {
    const bool input = arg & VPPS_CELL_INPUT;
    *rows = input ? f->inputs[arg & ~VPPS_CELL_INPUT].rows : f->nodes[arg].s->rows;
    *cols = input ? f->inputs[arg & ~VPPS_CELL_INPUT].cols : f->nodes[arg].s->cols;
}

/* Sets the plain numbers that node t's instruction takes; each of `letters` stands for an operand (list in ops.def). */
static void set_numbers(const vpps_function *f, uint32_t t, const char *letters, vpps_run *run) {
    const vpps_function_node *node = &f->nodes[t];
    for (; *letters; letters++) {
        switch (*letters) {
        case 'f':
            run->f_source = node->imm_source;
            if (node->imm_source == VPPS_OPERAND_STATIC) run->f = vpps_bits_float(node->imm);
            break;
        case 'p':
            run->f_source = VPPS_OPERAND_STATIC;
            run->f = node->s->op == VPPS_OP_DROPOUT && !f->drops ? 0 : node->s->p;
            break;
        case 'o':
            run->f_source = VPPS_OPERAND_STATIC;
            run->f = 1;
            break;
        case 'n':
            for (uint32_t i = 0; i < node->n; i++) {
                const uint32_t d = axis_of(f, f->args[node->first + i]);
                run->average |= d > 0;
                *(d ? &run->lists[d] : &run->u) += 1;
            }
            if (run->average) break;
            run->u = 0;
            run->f_source = VPPS_OPERAND_STATIC;
            run->f = 1.0f / (float)node->n;
            break;
        case 'u':
            run->u_source = node->imm_source;
            run->u = node->imm;
            break;
        case 'e':
            run->e_add = f->dropout[t][0];
            for (uint32_t d = 1; d < VPPS_AXES; d++) run->lists[d] = f->dropout[t][d];
            run->axis = node->axis;
            break;
        default: break;
        }
    }
}

static uint32_t express_forward(vpps_function *f, vpps_expressions *s, uint32_t t) {
    const vpps_function_node *node = &f->nodes[t];
    const char *letters = vpps_ops[node->s->op].operands;
    const uint32_t *args = f->args + node->first;
    vpps_term *operands = malloc((node->n + 2u) * sizeof *operands);
    if (!operands) {
        s->failed = true;
        return VPPS_NONE;
    }
    vpps_run run = {.opcode = vpps_op_instructions[node->s->op].forward,
                    .rows = node->s->rows,
                    .cols = node->s->cols,
                    .operands = operands};
    set_numbers(f, t, letters, &run);
    const uint32_t every = node->over_list ? VPPS_ALL_MEMBERS | axis_of(f, args[0]) : 0;
    if (node->over_list) run.axis = node->axis;
    for (const char *letter = letters; *letter; letter++) {
        if (*letter == 'a' || *letter == 'v') operands[run.n++] = (vpps_term){value_of(f, args[0]), every};
        if (*letter == 'b') operands[run.n++] = (vpps_term){value_of(f, args[1]), 0};
        for (uint32_t i = run.n; *letter == '*' && i < node->n; i++) {
            /* args[i] may have a value per list node: an op with one result reads all values, an op with a result per node that node's */
            const uint32_t list = node->axis ? 0 : axis_of(f, args[i]);
            operands[run.n++] = (vpps_term){value_of(f, args[i]), list ? VPPS_ALL_MEMBERS | list : 0};
        }
    }
    const uint32_t x = vpps_express_run(s, &run);
    free(operands);
    return x;
}

static uint32_t express_affine(vpps_function *f, vpps_expressions *s, const vpps_function_node *node) {
    vpps_term *terms = vpps_express_room(s, node->n);
    const uint32_t rows = node->s->rows, cols = node->s->cols;
    uint32_t n = 0;
    if (!terms) return VPPS_NONE;
    for (uint32_t i = 0; i < node->n; i++)
        terms[n++] = vpps_plus(vpps_express_of(s, VPPS_X_PRODUCT, rows, cols, value_of(f, f->args[node->first + i]),
                                               f->matrices[node->s->first_matrix + i], 0));
    if (node->s->param != VPPS_NO_PARAM)
        terms[n++] = vpps_plus(vpps_express(s, VPPS_X_PARAMETER, rows, cols, 0, node->s->param, 0, 0));
    return vpps_express_sum(s, rows, cols, n, terms);
}

static uint32_t express_parts(vpps_function *f, vpps_expressions *s, const vpps_function_node *node) {
    const uint32_t *args = f->args + node->first, rows = node->s->rows, cols = node->s->cols;
    if (node->s->op == VPPS_OP_SLICE) return vpps_express_slice(s, rows, cols, value_of(f, args[0]), node->imm);
    if (node->over_list) return vpps_express_members(s, rows, cols, value_of(f, args[0]), axis_of(f, args[0]));
    vpps_term *terms = vpps_express_room(s, node->n);
    for (uint32_t i = 0; terms && i < node->n; i++) terms[i] = (vpps_term){value_of(f, args[i]), 0};
    return terms ? vpps_express_stack(s, rows, cols, node->n, terms) : VPPS_NONE;
}

static uint32_t express_decided(vpps_function *f, vpps_expressions *s, const vpps_function_node *node) {
    const bool argmax = node->s->op == VPPS_OP_ARGMAX;
    return vpps_express_of(s, argmax ? VPPS_X_ARGMAX : VPPS_X_ENTRY, node->s->rows, node->s->cols,
                           value_of(f, f->args[node->first]), argmax ? 0 : node->s->param, 0);
}

static uint32_t express_source(vpps_expressions *s, const vpps_function_node *node) {
    const uint32_t rows = node->s->rows, cols = node->s->cols;
    if (node->s->op == VPPS_OP_INPUT) return vpps_express(s, VPPS_X_DATA, rows, cols, 0, 0, 0, 0);
    if (node->s->op != VPPS_OP_LOOKUP) return vpps_express(s, VPPS_X_PARAMETER, rows, cols, 0, node->s->param, 0, 0);
    return vpps_express(s, VPPS_X_LOOKUP, rows, cols, 0, node->s->param, node->imm_source, node->imm);
}

void vpps_function_express(vpps_function *f, vpps_expressions *s) {
    for (uint32_t i = 0; i < f->n_inputs; i++)
        f->input_value[i] =
            vpps_express(s, VPPS_X_INPUT, f->inputs[i].rows, f->inputs[i].cols, f->inputs[i].axis, i, 0, 0);
    for (uint32_t t = 0; t < f->n_nodes; t++) {
        const vpps_function_node *node = &f->nodes[t];
        switch (vpps_ops[node->s->op].op_class) {
        case VPPS_CLASS_SOURCE: f->value[t] = express_source(s, node); break;
        case VPPS_CLASS_AFFINE: f->value[t] = express_affine(f, s, node); break;
        case VPPS_CLASS_PARTS: f->value[t] = express_parts(f, s, node); break;
        case VPPS_CLASS_DECIDED: f->value[t] = express_decided(f, s, node); break;
        default: f->value[t] = express_forward(f, s, t); break;
        }
    }
}

/* ---------------------------------------------------------------- derivatives */

typedef struct derivative {
    vpps_function *f;
    vpps_expressions *s;
    vpps_owed_list *owed;
    uint32_t t;
    const vpps_function_node *node;
    uint32_t d; /* the node's gradient */
} derivative;

/* Returns the formula: x if the vertex's scalar condition is > 0, so that the cell runs, else 0; no condition: x. */
static uint32_t if_taken(const derivative *d, uint32_t x) {
    if (d->f->holds == VPPS_NONE || x == VPPS_NONE || d->s->failed) return x;
    const vpps_expression *of = &d->s->at[x];
    return vpps_express_pair(d->s, VPPS_I_WHEN, of->rows, of->cols, x, value_of(d->f, d->f->holds));
}

/* Adds expression `part` to an argument's gradient; if the argument has one value per vertex, `part` one per node of a list: sums it up. */
static void add_gradient(const derivative *d, uint32_t arg, uint32_t part) {
    vpps_function *f = d->f;
    if (!axis_of(f, arg)) part = vpps_express_over_list(d->s, part, d->node->axis);
    uint32_t *to = arg & VPPS_CELL_INPUT ? &f->input_gradient[arg & ~VPPS_CELL_INPUT] : &f->gradient[arg];
    *to = vpps_express_add(d->s, *to, part);
}

/* Returns the gradient that the current node adds to its argument k, by the backward instruction of the node's op in ops.def. */
static uint32_t run_part(const derivative *d, uint32_t k) {
    vpps_function *f = d->f;
    const vpps_op_instruction_row *op = &vpps_op_instructions[d->node->s->op];
    const uint32_t which = vpps_ops[d->node->s->op].max_args == VPPS_MANY ? 0 : k;
    const uint32_t *args = f->args + d->node->first;
    vpps_term operands[8];
    vpps_run run = {.opcode = op->backward[which], .operands = operands};
    shape_of(f, args[k], &run.rows, &run.cols);
    set_numbers(f, d->t, op->backward_operands[which], &run);
    /* an op such as softmax over a list (an input of many nodes) takes all its numbers as one vector */
    const uint32_t list = d->node->over_list ? d->node->axis : 0;
    if (list) run.axis = (uint8_t)list;
    for (const char *letter = op->backward_operands[which]; *letter; letter++) {
        vpps_term *operand = &operands[run.n];
        *operand = (vpps_term){VPPS_NONE, list ? VPPS_ALL_MEMBERS | list : 0};
        switch (*letter) {
        case 'a': operand->x = value_of(f, args[0]); break;
        case 'b': operand->x = value_of(f, args[1]); break;
        case 'y': operand->x = f->value[d->t]; break;
        case 'd': operand->x = d->d; break;
        case 'w': *operand = (vpps_term){value_of(f, args[0]), k - 1}; break;
        case 'i':
            operand->x =
                vpps_express_of(d->s, VPPS_X_POSITIONS, d->node->s->rows, d->node->s->cols, f->value[d->t], 0, 0);
            break;
        case 'k':
            run.u_source = VPPS_OPERAND_POSITION;
            for (uint32_t i = 0; i < k; i++) {
                const uint32_t of = axis_of(f, args[i]);
                *(of ? &run.lists[of] : &run.u) += 1;
            }
            run.axis = (uint8_t)axis_of(f, args[k]);
            continue;
        default: continue;
        }
        run.n++;
    }
    const uint32_t part = vpps_express_run(d->s, &run);
    return vpps_spoils_zeros(run.opcode) ? if_taken(d, part) : part;
}

/* Returns the gradient of a weighted sum's weights: a dot product for each weight. */
static uint32_t weights_part(const derivative *d) {
    /* args[0]: the weights; args[1] to args[n]: the weighted values */
    const uint32_t n = d->node->n - 1, *args = d->f->args + d->node->first;
    vpps_term *dots = vpps_express_room(d->s, n);
    for (uint32_t i = 0; dots && i < n; i++)
        dots[i] = (vpps_term){vpps_express_pair(d->s, VPPS_I_DOT, 1, 1, d->d, value_of(d->f, args[1 + i])), 0};
    return dots ? if_taken(d, vpps_express_stack(d->s, n, 1, n, dots)) : VPPS_NONE;
}

static void differentiate_parts(const derivative *d) {
    const bool slice = d->node->s->op == VPPS_OP_SLICE;
    uint32_t row = slice ? d->node->imm : 0;
    for (uint32_t k = 0; k < d->node->n; k++) {
        const uint32_t arg = d->f->args[d->node->first + k];
        uint32_t rows, cols;
        shape_of(d->f, arg, &rows, &cols);
        uint32_t part = d->d;
        if (d->node->over_list) {
            part = vpps_express_member(d->s, rows, cols, d->d, axis_of(d->f, arg));
        } else if (!slice) {
            part = vpps_express_slice(d->s, rows, cols, d->d, row);
        } else if (rows != d->node->s->rows) {
            part = vpps_express_of(d->s, VPPS_X_PLACE, rows, cols, d->d, row, 0);
        }
        add_gradient(d, arg, part);
        row += rows;
    }
}

static void differentiate_affine(const derivative *d) {
    const vpps_signature *s = d->node->s;
    const uint32_t over = vpps_express_over_list(d->s, d->d, d->node->axis);
    if (is_trained(d->f, s->param)) vpps_owe(d->s, d->owed, VPPS_OWED_SUM, s->param, over);
    for (uint32_t i = 0; i < d->node->n; i++) {
        const uint32_t arg = d->f->args[d->node->first + i];
        const vpps_param matrix = d->f->matrices[s->first_matrix + i];
        /* axis 0: an argument per vertex, used for each node of a list: the nodes' gradients dy are added up first */
        const uint32_t axis = axis_of(d->f, arg), dy = axis ? d->d : over;
        if (is_trained(d->f, matrix)) vpps_owe_matrix(d->owed, matrix, if_taken(d, value_of(d->f, arg)), axis, dy);
        uint32_t rows, cols;
        shape_of(d->f, arg, &rows, &cols);
        uint32_t *to = arg & VPPS_CELL_INPUT ? &d->f->input_gradient[arg & ~VPPS_CELL_INPUT] : &d->f->gradient[arg];
        const uint32_t part = vpps_express_of(d->s, VPPS_X_PRODUCT_T, rows, cols, dy, matrix, 0);
        *to = vpps_express_add(d->s, *to, if_taken(d, part));
    }
}

static void differentiate_node(const derivative *d) {
    const vpps_signature *s = d->node->s;
    switch (vpps_ops[s->op].op_class) {
    case VPPS_CLASS_SOURCE:
        if (s->op == VPPS_OP_INPUT || !is_trained(d->f, s->param)) return;
        if (s->op == VPPS_OP_LOOKUP)
            vpps_owe(d->s, d->owed, VPPS_OWED_ENTRY, d->f->value[d->t], d->d);
        else
            vpps_owe(d->s, d->owed, VPPS_OWED_SUM, s->param, d->d);
        return;
    case VPPS_CLASS_AFFINE: differentiate_affine(d); return;
    case VPPS_CLASS_PARTS: differentiate_parts(d); return;
    case VPPS_CLASS_DECIDED: return; /* argmax and lookup_at run in inference only, and have no gradients */
    default:
        for (uint32_t k = 0; k < d->node->n; k++) {
            const bool weights = vpps_weighs(s->op) && k == 0;
            add_gradient(d, d->f->args[d->node->first + k], weights ? weights_part(d) : run_part(d, k));
        }
    }
}

void vpps_function_differentiate(vpps_function *f, vpps_expressions *s, uint32_t n_outputs, const uint32_t *outputs,
                                 uint64_t with_gradient, vpps_owed_list *owed) {
    for (uint32_t t = 0; t < f->n_nodes; t++) f->gradient[t] = VPPS_NONE;
    for (uint32_t i = 0; i < f->n_inputs; i++) f->input_gradient[i] = VPPS_NONE;
    for (uint32_t k = 0; k < n_outputs; k++) {
        if (!(with_gradient >> k & 1)) continue;
        const vpps_signature *of = f->nodes[outputs[k]].s;
        const uint32_t seed = vpps_express(s, VPPS_X_GRADIENT, of->rows, of->cols, 0, k, 0, 0);
        f->gradient[outputs[k]] = vpps_express_add(s, f->gradient[outputs[k]], seed);
    }
    for (uint32_t t = f->n_nodes; t-- > 0;) {
        const derivative d = {f, s, owed, t, &f->nodes[t], f->gradient[t]};
        if (d.d != VPPS_NONE) differentiate_node(&d);
    }
    for (uint32_t i = 0; i < f->n_inputs; i++) vpps_owe(s, owed, VPPS_OWED_INPUT, i, f->input_gradient[i]);
}
