/* log.c - JSON lines. Every object has "event" and "time", the seconds since the run began. */
#include "cli/log.h"
#include "base/base.h"
#include "cli/config.h"
#include "io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* /dev/stdout as it is, not opened anew: then what is printed to it does not overwrite the log. */
static FILE *open_file(const char *path, const char *mode) {
    const int descriptor = vpps_output_descriptor(path);
    if (descriptor < 0) return fopen(path, mode);
    const int fd = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    FILE *file = fd >= 0 ? fdopen(fd, mode) : NULL;
    if (!file && fd >= 0) close(fd);
    return file;
}

/* Is there a file whose last line was not written whole? */
static bool is_cut(const char *path) {
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) return false;
    FILE *file = fopen(path, "r");
    const bool cut = file && fseeko(file, -1, SEEK_END) == 0 && fgetc(file) != '\n';
    if (file) fclose(file);
    return cut;
}

vpps_status log_open(run_log *log, const char *path, bool append) {
    *log = (run_log){.path = path, .begin_ns = vpps_now_ns()};
    if (!path) return VPPS_OK;
    log->was_cut = append && vpps_output_descriptor(path) < 0 && is_cut(path);
    log->file = open_file(path, append ? "a" : "w");
    if (!log->file) return vpps_fail(VPPS_IO, "%s: %s", path, strerror(errno));
    if (log->was_cut) fputc('\n', log->file); /* a failure shows with the first record */
    return VPPS_OK;
}

void log_close(run_log *log) {
    if (log->file) fclose(log->file);
    json_decref(log->early);
    *log = (run_log){0};
}

/* Writes an object, which it takes, with the common members in it. */
static vpps_status write_event(run_log *log, const char *event, json_t *object) {
    json_object_set_new(object, "event", json_string(event));
    json_object_set_new(object, "time", report_number((double)(vpps_now_ns() - log->begin_ns) * 1e-9));
    if (report_json_line(object, log->file) == VPPS_OK) return VPPS_OK;
    return vpps_fail(VPPS_IO, "%s: %s", log->path, strerror(errno));
}

vpps_status log_start(run_log *log, const settings *s, uint32_t train_examples) {
    if (!log->file) return VPPS_OK;
    json_t *options = json_object();
    size_t n;
    const cli_option *rows = options_rows(s, &n);
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].row.name || !options_apply(s, &rows[i])) continue;
        json_t *value = options_unused(s, &rows[i]) ? json_null() : config_value(s, &rows[i]);
        json_object_set_new(options, rows[i].row.name, value);
    }
    VPPS_TRY(write_event(log, "start",
                         json_pack("{ss ss si so}", "version", vpps_version(), "model", s->network->name, "examples",
                                   (int)train_examples, "options", options)));
    log->started = true;
    json_t *line;
    json_array_foreach(log->early, n, line) VPPS_TRY(log_engine(log, json_string_value(line)));
    return VPPS_OK;
}

vpps_status log_engine(run_log *log, const char *line) {
    if (!log->file) return VPPS_OK;
    if (log->started) return write_event(log, "engine", json_pack("{ss}", "line", line));
    if (!log->early) log->early = json_array();
    return json_array_append_new(log->early, json_string(line)) == 0 ? VPPS_OK
                                                                     : vpps_fail(VPPS_MEMORY, "no memory for the log");
}

vpps_status log_batch(run_log *log, uint32_t epoch, uint64_t batch, double loss, double rate) {
    if (!log->file) return VPPS_OK;
    return write_event(log, "batch",
                       json_pack("{si sI so so}", "epoch", (int)epoch, "batch", (json_int_t)batch, "loss",
                                 report_number(loss), "lr", report_number(rate)));
}

vpps_status log_epoch(run_log *log, uint32_t epoch, double loss, double train_accuracy, double sentences_per_s,
                      const task *t, const measures *dev, const measures *test) {
    if (!log->file) return VPPS_OK;
    return write_event(log, "epoch",
                       json_pack("{si so so so so so}", "epoch", (int)epoch, "loss", report_number(loss),
                                 "train_accuracy", report_number(train_accuracy), "sentences_per_s",
                                 report_number(sentences_per_s), "dev", report_measures(t, dev), "test",
                                 report_measures(t, test)));
}

vpps_status log_end(run_log *log, const train_summary *t) {
    return log->file ? write_event(log, "end", report_train_json(t)) : VPPS_OK;
}
