/* history.h - what the scheduler keeps from batch to batch: types of vertices, compiled cells, guesses for the next batch, and which cells
 * are in kernels. Only the functions declared here change a history. */
#pragma once

#include "base/index.h"
#include "cell/cell.h"

/* A type of vertices: all vertices that apply one recorded cell, or one op with equal shapes and parameters. A type never changes. */
typedef struct vpps_type {
    uint64_t hash;
    uint32_t *key; /* words that tell types apart: the cell's number, or the op, its shapes and parameters */
    uint32_t key_words;
    /* the cell's or op's inputs, values and outputs in forward, in the form of a compiled cell that is never run */
    vpps_compiled_cell *base;
    /* for each output, as bits: the numbers of the inputs, and of the lookups, on which it depends */
    uint64_t reads_inputs[VPPS_CELL_MOST], reads_lookups[VPPS_CELL_MOST];
    const vpps_cell_data *cell; /* the cell (function) that the user recorded; NULL: the vertices are single ops */
    vpps_param *params;         /* parameters (tables too) that the cell or op reads */
    uint64_t *params_reach;     /* for each element of `params`: the set of outputs that depend on it, as bits */
    uint32_t n_params;
} vpps_type;

/* What the latest batch showed of a cell or op, as a guess for the next. scc: its strongly connected component in the
 * graph of which cell reads which; VPPS_NONE: no batch yet. differentiable: outputs, as bits, that depend on a trained
 * parameter. */
typedef struct vpps_type_guess {
    uint32_t scc;
    uint64_t differentiable;
} vpps_type_guess;

/* How a compiled cell relates to the GPU kernel for training or for inference; a kernel has many cells. EXPECTED: the next kernel will have
 * the cell. LOADED: the kernel in use has the cell. LEFT_OUT: no kernel needs the cell. */
typedef enum vpps_cell_place { VPPS_CELL_EXPECTED, VPPS_CELL_LOADED, VPPS_CELL_LEFT_OUT } vpps_cell_place;

typedef struct vpps_made_cell {
    vpps_compiled_cell *cell;
    uint64_t last_used; /* number of the latest batch that uses the compiled cell, or for which it was compiled ahead */
    vpps_cell_place place;
} vpps_made_cell;

/* A type of vertices (those that apply one cell or op), and what is kept about it from batch to batch. */
typedef struct vpps_known_type {
    vpps_type *type;
    uint64_t last_used; /* number of the latest batch that used the cell or op */
    vpps_type_guess guess;
    /* compiled cells of the type, the earliest first; no two compute the same outputs and gradients */
    vpps_made_cell *made;
    uint32_t n_made;
} vpps_known_type;

/* FEW_BATCHES: after more batches in a row that want fewer groups of threads or CTAs than are in use, the number of
 * groups falls. SOON_BATCHES: after so many of them, a fall is likely. */
enum { VPPS_FEW_BATCHES = 4096, VPPS_SOON_BATCHES = 16 };

/* groups: number of groups of threads or CTAs in use. fewer: how many batches in a row, up to the latest, wanted fewer.
 * wanted: the most groups that one of these batches wanted. */
typedef struct vpps_usual_groups {
    uint32_t groups, fewer, wanted;
} vpps_usual_groups;

typedef struct vpps_history {
    vpps_known_type *types;
    uint32_t n_types;
    vpps_index indices; /* hash table of `types`, by the hash of each type's `key` */
    uint32_t *of_cell;  /* for each cell of the model: index in `types`; VPPS_NONE: no graph has applied the cell yet */
    size_t n_of_cell;
    uint32_t *key;       /* scratch memory for the key by which a vertex's type is looked up */
    uint32_t n_compiled; /* number of compiled cells of all types together */
    uint32_t most; /* most vertex types (cells and ops) plus compiled cells; if more, half are dropped; 0: a default */
    uint64_t n_batches; /* number of batches scheduled so far */
    /* for inference [0] and training [1] batches: the number of groups of virtual processors (CTAs, threads) */
    vpps_usual_groups usual[2];
    /* What vpps_has_news found last for inference [0] and training [1]: number of compiled cells (high 32 bits); number
     * of groups of threads or CTAs that batches will probably use soon (low 32 bits). */
    uint64_t foreseen[2];
} vpps_history;

/* Give the index in h->types of the type of a vertex that applies a cell, or is an op whose arguments have `shapes`
 * (pairs of rows, cols); add a new type. Fail with MEMORY, ARGUMENT (too many inputs, outputs or indices). */
vpps_status vpps_type_of_cell(vpps_history *h, const vpps_model *model, uint32_t cell, uint32_t *out);
vpps_status vpps_type_of_op(vpps_history *h, const vpps_graph *g, const vpps_op_node *node, const uint32_t *shapes,
                            uint32_t *out);
void vpps_type_free(vpps_type *type);
/* Lists in *out the values that forward of a type (a cell or op) computes; drops: with dropout. Fails with MEMORY. */
vpps_status vpps_lower_type(const vpps_type *type, bool drops, vpps_compiled_cell **out);

static inline vpps_status vpps_no_memory(void) { return vpps_fail(VPPS_MEMORY, "schedule: out of memory"); }
void vpps_history_free(vpps_history *h);
/* Returns whether more vertex types (cells, or ops with shapes) and compiled cells are kept than the limit. */
bool vpps_history_is_full(const vpps_history *h);
/* Frees the less recently used half of the vertex types (cells, or ops with shapes) and compiled cells; not types of
 * the latest batch or of recorded cells. Indices of types and pointers to compiled cells become invalid. */
void vpps_history_drop(vpps_history *h);

/* vpps_remember_batch counts a scheduled batch and keeps its number of groups of threads or CTAs. vpps_remember_type
 * keeps what the batch showed of a cell or op, a guess with which scheduling of the next batch begins. */
void vpps_remember_batch(vpps_history *h, bool training, vpps_usual_groups usual);
void vpps_remember_type(vpps_history *h, uint32_t type, vpps_type_guess guess);

/* Returns `usual` updated by a batch that wants `groups` groups of threads or CTAs; the batch runs in result.groups
 * groups. Fewer groups need another kernel: only after more than VPPS_FEW_BATCHES batches in a row that want fewer, the
 * number falls, to the most that one of them wanted. */
vpps_usual_groups vpps_usual_after(vpps_usual_groups usual, uint32_t groups);

/* Sets *out to a compiled cell for vertices of a type (a cell or op) that computes the outputs and gradients in `needs`; compiles it at
 * first use. If `widens` is not NULL, the cell also computes the outputs and gradients of earlier compiled cells of the type, if they
 * differ from it in nothing else. It then takes gradients of further outputs only for outputs in *widens (bits), and only if no further
 * parameter gets a gradient. Fails with MEMORY. */
vpps_status vpps_compiled_for(vpps_history *h, const vpps_model *model, uint32_t type, vpps_cell_needs needs,
                              const uint64_t *widens, vpps_compiled_cell **out);

/* Chooses the cells of the GPU kernel for a batch that needs the n given cells. Writes at most h->n_compiled cells to `out`; returns their
 * number. If the kernel in use has the n cells: all its cells. Else the n cells and, for later batches, all cells that are in the kernel in
 * use or expected in the next kernel (vpps_cell_place), if they fit into one kernel with the n cells (need as many CTAs per group) and no
 * later cell replaces them. If these are more than `most`: only the n cells. */
uint32_t vpps_kernel_set(const vpps_history *h, uint32_t n, vpps_compiled_cell *const *cells, uint32_t most,
                         vpps_compiled_cell **out);

/* Records what became of the kernel with these cells (from vpps_kernel_set). `made`: whether the kernel was compiled and is in use. */
void vpps_remember_kernel(vpps_history *h, uint32_t n, vpps_compiled_cell *const *cells, bool made);

/* Sets *likely to the number of groups of threads or CTAs that will probably be used soon, if the latest batches wanted fewer than are in
 * use; else to 0. Returns whether *likely or the number of compiled cells has changed since the preceding call with this `training`. */
bool vpps_has_news(vpps_history *h, bool training, uint32_t *likely);
