/* session_state.h - the struct of a session. session.c opens a session; the sources of single options, such as carry.c, fill in
 * their members. */
#pragma once

#include "cli/input/corpus.h"
#include "cli/session/carry.h"

/* What --init took from its checkpoint; all zero without --init. */
typedef struct init_found {
    uint32_t parameters; /* all parameters of the network */
    uint32_t whole;      /* parameters taken as a whole */
    uint32_t partly;     /* parameters of which the checkpoint has the rows of some words, characters or classes */
} init_found;

/* A parameter with its own learning rate (--lr-of). */
typedef struct parameter_rate {
    vpps_param param;
    float lr; /* initial rate, as --lr */
} parameter_rate;

typedef struct session {
    const settings *settings;
    vpps_model *model;
    vpps_handle *handle;
    vpps_graph *graph;
    /* Receives the engine's messages; NULL: they go to stderr. Set it before the session is opened. */
    void (*log)(void *context, const char *line);
    void *log_context;
    void *net;
    net_scores scores; /* scores of the batch on the graph, by example and position */
    vpps_node *costs;  /* losses of the batch's examples that have one (net_scores) */
    uint32_t n_costs;
    uint32_t n_positions;          /* number of scores */
    vpps_param class_weights;      /* --class-weights: a frozen vector */
    carry *carry;                  /* states that examples begin and end with (--carry); NULL: none */
    struct team *team;             /* the processes that train together; NULL: only this one */
    const struct tag_chain *chain; /* dependencies between a sentence's tags; NULL: none */
    struct class_counts *classes;  /* confusion matrix that measures fill; NULL: none */
    vpps_vectors_found vectors;    /* words with pretrained embeddings; all zero without --vectors */
    init_found init;
    parameter_rate *rates; /* the n_rates rates of --lr-of */
    uint32_t n_rates;
    bool nonfinite;                            /* some score was not finite since this was last set to false */
    uint64_t trained_losses, trained_examples; /* totals over all session_add_batch calls */
} session;
