/* gpu_kernels.c - the Tree-LSTM's kernels for sm_90 with 132 SMs: plans, registers, how long compiling takes. */
#include "codegen/emit.h"
#include "codegen/specialise.h"
#include "gpu.h"
#include "graph/model.h"
#include "models.h"

#include <ftw.h>
#include <unistd.h>

enum { REPEATS = 5 };

const uint32_t gpu_sizes[] = {64, 128, 256, 384, 512, 1024, 2048, 0};

typedef struct product {
    vpps_partition plan;
    vpps_cubin_report report;
    char *source;
    uint32_t rejected;
    gpu_figure cold, cached; /* seconds */
    double all_seconds;      /* from the model to a clean kernel, plans that spill included */
} product;

static vpps_status compile(void *context, const vpps_partition *p, const char *source, const char *description,
                           vpps_cubin_report *report) {
    (void)context;
    void *cubin = NULL;
    size_t bytes;
    const vpps_status status =
        vpps_compile(source, "vpps_kernel", p->machine.arch, description, false, &cubin, &bytes, report);
    free(cubin);
    return status;
}

static void note_rejected(void *context, const char *line) {
    ++*(uint32_t *)context;
    fprintf(stderr, "%s\n", line);
}

/* As a device without tuning does: the first choice that compiles cleanly. */
static vpps_status specialise(const vpps_model *model, const vpps_machine *machine, product *out) {
    vpps_partition_choice list[VPPS_MAX_CHOICES];
    const vpps_partition_choice any = {0};
    const uint32_t n = vpps_partition_choices(model, machine, &any, false, list, VPPS_MAX_CHOICES);
    const vpps_specialiser s = {model, machine, VPPS_SGD, compile, note_rejected, &out->rejected};
    const uint64_t start = vpps_now_ns();
    vpps_status status = vpps_fail(VPPS_POOL, "no plan fits");
    for (uint32_t i = 0; i < n && status == VPPS_POOL; i++) {
        status = vpps_specialise(&s, &list[i], &out->plan, &out->source, &out->report);
    }
    out->all_seconds = (double)(vpps_now_ns() - start) * 1e-9;
    return status;
}

/* Wall time of one compilation, or of taking it from the cache. */
static vpps_status time_compile(const product *k, bool use_cache, double *seconds) {
    void *cubin = NULL;
    size_t bytes;
    char description[256];
    vpps_cubin_report report;
    vpps_emit_description(&k->plan, description, sizeof description);
    const uint64_t start = vpps_now_ns();
    const vpps_status status =
        vpps_compile(k->source, "vpps_kernel", k->plan.machine.arch, description, use_cache, &cubin, &bytes, &report);
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
    const vpps_partition *p = &k->plan;
    const vpps_cubin_report *r = &k->report;
    const uint32_t cached = p->cached * p->choice.threads * p->n_vps;
    const double share = (double)cached / ((double)p->machine.sm_registers * p->machine.sms);
    uint32_t slots[VPPS_LEVEL_STREAM + 1] = {0};
    for (uint32_t i = 0; i < p->rows.n_slots; i++) slots[p->rows.slots[i].level]++;
    vpps_emit_description(p, text, sizeof text);
    fprintf(stderr, "hidden %u: %s\n", hidden, text);
    fprintf(stderr,
            "    %u registers a thread, %.1f %% of the registers hold weights, gradients or the copy; frame %u, "
            "spilled %u bytes\n    slots in registers %u, shared memory %u, streamed %u; %u bytes of code; compiled in "
            "%.2f s (%.2f - %.2f), from the cache %.2f ms; with rejected plans (%u) %.2f s\n",
            r->registers, 100 * share, r->frame_bytes, r->spill_bytes, slots[VPPS_LEVEL_REGISTERS],
            slots[VPPS_LEVEL_SHARED], slots[VPPS_LEVEL_STREAM], r->code_bytes, k->cold.median, k->cold.low,
            k->cold.high, k->cached.median * 1e3, k->rejected, k->all_seconds);
    json_t *o = json_pack("{ss si ss si si si si si}", "bench", "kernel", "hidden", (int)hidden, "plan", text,
                          "registers", (int)r->registers, "cached_registers", (int)p->cached, "frame_bytes",
                          (int)r->frame_bytes, "spill_bytes", (int)r->spill_bytes, "code_bytes", (int)r->code_bytes);
    json_object_set_new(o, "register_share", json_real(share));
    json_object_set_new(o, "slots",
                        json_pack("{si si si}", "registers", (int)slots[VPPS_LEVEL_REGISTERS], "shared",
                                  (int)slots[VPPS_LEVEL_SHARED], "stream", (int)slots[VPPS_LEVEL_STREAM]));
    json_object_set_new(o, "static_shared_bytes", json_integer(r->shared_bytes));
    json_object_set_new(o, "dynamic_shared_bytes", json_integer(vpps_emit_shared_bytes(p)));
    json_object_set_new(o, "compile_seconds", gpu_figure_json(k->cold));
    json_object_set_new(o, "cache_seconds", gpu_figure_json(k->cached));
    json_object_set_new(o, "rejected", json_integer(k->rejected));
    json_object_set_new(o, "specialise_seconds", json_real(k->all_seconds));
    return gpu_emit(o);
}

static vpps_status measure(uint32_t hidden) {
    const net_config config = {.words = 1, .classes = 5, .embed = hidden, .hidden = hidden};
    const network *net = network_find("tree-lstm");
    vpps_model *model = NULL;
    void *instance = NULL;
    vpps_machine machine;
    product k = {0};
    vpps_status status = vpps_machine_named(&machine, "sm_90", 132);
    if (status == VPPS_OK) status = vpps_model_create(&model, 1);
    if (status == VPPS_OK) status = net->create(&instance, model, &config);
    if (status == VPPS_OK) status = specialise(model, &machine, &k);
    if (status == VPPS_OK) status = time_compiles(&k);
    if (status == VPPS_OK) status = report(hidden, &k);
    net->destroy(instance);
    vpps_model_destroy(model);
    vpps_partition_destroy(&k.plan);
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
    (void)settings;
    if (vpps_nvrtc_version(&major, &minor, &architecture, &n) != VPPS_OK) {
        fprintf(stderr, "no kernels: %s\n", vpps_error_message());
        return gpu_emit(json_pack("{ss ss}", "bench", "kernel", "skipped", vpps_error_message()));
    }
    fprintf(stderr, "Kernels by NVRTC %d.%d, SGD, the first choice that does not spill\n", major, minor);
    if (!mkdtemp(folder)) return vpps_fail(VPPS_IO, "%s cannot be made", folder);
    setenv("VPPS_CACHE_DIR", folder, 1);
    vpps_status status = VPPS_OK;
    for (const uint32_t *hidden = gpu_sizes; *hidden && status == VPPS_OK; hidden++) status = measure(*hidden);
    char message[VPPS_MESSAGE_BYTES];
    snprintf(message, sizeof message, "%s", vpps_error_message());
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (status != VPPS_OK) vpps_restore_message(message);
    return status;
}
