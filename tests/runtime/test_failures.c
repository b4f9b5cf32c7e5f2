/* test_failures.c - a handle on a device that fails: the call reports the failure, and nothing more runs on the handle. */
#include "common/folder.h"
#include "runtime/handle.h"
#include "runtime/simt/fiber.h"
#include "runtime/small_network.h"

#include <sys/wait.h>
#include <unistd.h>

/* ---------------------------------------------------------------- a device that fails when it is told to */

static enum { NOTHING, LAUNCH, OUTCOME, READ } failing;

static vpps_status launch(vpps_device *d, const vpps_batch *batch) {
    if (failing == LAUNCH) return vpps_fail(VPPS_DEVICE, "the machine is gone");
    return vpps_device_cpu.launch(d, batch);
}

static void wait_for(vpps_device *d, vpps_outcome *out) {
    vpps_device_cpu.wait(d, out);
    if (failing == OUTCOME) *out = (vpps_outcome){.status = VPPS_DEVICE, .message = "the machine is gone", .loss = NAN};
}

static vpps_status read_pool(vpps_device *d, uint32_t offset, uint32_t words, float *out) {
    if (failing == READ) return vpps_fail(VPPS_DEVICE, "the machine is gone");
    return vpps_device_cpu.read(d, offset, words, out);
}

static vpps_handle *open_handle(const small_network *n, vpps_device_table *table) {
    const vpps_options o = sn_options(2, VPPS_ADAM);
    vpps_handle *h = new_handle(n->model, &o);
    *table = vpps_device_cpu;
    table->launch = launch;
    table->wait = wait_for;
    table->read = read_pool;
    h->device->table = table;
    failing = NOTHING;
    return h;
}

/* Checks that every call that needs the device fails alike, and that the model keeps its values. */
static void expect_broken(vpps_handle *h, const small_network *n, const char *text) {
    float loss, *outs[] = {&loss};
    bool done;
    size_t count, same;
    folder_make();
    failing = NOTHING; /* the device may seem to work again */
    FREED float *before = model_values(n->model, &count);
    for (int twice = 0; twice < 2; twice++) {
        const vpps_node node = sn_build(n, 5, 1);
        TEST_FAILS(vpps_fb(h, n->g, node, NULL), VPPS_DEVICE, text);
        TEST_FAILS(vpps_forward(h, n->g, 1, &node, outs), VPPS_DEVICE, text);
        TEST_FAILS(vpps_sync_latest_loss(h, &loss), VPPS_DEVICE, text);
        TEST_FAILS(vpps_poll_loss(h, &done, &loss), VPPS_DEVICE, text);
        TEST_FAILS(vpps_read_parameters(h), VPPS_DEVICE, text);
        TEST_FAILS(vpps_write_parameters(h), VPPS_DEVICE, text);
        TEST_FAILS(vpps_save(h, folder_path("model"), NULL, 0), VPPS_DEVICE, text);
    }
    FREED float *after = model_values(n->model, &same);
    ck_assert_int_eq(memcmp(before, after, count * sizeof *before), 0);
}

/* ---------------------------------------------------------------- */

TEST_EACH(training_on_a_device_that_fails, 0, 2) {
    vpps_device_table table;
    AT_END(sn_close) small_network n = sn_of(1);
    OWNED(vpps_handle) *h = open_handle(&n, &table);
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
}

TEST_EACH(inference_on_a_device_that_fails, 0, 3) {
    vpps_device_table table;
    float value, *const outs[] = {&value};
    AT_END(sn_close) small_network n = sn_of(1);
    OWNED(vpps_handle) *h = open_handle(&n, &table);
    const vpps_node node = sn_build(&n, 3, 1);
    TEST_OK(vpps_forward(h, n.g, 1, &node, outs));
    ck_assert(isfinite(value));
    failing = (int)LAUNCH + _i;
    TEST_FAILS(vpps_forward(h, n.g, 1, &node, outs), VPPS_DEVICE, "forward: the machine is gone");
    expect_broken(h, &n, "forward: the machine is gone");
}

/* ---------------------------------------------------------------- a child of fork() */

/* A failed assertion ends the child with another status than 0. */
static void use_in_child(small_network *n) {
    bool done;
    vpps_stats stats = {.size = sizeof stats};
    vpps_trial trial = {.size = sizeof trial};
    uint32_t trials = 1;
    sn_expect_refused(n, n->h, false, "forked");
    TEST_FAILS(vpps_handle_stats(n->h, &stats), VPPS_STATE, "forked");
    TEST_FAILS(vpps_handle_trials(n->h, &trial, &trials, &done), VPPS_STATE, "forked");
    vpps_handle_destroy(n->h); /* waits for nobody */
    const vpps_options o = sn_options(2, VPPS_ADAM);
    n->h = new_handle(n->model, &o);
    sn_step(n, 3);
    vpps_handle_destroy(n->h);
}

TEST_EACH(a_child_has_no_handle, 0, 2) {
    vpps_options o = sn_options(2, VPPS_ADAM);
    int status = 0;
    if (VPPS_SIMT_TSAN) TEST_SKIP("a_child_has_no_handle: ThreadSanitizer follows no threads that a child starts");
    o.caller = _i ? VPPS_CALLER_FREE : VPPS_CALLER_WORKS;
    AT_END(sn_close) small_network n = sn_with(1, &o);
    sn_fb(&n, 3);           /* maybe in flight */
#ifdef __SANITIZE_ADDRESS__ /* a child cannot use this allocator if another thread was inside it at the fork */
    TEST_OK(vpps_sync_latest_loss(n.h, NULL));
#endif
    fflush(NULL);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        alarm(300);
        use_in_child(&n);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "the child ended by signal %d", WTERMSIG(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    sn_step(&n, 3); /* the parent can continue */
}

/* Names that a checkpoint could not hold are refused when they are given, not when the checkpoint is saved. */
TEST(names_that_a_checkpoint_cannot_hold) {
    static const char *const bad[] = {"__metadata__", "optimizer.0/W", "optimizer.12/", "\xff",
                                      "a\xc3",        "\xed\xa0\x80",  "\xc0\x80"};
    static const char *const good[] = {
        "__metadata",      "optimizer.0",    "optimizer./W",           "optimizer.x/W",
        "optimizer",       "xoptimizer.0/W", "gr\xc3\xb6\xc3\x9f\145", /* an "e" would continue the number before it */
        "\xf0\x9f\x8c\xb3"};
    vpps_param p;
    OWNED(vpps_model) *model = new_model(1);
    for (size_t i = 0; i < VPPS_COUNT(bad); i++) {
        TEST_FAILS(vpps_add_matrix(model, &p, bad[i], 2, 2, NULL), VPPS_ARGUMENT, "checkpoint");
        TEST_FAILS(vpps_add_vector(model, &p, bad[i], 2, NULL), VPPS_ARGUMENT, "checkpoint");
        TEST_FAILS(vpps_add_lookup(model, &p, bad[i], 2, 2, 1, NULL), VPPS_ARGUMENT, "checkpoint");
    }
    for (size_t i = 0; i < VPPS_COUNT(good); i++) TEST_OK(vpps_add_vector(model, &p, good[i], 2, NULL));
    const vpps_options o = sn_options(1, VPPS_ADAM);
    OWNED(vpps_handle) *h = new_handle(model, &o);
    TEST_OK(vpps_save(h, "/dev/null", NULL, 0));
}

/* A check's time limit counts processor time, since on a busy machine a check may wait for a processor. */
TEST_GROUP("waiting", .seconds = 1);

TEST(time_that_passes_does_not_count) { nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 200000000}, NULL); }
