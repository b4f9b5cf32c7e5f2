/* script.c - a script as the kernel reads it: with each group's instructions decoded, behind it. */
#include "runtime/gpu/gpu.h"

enum { TASK_WORDS = sizeof(vpps_kernel_task) / sizeof(uint32_t), ALIGNED_WORDS = 4 };

static const vpps_kernel_task nothing = {
    .task = VPPS_KERNEL_NOTHING, .wait = VPPS_KERNEL_NOTHING, .signal = VPPS_KERNEL_NOTHING};

/* The address behind the instruction; behind one that is unknown nothing is. */
static uint32_t following(const uint32_t *script, uint32_t at, uint32_t end) {
    return script[at] < VPPS_TASK_COUNT ? at + 1 + vpps_tasks[script[at]].words : end;
}

/* Does the instruction belong to another record than the one that *t is so far? */
static bool needs_next(const vpps_kernel_task *t, uint32_t instruction) {
    const bool signals = t->signal != VPPS_KERNEL_NOTHING;
    if (t->task != VPPS_KERNEL_NOTHING || signals) return instruction != VPPS_TASK_SIGNAL || signals;
    return instruction == VPPS_TASK_WAIT && t->wait != VPPS_KERNEL_NOTHING;
}

static void add(const vpps_gpu *gpu, const uint32_t *script, uint32_t at, vpps_kernel_task *t) {
    const uint32_t *o = script + at + 1;
    const vpps_gpu_kernel *kernel = gpu->kernel;
    const vpps_kernel_plan *plan = &kernel->plan;
    if (script[at] == VPPS_TASK_SIGNAL) {
        t->signal = o[0];
        return;
    }
    if (t->wait == VPPS_KERNEL_NOTHING) t->address = at;
    if (script[at] == VPPS_TASK_WAIT) {
        t->wait = o[0];
        t->wanted = o[1];
    } else if (script[at] == VPPS_TASK_STAGE) {
        const vpps_block *block = vpps_block_at(script, o[0]);
        t->task = VPPS_TASK_COUNT + plan->first_stage[kernel->number[block->cell]] + o[1];
        t->operands[0] = o[0], t->operands[1] = o[2], t->operands[2] = o[3];
    } else if (script[at] < VPPS_TASK_COUNT) {
        const bool outer = script[at] == VPPS_TASK_OUTER;
        t->task = outer ? vpps_outer_task(plan, kernel->number[vpps_block_at(script, o[0])->cell]) : script[at];
        memcpy(t->operands, o, vpps_tasks[script[at]].words * sizeof *o);
    } else {
        t->task = VPPS_KERNEL_UNKNOWN;
        t->operands[0] = script[at];
    }
}

static bool is_backward(const vpps_gpu *gpu, const uint32_t *script, uint32_t at) {
    if (script[at] != VPPS_TASK_STAGE) return false;
    const vpps_compiled_cell *c = gpu->kernel->cells[gpu->kernel->number[vpps_block_at(script, script[at + 1])->cell]];
    return script[at + 2] < c->n_stages && c->stages[script[at + 2]].backward;
}

/* Instructions [at, end) of a group as tasks, and behind them `last`. `late`: weights are taken where VPs first wait for each other, or
 * else before backward begins. How many; at most two more than there are instructions. */
static uint32_t write_tasks(const vpps_gpu *gpu, const uint32_t *script, uint32_t at, uint32_t end, bool late,
                            uint32_t last, vpps_kernel_task *to) {
    uint32_t n = 0;
    to[0] = nothing;
    for (; at < end; at = following(script, at, end)) {
        if (late && (script[at] == VPPS_TASK_WAIT || is_backward(gpu, script, at))) {
            to[++n] = nothing;
            to[n].task = vpps_weights_task(&gpu->kernel->plan);
            to[n].address = at;
            late = false;
        }
        if (needs_next(&to[n], script[at])) to[++n] = nothing;
        add(gpu, script, at, &to[n]);
    }
    to[++n] = nothing;
    to[n].task = last;
    to[n].operands[0] = VPPS_TASK_COUNT;
    to[n].address = end;
    return n + 1;
}

/* Where a group's instructions step: the first that reads all gradients, or what the group ends with. */
static uint32_t find_step(const uint32_t *script, uint32_t at, uint32_t end) {
    while (at < end && script[at] != VPPS_TASK_NORM && script[at] != VPPS_TASK_UPDATE && script[at] != VPPS_TASK_END)
        at = following(script, at, end);
    return at;
}

static uint64_t count_instructions(const uint32_t *script, uint32_t at, uint32_t end) {
    uint64_t n = 0;
    for (; at < end; at = following(script, at, end)) n++;
    return n;
}

static vpps_status reserve_pinned(vpps_gpu *gpu, uint32_t k, size_t bytes) {
    if (gpu->pinned_bytes[k] >= bytes) return VPPS_OK;
    if (gpu->pinned[k]) gpu->table->release_host(gpu->driver, gpu->pinned[k]);
    gpu->pinned[k] = NULL;
    gpu->pinned_bytes[k] = 0;
    VPPS_TRY(gpu->table->allocate_host(gpu->driver, bytes + bytes / 2, &gpu->pinned[k]));
    gpu->pinned_bytes[k] = bytes + bytes / 2;
    return VPPS_OK;
}

/* Which of a group's instructions become tasks. */
typedef enum part { WHOLE, GRADIENTS, STEP } part;

/* Writes an index of the groups' tasks to address `at`, and behind it the tasks. The address behind them, where the kernel may
 * read one more. A script that is cut short gets to a task that fails. */
static uint32_t write_groups(const vpps_gpu *gpu, const uint32_t *instructions, part which, uint32_t *to, uint32_t at) {
    const uint32_t n_groups = gpu->header.n_groups, *starts = instructions + VPPS_TASK_HEADER_WORDS, index = at;
    at = (index + n_groups + ALIGNED_WORDS - 1) / ALIGNED_WORDS * ALIGNED_WORDS;
    memset(to + index, 0, (at - index) * sizeof *to);
    for (uint32_t g = 0; g < n_groups; g++) {
        const uint32_t step = find_step(instructions, starts[g], starts[g + 1]);
        const uint32_t first = which == STEP ? step : starts[g], end = which == GRADIENTS ? step : starts[g + 1];
        to[index + g] = at;
        at += TASK_WORDS * write_tasks(gpu, instructions, first, end, which != STEP && gpu->kernel->plan.late,
                                       which == GRADIENTS ? VPPS_TASK_END : VPPS_KERNEL_UNKNOWN,
                                       (vpps_kernel_task *)(void *)(to + at));
    }
    memset(to + at, 0, TASK_WORDS * sizeof *to);
    return at + TASK_WORDS;
}

/* Words that write_groups takes at most. */
static uint64_t room_for_groups(const vpps_gpu *gpu, const uint32_t *instructions) {
    const uint32_t n_groups = gpu->header.n_groups, *starts = instructions + VPPS_TASK_HEADER_WORDS;
    uint64_t tasks = 1;
    for (uint32_t g = 0; g < n_groups; g++) tasks += 2 + count_instructions(instructions, starts[g], starts[g + 1]);
    return n_groups + ALIGNED_WORDS + tasks * TASK_WORDS;
}

/* Room for a script, in pinned memory, so that its way to the device need not be waited for. */
static vpps_status make_room(vpps_gpu *gpu, uint64_t words, uint32_t **out) {
    const uint32_t k = gpu->next_pinned ^= 1;
    if (words > UINT32_MAX) return vpps_fail(VPPS_MEMORY, "%s: a script of more than 2^32 words", gpu->table->name);
    VPPS_TRY(reserve_pinned(gpu, k, (size_t)words * sizeof(uint32_t)));
    *out = gpu->pinned[k];
    return VPPS_OK;
}

/* Which parameters have a gradient, by words from address `at` on. The address behind them. */
static uint32_t write_touched(const vpps_gpu *gpu, uint32_t *to, uint32_t at) {
    for (size_t p = 0; p < gpu->model->n_params; p++) to[at++] = gpu->dense[p];
    return at;
}

/* The address rounded up to where the script may end; what is between is zeroed. */
static uint32_t fill_up(uint32_t *to, uint32_t at) {
    while (at % ALIGNED_WORDS) to[at++] = 0;
    return at;
}

vpps_status vpps_gpu_make_script(vpps_gpu *gpu, const vpps_batch *batch, bool steps, bool adds, vpps_gpu_script *out) {
    uint32_t *script;
    const uint64_t touched = adds ? gpu->model->n_params + ALIGNED_WORDS : 0;
    VPPS_TRY(make_room(gpu, batch->script_words + room_for_groups(gpu, batch->script) + touched, &script));
    memcpy(script, batch->script, batch->script_words * sizeof *script);
    *out = (vpps_gpu_script){.copy = script, .tasks = (uint32_t)batch->script_words};
    out->words = write_groups(gpu, batch->script, steps ? WHOLE : GRADIENTS, script, out->tasks);
    if (adds) {
        out->touched = out->words;
        out->words = fill_up(script, write_touched(gpu, script, out->touched));
    }
    for (uint32_t i = 0; i < gpu->header.n_blocks; i++) {
        uint32_t *cell = script + gpu->header.blocks + (size_t)i * VPPS_BLOCK_WORDS + offsetof(vpps_block, cell) / 4;
        *cell = gpu->kernel->number[*cell];
    }
    return VPPS_OK;
}

vpps_status vpps_gpu_make_step(vpps_gpu *gpu, const vpps_batch *batch, vpps_gpu_script *out) {
    uint32_t *script, gradients = 0;
    uint64_t rows = 0;
    const size_t step_words = gpu->header.steps ? gpu->model->n_params * sizeof(vpps_param_step) / sizeof *script : 0;
    const uint32_t n_params = (uint32_t)gpu->model->n_params, n_segments = gpu->n_segments;
    for (uint32_t i = 0; i < n_segments; i++) rows += gpu->segments[i].n;
    VPPS_TRY(make_room(gpu,
                       VPPS_TASK_HEADER_WORDS + room_for_groups(gpu, batch->script) + n_params + rows + step_words +
                           (uint64_t)n_segments * VPPS_TABLE_WORDS + ALIGNED_WORDS,
                       &script));
    *out = (vpps_gpu_script){.copy = script, .tasks = VPPS_TASK_HEADER_WORDS};
    out->touched = write_groups(gpu, batch->script, STEP, script, out->tasks);
    const uint32_t tables = write_touched(gpu, script, out->touched);
    vpps_task_header *header = (vpps_task_header *)(void *)script;
    *header = gpu->header;
    header->n_blocks = 0;
    header->tables = tables;
    header->n_tables = n_segments;
    uint32_t at = header->tables + n_segments * VPPS_TABLE_WORDS;
    for (uint32_t i = 0; i < n_segments; i++) {
        const vpps_row_segment *s = &gpu->segments[i];
        const vpps_table t = {.param = s->param, .n = s->n, .gradients = gradients, .rows = at};
        memcpy(script + header->tables + i * VPPS_TABLE_WORDS, &t, sizeof t);
        memcpy(script + at, s->rows, s->n * sizeof *s->rows);
        at += s->n;
        gradients += s->n * vpps_gpu_entry_words(gpu, s->param);
    }
    if (step_words) {
        header->steps = at;
        memcpy(script + at, batch->script + gpu->header.steps, step_words * sizeof *script);
        at += (uint32_t)step_words;
    }
    out->words = fill_up(script, at);
    return VPPS_OK;
}
