/* types.h - the types of a model's vertices, with the compiled cells of each. A type is a cell, or an op called outside cells with certain
 * shapes and parameters. Types are kept from batch to batch; where there get too many, those that were not used for longest are dropped. */
#pragma once

#include "base/index.h"
#include "cell/cell.h"

typedef struct vpps_type {
    uint64_t hash;
    uint64_t last_used; /* in which batch */
    uint32_t place;     /* among that batch's types */
    uint32_t *key;      /* what it is, in words */
    uint32_t key_words;
    vpps_compiled_cell *base; /* lowered, not compiled: inputs and outputs */
    uint64_t reads_inputs[VPPS_CELL_MOST],
        reads_lookups[VPPS_CELL_MOST]; /* of each output: what its value is made of */
    const vpps_cell_data *cell;        /* NULL: of a single op */
    vpps_param *params;                /* that it reads, tables included */
    uint64_t *params_reach;            /* of each of them: outputs that are made of it */
    uint32_t n_params;
    vpps_compiled_cell **compiled;
    uint32_t n_compiled;
    uint32_t last_part; /* in the last batch: see vpps_type_needs */
    uint64_t last_differentiable;
} vpps_type;

/* Another number of groups is taken after more than FEW batches in a row that want fewer; after SOON it is likely. */
enum { VPPS_FEW_BATCHES = 4096, VPPS_SOON_BATCHES = 16 };

/* The number of groups that batches have, how many batches in a row wanted fewer, and the most that one of these wanted. */
typedef struct vpps_usual_groups {
    uint32_t groups, fewer, wanted;
} vpps_usual_groups;

typedef struct vpps_types {
    vpps_type **types;
    uint32_t n_types;
    vpps_index indices; /* by the types' keys */
    uint32_t *of_cell;  /* types of the model's cells, or VPPS_NONE */
    size_t n_of_cell;
    uint64_t n_batches;  /* scheduled so far */
    uint32_t n_compiled; /* cells, of all types */
    uint32_t most;       /* types and compiled cells, in all; 0: as many as is usual */
    uint32_t *key;
    uint64_t compile_ns;
    vpps_usual_groups usual[2]; /* of batches that infer, that train */
} vpps_types;

void vpps_types_free(vpps_types *t);

/* Are there more types and compiled cells than are kept? Drop: half of them go, those that no batch has used for longest, but none of the
 * latest batch's, nor types of the model's cells. Indices of types and pointers to compiled cells of earlier batches are then invalid. */
bool vpps_types_are_full(const vpps_types *t);
void vpps_types_drop(vpps_types *t);

/* The type of a record. `shapes` are pairs of the record's arguments. Fail with MEMORY, ARGUMENT (more inputs, outputs or
 * indices than a compiled cell can have). */
vpps_status vpps_type_of_cell(vpps_types *t, const vpps_model *model, uint32_t cell, uint32_t *out);
vpps_status vpps_type_of_op(vpps_types *t, const vpps_graph *g, const vpps_op_node *node, const uint32_t *shapes,
                            uint32_t *out);

/* Adds to the needs of a batch those that the type's cells were compiled for, where they differ only in the outputs that are read and have
 * gradients: so one cell serves batches that read less. Gradients are added only of outputs that are differentiable in this batch, and only
 * where no other parameter gets a gradient by that. */
void vpps_widen_needs(const vpps_type *type, vpps_cell_needs *needs);

/* The type's cell for these needs, compiled if there is none yet. Fails with MEMORY. */
vpps_status vpps_compiled_for(vpps_types *t, const vpps_model *model, vpps_type *type, const vpps_cell_needs *needs,
                              vpps_compiled_cell **out);
