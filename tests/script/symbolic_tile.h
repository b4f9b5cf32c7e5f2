/* symbolic_tile.h - inside symbolic_stage: vertices that are taken together, and their values. */
#ifndef VPPS_TESTS_SCRIPT_SYMBOLIC_TILE_H
#define VPPS_TESTS_SCRIPT_SYMBOLIC_TILE_H

#include "symbolic_machine.h"

typedef struct symbolic_tile {
    symbolic_machine *m;
    const symbolic_block *b;
    const vpps_compiled_cell *c;
    uint32_t stage, member;
    bool rows;
    uint32_t task_first, task_n, contributions; /* of the STAGE */
    uint32_t first[VPPS_DOMAINS], n[VPPS_DOMAINS];
    uint64_t **slot; /* of values: items times words */
} symbolic_tile;

static inline const vpps_cell_value *value_of(const symbolic_tile *t, uint32_t v) { return &t->c->values[v]; }

/* ---- symbolic_stage.c */

/* The first member of a vertex's list, and how many there are. */
uint32_t symbolic_member(const symbolic_tile *t, uint32_t domain, uint32_t vertex);
uint32_t symbolic_members(const symbolic_tile *t, uint32_t domain, uint32_t vertex);
/* The vertex of an item. */
uint32_t symbolic_vertex(const symbolic_tile *t, uint32_t domain, uint32_t item);
/* Elements that the VP has. */
vpps_rows symbolic_own(const symbolic_tile *t, const vpps_cell_value *x);
/* A value's slot. */
uint64_t *symbolic_slot(symbolic_tile *t, uint32_t v);

/* ---- symbolic_ops.c: makes a value of those in their slots */

void symbolic_instruction(symbolic_tile *t, uint32_t v);
void symbolic_product(symbolic_tile *t, uint32_t v);
void symbolic_product_t(symbolic_tile *t, uint32_t v);
void symbolic_parts(symbolic_tile *t, uint32_t v);

#endif
