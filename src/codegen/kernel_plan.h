/* kernel_plan.h - a kernel's plan: CTAs and threads, cells, where weights are stored, sizes of tiles (vertices processed together). */
#pragma once

#include "codegen/resident.h"
#include "script/script.h"
#include "script/task.h"

enum {
    VPPS_TILE_WORDS = 13312 /* most words of shared memory for the values of a tile (vertices processed together) */
};

/* Memory that the tiles (vertices processed together) of a stage (part of a cell) need. */
typedef struct vpps_stage_room {
    uint32_t shared_words;
    uint32_t tile; /* number of vertices that are processed at a time */
    /* Words of scratch memory, [0] per vertex and [d] per node that list input d - 1 (of many nodes) reads. 0: none is
     * needed, since shared memory has the values. */
    uint32_t scratch_words[VPPS_AXES];
} vpps_stage_room;

typedef struct vpps_kernel_plan {
    uint32_t n_vps, group, threads;
    uint32_t row_unit; /* virtual processors (CTAs) get a matrix's rows in blocks of this many adjacent rows */
    /* number of teams of CTAs; each team computes some columns of matrices' gradients; CTA v belongs to team v % teams */
    uint32_t teams;
    vpps_optimizer_kind optimizer;
    uint32_t n_states; /* number of state values that the optimiser keeps per parameter value */
    /* whether the kernel packs the vectors dy and x from which cuBLAS computes matrices' gradients dy x^T */
    bool packs;
    uint32_t parts; /* each operand of a product is a sum of `parts` bf16 numbers: 2 in bf16x3, 1 in bf16; 0: fp32 */
    bool lean;      /* whether threads keep fewer other values in registers: weights take many, or a kernel spilled */
    const vpps_compiled_cell *const *cells;
    uint32_t n_cells;
    vpps_residents residents;
    uint32_t *first_stage; /* n_cells + 1 entries: number of each cell's first stage (part between two barriers) */
    vpps_stage_room *rooms;
    uint32_t tile_words;   /* most words of shared memory that any tile (vertices processed together) needs */
    uint32_t script_words; /* words of shared memory for the batch's program (script); a longer one is not copied */
    /* Whether weights that only backward needs are loaded while forward begins; a separate task then moves some of them to registers. */
    bool late;
    uint32_t staged_words; /* words of shared memory for weights that are copied to registers later */
} vpps_kernel_plan;

/* Returns the most rows of a "low" matrix. CTAs divide the columns, not the rows, of a low matrix's gradient and
 * update: in bf16 the GPU computes eight rows at once, so dividing fewer rows saves no time. */
static inline uint32_t vpps_low_rows(const vpps_kernel_plan *p) {
    return p->parts && p->teams > 1 ? VPPS_FRAGMENT_ROWS : 0;
}

/* Returns the number of the task for a cell's parameter gradients. Such numbers follow those of all cells' stages. */
static inline uint32_t vpps_outer_task(const vpps_kernel_plan *p, uint32_t cell) {
    return VPPS_TASK_COUNT + p->first_stage[p->n_cells] + cell;
}

/* Returns the number of the task that moves backward's weights from shared memory to registers. */
static inline uint32_t vpps_weights_task(const vpps_kernel_plan *p) { return vpps_outer_task(p, p->n_cells); }

static inline uint32_t vpps_kernel_shared_bytes(const vpps_kernel_plan *p) {
    return 4 * (p->residents.shared_words + p->tile_words + p->script_words + p->staged_words);
}
