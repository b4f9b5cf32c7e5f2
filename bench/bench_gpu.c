/* bench_gpu.c - what a GPU does: latency of a signal and its wait, training speed, where a batch's time goes; or what a model of a GPU
 * predicts. Every figure is a JSON object on a line of standard output. Kernels need no GPU: `vpps plan` and `vpps kernel --report` show
 * them.
 *
 *     bench_gpu [--device cuda|simt] [--precision P] [--seconds S] [--data DIR]
 *     bench_gpu --model[=LIBRARY] [--network NAME] [--hidden N] [--least N] [--most N]
 *               [--groups N] [--precision P] [--data DIR]
 *
 * --precision: of products, fp32 (unless given), bf16x3 or bf16; latency and the split of a batch's time are measured in fp32 alone.
 * --seconds: of training in each round and for each batch size (0.5). --data: folder with sst/train.txt ($VPPS_DATA); without that
 * file generated ListOps. `simt` is for trying this program out: its times are not a GPU's, and its networks are tiny.
 *
 * --model: what a model of a GPU predicts for training, batches of --least (1) to --most examples (16), of tree-lstm, and of
 * bilstm-tagger on DIR/wikiner/train.txt, or of the --network or the --hidden size that is named alone, with so many --groups of
 * VPs (as the device chooses, unless given). LIBRARY stands in
 * for libcuda.so.1 ($VPPS_LIBCUDA unless given); its settings, its environment variables, are written beside every figure.
 */
#include "gpu.h"
#include "workload.h"

#include <getopt.h>
#include <unistd.h>

/* ---------------------------------------------------------------- what to measure */

static vpps_status describe_machine(const gpu_settings *settings) {
    vpps_driver *driver;
    vpps_machine m;
    VPPS_TRY(gpu_driver_of(settings->device)->open(&driver, 0, &m));
    driver->table->close(driver);
    return gpu_emit(json_pack("{ss ss ss si si sb}", "bench", "machine", "device", settings->device, "name", m.name,
                              "arch", (int)m.arch, "sms", (int)m.sms, "sst", settings->trees != NULL));
}

static vpps_status run(const gpu_settings *settings) {
    VPPS_TRY(describe_machine(settings));
    if (settings->precision != VPPS_PRECISION_FP32) return gpu_bench_training(settings);
    VPPS_TRY(gpu_bench_latency(settings));
    VPPS_TRY(gpu_bench_training(settings));
    return gpu_bench_split(settings);
}

/* ---------------------------------------------------------------- options */

static bool read_options(int argc, char **argv, gpu_settings *o, bool *model, const char **data) {
    static const struct option options[] = {
        {"device", 1, 0, 'd'},    {"seconds", 1, 0, 't'}, {"data", 1, 0, 'f'},  {"model", 2, 0, 'm'},
        {"most", 1, 0, 'b'},      {"groups", 1, 0, 'g'},  {"least", 1, 0, 'l'}, {"network", 1, 0, 'n'},
        {"precision", 1, 0, 'p'}, {"hidden", 1, 0, 'h'},  {0, 0, 0, 0}};
    *o = (gpu_settings){.device = "cuda", .seconds = 0.5, .most = 16};
    bool device = false;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'm':
            *model = true;
            if (optarg) setenv("VPPS_LIBCUDA", optarg, 1);
            break;
        case 'l': o->least = (uint32_t)strtoul(optarg, NULL, 10); break;
        case 'g': o->groups = (uint32_t)strtoul(optarg, NULL, 10); break;
        case 'b': o->most = (uint32_t)strtoul(optarg, NULL, 10); break;
        case 'n': o->network = optarg; break;
        case 'h': o->hidden = (uint32_t)strtoul(optarg, NULL, 10); break;
        case 'p':
            while (o->precision < VPPS_PRECISION_AUTO && strcmp(optarg, vpps_precision_names[o->precision]) != 0)
                o->precision++;
            if (o->precision == VPPS_PRECISION_AUTO) return false;
            break;
        case 'd':
            o->device = optarg;
            device = true;
            break;
        case 't': o->seconds = atof(optarg); break;
        case 'f': *data = optarg; break;
        default: return false;
        }
    }
    if (strcmp(o->device, "cuda") != 0 && strcmp(o->device, "simt") != 0) return false;
    return optind == argc && o->seconds > 0 && o->most > 0 && !(*model && device);
}

/* DATA/name in `path` if it can be read. */
static const char *find_data(char *path, size_t bytes, const char *data, const char *name) {
    snprintf(path, bytes, "%s/%s", data ? data : ".", name);
    return access(path, R_OK) == 0 ? path : NULL;
}

int main(int argc, char **argv) {
    gpu_settings settings;
    bool model = false;
    const char *data = getenv("VPPS_DATA");
    char trees[4096], sentences[4096];
    if (!read_options(argc, argv, &settings, &model, &data)) {
        fprintf(stderr, "usage: bench_gpu [--device cuda|simt] [--precision P] [--seconds S] [--data DIR]\n"
                        "       bench_gpu --model[=LIBRARY] [--network NAME] [--hidden N] [--least N] [--most N]\n"
                        "                 [--groups N] [--precision P] [--data DIR]\n");
        return 2;
    }
    settings.trees = find_data(trees, sizeof trees, data, "sst/train.txt");
    settings.sentences = find_data(sentences, sizeof sentences, data, "wikiner/train.txt");
    const vpps_status status = model ? gpu_bench_model(&settings) : run(&settings);
    if (status != VPPS_OK) fprintf(stderr, "bench_gpu: %s\n", vpps_error_message());
    return status != VPPS_OK;
}
