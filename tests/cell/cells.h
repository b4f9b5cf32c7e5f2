/* cells.h - small cells as networks have, on one model; and the proof that a compiled cell is right. */
#pragma once

#include "cell/cell.h"
#include "common/testing.h"

/* Sizes: three blocks of 16 rows, so that rows are shared out to two or three virtual processors; and a width of no whole block. */
enum { HIDDEN = 48, EMBED = 40, CLASSES = 5, WORDS = 7, SQUARE = 6 };

/* X(id, name of the cell). Each is recorded by record_ID in cells.c. */
#define CELL_TABLE(X)                                                                                                  \
    X(lstm, "LSTM")                                                                                                    \
    X(gru, "GRU")                                                                                                      \
    X(leaf, "Tree-LSTM leaf")                                                                                          \
    X(inner, "Tree-LSTM inner")                                                                                        \
    X(child_sum, "child-sum Tree-LSTM")                                                                                \
    X(attention, "attention")                                                                                          \
    X(edges, "attention over edges")                                                                                   \
    X(stacked_list, "stacks of lists")                                                                                 \
    X(several_lists, "lists of several lengths")                                                                       \
    X(matrices, "matrix-vector inner")                                                                                 \
    X(matrix_values, "matrices as values")                                                                             \
    X(tagger, "LSTM with a classifier")

typedef enum cell_id {
#define X(id, name) CELL_##id,
    CELL_TABLE(X)
#undef X
        N_CELLS
} cell_id;

typedef struct cells {
    vpps_model *model;
    vpps_graph *g;
    vpps_cell cell[N_CELLS];
} cells;

cells cells_open(void);
void cells_close(cells *x);

/* Returns the parameter with this name. */
vpps_param cells_param(const cells *x, const char *name);

/* Returns the needs of a cell whose inputs and outputs all have gradients, in training, by one virtual processor. */
vpps_cell_needs cells_needs(void);

/* Returns the needs of a recurrence: inputs gathered from children come from the cell itself. */
vpps_cell_needs cells_recurrent(const vpps_graph *g, vpps_cell cell, uint32_t group);

/* Lowers cell number `cell` of a graph. */
vpps_compiled_cell *cells_lower(const vpps_graph *g, vpps_cell cell, const vpps_cell_needs *needs);
/* Lowers and compiles it. */
vpps_compiled_cell *cells_compile(const vpps_graph *g, vpps_cell cell, const vpps_cell_needs *needs);

/* Adds a vertex of a cell to a graph; its inputs are zeros. `members`: lengths of its lists, `wanted` if possible. */
vpps_vertex cells_apply(vpps_graph *g, vpps_cell cell, uint32_t wanted, uint32_t *members);

/* Checks, by the verifier's proof, that the compiled cell computes what a vertex of g asks for: outputs and gradients. Clears g. */
void cells_prove(vpps_graph *g, vpps_cell cell, const vpps_compiled_cell *c);

DESTROYED_BY(vpps_compiled_cell, vpps_compiled_cell_free)
