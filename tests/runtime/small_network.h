/* small_network.h - a small model and graphs that differ from batch to batch, for tests of handles. */
#pragma once

#include "common/gpu_tests.h"
#include "common/training.h"

enum { SN_WORDS = 20, SN_EMBED = 12, SN_HIDDEN = 37, SN_CLASSES = 5, SN_PARAMS = 6 };

typedef struct small_network {
    vpps_model *model;
    vpps_graph *g;
    vpps_handle *h; /* NULL: none yet */
    vpps_param E, W, U, b, C, b_c;
} small_network;

/* Makes a network; equal seeds give equal parameters. sn_with also makes a handle. */
small_network sn_with(uint64_t seed, const vpps_options *options);
small_network sn_of(uint64_t seed);
small_network sn_of_sizes(uint64_t seed, uint32_t words, uint32_t embed, uint32_t hidden, uint32_t classes);
void sn_close(small_network *n);

/* Clears the graph and builds batch number `batch`: chains of some lengths with dropout and a classifier. The loss is scaled by `factor` (if that is
 * NAN or INFINITY, so is the loss). All batches have vertices of the same types, so that on a GPU one kernel trains on all. */
vpps_node sn_build(const small_network *n, uint32_t batch, float factor);

enum { SN_CHAINS = 6 };
typedef struct sn_chains {
    vpps_node words[SN_CHAINS], states[SN_CHAINS], scores[SN_CHAINS]; /* each chain's first word; at its end */
} sn_chains;

/* Builds chains as sn_build does, but chain i has i + 1 words, and there is no loss. */
sn_chains sn_build_chains(const small_network *n, uint32_t batch, float dropout);

/* Trains on the batches [first, end), then reads the parameters to the model. */
void sn_train(const small_network *n, uint32_t first, uint32_t end);
/* sn_fb begins to train on a batch; sn_step trains on it and returns its loss. */
void sn_fb(const small_network *n, uint32_t batch);
float sn_step(const small_network *n, uint32_t batch);

/* Compares the parameters of two handles; with `most` 0, they must have equal bits. */
void sn_expect_alike(const small_network *a, const small_network *b, double most);

/* Options with a small pool, and with the watchdog and dropout that tests need. */
vpps_options sn_options(uint32_t vps, vpps_optimizer_kind optimizer);

/* ---------------------------------------------------------------- on any device, in any precision */

typedef struct sn_setting {
    const char *device;
    uint32_t vps, waves, slices;
    vpps_precision precision;
    vpps_optimizer_kind optimizer;
    vpps_caller caller;
    float clip;
    vpps_gradients gradients;
} sn_setting;

vpps_options sn_options_on(const sn_setting *s);
small_network sn_on(const sn_setting *s);

/* Returns the number of settings to test: under ThreadSanitizer, without those of software SIMT, which are the last. */
int sn_settings(const sn_setting *settings, int n);

/* Makes a check for each of a program's n_settings `settings`; make test leaves the last software SIMT one to make check-kernels. */
#define SN_EACH(name) GPU_EACH(name, n_settings - (n_settings == (int)VPPS_COUNT(settings)), n_settings)

/* sn_error returns how much numbers summed in another order may differ; sn_near compares n such numbers. */
double sn_error(const sn_setting *s);
void sn_expect_near(const float *got, const float *want, size_t n, double error);
