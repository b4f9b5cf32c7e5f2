/* gpu_tests.h - what tests on a GPU share: which device runs its kernels, and how it is laid out.
 *
 * The device is $VPPS_TEST_DEVICE: "simt" unless set, or "cuda". With software SIMT a test also says how many SMs there
 * are; a GPU has as many as it has. */
#pragma once

#include "common/testing.h"
#include "runtime/gpu/driver.h"

bool gpu_is_simulated(void);

/* Asks software SIMT's compiler for its version now, so that the tests, each a process of its own, need not ask. */
void gpu_ask_compiler(void);

/* Returns the reason why no test can run on a GPU, or on its simulation, here; NULL if tests can. Calls gpu_ask_compiler for the simulation. */
const char *gpu_left_out(void);

/* Calls test_main for a program whose tests all run on a GPU, which ThreadSanitizer leaves out. */
int gpu_main(const char *suite);

/* Arguments of TEST_GROUP for tests that also run on other devices: TEST_AGAIN(test, GPU, GPU + 1) adds the checks on a GPU. */
#define GPU_GROUP "gpu", .seconds = 120, .left_out = gpu_left_out()

/* TEST_EACH from 0 to n. Under software SIMT, most of a test's time is compilation: make test runs the checks below `everyday`, make check-kernels
 * the others. */
#define GPU_EACH(name, everyday, n) TEST_EACH(name, gpu_first(everyday), gpu_end(#name, everyday, n))
int gpu_first(int everyday);
int gpu_end(const char *name, int everyday, int n);

/* Gives a handle's GPU device another driver: software SIMT's, with some functions replaced. */
void gpu_drive_by(vpps_handle *h, const vpps_driver_table *driver, const vpps_options *options);

/* Loads a kernel as software SIMT's driver does, but by the cache of kernels that the program began with. A test with a cache of its own
 * (cache_folder_make), in which tuning stores its results, thus does not compile kernels again. The call sets environment variables for its duration: no
 * other thread may read the environment meanwhile. */
vpps_status gpu_load_shared(vpps_driver *d, const char *source, const char *description, const vpps_launch_shape *shape,
                            vpps_kernel **out, vpps_cubin_report *report);

typedef struct gpu_layout {
    uint32_t sms, threads, rpw, groups;
} gpu_layout;

/* Returns options for a layout that leave nothing to choose and verify scripts. Sets the number of SMs of software SIMT. */
vpps_options gpu_options(const gpu_layout *layout, vpps_optimizer_kind optimizer);

/* Returns an optimiser with all features: decay and clipping. */
vpps_optimizer gpu_optimizer(vpps_optimizer_kind kind);

const char *gpu_layout_text(const gpu_layout *layout); /* valid until the next call */
