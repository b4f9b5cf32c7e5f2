/* update.c - writes the optimizer's step into a batch's program (script), the tasks for a device (update.h). */
#include "script/update.h"

#include <math.h>

#define X(name) +sizeof(float)
_Static_assert(offsetof(vpps_optimizer, reserved) == offsetof(vpps_optimizer, lr) VPPS_OPTIMIZER_NUMBERS(X),
               "the table of numbers has all that vpps_optimizer has");
#undef X

void vpps_describe_step(vpps_task_header *h, const vpps_batch_request *request) {
    const vpps_optimizer *o = request->optimizer;
    h->update = (uint32_t)o->kind + 1;
    h->guard = request->guard;
    h->step = request->step;
#define X(name) h->name = o->name;
    VPPS_OPTIMIZER_NUMBERS(X)
#undef X
}

void vpps_correct_means(const vpps_task_header *h, uint64_t updates, float corrections[2]) {
    corrections[0] = (float)(1 / (1 - pow(h->beta1, (double)updates)));
    corrections[1] = (float)(1 / (1 - pow(h->beta2, (double)updates)));
}

uint32_t vpps_write_steps(vpps_writer *to, const vpps_batch_request *request, const vpps_model *model) {
    const size_t bytes = model->n_params * sizeof *request->steps;
    if (!request->steps || !bytes || !vpps_goal_updates(request->goal)) return 0;
    const uint32_t at = vpps_write_room(to, bytes / sizeof *to->words);
    if (!to->failed) memcpy(to->words + at, request->steps, bytes);
    return at;
}

/* Writes the tasks of a group of threads or CTAs: the gradients' norm (if used), a wait for all groups, the update. */
static void write_tasks(const vpps_task_header *h, vpps_writer *to) {
    if (h->guard || h->clip > 0) VPPS_WRITE_TASK(to, NORM, 0);
    vpps_write_barrier(to, 0, h->n_vps);
    VPPS_WRITE_TASK(to, UPDATE, 0);
    VPPS_WRITE_TASK(to, END, 0);
}

vpps_status vpps_schedule_update(vpps_batch *b, const vpps_target *target, const vpps_model *model,
                                 const vpps_batch_request *request) {
    const uint32_t n_groups = request->groups;
    vpps_task_header h = {
        .magic = VPPS_TASK_MAGIC,
        .n_vps = target->n_vps,
        .n_groups = n_groups,
        .n_barriers = 1,
        .pool_words = target->batch,
        .blocks = VPPS_TASK_HEADER_WORDS,
        .tables = VPPS_TASK_HEADER_WORDS,
    };
    vpps_describe_step(&h, request);
    vpps_writer to = {.words = b->script};
    vpps_write_room(&to, VPPS_TASK_HEADER_WORDS);
    const uint32_t starts = vpps_write_room(&to, n_groups + 1);
    h.steps = vpps_write_steps(&to, request, model);
    for (uint32_t g = 0; g < n_groups; g++) {
        vpps_write_group(&to, starts + g);
        write_tasks(&h, &to);
    }
    b->script = to.words;
    b->script_words = h.words = (uint32_t)to.n;
    if (to.failed) return vpps_fail(VPPS_MEMORY, "schedule: out of memory");
    to.words[starts + n_groups] = h.words;
    memcpy(to.words, &h, sizeof h);
    b->goal = VPPS_GOAL_UPDATE;
    b->half = VPPS_NO_HALF;
    b->n_cells = b->n_vertices = b->n_nodes = 0;
    b->n_tasks = to.n_tasks;
    return VPPS_OK;
}
