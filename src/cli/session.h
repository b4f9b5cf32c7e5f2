/* session.h - a network on a model, on a handle, with the graph that batches are built on. */
#pragma once

#include "cli/session_state.h"

/* The engine's options that the command line asks for. */
vpps_options session_options(const settings *s);

/* Makes the network of s (whose net's sizes are set), with the vocabularies of c, the handle and the graph. s must outlive
 * the session. Free with session_close in any case. */
vpps_status session_open(session *x, const settings *s, const corpus *c);

/* Opens the data that s asks for, then the session with the network that fits it. Free both in any case. */
vpps_status session_open_on(session *x, settings *s, corpus *c);
void session_close(session *x);

/* Takes the parameters of a checkpoint. Fails as vpps_load does, and with NONFINITE, naming a parameter, where some are not
 * finite: such a network has no answers, and cannot be trained. */
vpps_status session_load(session *x, const char *path);

/* How a sentence's tags depend on each other: by the network's parameters as they are now (--crf), and by --scheme. Uses the session's
 * graph. Close with chain_close in any case. */
vpps_status session_open_chain(session *x, const corpus *c, struct tag_chain *chain);

/* Fails with NONFINITE where a score was not finite since x->nonfinite was last false. */
vpps_status session_check_scores(const session *x);

/* With --trace: writes what was noted, whole or not at all. Fails with IO. */
vpps_status session_write_trace(session *x);

/* Clears the graph and adds n examples of a split, for training: *loss is the sum over the positions that count, divided by
 * the number of examples in the batch: n, and those of other processes. */
vpps_status session_add_batch(session *x, corpus *c, const corpus_split *split, const uint32_t *examples, uint32_t n,
                              uint32_t in_batch, vpps_node *loss);

/* vpps_backward of the graph that session_add_batch made, for `loss`, which may be VPPS_NO_NODE where other processes have the batch.
 * Adds to counts how many positions were classified right, and how many there were, by the scores that were trained on. */
vpps_status session_backward(session *x, vpps_node loss, double counts[2]);

/* Adds to counts[class] how many positions of a split have it as their label, where the training loss is taken. */
vpps_status session_count_labels(session *x, corpus *c, const corpus_split *split, uint64_t *counts);

/* Adds them, runs the graph, and then: *nll is the sum over the positions that count, of which there are *counted. */
vpps_status session_nll(session *x, corpus *c, const corpus_split *split, const uint32_t *examples, uint32_t n,
                        double *nll, uint64_t *counted);

/* The logits of positions. */
typedef struct position_logits {
    uint32_t n;       /* positions, one example's after the other's */
    const float **of; /* each one's, of all classes; NULL: none was asked for */
    float *values;
} position_logits;

/* The same, and then: the logits of every position where `heads` asks for some. Free in any case. */
vpps_status session_logits(session *x, corpus *c, const corpus_split *split, const uint32_t *examples, uint32_t n,
                           net_heads heads, position_logits *out);
void position_logits_free(position_logits *p);

/* The same, and then: the mean loss of each example's positions, NaN where an example has none. */
vpps_status session_mean_nll(session *x, corpus *c, const corpus_split *split, const uint32_t *examples, uint32_t n,
                             float *means);

/* The same, and then: the class of every position where `heads` asks for one (elsewhere -1), one example after the
 * other in *predicted, which is made to fit (*capacity) and freed by the caller. With x->chain, which wants NET_HEADS_ALL, the likeliest
 * classes of an example's positions together. */
vpps_status session_predict(session *x, corpus *c, const corpus_split *split, const uint32_t *examples, uint32_t n,
                            net_heads heads, int32_t **predicted);

/* Sees the classes that example i of a split is predicted to have, one a position; *positions: how many there are. */
typedef vpps_status session_see(void *context, const corpus_split *split, uint32_t i, const int32_t *predicted,
                                uint32_t *positions);

/* session_predict of all examples of a split, a batch at a time, until *stop is not 0 (stop may be NULL), or `see` fails. */
vpps_status session_predict_all(session *x, corpus *c, const corpus_split *split, const volatile int *stop,
                                session_see *see, void *context);

/* Replaces this process's counts of a split by the sums over all processes. Each measure calls it, in the same order, after its last use of
 * the engine for these counts. */
vpps_status session_add_up(session *x, uint32_t n, uint64_t *counts);

/* The likeliest class by a position's logits; of equals the first. */
uint32_t likeliest_class(const float *logits, uint32_t classes);
