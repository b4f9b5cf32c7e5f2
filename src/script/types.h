/* types.h - the types of a model's vertices, each with its compiled cells. A type is a cell, or an op called outside cells with certain
 * shapes and parameters. Types are kept from batch to batch; if there are too many, the least recently used ones are dropped. */
#pragma once

#include "base/index.h"
#include "cell/cell.h"

typedef struct vpps_type {
    uint64_t hash;
    uint64_t last_used; /* number of the latest batch that used it */
    uint32_t place;     /* index among that batch's types */
    uint32_t *key;      /* key: words that identify the type */
    uint32_t key_words;
    vpps_compiled_cell *base; /* the cell after lowering, not compiled, for its inputs and outputs */
    /* For each output: the inputs and lookups that it depends on, as bits. */
    uint64_t reads_inputs[VPPS_CELL_MOST], reads_lookups[VPPS_CELL_MOST];
    const vpps_cell_data *cell; /* the recorded cell; NULL: a single op */
    vpps_param *params;         /* parameters that it reads, tables included */
    uint64_t *params_reach;     /* for each of these parameters: the outputs that depend on it */
    uint32_t n_params;
    vpps_compiled_cell **compiled;
    uint32_t n_compiled;
    uint32_t last_part; /* strongly connected component in the latest batch: vpps_type_needs */
    uint64_t last_differentiable;
} vpps_type;

/* After more than FEW batches in a row that want fewer groups, fewer are taken; after SOON such batches that is likely. */
enum { VPPS_FEW_BATCHES = 4096, VPPS_SOON_BATCHES = 16 };

/* The number of groups of recent batches, how many batches in a row wanted fewer, and the most groups that one of these wanted. */
typedef struct vpps_usual_groups {
    uint32_t groups, fewer, wanted;
} vpps_usual_groups;

typedef struct vpps_types {
    vpps_type **types;
    uint32_t n_types;
    vpps_index indices; /* index of the types, by the hashes of their keys */
    uint32_t *of_cell;  /* for each of the model's cells: its type, or VPPS_NONE */
    size_t n_of_cell;
    uint64_t n_batches;  /* number of batches scheduled so far */
    uint32_t n_compiled; /* number of compiled cells of all types */
    uint32_t most;       /* most types and compiled cells together; 0: the usual limit */
    uint32_t *key;
    uint64_t compile_ns;
    vpps_usual_groups usual[2]; /* numbers of groups of recent batches, for inference and for training */
} vpps_types;

void vpps_types_free(vpps_types *t);

/* Return whether there are more types and compiled cells than may be kept; drop half of them, the least recently used, but none of the
 * latest batch's or of the model's cells. Invalidates types' indices, and pointers to compiled cells of earlier batches. */
bool vpps_types_are_full(const vpps_types *t);
void vpps_types_drop(vpps_types *t);

/* Find or make the type of a vertex: an applied cell, or an op whose arguments have `shapes` (pairs of rows, cols). Fail with MEMORY,
 * ARGUMENT (more inputs, outputs or indices than a compiled cell can have). */
vpps_status vpps_type_of_cell(vpps_types *t, const vpps_model *model, uint32_t cell, uint32_t *out);
vpps_status vpps_type_of_op(vpps_types *t, const vpps_graph *g, const vpps_op_node *node, const uint32_t *shapes,
                            uint32_t *out);

/* Adds to a batch's needs those that the type's cells were compiled for, if they differ only in the outputs that are read and have
 * gradients: so one cell serves batches that read less. Gradients are added only of outputs that are differentiable in this batch, and
 * only if no other parameter gets a gradient by that. */
void vpps_widen_needs(const vpps_type *type, vpps_cell_needs *needs);

/* Gives the type's cell for these needs, and compiles it if there is none yet. Fails with MEMORY. */
vpps_status vpps_compiled_for(vpps_types *t, const vpps_model *model, vpps_type *type, const vpps_cell_needs *needs,
                              vpps_compiled_cell **out);
