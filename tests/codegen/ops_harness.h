/* ops_harness.h - the kernel's instructions in a small kernel of their own, loaded for software SIMT. */
#ifndef VPPS_TESTS_OPS_HARNESS_H
#define VPPS_TESTS_OPS_HARNESS_H

#include "interp_templates/arguments.cuh" /* the kernel's parameter: it is C, too */
#include "runtime/simt/simt.h"

typedef struct ops_machine {
    uint32_t n_vps, row_block, threads;
} ops_machine;

/* A power of two of threads, and none; one VP, and more than some vectors have blocks of rows. */
enum { N_OPS_MACHINES = 3 };
extern const ops_machine ops_machines[N_OPS_MACHINES];

/* Loads the kernel. Its `script`: number of instructions, dropout key (two words), number of questions, the
 * instructions' addresses, then an address and a number of words left for each question. An instruction that is not
 * SPLIT is done by one VP. Answers, which go to `counters`: what vpps_instruction_words says. NULL where software
 * SIMT cannot be (ThreadSanitizer), which is then checked. */
vpps_simt_kernel *ops_load(const ops_machine *m);

#endif
