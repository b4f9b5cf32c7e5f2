/* choices.h - how the CPU makes products: a choice for every shape of matrix, by what the trials of a short profile (`vpps tune`)
 * took, and these trials as text. tuning.c runs the profile, and keeps it in the cache.
 *
 * Without a profile's result choices are the table's. Training never measures them itself, so the same seed gives the same bits
 * until somebody tunes. */
#ifndef VPPS_CPU_CHOICES_H
#define VPPS_CPU_CHOICES_H

#include "runtime/profile.h"

/* X(choice, by default, what it is). Why these: bench/results/cpu-2core-avx512/tuning.md. */
#define VPPS_CPU_CHOICE_TABLE(X)                                                                                       \
    X(tile, 96, "forward: vectors at a time")                                                                          \
    X(few, 3, "backward: vectors at a time, from which on a transposed copy is the faster way")                        \
    X(pays, 48, "backward: such vectors of a batch, from which on they pay for making the copy")

/* Of the products with matrices of one shape. */
typedef struct vpps_cpu_choice {
#define X(name, value, what) uint32_t name;
    VPPS_CPU_CHOICE_TABLE(X)
#undef X
} vpps_cpu_choice;

extern const vpps_cpu_choice vpps_cpu_defaults;

/* By a unit for bf16 that multiplies with transposes as they lie, some vectors in the time of one (`product_t`): where there is a
 * copy it is as good for them, so `few` only tells which vectors pay for it. */
extern const vpps_cpu_choice vpps_cpu_spreads;

/* Ways to make products, as vpps_trial names them. */
#define VPPS_CPU_WAY_TABLE(X) X(tile) X(rows) X(copy) X(transpose)

#define X(name) VPPS_CPU_WAY_##name,
typedef enum vpps_cpu_way { VPPS_CPU_WAY_TABLE(X) VPPS_CPU_WAYS } vpps_cpu_way;
#undef X

extern const char *const vpps_cpu_ways[VPPS_CPU_WAYS];

/* A shape: of one VP, which has `rows` rows of a matrix. */
typedef struct vpps_cpu_shape {
    uint32_t rows, cols;
} vpps_cpu_shape;

static inline bool vpps_same_shape(vpps_cpu_shape a, vpps_cpu_shape b) { return a.rows == b.rows && a.cols == b.cols; }

typedef struct vpps_cpu_tuning {
    vpps_cpu_shape *shapes; /* of the model's matrices */
    uint32_t n_shapes;
    vpps_trial *trials; /* of the products, shape by shape */
    uint32_t n_trials;
    size_t shapes_capacity, trials_capacity;
    vpps_profile splits;                          /* by rows or by vertices, on the batches that are trained */
    void (*log)(void *context, const char *line); /* the options' */
    void *log_context;
} vpps_cpu_tuning;

void vpps_cpu_tuning_free(vpps_cpu_tuning *t);

/* The choice that n trials, all of one shape, ask for, whose ways become CURRENT. Times must differ by more than noise for
 * another choice than the default. */
vpps_cpu_choice vpps_cpu_choose_ways(vpps_trial *trials, uint32_t n);

/* All trials as lines of text, malloc'd, the caller's; NULL: out of memory. And back: false, if the text, which is used up, is not
 * that of trials of these shapes and splits; then there are no trials of products. */
char *vpps_cpu_write_trials(const vpps_cpu_tuning *t);
bool vpps_cpu_read_trials(vpps_cpu_tuning *t, char *text);

#endif
