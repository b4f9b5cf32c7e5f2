/* report.h - prints a command's results as text or JSON. */
#pragma once

#include "cli/common/failure.h"
#include "cli/common/json.h"
#include "cli/input/task.h"
#include "cli/session/best.h"
#include "cli/session/session.h"

/* A written checkpoint, saved after `epoch` epochs and `batch` batches of the next epoch. path NULL: none was written. */
typedef struct saved_file {
    const char *path;
    uint32_t epoch, batch;
} saved_file;

/* The results of a training run. */
typedef struct train_summary {
    const settings *settings;
    saved_file saved, saved_best;
    vpps_stats stats;       /* the engine's counters at the end */
    const session *session; /* the network, and how many parameters --vectors and --init set */
    uint64_t sentences, batches, nodes;
    uint64_t levels, steps, instructions, script_bytes; /* sums of these members of vpps_stats over all batches */
    uint32_t epoch;                                     /* number of epochs finished since training began */
    double seconds;                                     /* training time, without evaluation and file output */
    double start_seconds;   /* time up to the end of the first batch, part of `seconds`; 0: only one batch */
    double sentences_per_s; /* sentences per second after the first batch */
    double loss;            /* mean loss over the last epoch's batches */
    double losses;          /* mean number of losses per example; each word or node has one loss */
    double train_accuracy;  /* --train-accuracy: accuracy on the training data in the last epoch; else NaN */
    measures split[N_SPLITS];
    best_measure best;
    uint32_t processes;
    bool interrupted, out_of_patience;
} train_summary;

/* Returns the variants of its work that the engine timed, as {"done": ..., "trials": [...]}. On a CPU, "splits" has
 * ways to divide work among threads; "products", if requested, has times of matrix products. Returns null if there are
 * none. */
json_t *trials_json(vpps_handle *h, bool products);

/* Prints a line for each timed variant of the engine's work, and the number of variants that were not tried. */
void trials_print(vpps_handle *h, FILE *file);

/* Returns an object with the metrics' values by name, {"root": ..., "nodes": ...}, or null when not measured. */
json_t *report_measures(const task *t, const measures *m);

/* Writes a metric's value for people, e.g. "root 44.1%". */
void report_metric(const metric *kind, double value, char *text, size_t n);

/* Writes a loss for people: the mean per example, and per node or word if these have losses: "3.8332 (0.1250 a node)". */
void report_loss(const task *t, double loss, double losses, char *text, size_t n);

/* Returns whether metric i was measured on at least one position (word, node or whole example); the value may be not finite. */
bool report_has(const measures *m, int i);

/* Returns the JSON object that `vpps train --json` prints last. */
json_t *report_train_json(const train_summary *t);

/* report_train and report_eval print a command's results on stdout, as text or JSON. They fail with IO if stdout fails. */
vpps_status report_train(const train_summary *t);
vpps_status report_eval(session *x, const corpus *c, const measures *m, double seconds);
