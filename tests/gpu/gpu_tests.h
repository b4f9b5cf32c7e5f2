/* gpu_tests.h - what the tests of the GPU device share: which device, how it is laid out, how a training run on it is
 * compared with the double-precision reference.
 *
 * The device is $VPPS_TEST_DEVICE: "simt" unless set, or "cuda". With software SIMT a test also says how many SMs there
 * are; a GPU has as many as it has.
 */
#ifndef VPPS_TESTS_GPU_TESTS_H
#define VPPS_TESTS_GPU_TESTS_H

#include "common/reference.h"
#include "common/testing.h"

bool gpu_is_simulated(void);

/* Runs the suite that make() makes; under ThreadSanitizer, where software SIMT cannot be, checks that it says so. */
int gpu_main(Suite *(*make)(void));

/* ---------------------------------------------------------------- how the model is laid out */

typedef struct gpu_layout {
    uint32_t sms, threads, rpw, groups;
} gpu_layout;

/* Options for a layout: nothing left to choose, scripts verified. Sets the number of SMs of software SIMT. */
vpps_options gpu_options(const gpu_layout *layout, vpps_optimizer_kind optimizer);

/* An optimiser with everything it can have: decay, clipping. */
vpps_optimizer gpu_optimizer(vpps_optimizer_kind kind);

const char *gpu_layout_text(const gpu_layout *layout); /* until the next call */

/* Creates the handle, or fails the test. */
vpps_handle *gpu_open(vpps_model *model, const vpps_options *options);

/* ---------------------------------------------------------------- training runs */

enum { GPU_BATCHES = 4 };

/* Some batches, each a graph of the model, and what they must give. The model is left as it was. */
typedef struct gpu_episode {
    vpps_model *model;
    vpps_graph *g[GPU_BATCHES];
    vpps_node loss[GPU_BATCHES];
    uint32_t n_batches;
    vpps_optimizer optimizer;
    vpps_precision precision; /* of products */
    float *before;            /* all parameters, before the first batch */
} gpu_episode;

typedef struct gpu_expectation {
    ref_model *model; /* after the last batch */
    double *deviation, *state_deviation[2];
    double loss[GPU_BATCHES], loss_deviation[GPU_BATCHES];
    ref_run *inference; /* of the first batch's graph, before any update */
    double *inference_deviation;
    bool usable; /* the numbers stayed moderate */
} gpu_expectation;

void gpu_expect(gpu_expectation *e, const gpu_episode *episode);
void gpu_forget(gpu_expectation *e);

/* Trains on the handle, which is destroyed; fails the test when losses, parameters or states are not as expected. `what`
 * is said then. `forward`: reads some nodes by vpps_forward first. */
void gpu_check_episode(gpu_episode *episode, const gpu_expectation *e, vpps_handle *h, bool forward, const char *what);

/* All parameters, one after the other; the caller frees. */
float *gpu_values(const vpps_model *model, size_t *count);

#endif
