/* bench_gpu.c - what VPPS does with a GPU: kernels, which can be made anywhere, and times, which cannot.
 *
 *     bench_gpu [--static] [--device cuda|simt] [--seconds S] [--data DIR]
 *     bench_gpu --model[=LIBRARY] [--network NAME] [--hidden N] [--least N] [--most N]
 *               [--groups N] [--precision P] [--data DIR]
 *
 * --static: without a GPU, for sm_90 with 132 SMs; so it is where there is no GPU, unless a device is named. --seconds: of
 * training in each round and for each batch size (0.5). --data: folder with sst/train.txt ($VPPS_DATA); without that file
 * generated ListOps. `simt` is for trying this program out: its times are not a GPU's, and its networks are tiny.
 *
 * --model: what a model of a GPU predicts for training, batches of --least (1) to --most examples (16), of tree-lstm, and of
 * bilstm-tagger on DIR/wikiner/train.txt, or of the --network or the --hidden size that is named alone, with so many --groups of
 * VPs (as the device chooses, unless given) and products in --precision fp32 (unless given), bf16x3 or bf16. LIBRARY stands in
 * for libcuda.so.1 ($VPPS_LIBCUDA unless given); its settings, its environment variables, are written beside every figure.
 *
 * The parts that time a GPU have not been run on one yet.
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
    fprintf(stderr, "%s, sm_%u, %u SMs; %s\n", m.name, m.arch, m.sms,
            settings->trees ? settings->trees : "generated ListOps");
    return gpu_emit(json_pack("{ss ss ss si si sb}", "bench", "machine", "device", settings->device, "name", m.name,
                              "arch", (int)m.arch, "sms", (int)m.sms, "sst", settings->trees != NULL));
}

static vpps_status run(const gpu_settings *settings) {
    if (!settings->device) {
        fprintf(stderr, "No GPU is used here: kernels for sm_90, 132 SMs; %s\n",
                settings->trees ? settings->trees : "generated ListOps");
        return gpu_bench_kernels(settings);
    }
    VPPS_TRY(describe_machine(settings));
    VPPS_TRY(gpu_bench_latency(settings));
    VPPS_TRY(gpu_bench_training(settings));
    return gpu_bench_split(settings);
}

/* "cuda", or NULL where there is no GPU. */
static const char *find_device(void) {
    vpps_driver *driver;
    vpps_machine machine;
    if (vpps_driver_cuda.open(&driver, 0, &machine) != VPPS_OK) {
        fprintf(stderr, "%s\n", vpps_error_message());
        return NULL;
    }
    driver->table->close(driver);
    return "cuda";
}

/* ---------------------------------------------------------------- options */

typedef struct choice {
    bool no_gpu, model;
    const char *data;
} choice;

static bool read_options(int argc, char **argv, gpu_settings *o, choice *what) {
    static const struct option options[] = {{"static", 0, 0, 's'},    {"device", 1, 0, 'd'}, {"seconds", 1, 0, 't'},
                                            {"data", 1, 0, 'f'},      {"model", 2, 0, 'm'},  {"most", 1, 0, 'b'},
                                            {"groups", 1, 0, 'g'},    {"least", 1, 0, 'l'},  {"network", 1, 0, 'n'},
                                            {"precision", 1, 0, 'p'}, {"hidden", 1, 0, 'h'}, {0, 0, 0, 0}};
    *o = (gpu_settings){.seconds = 0.5, .most = 16};
    *what = (choice){.data = getenv("VPPS_DATA")};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 's': what->no_gpu = true; break;
        case 'm':
            what->model = true;
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
        case 'd': o->device = optarg; break;
        case 't': o->seconds = atof(optarg); break;
        case 'f': what->data = optarg; break;
        default: return false;
        }
    }
    if (o->device && strcmp(o->device, "cuda") != 0 && strcmp(o->device, "simt") != 0) return false;
    return optind == argc && o->seconds > 0 && o->most > 0 && what->no_gpu + what->model + (o->device != NULL) < 2 &&
           (what->model || !o->precision);
}

/* DATA/name in `path` if it can be read. */
static const char *find_data(char *path, size_t bytes, const char *data, const char *name) {
    snprintf(path, bytes, "%s/%s", data ? data : ".", name);
    return access(path, R_OK) == 0 ? path : NULL;
}

int main(int argc, char **argv) {
    gpu_settings settings;
    choice what;
    char trees[4096], sentences[4096];
    if (!read_options(argc, argv, &settings, &what)) {
        fprintf(stderr, "usage: bench_gpu [--static | --device cuda|simt] [--seconds S] [--data DIR]\n"
                        "       bench_gpu --model[=LIBRARY] [--network NAME] [--hidden N] [--least N] [--most N]\n"
                        "                 [--groups N] [--precision P] [--data DIR]\n");
        return 2;
    }
    settings.trees = find_data(trees, sizeof trees, what.data, "sst/train.txt");
    settings.sentences = find_data(sentences, sizeof sentences, what.data, "wikiner/train.txt");
    if (!what.no_gpu && !what.model && !settings.device) settings.device = find_device();
    const vpps_status status = what.model ? gpu_bench_model(&settings) : run(&settings);
    if (status != VPPS_OK) fprintf(stderr, "bench_gpu: %s\n", vpps_error_message());
    return status != VPPS_OK;
}
