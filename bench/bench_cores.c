/* bench_cores.c - predicts how fast a CPU with more cores would train Tree-LSTM 256, from measurements on this
 * machine.
 *
 *     bench_cores [--hop NS] [--groups N] TREES.txt [VPS...]      chrt -r 1 bench_cores ../shared/data/sst/train.txt 1 2 8 32 128
 *
 * For each number of VPs (virtual processors) the scheduler makes the scripts of some batches. Then the tasks of
 * each VP run alone on this core, one after the other, without waiting, several times; the least time of a task
 * counts, with the VP's own rows in the core's cache. The predicted time of a batch is that of its slowest VPs from
 * barrier to barrier, plus the barriers, plus the host's time for graph and script, since the caller is VP 0.
 *
 * A barrier of two VPs is measured, with two threads that do nothing else. Its time gives that of handing over a
 * cache line (--hop sets it), and this gives the time of a barrier of n VPs: n - 1 hand-overs of a counter, or the
 * hand-overs along the longest path of the tree (meetings.c). Not modelled: cores share the bandwidth of the last
 * cache and of memory, and lower their clock together; handing a line to another socket takes longer; results of
 * other VPs are fetched from their caches.
 *
 * With 1 VP, and with 2 where there are as many cores, the same batches are also trained, and the table has both
 * figures. */
#include "peak.h"
#include "runtime/cpu/cpu.h"
#include "runtime/handle.h"
#include "workload.h"

enum { REPEATS = 5, MEASURED = 15, MEETINGS = 20000 };

static const uint32_t sizes[] = {1, 16, 128};
static const uint32_t batches_of[] = {24, 4, 1}; /* batches over which a figure is averaged */

/* ---------------------------------------------------------------- barriers */

typedef struct pair {
    vpps_cpu cpu;
    vpps_counter counter;
} pair;

static void *meet_often(void *argument) {
    pair *p = argument;
    for (uint32_t i = 1; i <= MEETINGS; i++) {
        atomic_fetch_add(&p->counter.value, 1);
        vpps_wake(&p->counter);
        vpps_wait_for(&p->cpu, &p->counter, 2 * i, 0, false);
    }
    return NULL;
}

/* Returns the nanoseconds of a barrier of two VPs, the least of several runs. */
static double measure_barrier(void) {
    double least = 1e9;
    for (int run = 0; run < REPEATS; run++) {
        pair *p = aligned_alloc(64, sizeof *p);
        pthread_t other;
        if (!p) return least;
        memset(p, 0, sizeof *p);
        p->cpu.spin_ns = 1000000000;
        const uint64_t start = vpps_now_ns();
        if (!pthread_create(&other, NULL, meet_often, p)) {
            meet_often(p);
            pthread_join(other, NULL);
            const double ns = (double)(vpps_now_ns() - start) / MEETINGS;
            least = ns < least ? ns : least;
        }
        free(p);
    }
    return least;
}

/* Returns the nanoseconds of a barrier of n VPs by meetings.c's algorithm. The stores of a gate overlap but for an
 * eighth. */
static double barrier_ns(uint32_t n_vps, uint32_t n, double hop) {
    if (n_vps < VPPS_LEAST_TREE) return (n - 1) * hop;
    const uint32_t gates = (n + VPPS_NEIGHBOURS - 1) / VPPS_NEIGHBOURS;
    double hops = 1;
    for (uint32_t level = n; level > 1; level = (level + VPPS_NEIGHBOURS - 1) / VPPS_NEIGHBOURS)
        hops += vpps_min_u32(level, VPPS_NEIGHBOURS);
    return hop * (hops + (double)gates / 8);
}

/* ---------------------------------------------------------------- a machine of so many VPs */

typedef struct machine {
    workload *w;
    vpps_cpu *cpu;
    vpps_history history;
    vpps_batch *batch;
    vpps_batch_request request;
    double hop;
    uint64_t host_ns; /* time of the current batch's graph and script */
} machine;

static vpps_status make_batch(machine *m, uint32_t n) {
    const uint64_t start = vpps_thread_ns();
    VPPS_TRY(workload_batch(m->w, n, &m->request.loss));
    VPPS_TRY(vpps_schedule_batch(m->batch, &m->history, &m->cpu->target, m->w->x.graph, &m->request));
    m->host_ns = vpps_thread_ns() - start;
    return VPPS_OK;
}

static vpps_status train(machine *m, double *ns) {
    vpps_outcome out;
    const uint64_t start = vpps_now_ns();
    VPPS_TRY(vpps_device_cpu.launch(&m->cpu->device, m->batch));
    vpps_device_cpu.wait(&m->cpu->device, &out);
    *ns = (double)(vpps_now_ns() - start);
    return out.status == VPPS_OK ? VPPS_OK : vpps_fail(out.status, "%s", out.message);
}

/* Measures the least time of each task of a VP. */
static vpps_status time_tasks(machine *m, uint32_t v, double *ns, uint32_t n) {
    vpps_cpu *cpu = m->cpu;
    for (uint32_t i = 0; i < n; i++) ns[i] = 1e18;
    for (int run = 0; run < REPEATS; run++) {
        VPPS_TRY(vpps_cpu_prepare(cpu, m->batch));
        const uint32_t group = v / (cpu->n_vps / cpu->batch.header.n_groups);
        uint32_t at = vpps_task_starts(cpu->batch.script)[group];
        uint64_t before = vpps_now_ns();
        for (uint32_t i = 0; i < n; i++, at += VPPS_TASK_WORDS) {
            vpps_vp_task(&cpu->vps[v], at, vpps_task_at(cpu->batch.script, at));
            const uint64_t now = vpps_now_ns();
            ns[i] = (double)(now - before) < ns[i] ? (double)(now - before) : ns[i];
            before = now;
        }
        if (atomic_load(&cpu->batch.failed)) return vpps_fail(VPPS_SCRIPT, "%s", cpu->batch.outcome.message);
    }
    return VPPS_OK;
}

/* Advances the clocks of n VPs to a common barrier. */
static void meet(const machine *m, double *clocks, uint32_t first, uint32_t n) {
    double last = 0;
    for (uint32_t v = first; v < first + n; v++) last = clocks[v] > last ? clocks[v] : last;
    for (uint32_t v = first; v < first + n; v++) clocks[v] = last + barrier_ns(m->cpu->n_vps, n, m->hop);
}

/* Runs a group from its task number `at` to the next barrier of all groups, or the end. Returns the number of the task
 * after that. */
static uint32_t run_group(const machine *m, uint32_t group, uint32_t at, const double *ns, uint32_t most,
                          double *clocks) {
    const uint32_t *script = m->batch->script, n_groups = vpps_task_header_of(script)->n_groups;
    const uint32_t size = m->cpu->n_vps / n_groups, first = group * size;
    for (const vpps_task *t = vpps_first_task(script, group) + at; t->kind != VPPS_TASK_END; t++) {
        for (uint32_t v = first; v < first + size; v++) clocks[v] += ns[(size_t)v * most + at];
        at++;
        if (t->signal == VPPS_NO_BARRIER) continue;
        if (n_groups > 1 && t[1].signals != size) break;
        meet(m, clocks, first, size);
    }
    return at;
}

/* Returns when the batch ends, from the times of each VP's tasks. next: per group, zero at first. */
static double end_of_batch(const machine *m, const double *ns, uint32_t most, double *clocks, uint32_t *next) {
    const uint32_t *script = m->batch->script;
    for (bool ended = false; !ended;) {
        ended = true;
        for (uint32_t g = 0; g < vpps_task_header_of(script)->n_groups; g++) {
            next[g] = run_group(m, g, next[g], ns, most, clocks);
            ended &= vpps_first_task(script, g)[next[g]].kind == VPPS_TASK_END;
        }
        meet(m, clocks, 0, m->cpu->n_vps);
    }
    return clocks[0];
}

/* Predicts the nanoseconds of the batch without the host. */
static vpps_status predict(machine *m, double *out) {
    const uint32_t *script = m->batch->script, n_vps = m->cpu->n_vps;
    uint32_t most = 0;
    for (uint32_t g = 0; g < vpps_task_header_of(script)->n_groups; g++)
        most = vpps_max_u32(most, (uint32_t)(vpps_end_of_tasks(script, g) - vpps_first_task(script, g)));
    double *ns = calloc((size_t)n_vps * most + 1, sizeof *ns), *clocks = calloc(n_vps + 1u, sizeof *clocks);
    uint32_t *next = calloc(n_vps + 1u, sizeof *next);
    vpps_status status = ns && clocks && next ? VPPS_OK : vpps_fail(VPPS_MEMORY, "no memory");
    for (uint32_t v = 0; v < n_vps && status == VPPS_OK; v++) {
        const uint32_t g = v / (n_vps / vpps_task_header_of(script)->n_groups);
        status = time_tasks(m, v, ns + (size_t)v * most,
                            (uint32_t)(vpps_end_of_tasks(script, g) - vpps_first_task(script, g)) - 1);
    }
    if (status == VPPS_OK) *out = end_of_batch(m, ns, most, clocks, next) + 2 * m->hop; /* time of the launch */
    free(ns);
    free(clocks);
    free(next);
    return status;
}

/* ---------------------------------------------------------------- rows */

static vpps_status open_machine(machine *m, uint32_t vps, uint32_t groups) {
    vpps_options o = m->w->x.handle->options;
    o.vps = vps;
    o.caller = VPPS_CALLER_WORKS;
    o.optimizer = (vpps_optimizer){.kind = VPPS_SGD}; /* plain SGD: times do not depend on learning */
    vpps_handle_destroy(m->w->x.handle);              /* a model has one training handle */
    m->w->x.handle = NULL;
    VPPS_TRY(vpps_handle_create(&m->w->x.handle, m->w->x.model, &o));
    m->cpu = (vpps_cpu *)m->w->x.handle->device;
    m->request = (vpps_batch_request){
        .optimizer = &m->w->x.handle->options.optimizer, .guard = true, .step = 1, .groups = groups};
    return vpps_batch_create(&m->batch);
}

static void close_machine(machine *m) {
    vpps_batch_destroy(m->batch);
    vpps_history_free(&m->history);
}

/* Rates in sentences per second. */
typedef struct rates {
    double predicted, measured;
} rates;

static vpps_status find_rates(machine *m, uint32_t size, uint32_t n_batches, bool is_measured, rates *out) {
    double predicted = 0, measured = 0, host = 0, groups = 0, ns[MEASURED], one;
    m->w->next = 0;
    for (uint32_t b = 0; b < n_batches; b++) {
        VPPS_TRY(make_batch(m, size)); /* compiles new cells */
        m->w->next -= size;
        VPPS_TRY(make_batch(m, size));
        for (int i = 0; i < (is_measured ? MEASURED : 1); i++) VPPS_TRY(train(m, &ns[i]));
        sort_doubles(ns, is_measured ? MEASURED : 1);
        VPPS_TRY(predict(m, &one));
        predicted += one;
        measured += ns[MEASURED / 4 * is_measured];
        host += (double)m->host_ns;
        groups += m->batch->n_groups;
    }
    const double sentences = 1e9 * size * n_batches;
    *out = (rates){sentences / (predicted + host), sentences / (measured + host)};
    fprintf(stderr, "%u VPs, batch %u: %.1f groups; %.1f us a batch, of them %.1f the host's\n", m->cpu->n_vps, size,
            groups / n_batches, (predicted + host) / n_batches * 1e-3, host / n_batches * 1e-3);
    return VPPS_OK;
}

/* Prints rows of the table: predicted, and measured if the machine has enough cores. */
static vpps_status add_rows(workload *w, uint32_t vps, uint32_t groups, double hop) {
    machine m = {.w = w, .hop = hop};
    rates r[VPPS_COUNT(sizes)] = {{0, 0}};
    const bool is_measured = vps <= vpps_min_u32(2, peak_cores());
    vpps_status status = open_machine(&m, vps, groups);
    for (uint32_t i = 0; i < VPPS_COUNT(sizes) && status == VPPS_OK; i++)
        status = find_rates(&m, sizes[i], batches_of[i], is_measured, &r[i]);
    close_machine(&m);
    if (status != VPPS_OK) return status;
    printf("| %u, predicted |", vps);
    for (uint32_t i = 0; i < VPPS_COUNT(sizes); i++) printf(" %.0f |", r[i].predicted);
    if (is_measured) printf("\n| %u, measured (prediction's error) |", vps);
    for (uint32_t i = 0; i < VPPS_COUNT(sizes) && is_measured; i++)
        printf(" %.0f (%+.0f %%) |", r[i].measured, 100 * (r[i].predicted / r[i].measured - 1));
    printf("\n");
    fflush(stdout);
    return VPPS_OK;
}

/* Parses the value of an option or argument `what`. Returns false, after printing a message, when it is no such
 * number. */
static bool read_count(const char *what, const char *text, uint64_t *out) {
    enum { MOST = 4096 };
    if (vpps_read_number(text, MOST, out) && *out) return true;
    fprintf(stderr, "bench_cores: %s: '%s' is not a whole number from 1 to %d\n", what, text, MOST);
    return false;
}

int main(int argc, char **argv) {
    uint64_t hop_ns = 0, groups = 0, vps;
    int i = 1;
    for (; i + 1 < argc && !strncmp(argv[i], "--", 2); i += 2) {
        uint64_t *to = !strcmp(argv[i], "--hop") ? &hop_ns : !strcmp(argv[i], "--groups") ? &groups : NULL;
        if (!to) break;
        if (!read_count(argv[i], argv[i + 1], to)) return 2;
    }
    if (i >= argc || !strncmp(argv[i], "--", 2))
        return fputs("usage: bench_cores [--hop NS] [--groups N] TREES.txt [VPS...]\n", stderr), 2;
    for (int k = i + 1; k < argc; k++) /* checks all arguments before anything that takes time */
        if (!read_count("VPS", argv[k], &vps)) return 2;
    double hop = (double)hop_ns;
    static workload w;
    vpps_status status = workload_open(&w, "tree-lstm", argv[i++], "256");
    if (!(hop > 0)) hop = measure_barrier();
    printf("Tree-LSTM 256, sentences a second; a cache line is handed over in %.0f ns\n\n"
           "| VPs, a core each | batch 1 | batch 16 | batch 128 |\n| --- | ---: | ---: | ---: |\n",
           hop);
    for (; i < argc && status == VPPS_OK && read_count("VPS", argv[i], &vps); i++)
        status = add_rows(&w, (uint32_t)vps, (uint32_t)groups, hop);
    workload_close(&w);
    if (status != VPPS_OK) fprintf(stderr, "bench_cores: %s\n", vpps_error_message());
    return status != VPPS_OK;
}
