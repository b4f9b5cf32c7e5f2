/* test_tuning.c - the trials of this processor's products, which the cache keeps, and choices, which checkpoints keep; how stages are shared out; and
 * what no choice changes. */
#include "common/folder.h"
#include "runtime/cpu/cpu.h"
#include "runtime/cpu/probe.h"
#include "runtime/handle.h"
#include "runtime/small_network.h"

#include <sys/wait.h>
#include <unistd.h>

/* ---------------------------------------------------------------- trials */

static vpps_cpu *cpu_of(vpps_handle *h) { return (vpps_cpu *)h->device; }

static small_network open_network(uint32_t vps, bool tune, bool no_tuning) {
    vpps_options o = sn_options(vps, VPPS_SGD);
    o.tune = tune;
    o.no_tuning = no_tuning;
    return sn_with(1, &o);
}

/* What a handle reports about its trials. */
typedef struct told {
    uint32_t products, splits;                                   /* how many */
    uint32_t current_products, remembered_products, kept_splits; /* current, remembered trials of products; splits */
    double ns;                                                   /* total ns of all products */
} told;

static told tell(vpps_handle *h, bool *done) {
    vpps_trial trials[VPPS_CPU_TRIALS + VPPS_MOST_TRIALS] = {{.size = sizeof *trials}};
    uint32_t n = VPPS_COUNT(trials);
    told t = {0};
    TEST_OK(vpps_handle_trials(h, trials, &n, done));
    ck_assert_uint_le(n, VPPS_COUNT(trials));
    for (uint32_t i = 0; i < n; i++) {
        ck_assert(!trials[i].product != !trials[i].split);
        t.products += trials[i].product != NULL;
        t.splits += trials[i].split != NULL;
        if (trials[i].product) {
            ck_assert(trials[i].ns_per_vector > 0);
            t.current_products += trials[i].state == VPPS_TRIAL_CURRENT;
            t.remembered_products += trials[i].state == VPPS_TRIAL_REMEMBERED;
            t.ns += trials[i].ns_per_vector;
        } else {
            t.kept_splits += trials[i].state == VPPS_TRIAL_REMEMBERED;
        }
    }
    return t;
}

/* Trains in a process of its own, since trials are made once per process: until all choices are made, at least one batch. */
static told run_process(uint32_t vps, bool tune, bool no_tuning, uint32_t *batches) {
    int ends[2], status;
    struct {
        told t;
        uint32_t batches;
    } result = {{0}, 0};
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t child = fork();
    if (!child) {
        bool done = false;
        small_network n = open_network(vps, tune, no_tuning);
        result.t = tell(n.h, &done);
        for (; !done || !result.batches; tell(n.h, &done)) sn_fb(&n, result.batches++ % 4);
        sn_close(&n);
        _exit(write(ends[1], &result, sizeof result) != (ssize_t)sizeof result);
    }
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(read(ends[0], &result, sizeof result), (ssize_t)sizeof result);
    close(ends[0]);
    close(ends[1]);
    if (batches) *batches = result.batches;
    return result.t;
}

TEST_GROUP("tuning", .seconds = 120);

TEST(the_cache_remembers) {
    cache_folder_make();
    const told none = run_process(1, false, true, NULL);
    ck_assert_uint_eq(none.products + none.splits, 0);
    ck_assert_int_eq(cache_folder_count(), 0);
    const told first = run_process(1, false, false, NULL);
    ck_assert_uint_gt(first.products, 10);
    ck_assert_uint_gt(first.current_products, 1);
    ck_assert_uint_eq(first.remembered_products + first.splits, 0);
    ck_assert_int_eq(cache_folder_count(), 1);
    const told again = run_process(2, false, false, NULL); /* whatever the model and the number of processors */
    ck_assert_uint_eq(again.products, first.products);
    ck_assert_uint_eq(again.remembered_products, first.current_products);
    ck_assert_uint_eq(again.current_products, 0);
    ck_assert_double_eq_tol(again.ns, first.ns, 0.01 * first.products);

    size_t bytes;
    const char *entry = cache_folder_entry();
    FREED char *file = folder_load(entry, &bytes);
    file[bytes - 3] ^= 1;
    folder_store(entry, file, bytes);
    ck_assert_uint_gt(run_process(1, false, false, NULL).current_products, 1); /* a damaged file counts as missing */
    ck_assert_uint_eq(run_process(1, false, false, NULL).current_products, 0);
}

TEST(wide_levels_have_a_rule_of_their_own) {
    AT_END(sn_close) small_network n = open_network(2, false, true);
    const vpps_row_rule rule = cpu_of(n.h)->target.rows;
    ck_assert(rule.wide && rule.wide_elems > rule.split_elems && rule.split_elems);
}

/* Of processes that begin at the same time, one measures, and all choose by the same times. */
TEST(processes_agree) {
    enum { PROCESSES = 4 };
    int ends[2];
    double ns[PROCESSES];
    cache_folder_make();
    ck_assert_int_eq(pipe(ends), 0);
    for (int i = 0; i < PROCESSES; i++) {
        const pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child) continue;
        const vpps_probe *p = vpps_probe_processor();
        char *text = vpps_probe_write(p->trials, p->n);
        double sum = 0;
        for (uint32_t k = 0; text && text[k]; k++) sum += (k % 997 + 1) * (double)text[k];
        _exit(write(ends[1], &sum, sizeof sum) != (ssize_t)sizeof sum);
    }
    close(ends[1]); /* reading fails if a child ends early */
    for (int i = 0; i < PROCESSES; i++) ck_assert_int_eq(read(ends[0], &ns[i], sizeof ns[i]), (ssize_t)sizeof ns[i]);
    while (wait(NULL) > 0) {}
    for (int i = 0; i < PROCESSES; i++) ck_assert(ns[i] > 0 && ns[i] == ns[0]);
}

static char heard[512];

static void hear(void *context, const char *line) {
    (void)context;
    snprintf(heard, sizeof heard, "%s", line);
}

/* All handles of a process choose alike. */
TEST(without_a_cache_it_goes_on) {
    vpps_options o = sn_options(2, VPPS_SGD);
    bool done;
    setenv("VPPS_CACHE_DIR", "/dev/null/nowhere", 1);
    o.log = hear;
    AT_END(sn_close) small_network n = sn_with(1, &o), m = sn_with(1, &o);
    const told a = tell(n.h, &done), b = tell(m.h, &done);
    ck_assert_uint_gt(a.current_products, 0);
    ck_assert_uint_eq(a.current_products, b.current_products);
    ck_assert(a.ns == b.ns);
    ck_assert_int_eq(memcmp(&cpu_of(n.h)->choice, &cpu_of(m.h)->choice, sizeof(vpps_cpu_choice)), 0);
    sn_fb(&n, 0);
    sn_fb(&m, 0);
}

TEST(splits_are_tried_and_remembered) {
    uint32_t batches;
    cache_folder_make();
    told t = run_process(2, true, false, &batches);
    ck_assert_uint_eq(t.splits, 3);
    ck_assert_uint_eq(t.kept_splits, 0);
    ck_assert_uint_gt(batches, 3 * VPPS_TRIAL_BATCHES);
    t = run_process(2, true, false, &batches);
    ck_assert_uint_eq(t.kept_splits, 1);
    ck_assert_uint_eq(batches, 1);                                        /* it is known */
    ck_assert_uint_eq(run_process(2, false, false, NULL).kept_splits, 1); /* by training, too */
    ck_assert_uint_eq(run_process(2, false, true, NULL).splits, 0);       /* no_tuning */
    ck_assert_uint_eq(run_process(3, false, false, NULL).splits, 0);      /* another number of virtual processors */
    ck_assert_uint_eq(run_process(1, true, false, &batches).splits, 0);   /* one processor: nothing to share out */
    ck_assert_uint_eq(batches, 1);
}

/* ---------------------------------------------------------------- choices in checkpoints */

/* Saves a run that had this choice, loads it into a new handle with these options, and returns the choice of the new handle. */
static vpps_cpu_choice resume(vpps_cpu_choice of_run, vpps_options o, const char *path) {
    vpps_options first = o;
    first.precision = of_run.precision;
    first.no_tuning = false;
    AT_END(sn_close) small_network n = sn_with(1, &first);
    cpu_of(n.h)->choice = of_run;
    TEST_OK(vpps_save(n.h, path, NULL, 0));
    AT_END(sn_close) small_network resumed = sn_with(1, &o);
    TEST_OK(vpps_load(resumed.h, path));
    const vpps_cpu_choice c = cpu_of(resumed.h)->choice;
    ck_assert_str_eq(stats_of(resumed.h).precision, vpps_precision_names[c.precision]);
    ck_assert_uint_eq(cpu_of(resumed.h)->precision.parts, vpps_precision_parts(c.precision));
    return c;
}

TEST(a_resumed_run_keeps_its_choice) {
    cache_folder_make();
    const char *file = folder_path("run.safetensors");
    unsetenv("VPPS_ISA");
    vpps_options o = sn_options(2, VPPS_SGD);
    const uint32_t last = vpps_units_of_this_cpu()->n_kernels - 1;
    const vpps_cpu_choice odd = {.kernels = last / 2,
                                 .unit = VPPS_BF16_VECTORS,
                                 .precision = VPPS_PRECISION_FP32,
                                 .tile = 54,
                                 .few = 5,
                                 .pays = 17};
    vpps_cpu_choice c = resume(odd, o, file);
    ck_assert_int_eq(memcmp(&c, &odd, sizeof c), 0);
    o.no_tuning = true;
    c = resume(odd, o, file);
    ck_assert_uint_ne(c.pays, 17);
    o.no_tuning = false;
    o.precision = VPPS_PRECISION_BF16; /* AUTO never chooses it */
    c = resume(odd, o, file);
    ck_assert_int_eq(c.precision, VPPS_PRECISION_BF16);
    setenv("VPPS_ISA", vpps_units_of_this_cpu()->kernels[last]->isa, 1);
    o.precision = VPPS_PRECISION_FP32;
    c = resume(odd, o, file);
    ck_assert_uint_eq(c.kernels, last);
}

/* A run with AUTO continues in the precision that it had, with the bits that it would have had. */
TEST_EACH(auto_goes_on_as_it_was, 0, 2) {
    cache_folder_make();
    const char *file = folder_path("run.safetensors");
    unsetenv("VPPS_ISA");
    const vpps_precision was = _i ? VPPS_PRECISION_BF16X3 : VPPS_PRECISION_FP32;
    vpps_options o = sn_options(2, VPPS_SGD);
    o.precision = was;
    AT_END(sn_close) small_network n = sn_with(1, &o);
    for (uint32_t batch = 0; batch < 3; batch++) sn_fb(&n, batch);
    TEST_OK(vpps_save(n.h, file, NULL, 0));
    o.precision = VPPS_PRECISION_AUTO;
    AT_END(sn_close) small_network resumed = sn_with(1, &o);
    vpps_cpu_choice other = cpu_of(resumed.h)->choice; /* now uses the precision that was not chosen */
    other.precision = _i ? VPPS_PRECISION_FP32 : VPPS_PRECISION_BF16X3;
    char text[VPPS_CHOICE_TEXT], choice[VPPS_CHOICE_BYTES];
    cpu_of(resumed.h)->choice = other;
    vpps_cpu_choice_text(resumed.h->device, text);
    TEST_OK(vpps_cpu_take_choice(resumed.h->device, text));
    TEST_OK(vpps_load(resumed.h, file));
    vpps_cpu_write_choice(cpu_of(resumed.h)->units, &cpu_of(resumed.h)->choice, choice);
    ck_assert_msg(cpu_of(resumed.h)->precision.precision == was, "%s", choice);
    sn_train(&n, 3, 6);
    sn_train(&resumed, 3, 6);
    ck_assert(models_are_equal(n.model, resumed.model, false));
}

/* ---------------------------------------------------------------- what no choice changes */

static void choose(vpps_handle *h, uint32_t tile, uint32_t few, uint32_t pays) {
    vpps_cpu_choice *c = &cpu_of(h)->choice;
    c->tile = tile;
    c->few = few;
    c->pays = pays;
}

/* Returns whether the latest batch multiplies with the matrix's transposed copy. */
static bool used_copies(vpps_handle *h, vpps_param matrix) {
    return cpu_of(h)->matrices[matrix].used_in == cpu_of(h)->launch;
}

/* Small and large batches in turn, in each precision: a copy that becomes outdated while batches do without it is renewed when one needs it. */
TEST_EACH(copies_are_of_the_values_as_they_are, 0, 9) {
    uint32_t with = 0, without = 0;
    vpps_options o = sn_options(1 + (uint32_t)_i % 3, VPPS_SGD);
    o.no_tuning = true;
    o.precision = (vpps_precision[]){VPPS_PRECISION_FP32, VPPS_PRECISION_BF16X3, VPPS_PRECISION_BF16}[_i / 3];
    AT_END(sn_close) small_network n = sn_with(1, &o), fresh = sn_with(1, &o);
    choose(n.h, 96, 1, 7);
    choose(fresh.h, 96, 1, 7);
    for (uint32_t batch = 0; batch < 24; batch++) {
        sn_fb(&n, batch);
        sn_train(&fresh, batch, batch + 1);
        TEST_OK(vpps_write_parameters(fresh.h)); /* which makes all copies outdated */
        with += used_copies(n.h, n.U);
        without += !used_copies(n.h, n.U);
    }
    if (_i < 3 || cpu_of(n.h)->precision.unit.product_t) { /* otherwise the copies are always used */
        ck_assert_uint_gt(with, 2);
        ck_assert_uint_gt(without, 2);
    }
    sn_expect_alike(&n, &fresh, 0);
}

/* The number of vectors that are processed at a time does not change a bit. */
TEST(tiles_give_the_same_bits) {
    static const uint32_t sizes[] = {96, 6, 1};
    float *values[VPPS_COUNT(sizes)];
    size_t count = 0;
    for (size_t i = 0; i < VPPS_COUNT(sizes); i++) {
        AT_END(sn_close) small_network n = open_network(1, false, true);
        choose(n.h, sizes[i], 2, 4);
        for (uint32_t batch = 0; batch < 8; batch++) sn_fb(&n, batch);
        values[i] = handle_values(n.model, n.h, &count);
    }
    for (size_t i = 1; i < VPPS_COUNT(sizes); i++)
        ck_assert_msg(!memcmp(values[0], values[i], count * sizeof(float)), "tiles of %u", sizes[i]);
    for (size_t i = 0; i < VPPS_COUNT(sizes); i++) free(values[i]);
}

int main(void) {
    unsetenv("VPPS_ISA"); /* it would leave nothing to choose */
    return test_main("tuning");
}
