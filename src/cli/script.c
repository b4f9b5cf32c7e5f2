/* script.c - `vpps script`: the device script of the first training batch, as text. */
#include "base/base.h"
#include "cli/checkpoint.h"
#include "cli/commands.h"
#include "cli/failure.h"

static vpps_status script(settings *s, session *x, corpus *c) {
    position p = {0};
    if (s->model) VPPS_TRY(checkpoint_describe(s->model, s, c, &p));
    options_complete(s);
    VPPS_TRY(session_open_on(x, s, c)); /* a script depends on shapes only: no parameters are loaded */

    const corpus_split *train = &c->split[SPLIT_TRAIN];
    uint32_t *order = malloc(train->n_examples * sizeof *order);
    if (!order) return vpps_fail(VPPS_MEMORY, "no memory for the order of %u examples", train->n_examples);
    corpus_shuffle(train, s->seed, 0, order);
    vpps_node loss;
    vpps_status status = session_add_batch(x, c, train, order, vpps_min_u32(s->batch, train->n_examples), &loss);
    free(order);
    VPPS_TRY(status);
    VPPS_TRY(vpps_disassemble(x->handle, x->graph, loss, stdout));
    return fflush(stdout) == 0 ? VPPS_OK : vpps_fail(VPPS_IO, "stdout cannot be written");
}

int command_script(settings *s) {
    session x = {0};
    corpus c = {0};
    const vpps_status status = script(s, &x, &c);
    if (status != VPPS_OK) report_failure(status);
    session_close(&x);
    corpus_close(&c);
    return status == VPPS_OK ? 0 : EXIT_RUNTIME;
}
