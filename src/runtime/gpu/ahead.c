/* ahead.c - compiles kernels that are likely to be needed, each in its own thread, while batches run with other kernels: the variant of the
 * kernel to be measured next, and kernels of likely batches. The code goes into the disk cache, where the driver's `load` finds it. */
#include "runtime/gpu/gpu.h"

#include <pthread.h>
#include <stdatomic.h>

struct vpps_gpu_ahead {
    vpps_gpu_ahead *next;
    pthread_t thread;
    atomic_bool done;
    vpps_gpu *gpu; /* the device; `thread` reads only members that never change: driver, machine, layout, model */
    vpps_kernel_plan plan;
    /* whether the kernel is the variant that is to be timed next, not one for a batch that is likely to come */
    bool candidate;
    const vpps_compiled_cell **of; /* the n_cells cells of which the kernel consists, in the batch's order */
    uint32_t n_cells, registers;   /* registers: how many of a thread's registers may hold weights */
    /* copies of the cells in `of` that differ in one number: how many rows of matrices a warp computes at once */
    vpps_compiled_cell *cells;
    const vpps_compiled_cell **list;
};

static vpps_status compile(void *context, const vpps_kernel_plan *plan, const char *source, const char *description,
                           vpps_cubin_report *report) {
    const vpps_gpu_ahead *a = context;
    (void)plan;
    return a->gpu->table->prepare(a->gpu->driver, source, description, report);
}

/* The thread's function: compiles the kernel. Ignores failures, since loading the kernel later reports them. */
static void *work(void *context) {
    vpps_gpu_ahead *a = context;
    const vpps_specialiser s = {.model = a->gpu->model,
                                .pool = &a->gpu->layout.plan,
                                .matrix_at = a->gpu->layout.matrix_at,
                                .machine = &a->gpu->machine,
                                .compile = compile,
                                .context = a};
    vpps_cubin_report report;
    vpps_specialise(&s, &a->plan, &a->registers, NULL, &report);
    vpps_kernel_plan_free(&a->plan);
    atomic_store(&a->done, true);
    return NULL;
}

static void release(vpps_gpu_ahead *a) { VPPS_FREE(a->of, a->cells, a->list, a); }

static void end(vpps_gpu_ahead **at) {
    vpps_gpu_ahead *a = *at;
    pthread_join(a->thread, NULL);
    *at = a->next;
    release(a);
}

/* Starts a thread that compiles a kernel of these cells. Does nothing if two such threads run already, or if none can be started. */
static void start(vpps_gpu *gpu, const vpps_gpu_ahead *asked, const vpps_compiled_cell *const *cells,
                  const vpps_trial *choice, uint32_t groups) {
    enum { MOST = 2 };
    uint32_t running = 0;
    for (vpps_gpu_ahead **at = &gpu->ahead; *at;) {
        if (atomic_load(&(*at)->done)) {
            end(at);
        } else {
            running++;
            at = &(*at)->next;
        }
    }
    vpps_gpu_ahead *a = running < MOST ? calloc(1, sizeof *a) : NULL;
    if (!a) return;
    a->gpu = gpu;
    a->candidate = asked->candidate;
    a->n_cells = asked->n_cells;
    a->registers = asked->registers;
    a->of = calloc(a->n_cells + 1u, sizeof *a->of);
    a->cells = calloc(a->n_cells + 1u, sizeof *a->cells);
    a->list = calloc(a->n_cells + 1u, sizeof *a->list);
    const bool room = a->of && a->cells && a->list;
    for (uint32_t i = 0; i < a->n_cells && room; i++) {
        a->of[i] = cells[i];
        a->cells[i] = *cells[i];
        a->cells[i].needs.rows.unit = choice->rpw;
        a->list[i] = &a->cells[i];
    }
    a->plan = vpps_gpu_kernel_plan(&gpu->layout, groups, choice, a->list, a->n_cells);
    if (!room || pthread_create(&a->thread, NULL, work, a) != 0) {
        release(a);
        return;
    }
    a->next = gpu->ahead;
    gpu->ahead = a;
}

static vpps_gpu_ahead **find_candidate(vpps_gpu *gpu) {
    vpps_gpu_ahead **at = &gpu->ahead;
    while (*at && !(*at)->candidate) at = &(*at)->next;
    return at;
}

bool vpps_gpu_is_ahead(vpps_gpu *gpu, const vpps_trial *next) {
    if (!gpu->table->prepare) return true;
    const vpps_gpu_kernel *k = gpu->trained;
    if (!*find_candidate(gpu) && k)
        start(gpu, &(vpps_gpu_ahead){.candidate = true, .n_cells = k->n_cells}, k->cells, next, k->groups);
    vpps_gpu_ahead **at = find_candidate(gpu);
    if (!*at) return true;
    if (!atomic_load(&(*at)->done)) return false;
    end(at);
    return true;
}

void vpps_gpu_compile_ahead(vpps_device *d, const vpps_batch *batch, bool training) {
    vpps_gpu *gpu = (vpps_gpu *)d;
    const vpps_gpu_kernel *k = vpps_gpu_kernel_of(gpu, training, batch->n_groups);
    const vpps_gpu_ahead asked = {.n_cells = batch->n_cells, .registers = k ? k->registers : 0};
    start(gpu, &asked, (const vpps_compiled_cell *const *)batch->cells, vpps_profile_current(&gpu->device.profile),
          batch->n_groups);
}

void vpps_gpu_await_ahead(vpps_gpu *gpu, const vpps_compiled_cell *const *cells, uint32_t n_cells) {
    for (vpps_gpu_ahead **at = &gpu->ahead; *at;) {
        const vpps_gpu_ahead *a = *at;
        if (!a->candidate && a->n_cells == n_cells && !memcmp(a->of, cells, n_cells * sizeof *cells))
            end(at);
        else
            at = &(*at)->next;
    }
}

void vpps_gpu_stop_ahead(vpps_gpu *gpu) {
    while (gpu->ahead) end(&gpu->ahead);
}
