/* verify.h - proves that a script is right, from the graph and the cells' ops alone, without results of the scheduler.
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
 *   words.c       tracks every word of the pool: its value, its accesses, and their order by barriers
 *   tasks.c       checks the tasks on vertices
 *   parameters.c  checks the tasks on parameters
 *   verify.c      checks the header, executes the groups' tasks, and checks what must be done at the end
 *
 * The script is executed on a machine without numbers: a word of the pool holds "element e of value v of vertex i of block b". A task is
 * accepted when the words that it reads hold what the graph asks for and barriers alone order all accesses. A wait counts as order
 * only if it needs every signal that its barrier ever gets: one run then stands for all orders in which processors can run.
 */
#pragma once

#include "script/script.h"

/* Checks a script. `cells`: the cells of its blocks. `outputs`, `gradients`: offsets at which the host reads the requested values and
 * gradients (VPPS_NONE: a gradient that is zero). In training in two halves, the script pauses after forward; `given`: where the host then
 * writes gradients; NULL: no pause. OK: the script does what the request asks of the graph, and no result depends on the virtual
 * processors' timing. Fails with SCRIPT (the message names the task and what was expected) or MEMORY. */
vpps_status vpps_verify_batch(const uint32_t *script, size_t words, vpps_compiled_cell *const *cells, uint32_t n_cells,
                              const vpps_target *target, const vpps_graph *g, const vpps_batch_request *request,
                              const uint32_t *outputs, const uint32_t *gradients, const vpps_given_array *given);
