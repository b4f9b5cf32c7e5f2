/* choices.h - chooses how the CPU computes matrix products: by which instructions, and in what precision. Measurements of a few ms on this
 * processor ("trials", measure.c) decide; without trials, a table. tuning.c stores the trials, and makes a resumed run keep its choice. */
#pragma once

#include "runtime/cpu/units.h"
#include "vpps.h"

/* The kinds of products ("ways") that a trial measures on one core, as X(way, description). Matrices: VPPS_TRIAL_SIDE rows and columns. */
#define VPPS_CPU_WAY_TABLE(X)                                                                                          \
    X(forward, "forward, or backward by a copy")                                                                       \
    X(rows, "backward, the matrix as it lies")                                                                         \
    X(gradient, "gradient of the matrix")                                                                              \
    X(copy, "another copy: transposed, or in bf16")

#define X(name, what) VPPS_CPU_WAY_##name,
typedef enum vpps_cpu_way { VPPS_CPU_WAY_TABLE(X) VPPS_CPU_WAYS } vpps_cpu_way;
#undef X

/* VPPS_TRIAL_SIDE: rows and columns of the matrices whose products are timed; VPPS_CPU_TRIALS: most timed products */
enum { VPPS_TRIAL_SIDE = 256, VPPS_CPU_TRIALS = 160 };

extern const char *const vpps_cpu_ways[VPPS_CPU_WAYS];

/* Thresholds, numbers of vectors by which a way to compute a product is chosen, as X(name, value without measurements, description). */
#define VPPS_CPU_CHOICE_TABLE(X)                                                                                       \
    X(tile, 96, "forward: vectors at a time")                                                                          \
    X(few, 3, "backward: vectors at a time, from which on a transposed copy is the faster way")                        \
    X(pays, 48, "backward: such vectors of a batch, from which on they pay for making the copy")

typedef struct vpps_cpu_choice {
    uint32_t kernels;         /* index into vpps_cpu_units.kernels */
    uint32_t unit;            /* index into vpps_cpu_units.bf16 of the instructions used; unused in fp32 */
    vpps_precision precision; /* precision of products, never AUTO */
#define X(name, value, what) uint32_t name;
    VPPS_CPU_CHOICE_TABLE(X)
#undef X
} vpps_cpu_choice;

/* What decides, besides measured times, how products are computed: sizes of the model, options, and the processor. */
typedef struct vpps_cpu_problem {
    vpps_precision asked;
    uint32_t batch;     /* number of inputs per batch; 0: unknown */
    size_t elems;       /* number of matrix elements that one virtual processor (thread) owns */
    uint32_t side;      /* mean of min(rows, columns) over all matrices, weighted by their elements; 0: unknown */
    size_t cache_bytes; /* size of a core's own cache */
    bool portable;
    /* Name of an instruction set: the value of the environment variable VPPS_ISA, or NULL. An unknown name is ignored. */
    const char *wanted;
} vpps_cpu_problem;

/* Chooses instructions and precision by n measured times ("trials"); n = 0: by a fixed table. `why`: the precision's reason, written as
 * text. */
vpps_cpu_choice vpps_cpu_choose(const vpps_cpu_units *units, const vpps_cpu_problem *problem, const vpps_trial *trials,
                                uint32_t n, char *why, size_t bytes);

/* Returns whether a trial (a measurement of products) was of the chosen instructions, precision and way to compute. */
bool vpps_cpu_is_chosen(const vpps_cpu_units *units, const vpps_cpu_choice *choice, const vpps_trial *trial);

/* Writes how products are computed, such as "avx512 amx bf16x3 96 9 64", to text of VPPS_CHOICE_BYTES: instructions for
 * fp32 and for bf16, precision, and the thresholds of VPPS_CPU_CHOICE_TABLE. */
enum { VPPS_CHOICE_BYTES = 96 };
void vpps_cpu_write_choice(const vpps_cpu_units *units, const vpps_cpu_choice *choice, char *text);
/* Reads how products are computed from a text of vpps_cpu_write_choice. Returns false and leaves *out unchanged if the
 * text is malformed or names instructions that this processor (*units) lacks. */
bool vpps_cpu_read_choice(const vpps_cpu_units *units, const char *text, vpps_cpu_choice *out);
