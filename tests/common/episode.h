/* episode.h - a training run of a few batches on any device, in any precision, beside the double-precision reference: losses,
 * parameters and states must be what it says, as far as rounding lets them (reference.h). */
#pragma once

#include "common/random_graph.h"
#include "common/reference.h"
#include "common/training.h"

enum { EPISODE_BATCHES = 4, EPISODE_NODES = 6 /* in halves */ };

/* EPISODE_FORWARD: some nodes are read by vpps_forward first. EPISODE_PARTS: vpps_backward and vpps_update for vpps_fb; and
 * EPISODE_REQUEST: with a request of some nodes. EPISODE_HALVES: vpps_step_forward and vpps_step_backward; and EPISODE_REQUEST: after a step
 * that is given up. */
enum { EPISODE_FORWARD = 1, EPISODE_PARTS = 2, EPISODE_REQUEST = 4, EPISODE_HALVES = 8 };

/* Some batches, each a graph of the model. */
typedef struct episode {
    vpps_model *model;
    vpps_graph *g[EPISODE_BATCHES];
    vpps_node loss[EPISODE_BATCHES];
    uint32_t n_batches;
    /* In halves: backward goes from given gradients of some nodes, not from the loss. */
    struct {
        vpps_node nodes[EPISODE_NODES];
        float *gradients[EPISODE_NODES];
        uint32_t n; /* 0: from the loss */
    } given[EPISODE_BATCHES];
} episode;

/* With EPISODE_HALVES among the ways, it is one in halves: nodes of each batch are drawn, one of them twice, and their gradients. */
episode episode_of(const rg_built *built, int ways);
void episode_forget(episode *x);

/* What training from the model's present parameters must give, with these options' optimiser, precision and seed. */
typedef struct expectation {
    ref_model *model; /* after the last batch */
    double *deviation, *state_deviation[2];
    double loss[EPISODE_BATCHES], loss_deviation[EPISODE_BATCHES];
    ref_run *inference; /* of the first batch's graph, before any update */
    double *inference_deviation;
    ref_run *training[EPISODE_BATCHES]; /* of each batch's graph, in training */
    double *value_deviation[EPISODE_BATCHES], *gradient_deviation[EPISODE_BATCHES];
    bool usable; /* the numbers stayed moderate */
} expectation;

expectation expect_of(const episode *x, const vpps_options *o);
void forget_expectation(expectation *e);

/* Trains on a handle with these options and compares. NULL, or what is wrong, until the next call. The model is left as it was. */
const char *episode_check(const episode *x, const expectation *e, const vpps_options *o, int ways);
