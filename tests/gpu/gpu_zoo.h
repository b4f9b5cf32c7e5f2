/* gpu_zoo.h - a model whose products have every shape that the kernel treats differently: bundles of several outputs, and of more outputs than are
 * processed together, sums of several pairs, values of several columns, levels of one vector and of many; and graphs that use them. */
#pragma once

#include "common/episode.h"
#include "common/gpu_tests.h"

enum { ZOO_SIZES = 4, ZOO_WORDS = 7, ZOO_OUTPUTS = 10 };

typedef struct gpu_zoo {
    vpps_model *model;
    vpps_graph *g;
    vpps_handle *h; /* NULL: none */
    uint32_t size[ZOO_SIZES];
    vpps_param E, A[3], B[2], C[3], D, U[3], first_bias;
    vpps_param b[ZOO_SIZES];
} gpu_zoo;

/* Makes a zoo. Sizes of the values x, a, b, c: matrices A are a x x, B are b x a and b x x, C are c x b, c x a and c x x, D is x x c, U are a x b. */
gpu_zoo zoo_of(const uint32_t size[ZOO_SIZES], uint64_t seed);
gpu_zoo zoo_with(const uint32_t size[ZOO_SIZES], uint64_t seed, const vpps_options *options);
void zoo_close(gpu_zoo *zoo);

/* Adds a batch of chains, each of some steps, to g; returns the loss, scaled by `factor`. */
vpps_node zoo_build(const gpu_zoo *zoo, vpps_graph *g, uint32_t chains, uint64_t seed, float factor);

/* Makes some batches of different widths. Free them with zoo_forget. */
episode zoo_episode(const gpu_zoo *zoo, const uint32_t *chains, uint32_t n_batches);
void zoo_forget(episode *x);

/* Layouts: few virtual processors and more, one row at a time and several, one group and two. */
enum { ZOO_LAYOUTS = 4 };
extern const gpu_layout zoo_layouts[ZOO_LAYOUTS];

/* Trains the episode with these options in that layout and compares; the numbers must be moderate, unless `usable` receives whether they are. */
void expect_agreement(const episode *x, const vpps_options *o, const gpu_layout *layout, int ways, bool *usable);
/* Does the same with one graph, without an optimiser's state. */
void expect_agreement_of(const training *t, vpps_node loss, vpps_precision precision, const gpu_layout *layout,
                         int ways);
/* Does the same with a drawn case; returns whether its numbers were moderate. */
bool expect_agreement_on(const rg_case *c, const vpps_options *o, const gpu_layout *layout, int ways);
