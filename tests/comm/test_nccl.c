/* test_nccl.c - the table for NCCL with a stand-in: what it moves, and how it fails. */
#include "comm/mpi_declarations.h"
#include "comm/threads.h"
#include "common/testing.h"

static bool is_idle = true;

static vpps_status idle(void *context, bool *answer) {
    (void)context;
    *answer = is_idle;
    return VPPS_OK;
}

static const vpps_gpu_stream stream = {.idle = idle};

static vpps_communicator *open_row(vpps_communicator *processes) {
    vpps_communicator *c;
    TEST_OK(vpps_nccl_open(&c, processes, stream));
    ck_assert_uint_eq(c->rank, processes->rank);
    ck_assert_uint_eq(c->size, processes->size);
    return c;
}

static void move(vpps_communicator *processes, void *argument) {
    (void)argument;
    vpps_communicator *c = open_row(processes);
    float sums[3] = {(float)c->rank, 1, -2.5f};
    TEST_OK(c->table->allreduce(c, sums, 3));
    ck_assert_float_eq(sums[0], (float)(c->size * (c->size - 1) / 2));
    ck_assert_float_eq(sums[1], (float)c->size);
    ck_assert_float_eq(sums[2], -2.5f * (float)c->size);
    TEST_OK(c->table->allreduce(c, sums, 0));

    uint32_t own = 100 + c->rank, seen[8] = {0}, word = c->rank == 1 ? 77 : 0;
    TEST_OK(vpps_comm_gather(c, &own, seen, sizeof own));
    for (uint32_t p = 0; p < c->size; p++) ck_assert_uint_eq(seen[p], 100 + p);
    TEST_OK(c->table->broadcast(c, &word, sizeof word, 1));
    ck_assert_uint_eq(word, 77);
    TEST_OK(c->table->barrier(c));
    ck_assert_uint_gt(c->sent_bytes, 0);
    vpps_communicator_close(c);
}

TEST(what_is_given_arrives) {
    for (uint32_t p = 2; p <= 4; p++) threads_run(p, move, NULL);
}

static void fail_by(vpps_communicator *processes, void *argument) {
    const char *const *expected = argument;
    float x = 1;
    processes->watchdog_ns = 200u * 1000 * 1000;
    vpps_communicator *c = open_row(processes);
    const vpps_status status = expected[1] ? VPPS_DEVICE : VPPS_STALL;
    TEST_FAILS(c->table->allreduce(c, &x, 1), status, expected[0]);
    TEST_FAILS(c->table->allreduce(c, &x, 1), VPPS_STATE, "has failed before");
    TEST_FAILS(c->table->broadcast(c, &x, sizeof x, 0), VPPS_STATE, "has failed before");
    vpps_communicator_close(c);
}

/* the message; and what NCCL reports about the running operation */
static const char *const failures[][2] = {{"waited 0.2 s for other GPUs", NULL}, {"remote process has gone", "6"}};

TEST_EACH(a_gpu_that_is_gone_is_told, 0, 2) {
    is_idle = false;
    if (failures[_i][1]) setenv("FAKE_NCCL_ERROR", failures[_i][1], 1);
    threads_run(2, fail_by, (void *)(uintptr_t)failures[_i]);
}

static void open_nothing(vpps_communicator *processes, void *argument) {
    vpps_communicator *c;
    TEST_FAILS(vpps_nccl_open(&c, processes, stream), VPPS_DEVICE, (const char *)argument);
    ck_assert_ptr_null(c);
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

int main(int argc, char **argv) {
    char path[4096]; /* the stand-in lies beside this program */
    (void)argc;
    const char *slash = strrchr(argv[0], '/');
    snprintf(path, sizeof path, "%.*sfake_nccl.so", slash ? (int)(slash + 1 - argv[0]) : 0, argv[0]);
    setenv("VPPS_NCCL", path, 1);
    return test_main("nccl");
}
