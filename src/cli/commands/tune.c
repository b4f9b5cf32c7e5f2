/* tune.c - `vpps tune`: trains on batches of the training data until the fastest settings are found. Stores the
 * device's settings for later runs, but neither the batching policy nor the number of groups of threads or CTAs. */
#include "base/base.h"
#include "cli/commands/commands.h"
#include "cli/common/failure.h"
#include "cli/common/signals.h"
#include "cli/output/progress.h"
#include "cli/output/report.h"
#include "cli/session/session.h"

typedef struct tuner {
    session session;
    corpus corpus;
    progress progress;
    uint32_t *order;
} tuner;

static void tell(void *context, const char *line) { progress_line(&((tuner *)context)->progress, "%s", line); }

static vpps_status run_batch(tuner *t, uint64_t batch) {
    const corpus_split *train = &t->corpus.split[SPLIT_TRAIN];
    const settings *s = t->session.settings;
    const uint32_t n = vpps_min_u32(s->batch, train->n_examples), batches = train->n_examples / n;
    if (batch % batches == 0) corpus_shuffle(train, s->seed, (uint32_t)(batch / batches), t->order);
    vpps_node loss;
    VPPS_TRY(session_add_batch(&t->session, &t->corpus, train, t->order + batch % batches * n, n, n, &loss));
    return vpps_fb(t->session.handle, t->session.graph, loss, NULL);
}

static vpps_status find_plan(tuner *t) {
    for (uint64_t batch = 0; !interrupted; batch++) {
        uint32_t n = 0;
        bool done;
        VPPS_TRY(vpps_handle_trials(t->session.handle, NULL, &n, &done));
        if (done) break;
        VPPS_TRY(run_batch(t, batch));
    }
    float loss;
    const vpps_status status = vpps_sync_latest_loss(t->session.handle, &loss);
    /* STATE: no batch ran, since all choices were known from an earlier run */
    return status == VPPS_STATE ? VPPS_OK : status;
}

static vpps_status tune(tuner *t, settings *s) {
    options_complete(s);
    progress_open(&t->progress, s->quiet);
    t->session.log = tell;
    t->session.log_context = t;
    VPPS_TRY(session_open_on(&t->session, s, &t->corpus));
    interrupt_install();
    t->order = malloc(t->corpus.split[SPLIT_TRAIN].n_examples * sizeof *t->order);
    if (!t->order) return vpps_fail(VPPS_MEMORY, "no memory for the order of the examples");
    VPPS_TRY(find_plan(t));
    progress_end(&t->progress);
    if (s->json) return report_json_line(trials_json(t->session.handle, true), stdout);
    trials_print(t->session.handle, stdout);
    return flush_stdout();
}

static void close_tuner(tuner *t) {
    progress_end(&t->progress);
    free(t->order);
    session_close(&t->session);
    corpus_close(&t->corpus);
}

int command_tune(settings *s) {
    if (!options_given(s, "device")) s->device = "auto";
    VPPS_CLOSED_BY(close_tuner) tuner t = {0};
    const vpps_status status = tune(&t, s);
    if (status != VPPS_OK) progress_end(&t.progress);
    const int code = exit_code(status);
    return code ? code : interrupted ? EXIT_INTERRUPTED : 0;
}
