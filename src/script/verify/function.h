/* function.h - the function that a vertex of the graph computes, a recorded cell or one op, and its derivative. */
#pragma once

#include "script/verify/expression.h"

typedef struct vpps_function_input {
    uint32_t rows, cols, axis;
} vpps_function_input;

typedef struct vpps_function_node {
    const vpps_signature *s;
    uint32_t first, n; /* the node's n arguments, beginning with number `first` in `args` */
    uint32_t imm;
    uint8_t imm_source; /* where the integer `imm` comes from (vpps_operand_source): STATIC, INDEX or OWN */
    uint8_t axis;       /* as in vpps_cell_data */
    bool over_list;
} vpps_function_node;

typedef struct vpps_function {
    const vpps_graph *g;
    const vpps_param *matrices; /* matrices of the affine nodes; the nodes' signatures have indices in this array */
    bool drops, fixed;          /* whether dropout is on; whether no parameter is trained */
    vpps_function_input inputs[VPPS_CELL_MOST];
    uint32_t n_inputs, n_nodes;
    uint32_t holds; /* the value (as in args) that is greater than 0 where the cell's condition holds, or VPPS_NONE */
    vpps_function_node *nodes;
    uint32_t *args;     /* arguments of nodes: numbers of nodes, or VPPS_CELL_INPUT | number of an input */
    uint32_t *value;    /* for each node: the number of its value's expression */
    uint64_t *reads;    /* for each node: the inputs that it depends on, as bits */
    uint8_t *trained;   /* for each node: whether it depends on a trained parameter of this vertex */
    uint32_t *gradient; /* for each node: the expression of its gradient; VPPS_NONE: it has none */
    /* for each node and axis: number of dropout elements of the preceding nodes */
    uint32_t (*dropout)[VPPS_AXES];
    uint64_t dropout_elems[VPPS_AXES]; /* for each axis: number of dropout elements of all nodes */
    uint32_t input_value[VPPS_CELL_MOST], input_gradient[VPPS_CELL_MOST];
} vpps_function;

/* Kinds of gradients that a vertex must contribute: to its inputs, to entries of lookup tables, to vectors and to matrices. */
typedef enum vpps_owed_kind { VPPS_OWED_INPUT, VPPS_OWED_ENTRY, VPPS_OWED_SUM, VPPS_OWED_MATRIX } vpps_owed_kind;

typedef struct vpps_owed {
    uint32_t kind, key; /* number of the input; expression of the table entry; or number of the parameter */
    uint32_t x;         /* MATRIX: expression x of the gradient dy x^T */
    uint32_t axis;      /* MATRIX: the gradient is summed over the items of this axis */
    uint32_t dy;
} vpps_owed;

typedef struct vpps_owed_list {
    vpps_owed *at;
    uint32_t n;
    bool failed;
} vpps_owed_list;

/* Add a gradient to those that a vertex owes; gradients of one input, table entry or vector are summed. */
void vpps_owe(vpps_expressions *s, vpps_owed_list *list, vpps_owed_kind kind, uint32_t key, uint32_t dy);
void vpps_owe_matrix(vpps_owed_list *list, vpps_param matrix, uint32_t x, uint32_t axis, uint32_t dy);

/* Sorts a list of gradients, so that equal lists become identical. */
void vpps_owed_sort(vpps_owed_list *list);

/* Make the function of a recorded cell, or of one op whose inputs' shapes are in f->inputs. False: out of memory. */
bool vpps_function_of_cell(vpps_function *f, const vpps_graph *g, const vpps_cell_data *cell);
bool vpps_function_of_op(vpps_function *f, const vpps_graph *g, const vpps_signature *s, uint32_t imm);
void vpps_function_free(vpps_function *f);

/* Sets f->value: the expression of each node. */
void vpps_function_express(vpps_function *f, vpps_expressions *s);

/* Lists the gradients that a vertex owes if, for each k, the node outputs[k] gets the gradient of output k. */
void vpps_function_differentiate(vpps_function *f, vpps_expressions *s, uint32_t n_outputs, const uint32_t *outputs,
                                 uint64_t with_gradient, vpps_owed_list *owed);
