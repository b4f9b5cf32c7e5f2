/* gpu_kernels.c - the Tree-LSTM's kernels for sm_90 with 132 SMs: where matrices lie, registers, how long compiling takes. */
#include "codegen/kernel_plan_print.h"
#include "gpu.h"
#include "maker.h"

#include <ftw.h>
#include <unistd.h>

enum { REPEATS = 3, TREES = 16 };

static const uint32_t sizes[] = {64, 128, 256, 384, 512, 1024, 2048, 0};

typedef struct product {
    maker of;
    vpps_kernel_plan plan;
    vpps_cubin_report report;
    char *source;
    uint32_t rejected;
    gpu_figure cold, cached; /* seconds */
    double all_seconds;      /* from the cells to a clean kernel, those that spill included */
} product;

static vpps_status compile(void *context, const vpps_kernel_plan *plan, const char *source, const char *description,
                           vpps_cubin_report *report) {
    const product *k = context;
    void *cubin = NULL;
    size_t bytes;
    (void)plan;
    const vpps_status status =
        vpps_compile(source, "vpps_kernel", k->of.machine.arch, description, false, &cubin, &bytes, report);
    free(cubin);
    return status;
}

static void note_rejected(void *context, const char *line) {
    ++((product *)context)->rejected;
    fprintf(stderr, "%s\n", line);
}

/* The kernel of the cells of a batch, as a device without a profile has it made. */
static vpps_status specialise(product *k) {
    maker *b = &k->of;
    const vpps_specialiser s = {.model = b->w.model,
                                .pool = &b->layout.plan,
                                .matrix_at = b->layout.matrix_at,
                                .machine = &b->machine,
                                .compile = compile,
                                .log = note_rejected,
                                .context = k};
    uint32_t registers = 0;
    VPPS_TRY(maker_make(b, TREES));
    k->plan = vpps_gpu_kernel_plan(&b->layout, b->batch->n_groups, &b->choice,
                                   (const vpps_compiled_cell *const *)b->batch->cells, b->batch->n_cells);
    const uint64_t start = vpps_now_ns();
    const vpps_status status = vpps_specialise(&s, &k->plan, &registers, &k->source, &k->report);
    k->all_seconds = (double)(vpps_now_ns() - start) * 1e-9;
    return status;
}

/* Wall time of one compilation, or of taking it from the cache. */
static vpps_status time_compile(const product *k, bool use_cache, double *seconds) {
    void *cubin = NULL;
    size_t bytes;
    char description[256];
    vpps_cubin_report report;
    vpps_kernel_describe(&k->plan, description, sizeof description);
    const uint64_t start = vpps_now_ns();
    const vpps_status status =
        vpps_compile(k->source, "vpps_kernel", k->of.machine.arch, description, use_cache, &cubin, &bytes, &report);
    *seconds = (double)(vpps_now_ns() - start) * 1e-9;
    free(cubin);
    if (status == VPPS_OK && use_cache && !report.cached) *seconds = -1; /* the one that fills the cache */
    return status;
}

static vpps_status time_compiles(product *k) {
    double cold[REPEATS], cached[REPEATS + 1];
    for (int i = 0; i < REPEATS; i++) VPPS_TRY(time_compile(k, false, &cold[i]));
    for (int i = 0; i < REPEATS + 1; i++) VPPS_TRY(time_compile(k, true, &cached[i]));
    for (int i = 1; i < REPEATS + 1; i++) {
        if (cached[i] < 0) return vpps_fail(VPPS_IO, "the kernel cache does not keep kernels");
    }
    k->cold = gpu_figure_of(cold, REPEATS);
    k->cached = gpu_figure_of(cached + 1, REPEATS);
    return VPPS_OK;
}

static vpps_status report(uint32_t hidden, const product *k) {
    char text[256];
    const vpps_kernel_plan *p = &k->plan;
    const vpps_cubin_report *r = &k->report;
    const double share = vpps_register_share(p, &k->of.machine);
    uint32_t matrices[VPPS_RESIDENT_STREAM + 1] = {0};
    json_t *levels = json_object();
    for (uint32_t i = 0; i < p->residents.n; i++) matrices[p->residents.list[i].level]++;
    for (uint32_t i = 0; i <= VPPS_RESIDENT_STREAM; i++)
        json_object_set_new(levels, vpps_resident_levels[i], json_integer(matrices[i]));
    vpps_kernel_describe(p, text, sizeof text);
    fprintf(stderr, "hidden %u: %s\n", hidden, text);
    fprintf(
        stderr,
        "    %u registers a thread, %.1f %% of the registers hold weights; frame %u, spilled %u bytes\n    matrices "
        "in registers %u, shared memory %u, streamed %u; %u bytes of code; compiled in %.2f s (%.2f - %.2f), from "
        "the cache %.2f ms; with rejected kernels (%u) %.2f s\n",
        r->registers, 100 * share, r->frame_bytes, r->spill_bytes, matrices[VPPS_RESIDENT_REGISTERS],
        matrices[VPPS_RESIDENT_SHARED], matrices[VPPS_RESIDENT_STREAM], r->code_bytes, k->cold.median, k->cold.low,
        k->cold.high, k->cached.median * 1e3, k->rejected, k->all_seconds);
    json_t *o = json_pack("{ss si ss si si si si si si}", "bench", "kernel", "hidden", (int)hidden, "plan", text,
                          "cells", (int)p->n_cells, "registers", (int)r->registers, "weight_registers",
                          (int)p->residents.registers, "frame_bytes", (int)r->frame_bytes, "spill_bytes",
                          (int)r->spill_bytes, "code_bytes", (int)r->code_bytes);
    json_object_set_new(o, "register_share", json_real(share));
    json_object_set_new(o, "matrices", levels);
    json_object_set_new(o, "static_shared_bytes", json_integer(r->shared_bytes));
    json_object_set_new(o, "dynamic_shared_bytes", json_integer(vpps_kernel_shared_bytes(p)));
    json_object_set_new(o, "compile_seconds", gpu_figure_json(k->cold));
    json_object_set_new(o, "cache_seconds", gpu_figure_json(k->cached));
    json_object_set_new(o, "rejected", json_integer(k->rejected));
    json_object_set_new(o, "specialise_seconds", json_real(k->all_seconds));
    return gpu_emit(o);
}

static vpps_status measure(const char *trees, uint32_t hidden) {
    product k = {0};
    vpps_status status = maker_open_gpu(&k.of, trees, hidden);
    if (status == VPPS_OK) status = specialise(&k);
    if (status == VPPS_OK) status = time_compiles(&k);
    if (status == VPPS_OK) status = report(hidden, &k);
    vpps_kernel_plan_free(&k.plan);
    maker_close(&k.of);
    free(k.source);
    return status;
}

/* ---------------------------------------------------------------- a cache of its own */

static int remove_one(const char *path, const struct stat *info, int flag, struct FTW *where) {
    (void)info;
    (void)flag;
    (void)where;
    return remove(path);
}

vpps_status gpu_bench_kernels(const gpu_settings *settings) {
    char folder[] = "/tmp/vpps-bench-XXXXXX";
    int major, minor;
    uint32_t architecture, n = 1;
    if (vpps_nvrtc_version(&major, &minor, &architecture, &n) != VPPS_OK) {
        fprintf(stderr, "no kernels: %s\n", vpps_error_message());
        return gpu_emit(json_pack("{ss ss}", "bench", "kernel", "skipped", vpps_error_message()));
    }
    fprintf(stderr, "Kernels by NVRTC %d.%d, SGD, the cells of a batch of %d trees\n", major, minor, TREES);
    if (!mkdtemp(folder)) return vpps_fail(VPPS_IO, "%s cannot be made", folder);
    setenv("VPPS_CACHE_DIR", folder, 1);
    vpps_status status = VPPS_OK;
    for (const uint32_t *hidden = sizes; *hidden && status == VPPS_OK; hidden++)
        status = measure(settings->trees, *hidden);
    char message[VPPS_MESSAGE_BYTES];
    snprintf(message, sizeof message, "%s", vpps_error_message());
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (status != VPPS_OK) vpps_restore_message(message);
    return status;
}
