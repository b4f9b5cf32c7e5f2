/* meaning.h - what operations, instructions and optimisers mean, in double precision, and which numbers to try them on: the one oracle
 * that every test of them asks. Operations' formulas are in meanings.def; an instruction means what the operation does whose row in
 * ops.def names it. Nothing of the engine's arithmetic is shared. */
#pragma once

#include "isa/isa.h"

/* Which values an argument may have. Finite differences must stay away from kinks and poles. */
typedef enum meaning_domain {
    ANY,
    AWAY,     /* from zero */
    POSITIVE, /* positive, and not near zero */
    INSIDE,   /* (0, 1) */
    ROW,      /* a row's number plus a fraction */
    GRID /* for finite differences: multiples of 0.4, plus 0.1 k for argument k, so that no two are near each other */
} meaning_domain;

enum { VECTORS = 1, MATRICES = 2 };

/* How an operation is tested: see meanings.def. */
typedef struct meaning_case {
    meaning_domain a, b;
    int shapes;
    double noise;
} meaning_case;

extern const meaning_case meaning_cases[VPPS_OP_COUNT];

/* The library's function, if the operation takes only nodes according to ops.def; else all are NULL. */
typedef struct meaning_call {
    vpps_node (*unary)(vpps_graph *, vpps_node);
    vpps_node (*list)(vpps_graph *, vpps_node); /* beside `unary` */
    vpps_node (*binary)(vpps_graph *, vpps_node, vpps_node);
    vpps_node (*many)(vpps_graph *, uint32_t, const vpps_node *);
} meaning_call;

extern const meaning_call meaning_calls[VPPS_OP_COUNT];

/* What a formula reads; members that it does not read may be NULL. */
typedef struct meaning_operands {
    const double *a, *b, *y, *d; /* argument 0 and 1, the result, its gradient */
    const double *const *list;   /* the list's arguments */
    const uint32_t *list_rows;   /* rows of each argument, if they differ */
    uint32_t n_list;
    const double *weights;   /* weights of the list's members; NULL: 1 each */
    const double *positions; /* of the list's greatest or least elements; NULL: they are looked for */
    uint32_t n;              /* number of elements of whole vectors */
    double f;                /* number F; SUM: 1 if no instruction sets it */
    uint32_t u;              /* K */
    uint64_t key;            /* key of the dropout, and the number of the first element */
    uint32_t e;
    uint32_t rows, inner,
        cols;     /* shape of the result; of a product: rows x inner times inner x cols; of a tensor's rows: `inner` */
    double terms; /* result: the sum of the sizes of the terms of the latest element */
} meaning_operands;

/* Compute elements 0 to n - 1 of the result, or of an argument's gradient; also of `terms`, unless NULL. */
void meaning_forward(vpps_op op, meaning_operands *o, uint32_t n, double *to, double *terms);
void meaning_gradient(vpps_op op, uint32_t argument, meaning_operands *o, uint32_t n, double *to, double *terms);
/* Returns the allowed error that is not relative to the result, for argument a[0]. */
double meaning_slack(vpps_op op, double a, double f);

/* A matrix of the model, stored row after row. see: returns what a product reads of an operand; NULL: the operand itself. */
typedef struct meaning_matrix {
    const double *elems;
    uint32_t rows, cols;
    double (*see)(void *context, double operand);
    void *context;
} meaning_matrix;

/* Add the matrix times x to y; the transpose of its rows [first, end) times these elements of d to dx; d times x to the gradient dw. */
void meaning_times(const meaning_matrix *w, const double *x, double *y);
void meaning_transposed_times(const meaning_matrix *w, uint32_t first, uint32_t end, const double *d, double *dx);
void meaning_outer(const meaning_matrix *w, const double *d, const double *x, double *dw);

/* Where an instruction's meaning comes from: an operation's forward pass (gradient < 0), or the gradient of its argument 0 or 1. Operand k of the
 * instruction (a letter in isa.def) is the operation's roles[k]: a b y d, or i, the positions. */
typedef struct meaning_use {
    vpps_op op;
    int gradient;
    const char *roles;
} meaning_use;

meaning_use meaning_of(vpps_opcode opcode);
void meaning_instruction(vpps_opcode opcode, meaning_operands *o, uint32_t n, double *to, double *terms);
/* Returns the position that MAX_OF or MIN_OF finds for element i. */
uint32_t meaning_position(vpps_opcode opcode, const meaning_operands *o, uint32_t i);
/* Returns the place of the operand with this role; NULL: the role has no place. */
const double **meaning_place(meaning_operands *o, char role);
/* Sets the range [*low, *high) from which tests of instructions draw operands with this role. */
void meaning_range(vpps_opcode opcode, char role, float *low, float *high);

/* Returns whether dropout with probability p keeps element e. */
static inline bool dropout_keeps(uint64_t key, uint32_t e, float p) {
    /* mixes the bits (Wellons 2018, "lowbias32") by instructions that wide vectors and GPUs run at full speed */
    uint32_t x = e ^ (uint32_t)key;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    x = (x ^ (x >> 16)) + (uint32_t)(key >> 32);
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = x ^ (x >> 15);
    return (float)(x >> 8) * 0x1p-24f >= p;
}

/* Makes the optimiser's step of one weight w with gradient g by the formulas of vpps.h. s0, s1: its state. left: 1 - beta^t for both betas. */
void meaning_step(const vpps_optimizer *o, const double left[2], double g, double *w, double *s0, double *s1);
