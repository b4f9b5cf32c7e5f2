/* history.h - what batches leave for later ones: the types of vertices, compiled cells, guesses, and which cells kernels have. Only the
 * functions below write a history. */
#pragma once

#include "base/index.h"
#include "cell/cell.h"

/* A type of vertices: a cell, or an op called outside cells with certain shapes and parameters. Does not change after it was made. */
typedef struct vpps_type {
    uint64_t hash;
    uint32_t *key; /* words that identify the type */
    uint32_t key_words;
    vpps_compiled_cell *base; /* the cell after lowering but before compiling; tells its inputs and outputs */
    /* for each output: the inputs, and the lookups, that it depends on, as bits */
    uint64_t reads_inputs[VPPS_CELL_MOST], reads_lookups[VPPS_CELL_MOST];
    const vpps_cell_data *cell; /* the recorded cell; NULL: the type is a single op */
    vpps_param *params;         /* parameters that the type reads, lookup tables included */
    uint64_t *params_reach;     /* for each of these parameters: the outputs that depend on it */
    uint32_t n_params;
} vpps_type;

/* A guess for the next batch, from the latest one: see vpps_type_needs. `scc` VPPS_NONE: no batch had the type. */
typedef struct vpps_type_guess {
    uint32_t scc;
    uint64_t differentiable;
} vpps_type_guess;

/* A compiled cell in the kernel for its kind of batches: in the next compilation, in the kernel in use, or left out. A kernel's cells are all
 * for training or all for inference, and have the same group size and row unit. */
typedef enum vpps_cell_place { VPPS_CELL_EXPECTED, VPPS_CELL_LOADED, VPPS_CELL_LEFT_OUT } vpps_cell_place;

typedef struct vpps_made_cell {
    vpps_compiled_cell *cell;
    uint64_t last_used; /* number of the latest batch that used the compiled cell, or was likely to */
    vpps_cell_place place;
} vpps_made_cell;

/* A type with what batches leave for it. */
typedef struct vpps_known_type {
    vpps_type *type;
    uint64_t last_used; /* number of the latest batch that used the type */
    vpps_type_guess guess;
    vpps_made_cell *made; /* the type's compiled cells, the earliest first */
    uint32_t n_made;
} vpps_known_type;

/* After VPPS_FEW_BATCHES batches in a row that want fewer groups, fewer groups are used; after VPPS_SOON_BATCHES that is likely soon. */
enum { VPPS_FEW_BATCHES = 4096, VPPS_SOON_BATCHES = 16 };

/* The number of groups of recent batches; how many batches in a row wanted fewer; the most groups that one of these wanted. */
typedef struct vpps_usual_groups {
    uint32_t groups, fewer, wanted;
} vpps_usual_groups;

typedef struct vpps_history {
    vpps_known_type *types;
    uint32_t n_types;
    vpps_index indices; /* index of the types, by the hashes of their keys */
    uint32_t *of_cell;  /* for each of the model's cells: its type, or VPPS_NONE */
    size_t n_of_cell;
    uint32_t *key;              /* scratch */
    uint32_t n_compiled;        /* number of compiled cells of all types together */
    uint32_t most;              /* most types and compiled cells that may be kept; 0: the usual limit */
    uint64_t n_batches;         /* number of batches scheduled so far */
    vpps_usual_groups usual[2]; /* groups of recent batches: of inference, and of training */
    uint64_t foreseen[2];       /* what vpps_has_news compares, after inference and after training */
} vpps_history;

/* Find or make the type of a vertex: of an applied cell, or of an op whose arguments have `shapes` (pairs of rows, cols). Both fail with
 * MEMORY, ARGUMENT (more inputs, outputs or indices than a compiled cell can have). */
vpps_status vpps_type_of_cell(vpps_history *h, const vpps_model *model, uint32_t cell, uint32_t *out);
vpps_status vpps_type_of_op(vpps_history *h, const vpps_graph *g, const vpps_op_node *node, const uint32_t *shapes,
                            uint32_t *out);
void vpps_type_free(vpps_type *type);
/* Lowers the type's cell or op once more, for compiling. Fails with MEMORY. */
vpps_status vpps_lower_type(const vpps_type *type, bool drops, vpps_compiled_cell **out);

static inline vpps_status vpps_no_memory(void) { return vpps_fail(VPPS_MEMORY, "schedule: out of memory"); }
void vpps_history_free(vpps_history *h);
/* Returns whether there are more types and compiled cells than may be kept. vpps_history_drop drops the less recently used half, but no type
 * of the latest batch or of the model's cells; it invalidates types' indices and pointers to compiled cells of earlier batches. */
bool vpps_history_is_full(const vpps_history *h);
void vpps_history_drop(vpps_history *h);

/* Counts a scheduled batch, and keeps the numbers of groups; then vpps_remember_type keeps a guess for each of the batch's types. */
void vpps_remember_batch(vpps_history *h, bool training, vpps_usual_groups usual);
void vpps_remember_type(vpps_history *h, uint32_t type, vpps_type_guess guess);

/* Returns the numbers of groups after a batch that wants `groups`; the batch takes the result's: those of recent batches if it wants fewer, so
 * that no kernel is compiled for a data set's last, smaller batch alone; after VPPS_FEW_BATCHES such batches, the most that one wanted. */
vpps_usual_groups vpps_usual_after(vpps_usual_groups usual, uint32_t groups);

/* Gives the type's cell compiled for these needs; compiles it at first use. `widens`: for these needs together with those for which the cell
 * was compiled earlier, if these differ only in outputs that are read or have gradients, so that one compiled cell serves all these batches.
 * A gradient is added only if the output is among *widens and no other parameter gets a gradient by that. Fails with MEMORY. */
vpps_status vpps_compiled_for(vpps_history *h, const vpps_model *model, uint32_t type, vpps_cell_needs needs,
                              const uint64_t *widens, vpps_compiled_cell **out);

/* Writes to `out`, with room for h->n_compiled, the cells of the kernel with which a batch of these n cells runs; returns their number. They
 * stay if the kernel in use has all n. Else they are all cells of the kind, expected ones included, without those that a newer cell of their
 * type replaces; or the n cells alone if there would be more than `most`. */
uint32_t vpps_kernel_set(const vpps_history *h, uint32_t n, vpps_compiled_cell *const *cells, uint32_t most,
                         vpps_compiled_cell **out);

/* Keeps that the kernel with these cells, chosen by vpps_kernel_set, is in use or, unless `made`, could not be made. */
void vpps_remember_kernel(vpps_history *h, uint32_t n, vpps_compiled_cell *const *cells, bool made);

/* Returns whether cells were compiled, or *likely changed, since the preceding call; *likely: the number of groups to which batches are likely to
 * fall soon, or 0. */
bool vpps_has_news(vpps_history *h, bool training, uint32_t *likely);
