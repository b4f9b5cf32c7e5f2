/* bench_gpu.c - what VPPS does with a GPU: kernels and scripts, which can be made anywhere, and times, which cannot.
 *
 *     bench_gpu [--static] [--device cuda|simt] [--seconds S] [--data DIR]
 *
 * --static: without a GPU, for sm_90 with 132 SMs; so it is where there is no GPU, unless a device is named. --seconds: of
 * training in each round and for each batch size (0.5). --data: folder with sst/train.txt ($VPPS_DATA); without that file
 * generated ListOps. `simt` is for trying this program out: its times are not a GPU's, and its networks are tiny.
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
    VPPS_TRY(gpu_driver_of(settings->device)->open(&driver, &m));
    driver->table->close(driver);
    fprintf(stderr, "%s, sm_%u, %u SMs; %s\n", m.name, m.arch, m.sms,
            settings->trees ? settings->trees : "generated ListOps");
    return gpu_emit(json_pack("{ss ss ss si si sb}", "bench", "machine", "device", settings->device, "name", m.name,
                              "arch", (int)m.arch, "sms", (int)m.sms, "sst", settings->trees != NULL));
}

static vpps_status run(const gpu_settings *settings) {
    if (!settings->device) {
        fprintf(stderr, "No GPU is used here: kernels and scripts for sm_90, 132 SMs; %s\n",
                settings->trees ? settings->trees : "generated ListOps");
        VPPS_TRY(gpu_bench_kernels(settings));
        return gpu_bench_scripts(settings);
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
    if (vpps_driver_cuda.open(&driver, &machine) != VPPS_OK) {
        fprintf(stderr, "%s\n", vpps_error_message());
        return NULL;
    }
    driver->table->close(driver);
    return "cuda";
}

/* ---------------------------------------------------------------- options */

static bool read_options(int argc, char **argv, gpu_settings *o, const char **data, bool *no_gpu) {
    static const struct option options[] = {
        {"static", 0, 0, 's'}, {"device", 1, 0, 'd'}, {"seconds", 1, 0, 't'}, {"data", 1, 0, 'f'}, {0, 0, 0, 0}};
    *o = (gpu_settings){.seconds = 0.5};
    *data = getenv("VPPS_DATA");
    *no_gpu = false;
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 's': *no_gpu = true; break;
        case 'd': o->device = optarg; break;
        case 't': o->seconds = atof(optarg); break;
        case 'f': *data = optarg; break;
        default: return false;
        }
    }
    if (o->device && strcmp(o->device, "cuda") != 0 && strcmp(o->device, "simt") != 0) return false;
    return optind == argc && o->seconds > 0 && !(*no_gpu && o->device);
}

int main(int argc, char **argv) {
    gpu_settings settings;
    const char *data;
    char path[4096];
    bool no_gpu;
    if (!read_options(argc, argv, &settings, &data, &no_gpu)) {
        fprintf(stderr, "usage: bench_gpu [--static | --device cuda|simt] [--seconds S] [--data DIR]\n");
        return 2;
    }
    snprintf(path, sizeof path, "%s/sst/train.txt", data ? data : ".");
    if (access(path, R_OK) == 0) settings.trees = path;
    if (!no_gpu && !settings.device) settings.device = find_device();
    const vpps_status status = run(&settings);
    if (status != VPPS_OK) fprintf(stderr, "bench_gpu: %s\n", vpps_error_message());
    return status != VPPS_OK;
}
