/* report.h - the results of a command, as text or JSON. */
#pragma once

#include "cli/best.h"
#include "cli/failure.h"
#include "cli/json.h"
#include "cli/session.h"
#include "cli/task.h"

/* A checkpoint that was written, and what it holds: so many epochs, and batches of the next one. NULL: none was. */
typedef struct saved_file {
    const char *path;
    uint32_t epoch, batch;
} saved_file;

/* The results of a training run. Means are over the batches of this run. */
typedef struct train_summary {
    const settings *settings;
    saved_file saved, saved_best;
    uint64_t sentences, batches, nodes, skipped;
    uint32_t epoch;         /* finished since training began */
    double seconds;         /* of training, without evaluation and files */
    double start_seconds;   /* of these, until the first batch was done; 0 where there is no other batch */
    double sentences_per_s; /* after that */
    double loss;            /* mean of the last epoch's batches */
    double losses;          /* that an example has, on average (task.loss_of) */
    double train_accuracy;  /* with --train-accuracy: of the last epoch's batches; else NaN */
    measures split[N_SPLITS];
    best_measure best;
    double host_ms_per_batch, device_ms_per_batch, gap_ms_per_batch;
    double build_ns_per_node;                   /* the graph; host_ms is the script */
    double flops_per_sentence, bytes_per_batch; /* of the graphs, see vpps_cost; of the run's first batches */
    double script_bytes_per_batch, levels_per_batch, steps_per_batch, instructions_per_batch;
    uint64_t pool_bytes;
    uint32_t vps;
    uint32_t processes;
    double imbalance, exchange_ms_per_batch, sent_bytes_per_batch; /* see vpps_stats */
    const char *device, *policy, *precision, *precision_unit, *gradients;
    vpps_vectors_found vectors; /* of --vectors; all zero without */
    vpps_handle *handle;        /* asked for the plans it measured */
    init_found init;            /* of --init */
    bool interrupted, out_of_patience;
} train_summary;

/* An object with the metrics' names, e.g. {"root": ..., "nodes": ...}; null when not known. */
json_t *report_measures(const task *t, const measures *m);

/* A metric's value for people, e.g. "root 44.1%". */
void report_metric(const metric *kind, double value, char *text, size_t n);

/* A loss for people, the mean of examples' sums, and of what has one of its own: "3.8332 (0.1250 a node)". */
void report_loss(const task *t, double loss, double losses, char *text, size_t n);

/* Is there a value of metric i to print? One that is not finite is told. */
bool report_has(const measures *m, int i);

/* The object that `vpps train --json` ends with. */
json_t *report_train_json(const train_summary *t);

/* The summary on stdout: text, or the object. Fails with IO when stdout cannot be written. */
vpps_status report_train(const train_summary *t);
vpps_status report_eval(session *x, const corpus *c, const measures *m, double seconds);
