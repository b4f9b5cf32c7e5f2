/* ops_harness.h - computes with elements, whole vectors and weights in a small kernel that consists of the kernel's templates and runs under software
 * SIMT. */
#pragma once

#include "interp_templates/arguments.cuh" /* the kernel's parameter; this file is also C */
#include "runtime/simt/simt.h"
#include "script/task.h"

typedef struct ops_machine {
    uint32_t n_vps, threads;
} ops_machine;

/* Machines of several virtual processors: with 12 warps, and with two. */
enum { N_OPS_MACHINES = 2 };
extern const ops_machine ops_machines[N_OPS_MACHINES];

/* What the kernel gets: `items` vectors of `length` elements, one after the other, for which an instruction runs, or that many weights for a step of
 * an optimiser. Offsets are into the pool; s has an element for each item. */
typedef struct ops_case {
    uint32_t what; /* a vpps_opcode, or VPPS_I_COUNT + a vpps_optimizer_kind: t is then gradient, state and state */
    uint32_t length, items;
    uint32_t to, t[3], s[2];
    uint32_t f, u, e; /* f: its bits */
} ops_case;

/* The kernel's script: the header with dropout key and optimiser numbers, the number of cases, the cases; case i runs on virtual processor i % n_vps.
 * Only the addresses of pool and script are read. */
enum { OPS_CASE_WORDS = sizeof(ops_case) / 4 };

/* Returns whether the kernel's templates have a function for this instruction. For lists and matrices they have none: each stage has its own code. */
bool ops_has(uint32_t opcode);

/* Loads the kernel. NULL: software SIMT cannot run here (ThreadSanitizer), which is then checked. */
vpps_simt_kernel *ops_load(const ops_machine *m);
