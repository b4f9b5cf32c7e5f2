/* symbolic_tile.h - inside symbolic_stage: vertices that are taken together, and the slots of the stage's program. */
#ifndef VPPS_TESTS_SCRIPT_SYMBOLIC_TILE_H
#define VPPS_TESTS_SCRIPT_SYMBOLIC_TILE_H

#include "cell/program.h"
#include "symbolic_machine.h"

typedef struct symbolic_tile {
    symbolic_machine *m;
    const symbolic_block *b;
    const vpps_compiled_cell *c;
    const vpps_program *p;
    uint32_t stage, member;
    uint32_t task_first, task_n, contributions; /* of the STAGE */
    uint32_t first[VPPS_DOMAINS], n[VPPS_DOMAINS];
    uint64_t **slot; /* items times words, of whole values: what a VP has not is unknown */
} symbolic_tile;

/* ---- symbolic_stage.c; what cannot be is a fault */

/* The first member of a vertex's list, and how many there are. */
uint32_t symbolic_member(const symbolic_tile *t, uint32_t axis, uint32_t vertex);
uint32_t symbolic_members(const symbolic_tile *t, uint32_t axis, uint32_t vertex);
/* The vertex of an item. */
uint32_t symbolic_vertex(const symbolic_tile *t, uint32_t axis, uint32_t item);
/* Elements that the VP has of an operand. */
vpps_rows symbolic_own(const symbolic_tile *t, const vpps_operand *o);
/* An operand's item i, of the tile, in its slot; NULL: a fault. */
uint64_t *symbolic_item(const symbolic_tile *t, const vpps_operand *o, uint32_t i);
/* Its element e, wherever it lies. */
uint64_t symbolic_element(const symbolic_tile *t, const vpps_operand *o, uint32_t i, uint32_t e);

/* ---- symbolic_ops.c */

void symbolic_instruction(const symbolic_tile *t, const vpps_program_step *s);
/* Element e of a product's item i. */
uint64_t symbolic_product(const symbolic_tile *t, const vpps_program_step *s, uint32_t i, uint32_t e);

#endif
