/* evaluate.c - `vpps eval`, and the measures of a network. */
#include "evaluate.h"
#include "base/base.h"
#include "checkpoint.h"
#include "report.h"
#include "train.h"

#include <math.h>

uint32_t measures_first(const task *t, const measures *m) {
    for (uint32_t i = 0; i < MAX_METRICS && t->metrics[i].name && m->known; i++) {
        if (isfinite(m->value[i])) return i;
    }
    return MAX_METRICS;
}

bool metric_better(const metric *kind, double a, double b) { return kind->falls ? a < b : a > b; }

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
    return report_eval(x, &m, (double)(vpps_now_ns() - begin) * 1e-9);
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
