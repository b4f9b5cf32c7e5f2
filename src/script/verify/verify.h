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
 * accepted when the words that it reads hold what the graph asks for and barriers alone order all accesses. A wait orders only when it
 * needs every signal that its barrier ever gets: so one run stands for every run.
 */
#pragma once

#include "script/script.h"

/* Checks a script. In training in two halves the script pauses after forward, and the host writes gradients. `outputs`, `gradients`:
 * offsets at which the host reads the requested values (at the pause or at the end) and gradients; VPPS_NONE: the gradient is taken as
 * zero. `given`: where the host writes at the pause; NULL: no pause. `cells`: the cells of the script's blocks. OK: the script does what
 * the request asks of the graph, and no result depends on the virtual processors' timing. Fails with SCRIPT (the message names the task and
 * what was expected) or MEMORY. */
vpps_status vpps_verify_batch(const uint32_t *script, size_t words, vpps_compiled_cell *const *cells, uint32_t n_cells,
                              const vpps_target *target, const vpps_graph *g, const vpps_batch_request *request,
                              const uint32_t *outputs, const uint32_t *gradients, const vpps_given_array *given);
