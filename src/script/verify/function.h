/* function.h - writes what a vertex should compute (the user's cell, or one op), and its gradients, as formulas. */
#pragma once

#include "script/verify/expression.h"

typedef struct vpps_function_input {
    uint32_t rows, cols, axis;
} vpps_function_input;

typedef struct vpps_function_node {
    const vpps_signature *s;
    uint32_t first, n; /* the node's arguments: args[first] to args[first + n - 1] */
    uint32_t imm;
    uint8_t imm_source; /* the op's integer is imm (STATIC), number imm of the vertex's (INDEX) or in the graph (OWN) */
    uint8_t axis;       /* 0: one value per vertex; d: one value per node of list d (input of many nodes) */
    bool over_list;
} vpps_function_node;

typedef struct vpps_function {
    const vpps_graph *g;
    /* the matrices of all `affine` nodes; s->first_matrix in a node s is the index of its first matrix */
    const vpps_param *matrices;
    bool drops, fixed; /* drops: whether dropout is on; fixed: whether no parameter is trained */
    vpps_function_input inputs[VPPS_CELL_MOST];
    uint32_t n_inputs, n_nodes;
    /* the value that decides whether a vertex runs (if it is > 0), numbered as in `args`; VPPS_NONE: all vertices run */
    uint32_t holds;
    vpps_function_node *nodes;
    uint32_t *args;  /* the nodes' arguments: number of a node, or VPPS_CELL_INPUT | number of an input */
    uint32_t *value; /* for each node: number of the expression of its value */
    uint64_t *reads; /* for each node: inputs that it depends on, as bits */
    /* for each node: whether it depends on a trained parameter of the cell (not through inputs) */
    uint8_t *trained;
    uint32_t *gradient; /* for each node: expression of its gradient; VPPS_NONE: it has none */
    /* for each node: dropout elements in earlier nodes: [0] per vertex; [d] per list member (node that list d reads) */
    uint32_t (*dropout)[VPPS_AXES];
    /* dropout elements in all nodes: [0] number per vertex; [d] per list member (node that list input d reads) */
    uint64_t dropout_elems[VPPS_AXES];
    uint32_t input_value[VPPS_CELL_MOST], input_gradient[VPPS_CELL_MOST];
} vpps_function;

/* Kinds of gradients that a vertex computes: of an input, a table's entry, a vector such as a bias (a SUM of dy), a matrix (dy x^T). */
typedef enum vpps_owed_kind { VPPS_OWED_INPUT, VPPS_OWED_ENTRY, VPPS_OWED_SUM, VPPS_OWED_MATRIX } vpps_owed_kind;

typedef struct vpps_owed {
    uint32_t kind, key; /* kind (vpps_owed_kind) and number of what gets the gradient; of an entry: its expression's */
    uint32_t x;         /* if kind is MATRIX, whose gradient is dy x^T: number of the expression of vector x */
    uint32_t axis;      /* if kind is MATRIX: 0: one product dy x^T; d: a sum of one for each node of list input d */
    uint32_t dy;
} vpps_owed;

typedef struct vpps_owed_list {
    vpps_owed *at;
    uint32_t n;
    bool failed;
} vpps_owed_list;

/* Add a gradient to the list of the gradients that a vertex computes. Gradients of the same input, table entry or vector are added up. */
void vpps_owe(vpps_expressions *s, vpps_owed_list *list, vpps_owed_kind kind, uint32_t key, uint32_t dy);
void vpps_owe_matrix(vpps_owed_list *list, vpps_param matrix, uint32_t x, uint32_t axis, uint32_t dy);

/* Sorts a list of gradients that a vertex computes, so that two lists can be compared. */
void vpps_owed_sort(vpps_owed_list *list);

/* Fill *f with the nodes of a cell as defined, or with one op, whose inputs the caller has set in *f. False: error. */
bool vpps_function_of_cell(vpps_function *f, const vpps_graph *g, const vpps_cell_data *cell);
bool vpps_function_of_op(vpps_function *f, const vpps_graph *g, const vpps_signature *s, uint32_t imm);
void vpps_function_free(vpps_function *f);

/* Sets f->value to the expressions of all nodes. */
void vpps_function_express(vpps_function *f, vpps_expressions *s);

/* Backpropagates, in formulas, from the outputs whose bits are set in with_gradient. outputs[k]: the node of output k.
 * *owed gets the gradients for inputs, table entries and parameters. */
void vpps_function_differentiate(vpps_function *f, vpps_expressions *s, uint32_t n_outputs, const uint32_t *outputs,
                                 uint64_t with_gradient, vpps_owed_list *owed);
