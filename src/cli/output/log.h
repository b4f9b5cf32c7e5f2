/* log.h - writes a run's log: JSON lines, objects whose "event" is start, engine, batch, epoch or end. */
#pragma once

#include "cli/output/report.h"

/* An open log. log_open with path NULL makes a log that writes nothing; `append` continues an existing file on a new line. Fails with IO. */
typedef struct run_log {
    FILE *file;
    const char *path;
    bool was_cut;  /* whether the file did not end with a line end when the log was continued */
    bool started;  /* whether the "start" event, always the first, has been written */
    json_t *early; /* engine messages from before the "start" event, written after it; NULL: none */
    uint64_t begin_ns;
} run_log;

vpps_status log_open(run_log *log, const char *path, bool append);
vpps_status log_start(run_log *log, const settings *s, uint32_t train_examples);
/* Logs a message of the engine; messages before the "start" event are kept until then. Fails with IO, MEMORY. */
vpps_status log_engine(run_log *log, const char *line);

vpps_status log_batch(run_log *log, uint32_t epoch, uint64_t batch, double loss, double rate);
vpps_status log_epoch(run_log *log, uint32_t epoch, double loss, double train_accuracy, double sentences_per_s,
                      const task *t, const measures *dev, const measures *test);
vpps_status log_end(run_log *log, const train_summary *t);
void log_close(run_log *log);
