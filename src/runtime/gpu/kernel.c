/* kernel.c - the kernels with code for all cells that batches had so far: one each for training and for inference, and for each number of
 * VP groups. A batch that uses a new cell triggers a recompilation, without the cells that the new one supersedes. A network has only a few
 * cells. If a kernel would have more than gpu->most_cells cells, it is compiled for its batch's cells alone, so that compilations do not
 * grow without limit. Each launch reads the weights, so switching kernels costs only one compilation. */
#include "runtime/cores.h"
#include "runtime/gpu/gpu.h"

/* What the compile functions need to know about the kernel being compiled, and the loaded kernel. */
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

static vpps_status compile_beside(void *context, const char *source, const char *description,
                                  vpps_cubin_report *report) {
    const vpps_gpu *gpu = ((const loading *)context)->gpu;
    return gpu->table->prepare(gpu->driver, source, description, report);
}

static void log_line(void *context, const char *line) {
    vpps_log_line(&((loading *)context)->gpu->options, "%s", line);
}

static void unload(vpps_gpu *gpu, vpps_gpu_kernel *k) {
    if (k->loaded && gpu->n_flights) vpps_gpu_settle(gpu);
    if (k->loaded) gpu->table->unload(gpu->driver, k->loaded);
    k->loaded = NULL;
    vpps_kernel_plan_free(&k->plan);
}

void vpps_gpu_forget_kernels(vpps_gpu *gpu) {
    vpps_gpu_stop_ahead(gpu);
    for (vpps_gpu_kernel *k = gpu->kernels, *next; k; k = next) {
        next = k->next;
        unload(gpu, k);
        VPPS_FREE_ARRAYS(k->cells, k->expected, k->number);
        free(k);
    }
    gpu->kernels = gpu->kernel = gpu->trained = NULL;
}

vpps_kernel_plan vpps_gpu_kernel_plan(const vpps_gpu_layout *layout, uint32_t groups, const vpps_trial *choice,
                                      const vpps_compiled_cell *const *cells, uint32_t n_cells) {
    return (vpps_kernel_plan){.n_vps = layout->tasks.n_vps,
                              .group = layout->tasks.n_vps / groups,
                              .threads = choice->threads,
                              .row_unit = choice->rpw,
                              .optimizer = layout->optimizer,
                              .n_states = layout->n_states,
                              .packs = vpps_by_cublas(choice->gradients),
                              .parts = vpps_precision_parts(layout->precision),
                              .cells = cells,
                              .n_cells = n_cells};
}

static vpps_status make(vpps_gpu *gpu) {
    vpps_gpu_kernel *k = gpu->kernel;
    loading l = {.gpu = gpu};
    vpps_cubin_report report;
    const uint64_t start = vpps_now_ns();
    vpps_gpu_await_ahead(gpu, k);
    const double waited = (double)(vpps_now_ns() - start) * 1e-9;
    uint32_t registers = k->registers;
    const vpps_profile *profile = &gpu->device.profile;
    vpps_kernel_plan plan =
        vpps_gpu_kernel_plan(&gpu->layout, k->groups, vpps_profile_current(profile), k->cells, k->n_cells);
    const vpps_specialiser s = {.model = gpu->model,
                                .pool = &gpu->layout.plan,
                                .matrix_at = gpu->layout.matrix_at,
                                .machine = &gpu->machine,
                                .compile = compile,
                                .beside = gpu->table->prepare && vpps_cores_allowed() > 1 ? compile_beside : NULL,
                                .log = log_line,
                                .context = &l,
                                .spills = profile->done};
    const vpps_status status = vpps_specialise(&s, &plan, &registers, NULL, &report);
    if (status != VPPS_OK) {
        if (l.kernel) gpu->table->unload(gpu->driver, l.kernel);
        vpps_kernel_plan_free(&plan);
        return status;
    }
    unload(gpu, k);
    k->plan = plan;
    k->loaded = l.kernel;
    k->shape = l.shape;
    k->report = report;
    k->report.seconds += waited;
    k->registers = registers;
    char text[192];
    vpps_kernel_describe(&plan, text, sizeof text);
    vpps_log_line(&gpu->options, "kernel of %s: %u registers%s, %u KB of code, ready after %.2f s%s", text,
                  report.registers, report.spill_bytes ? ", spilling" : "", (report.code_bytes + 1023) / 1024,
                  k->report.seconds, report.cached ? " (from the cache)" : "");
    return VPPS_OK;
}

static uint32_t find_cell(const vpps_gpu_kernel *k, const vpps_compiled_cell *cell) {
    uint32_t i = 0;
    while (i < k->n_cells && k->cells[i] != cell) i++;
    return i;
}

/* Returns the kernel for training or inference with this number of groups, adding one without cells if necessary; NULL if out of memory. */
static vpps_gpu_kernel *kernel_of(vpps_gpu *gpu, bool training, uint32_t groups) {
    vpps_gpu_kernel *k = gpu->kernels;
    while (k && (k->training != training || k->groups != groups)) k = k->next;
    if (k || !(k = calloc(1, sizeof *k))) return k;
    *k = (vpps_gpu_kernel){.next = gpu->kernels, .training = training, .groups = groups};
    return gpu->kernels = k;
}

static bool has_cells(const vpps_gpu_kernel *k, const vpps_batch *batch) {
    for (uint32_t i = 0; i < batch->n_cells; i++)
        if (find_cell(k, batch->cells[i]) == k->n_cells) return false;
    return true;
}

/* Removes cells that newer cells replace from the kernel, and unloads the kernel if any were removed. */
static void drop_superseded(vpps_gpu *gpu, vpps_gpu_kernel *k) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < k->n_cells; i++)
        if (!k->cells[i]->superseded) k->cells[left++] = k->cells[i];
    if (left < k->n_cells) unload(gpu, k);
    k->n_cells = left;
}

/* Appends to k->cells the batch's cells that are missing, and finds the number in k->cells of each cell of the batch. */
static void add_cells(vpps_gpu_kernel *k, const vpps_batch *batch) {
    for (uint32_t i = 0; i < batch->n_cells; i++) {
        k->number[i] = find_cell(k, batch->cells[i]);
        if (k->number[i] == k->n_cells) k->cells[k->n_cells++] = batch->cells[i];
    }
}

/* Appends the expected cells to k->cells, so that one compilation serves them, too. */
static void add_expected(vpps_gpu_kernel *k) {
    for (uint32_t i = 0; i < k->n_expected; i++)
        if (!k->expected[i]->superseded && find_cell(k, k->expected[i]) == k->n_cells)
            k->cells[k->n_cells++] = k->expected[i];
}

vpps_status vpps_gpu_need_cells(vpps_gpu *gpu, const vpps_batch *batch) {
    const bool training = gpu->header.update != 0;
    vpps_gpu_kernel *k = gpu->kernel = kernel_of(gpu, training, gpu->header.n_groups);
    if (!k) return vpps_fail(VPPS_MEMORY, "%s: out of memory", gpu->table->name);
    if (training) gpu->trained = k;
    if (!VPPS_RESERVE(k->number, batch->n_cells + 1u) ||
        !VPPS_RESERVE(k->cells, k->n_cells + k->n_expected + batch->n_cells + 1u))
        return vpps_fail(VPPS_MEMORY, "%s: out of memory", gpu->table->name);
    const bool lacks = !has_cells(k, batch);
    if (lacks) drop_superseded(gpu, k);
    uint32_t before = k->n_cells;
    if (lacks) add_expected(k);
    add_cells(k, batch);
    if (k->n_cells > before && k->n_cells > gpu->most_cells) {
        unload(gpu, k);
        before = k->n_cells = 0;
        add_cells(k, batch);
    }
    if (k->n_cells == before && k->loaded) return VPPS_OK;
    const vpps_status status = make(gpu);
    if (status != VPPS_OK) k->n_cells = before, k->n_expected = 0;
    return status;
}

/* Notes that the kernel is likely to need `cell`, as number n of such cells. Returns whether number n was another cell. */
static bool expect(vpps_gpu_kernel *k, uint32_t n, const vpps_compiled_cell *cell) {
    const bool other = n >= k->n_expected || k->expected[n] != cell;
    k->expected[n] = cell;
    return other;
}

const vpps_gpu_kernel *vpps_gpu_expect_cells(vpps_gpu *gpu, const vpps_batch *batch, bool training) {
    vpps_gpu_kernel *k = kernel_of(gpu, training, batch->n_groups);
    if (!k || has_cells(k, batch) || !VPPS_RESERVE(k->expected, k->n_cells + batch->n_cells + 1u)) return NULL;
    uint32_t n = 0;
    bool others = false;
    for (uint32_t i = 0; i < k->n_cells; i++)
        if (!k->cells[i]->superseded) others |= expect(k, n++, k->cells[i]);
    for (uint32_t i = 0; i < batch->n_cells; i++)
        if (find_cell(k, batch->cells[i]) == k->n_cells) others |= expect(k, n++, batch->cells[i]);
    k->n_expected = n > gpu->most_cells ? 0 : n;
    return others && k->n_expected ? k : NULL;
}
