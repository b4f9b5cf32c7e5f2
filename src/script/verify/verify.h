/* verify.h - proves that a script (a batch's program) is right, from the graph and the cells' ops alone, without results of the scheduler.
 *
 *   expression.c  numbers formulas so that equal ones have equal numbers
 *   function.c    expresses the function of a vertex of the graph, and its derivative
 *   proof.c       proves that a compiled cell computes this function
 *   program.c     runs the programs of a compiled cell with formulas instead of numbers
 *   operands.c    checks that steps find the values that their operands name
 *   formulas.c    builds the formulas of instructions and products
 *   demand.c      finds what the request needs: vertices, gradients, terms of the loss
 *   blocks.c      finds the block of each vertex, and the places of its values
 *   records.c     checks every word of the blocks' arrays against the graph
 *   words.c       tracks every word of device memory: its value, its accesses, and their order by barriers
 *   tasks.c       checks the tasks on vertices
 *   parameters.c  checks the tasks on parameters
 *   verify.c      checks the header, executes the groups' tasks, and checks what must be done at the end
 *
 * The script is executed on a machine without numbers: a word of memory holds "element e of value v of vertex i of block b". A task is
 * accepted when the words that it reads hold what the graph asks for and barriers alone order all accesses. A wait counts as order
 * only if it needs every signal that its barrier ever gets: one run then stands for all orders in which processors can run.
 */
#pragma once

#include "script/script.h"

/* Proves that a script (a batch's program) does what the request asks of the graph, and that no result depends on the
 * timing of CTAs or threads. `cells`: the compiled cells of the script. `outputs`, `gradients`: offsets in memory of
 * the values and gradients that the host reads (VPPS_NONE: a zero gradient). `given`: where the host writes gradients
 * at the pause after forward; NULL: no pause. Fails with SCRIPT (the message names task and expectation) or MEMORY. */
vpps_status vpps_verify_batch(const uint32_t *script, size_t words, vpps_compiled_cell *const *cells, uint32_t n_cells,
                              const vpps_target *target, const vpps_graph *g, const vpps_batch_request *request,
                              const uint32_t *outputs, const uint32_t *gradients, const vpps_given_array *given);
