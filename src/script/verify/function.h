/* function.h - what a vertex of the graph computes: a recorded cell, or one op; and its derivative. */
#pragma once

#include "script/verify/expression.h"

typedef struct vpps_function_input {
    uint32_t rows, cols, axis;
} vpps_function_input;

typedef struct vpps_function_node {
    const vpps_signature *s;
    uint32_t first, n; /* in args */
    uint32_t imm;
    uint8_t imm_source; /* vpps_operand_source: STATIC, INDEX, OWN */
    uint8_t axis;       /* see vpps_cell_data */
    bool over_list;
} vpps_function_node;

typedef struct vpps_function {
    const vpps_graph *g;
    const vpps_param *matrices; /* that the signatures of its affine nodes count in */
    bool drops, fixed;          /* dropout is on; no parameter is trained */
    vpps_function_input inputs[VPPS_CELL_MOST];
    uint32_t n_inputs, n_nodes;
    vpps_function_node *nodes;
    uint32_t *args;                 /* a node, or VPPS_CELL_INPUT | input */
    uint32_t *value;                /* of each node, an expression */
    uint64_t *reads;                /* inputs that each node is made of */
    uint8_t *trained;               /* is a parameter that is trained in it, inputs aside? */
    uint32_t *gradient;             /* of each node, once it is differentiated; VPPS_NONE: it has none */
    uint32_t (*dropout)[VPPS_AXES]; /* of each node: elements before it of a vertex, and for each member of its lists */
    uint64_t dropout_elems[VPPS_AXES]; /* of all nodes */
    uint32_t input_value[VPPS_CELL_MOST], input_gradient[VPPS_CELL_MOST];
} vpps_function;

/* Gradients that a vertex must make: what it adds to those of its inputs, of entries, of vectors and of matrices. */
typedef enum vpps_owed_kind { VPPS_OWED_INPUT, VPPS_OWED_ENTRY, VPPS_OWED_SUM, VPPS_OWED_MATRIX } vpps_owed_kind;

typedef struct vpps_owed {
    uint32_t kind, key; /* key: input; expression of the entry; parameter */
    uint32_t x;         /* MATRIX: dy x^T is added, */
    uint32_t axis;      /* for each item of this axis */
    uint32_t dy;
} vpps_owed;

typedef struct vpps_owed_list {
    vpps_owed *at;
    uint32_t n;
    bool failed;
} vpps_owed_list;

/* Adds to what is owed; gradients of one input, entry or vector are summed. */
void vpps_owe(vpps_expressions *s, vpps_owed_list *list, vpps_owed_kind kind, uint32_t key, uint32_t dy);
void vpps_owe_matrix(vpps_owed_list *list, vpps_param matrix, uint32_t x, uint32_t axis, uint32_t dy);

/* Puts a list into an order of its own, so that equal ones are equal. */
void vpps_owed_sort(vpps_owed_list *list);

/* The function of a recorded cell, or of one op over inputs of these shapes (already in f->inputs). False: out of memory. */
bool vpps_function_of_cell(vpps_function *f, const vpps_graph *g, const vpps_cell_data *cell);
bool vpps_function_of_op(vpps_function *f, const vpps_graph *g, const vpps_signature *s, uint32_t imm);
void vpps_function_free(vpps_function *f);

/* Makes f->value: the expression of each node. */
void vpps_function_express(vpps_function *f, vpps_expressions *s);

/* The gradients that a vertex owes when the node of outputs[k] gets gradient k. */
void vpps_function_differentiate(vpps_function *f, vpps_expressions *s, uint32_t n_outputs, const uint32_t *outputs,
                                 uint64_t with_gradient, vpps_owed_list *owed);
