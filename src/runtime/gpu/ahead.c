/* ahead.c - compiles the next candidate's kernel in a thread of its own, while batches run with the present one. The kernel goes to the
 * disk cache, where the driver's `load` finds it. */
#include "runtime/gpu/gpu.h"

#include <pthread.h>
#include <stdatomic.h>

struct vpps_gpu_ahead {
    pthread_t thread;
    atomic_bool done;
    vpps_gpu *gpu; /* its driver, machine, layout and model, which stay */
    vpps_kernel_plan plan;
    vpps_compiled_cell
        *cells; /* copies: rows are dealt as the choice says. What they point at is the batches' cells' */
    const vpps_compiled_cell **list;
};

static vpps_status compile(void *context, const vpps_kernel_plan *plan, const char *source, const char *description,
                           vpps_cubin_report *report) {
    const vpps_gpu_ahead *a = context;
    (void)plan;
    return a->gpu->table->prepare(a->gpu->driver, source, description, report);
}

/* Failures are ignored here: loading the kernel reports them. */
static void *work(void *context) {
    vpps_gpu_ahead *a = context;
    const vpps_specialiser s = {.model = a->gpu->model,
                                .pool = &a->gpu->layout.plan,
                                .matrix_at = a->gpu->layout.matrix_at,
                                .machine = &a->gpu->machine,
                                .compile = compile,
                                .context = a};
    vpps_cubin_report report;
    uint32_t registers = 0;
    vpps_specialise(&s, &a->plan, &registers, NULL, &report);
    vpps_kernel_plan_free(&a->plan);
    atomic_store(&a->done, true);
    return NULL;
}

static void release(vpps_gpu_ahead *a) { VPPS_FREE(a->cells, a->list, a); }

static vpps_gpu_ahead *start(vpps_gpu *gpu, const vpps_trial *choice) {
    const vpps_gpu_kernel *k = gpu->trained;
    vpps_gpu_ahead *a = k ? calloc(1, sizeof *a) : NULL;
    if (!a) return NULL;
    a->gpu = gpu;
    a->cells = calloc(k->n_cells + 1u, sizeof *a->cells);
    a->list = calloc(k->n_cells + 1u, sizeof *a->list);
    for (uint32_t i = 0; i < k->n_cells && a->cells && a->list; i++) {
        a->cells[i] = *k->cells[i];
        a->cells[i].needs.rows.unit = choice->rpw;
        a->list[i] = &a->cells[i];
    }
    a->plan = vpps_gpu_kernel_plan(&gpu->layout, k->groups, choice, a->list, k->n_cells);
    if (a->cells && a->list && !pthread_create(&a->thread, NULL, work, a)) return a;
    release(a);
    return NULL;
}

bool vpps_gpu_is_ahead(vpps_gpu *gpu, const vpps_trial *next) {
    if (!gpu->table->prepare) return true;
    if (!gpu->ahead) gpu->ahead = start(gpu, next);
    if (gpu->ahead && !atomic_load(&gpu->ahead->done)) return false;
    vpps_gpu_stop_ahead(gpu);
    return true;
}

void vpps_gpu_stop_ahead(vpps_gpu *gpu) {
    if (!gpu->ahead) return;
    pthread_join(gpu->ahead->thread, NULL);
    release(gpu->ahead);
    gpu->ahead = NULL;
}
