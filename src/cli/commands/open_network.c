/* open_network.c - opens a checkpoint's network, and builds a first training batch. */
#include "base/base.h"
#include "cli/commands/commands.h"
#include "cli/output/output_files.h"
#include "cli/session/checkpoint.h"

vpps_status open_trained(session *x, settings *s, corpus *c, bool data) {
    VPPS_TRY(checkpoint_describe(s->model, s, c, NULL));
    options_complete(s);
    VPPS_TRY(output_files_check(s));
    VPPS_TRY(output_file_check(s->trace));
    VPPS_TRY(data ? session_open_on(x, s, c) : session_open(x, s, c));
    return session_load(x, s->model);
}

vpps_status open_first_batch(session *x, settings *s, corpus *c, bool shuffled, vpps_node *loss) {
    if (s->model) VPPS_TRY(checkpoint_describe(s->model, s, c, NULL));
    options_complete(s);
    VPPS_TRY(session_open_on(x, s, c));

    const corpus_split *train = &c->split[SPLIT_TRAIN];
    VPPS_FREED uint32_t *order = vpps_scratch(train->n_examples * sizeof *order);
    if (!order) return vpps_fail(VPPS_MEMORY, "no memory for the order of %u examples", train->n_examples);
    memcpy(order, train->examples, train->n_examples * sizeof *order);
    if (shuffled) corpus_shuffle(train, s->seed, 0, order);
    const uint32_t n = vpps_min_u32(s->batch, train->n_examples);
    return session_add_batch(x, c, train, order, n, n, loss);
}
