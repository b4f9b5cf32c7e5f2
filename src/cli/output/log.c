/* log.c - writes the log. Every object has "event" and "time", the seconds since the run began. */
#include "cli/output/log.h"
#include "base/base.h"
#include "io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

/* Returns whether the log's file exists and its last line has no line end. */
static bool is_cut(const vpps_output_place *place) {
    char last = '\n';
    const int fd = vpps_output_holds_bytes(place) ? vpps_output_place_open(place, O_RDONLY) : -1;
    const bool cut = fd >= 0 && pread(fd, &last, 1, place->info.st_size - 1) == 1 && last != '\n';
    if (fd >= 0) close(fd);
    return cut;
}

vpps_status log_open(run_log *log, const char *path, bool append) {
    vpps_output_place place;
    *log = (run_log){.path = path, .begin_ns = vpps_now_ns()};
    if (!path) return VPPS_OK;
    VPPS_TRY(vpps_output_find(&place, path));
    log->was_cut = append && is_cut(&place);
    const int fd = vpps_output_place_open(&place, O_WRONLY | O_CREAT | O_APPEND);
    const bool taken = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0 && !taken && !append) (void)!ftruncate(fd, 0); /* fails for what has no size, such as a FIFO */
    log->file = fd >= 0 && !taken ? fdopen(fd, "a") : NULL;
    const vpps_status status =
        log->file ? VPPS_OK : vpps_fail(VPPS_IO, "%s: %s", path, taken ? "another run writes to it" : strerror(errno));
    if (!log->file && fd >= 0) close(fd);
    vpps_output_place_close(&place);
    /* if this write fails, log_start reports the failure with the first record */
    if (log->was_cut && log->file) fputc('\n', log->file);
    return status;
}

void log_close(run_log *log) {
    if (log->file) fclose(log->file);
    json_decref(log->early);
    *log = (run_log){0};
}

/* Writes an event's object with the members "event" and "time", and releases the object. */
static vpps_status write_event(run_log *log, const char *event, json_t *object) {
    json_object_set_new(object, "event", json_string(event));
    json_object_set_new(object, "time", report_number((double)(vpps_now_ns() - log->begin_ns) * 1e-9));
    if (report_json_line(object, log->file) == VPPS_OK) return VPPS_OK;
    return vpps_fail(VPPS_IO, "%s: %s", log->path, strerror(errno));
}

/* Returns an option's value as JSON: a number, true or false, a string, or null for a text that was not given. */
static json_t *option_value(const settings *s, const cli_option *o) {
    char text[4096];
    options_write(s, o, text, sizeof text);
    switch (o->row.kind) {
    case OPTION_FLAG: return json_boolean(strcmp(text, "yes") == 0);
    case OPTION_F32: return report_number(strtod(text, NULL)); /* nine digits are enough to restore a float */
    case OPTION_TEXT: return options_text(s, o) ? json_string(text) : json_null();
    case OPTION_CHOICE: return json_string(text);
    case OPTION_U32:
    case OPTION_U64:
    case OPTION_BYTES: break;
    }
    const uint64_t number = strtoull(text, NULL, 10);
    return number <= INT64_MAX ? json_integer((json_int_t)number)
                               : json_string(text); /* the number exceeds JSON's largest integer */
}

vpps_status log_start(run_log *log, const settings *s, uint32_t train_examples) {
    if (!log->file) return VPPS_OK;
    json_t *options = json_object(), *line;
    for (const cli_option *o = options_rows(s); o->row.help; o++)
        if (options_apply(s, o))
            json_object_set_new(options, o->row.name, options_unused(s, o) ? json_null() : option_value(s, o));
    VPPS_TRY(write_event(log, "start",
                         json_pack("{ss ss si so}", "version", vpps_version(), "model", s->network->name, "examples",
                                   (int)train_examples, "options", options)));
    log->started = true;
    size_t i;
    json_array_foreach(log->early, i, line) VPPS_TRY(log_engine(log, json_string_value(line)));
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
