/* expression.h - formulas as numbers: formulas that are equal, up to the algebra that compiling a cell may use, have equal numbers.
 *
 * The algebra is linear: sums are multisets of terms with factors. Grouping and order of terms do not matter, nor whether a factor is
 * applied in one step or two. Terms are not merged: x + x has two. A stack is the sum of its parts, each placed among zeros. A copy equals
 * its original. A slice of a slice is a slice of the original; a slice of one part of a stack is a slice of that part. The factors of an
 * elementwise product have no order, and their signs are the product's. Arithmetic on constants keeps its order; zeros are no terms; a
 * constant factor is a term's factor. Other formulas are equal only if they apply the same instruction to equal operands. */
#pragma once

#include "base/index.h"
#include "cell/cell.h"

typedef enum vpps_expression_kind {
    VPPS_X_INPUT, /* input number a[0] */
    /* an entry of lookup table a[0]; its number is a[2], if a[1] is VPPS_OPERAND_STATIC; or, if a[1] is
     * VPPS_OPERAND_INDEX, element a[2] of the integers that the caller gives the vertex */
    VPPS_X_LOOKUP,
    VPPS_X_DATA,
    VPPS_X_CONSTANT,  /* a constant; a[0] has the bits of the float */
    VPPS_X_PARAMETER, /* parameter number a[0]: a vector (as a bias, repeated in every column) or a matrix */
    VPPS_X_GRADIENT,  /* the gradient of the cell's output number a[0] */
    VPPS_X_SUM,       /* the sum of the expression's terms, each multiplied by its own factor */
    VPPS_X_OVER_LIST, /* the sum of the expression's only term over all nodes that the vertex's list input a[0] reads */
    VPPS_X_AVERAGE,   /* the only term, divided by a[0] + sum over list inputs d of a[d] * (nodes that d reads) */
    VPPS_X_PRODUCT,   /* the product of matrix parameter a[0] and the expression's only term */
    VPPS_X_PRODUCT_T, /* the product of the transpose of matrix parameter a[0] and the expression's only term */
    VPPS_X_RUN,       /* the result of instruction a[0] of isa.def; its operands are the expression's terms */
    VPPS_X_POSITIONS, /* for each element of the expression's only term, MAX_OF or MIN_OF: the operand it comes from */
    VPPS_X_ARGMAX,
    VPPS_X_ENTRY, /* a vector of lookup table number a[0]; the expression's only term gives the vector's number in the table */
    VPPS_X_SLICE, /* some rows of the expression's only term, from row a[0] on */
    VPPS_X_PLACE, /* zeros, except rows a[0] and following, which are the value of the expression's only term */
    /* the terms, one above the other; or, if the mark (vpps_term.mark) of the only term is VPPS_ALL_MEMBERS | d: the term's values for all
     * nodes that list input d reads, one above the other, then zeros up to the expression's number of rows */
    VPPS_X_STACK,
    VPPS_X_MEMBER /* for each node of a list input: its own rows of the expression's term, a stack of all nodes */
} vpps_expression_kind;

/* Expression number x as operand of another one. mark: in a sum, the factor of x (a float's bits); if only one element
 * of x is read, as a scalar, the element's number; if x is read for all nodes of list input d, VPPS_ALL_MEMBERS | d. */
typedef struct vpps_term {
    uint32_t x, mark;
} vpps_term;

#define VPPS_ALL_MEMBERS 0x80000000u

enum { VPPS_EXPRESSION_WORDS = 6 + VPPS_AXES };

typedef struct vpps_expression {
    uint8_t kind;
    uint8_t axis; /* 0: one value per vertex; d: one value per node of list d (input of many nodes) */
    uint32_t rows, cols;
    uint32_t a[VPPS_EXPRESSION_WORDS];
    uint32_t first, n; /* the expression's terms: terms[first] to terms[first + n - 1] */
} vpps_expression;

typedef struct vpps_expressions {
    vpps_expression *at;
    vpps_term *terms, *scratch;
    vpps_index numbers;
    uint32_t n;
    size_t n_terms;
    bool failed; /* whether memory ran out; numbers of all later expressions are VPPS_NONE */
} vpps_expressions;

/* Where an instruction's operand that is a plain number comes from. */
typedef enum vpps_operand_source {
    VPPS_OPERAND_NONE,
    VPPS_OPERAND_STATIC, /* the number in the program (vpps_run.u, or .f for a float), the same for all vertices */
    VPPS_OPERAND_INDEX,  /* number vpps_run.u of the integers that the caller gives the vertex */
    VPPS_OPERAND_OWN,    /* for a vertex that is one op: the integer that the graph has for the op, such as a class */
    /* an argument's position among an op's arguments (as for a maximum): vpps_run.u + sum over list inputs d of
     * vpps_run.lists[d] * (nodes that d reads) + position in its own list */
    VPPS_OPERAND_POSITION
} vpps_operand_source;

typedef struct vpps_run {
    uint32_t opcode;
    uint8_t f_source, u_source;
    float f;
    uint32_t u;
    /* dropout: number of elements, per vertex, that earlier instructions have under dropout; `lists` has their numbers per node of a list */
    uint32_t e_add;
    /* for each node that list input d reads, lists[d] is added to u (a count or position of arguments) or, for dropout, to e_add */
    uint32_t lists[VPPS_AXES];
    bool average; /* SUM, SCALE: divide by the argument count: u, plus lists[d] for each node that list input d reads */
    /* d > 0: one result for each node that the vertex's list d reads; 0: as the operands: for each node of their list if one has it, else for the vertex */
    uint8_t axis;
    uint32_t rows, cols;
    vpps_term *operands; /* the operands, in the order in which isa.def lists the instruction's operands */
    uint32_t n;
} vpps_run;

void vpps_expressions_clear(vpps_expressions *s);
void vpps_expressions_free(vpps_expressions *s);

/* Returns an array of n terms to fill. Later calls, also of vpps_express_over_list and vpps_express_run, may reuse it. NULL: no memory. */
vpps_term *vpps_express_room(vpps_expressions *s, uint32_t n);

/* vpps_express returns the number of an expression without terms; vpps_express_of, the number of an expression with the single term x. */
uint32_t vpps_express(vpps_expressions *s, vpps_expression_kind kind, uint32_t rows, uint32_t cols, uint32_t axis,
                      uint32_t a0, uint32_t a1, uint32_t a2);
uint32_t vpps_express_of(vpps_expressions *s, vpps_expression_kind kind, uint32_t rows, uint32_t cols, uint32_t x,
                         uint32_t a0, uint32_t a1);

/* Returns the sum of n terms. Terms whose x is VPPS_NONE are left out; if all terms are left out, returns VPPS_NONE. */
uint32_t vpps_express_sum(vpps_expressions *s, uint32_t rows, uint32_t cols, uint32_t n, const vpps_term *terms);

/* Returns the sum of expressions a and b; if one is VPPS_NONE, returns the other. */
uint32_t vpps_express_add(vpps_expressions *s, uint32_t a, uint32_t b);

/* Returns the sum of x over all nodes that the vertex's list input `axis` reads; for axis 0 (no list), x itself. */
uint32_t vpps_express_over_list(vpps_expressions *s, uint32_t x, uint32_t axis);
/* Returns the slice of expression x that has `rows` rows and begins at row `first`. */
uint32_t vpps_express_slice(vpps_expressions *s, uint32_t rows, uint32_t cols, uint32_t x, uint32_t first);
uint32_t vpps_express_stack(vpps_expressions *s, uint32_t rows, uint32_t cols, uint32_t n, const vpps_term *terms);
/* vpps_express_members stacks all members of list x, then zeros up to `rows` rows. vpps_express_member takes a member's rows of a stack. */
uint32_t vpps_express_members(vpps_expressions *s, uint32_t rows, uint32_t cols, uint32_t x, uint32_t axis);
uint32_t vpps_express_member(vpps_expressions *s, uint32_t rows, uint32_t cols, uint32_t x, uint32_t axis);
uint32_t vpps_express_run(vpps_expressions *s, const vpps_run *run);
/* Returns the expression of an instruction that takes operands a and b, and no float or integer. */
uint32_t vpps_express_pair(vpps_expressions *s, uint32_t opcode, uint32_t rows, uint32_t cols, uint32_t a, uint32_t b);

static inline vpps_term vpps_plus(uint32_t x) { return (vpps_term){x, 0x3f800000u}; /* factor 1: 0x3f800000 */ }
