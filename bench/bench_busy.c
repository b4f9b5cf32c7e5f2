/* bench_busy.c - training speed on a busy machine.
 *
 *     bench_busy [--hidden N] [--batch N] [--rounds N] [--seconds S]
 *
 * One process trains with one VP, and with one for every core; then the same with a busy loop pinned to each core; then
 * as many processes as there are cores, with one VP each, at the same time. Generated ListOps trees, SGD, fp32; hidden 64
 * and 256 unless one is given. These ways take turns, round by round, so that a change of the machine's speed hits all
 * alike; ratios are those of one round. Reported: median (lowest - highest) of the rounds.
 */
#include "base/base.h"
#include "workload.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_ROUNDS = 101, MAX_PROCESSES = 256 };

typedef enum way { ALONE, ALL_VPS, ALONE_BUSY, ALL_VPS_BUSY, BESIDE, N_WAYS } way;

typedef struct settings {
    uint32_t hidden, batch, rounds, cores; /* hidden 0: 64 and 256 */
    double seconds;
} settings;

/* ---------------------------------------------------------------- what runs */

/* Batches for about `seconds`; sentences a second. */
static vpps_status train(vpps_handle *h, workload *w, uint32_t batch, double seconds, double *rate) {
    const uint64_t start = vpps_now_ns();
    uint64_t n = 0;
    do {
        vpps_node loss;
        VPPS_TRY(workload_batch(w, batch, &loss));
        VPPS_TRY(vpps_fb(h, w->g, loss, NULL));
        n++;
    } while ((double)(vpps_now_ns() - start) < seconds * 1e9);
    float last;
    VPPS_TRY(vpps_sync_latest_loss(h, &last));
    *rate = (double)(n * batch) * 1e9 / (double)(vpps_now_ns() - start);
    return VPPS_OK;
}

/* A process: prepares, says so, waits for the word, trains, tells how fast. */
static vpps_status run(const settings *o, uint32_t hidden, uint32_t vps, int in, int out) {
    workload w = {0};
    vpps_handle *h = NULL;
    vpps_options options;
    double rate = 0;
    vpps_options_default(&options);
    options.vps = vps;
    options.optimizer.lr = 0.01f;
    vpps_status s = workload_create(&w, NULL, hidden, hidden);
    if (s == VPPS_OK) s = vpps_handle_create(&h, w.model, &options);
    if (s == VPPS_OK) s = train(h, &w, o->batch, 0.1, &rate);
    char go = 1;
    if (s == VPPS_OK && (write(out, &go, 1) != 1 || read(in, &go, 1) != 1)) s = VPPS_IO;
    if (s == VPPS_OK) s = train(h, &w, o->batch, o->seconds, &rate);
    if (s == VPPS_OK && write(out, &rate, sizeof rate) != sizeof rate) s = VPPS_IO;
    if (s != VPPS_OK) fprintf(stderr, "bench_busy: %s\n", vpps_error_message());
    vpps_handle_destroy(h);
    workload_destroy(&w);
    return s;
}

static pid_t busy_loop(uint32_t core) {
    const pid_t pid = fork();
    if (pid) return pid;
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) == 0) {
        for (int c = 0; c < CPU_SETSIZE; c++)
            if (CPU_ISSET(c, &all) && core-- == 0) CPU_SET(c, &one);
    }
    if (sched_setaffinity(0, sizeof one, &one)) _exit(1);
    for (volatile uint64_t i = 0;; i++) {}
}

/* ---------------------------------------------------------------- a round */

typedef struct process {
    pid_t pid;
    int in, out; /* of ours: its answers, its word */
} process;

static bool start(const settings *o, uint32_t hidden, uint32_t vps, process *p) {
    int answers[2], word[2];
    if (pipe(answers) || pipe(word)) return false;
    p->pid = fork();
    if (p->pid == 0) {
        close(answers[0]);
        close(word[1]);
        _exit(run(o, hidden, vps, word[0], answers[1]) != VPPS_OK);
    }
    close(answers[1]);
    close(word[0]);
    p->in = answers[0];
    p->out = word[1];
    return p->pid > 0;
}

static void end(pid_t pid) {
    if (pid <= 0) return;
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {}
}

/* Speed of the slowest of `n` processes that train at the same time; 0: one failed. */
static double measure(const settings *o, uint32_t hidden, uint32_t vps, uint32_t n, bool busy) {
    process processes[MAX_PROCESSES] = {{0}};
    pid_t loops[MAX_PROCESSES] = {0};
    char ready;
    bool ok = true;
    double slowest = INFINITY;
    for (uint32_t i = 0; i < n; i++) ok = start(o, hidden, vps, &processes[i]) && ok;
    for (uint32_t i = 0; i < n && ok; i++) ok = read(processes[i].in, &ready, 1) == 1;
    for (uint32_t i = 0; i < o->cores && busy; i++) loops[i] = busy_loop(i);
    for (uint32_t i = 0; i < n && ok; i++) ok = write(processes[i].out, &ready, 1) == 1;
    for (uint32_t i = 0; i < n && ok; i++) {
        double rate = 0;
        ok = read(processes[i].in, &rate, sizeof rate) == sizeof rate;
        if (rate < slowest) slowest = rate;
    }
    for (uint32_t i = 0; i < o->cores; i++) end(loops[i]);
    for (uint32_t i = 0; i < n; i++) {
        end(processes[i].pid);
        close(processes[i].in);
        close(processes[i].out);
    }
    return ok ? slowest : 0;
}

static bool run_round(const settings *o, uint32_t hidden, double rates[N_WAYS][MAX_ROUNDS], uint32_t round) {
    for (uint32_t w = 0; w < N_WAYS; w++) {
        const uint32_t vps = w == ALL_VPS || w == ALL_VPS_BUSY ? o->cores : 1, n = w == BESIDE ? o->cores : 1;
        rates[w][round] = measure(o, hidden, vps, n, w == ALONE_BUSY || w == ALL_VPS_BUSY);
        if (rates[w][round] <= 0) return false;
    }
    return true;
}

/* ---------------------------------------------------------------- results */

static void print_rates(const char *what, double *x, uint32_t n) {
    sort_doubles(x, n);
    printf("| %s | %.0f (%.0f - %.0f) |\n", what, x[n / 2], x[0], x[n - 1]);
}

static void print_ratio(const char *what, const double *x, const double *y, uint32_t n) {
    double ratios[MAX_ROUNDS];
    for (uint32_t i = 0; i < n; i++) ratios[i] = x[i] / y[i];
    sort_doubles(ratios, n);
    printf("- %s: %.2f (%.2f - %.2f)\n", what, ratios[n / 2], ratios[0], ratios[n - 1]);
}

static void print_results(const settings *o, uint32_t hidden, double rates[N_WAYS][MAX_ROUNDS]) {
    printf("\nhidden %u, batch %u, %u cores; sentences a second, median (lowest - highest) of %u rounds\n\n", hidden,
           o->batch, o->cores, o->rounds);
    printf("| | sentences/s |\n| --- | ---: |\n");
    char names[N_WAYS][64];
    snprintf(names[ALONE], sizeof *names, "1 VP");
    snprintf(names[ALL_VPS], sizeof *names, "%u VPs", o->cores);
    snprintf(names[ALONE_BUSY], sizeof *names, "1 VP, a busy loop on each core");
    snprintf(names[ALL_VPS_BUSY], sizeof *names, "%u VPs, a busy loop on each core", o->cores);
    snprintf(names[BESIDE], sizeof *names, "1 VP, %u processes, the slowest", o->cores);
    double sorted[N_WAYS][MAX_ROUNDS];
    memcpy(sorted, rates, sizeof sorted);
    for (uint32_t w = 0; w < N_WAYS; w++) print_rates(names[w], sorted[w], o->rounds);
    printf("\n");
    print_ratio("busy machine, all VPs to one (at least 0.5 is asked)", rates[ALL_VPS_BUSY], rates[ALONE_BUSY],
                o->rounds);
    print_ratio("processes beside each other to one alone (about 1 is asked)", rates[BESIDE], rates[ALONE], o->rounds);
    fflush(stdout);
}

static bool read_options(int argc, char **argv, settings *o) {
    static const struct option options[] = {
        {"hidden", 1, 0, 'h'}, {"batch", 1, 0, 'b'}, {"rounds", 1, 0, 'r'}, {"seconds", 1, 0, 's'}, {0, 0, 0, 0}};
    *o = (settings){.batch = 16, .rounds = 7, .seconds = 0.5};
    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'h': o->hidden = (uint32_t)atoi(optarg); break;
        case 'b': o->batch = vpps_max_u32(1, (uint32_t)atoi(optarg)); break;
        case 'r': o->rounds = vpps_max_u32(1, vpps_min_u32(MAX_ROUNDS, (uint32_t)atoi(optarg))); break;
        case 's': o->seconds = atof(optarg); break;
        default: return false;
        }
    }
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed)) return false;
    o->cores = vpps_min_u32((uint32_t)CPU_COUNT(&allowed), MAX_PROCESSES);
    return optind == argc;
}

int main(int argc, char **argv) {
    static double rates[2][N_WAYS][MAX_ROUNDS];
    settings o;
    if (!read_options(argc, argv, &o)) return 2;
    const uint32_t sizes[] = {o.hidden ? o.hidden : 64, 256}, n_sizes = o.hidden ? 1 : 2;
    printf("Training on a busy machine\n");
    fflush(stdout);
    for (uint32_t round = 0; round < o.rounds; round++)
        for (uint32_t i = 0; i < n_sizes; i++)
            if (!run_round(&o, sizes[i], rates[i], round)) return 1;
    for (uint32_t i = 0; i < n_sizes; i++) print_results(&o, sizes[i], rates[i]);
    return 0;
}
