/* script.c - makes the script (list of tasks) that a kernel runs: a copy of the batch's script in pinned memory. In tasks of cells (STAGE:
 * part of a cell; OUTER: a cell's gradients), the kind is replaced by the number of the kernel's code for this cell and part. */
#include "codegen/packing.h"
#include "runtime/gpu/gpu.h"
#include "script/update.h"

static uint32_t cell_of(const uint32_t *script, uint32_t block) { return vpps_block_at(script, block)->cell; }

/* Replaces the kind of a task that runs a cell's code by the code's number in the kernel; an unknown kind becomes VPPS_KERNEL_UNKNOWN. */
static void relocate(const vpps_gpu *gpu, const uint32_t *script, vpps_task *t) {
    const vpps_kernel_plan *plan = &gpu->kernel->plan;
    if (t->kind == VPPS_TASK_STAGE) {
        t->kind = VPPS_TASK_COUNT + plan->first_stage[cell_of(script, t->operands[0])] + t->stage;
    } else if (t->kind == VPPS_TASK_OUTER) {
        t->kind = vpps_outer_task(plan, cell_of(script, t->operands[0]));
    } else if (t->kind >= VPPS_TASK_COUNT) {
        t->operands[0] = t->kind;
        t->kind = VPPS_KERNEL_UNKNOWN;
    }
}

static bool is_backward(const vpps_gpu *gpu, const uint32_t *script, const vpps_task *t) {
    if (t->kind != VPPS_TASK_STAGE) return false;
    const vpps_compiled_cell *c = gpu->kernel->cells[cell_of(script, t->operands[0])];
    return t->stage < c->n_stages && c->stages[t->stage].backward;
}

/* Returns a task to insert before that at `address` in a batch's program. It waits for no barrier, signals none. */
static vpps_task added(uint32_t kind, uint32_t address) {
    return (vpps_task){.kind = kind, .wait = VPPS_NO_BARRIER, .signal = VPPS_NO_BARRIER, .address = address};
}

/* Copies tasks [t, end) of a group of CTAs to the kernel's program, then adds a task of kind `last`. `late`: backward's
 * weights are copied to shared memory while forward begins; a task that moves them to registers is added before the
 * first task that waits or is backward's, else at the end. `places`: address of the table of where OUTER tasks pack the
 * vectors dy and x of gradients dy x^T for cuBLAS; 0: they do not pack. Returns the address after the tasks. */
static uint32_t write_tasks(const vpps_gpu *gpu, const uint32_t *script, const vpps_task *t, const vpps_task *end,
                            bool late, uint32_t places, uint32_t last, uint32_t *to, uint32_t at) {
    for (;; t++) {
        if (late && (t >= end || t->wait != VPPS_NO_BARRIER || is_backward(gpu, script, t))) {
            const vpps_task weights = added(vpps_weights_task(&gpu->kernel->plan), t->address);
            memcpy(to + at, &weights, sizeof weights);
            at += VPPS_TASK_WORDS;
            late = false;
        }
        if (t >= end) break;
        vpps_task task = *t;
        if (places && t->kind == VPPS_TASK_OUTER) {
            task.pass_record = places;
            places += vpps_packed_operands(gpu->kernel->cells[cell_of(script, t->operands[0])]);
        }
        relocate(gpu, script, &task);
        memcpy(to + at, &task, sizeof task);
        at += VPPS_TASK_WORDS;
    }
    const vpps_task after = added(last, (uint32_t)((const uint32_t *)(const void *)end - script));
    memcpy(to + at, &after, sizeof after);
    return at + VPPS_TASK_WORDS;
}

static vpps_status reserve_pinned(vpps_gpu *gpu, vpps_gpu_slot *slot, size_t bytes) {
    if (slot->pinned_bytes >= bytes) return VPPS_OK;
    if (slot->pinned) gpu->table->release_host(gpu->driver, slot->pinned);
    slot->pinned = NULL;
    slot->pinned_bytes = 0;
    VPPS_TRY(gpu->table->allocate_host(gpu->driver, bytes + bytes / 2, &slot->pinned));
    slot->pinned_bytes = bytes + bytes / 2;
    return VPPS_OK;
}

/* Writes zeros up to the next aligned address, where tasks may begin or the program may end. Returns that address. */
static uint32_t fill_up(uint32_t *to, uint32_t at) {
    while (at % VPPS_TASK_ALIGNMENT) to[at++] = 0;
    return at;
}

/* Copies every group's tasks (those of CTAs that share the weights) to the kernel's program from address `at` on, and
 * writes the address of each group's first task. Returns the address after the tasks. If a group's last task should be
 * END, appends a task of an unknown kind, at which the kernel fails if END is missing. */
static uint32_t write_groups(const vpps_gpu *gpu, const vpps_batch *batch, vpps_gpu_part which, uint32_t places,
                             uint32_t *to, uint32_t at) {
    const uint32_t *script = batch->script;
    const bool whole = which == VPPS_GPU_WHOLE || which == VPPS_GPU_STEP; /* whether tasks up to the END are copied */
    uint32_t *starts = to + VPPS_TASK_HEADER_WORDS;
    at = fill_up(to, at);
    for (uint32_t g = 0; g < gpu->header.n_groups; g++) {
        const vpps_task *first = vpps_first_task(script, g), *end = vpps_end_of_tasks(script, g);
        const vpps_task *step = first; /* becomes the first NORM or UPDATE (which read all gradients), or the END */
        while (step < end && step->kind != VPPS_TASK_NORM && step->kind != VPPS_TASK_UPDATE &&
               step->kind != VPPS_TASK_END)
            step++;
        if (which == VPPS_GPU_STEP) first = step;
        if (batch->half == VPPS_BACKWARD_HALF) first = vpps_find_pause(script, g) + 1;
        if (!whole) end = which == VPPS_GPU_FORWARD ? vpps_find_pause(script, g) : step;
        starts[g] = at;
        at = write_tasks(gpu, script, first, end, which != VPPS_GPU_STEP && gpu->kernel->plan.late, places,
                         whole ? VPPS_KERNEL_UNKNOWN : VPPS_TASK_END, to, at);
        /* The first task need not wait for a barrier: the earlier launch has ended. */
        if (which == VPPS_GPU_STEP) ((vpps_task *)(void *)(to + starts[g]))->wait = VPPS_NO_BARRIER;
    }
    starts[gpu->header.n_groups] = at;
    return at;
}

/* Returns the most words that write_groups writes: all tasks, and two per group of CTAs (load weights; end). */
static uint64_t room_for_groups(const vpps_gpu *gpu, const uint32_t *script) {
    const uint32_t n = gpu->header.n_groups, *starts = vpps_task_starts(script);
    return VPPS_TASK_ALIGNMENT + starts[n] - starts[0] + 2 * (uint64_t)n * VPPS_TASK_WORDS;
}

/* Reserves pinned memory for the next launch's script (list of tasks), so that the copy to the device does not block. */
static vpps_status make_room(vpps_gpu *gpu, uint64_t words, uint32_t **out) {
    vpps_gpu_slot *slot = &gpu->slots[gpu->launches % VPPS_GPU_SLOTS];
    if (words > UINT32_MAX) return vpps_fail(VPPS_MEMORY, "%s: a script of more than 2^32 words", gpu->table->name);
    VPPS_TRY(reserve_pinned(gpu, slot, (size_t)words * sizeof(uint32_t)));
    *out = slot->pinned;
    return VPPS_OK;
}

/* Writes, from address `at` on, a word for each parameter: 1 for a matrix or vector with a gradient, else 0. Returns the end address. */
static uint32_t write_touched(const vpps_gpu *gpu, uint32_t *to, uint32_t at) {
    for (size_t p = 0; p < gpu->model->n_params; p++)
        to[at++] = gpu->dense[p] && gpu->model->params[p].kind != VPPS_LOOKUP;
    return at;
}

/* Returns the number of parameter p's next optimiser step. Batches in flight that train the parameter count as steps. */
static uint64_t number_of_step(const vpps_gpu *gpu, size_t p) {
    uint64_t number = gpu->device.updates[p] + 1;
    for (uint32_t i = 0; i < gpu->n_flights; i++) number += gpu->flights[i].steps[p];
    return number;
}

static uint32_t step_words(const vpps_gpu *gpu) {
    return (uint32_t)(gpu->model->n_params * sizeof(vpps_param_step) / sizeof(uint32_t));
}

/* Sets the optimiser's bias corrections in the header of a launch's program (script). If the batch has settings of
 * single parameters, or if parameters were updated unequally often, also writes a vpps_param_step for each parameter to
 * address `at` on. Returns the address after them. */
static uint32_t write_steps(const vpps_gpu *gpu, const vpps_batch *batch, uint32_t *script, uint32_t at) {
    vpps_task_header *h = (vpps_task_header *)(void *)script;
    const size_t n = gpu->model->n_params, words = sizeof(vpps_param_step) / sizeof(uint32_t);
    uint64_t common = 0;
    bool own = gpu->header.steps;
    for (size_t p = 0; p < n && vpps_corrects_means(gpu->options.optimizer.kind); p++) {
        const uint64_t number = gpu->dense[p] ? number_of_step(gpu, p) : common;
        own |= common && number != common;
        common = number;
    }
    h->steps = own ? at : 0;
    if (common) vpps_correct_means(h, common, h->corrections);
    for (size_t p = 0; p < n && own; p++, at += words) {
        vpps_param_step step = {.lr = h->lr, .momentum = h->momentum, .weight_decay = h->weight_decay};
        if (gpu->header.steps) memcpy(&step, batch->script + gpu->header.steps + p * words, sizeof step);
        vpps_correct_means(h, number_of_step(gpu, p), step.corrections);
        memcpy(script + at, &step, sizeof step);
    }
    return at;
}

vpps_status vpps_gpu_make_script(vpps_gpu *gpu, const vpps_batch *batch, vpps_gpu_part part, bool adds,
                                 vpps_gpu_script *out) {
    /* at: address of the first task in the batch's program (script), whose last part are the tasks */
    uint32_t *script, at = vpps_task_starts(batch->script)[0];
    const vpps_gpu_products *p = &gpu->products;
    const bool packs = part == VPPS_GPU_GRADIENTS && vpps_gpu_packs(gpu);
    const uint64_t touched = adds ? gpu->model->n_params : 0,
                   products = packs ? p->n_words + (uint64_t)VPPS_TASK_ALIGNMENT : 0;
    const bool steps = (part == VPPS_GPU_WHOLE || part == VPPS_GPU_STEP) && gpu->header.update;
    VPPS_TRY(make_room(gpu,
                       at + room_for_groups(gpu, batch->script) + touched + products + (steps ? step_words(gpu) : 0) +
                           VPPS_TASK_ALIGNMENT,
                       &script));
    memcpy(script, batch->script, at * sizeof *script);
    *out = (vpps_gpu_script){.copy = script};
    if (packs) {
        out->products = fill_up(script, at);
        memcpy(script + out->products, p->words, p->n_words * sizeof *script);
        at = out->products + p->n_words;
    }
    at = write_groups(gpu, batch, part, packs ? out->products + p->places : 0, script, at);
    if (adds) at = write_touched(gpu, script, out->touched = at);
    if (steps) at = write_steps(gpu, batch, script, at);
    out->words = fill_up(script, at);
    return VPPS_OK;
}

vpps_status vpps_gpu_make_step(vpps_gpu *gpu, const vpps_batch *batch, vpps_gpu_script *out) {
    uint32_t *script, gradients = 0;
    uint64_t rows = 0;
    const uint32_t n_params = (uint32_t)gpu->model->n_params, n_segments = gpu->n_segments;
    for (uint32_t i = 0; i < n_segments; i++) rows += gpu->segments[i].n;
    const uint32_t tasks = VPPS_TASK_HEADER_WORDS + gpu->header.n_groups + 1;
    VPPS_TRY(make_room(gpu,
                       tasks + room_for_groups(gpu, batch->script) + n_params + rows + step_words(gpu) +
                           (uint64_t)n_segments * VPPS_TABLE_WORDS + VPPS_TASK_ALIGNMENT,
                       &script));
    *out = (vpps_gpu_script){.copy = script};
    out->touched = write_groups(gpu, batch, VPPS_GPU_STEP, 0, script, tasks);
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
        gradients += s->n * vpps_entry_elems(gpu->model, s->param);
    }
    out->words = fill_up(script, write_steps(gpu, batch, script, at));
    return VPPS_OK;
}
