/* kernel_plan.h - a kernel's plan: its machine, its cells, and the sizes of their weights and tiles (vertices processed together). */
#pragma once

#include "codegen/resident.h"
#include "script/task.h"

enum {
    VPPS_TILE_WORDS = 13312 /* most words of shared memory for the values of a tile (vertices processed together) */
};

/* Memory that a stage's tiles (vertices processed together) need. */
typedef struct vpps_stage_room {
    uint32_t shared_words;
    uint32_t tile; /* vertices that are processed at a time */
    /* Words of scratch memory per vertex and per member of each list; 0: values are in shared memory. */
    uint32_t scratch_words[VPPS_AXES];
} vpps_stage_room;

typedef struct vpps_kernel_plan {
    uint32_t n_vps, group, threads;
    uint32_t row_unit; /* rows of a block: a matrix's blocks of rows are dealt to VPs */
    uint32_t teams;    /* teams share the columns of gradients and of matrix updates; VP v is of team v % teams */
    vpps_optimizer_kind optimizer;
    uint32_t n_states; /* optimiser states per parameter */
    bool packs;        /* cuBLAS computes the gradients of matrices; the kernel packs their factors */
    uint32_t parts;    /* each operand of a product is a sum of `parts` bf16 numbers: 2 in bf16x3, 1 in bf16; 0: fp32 */
    bool lean;         /* weights leave few registers, so threads keep fewer other values (common.cuh) */
    const vpps_compiled_cell *const *cells;
    uint32_t n_cells;
    vpps_residents residents;
    uint32_t *first_stage; /* n_cells + 1 entries: the number of each cell's first stage */
    vpps_stage_room *rooms;
    uint32_t tile_words;   /* words of shared memory for the tiles of any stage */
    uint32_t script_words; /* words of shared memory for a copy of the script; longer scripts are not copied */
    /* Weights for backward are copied to shared memory while forward begins; a separate task moves them to registers. */
    bool late;
    uint32_t staged_words; /* words of shared memory for weights on their way to registers */
} vpps_kernel_plan;

/* Matrices of at most so many rows are "low": the columns of their gradients and updates are dealt to all VPs, since in
 * bf16 one row costs as much as a tile of eight. */
static inline uint32_t vpps_low_rows(const vpps_kernel_plan *p) {
    return p->parts && p->teams > 1 ? VPPS_FRAGMENT_ROWS : 0;
}

/* Returns the task number of a cell's parameter gradients; these numbers follow those of all stages. */
static inline uint32_t vpps_outer_task(const vpps_kernel_plan *p, uint32_t cell) {
    return VPPS_TASK_COUNT + p->first_stage[p->n_cells] + cell;
}

/* Returns the number of the task that moves late weights to registers. */
static inline uint32_t vpps_weights_task(const vpps_kernel_plan *p) { return vpps_outer_task(p, p->n_cells); }

/* Returns the bytes of dynamic shared memory of a CTA. */
static inline uint32_t vpps_kernel_shared_bytes(const vpps_kernel_plan *p) {
    return 4 * (p->residents.shared_words + p->tile_words + p->script_words + p->staged_words);
}
