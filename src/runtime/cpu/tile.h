/* tile.h - stages as programs over tiles: some vertices at a time, whose values between two operations stay in the
 * core's nearest caches. A value in a tile is an array, vertex after vertex (member after member): of the rows that the VP
 * owns where rows are shared out, else of the whole value. */
#ifndef VPPS_CPU_TILE_H
#define VPPS_CPU_TILE_H

#include "plan/plan.h"
#include "runtime/cpu/choices.h"
#include "script/task.h"

#define VPPS_NO_SLOT UINT32_MAX

typedef enum vpps_tile_kind {
    VPPS_TILE_LOAD,     /* value from memory into its slot */
    VPPS_TILE_GRADIENT, /* sum of contributions */
    VPPS_TILE_RUN,
    VPPS_TILE_PRODUCT,
    VPPS_TILE_PRODUCT_T,
    VPPS_TILE_PARTS, /* SLICE, PLACE, STACK */
    VPPS_TILE_ARGMAX,
    VPPS_TILE_ENTRY,
    VPPS_TILE_STORE,      /* value from its slot into the record of kept values */
    VPPS_TILE_CONTRIBUTE, /* into the record of contributions, number `index` */
    VPPS_TILE_ADD_SHARES  /* kept shares of a product with a transposed matrix, into its slot */
} vpps_tile_kind;

typedef struct vpps_tile_op {
    uint8_t kind;
    bool uniform; /* RUN: nothing differs between items, and all operands lie side by side: one call does them all */
    uint32_t value;
    /* CONTRIBUTE: number of the contribution. PRODUCT_T: of that which is made in its place, or VPPS_NO_SLOT: in the
     * value's slot. PRODUCT: VPPS_NO_SLOT likewise; 0: it is made where it is kept. */
    uint32_t index;
} vpps_tile_op;

/* A value's place in a tile: `at` floats times the number of items of its domain, in the region of its domain. */
typedef struct vpps_tile_slot {
    uint32_t at;    /* VPPS_NO_SLOT: in memory only */
    uint32_t width; /* elements of an item */
    uint32_t first; /* first of its elements that the VP owns */
} vpps_tile_slot;

typedef struct vpps_tile_program {
    vpps_tile_op *ops;
    uint32_t n_ops;
    vpps_tile_slot *slots;         /* of every value of the cell */
    uint32_t floats[VPPS_DOMAINS]; /* of an item, in the region of its domain */
    uint32_t tile;                 /* vertices at a time */
    size_t ops_capacity;
} vpps_tile_program;

/* Programs of a cell's stages for every VP of a group: program of stage s and member m at s * group + m. */
typedef struct vpps_tile_cell {
    vpps_tile_program *programs;
    uint32_t n;
} vpps_tile_cell;

/* Makes cell->device_program when it is not there yet; choices: of each parameter. Fails with MEMORY. */
vpps_status vpps_make_tiles(vpps_compiled_cell *cell, const vpps_cpu_choice *choices);

static inline const vpps_tile_program *vpps_tiles_of(const vpps_compiled_cell *c, uint32_t stage, uint32_t member) {
    return &((const vpps_tile_cell *)c->device_program)->programs[stage * c->needs.group + member];
}

#endif
