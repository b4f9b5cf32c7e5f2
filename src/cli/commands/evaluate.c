/* evaluate.c - `vpps eval`: measures the network in a checkpoint on a data set. */
#include "base/base.h"
#include "cli/commands/commands.h"
#include "cli/output/report.h"
#include "cli/session/classes.h"
#include "cli/session/measure.h"

static vpps_status eval(settings *s, session *x, corpus *c, class_counts *classes) {
    VPPS_TRY(open_trained(x, s, c, true));
    if (task_for(s)->classifies) {
        VPPS_TRY(classes_open(classes, s->net.classes));
        x->classes = classes;
    }
    measures m;
    corpus_split *split = &c->split[s->split];
    const uint64_t begin = vpps_now_ns();
    VPPS_TRY(measure_part(x, c, split, NULL, &m));
    VPPS_TRY(session_check_scores(x));
    const double seconds = (double)(vpps_now_ns() - begin) * 1e-9;
    VPPS_TRY(session_write_trace(x));
    return report_eval(x, c, &m, seconds);
}

int command_eval(settings *s) {
    VPPS_CLOSED_BY(classes_close) class_counts classes = {0};
    VPPS_CLOSED_BY(corpus_close) corpus c = {0};
    VPPS_CLOSED_BY(session_close) session x = {0};
    return exit_code(eval(s, &x, &c, &classes));
}
