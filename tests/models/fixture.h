/* fixture.h - all networks, with and without their options, on examples; and what the suites of this folder share. */
#pragma once

#include "common/training.h"
#include "examples.h"

/* ---------------------------------------------------------------- cases */

/* A network of the table, and a choice of options that change its structure. */
typedef struct net_case {
    const network *net;
    bool attention, input_feeding, mlp;
    uint32_t layers; /* 3, 2 or 1; 0: the network has no such option */
    bool fullest;    /* everything is chosen */
    char name[64];
} net_case;

/* Numbers of cases: i from 0 below case_count(). A network without options is one case. */
int case_count(void);
net_case case_at(int i);

/* Returns the option that sets this member of net_config, or NULL. */
const option_row *option_of(const network *n, size_t offset);
#define HAS_OPTION(net, member) (option_of(net, offsetof(net_config, member)) != NULL)

/* Returns whether a network on trees represents whole sentences only: no option chooses where losses are taken. */
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
} fixture;

/* Opens case number i. `e` NULL: the examples of its kind. */
void fixture_open(fixture *f, int i, const examples *e, uint32_t hidden, uint32_t embed, float dropout);
void fixture_close(fixture *f);

/* Adds one example to the graph; its nodes have number i. */
void add_example(fixture *f, uint32_t i, const net_example *x, net_heads heads);

/* Builds a new graph of all examples. The loss is the mean over the examples of their positions' sums. */
vpps_node build(fixture *f, net_heads heads);

/* Returns the positions where the training loss is taken. */
net_heads loss_heads(const fixture *f);

/* ---------------------------------------------------------------- the engine */

/* Returns options with two virtual processors, verified scripts, and no measuring. */
vpps_options options_for(const char *device);
