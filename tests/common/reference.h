/* reference.h - what a training step must give: a plain double-precision evaluator of graphs, reverse-mode gradients, and the optimisers.
 * It reads the graph's structures and shares nothing else with the engine.
 *
 * Tolerance. How far may single precision be off? That depends on the graph: a sum that cancels, a division by something small, Adam's
 * division by the size of a gradient. So it is measured, by stochastic arithmetic (Vignes 1993, "A stochastic arithmetic for reliable
 * scientific computation"): the same evaluation is repeated with `noise` > 0, where every element that an operation reads or writes is off
 * by a random relative error of up to noise units in the last place of single precision. A value's spread over some of these runs is what
 * rounding does to it, kinks and cancellation included; an engine that is right stays within a small multiple of it. */
#pragma once

#include "common/flat.h"
#include "common/testing.h"

/* A model's parameters, and their optimiser states, each in one array. */
typedef struct ref_model {
    const vpps_model *model;
    uint32_t n;
    size_t *first; /* n + 1: parameter p is [first[p], first[p + 1]), in the order of vpps_param_values */
    double *values, *states[2];
    uint64_t *updates; /* of each parameter's states */
} ref_model;

ref_model *ref_model_create(const vpps_model *model);
ref_model *ref_model_copy(const ref_model *from);
void ref_model_destroy(ref_model *m);

typedef struct ref_mode {
    bool training;        /* dropout is on, with `dropout_key` */
    uint64_t dropout_key; /* vpps_dropout_key(seed, batch) */
    double noise;         /* in units in the last place of single precision; 0: exact */
    double product_noise; /* relative noise of every operand of a product with a matrix; 0: none */
    uint64_t noise_seed;
} ref_mode;

/* One evaluation of a graph: node x's elements are [first[x], first[x + 1]) of values and grads, column after column; param_grads and used are
 * numbered as in ref_model. */
typedef struct ref_run {
    const vpps_graph *g;
    flat_graph *flat;
    ref_mode mode;
    size_t *first;
    size_t *at, n_values; /* for each node of the flat graph: its first element; number of all elements */
    double *values, *grads;
    double *param_grads;
    uint8_t *used; /* whether the loss depends on the element (of a lookup table: on its row) */
    size_t n_param_elems;
    /* scratch: one node's arguments, their gradients, its value and gradient; pointers to a list's members, and their rows */
    double *scratch;
    const double **list;
    uint32_t *list_rows;
    size_t scratch_elems;
    uint64_t random;
} ref_run;

/* Computes the values of all nodes. NULL: the graph has an error. */
ref_run *ref_forward(vpps_graph *g, const ref_model *m, const ref_mode *mode);
/* Computes the gradients of all nodes and parameters: of the scalar `loss`; or of the sum over n nodes of their elements times given ones
 * (NULL: zeros). */
void ref_backward(ref_run *r, const ref_model *m, vpps_node loss);
void ref_backward_from(ref_run *r, const ref_model *m, uint32_t n, const vpps_node *nodes, float *const *gradients);
void ref_run_destroy(ref_run *r);

/* Makes a step of the optimiser with the run's noise. */
void ref_step(ref_model *m, ref_run *r, const vpps_optimizer *o);

/* deviation[i] = max(deviation[i], |noisy[i] - exact[i]|) */
void ref_widen(double *deviation, const double *exact, const double *noisy, size_t n);

/* Returns the first of n elements that differs more from `want` than rounding explains, or n. The bound, also in *bound if it is exceeded, is a
 * multiple of the element's own spread, plus the tensor's mean spread (a few samples may be small by accident), plus the rounding of the result. */
size_t ref_compare(const float *got, const double *want, const double *deviation, size_t n, double *bound);

enum { REF_NOISE_RUNS = 3 };
#define REF_NOISE 8.0

DESTROYED_BY(ref_model, ref_model_destroy)
DESTROYED_BY(ref_run, ref_run_destroy)
