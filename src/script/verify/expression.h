/* expression.h - formulas as numbers: formulas that are equal, up to the algebra that compiling a cell may use, have equal numbers.
 *
 * The algebra is linear: sums are multisets of terms with factors. Grouping and order of terms do not matter, nor whether a factor is
 * applied in one step or two. Terms are not merged: x + x has two. A stack is the sum of its parts, each placed among zeros. A copy is
 * its original; a slice of a slice, or of a part of a stack, is a slice of that. The factors of an elementwise product have no order,
 * and their signs are the product's. Arithmetic on constants is done in the order in which it is written; zeros are no terms; a constant
 * factor is a term's factor. All else is equal only if it is the same instruction on equal operands.
 */
#pragma once

#include "base/index.h"
#include "cell/cell.h"

typedef enum vpps_expression_kind {
    VPPS_X_INPUT,  /* input number a[0] */
    VPPS_X_LOOKUP, /* entry of a table; a: table, vpps_word_kind, value */
    VPPS_X_DATA,
    VPPS_X_CONSTANT,  /* the number whose bits are a[0] */
    VPPS_X_PARAMETER, /* parameter a[0]: a vector, as a bias in every column; or a matrix */
    VPPS_X_GRADIENT,  /* the gradient of output a[0] */
    VPPS_X_SUM,       /* a sum of terms, each times a factor */
    VPPS_X_OVER_LIST, /* the sum of a term over the members of the vertex's list with axis a[0] */
    VPPS_X_AVERAGE,   /* a term divided by a[0] + a[d] for each member of list d */
    VPPS_X_PRODUCT,   /* matrix a[0] times the term */
    VPPS_X_PRODUCT_T, /* the transpose of matrix a[0] times the term */
    VPPS_X_RUN,       /* an instruction with its operands and numbers, see vpps_run */
    VPPS_X_POSITIONS, /* the positions that the term, a MAX_OF or MIN_OF, found */
    VPPS_X_ARGMAX,
    VPPS_X_ENTRY, /* the entry of table a[0] whose number is the term */
    VPPS_X_SLICE, /* rows of the term from a[0] on */
    VPPS_X_PLACE, /* the term from row a[0] on, zero elsewhere */
    /* terms on top of each other; a term marked VPPS_ALL_MEMBERS: a list's members, and zeros below them */
    VPPS_X_STACK,
    VPPS_X_MEMBER /* a member's rows of the term, a stack of members */
} vpps_expression_kind;

/* A term of a sum, marked by its factor's bits; or an operand, marked by the element that is read, or by VPPS_ALL_MEMBERS and an axis. */
typedef struct vpps_term {
    uint32_t x, mark;
} vpps_term;

#define VPPS_ALL_MEMBERS 0x80000000u

enum { VPPS_EXPRESSION_WORDS = 6 + VPPS_AXES };

typedef struct vpps_expression {
    uint8_t kind;
    uint8_t axis; /* not 0: the expression has a value for each member of this list of the vertex */
    uint32_t rows, cols;
    uint32_t a[VPPS_EXPRESSION_WORDS];
    uint32_t first, n; /* the expression's terms: n, from `first` on in `terms` */
} vpps_expression;

typedef struct vpps_expressions {
    vpps_expression *at;
    vpps_term *terms, *scratch;
    vpps_index numbers;
    uint32_t n;
    size_t n_terms;
    bool failed; /* out of memory; all later numbers are VPPS_NONE */
} vpps_expressions;

/* The source of a number among an instruction's operands. */
typedef enum vpps_operand_source {
    VPPS_OPERAND_NONE,
    VPPS_OPERAND_STATIC,
    VPPS_OPERAND_INDEX,   /* pulled index number `u` */
    VPPS_OPERAND_OWN,     /* the integer of the vertex's only op */
    VPPS_OPERAND_POSITION /* u + lists[d] for each member of list d; and with a list axis + the member's number */
} vpps_operand_source;

typedef struct vpps_run {
    uint32_t opcode;
    uint8_t f_source, u_source;
    float f;
    uint32_t u;
    uint32_t e_add;            /* DROPOUT: elements before it: this number + lists[d] for each member of list d */
    uint32_t lists[VPPS_AXES]; /* numbers for each list's members (lists[0] is not used) */
    bool average;              /* SUM, SCALE: f is 1 / (u + lists[d] for each member of list d) */
    uint8_t axis;              /* the axis, for DROPOUT and positions, whose operands do not tell it */
    uint32_t rows, cols;
    vpps_term *operands; /* operands, in the instruction's order */
    uint32_t n;
} vpps_run;

void vpps_expressions_clear(vpps_expressions *s);
void vpps_expressions_free(vpps_expressions *s);

/* Returns room for n terms, valid until the next call, vpps_express_over_list, or WHEN by vpps_express_run; NULL: out of memory. */
vpps_term *vpps_express_room(vpps_expressions *s, uint32_t n);

/* Return the number of an expression without terms, and of an expression with one term. */
uint32_t vpps_express(vpps_expressions *s, vpps_expression_kind kind, uint32_t rows, uint32_t cols, uint32_t axis,
                      uint32_t a0, uint32_t a1, uint32_t a2);
uint32_t vpps_express_of(vpps_expressions *s, vpps_expression_kind kind, uint32_t rows, uint32_t cols, uint32_t x,
                         uint32_t a0, uint32_t a1);

/* Returns the sum of n terms, leaving out terms whose x is VPPS_NONE; if all are, the sum is VPPS_NONE. */
uint32_t vpps_express_sum(vpps_expressions *s, uint32_t rows, uint32_t cols, uint32_t n, const vpps_term *terms);

/* Returns a + b; an operand that is VPPS_NONE is left out. */
uint32_t vpps_express_add(vpps_expressions *s, uint32_t a, uint32_t b);

/* Returns the sum of x over the members of the vertex's list with this axis; for axis 0 x itself. */
uint32_t vpps_express_over_list(vpps_expressions *s, uint32_t x, uint32_t axis);
/* Returns `rows` rows of x, beginning at row `first`. */
uint32_t vpps_express_slice(vpps_expressions *s, uint32_t rows, uint32_t cols, uint32_t x, uint32_t first);
uint32_t vpps_express_stack(vpps_expressions *s, uint32_t rows, uint32_t cols, uint32_t n, const vpps_term *terms);
/* Return the stack of list x's members with zeros below them, and the rows of one member in such a stack x. */
uint32_t vpps_express_members(vpps_expressions *s, uint32_t rows, uint32_t cols, uint32_t x, uint32_t axis);
uint32_t vpps_express_member(vpps_expressions *s, uint32_t rows, uint32_t cols, uint32_t x, uint32_t axis);
uint32_t vpps_express_run(vpps_expressions *s, const vpps_run *run);

static inline vpps_term vpps_plus(uint32_t x) { return (vpps_term){x, 0x3f800000u}; /* the bits of 1.0 */ }
