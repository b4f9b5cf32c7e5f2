/* episode.h - a training run of a few batches, on any device and in any precision, compared with the double-precision reference: losses, parameters
 * and states must equal the reference's, within the effects of rounding (reference.h). */
#pragma once

#include "common/random_graph.h"
#include "common/reference.h"
#include "common/training.h"

enum { EPISODE_BATCHES = 4, EPISODE_NODES = 6 /* in halves */, EPISODE_READ = 256 };

/* Ways of a run. EPISODE_FORWARD: vpps_forward first reads some nodes. EPISODE_PARTS: vpps_backward and vpps_update instead of vpps_fb; with
 * EPISODE_REQUEST: with a request for some nodes. EPISODE_HALVES: vpps_step_forward and vpps_step_backward; with EPISODE_REQUEST: after a step that
 * is given up and one without parameters' gradients. EPISODE_ROWS: on the CPU; virtual processors share out the rows of every matrix that has 16,
 * as they do those of large ones. */
enum { EPISODE_FORWARD = 1, EPISODE_PARTS = 2, EPISODE_REQUEST = 4, EPISODE_HALVES = 8, EPISODE_ROWS = 16 };

/* Some batches, each of which is a graph of the model. */
typedef struct episode {
    vpps_model *model;
    vpps_graph *g[EPISODE_BATCHES];
    vpps_node loss[EPISODE_BATCHES];
    uint32_t n_batches; /* 0: g[0] serves for inference alone */
    double noise;       /* of expectations, as in ref_mode; 0: REF_NOISE */
    /* Number of nodes that EPISODE_FORWARD reads at most, up to EPISODE_READ; 0: as many as a request has. */
    uint32_t most_read;
    /* In halves: backward starts from given gradients of some nodes, not from the loss. */
    struct {
        vpps_node nodes[EPISODE_NODES];
        float *gradients[EPISODE_NODES];
        uint32_t n; /* 0: starts from the loss */
    } given[EPISODE_BATCHES];
} episode;

/* Returns an episode of these graphs. With EPISODE_HALVES in `ways`, draws nodes of each batch, one of them twice, and their gradients, some NULL. */
episode episode_of(const rg_built *built, int ways);
void episode_forget(episode *x);

/* What training from the model's current parameters must give, with these options' optimiser, precision and seed. */
typedef struct expectation {
    ref_model *model; /* the model after the last batch */
    double *deviation, *state_deviation[2];
    double loss[EPISODE_BATCHES], loss_deviation[EPISODE_BATCHES];
    ref_run *inference; /* run of the first batch's graph, before any update */
    double *inference_deviation;
    ref_run *training[EPISODE_BATCHES]; /* run of each batch's graph, in training */
    double *value_deviation[EPISODE_BATCHES], *gradient_deviation[EPISODE_BATCHES];
    bool usable; /* whether all numbers stayed moderate */
} expectation;

expectation expect_of(const episode *x, const vpps_options *o);
void forget_expectation(expectation *e);

/* Trains on a handle with these options, and compares. Returns NULL or, until the next call, what is wrong. The model stays as it was. */
const char *episode_check(const episode *x, const expectation *e, const vpps_options *o, int ways);
