/* symbolic.h - a plain interpreter of scripts over 64-bit integers instead of floats: the second opinion on what a
 * script computes.
 *
 * Addition and multiplication are those of the integers modulo 2^64, every other function is a hash of its operands.
 * So sums are exact in any order, equal results mean equal formulas (up to collisions), and a word that nobody wrote is
 * a random number. One VP is favoured or starved, and a starved one is held between reading and writing: a missing
 * barrier then shows as a different result. Stages take their vertices in tiles of one or of all, forwards or backwards.
 */
#ifndef VPPS_TESTS_SCRIPT_SYMBOLIC_H
#define VPPS_TESTS_SCRIPT_SYMBOLIC_H

#include "fixture.h"

typedef enum symbolic_outcome { SYMBOLIC_DONE, SYMBOLIC_STUCK, SYMBOLIC_FAULT } symbolic_outcome;

typedef struct symbolic_result {
    symbolic_outcome outcome;
    uint64_t hash; /* of loss, outputs, parameters and optimiser state; when done */
} symbolic_result;

typedef enum symbolic_tiles { SYMBOLIC_FORWARDS, SYMBOLIC_BACKWARDS, SYMBOLIC_AT_ONCE, SYMBOLIC_TILES } symbolic_tiles;

/* VP `vp` runs whenever it can, or only when no other can. `salt` draws what memory holds before it is written. */
typedef struct symbolic_order {
    uint32_t vp;
    bool starve;
    symbolic_tiles tiles;
    uint64_t salt;
} symbolic_order;

symbolic_result symbolic_run(const subject *s, symbolic_order order);

/* Does some order of the VPs give another result than `expected`? (All orders are tried in which one VP is favoured or
 * starved.) */
bool symbolic_differs(const subject *s, const symbolic_result *expected);

/* Does a pair of accesses to one place, one of them a write, lack an order? Every access is compared with every
 * earlier one. A wait orders when it needs all signals that its barrier gets; otherwise which came is luck. */
bool symbolic_races(const subject *s);

#endif
