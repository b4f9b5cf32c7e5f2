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

/* Adds the state after a word that follows a state; VPPS_NO_NODE: it is the first one. sn_chain: after so many drawn words. sn_scores and sn_loss
 * classify a state. */
vpps_node sn_read(const small_network *n, uint32_t word, vpps_node before);
vpps_node sn_chain(const small_network *n, uint64_t *random, uint32_t words);
vpps_node sn_scores(const small_network *n, vpps_node state);
vpps_node sn_loss(const small_network *n, vpps_node state, uint32_t label);

/* Clears the graph and builds batch number `batch`: chains of some lengths with dropout and a classifier. The loss is scaled by `factor` (if that is
 * NAN or INFINITY, so is the loss). All batches have vertices of the same types, so that on a GPU one kernel trains on all. */
vpps_node sn_build(const small_network *n, uint32_t batch, float factor);

/* Builds the chains [first, first + count) of a fixed corpus, without dropout; the loss is a 32nd of the sum of their losses. On a GPU, all counts
 * above 8 share a kernel: a sum of few terms has a type of its own. */
vpps_node sn_build_many(const small_network *n, uint32_t first, uint32_t count);

enum { SN_CHAINS = 6 };
typedef struct sn_chains {
    vpps_node words[SN_CHAINS], states[SN_CHAINS], scores[SN_CHAINS]; /* each chain's first word; at its end */
} sn_chains;

/* Builds chains as sn_build does, but chain i has i + 1 words, and there is no loss. */
sn_chains sn_build_chains(const small_network *n, uint32_t batch, float dropout);

/* Trains on the batches [first, end), then reads the parameters to the model. */
void sn_train(const small_network *n, uint32_t first, uint32_t end);
/* sn_fb begins to train on a batch; sn_step trains on it and returns its loss; sn_parts trains by vpps_backward and vpps_update. */
void sn_fb(const small_network *n, uint32_t batch);
float sn_step(const small_network *n, uint32_t batch);
void sn_parts(const small_network *n, vpps_node loss);

/* Compares the parameters of two handles; with `most` 0, they and the optimizer's state must have equal bits. */
void sn_expect_alike(const small_network *a, const small_network *b, double most);

/* Checks that a handle refuses all calls that need it, or only those that train, with VPPS_STATE and this text. */
void sn_expect_refused(const small_network *n, vpps_handle *h, bool only_training, const char *text);

/* Options with a small pool, and with the watchdog and dropout that tests need. */
vpps_options sn_options(uint32_t vps, vpps_optimizer_kind optimizer);

typedef struct sn_setting {
    const char *device;
    uint32_t vps, waves, slices;
    vpps_precision precision;
    vpps_optimizer_kind optimizer;
    vpps_caller caller;
    float clip;
    vpps_gradients gradients;
    bool portable;
} sn_setting;

/* Settings for tests of what no device, precision, optimizer or way to take a batch apart changes. Such a test defines `settings` as sn_usual. */
extern const sn_setting sn_usual[8];

vpps_options sn_options_on(const sn_setting *s);
small_network sn_on(const sn_setting *s);

/* Returns the number of settings that run here: under ThreadSanitizer, without those of software SIMT, which are the last. */
int sn_here(const sn_setting *settings, int n);

/* Makes a check for each of a program's `settings`; make test leaves the last software SIMT one to make check-kernels. */
#define SN_HERE sn_here(settings, VPPS_COUNT(settings))
#define SN_EACH(name) GPU_EACH(name, SN_HERE - !gpu_left_out(), SN_HERE)

/* sn_error returns how much numbers summed in another order may differ; sn_near compares n such numbers. */
double sn_error(const sn_setting *s);
void sn_expect_near(const float *got, const float *want, size_t n, double error);
