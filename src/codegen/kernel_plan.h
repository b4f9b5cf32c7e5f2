/* kernel_plan.h - a kernel's plan: its machine and cells, and the sizes of their weights and tiles. */
#pragma once

#include "codegen/resident.h"
#include "script/task.h"

enum { VPPS_TILE_WORDS = 13312 /* of shared memory, for tiles at most */ };

/* What a stage's tiles take. */
typedef struct vpps_stage_room {
    uint32_t shared_words;
    uint32_t tile;                     /* vertices at a time */
    uint32_t scratch_words[VPPS_AXES]; /* of a vertex, of a member of each list; 0: slots are in shared memory */
} vpps_stage_room;

typedef struct vpps_kernel_plan {
    uint32_t n_vps, group, threads;
    uint32_t row_unit; /* blocks of rows that are dealt */
    uint32_t teams;    /* share out columns of gradients and updates of matrices: VP v is of team v % teams */
    vpps_optimizer_kind optimizer;
    uint32_t n_states; /* of it */
    bool packs;        /* gradients of matrices are cuBLAS's work: their factors are packed for it */
    uint32_t parts;    /* bf16 numbers whose sum an operand of products is: 2 in bf16x3, 1 in bf16; 0: it is in fp32 */
    bool lean;         /* a thread keeps less beside the weights: see common.cuh */
    const vpps_compiled_cell *const *cells;
    uint32_t n_cells;
    vpps_residents residents;
    uint32_t *first_stage; /* of each cell: the number of its first stage; n_cells + 1 */
    vpps_stage_room *rooms;
    uint32_t tile_words;   /* of shared memory, for any stage */
    uint32_t script_words; /* likewise, for a copy of the script, if it is not longer */
    bool late; /* backward's weights are copied while forward begins; a task of their own takes them to registers */
    uint32_t staged_words; /* of shared memory, on their way to registers */
} vpps_kernel_plan;

/* Matrices with so many rows are low: their gradients and updates are dealt by columns to all VPs. Where products are in bf16, one row
 * costs as much as a tile. */
static inline uint32_t vpps_low_rows(const vpps_kernel_plan *p) {
    return p->parts && p->teams > 1 ? VPPS_FRAGMENT_ROWS : 0;
}

/* The kernel's number of the task that makes gradients of a cell's parameters: after those of all stages. */
static inline uint32_t vpps_outer_task(const vpps_kernel_plan *p, uint32_t cell) {
    return VPPS_TASK_COUNT + p->first_stage[p->n_cells] + cell;
}

/* The kernel's number of the task that takes late weights. */
static inline uint32_t vpps_weights_task(const vpps_kernel_plan *p) { return vpps_outer_task(p, p->n_cells); }

/* Dynamic shared memory of a CTA. */
static inline uint32_t vpps_kernel_shared_bytes(const vpps_kernel_plan *p) {
    return 4 * (p->residents.shared_words + p->tile_words + p->script_words + p->staged_words);
}
