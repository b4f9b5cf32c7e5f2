/* evaluate.c - `vpps eval`. */
#include "base/base.h"
#include "cli/checkpoint.h"
#include "cli/commands.h"
#include "cli/report.h"

static vpps_status eval(settings *s, session *x, corpus *c) {
    position p = {0};
    VPPS_TRY(checkpoint_describe(s->model, s, c, &p));
    options_complete(s);
    VPPS_TRY(session_open_on(x, s, c));
    VPPS_TRY(vpps_load(x->handle, s->model));
    measures m;
    corpus_split *split = &c->split[s->split];
    const uint64_t begin = vpps_now_ns();
    VPPS_TRY(task_for(s)->measure(x, c, split, NULL, &m));
    const double seconds = (double)(vpps_now_ns() - begin) * 1e-9;
    VPPS_TRY(session_write_trace(x));
    return report_eval(x, &m, seconds);
}

int command_eval(settings *s) {
    if (!s->model) return report_usage("eval", "--model FILE is missing");
    session x = {0};
    corpus c = {0};
    const vpps_status status = eval(s, &x, &c);
    if (status != VPPS_OK) report_failure(status);
    session_close(&x);
    corpus_close(&c);
    return status == VPPS_OK ? 0 : EXIT_RUNTIME;
}
