/* step.c - see step.h. */
#include "script/step.h"

#include <math.h>

void vpps_describe_step(vpps_task_header *h, const vpps_batch_request *request) {
    const vpps_optimizer *o = request->optimizer;
    h->update = (uint32_t)o->kind + 1;
    h->guard = request->guard;
    h->step = request->step;
    h->lr = o->lr;
    h->momentum = o->momentum;
    h->beta1 = o->beta1;
    h->beta2 = o->beta2;
    h->epsilon = o->epsilon;
    h->corrections[0] = (float)(1 / (1 - pow(o->beta1, request->step)));
    h->corrections[1] = (float)(1 / (1 - pow(o->beta2, request->step)));
    h->weight_decay = o->weight_decay;
    h->clip = o->clip;
}

uint32_t vpps_step_words(const vpps_batch_request *request, const vpps_model *model) {
    if (!request->steps || request->part == VPPS_STEP_GRADIENTS) return 0;
    return (uint32_t)(model->n_params * sizeof *request->steps / sizeof(uint32_t));
}

/* Every group's instructions are the same: publish the norm, meet, update. */
static uint32_t write_group(uint32_t *to, const vpps_task_header *h) {
    uint32_t n = 0;
    if (h->guard || h->clip > 0) to[n++] = VPPS_TASK_NORM;
    to[n++] = VPPS_TASK_SIGNAL, to[n++] = 0;
    to[n++] = VPPS_TASK_WAIT, to[n++] = 0, to[n++] = h->n_vps;
    to[n++] = VPPS_TASK_UPDATE;
    to[n++] = VPPS_TASK_END;
    return n;
}

vpps_status vpps_schedule_update(vpps_batch *b, const vpps_task_plan *machine, const vpps_model *model,
                                 const vpps_batch_request *request) {
    enum { GROUP_WORDS = 8 };
    const uint32_t n_groups = request->groups, steps = vpps_step_words(request, model);
    const size_t most = VPPS_TASK_HEADER_WORDS + n_groups + 1 + (size_t)GROUP_WORDS * n_groups + steps;
    if (!VPPS_RESERVE(b->script, b->script_capacity, most)) return vpps_fail(VPPS_MEMORY, "schedule: out of memory");
    vpps_task_header h = {
        .magic = VPPS_TASK_MAGIC,
        .n_vps = machine->n_vps,
        .n_groups = n_groups,
        .n_barriers = 1,
        .pool_words = machine->batch,
        .blocks = VPPS_TASK_HEADER_WORDS,
        .tables = VPPS_TASK_HEADER_WORDS,
    };
    vpps_describe_step(&h, request);
    uint32_t *starts = b->script + VPPS_TASK_HEADER_WORDS;
    h.words = VPPS_TASK_HEADER_WORDS + n_groups + 1;
    for (uint32_t g = 0; g < n_groups; g++) {
        starts[g] = h.words;
        h.words += write_group(b->script + h.words, &h);
    }
    starts[n_groups] = h.words;
    if (steps) {
        h.steps = h.words;
        memcpy(b->script + h.words, request->steps, steps * sizeof *b->script);
        h.words += steps;
    }
    memcpy(b->script, &h, sizeof h);
    b->script_words = h.words;
    b->part = VPPS_STEP_UPDATE;
    b->n_cells = b->n_vertices = b->n_nodes = 0;
    b->n_instructions = n_groups * (h.guard || h.clip > 0 ? 5 : 4);
    return VPPS_OK;
}
