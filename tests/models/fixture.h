/* fixture.h - all networks with and without their options, on examples, and what all suites here do with them. */
#pragma once

#include "common/reference.h"
#include "common/training.h"
#include "examples.h"

/* ---------------------------------------------------------------- cases */

/* A network of the table, and a choice of the options that make it another network. */
typedef struct net_case {
    const network *net;
    bool attention, input_feeding, mlp;
    uint32_t layers; /* 3, 2 or 1; 0: there is no such option */
    bool fullest;    /* everything is chosen */
    char name[64];
} net_case;

/* All of them: i from 0 below case_count(). A network without options is one case. */
int case_count(void);
net_case case_at(int i);

/* The option that sets this member of net_config, or NULL. */
const option_row *option_of(const network *n, size_t offset);
#define HAS_OPTION(net, member) (option_of(net, offsetof(net_config, member)) != NULL)

/* A network on trees that has no choice represents whole sentences. */
bool roots_only(const network *n);

/* ---------------------------------------------------------------- a network and examples */

typedef struct fixture {
    const network *net;
    const char *name; /* of the case */
    const examples *e;
    net_case c;
    net_config config;
    vpps_model *model;
    vpps_graph *g;
    void *state;
    vpps_node logits[MOST_EXAMPLES][MOST_POSITIONS], nll[MOST_EXAMPLES][MOST_POSITIONS];
    vpps_node cost[MOST_EXAMPLES];
    bool costs; /* are they a part of the loss? */
} fixture;

/* Case number i. `e` NULL: the examples of its kind. */
void fixture_open(fixture *f, int i, const examples *e, uint32_t hidden, uint32_t embed, float dropout);
void fixture_close(fixture *f);

/* Adds one example to the graph; its nodes are number i's. */
void add_example(fixture *f, uint32_t i, const net_example *x, net_heads heads);

/* All examples, as a new graph. The loss is the mean over the examples of their positions' sums. */
vpps_node build(fixture *f, net_heads heads);

/* Where the training loss is taken. */
net_heads loss_heads(const fixture *f);

/* ---------------------------------------------------------------- in double precision */

/* The model, with values away from the symmetries that networks begin with: zero biases, equal forget gates. */
ref_model *scattered_model(vpps_model *model);

/* ref_forward; the check fails where it does. */
ref_run *run_forward(vpps_graph *g, const ref_model *m, const ref_mode *mode);

double loss_value(vpps_graph *g, const ref_model *m, const ref_mode *mode, vpps_node loss);

/* The largest difference of two nodes' elements, which are of equal shape. */
double difference(const ref_run *a, vpps_node x, const ref_run *b, vpps_node y);

/* ---------------------------------------------------------------- the engine */

/* Two virtual processors, scripts verified, nothing measured. */
vpps_options options_for(const char *device);

/* ---------------------------------------------------------------- the suites */
