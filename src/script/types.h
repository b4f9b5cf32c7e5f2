/* types.h - the types of a model's vertices, each with its compiled cells. A type is a cell, or an op called outside cells with certain
 * shapes and parameters. Types are kept from batch to batch; if there are too many, the least recently used ones are dropped. */
#pragma once

#include "base/index.h"
#include "cell/cell.h"

typedef struct vpps_type {
    uint64_t hash;
    uint64_t last_used; /* number of the latest batch that used the type */
    uint32_t place;     /* index of the type among the types of that batch */
    uint32_t *key;      /* words that identify the type */
    uint32_t key_words;
    vpps_compiled_cell *base; /* the cell after lowering but before compiling; tells its inputs and outputs */
    /* for each output: the inputs, and the lookups, that it depends on, as bits */
    uint64_t reads_inputs[VPPS_CELL_MOST], reads_lookups[VPPS_CELL_MOST];
    const vpps_cell_data *cell; /* the recorded cell; NULL: the type is a single op */
    vpps_param *params;         /* parameters that the type reads, lookup tables included */
    uint64_t *params_reach;     /* for each of these parameters: the outputs that depend on it */
    uint32_t n_params;
    vpps_compiled_cell **compiled;
    uint32_t n_compiled;
    uint32_t last_part; /* number of the type's strongly connected component in the latest batch */
    uint64_t last_differentiable;
} vpps_type;

/* After VPPS_FEW_BATCHES batches in a row that want fewer groups, fewer groups are used; after VPPS_SOON_BATCHES that is likely soon. */
enum { VPPS_FEW_BATCHES = 4096, VPPS_SOON_BATCHES = 16 };

/* The number of groups of recent batches; how many batches in a row wanted fewer; the most groups that one of these wanted. */
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
    uint32_t n_compiled; /* number of compiled cells of all types together */
    uint32_t most;       /* most types and compiled cells that may be kept; 0: the usual limit */
    uint32_t *key;
    uint64_t compile_ns;
    vpps_usual_groups usual[2]; /* groups of recent batches: of inference, and of training */
} vpps_types;

void vpps_types_free(vpps_types *t);

/* Returns whether there are more types and compiled cells than may be kept. vpps_types_drop drops the less recently used half, but no type
 * of the latest batch or of the model's cells; it invalidates types' indices and pointers to compiled cells of earlier batches. */
bool vpps_types_are_full(const vpps_types *t);
void vpps_types_drop(vpps_types *t);

/* Find or make the type of a vertex: of an applied cell, or of an op whose arguments have `shapes` (pairs of rows, cols). Both fail with
 * MEMORY, ARGUMENT (more inputs, outputs or indices than a compiled cell can have). */
vpps_status vpps_type_of_cell(vpps_types *t, const vpps_model *model, uint32_t cell, uint32_t *out);
vpps_status vpps_type_of_op(vpps_types *t, const vpps_graph *g, const vpps_op_node *node, const uint32_t *shapes,
                            uint32_t *out);

/* Adds to a batch's needs of a cell the needs for which the cell was compiled earlier, if they differ only in outputs that are read or have
 * gradients. So one compiled cell serves all these batches. A gradient is added only if the output is differentiable in this batch and no
 * other parameter gets a gradient by that. */
void vpps_widen_needs(const vpps_type *type, vpps_cell_needs *needs);

/* Gives the type's cell compiled for these needs; compiles it at first use. Fails with MEMORY. */
vpps_status vpps_compiled_for(vpps_types *t, const vpps_model *model, vpps_type *type, const vpps_cell_needs *needs,
                              vpps_compiled_cell **out);
