/* bench_processes.c - what exchanging gradients costs processes: the time of sums of some sizes.
 *
 *     mpirun -n P bench_processes [ROUNDS]        7 unless given
 *
 * A table on the first process: medians of the rounds. A sum of one element shows what latency costs.
 */
#include "base/base.h"
#include "runtime/comm/comm.h"
#include "workload.h"

enum { MAX_ROUNDS = 101, MOST = 1 << 24, LONG = 100000 };

static vpps_status measure(vpps_communicator *c, float *data, size_t n, uint32_t rounds) {
    double us[MAX_ROUNDS];
    const uint32_t times = n < LONG ? 100 : 2;
    for (uint32_t i = 0; i <= rounds; i++) { /* the first warms up, and is overwritten */
        VPPS_TRY(c->table->barrier(c));
        const uint64_t begin = vpps_now_ns();
        for (uint32_t k = 0; k < times; k++) VPPS_TRY(c->table->allreduce(c, data, n));
        us[i ? i - 1 : 0] = (double)(vpps_now_ns() - begin) * 1e-3 / times;
    }
    sort_doubles(us, rounds);
    const double median = us[rounds / 2], sent = 2.0 * (double)n * sizeof *data * (c->size - 1) / c->size;
    if (!c->rank) printf("| %zu | %.1f | %.0f |\n", n * sizeof *data, median, sent / median);
    return VPPS_OK;
}

static vpps_status run(vpps_communicator *c, uint32_t rounds) {
    float *data = calloc(MOST, sizeof *data);
    vpps_status s = vpps_comm_agree(c, data ? VPPS_OK : vpps_fail(VPPS_MEMORY, "no memory for %d elements", MOST));
    if (!c->rank && s == VPPS_OK) {
        printf("%u processes on %s, medians of %u rounds\n\n| bytes of a sum | us | MB/s of what a process sends |\n"
               "| ---: | ---: | ---: |\n",
               c->size, c->hosts[0], rounds);
    }
    for (size_t n = 1; n <= MOST && s == VPPS_OK; n *= 16) s = measure(c, data, n, rounds);
    free(data);
    return s;
}

int main(int argc, char **argv) {
    const uint32_t rounds = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 7;
    if (argc > 2 || !rounds || rounds > MAX_ROUNDS) {
        fprintf(stderr, "bench_processes: expected a number of rounds, 1 to %d\n", MAX_ROUNDS);
        return 2;
    }
    vpps_communicator *c;
    vpps_status s = vpps_communicator_open(&c, "mpi", NULL, 60000);
    if (s == VPPS_OK) {
        atomic_store(&c->patient, true);
        s = run(c, rounds);
    }
    if (s != VPPS_OK) fprintf(stderr, "bench_processes: %s\n", vpps_error_message());
    vpps_communicator_close(c);
    return s == VPPS_OK ? 0 : 1;
}
