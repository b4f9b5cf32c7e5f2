/* training.h - a model, a graph of it and a handle, with which most tests of training begin; and comparisons. */
#pragma once

#include "common/testing.h"

typedef struct training {
    vpps_model *model;
    vpps_graph *g;
    vpps_handle *h; /* NULL until training starts */
} training;

/* Makes a model without parameters, and an empty graph of it. */
training training_of(uint64_t seed);
/* Makes the handle, once the model has its parameters. options NULL: the defaults. */
void training_start(training *t, const vpps_options *options);
void training_end(training *t);

/* From now on, virtual processors of a CPU share out the rows of every matrix that has at least 16, as they do those of large ones. */
void share_rows(vpps_handle *h);

vpps_options default_options(void);

/* begin_cell begins to record a cell in the graph that it returns; end_cell ends the recording. */
vpps_graph *begin_cell(vpps_model *model, const char *name);
vpps_cell end_cell(vpps_graph *recorder);

/* latest_loss waits for the latest batch; train_batch trains on one. Both return the batch's loss. */
float latest_loss(vpps_handle *h);
float train_batch(vpps_handle *h, vpps_graph *g, vpps_node loss);

/* Returns the value of a scalar node, by inference. */
float infer(vpps_handle *h, vpps_graph *g, vpps_node x);

/* Return a parameter's gradient, and its values. */
vpps_gradient param_gradient(vpps_model *model, vpps_param p);
const float *gradient_of(const training *t, vpps_param p);

vpps_stats stats_of(vpps_handle *h);

/* Returns all parameters of the model, one after the other; the caller frees them. */
float *model_values(const vpps_model *model, size_t *count);
/* Returns the same, as the handle has them. */
float *handle_values(const vpps_model *model, vpps_handle *h, size_t *count);

/* Returns whether two models with the same parameters have equal bits; with `states`, also in the optimizer's state. */
bool models_are_equal(const vpps_model *a, const vpps_model *b, bool states);
