/* choices.h - which instructions make the CPU's products, in what precision, and how: chosen by what trials of a few ms measured on this
 * processor (measure.c), or without them by a table. tuning.c keeps the trials, and makes a resumed run keep its choice. */
#pragma once

#include "runtime/cpu/units.h"
#include "vpps.h"

/* X(way, what it is): what is measured, as vpps_trial names it. One core multiplies matrices of VPPS_TRIAL_SIDE rows and columns. */
#define VPPS_CPU_WAY_TABLE(X)                                                                                          \
    X(forward, "forward, or backward by a copy")                                                                       \
    X(rows, "backward, the matrix as it lies")                                                                         \
    X(gradient, "gradient of the matrix")                                                                              \
    X(copy, "another copy: transposed, or in bf16")

#define X(name, what) VPPS_CPU_WAY_##name,
typedef enum vpps_cpu_way { VPPS_CPU_WAY_TABLE(X) VPPS_CPU_WAYS } vpps_cpu_way;
#undef X

enum { VPPS_TRIAL_SIDE = 256, VPPS_CPU_TRIALS = 160 /* enough for all units in all ways */ };

extern const char *const vpps_cpu_ways[VPPS_CPU_WAYS];

/* X(number, its value without trials, what it is). */
#define VPPS_CPU_CHOICE_TABLE(X)                                                                                       \
    X(tile, 96, "forward: vectors at a time")                                                                          \
    X(few, 3, "backward: vectors at a time, from which on a transposed copy is the faster way")                        \
    X(pays, 48, "backward: such vectors of a batch, from which on they pay for making the copy")

typedef struct vpps_cpu_choice {
    uint32_t kernels;         /* number in the units' kernels */
    uint32_t unit;            /* number in the units' bf16; of no meaning in fp32 */
    vpps_precision precision; /* never AUTO */
#define X(name, value, what) uint32_t name;
    VPPS_CPU_CHOICE_TABLE(X)
#undef X
} vpps_cpu_choice;

/* What is to be chosen for. */
typedef struct vpps_cpu_problem {
    vpps_precision asked;
    uint32_t batch; /* inputs; 0: not known */
    size_t elems;   /* of the matrices that are one VP's */
    uint32_t side; /* of a matrix, its rows or columns, whichever are fewer: the mean over all elements; 0: not known */
    size_t cache_bytes; /* of the cache that is one core's */
    bool portable;
    const char *wanted; /* VPPS_ISA, the name of kernels or of a unit for bf16; an unknown one is ignored. NULL: none */
} vpps_cpu_problem;

/* The choice by n trials; n = 0: by the table. `why` (of `bytes`) says what decided on the precision. */
vpps_cpu_choice vpps_cpu_choose(const vpps_cpu_units *units, const vpps_cpu_problem *problem, const vpps_trial *trials,
                                uint32_t n, char *why, size_t bytes);

/* Is the trial one of a unit, precision and way that the choice uses? */
bool vpps_cpu_is_chosen(const vpps_cpu_units *units, const vpps_cpu_choice *choice, const vpps_trial *trial);

/* Writes a choice as "avx512 amx bf16x3 96 9 64" into text of VPPS_CHOICE_BYTES. Reading returns false, and leaves *out alone, if the
 * text is not a choice that these units can carry out. */
enum { VPPS_CHOICE_BYTES = 96 };
void vpps_cpu_write_choice(const vpps_cpu_units *units, const vpps_cpu_choice *choice, char *text);
bool vpps_cpu_read_choice(const vpps_cpu_units *units, const char *text, vpps_cpu_choice *out);
