/* session.h - a session: a network, the model that holds its parameters, the engine's handle, and the graph that batches are built on. */
#pragma once

#include "cli/input/task.h"
#include "cli/session/session_state.h"

/* Returns the options' defaults for s's command, network and action. */
settings options_defaults(const settings *s);

/* Returns the number of generated examples that train in about a minute. */
uint32_t options_default_examples(const settings *s);

/* Returns the engine's options for the command line's settings. */
vpps_options session_options(const settings *s);

/* Makes the network that s names, with the sizes in s->net and the vocabularies of c; then its handle and a graph. s
 * must outlive the session. Call session_close also after a failure. */
vpps_status session_open(session *x, const settings *s, const corpus *c);

/* Opens the data that the settings s ask for, then a session (network, engine, graph) for these data. Free both also after a failure. */
vpps_status session_open_on(session *x, settings *s, corpus *c);
void session_close(session *x);

/* Loads a checkpoint's parameters. Fails as vpps_load does, and with NONFINITE, naming a parameter, where values are
 * not finite: such a network can neither answer nor be trained. */
vpps_status session_load(session *x, const char *path);

/* Makes *chain, which says how a sentence's tags depend on each other: by the network's current parameters (--crf) and
 * by --scheme. Uses the session's graph. Call chain_close also after a failure. */
vpps_status session_open_chain(session *x, const corpus *c, struct tag_chain *chain);

/* Fails with NONFINITE if some score was not finite since x->nonfinite was last set to false. */
vpps_status session_check_scores(const session *x);

/* With --trace: writes the recorded trace atomically. Fails with IO. */
vpps_status session_write_trace(session *x);

/* Clears the graph and adds n examples of a split for training. *loss is the sum of the losses of all positions (words, nodes or whole
 * examples) divided by in_batch, the number of examples in the batch of all processes. */
vpps_status session_add_batch(session *x, corpus *c, const corpus_split *split, const uint32_t *examples, uint32_t n,
                              uint32_t in_batch, vpps_node *loss);

/* Runs vpps_backward for the graph and `loss` of session_add_batch; loss is VPPS_NO_NODE if only other processes have examples. Adds to
 * counts[0] the number of words or nodes that the training scores classify right, to counts[1] the number of labelled words or nodes. */
vpps_status session_backward(session *x, vpps_node loss, double counts[2]);

/* Adds to counts[class] the number of a split's positions (words, nodes or whole examples) that have this label and a loss in training. */
vpps_status session_count_labels(session *x, corpus *c, const corpus_split *split, uint64_t *counts);

/* Computes the losses of n examples by a forward pass. *nll: sum of the losses; *counted: number of losses, one per labelled word. */
vpps_status session_nll(session *x, corpus *c, const corpus_split *split, const uint32_t *examples, uint32_t n,
                        double *nll, uint64_t *counted);

/* The logits (scores of all classes) of each position (word, node or whole example) in some examples. */
typedef struct position_logits {
    uint32_t n;       /* number of positions (words, nodes or whole examples) in the requested examples */
    const float **of; /* for each position, a vector of all classes' logits; NULL: not requested */
    float *values;
} position_logits;

/* Computes the logits of n examples at the words or nodes that `heads` selects (labelled ones, roots of trees, or all).
 * Call position_logits_free in any case. */
vpps_status session_logits(session *x, corpus *c, const corpus_split *split, const uint32_t *examples, uint32_t n,
                           net_heads heads, position_logits *out);
void position_logits_free(position_logits *p);

/* Runs n examples forward. Sets means[i] to the mean of example i's losses, one per word or node to predict; NaN: example i has no loss. */
vpps_status session_mean_nll(session *x, corpus *c, const corpus_split *split, const uint32_t *examples, uint32_t n,
                             float *means);

/* Runs n examples forward, and sets (*predicted)[] to the class of each word, node or whole example to predict, example
 * after example; -1: not selected by `heads` (labelled ones, roots of trees, or all). Grows the array as needed; the
 * caller frees it. With x->chain (scores of successive tags; heads NET_HEADS_ALL), predicts likeliest sequences. */
vpps_status session_predict(session *x, corpus *c, const corpus_split *split, const uint32_t *examples, uint32_t n,
                            net_heads heads, int32_t **predicted);

/* Predicts a split batch by batch and calls `see` per example, until it fails or *stop is not 0 (stop may be NULL). */
vpps_status session_predict_all(session *x, corpus *c, const corpus_split *split, const volatile int *stop,
                                session_see *see, void *context);

/* Replaces this process's counts for a split by the sums over all processes. All processes call it for the same
 * measurements in the same order, after their last vpps_forward, since it ends inference (vpps_forward_end). */
vpps_status session_add_up(session *x, uint32_t n, uint64_t *counts);

/* Returns the class with the largest logit, the first of equal ones. */
uint32_t likeliest_class(const float *logits, uint32_t classes);
