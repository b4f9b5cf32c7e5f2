/* expression.h - formulas as numbers: equal numbers, equal formulas, up to the algebra that compiling a cell may use.
 *
 * That algebra is linear: sums are multisets of terms with factors, so it does not matter how they are grouped, in which
 * order they are added, or whether a factor is applied in one step or two. Terms are not merged: x + x has two. A stack is the
 * sum of its parts, each placed among zeros. Copies are what they copy, and a slice of a slice, or of a part of a stack, is a
 * slice of that. The factors of an elementwise product have no order, and their signs are the product's. Arithmetic on constants
 * is done, in the order in which it is written; zeros are no terms; a constant factor is a term's factor. Everything else is
 * equal only when it is the same instruction on equal operands.
 */
#pragma once

#include "base/index.h"
#include "cell/cell.h"

typedef enum vpps_expression_kind {
    VPPS_X_INPUT,  /* a[0]: number */
    VPPS_X_LOOKUP, /* a: table, vpps_word_kind, value */
    VPPS_X_DATA,
    VPPS_X_CONSTANT,  /* a[0]: bits of the number */
    VPPS_X_PARAMETER, /* a[0]: a vector, as a bias in every column; or a matrix */
    VPPS_X_GRADIENT,  /* of output a[0] */
    VPPS_X_SUM,       /* of its terms, each times a factor */
    VPPS_X_OVER_LIST, /* the sum over the members of a list of the vertex, whose axis is a[0] */
    VPPS_X_AVERAGE,   /* divided by a[0], and a[d] for each member of a list */
    VPPS_X_PRODUCT,   /* matrix a[0] times the term */
    VPPS_X_PRODUCT_T, /* its transpose times the term */
    VPPS_X_RUN,       /* a: see vpps_run */
    VPPS_X_POSITIONS, /* that the term, a MAX_OF or MIN_OF, found */
    VPPS_X_ARGMAX,
    VPPS_X_ENTRY, /* of table a[0], as the term says */
    VPPS_X_SLICE, /* rows of the term from a[0] on */
    VPPS_X_PLACE, /* the term from row a[0] on, zero elsewhere */
    VPPS_X_STACK, /* a term marked VPPS_ALL_MEMBERS: of a list's members, and zeros below them */
    VPPS_X_MEMBER /* the member's rows of the term, such a stack */
} vpps_expression_kind;

/* A term of a sum, marked by the bits of its factor; or an operand, marked by the element that is read, or by VPPS_ALL_MEMBERS and the axis
 * of a list. */
typedef struct vpps_term {
    uint32_t x, mark;
} vpps_term;

#define VPPS_ALL_MEMBERS 0x80000000u

enum { VPPS_EXPRESSION_WORDS = 6 + VPPS_AXES };

typedef struct vpps_expression {
    uint8_t kind;
    uint8_t axis; /* not 0: the expression has another value for each member of this list of the vertex */
    uint32_t rows, cols;
    uint32_t a[VPPS_EXPRESSION_WORDS];
    uint32_t first, n; /* terms */
} vpps_expression;

typedef struct vpps_expressions {
    vpps_expression *at;
    vpps_term *terms, *scratch;
    vpps_index numbers;
    uint32_t n;
    size_t n_terms;
    bool failed; /* out of memory; all numbers are VPPS_NONE from then on */
} vpps_expressions;

/* An instruction's operands that are no values. */
typedef enum vpps_operand_source {
    VPPS_OPERAND_NONE,
    VPPS_OPERAND_STATIC,
    VPPS_OPERAND_INDEX,   /* pulled index number `u` */
    VPPS_OPERAND_OWN,     /* the number of the vertex's one op */
    VPPS_OPERAND_POSITION /* u, and lists[d] for each member of a list, and the member's own number in a list's axis */
} vpps_operand_source;

typedef struct vpps_run {
    uint32_t opcode;
    uint8_t f_source, u_source;
    float f;
    uint32_t u;
    uint32_t e_add;            /* DROPOUT: elements before it, and lists[d] for each member of a list */
    uint32_t lists[VPPS_AXES]; /* the first is not used */
    bool average;              /* SUM, SCALE: f is 1 / (u, and lists[d] for each member of a list) */
    uint8_t axis;              /* where it does not follow from the operands: DROPOUT, positions */
    uint32_t rows, cols;
    vpps_term *operands; /* in the order of the instruction's */
    uint32_t n;
} vpps_run;

void vpps_expressions_clear(vpps_expressions *s);
void vpps_expressions_free(vpps_expressions *s);

/* Room for n terms, valid until the next call; NULL: out of memory. */
vpps_term *vpps_express_room(vpps_expressions *s, uint32_t n);

/* The number of an expression without terms, and of one of one term. */
uint32_t vpps_express(vpps_expressions *s, vpps_expression_kind kind, uint32_t rows, uint32_t cols, uint32_t axis,
                      uint32_t a0, uint32_t a1, uint32_t a2);
uint32_t vpps_express_of(vpps_expressions *s, vpps_expression_kind kind, uint32_t rows, uint32_t cols, uint32_t x,
                         uint32_t a0, uint32_t a1);

/* The sum of n terms. Terms whose x is VPPS_NONE are left out; if all are, the sum is VPPS_NONE. */
uint32_t vpps_express_sum(vpps_expressions *s, uint32_t rows, uint32_t cols, uint32_t n, const vpps_term *terms);

/* a + b; an operand that is VPPS_NONE is left out. */
uint32_t vpps_express_add(vpps_expressions *s, uint32_t a, uint32_t b);

/* The sum of x over the members of the vertex's list; with axis 0 x itself. */
uint32_t vpps_express_over_list(vpps_expressions *s, uint32_t x, uint32_t axis);
/* `rows` of x from row `first` on. */
uint32_t vpps_express_slice(vpps_expressions *s, uint32_t rows, uint32_t cols, uint32_t x, uint32_t first);
uint32_t vpps_express_stack(vpps_expressions *s, uint32_t rows, uint32_t cols, uint32_t n, const vpps_term *terms);
/* The members of list x, and zeros below them; the rows of a member in x, which is such a stack. */
uint32_t vpps_express_members(vpps_expressions *s, uint32_t rows, uint32_t cols, uint32_t x, uint32_t axis);
uint32_t vpps_express_member(vpps_expressions *s, uint32_t rows, uint32_t cols, uint32_t x, uint32_t axis);
uint32_t vpps_express_run(vpps_expressions *s, const vpps_run *run);

static inline vpps_term vpps_plus(uint32_t x) { return (vpps_term){x, 0x3f800000u}; /* 1.0 */ }
