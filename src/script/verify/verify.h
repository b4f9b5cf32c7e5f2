/* verify.h - proves that a script is right, from the graph and the cells' ops alone, without results of the scheduler.
 *
 *   expression.c  formulas, so that equal ones have equal numbers
 *   function.c    what a vertex of the graph computes, and its derivative
 *   compiled.c    what a compiled cell computes
 *   proof.c       is it the same?
 *   stages.c      which stage makes which value, and what it reads and writes
 *   demand.c      what the request needs of the graph: vertices, gradients, terms of the loss
 *   blocks.c      which vertex is in which block, and where values lie
 *   records.c     is every word of the blocks' arrays what the graph says?
 *   words.c       every word of the pool: what it holds, who touched it, and what barriers order
 *   tasks.c       the instructions on vertices
 *   parameters.c  the instructions on parameters
 *   verify.c      header, streams, what must be done at the end
 *
 * The script is executed on a machine without numbers: a word of the pool holds "element e of value v of vertex i of block b". An
 * instruction is accepted when the words that it reads hold what the graph asks for and barriers alone order all accesses. A wait orders
 * only when it needs every signal that its barrier ever gets: so one run stands for every run.
 */
#pragma once

#include "script/script.h"

/* `outputs`, `gradients`: where the values of the request's outputs, and the gradients of its gradient nodes, will be read when the
 * script has run, or at its pause; VPPS_NONE: a gradient is taken for zero. `given`: where gradients are written at the pause; NULL: there is
 * none. `cells`: of the script's blocks. OK: the script does what the request asks of
 * the graph, and no result depends on the VPs' timing. Fails with SCRIPT (the message tells the instruction, and what was expected) or
 * MEMORY. */
vpps_status vpps_verify_batch(const uint32_t *script, size_t words, vpps_compiled_cell *const *cells, uint32_t n_cells,
                              const vpps_task_plan *plan, const vpps_graph *g, const vpps_batch_request *request,
                              const uint32_t *outputs, const uint32_t *gradients, const vpps_given_array *given);
