/* gpu_model.c - training on a model of a GPU, a library that stands in for the CUDA driver and executes the kernel's machine
 * code: what it predicts. Its time is simulated, and nothing of it was measured; the host's time is this machine's.
 *
 * SGD, the profile's first choice, loss at every labelled node or word. One batch goes ahead, whose time does not count; then
 * batches of together at least 8 examples.
 */
#include "gpu.h"
#include "workload.h"

#include <stdio.h>
#include <unistd.h>

enum { EXAMPLES = 8 };

static const struct {
    const char *network;
    uint32_t hidden, batch;
} rows[] = {
    {"tree-lstm", 256, 1},     {"tree-lstm", 256, 16},     {"tree-lstm", 256, 128},
    {"tree-lstm", 512, 1},     {"tree-lstm", 512, 16},     {"tree-lstm", 512, 128},
    {"bilstm-tagger", 256, 1}, {"bilstm-tagger", 256, 16}, {"bilstm-tagger", 256, 128},
};

/* ---------------------------------------------------------------- the model */

/* Adds the settings that the model told: lines "GPUMODEL_NAME value what it is". */
static void read_settings(FILE *told, json_t *settings) {
    static const char prefix[] = "GPUMODEL_";
    char line[1024], name[64];
    double value;
    rewind(told);
    while (fgets(line, sizeof line, told)) {
        if (strncmp(line, prefix, strlen(prefix)) == 0 && sscanf(line, "%63s %lf", name, &value) == 2)
            json_object_set_new(settings, name + strlen(prefix), json_real(value));
    }
}

/* Opens the driver for the first time in this process, with its standard error in a file: the model says there how it is
 * set when GPUMODEL_HELP is. Fails with DEVICE: what is opened is no model. */
static vpps_status examine(vpps_machine *machine, json_t *settings) {
    vpps_driver *driver = NULL;
    FILE *told = tmpfile();
    const int before = told ? dup(STDERR_FILENO) : -1;
    if (before < 0) return vpps_fail(VPPS_IO, "no temporary file for what the model says");
    setenv("GPUMODEL_HELP", "1", 1);
    fflush(stderr);
    dup2(fileno(told), STDERR_FILENO);
    const vpps_status status = vpps_driver_cuda.open(&driver, 0, machine);
    dup2(before, STDERR_FILENO);
    unsetenv("GPUMODEL_HELP");
    close(before);
    if (status == VPPS_OK) vpps_driver_cuda.close(driver);
    read_settings(told, settings);
    fclose(told);
    if (status == VPPS_OK && (!strstr(machine->name, "simulated") || json_object_size(settings) == 0)) {
        return vpps_fail(VPPS_DEVICE, "%s is no model of a GPU; --model=LIBRARY or VPPS_LIBCUDA names one",
                         machine->name);
    }
    return status;
}

/* ---------------------------------------------------------------- a row */

typedef struct prediction {
    uint32_t batches;
    double device_us, host_us; /* a batch */
    double nodes, phases;
    uint32_t vps, groups;
} prediction;

static vpps_status train(vpps_handle *h, workload *w, uint32_t batch, prediction *p) {
    vpps_stats before = {.size = sizeof before}, after = before;
    vpps_node loss;
    float value;
    *p = (prediction){.batches = (EXAMPLES + batch - 1) / batch};
    VPPS_TRY(workload_batch(w, 1, &loss));
    VPPS_TRY(vpps_fb(h, w->g, loss, NULL));
    VPPS_TRY(vpps_sync_latest_loss(h, &value));
    VPPS_TRY(vpps_handle_stats(h, &before));
    w->next = 0;
    for (uint32_t i = 0; i < p->batches; i++) {
        const uint64_t start = vpps_now_ns();
        VPPS_TRY(workload_batch(w, batch, &loss));
        p->host_us += (double)(vpps_now_ns() - start) * 1e-3 / p->batches;
        VPPS_TRY(vpps_fb(h, w->g, loss, NULL));
        VPPS_TRY(vpps_sync_latest_loss(h, &value));
        VPPS_TRY(vpps_handle_stats(h, &after));
        p->phases += (double)after.phases / p->batches;
    }
    p->device_us = (double)(after.total_device_ns - before.total_device_ns) * 1e-3 / p->batches;
    p->host_us += (double)(after.total_host_ns - before.total_host_ns) * 1e-3 / p->batches;
    p->nodes = (double)(after.total_nodes - before.total_nodes) / p->batches;
    p->vps = after.vps;
    p->groups = after.groups;
    return VPPS_OK;
}

static vpps_status predict(const gpu_settings *settings, size_t row, prediction *p) {
    const uint32_t hidden = rows[row].hidden;
    workload w = {0};
    vpps_handle *h = NULL;
    vpps_options options;
    vpps_options_default(&options);
    options.device = "cuda";
    options.optimizer.lr = 0.01f;
    options.precision = settings->precision;
    options.groups = settings->groups;
    options.no_tuning = true;
    vpps_status status = strcmp(rows[row].network, "tree-lstm") == 0
                             ? workload_create(&w, settings->trees, hidden, hidden)
                             : workload_create_tagger(&w, settings->sentences, hidden, hidden);
    if (status == VPPS_OK) status = vpps_handle_create(&h, w.model, &options);
    if (status == VPPS_OK) status = train(h, &w, rows[row].batch, p);
    vpps_handle_destroy(h);
    workload_destroy(&w);
    return status;
}

static vpps_status report(size_t row, vpps_precision precision, const prediction *p, const char *model,
                          json_t *settings) {
    json_t *o = json_pack("{ss sb ss sO ss si si ss si si si}", "bench", "model", "predicted", 1, "model", model,
                          "settings", settings, "network", rows[row].network, "hidden", (int)rows[row].hidden, "batch",
                          (int)rows[row].batch, "precision", vpps_precision_names[precision], "batches",
                          (int)p->batches, "vps", (int)p->vps, "groups", (int)p->groups);
    json_object_set_new(o, "predicted_device_us", json_real(p->device_us));
    json_object_set_new(o, "predicted_sentences_per_s", json_real(rows[row].batch * 1e6 / p->device_us));
    json_object_set_new(o, "host_us", json_real(p->host_us));
    json_object_set_new(o, "nodes", json_real(p->nodes));
    json_object_set_new(o, "phases", json_real(p->phases));
    return gpu_emit(o);
}

static vpps_status predict_all(const gpu_settings *settings, const char *model, json_t *of_model) {
    prediction p;
    bool any = false;
    for (size_t row = 0; row < VPPS_COUNT(rows); row++) {
        if (rows[row].batch < settings->least || rows[row].batch > settings->most) continue;
        if (settings->network && strcmp(settings->network, rows[row].network) != 0) continue;
        if (settings->hidden && settings->hidden != rows[row].hidden) continue;
        any = true;
        VPPS_TRY(predict(settings, row, &p));
        VPPS_TRY(report(row, settings->precision, &p, model, of_model));
    }
    return any ? VPPS_OK : vpps_fail(VPPS_ARGUMENT, "--model has no row of this network, hidden size and batch");
}

vpps_status gpu_bench_model(const gpu_settings *settings) {
    vpps_machine machine;
    json_t *of_model = json_object();
    if (!of_model) return vpps_fail(VPPS_MEMORY, "no memory for the model's settings");
    vpps_status status = examine(&machine, of_model);
    if (status == VPPS_OK) {
        fprintf(stderr, "Predicted, not measured; %s; %s\n", settings->trees ? settings->trees : "generated ListOps",
                settings->sentences ? settings->sentences : "generated sentences");
        status = predict_all(settings, machine.name, of_model);
    }
    json_decref(of_model);
    return status;
}
