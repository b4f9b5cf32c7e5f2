/* test_comm.c - what all tables of communicators share: sums, gathering, agreeing. */
#include "comm/threads.h"
#include "common/testing.h"

extern const bool mpich_declarations_compared, open_mpi_declarations_compared; /* by NAME_declarations.c */

/* ---------------------------------------------------------------- sums */

static const size_t sizes[] = {0, 1, 3, 64, 1001, 5000000};

static float element(uint32_t rank, size_t i) { return (float)((i * 7 + rank * 13) % 101) * 0.37f - 11; }

static void reduce(vpps_communicator *c, void *argument) {
    (void)argument;
    for (int k = 0; k < (int)VPPS_COUNT(sizes); k++) {
        if (sizes[k] > 1000000 && c->size != 3) continue; /* more than is added up at a time */
        FREED float *data = need(malloc((sizes[k] + 1) * sizeof *data));
        for (size_t i = 0; i < sizes[k]; i++) data[i] = element(c->rank, i);
        TEST_OK(vpps_comm_allreduce(c, data, sizes[k]));
        for (size_t i = 0; i < sizes[k]; i++) {
            float sum = element(0, i);
            for (uint32_t p = 1; p < c->size; p++) sum += element(p, i);
            if (memcmp(&sum, &data[i], sizeof sum) != 0) ck_abort_msg("element %zu of %zu", i, sizes[k]);
        }
    }
}

TEST_GROUP("sums");

TEST(allreduce_adds_in_the_order_of_ranks) {
    for (uint32_t p = 1; p <= 5; p++) threads_run(p, reduce, NULL);
}

static void sum_up(vpps_communicator *c, void *argument) {
    (void)argument;
    double values[2] = {c->rank + 1.0, 0.5};
    uint32_t own = c->rank * 3, all[8];
    TEST_OK(vpps_comm_sum(c, values, 2));
    ck_assert_double_eq(values[0], c->size * (c->size + 1) / 2.0);
    ck_assert_double_eq(values[1], 0.5 * c->size);
    TEST_OK(vpps_comm_gather(c, &own, all, sizeof own));
    for (uint32_t p = 0; p < c->size; p++) ck_assert_uint_eq(all[p], p * 3);
}

TEST(everyone_has_what_all_gave) {
    for (uint32_t p = 1; p <= 4; p++) threads_run(p, sum_up, NULL);
}

/* ---------------------------------------------------------------- agreement */

static void agree(vpps_communicator *c, void *argument) {
    (void)argument;
    TEST_OK(vpps_comm_agree(c, VPPS_OK));
    const vpps_status own = c->rank == 2 ? vpps_fail(VPPS_IO, "no such file") : VPPS_OK;
    TEST_FAILS(vpps_comm_agree(c, own), VPPS_IO, "rank 2 on host2: no such file");
}

TEST_GROUP("agreement");

TEST(one_failure_is_everyones) { threads_run(4, agree, NULL); }

static void compare(vpps_communicator *c, void *argument) {
    const char *const *lines = argument;
    const char *own = c->rank == 1 ? lines[1] : lines[0];
    if (!lines[2]) {
        TEST_OK(vpps_comm_compare(c, own));
    } else {
        TEST_FAILS(vpps_comm_compare(c, own), VPPS_ARGUMENT, lines[2]);
    }
}

/* the lines of rank 0 and of rank 1, and the message in all processes */
static const char *const comparisons[][3] = {
    {"version 1\nbatch 8\n", "version 1\nbatch 8\n", NULL},
    {"version 1\nbatch 8\n", "version 1\nbatch 16\n", "rank 1 on host1: batch is 16 here, and 8 at rank 0"},
    {"version 1\nbatch 8\n", "version 1\n", "rank 1 on host1: batch is absent here, and 8 at rank 0"},
    {"version 1\n", "version 1\nbatch 8\n", "rank 1 on host1: batch is 8 here, and absent at rank 0"},
    {"version 1\n", "version 10\n", "rank 1 on host1: version is 10 here, and 1 at rank 0"},
};

TEST_EACH(the_first_line_that_differs_is_told, 0, 5) { threads_run(3, compare, (void *)(uintptr_t)comparisons[_i]); }

TEST(what_cannot_be_opened_is_told) {
    vpps_communicator *c;
    TEST_FAILS(vpps_communicator_open(&c, "pigeons", NULL, 0), VPPS_ARGUMENT, "pigeons");
    ck_assert_ptr_null(c);
    TEST_FAILS(vpps_communicator_open(NULL, "mpi", NULL, 0), VPPS_ARGUMENT, "out");
    setenv("VPPS_MPI", "/nowhere/libmpi.so", 1);
    TEST_FAILS(vpps_communicator_open(&c, "mpi", NULL, 0), VPPS_DEVICE, "/nowhere/libmpi.so");
    setenv("VPPS_MPI", "libm.so.6", 1);
    TEST_FAILS(vpps_communicator_open(&c, "mpi", NULL, 0), VPPS_DEVICE, "neither Open MPI nor");
    ck_assert_uint_eq(vpps_communicator_rank(NULL), 0);
    ck_assert_uint_eq(vpps_communicator_size(NULL), 1);
    vpps_communicator_close(NULL);
}

/* The compiler made the comparison itself. */
TEST(mpich_is_declared_as_in_its_header) {
    if (!mpich_declarations_compared) TEST_SKIP("MPICH's mpi.h is not installed");
}

TEST(open_mpi_is_declared_as_in_its_header) {
    if (!open_mpi_declarations_compared) TEST_SKIP("Open MPI's mpi.h is not installed");
}
