/* profile.c - finds the fastest variant of the kernel by timing batches. First tries more and more rows per warp until
 * more are slower; then, with the best number, other numbers of threads; then, with both, gradients by cuBLAS if the
 * options allow it. If the driver can compile ahead, batches run with one variant until the next one is ready. */
#include "runtime/gpu/gpu.h"

static const uint32_t most_rpw = 8, threads_of[] = {256, 384, 512};

static void name(const vpps_trial *t, char text[VPPS_CANDIDATE_BYTES]) {
    const char *const cublas = t->gradients == VPPS_GRADIENTS_CUBLAS_TF32 ? ", cuBLAS in TF32" : ", cuBLAS";
    snprintf(text, VPPS_CANDIDATE_BYTES, "rpw %u, %u threads%s", t->rpw, t->threads,
             vpps_by_cublas(t->gradients) ? cublas : "");
}

static bool is_of_cublas(const vpps_profile *p, const vpps_trial *t) {
    return p->options->gradients == VPPS_GRADIENTS_AUTO && t->gradients == VPPS_GRADIENTS_CUBLAS;
}

_Static_assert(4 + VPPS_COUNT(threads_of) - 1 + 1 <= VPPS_MOST_TRIALS,
               "room for 1, 2, 4, 8 rows, then all threads, then cuBLAS");

uint32_t vpps_gpu_choices(const vpps_options *o, vpps_trial *out) {
    uint32_t n = 0;
    const uint32_t threads = o->threads ? o->threads : threads_of[0];
    for (uint32_t rpw = 1; rpw <= most_rpw; rpw *= 2)
        if (!o->rpw || rpw == 1) out[n++] = (vpps_trial){.rpw = o->rpw ? o->rpw : rpw, .threads = threads};
    for (size_t i = 1; i < VPPS_COUNT(threads_of) && !o->threads; i++)
        out[n++] = (vpps_trial){.rpw = o->rpw, .threads = threads_of[i]};
    const bool any = o->gradients == VPPS_GRADIENTS_AUTO;
    for (uint32_t i = 0; i < n; i++) out[i].gradients = any ? VPPS_GRADIENTS_DEFERRED : o->gradients;
    if (any) out[n++] = (vpps_trial){.rpw = o->rpw, .threads = threads, .gradients = VPPS_GRADIENTS_CUBLAS};
    return n;
}

/* Makes the next batch use the current variant of the kernel: sets its rows per warp, and drops compiled kernels. */
static void apply(vpps_gpu *gpu) {
    gpu->layout.target.rows.unit = vpps_profile_current(&gpu->device.profile)->rpw;
    vpps_gpu_forget_kernels(gpu);
}

void vpps_gpu_start_profile(vpps_gpu *gpu) {
    const vpps_options *o = &gpu->options;
    vpps_profile *p = &gpu->device.profile;
    *p = (vpps_profile){.batches = VPPS_GPU_MEASURED, .one_by_one = true, .name = name, .options = o};
    p->n = vpps_gpu_choices(o, p->trials);
    p->memory = (vpps_memory){.what = "the fastest kernel", .model = gpu->model};
    snprintf(p->memory.machine, sizeof p->memory.machine,
             "%s, sm_%u, %u VPs in %u groups; rpw %u, threads %u, gradients %d, optimiser %d, %s", gpu->machine.name,
             gpu->machine.arch, gpu->layout.target.n_vps, o->groups == VPPS_GROUPS_PROFILE ? 0 : o->groups, o->rpw,
             o->threads, (int)o->gradients, (int)o->optimizer.kind, vpps_precision_names[gpu->layout.precision]);
    const bool open = !o->no_tuning && p->n > 1;
    char *text = open ? vpps_recall(&p->memory) : NULL;
    uint32_t rpw, threads;
    if (text && sscanf(text, "rpw %u, %u threads", &rpw, &threads) == 2)
        for (uint32_t i = 0; i < p->n; i++) {
            vpps_trial *t = &p->trials[i];
            if (is_of_cublas(p, t)) t->rpw = rpw, t->threads = threads;
            if (!t->rpw && t->threads == threads) t->rpw = rpw;
        }
    if (text) vpps_profile_resume(p, text);
    free(text);
    if (!p->done) vpps_profile_take(p, open ? 0 : p->n);
    apply(gpu);
}

vpps_status vpps_gpu_note_kernel(vpps_gpu *gpu, vpps_status made) {
    vpps_profile *p = &gpu->device.profile;
    vpps_trial *t = &p->trials[p->current];
    char text[VPPS_CANDIDATE_BYTES];
    if (made == VPPS_OK) {
        t->registers = gpu->kernel->report.registers;
        t->load_seconds = gpu->kernel->report.seconds;
    }
    if (made == VPPS_OK || p->done || (made == VPPS_MEMORY && !is_of_cublas(p, t))) return made;
    name(t, text);
    vpps_log_line(&gpu->options, "%s: %s", text, vpps_error_message());
    t->state = VPPS_TRIAL_REJECTED;
    return VPPS_POOL;
}

/* Returns the index of the next variant to time; p->n: none. Tries more rows per warp only while they are faster. */
static uint32_t next_candidate(vpps_profile *p) {
    const uint32_t best = vpps_profile_best(p);
    bool faster = true;
    for (uint32_t i = 0; i < p->n; i++) {
        vpps_trial *t = &p->trials[i];
        if (t->ns_per_node > 0) faster = i == best;
        const bool cublas = is_of_cublas(p, t);
        if (t->state != VPPS_TRIAL_WAITING || (t->threads == p->trials[0].threads && !faster && !cublas)) continue;
        if (cublas && best < p->n) t->rpw = p->trials[best].rpw, t->threads = p->trials[best].threads;
        if (!t->rpw) t->rpw = best == p->n ? 1 : p->trials[best].rpw;
        return i;
    }
    return p->n;
}

vpps_status vpps_gpu_tune(vpps_device *d) {
    vpps_gpu *gpu = (vpps_gpu *)d;
    vpps_profile *p = &d->profile;
    const vpps_trial *t = vpps_profile_current(p);
    const uint32_t before = p->current;
    const bool rejected = t->state == VPPS_TRIAL_REJECTED;
    char text[VPPS_CANDIDATE_BYTES];
    /* the current variant of the kernel is still being measured */
    if (p->done || (!rejected && t->ns_per_node <= 0)) return VPPS_OK;
    const uint32_t next = next_candidate(p);
    if (next < p->n && !rejected && !vpps_gpu_is_ahead(gpu, &p->trials[next])) return VPPS_OK;
    name(t, text);
    if (t->ns_per_node > 0)
        vpps_log_line(&gpu->options, "measured: %s: %.0f ns a node (median of %u batches)", text, t->ns_per_node,
                      t->batches);
    vpps_profile_take(p, next);
    t = vpps_profile_current(p);
    name(t, text);
    if (p->done && t->ns_per_node > 0) vpps_log_line(&gpu->options, "chosen: %s, %.0f ns a node", text, t->ns_per_node);
    if (p->current != before || rejected) apply(gpu);
    return VPPS_OK;
}
