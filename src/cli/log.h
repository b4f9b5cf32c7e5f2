/* log.h - the run as JSON lines: objects whose "event" is start, engine, batch, epoch or end. */
#pragma once

#include "cli/report.h"

/* NULL path: a log that keeps nothing. `append` continues an existing file, in a line of its own. Fails with IO. */
typedef struct run_log {
    FILE *file;
    const char *path;
    bool was_cut;  /* the file that is continued did not end with a line */
    bool started;  /* the start has been written, which comes first */
    json_t *early; /* what the engine told before; NULL: nothing */
    uint64_t begin_ns;
} run_log;

vpps_status log_open(run_log *log, const char *path, bool append);
vpps_status log_start(run_log *log, const settings *s, uint32_t train_examples);
/* What the engine tells of itself; before the start it is kept until then. Fails with IO, MEMORY. */
vpps_status log_engine(run_log *log, const char *line);

vpps_status log_batch(run_log *log, uint32_t epoch, uint64_t batch, double loss, double rate);
vpps_status log_epoch(run_log *log, uint32_t epoch, double loss, double train_accuracy, double sentences_per_s,
                      const task *t, const measures *dev, const measures *test);
vpps_status log_end(run_log *log, const train_summary *t);
void log_close(run_log *log);
