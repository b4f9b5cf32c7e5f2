/* format.h - the words of a script: its layout, instructions, bundles. The instructions are those of isa.def.
 *
 * A script is one buffer of 32-bit words; addresses are word indices into it.
 *
 *     header (vpps_script_header)
 *     n_vps + 1 prefix sums: VP v's instructions are at [starts[v], starts[v + 1])
 *     common part: segments that CALL runs, bundles, lists, data of input nodes
 *     the VPs' instructions
 *
 * SHARED instructions: word 0 (length: vectors, or list members), then
 *     AFFINE, AFFINE_T, AFFINE_P, REDUCE_P, OUTER    first, bundle
 *     TRANSPOSE, NORM, UPDATE                         parameter
 *     NORM_ROWS, UPDATE_ROWS                          table, list address
 *     NORM_END                                        -
 * They work on vectors first .. first + length - 1 of every list and output of a bundle. All gradients of parameters
 * are zero when a script starts; OUTER adds to them.
 *
 * A bundle is a group of affine operations with the same arguments. Before it stands the number of its words:
 *     n_lists, n_outputs
 *     for each list:   address of the values' offsets, address of the gradients' offsets or 0, offset of the partial
 *                      sums (or 0), elements of a vector
 *     for each output: offset of the values, offset of the gradients, bias or VPPS_NO_PARAM, rows, n_pairs,
 *                      n_pairs x (matrix, number of its list)
 * Output vectors lie one after the other. output = bias + sum over pairs of matrix * list member. Partial sums: VP v's
 * share of vector j of a list lies at partial + (v * members + j) * elements, members being the list's whole length,
 * which is the word before the list; the word before that is the offset of the list's gathered copy, or 0.
 *
 * In a plan with host_products, OUTER only prepares what the host multiplies: it adds the gradients of biases and gathers
 * the lists' vectors, one after the other, into their copies. When all VPs have reached HOST, the host adds the products,
 * bundle after bundle as the header's list of bundles names them. On a device that does everything itself, HOST is nothing.
 *
 * Barriers are counters, zero at the start. SIGNAL b adds one to counter b after everything the VP did before;
 * WAIT b n goes on once counter b is at least n.
 */
#ifndef VPPS_NODES_FORMAT_H
#define VPPS_NODES_FORMAT_H

#include "isa/isa.h"
#include "nodes/header.h"
#include "plan/plan.h"

enum { VPPS_WORD_ACC = 1u << 8, VPPS_WORD_SPLIT = 1u << 9, VPPS_LENGTH_SHIFT = 10, VPPS_MAX_LENGTH = (1u << 22) - 1 };

_Static_assert((uint32_t)VPPS_I_COUNT <= VPPS_WORD_ACC, "opcodes lie below the flags");
_Static_assert((uint64_t)VPPS_MAX_LENGTH << VPPS_LENGTH_SHIFT <= UINT32_MAX, "lengths lie above the flags");
_Static_assert(VPPS_MANY_ELEMS == VPPS_MAX_LENGTH + 1, "an instruction's length counts the elements of any value");

static inline uint32_t vpps_word(uint32_t opcode, uint32_t flags, uint32_t length) {
    return opcode | flags | length << VPPS_LENGTH_SHIFT;
}
static inline uint32_t vpps_word_opcode(uint32_t word) { return word & 0xffu; }
static inline uint32_t vpps_word_length(uint32_t word) { return word >> VPPS_LENGTH_SHIFT; }

/* Words of the instruction at `at`, word 0 included; 0 when the opcode is unknown or the words end before `end`. */
uint32_t vpps_instruction_words(const uint32_t *at, const uint32_t *end);

#define VPPS_SCRIPT_MAGIC 0x53505056u
enum { VPPS_HEADER_WORDS = sizeof(vpps_script_header) / 4 };
_Static_assert(sizeof(vpps_script_header) % 4 == 0, "a header is words");

static inline const uint32_t *vpps_script_starts(const uint32_t *script) { return script + VPPS_HEADER_WORDS; }

#endif
