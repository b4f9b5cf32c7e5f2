/* ops_harness.h - what a kernel computes of elements, of whole vectors and of weights, in a small kernel of their own that is put
 * together from the kernel's templates and loaded for software SIMT. */
#pragma once

#include "interp_templates/arguments.cuh" /* the kernel's parameter: it is C, too */
#include "runtime/simt/simt.h"
#include "script/task.h"

typedef struct ops_machine {
    uint32_t n_vps, threads;
} ops_machine;

/* A power of two of warps, and none; one VP, and several. */
enum { N_OPS_MACHINES = 3 };
extern const ops_machine ops_machines[N_OPS_MACHINES];

/* What the kernel is told: `items` vectors of `length` elements one after the other, for which an instruction runs, or that many
 * weights, for which an optimiser's step does. Offsets are into the pool; s has an element for each item. */
typedef struct ops_case {
    uint32_t what; /* a vpps_opcode, or VPPS_I_COUNT + a vpps_optimizer_kind: t is gradient, state and state then */
    uint32_t length, items;
    uint32_t to, t[3], s[2];
    uint32_t f, u, e; /* f: its bits */
} ops_case;

/* Its script: the header, which has the dropout key and the optimiser's numbers, the number of cases, the cases; case i is
 * done by VP i % n_vps. Only the pool's and the script's addresses are read. */
enum { OPS_CASE_WORDS = sizeof(ops_case) / 4 };

/* Has this instruction a function of its own in the kernel's templates? Those of lists and of matrices have none: kernels have
 * them written out in each stage. */
bool ops_has(uint32_t opcode);

/* Loads the kernel. NULL where software SIMT cannot be (ThreadSanitizer), which is then checked. */
vpps_simt_kernel *ops_load(const ops_machine *m);
