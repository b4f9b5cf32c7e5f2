/* symbolic_machine.h - inside symbolic.h: the machine's memory, and its instructions. */
#ifndef VPPS_TESTS_SCRIPT_SYMBOLIC_MACHINE_H
#define VPPS_TESTS_SCRIPT_SYMBOLIC_MACHINE_H

#include "common/race_log.h"
#include "plan/plan.h"
#include "symbolic.h"

/* Where a block's arrays are in the script: addresses. */
typedef struct symbolic_block {
    vpps_block b;
    const vpps_compiled_cell *c;
    uint64_t inputs[VPPS_CELL_MOST], lookups[VPPS_CELL_MOST], words[VPPS_CELL_MOST], data, lists[VPPS_DOMAINS];
    uint64_t gradient_starts[VPPS_CELL_MOST], gradients[VPPS_CELL_MOST];
} symbolic_block;

typedef struct symbolic_machine {
    const subject *s;
    vpps_task_header h;
    uint32_t group_size;
    symbolic_block *blocks;
    uint64_t *pool;
    uint32_t limit;                           /* words that may be touched */
    uint64_t **values, **gradients, **states; /* by parameter; values: matrices only */
    uint64_t *norms;
    uint64_t loss;
    uint32_t *pc, *counters;
    uint8_t *done, *touched;    /* touched: by (VP, parameter) */
    uint8_t *passed, *computed; /* by VP: of the task at hand, was its wait passed, was it done? */
    uint64_t salt;
    symbolic_tiles tiles;
    bool fault, hold;
    uint64_t passing; /* of the STAGE at hand: the passing record of vertex */
    uint32_t passing_first;
    uint32_t vp;

    /* writes that are not yet done */
    struct pending {
        uint64_t *at, value;
    } * pending;
    size_t n_pending, pending_capacity;

    race_log *log; /* NULL: not asked for */
} symbolic_machine;

static inline uint64_t symbolic_mix(uint64_t a, uint64_t b) {
    return vpps_mix64(a * 0x9e3779b97f4a7c15u + vpps_mix64(b));
}

/* ---- symbolic_memory.c; what lies outside is a fault */

uint32_t symbolic_word(symbolic_machine *m, uint64_t address); /* of the script */
uint64_t symbolic_get(symbolic_machine *m, uint64_t offset);
void symbolic_put(symbolic_machine *m, uint64_t offset, uint64_t value);
/* Any place, in the pool or not. */
uint64_t symbolic_read(symbolic_machine *m, const uint64_t *at);
void symbolic_write(symbolic_machine *m, uint64_t *at, uint64_t value);
/* Finds a block's arrays. */
void symbolic_find(symbolic_machine *m, uint32_t number);
/* Memory, or the test ends. */
void *symbolic_take(size_t n, size_t bytes);

/* A number from the bits of a float: 1 and -1 are themselves. */
uint64_t symbolic_number(float f);

/* ---- symbolic_stage.c, symbolic_parameters.c: a task of VP m->vp */

void symbolic_stage(symbolic_machine *m, const vpps_task *t);
void symbolic_constants(symbolic_machine *m, uint32_t address, uint32_t n);
void symbolic_outer(symbolic_machine *m, uint32_t block, uint32_t first, uint32_t n);
void symbolic_entries(symbolic_machine *m, uint32_t table, uint32_t address);
void symbolic_loss(symbolic_machine *m, uint32_t address, uint32_t n);
void symbolic_norm(symbolic_machine *m);
void symbolic_update(symbolic_machine *m);
/* Where item i of a block's value lies. */
uint64_t symbolic_place(symbolic_machine *m, const symbolic_block *b, uint32_t value, uint32_t item);

#endif
