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
        t->task = VPPS_TASK_COUNT + gpu->kernel.plan.first_stage[gpu->kernel.number[block->cell]] + o[1];
        t->operands[0] = o[0], t->operands[1] = o[2], t->operands[2] = o[3];
    } else if (script[at] < VPPS_TASK_COUNT) {
        t->task = script[at];
        memcpy(t->operands, o, vpps_tasks[script[at]].words * sizeof *o);
    } else {
        t->task = VPPS_KERNEL_UNKNOWN;
        t->operands[0] = script[at];
    }
}

/* The group's tasks, and behind them one that fails: a script that is cut short gets there. How many; at most one more than there
 * are instructions. */
static uint32_t write_tasks(const vpps_gpu *gpu, const uint32_t *script, uint32_t at, uint32_t end,
                            vpps_kernel_task *to) {
    uint32_t n = 0;
    to[0] = nothing;
    for (; at < end; at = following(script, at, end)) {
        if (needs_next(&to[n], script[at])) to[++n] = nothing;
        add(gpu, script, at, &to[n]);
    }
    to[++n] = nothing;
    to[n].task = VPPS_KERNEL_UNKNOWN;
    to[n].operands[0] = VPPS_TASK_COUNT;
    to[n].address = end;
    return n + 1;
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

vpps_status vpps_gpu_make_script(vpps_gpu *gpu, const vpps_batch *batch, vpps_gpu_script *out) {
    const uint32_t k = gpu->next_pinned ^= 1, n_groups = gpu->header.n_groups;
    const uint32_t *starts = batch->script + VPPS_TASK_HEADER_WORDS;
    uint64_t tasks = 1; /* the kernel loads a task before the one before it is done */
    for (uint32_t g = 0; g < n_groups; g++) tasks += 1 + count_instructions(batch->script, starts[g], starts[g + 1]);
    const uint64_t words = batch->script_words + n_groups + ALIGNED_WORDS + tasks * TASK_WORDS;
    if (words > UINT32_MAX) return vpps_fail(VPPS_MEMORY, "%s: a script of more than 2^32 words", gpu->table->name);
    VPPS_TRY(reserve_pinned(gpu, k, (size_t)words * sizeof(uint32_t)));
    uint32_t *script = memcpy(gpu->pinned[k], batch->script, batch->script_words * sizeof *script);
    out->copy = script;
    out->tasks = (uint32_t)batch->script_words;
    uint32_t at = (out->tasks + n_groups + ALIGNED_WORDS - 1) / ALIGNED_WORDS * ALIGNED_WORDS;
    memset(script + out->tasks, 0, (at - out->tasks) * sizeof *script);
    for (uint32_t g = 0; g < n_groups; g++) {
        script[out->tasks + g] = at;
        at += TASK_WORDS *
              write_tasks(gpu, batch->script, starts[g], starts[g + 1], (vpps_kernel_task *)(void *)(script + at));
    }
    memset(script + at, 0, TASK_WORDS * sizeof *script);
    out->words = at + TASK_WORDS;
    for (uint32_t i = 0; i < gpu->header.n_blocks; i++) {
        uint32_t *cell = script + gpu->header.blocks + (size_t)i * VPPS_BLOCK_WORDS + offsetof(vpps_block, cell) / 4;
        *cell = gpu->kernel.number[*cell];
    }
    return VPPS_OK;
}
