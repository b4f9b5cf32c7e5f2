/* test_failures.c - a handle on a device that fails: the call says so, and nothing more runs on what is left. */
#include "common/testing.h"
#include "runtime/handle.h"
#include "runtime/small_network.h"

#include <math.h>
#include <unistd.h>

/* ---------------------------------------------------------------- a device that fails when it is told to */

static enum { NOTHING, LAUNCH, OUTCOME, READ } failing;

static vpps_status launch(vpps_device *d, const vpps_batch *batch) {
    if (failing == LAUNCH) return vpps_fail(VPPS_DEVICE, "the machine is gone");
    return vpps_device_cpu.launch_batch(d, batch);
}

static void wait(vpps_device *d, vpps_outcome *out) {
    vpps_device_cpu.wait(d, out);
    if (failing == OUTCOME) *out = (vpps_outcome){VPPS_DEVICE, "the machine is gone", NAN, 0, 0};
}

static vpps_status read_pool(vpps_device *d, uint32_t offset, uint32_t words, float *out) {
    if (failing == READ) return vpps_fail(VPPS_DEVICE, "the machine is gone");
    return vpps_device_cpu.read(d, offset, words, out);
}

static vpps_handle *open_handle(const small_network *n, vpps_device_table *table) {
    vpps_handle *h;
    const vpps_options o = sn_options(2, VPPS_ADAM);
    TEST_OK(vpps_handle_create(&h, n->model, &o));
    *table = vpps_device_cpu;
    table->launch_batch = launch;
    table->wait = wait;
    table->read = read_pool;
    h->device->table = table;
    failing = NOTHING;
    return h;
}

/* Every call that needs the device fails alike, and the model keeps its values. */
static void expect_broken(vpps_handle *h, const small_network *n, const char *text) {
    char path[] = "/tmp/vpps-failures-XXXXXX";
    float loss, *outs[] = {&loss};
    bool done;
    size_t count, same;
    close(mkstemp(path));
    failing = NOTHING; /* it may seem well again */
    float *before = sn_values(n, &count);
    for (int twice = 0; twice < 2; twice++) {
        const vpps_node node = sn_build(n, 5, 1);
        TEST_FAILS(vpps_fb(h, n->g, node, NULL), VPPS_DEVICE, text);
        TEST_FAILS(vpps_forward(h, n->g, 1, &node, outs), VPPS_DEVICE, text);
        TEST_FAILS(vpps_sync_latest_loss(h, &loss), VPPS_DEVICE, text);
        TEST_FAILS(vpps_poll_loss(h, &done, &loss), VPPS_DEVICE, text);
        TEST_FAILS(vpps_read_parameters(h), VPPS_DEVICE, text);
        TEST_FAILS(vpps_write_parameters(h), VPPS_DEVICE, text);
        TEST_FAILS(vpps_save(h, path, NULL, 0), VPPS_DEVICE, text);
    }
    float *after = sn_values(n, &same);
    ck_assert_int_eq(memcmp(before, after, count * sizeof *before), 0);
    free(before);
    free(after);
    unlink(path);
}

/* ---------------------------------------------------------------- */

START_TEST(training_on_a_device_that_fails)
    {
        small_network n;
        vpps_device_table table;
        sn_open(&n, 1);
        vpps_handle *h = open_handle(&n, &table);
        for (uint32_t k = 1; k <= 2; k++) TEST_OK(vpps_fb(h, n.g, sn_build(&n, k, 1), NULL));
        TEST_OK(vpps_sync_latest_loss(h, NULL));
        TEST_OK(vpps_read_parameters(h));
        const vpps_node loss = sn_build(&n, 3, 1);
        if (_i == 0) {
            failing = LAUNCH;
            TEST_FAILS(vpps_fb(h, n.g, loss, NULL), VPPS_DEVICE, "batch 3: the machine is gone");
        } else {
            TEST_OK(vpps_fb(h, n.g, loss, NULL));
            failing = OUTCOME;
            TEST_FAILS(vpps_sync_latest_loss(h, NULL), VPPS_DEVICE, "batch 3: the machine is gone");
        }
        expect_broken(h, &n, "batch 3: the machine is gone");
        vpps_handle_destroy(h);
        sn_close(&n);
    }
END_TEST

START_TEST(inference_on_a_device_that_fails)
    {
        small_network n;
        vpps_device_table table;
        float value, *const outs[] = {&value};
        sn_open(&n, 1);
        vpps_handle *h = open_handle(&n, &table);
        const vpps_node node = sn_build(&n, 3, 1);
        TEST_OK(vpps_forward(h, n.g, 1, &node, outs));
        ck_assert(isfinite(value));
        failing = (int)LAUNCH + _i;
        TEST_FAILS(vpps_forward(h, n.g, 1, &node, outs), VPPS_DEVICE, "forward: the machine is gone");
        expect_broken(h, &n, "forward: the machine is gone");
        vpps_handle_destroy(h);
        sn_close(&n);
    }
END_TEST

int main(void) {
    Suite *suite = suite_create("failures");
    TCase *t = tcase_create("failures");
    tcase_add_loop_test(t, training_on_a_device_that_fails, 0, 2);
    tcase_add_loop_test(t, inference_on_a_device_that_fails, 0, 3);
    suite_add_tcase(suite, t);
    return test_main(suite);
}
