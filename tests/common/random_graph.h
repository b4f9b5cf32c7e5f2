/* random_graph.h - random models and graphs over all operations, described by a list of choices.
 *
 * A case is a list of steps, and any list of steps is a valid case: a step that needs an operand of some shape takes one that exists or
 * makes one. So a case that shows a failure can be made smaller by dropping steps, making sizes smaller and choices simpler while it still
 * fails (as in MacIver's Hypothesis, 2019), and then printed as a program.
 *
 * Numbers stay tame: every node carries an estimate of its size, an operand that is too large goes through a tanh or a scaling first, and
 * logarithms, roots and quotients get arguments away from 0. */
#pragma once

#include "graph/graph.h"

/* RG_DRAWN_CELLS: the most cells that rg_draw draws. */
enum { RG_SIZES = 4, RG_CELLS = 12, RG_DRAWN_CELLS = 3, RG_CELL_STEPS = 12, RG_STEPS = 80 };

/* What a step does: an operation of ops.def, or one of these. */
enum {
    RG_CHAIN = VPPS_OP_COUNT, /* many times h = tanh(W h + U x): a deep graph */
    RG_WIDE,                  /* many vectors with the same matrices: a wide graph */
    RG_SOURCE,                /* a vertex of existing nodes */
    RG_APPLY,                 /* applies a cell at a vertex */
    RG_ATTEND,                /* in a cell: softmax and weighted sum over lists */
    RG_WHATS
};

typedef struct rg_step {
    uint8_t what;
    uint8_t rows, cols; /* numbers of sizes of the case */
    uint32_t pick[3];   /* choose operands, numbers and so on */
} rg_step;

typedef struct rg_cell {
    uint8_t n_children; /* gathered by number */
    bool variable;      /* also gathers lists */
    bool rest;          /* lists begin after the children gathered by number */
    bool only_pulled;   /* gathers no list, but pulls lists */
    uint8_t n_pull_lists;
    bool apart; /* every pulled list has its own axis */
    bool twice; /* gathers two lists */
    bool head;  /* only pulls and pushes */
    uint32_t n_steps;
    rg_step steps[RG_CELL_STEPS];
} rg_cell;

typedef struct rg_case {
    uint64_t seed;            /* of values */
    uint32_t sizes[RG_SIZES]; /* rows of vectors */
    uint32_t columns;         /* of matrix-valued nodes */
    uint32_t n_cells, n_steps;
    uint32_t batches; /* 1 or 2; the second runs the steps in reverse */
    bool frozen;      /* freeze some parameters */
    /* Whether cells are also applied to lists without members. The compiled cell then uses parameters that multiply only members, but the nodes that
     * it stands for do not: therefore such cases have no optimiser state and no decay. */
    bool empty_lists;
    bool
        dense; /* products are outer ones and broadcasts, too; and a cell pushes a number that all its values matter for */
    bool alike; /* declare every parameter that a case of these sizes may use: equal sizes give equal models */
    rg_cell cells[RG_CELLS];
    rg_step steps[RG_STEPS];
} rg_case;

/* Draws a case of about n_steps steps. Equal arguments give equal cases. */
void rg_draw(rg_case *c, uint64_t seed, uint32_t n_steps);

typedef struct rg_built {
    vpps_model *model;
    vpps_graph *g[2]; /* one for each batch; [1] is NULL if there is one batch */
    vpps_node loss[2];
} rg_built;

/* Builds a case; prints it as a program to `print` unless NULL. Fails with the library's error. */
vpps_status rg_build(rg_built *out, const rg_case *c, FILE *print);
void rg_destroy(rg_built *built);

/* Makes *c smaller while fails(c, context) is true, in at most `tries` attempts. */
void rg_shrink(rg_case *c, bool (*fails)(const rg_case *c, void *context), void *context, uint32_t tries);

/* Lists the nodes of a graph that a user can name: results of op calls, and what vertices scatter and push. Returns their number. `out` has room for
 * four times the graph's nodes. */
uint32_t rg_named_nodes(vpps_graph *g, vpps_node *out);
