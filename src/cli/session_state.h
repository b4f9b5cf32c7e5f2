/* session_state.h - the state of a session: session.c opens it, and other files fill in their parts. */
#pragma once

#include "cli/carry.h"
#include "cli/corpus.h"

/* What --init took; all zero without. */
typedef struct init_found {
    uint32_t parameters; /* of the network; of these: */
    uint32_t whole;      /* taken as they are */
    uint32_t partly;     /* taken for the words, characters or classes that the checkpoint has, too */
} init_found;

/* A parameter with a learning rate of its own. */
typedef struct parameter_rate {
    vpps_param param;
    float lr; /* of the first batch, as --lr is */
} parameter_rate;

typedef struct session {
    const settings *settings;
    vpps_model *model;
    vpps_handle *handle;
    vpps_graph *graph;
    void (*log)(void *context, const char *line); /* what the engine tells; set before opening, else stderr is told */
    void *log_context;
    void *net;
    net_scores scores; /* of the batch on the graph: one after the other, in order of its examples' positions */
    vpps_node *costs;  /* of its examples, those that have one (net_scores) */
    uint32_t n_costs;
    uint32_t n_positions;          /* of scores */
    vpps_param class_weights;      /* with --class-weights: a frozen vector */
    carry *carry;                  /* what examples that are added begin with, and leave; NULL: nothing */
    struct team *team;             /* the processes that train together; NULL: this one alone */
    const struct tag_chain *chain; /* how a sentence's tags depend on each other; NULL: they do not */
    struct class_counts *classes;  /* where a measure counts which class is taken for which; NULL: nowhere */
    vpps_vectors_found vectors;    /* which words' embeddings were pretrained; all zero without --vectors */
    init_found init;
    parameter_rate *rates; /* of --lr-of, n_rates */
    uint32_t n_rates;
    bool nonfinite;                            /* a score was not finite since this was last set to false */
    uint64_t trained_losses, trained_examples; /* that session_add_batch has added */
} session;
