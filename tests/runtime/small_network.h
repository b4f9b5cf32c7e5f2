/* small_network.h - a model with graphs that differ from batch to batch, for tests of handles. */
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

/* Equal seeds, equal parameters; with a handle, and without. */
small_network sn_with(uint64_t seed, const vpps_options *options);
small_network sn_of(uint64_t seed);
void sn_close(small_network *n);

/* Clears the graph and builds batch number `batch`: chains of some lengths with dropout and a classifier. The loss is
 * scaled by `factor` (NAN, INFINITY: so is the loss). */
vpps_node sn_build(const small_network *n, uint32_t batch, float factor);

enum { SN_CHAINS = 6 };
typedef struct sn_chains {
    vpps_node words[SN_CHAINS], states[SN_CHAINS], scores[SN_CHAINS]; /* of each chain: its first word; at its end */
} sn_chains;

/* Likewise, but chain i has i + 1 words, and there is no loss. */
sn_chains sn_build_chains(const small_network *n, uint32_t batch, float dropout);

/* Trains on batches [first, end), and reads the parameters back. */
void sn_train(const small_network *n, uint32_t first, uint32_t end);
/* Begins to train on that batch; trains on it, and gives its loss. */
void sn_fb(const small_network *n, uint32_t batch);
float sn_step(const small_network *n, uint32_t batch);

/* Compares what the two handles have of the parameters: to the bit, where `most` is 0. */
void sn_expect_alike(const small_network *a, const small_network *b, double most);

/* Small pool; watchdog and dropout as a test wants them. */
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

/* How many of these settings there are here: without software SIMT's, which are the last, under ThreadSanitizer, which is told. */
int sn_settings(const sn_setting *settings, int n);

/* One check for each of a program's n_settings `settings`; of those under software SIMT, make test leaves the last to make check-kernels. */
#define SN_EACH(name) GPU_EACH(name, n_settings - (n_settings == (int)VPPS_COUNT(settings)), n_settings)

/* How far numbers that were made in another order may be apart; compares n such numbers. */
double sn_error(const sn_setting *s);
void sn_expect_near(const float *got, const float *want, size_t n, double error);
