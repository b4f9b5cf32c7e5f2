/* symbolic_machine.h - inside symbolic.h: the machine's memory, and its instructions. */
#ifndef VPPS_TESTS_NODES_SYMBOLIC_MACHINE_H
#define VPPS_TESTS_NODES_SYMBOLIC_MACHINE_H

#include "common/race_log.h"
#include "symbolic.h"

typedef struct symbolic_machine {
    const subject *s;
    const vpps_script_header *h;
    uint64_t *pool;
    uint32_t limit;                                 /* words that may be touched */
    uint64_t **matrices, **gradients, **transposed; /* by parameter; transposed by (parameter, VP) */
    uint64_t *norms;
    uint32_t *pc, *end, *back_pc, *back_end, *counters;
    uint8_t *calling, *done;
    uint64_t salt, key;
    bool fault;
    uint32_t vp;

    /* writes that are not yet done */
    struct pending {
        uint64_t *at;
        uint64_t value;
        bool add;
    } * pending;
    size_t n_pending, pending_capacity;

    race_log *log; /* NULL: not asked for */
} symbolic_machine;

static inline uint64_t symbolic_mix(uint64_t a, uint64_t b) {
    return vpps_mix64(a * 0x9e3779b97f4a7c15u + vpps_mix64(b));
}

/* One word of the pool; what lies outside is a fault. */
uint64_t symbolic_get(symbolic_machine *m, uint64_t offset);

/* Computes the instruction at `at`, which does work, for VP m->vp; its writes are pending. */
void symbolic_compute(symbolic_machine *m, const uint32_t *at);

#endif
