/* defaults.c - the table of the options' defaults. */
#include "cli/input/task.h"
#include "cli/session/session.h"
#include "runtime/devices.h"

#include <math.h>

uint32_t options_default_examples(const settings *s) {
    enum { COMPLETE_TREES = 2000 }; /* number of generated trees; few, since each complete tree has many leaves */
    if (!s->network) return 0;
    const bool complete = s->network->kind == NET_TREES && s->generate == NET_COMPLETE_TREES;
    return complete ? COMPLETE_TREES : task_for(s)->n_generated;
}

settings options_defaults(const settings *s) {
    settings d = {.command = s->command,
                  .network = s->network,
                  .action = s->action,
                  .leaves = 256,
                  .min_count = s->network && s->network->spells ? 5 : 2,
                  .seed = 1,
                  .split = SPLIT_TEST,
                  .batch = 32,
                  .accumulate = 1,
                  .epochs = 10,
                  .eval_every = 1,
                  .optimizer = VPPS_ADAM,
                  .lr = NAN,
                  .lr_decay = 1,
                  .lr_every = 1,
                  .momentum = 0.9f,
                  .clip = 5,
                  .device = vpps_devices[0]->name,
                  .vps_shown = 16,
                  .log_every = 1,
                  .trace_events = 200000,
                  .beam = 1,
                  .top = 1,
                  .line_bytes = 65536,
                  .drawn_seed = 1,
                  .count = 10,
                  .temperature = 1,
                  .top_p = 1,
                  .length_penalty = 0.6f};
    if (d.network) {
        d.net = d.network->defaults;
        d.generate = d.network->generator;
    }
    d.examples = options_default_examples(&d);
    return d;
}
