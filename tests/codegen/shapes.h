/* shapes.h - models of nothing but shapes, and machines to place them on. */
#ifndef VPPS_TESTS_SHAPES_H
#define VPPS_TESTS_SHAPES_H

#include "common/testing.h"
#include "plan/partition.h"

enum { SHAPES_MAX_PARAMS = 24 };

/* A model that has shapes only: a plan reads nothing else, and 2048 x 2048 costs nothing. */
typedef struct shapes {
    vpps_model model;
    vpps_parameter_data params[SHAPES_MAX_PARAMS];
    char names[SHAPES_MAX_PARAMS][16];
} shapes;

/* Adds a parameter, named p0, p1, ... */
void shapes_add(shapes *s, vpps_param_kind kind, uint32_t count, uint32_t rows, uint32_t cols);

/* The parameters of models/tree_lstm.c that matter. */
void shapes_tree_lstm(shapes *s, uint32_t hidden, uint32_t embed, uint32_t classes);

/* Random matrices. Vectors and tables lie between them, so that numbers of matrices are not numbers of parameters. */
void shapes_draw(shapes *s, uint64_t *random);

/* Shared memory of an SM and of a CTA is as real GPUs have it, in four kinds. */
vpps_machine shapes_machine(uint32_t sms, uint32_t kind);

static inline uint32_t divide_up(uint32_t n, uint32_t by) { return (n + by - 1) / by; }

/* Like ck_assert_uint_*, which write a file each time, too slow for a million rows. */
#define MUST(a, op, b)                                                                                                 \
    do {                                                                                                               \
        const uint64_t must_a_ = (a), must_b_ = (b);                                                                   \
        if (!(must_a_ op must_b_)) {                                                                                   \
            ck_abort_msg("line %d: %s " #op " %s: %llu, %llu", __LINE__, #a, #b, (unsigned long long)must_a_,          \
                         (unsigned long long)must_b_);                                                                 \
        }                                                                                                              \
    } while (0)

#endif
