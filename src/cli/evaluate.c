/* evaluate.c - `vpps eval`. */
#include "base/base.h"
#include "cli/checkpoint.h"
#include "cli/classes.h"
#include "cli/commands.h"
#include "cli/report.h"

#include <errno.h>

static vpps_status write_csv(const session *x, const corpus *c) {
    const char *path = x->settings->csv;
    FILE *f = fopen(path, "w");
    if (!f) return vpps_fail(VPPS_IO, "%s: cannot be written: %s", path, strerror(errno));
    classes_csv(x->classes, c->vocab[VOCAB_CLASSES], f);
    const bool good = !ferror(f);
    return fclose(f) == 0 && good ? VPPS_OK : vpps_fail(VPPS_IO, "%s: %s", path, strerror(errno));
}

static vpps_status eval(settings *s, session *x, corpus *c, class_counts *classes) {
    position p = {0};
    VPPS_TRY(checkpoint_describe(s->model, s, c, &p));
    options_complete(s);
    VPPS_TRY(session_open_on(x, s, c));
    VPPS_TRY(vpps_load(x->handle, s->model));
    if (task_for(s)->classifies) {
        VPPS_TRY(classes_open(classes, s->net.classes));
        x->classes = classes;
    }
    measures m;
    corpus_split *split = &c->split[s->split];
    const uint64_t begin = vpps_now_ns();
    VPPS_TRY(task_for(s)->measure(x, c, split, NULL, &m));
    const double seconds = (double)(vpps_now_ns() - begin) * 1e-9;
    VPPS_TRY(session_write_trace(x));
    if (s->csv) VPPS_TRY(write_csv(x, c));
    return report_eval(x, c, &m, seconds);
}

int command_eval(settings *s) {
    if (!s->model) return report_usage("eval", "--model FILE is missing");
    session x = {0};
    corpus c = {0};
    class_counts classes = {0};
    const vpps_status status = eval(s, &x, &c, &classes);
    if (status != VPPS_OK) report_failure(status);
    session_close(&x);
    corpus_close(&c);
    classes_close(&classes);
    return status == VPPS_OK ? 0 : EXIT_RUNTIME;
}
