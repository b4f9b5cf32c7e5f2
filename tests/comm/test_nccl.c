/* test_nccl.c - sums by NCCL, against a stand-in for its library, and how they fail. */
#include "comm/threads.h"
#include "common/testing.h"

extern const bool nccl_declarations_compared; /* by nccl_declarations.c */

static bool is_idle = true;

static vpps_status idle(void *context, bool *answer) {
    (void)context;
    *answer = is_idle;
    return VPPS_OK;
}

static const vpps_gpu_stream stream = {.idle = idle};

static void add_up(vpps_communicator *processes, void *argument) {
    (void)argument;
    vpps_nccl *m;
    TEST_OK(vpps_nccl_open(&m, processes, stream));
    const uint32_t size = processes->size;
    const uint64_t sent = processes->sent_bytes;
    float sums[3] = {(float)processes->rank, 1, -2.5f};
    TEST_OK(vpps_nccl_sum(m, sums, 3));
    ck_assert_float_eq(sums[0], (float)(size * (size - 1) / 2));
    ck_assert_float_eq(sums[1], (float)size);
    ck_assert_float_eq(sums[2], -2.5f * (float)size);
    ck_assert_uint_eq(processes->sent_bytes - sent, sizeof sums);
    vpps_nccl_close(m);
}

TEST(numbers_are_added_up) {
    for (uint32_t p = 2; p <= 4; p++) threads_run(p, add_up, NULL);
}

static void fail_by(vpps_communicator *processes, void *argument) {
    const char *const *expected = argument;
    float x = 1;
    processes->watchdog_ns = 200u * 1000 * 1000;
    vpps_nccl *m;
    TEST_OK(vpps_nccl_open(&m, processes, stream));
    TEST_FAILS(vpps_nccl_sum(m, &x, 1), expected[1] ? VPPS_DEVICE : VPPS_STALL, expected[0]);
    TEST_FAILS(vpps_nccl_sum(m, &x, 1), VPPS_STATE, "has failed before");
    vpps_nccl_close(m);
}

/* the message; and what NCCL reports about the running operation */
static const char *const failures[][2] = {{"waited 0.2 s for other GPUs", NULL}, {"remote process has gone", "6"}};

TEST_EACH(a_gpu_that_is_gone_is_told, 0, 2) {
    is_idle = false;
    if (failures[_i][1]) setenv("FAKE_NCCL_ERROR", failures[_i][1], 1);
    threads_run(2, fail_by, (void *)(uintptr_t)failures[_i]);
}

static void open_nothing(vpps_communicator *processes, void *argument) {
    vpps_nccl *m;
    TEST_FAILS(vpps_nccl_open(&m, processes, stream), VPPS_DEVICE, (const char *)argument);
    ck_assert_ptr_null(m);
}

TEST(a_library_that_is_none_is_told) {
    setenv("VPPS_NCCL", "/nowhere/libnccl.so", 1);
    threads_run(2, open_nothing, (void *)(uintptr_t) "/nowhere/libnccl.so");
    setenv("VPPS_NCCL", "libm.so.6", 1);
    threads_run(2, open_nothing, (void *)(uintptr_t) "no function ncclGetUniqueId");
}

/* The compiler made the comparison itself. */
TEST(nccl_is_declared_as_in_its_header) {
    if (!nccl_declarations_compared) TEST_SKIP("NCCL's header is not installed");
}

int main(void) {
    setenv("VPPS_NCCL", test_beside("fake_nccl.so"), 1);
    return test_main("nccl");
}
