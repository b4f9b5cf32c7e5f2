/* session_state.h - the struct of a session (a network with its engine). session.c opens a session; source files of one option each, such
 * as carried_states.c, set that option's members of the struct. */
#pragma once

#include "cli/input/corpus.h"
#include "cli/session/carried_states.h"

/* Numbers of parameters that --init took from its checkpoint; all zero without --init. */
typedef struct init_found {
    uint32_t parameters; /* number of the network's parameters */
    uint32_t whole;      /* number of parameters copied from the checkpoint */
} init_found;

/* A parameter with its own learning rate (--lr-of). */
typedef struct parameter_rate {
    vpps_param param;
    float lr; /* initial learning rate of this parameter, in place of --lr */
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
    net_scores scores; /* graph nodes of the batch's scores, one per position (word, node or whole example) */
    vpps_node *costs; /* further loss terms of whole examples, such as the cost of computation time (net_scores.cost) */
    uint32_t n_costs;
    uint32_t n_positions;          /* number of scores */
    vpps_param class_weights;      /* --class-weights: the parameter, one weight per class */
    carry *carry;                  /* recurrent states that examples begin and end with (--carry); NULL: none */
    struct team *team;             /* the processes that train together; NULL: only this one */
    const struct tag_chain *chain; /* scores of successive tags in a sentence (--crf, --scheme); NULL: none */
    struct class_counts *classes;  /* confusion matrix that measuring fills; NULL: none */
    vpps_vectors_found vectors;    /* words whose embeddings --vectors initialised; all zero without --vectors */
    init_found init;
    parameter_rate *rates; /* the n_rates parameters that have a learning rate of their own (--lr-of) */
    uint32_t n_rates;
    bool nonfinite;                            /* whether a score was not finite since the caller's latest reset */
    uint64_t trained_losses, trained_examples; /* numbers of losses and examples in all session_add_batch calls */
} session;
