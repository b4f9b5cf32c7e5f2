/* gpu_tests.c - see gpu_tests.h. */
#include "common/gpu_tests.h"

#include "runtime/gpu/gpu.h"
#include "runtime/handle.h"
#include "runtime/simt/compiler.h"
#include "runtime/simt/fiber.h"

bool gpu_is_simulated(void) { return !strcmp(test_gpu_device(), "simt"); }

void gpu_ask_compiler(void) {
    char text[2048];
    if (!VPPS_SIMT_TSAN) (void)vpps_simt_toolchain(text, sizeof text); /* a test that needs it reports the error */
}

const char *gpu_left_out(void) {
    if (gpu_is_simulated()) gpu_ask_compiler();
    return VPPS_SIMT_TSAN && gpu_is_simulated() ? "ThreadSanitizer cannot follow software SIMT's stacks" : NULL;
}

static char *first_cache; /* NULL: the default */

vpps_status gpu_load_shared(vpps_driver *d, const char *source, const char *description, const vpps_launch_shape *shape,
                            vpps_kernel **out, vpps_cubin_report *report) {
    const char *now = getenv("VPPS_CACHE_DIR");
    FREED char *own = now ? need(strdup(now)) : NULL;
    if (first_cache) setenv("VPPS_CACHE_DIR", first_cache, 1);
    const vpps_status status = vpps_driver_simt.load(d, source, description, shape, out, report);
    if (own) setenv("VPPS_CACHE_DIR", own, 1);
    return status;
}

int gpu_main(const char *name) {
    const char *cache = getenv("VPPS_CACHE_DIR");
    first_cache = cache ? need(strdup(cache)) : NULL;
    if (!gpu_left_out()) return test_main(name);
    TEST_LEFT_OUT("%s: %s", name, gpu_left_out());
    return EXIT_SUCCESS;
}

/* Returns whether make check-kernels runs some of the checks. */
static bool are_shared(void) { return gpu_is_simulated() && !test_full() && !test_kernels("all"); }

int gpu_first(int everyday) { return are_shared() && test_kernels("networks") ? everyday : 0; }

int gpu_end(const char *name, int everyday, int n) {
    if (gpu_is_simulated()) gpu_ask_compiler();
    if (!are_shared() || test_kernels("networks")) return n;
    TEST_LEFT_OUT("%d of %d %s: make check-kernels has them", n - everyday, n, name);
    return everyday;
}

void gpu_drive_by(vpps_handle *h, const vpps_driver_table *driver, const vpps_options *options) {
    h->device->table->destroy(h->device);
    TEST_OK(vpps_gpu_create(&h->device, &vpps_device_simt, driver, h->model, options, &h->plan));
    h->target = h->device->target;
}

vpps_optimizer gpu_optimizer(vpps_optimizer_kind kind) {
    const bool divides = kind == VPPS_ADAM || kind == VPPS_ADAMW;
    return (vpps_optimizer){.kind = kind,
                            .lr = divides ? 0.01f : 0.05f,
                            .momentum = 0.9f,
                            .beta1 = 0.9f,
                            .beta2 = 0.999f,
                            .epsilon = kind == VPPS_ADAGRAD ? 1e-6f : 1e-8f,
                            .weight_decay = 0.02f,
                            .clip = 0.5f};
}

vpps_options gpu_options(const gpu_layout *layout, vpps_optimizer_kind optimizer) {
    char sms[16];
    vpps_options o;
    snprintf(sms, sizeof sms, "%u", layout->sms);
    setenv("VPPS_SIMT_SMS", sms, 1);
    vpps_options_default(&o);
    o.device = test_gpu_device();
    o.pool_bytes = 64u << 20;
    o.optimizer = gpu_optimizer(optimizer);
    o.seed = 1234;
    o.verify = true;
    o.rpw = layout->rpw;
    o.threads = layout->threads;
    o.groups = layout->groups;
    o.no_tuning = true;
    return o;
}

const char *gpu_layout_text(const gpu_layout *layout) {
    static char text[96];
    snprintf(text, sizeof text, "%u SMs in %u groups, %u threads, rpw %u", layout->sms, layout->groups, layout->threads,
             layout->rpw);
    return text;
}
