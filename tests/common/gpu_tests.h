/* gpu_tests.h - what tests on a GPU share: which device runs its kernels, and how it is laid out.
 *
 * The device is $VPPS_TEST_DEVICE: "simt" unless set, or "cuda". With software SIMT a test also says how many SMs there
 * are; a GPU has as many as it has. */
#ifndef VPPS_TESTS_GPU_TESTS_H
#define VPPS_TESTS_GPU_TESTS_H

#include "common/testing.h"

bool gpu_is_simulated(void);

/* Asks software SIMT's compiler for its version now, so that no test, which is a process of its own, asks again. */
void gpu_ask_compiler(void);

/* Runs the suite that make() makes; under ThreadSanitizer, where software SIMT cannot be, checks that it says so. */
int gpu_main(Suite *(*make)(void));

/* Adds a case "gpu" to a suite of other devices: each test with the argument that makes it a GPU's. Nothing under ThreadSanitizer, which
 * cannot follow software SIMT's stacks. */
typedef struct gpu_case {
    const TTest *test;
    int argument;
} gpu_case;
void gpu_add(Suite *suite, const gpu_case *tests, uint32_t n);

/* A case of the suite for each group of one test, run n times with another argument; every day `everyday` of these, and the rest is told
 * to be left out. $VPPS_TEST_PART, as 2/3: the second of three processes that share out each group's tests. */
typedef struct gpu_group {
    const char *name;
    const TTest *test;
    int n, everyday;
} gpu_group;
Suite *gpu_suite(const char *name, const gpu_group *groups, size_t n_groups);

/* Gives a handle's GPU device another driver: software SIMT's with other functions. */
struct vpps_driver_table;
void gpu_drive_by(vpps_handle *h, const struct vpps_driver_table *driver, const vpps_options *options);

/* ---------------------------------------------------------------- how the model is laid out */

typedef struct gpu_layout {
    uint32_t sms, threads, rpw, groups;
} gpu_layout;

/* Options for a layout: nothing left to choose, scripts verified. Sets the number of SMs of software SIMT. */
vpps_options gpu_options(const gpu_layout *layout, vpps_optimizer_kind optimizer);

/* An optimiser with everything it can have: decay, clipping. */
vpps_optimizer gpu_optimizer(vpps_optimizer_kind kind);

const char *gpu_layout_text(const gpu_layout *layout); /* until the next call */

#endif
