/* kernel.c - compiles and loads kernels. There is a kernel for training and one for inference, for each number of
 * groups of CTAs (a group holds all weights). A batch brings the list of cells (vertex functions) for which its kernel
 * needs code (script/history.h); a kernel with other cells is replaced. Each launch reads the weights from memory, so a
 * change of kernels costs no more than the compilation. */
#include "runtime/gpu/gpu.h"

/* Context of `compile` and `log_line`. kernel: the kernel that was loaded last; shape: the shape of its launches. */
typedef struct loading {
    vpps_gpu *gpu;
    vpps_kernel *kernel;
    vpps_launch_shape shape;
} loading;

static vpps_status compile(void *context, const vpps_kernel_plan *plan, const char *source, const char *description,
                           vpps_cubin_report *report) {
    loading *l = context;
    vpps_gpu *gpu = l->gpu;
    if (l->kernel) gpu->table->unload(gpu->driver, l->kernel);
    l->kernel = NULL;
    l->shape = (vpps_launch_shape){plan->n_vps, plan->threads, vpps_kernel_shared_bytes(plan)};
    return gpu->table->load(gpu->driver, source, description, &l->shape, &l->kernel, report);
}

static void log_line(void *context, const char *line) {
    vpps_log_line(&((loading *)context)->gpu->options, "%s", line);
}

static void unload(vpps_gpu *gpu, vpps_gpu_kernel *k) {
    if (k->loaded && gpu->n_flights) vpps_gpu_finish(gpu);
    if (k->loaded) gpu->table->unload(gpu->driver, k->loaded);
    k->loaded = NULL;
    vpps_kernel_plan_free(&k->plan);
    VPPS_FREE(k->cells);
    k->cells = NULL;
}

void vpps_gpu_forget_kernels(vpps_gpu *gpu) {
    vpps_gpu_stop_ahead(gpu);
    for (vpps_gpu_kernel *k = gpu->kernels, *next; k; k = next) {
        next = k->next;
        unload(gpu, k);
        free(k);
    }
    gpu->kernels = gpu->kernel = gpu->trained = NULL;
}

vpps_kernel_plan vpps_gpu_kernel_plan(const vpps_gpu_layout *layout, uint32_t groups, const vpps_trial *choice,
                                      const vpps_compiled_cell *const *cells, uint32_t n_cells) {
    return (vpps_kernel_plan){.n_vps = layout->target.n_vps,
                              .group = layout->target.n_vps / groups,
                              .threads = choice->threads,
                              .row_unit = choice->rpw,
                              .optimizer = layout->optimizer,
                              .n_states = layout->n_states,
                              .packs = vpps_by_cublas(choice->gradients),
                              .parts = vpps_precision_parts(layout->precision),
                              .cells = cells,
                              .n_cells = n_cells};
}

static vpps_status make(vpps_gpu *gpu, const vpps_batch *batch) {
    vpps_gpu_kernel *k = gpu->kernel;
    const uint32_t n_cells = batch->n_cells;
    const vpps_compiled_cell **cells = calloc(n_cells + 1u, sizeof *cells);
    if (!cells) return vpps_fail(VPPS_MEMORY, "%s: out of memory", gpu->table->name);
    for (uint32_t i = 0; i < n_cells; i++) cells[i] = batch->cells[i];
    loading l = {.gpu = gpu};
    vpps_cubin_report report;
    const uint64_t start = vpps_now_ns();
    vpps_gpu_await_ahead(gpu, cells, n_cells);
    const double waited = (double)(vpps_now_ns() - start) * 1e-9;
    uint32_t registers = k->registers;
    const vpps_profile *profile = &gpu->device.profile;
    vpps_kernel_plan plan =
        vpps_gpu_kernel_plan(&gpu->layout, k->groups, vpps_profile_current(profile), cells, n_cells);
    const vpps_specialiser s = {.model = gpu->model,
                                .pool = &gpu->layout.plan,
                                .matrix_at = gpu->layout.matrix_at,
                                .machine = &gpu->machine,
                                .compile = compile,
                                .log = log_line,
                                .context = &l,
                                .spills = profile->done};
    const vpps_status status = vpps_specialise(&s, &plan, &registers, NULL, &report);
    if (status != VPPS_OK) {
        if (l.kernel) gpu->table->unload(gpu->driver, l.kernel);
        vpps_kernel_plan_free(&plan);
        free(cells);
        return status;
    }
    unload(gpu, k);
    k->cells = cells;
    k->n_cells = n_cells;
    k->plan = plan;
    k->loaded = l.kernel;
    k->shape = l.shape;
    k->report = report;
    k->report.seconds += waited;
    k->registers = registers;
    char text[192];
    vpps_kernel_describe(&plan, text, sizeof text);
    vpps_log_line(&gpu->options, "kernel of %s: %u registers%s, a CUBIN of %u KB, ready after %.2f s%s", text,
                  report.registers, report.frame_bytes ? ", spilling" : "", (report.cubin_bytes + 1023) / 1024,
                  k->report.seconds, report.cached ? " (from the cache)" : "");
    return VPPS_OK;
}

vpps_gpu_kernel *vpps_gpu_kernel_of(vpps_gpu *gpu, bool training, uint32_t groups) {
    vpps_gpu_kernel *k = gpu->kernels;
    while (k && (k->training != training || k->groups != groups)) k = k->next;
    if (k || !(k = calloc(1, sizeof *k))) return k;
    *k = (vpps_gpu_kernel){.next = gpu->kernels, .training = training, .groups = groups};
    return gpu->kernels = k;
}

vpps_status vpps_gpu_need_kernel(vpps_gpu *gpu, const vpps_batch *batch) {
    const bool training = gpu->header.update != 0;
    const size_t bytes = batch->n_cells * sizeof *batch->cells;
    vpps_gpu_kernel *k = gpu->kernel = vpps_gpu_kernel_of(gpu, training, gpu->header.n_groups);
    if (!k) return vpps_fail(VPPS_MEMORY, "%s: out of memory", gpu->table->name);
    const bool same = !bytes || (k->n_cells == batch->n_cells && !memcmp(k->cells, batch->cells, bytes));
    if (!k->loaded || !same) VPPS_TRY(make(gpu, batch));
    if (training) gpu->trained = k;
    return VPPS_OK;
}
