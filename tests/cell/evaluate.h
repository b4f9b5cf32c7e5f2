/* evaluate.h - what a compiled cell's values must be: a plain double-precision evaluator of one vertex, value by value, that knows
 * only the contract of cell.h. Who sees which values when, stage by stage, is verify's to say (tests/script). */
#pragma once

#include "cell/cell.h"

/* A vertex: everything that a cell's values are made of. A list's members lie one after the other. */
typedef struct vertex {
    const vpps_model *model;
    double **params; /* in the order of vpps_param_values */
    uint32_t members[VPPS_CELL_LISTS];
    double *inputs[VPPS_CELL_MOST], *gradients[VPPS_CELL_MOST]; /* gradients: of outputs */
    uint32_t indices[VPPS_CELL_MOST], own, dropout;             /* what words of the record are made of */
    uint64_t dropout_key;
    double *data;
} vertex;

/* A vertex for cells lowered as `base`, all of it drawn at random. Indices are those of `indices`. */
vertex *vertex_draw(const vpps_model *model, const vpps_compiled_cell *base, const uint32_t *members,
                    const uint32_t *indices, uint64_t seed);
void vertex_destroy(vertex *x, const vpps_compiled_cell *base);

/* What a vertex gives: values of outputs, gradients of inputs, of tables and parameters (contributions and deferred
 * products multiplied out). Arrays that nothing was added to are zero. */
typedef struct results {
    const vpps_model *model;
    uint32_t n_outputs, n_inputs;
    size_t output_elems[VPPS_CELL_MOST], input_elems[VPPS_CELL_MOST];
    double *outputs[VPPS_CELL_MOST], *inputs[VPPS_CELL_MOST];
    double **params;
} results;

results *results_create(const vpps_compiled_cell *c, const vertex *x); /* all zero */

/* All values in the order of their numbers. */
results *evaluate(const vpps_compiled_cell *c, const vertex *x);

void results_destroy(results *r);

/* The sum over outputs of output times gradient: what the gradients are the gradients of. */
double results_loss(const results *r, const vertex *x);

/* Fails the test where a number differs by more than tolerance * (1 + its size). */
void results_compare(const char *what, const results *got, const results *want, double tolerance);

void results_compare_outputs(const char *what, const results *got, const results *want, double tolerance);

/* Gradients alone, of inputs in `mask` and parameters that are trained. */
void results_compare_gradients(const char *what, const results *got, const results *want, uint64_t mask,
                               double tolerance);
