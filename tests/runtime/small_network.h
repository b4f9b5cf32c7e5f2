/* small_network.h - a model with graphs that differ from batch to batch, for tests of handles. */
#ifndef VPPS_TESTS_SMALL_NETWORK_H
#define VPPS_TESTS_SMALL_NETWORK_H

#include "vpps.h"

enum { SN_WORDS = 20, SN_EMBED = 12, SN_HIDDEN = 37, SN_CLASSES = 5, SN_PARAMS = 6 };

typedef struct small_network {
    vpps_model *model;
    vpps_graph *g;
    vpps_param E, W, U, b, C, b_c;
} small_network;

/* Equal seeds, equal parameters. */
void sn_open(small_network *n, uint64_t seed);
void sn_close(small_network *n);

/* Clears the graph and builds batch number `batch`: chains of some lengths with dropout and a classifier. The loss is
 * scaled by `factor` (NAN, INFINITY: so is the loss). */
vpps_node sn_build(const small_network *n, uint32_t batch, float factor);

/* The model's parameters, one after the other; the caller frees. */
float *sn_values(const small_network *n, size_t *count);
/* The same, as the handle has them. */
float *sn_handle_values(const small_network *n, vpps_handle *h, size_t *count);

/* Compares the parameters of two handles: to the bit, where `most` is 0. */
void sn_expect_alike(const small_network *a, vpps_handle *ha, const small_network *b, vpps_handle *hb, double most);

/* Small pool; watchdog and dropout as a test wants them. */
vpps_options sn_options(uint32_t vps, vpps_optimizer_kind optimizer);

#endif
