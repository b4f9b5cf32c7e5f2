/* test_tuning.c - how the CPU's products are chosen: what times ask for, what the cache remembers and what it must not, and what no
 * choice changes. */
#include "common/cache_folder.h"
#include "common/testing.h"
#include "runtime/cpu/cpu.h"
#include "runtime/handle.h"
#include "runtime/small_network.h"

#include <stdio.h>

/* ---------------------------------------------------------------- what times ask for */

enum { TILES = 3, COUNTS = 3, TRIALS = TILES + 2 * COUNTS + 1 };
static const uint32_t tiles[TILES] = {48, 96, 192}, counts[COUNTS] = {1, 4, 16};

typedef struct timing {
    double tile[TILES], rows[COUNTS], copy[COUNTS], transpose;
    vpps_cpu_choice choice;
} timing;

#define DEFAULT_COPY {1000, 1000, 1000}, {400, 400, 400}, 6000
static const timing cases[] = {
    {{100, 100, 100}, DEFAULT_COPY, {96, 1, 21}},
    {{98, 100, 98}, DEFAULT_COPY, {96, 1, 21}},                                 /* noise */
    {{90, 100, 80}, DEFAULT_COPY, {192, 1, 21}},                                /* the fastest */
    {{90, 100, 95}, {1000, 1000, 1000}, {900, 400, 400}, 6000, {48, 4, 21}},    /* few vectors: as they lie */
    {{100, 100, 100}, {1000, 1000, 1000}, {400, 900, 400}, 6000, {96, 16, 21}}, /* from where on all are faster */
    {{100, 100, 100}, {1000, 1000, 1000}, {400, 500, 600}, 6000, {96, 1, 31}},  /* by the least gain */
    {{100, 100, 100}, {400, 400, 400}, {400, 400, 400}, 6000, {96, -1u, -1u}},  /* never */
    {{100, 100, 100}, {400, 400, 400}, {400, 400, 900}, 6000, {96, -1u, -1u}},
    {{100, 100, 100}, {1000, 1000, 1000}, {400, 400, 400}, 0.001, {96, 1, 1}},
};

static void list_trials(const timing *x, vpps_trial *out) {
    uint32_t n = 0;
    for (int i = 0; i < TILES; i++)
        out[n++] = (vpps_trial){.product = "tile", .vectors = tiles[i], .ns_per_vector = x->tile[i]};
    for (int i = 0; i < COUNTS; i++)
        out[n++] = (vpps_trial){.product = "rows", .vectors = counts[i], .ns_per_vector = x->rows[i]};
    for (int i = 0; i < COUNTS; i++)
        out[n++] = (vpps_trial){.product = "copy", .vectors = counts[i], .ns_per_vector = x->copy[i]};
    out[n++] = (vpps_trial){.product = "transpose", .vectors = 1, .ns_per_vector = x->transpose};
    for (uint32_t i = 0; i < n; i++) out[i].rows = out[i].cols = 64;
}

START_TEST(times_ask_for_a_choice)
    {
        const timing *x = &cases[_i];
        vpps_trial trials[TRIALS] = {{.size = sizeof *trials}};
        list_trials(x, trials);
        const vpps_cpu_choice c = vpps_cpu_choose_ways(trials, TRIALS);
        ck_assert_uint_eq(c.tile, x->choice.tile);
        ck_assert_uint_eq(c.few, x->choice.few);
        ck_assert_uint_eq(c.pays, x->choice.pays);
        uint32_t n_tiles = 0;
        for (uint32_t i = 0; i < TRIALS; i++) n_tiles += i < TILES && trials[i].state == VPPS_TRIAL_CURRENT;
        ck_assert_uint_eq(n_tiles, 1);
        for (int i = 0; i < COUNTS; i++)
            ck_assert_int_eq(trials[TILES + i].state == VPPS_TRIAL_CURRENT,
                             trials[TILES + COUNTS + i].state != VPPS_TRIAL_CURRENT);
        ck_assert_uint_eq(trials[TRIALS - 1].vectors, x->choice.pays);
    }
END_TEST

START_TEST(without_times_the_table)
    {
        const vpps_cpu_choice c = vpps_cpu_choose_ways(NULL, 0);
        ck_assert_int_eq(memcmp(&c, &vpps_cpu_defaults, sizeof c), 0);
    }
END_TEST

/* ---------------------------------------------------------------- as text */

static void open_tuning(vpps_cpu_tuning *t) {
    *t = (vpps_cpu_tuning){.n_shapes = 1};
    t->shapes = malloc(sizeof *t->shapes);
    ck_assert_ptr_nonnull(t->shapes);
    t->shapes[0] = (vpps_cpu_shape){64, 64};
    vpps_profile_splits(&t->splits);
}

static bool reads(const char *text) {
    vpps_cpu_tuning t;
    open_tuning(&t);
    char *copy = strdup(text);
    ck_assert_ptr_nonnull(copy);
    const bool ok = vpps_cpu_read_trials(&t, copy);
    if (!ok) ck_assert_uint_eq(t.n_trials, 0);
    free(copy);
    vpps_cpu_tuning_free(&t);
    return ok;
}

START_TEST(trials_are_text_and_back)
    {
        vpps_cpu_tuning t, back;
        open_tuning(&t);
        t.trials = calloc(TRIALS, sizeof *t.trials);
        ck_assert_ptr_nonnull(t.trials);
        t.n_trials = TRIALS;
        list_trials(&cases[3], t.trials);
        for (uint32_t i = 0; i < t.splits.n; i++) t.splits.trials[i].ns_per_node = 10.5 - i;
        t.splits.trials[2].state = VPPS_TRIAL_CURRENT;
        char *text = vpps_cpu_write_trials(&t);
        ck_assert_ptr_nonnull(text);
        open_tuning(&back);
        ck_assert(vpps_cpu_read_trials(&back, text));
        free(text);
        ck_assert_uint_eq(back.n_trials, TRIALS);
        for (uint32_t i = 0; i < TRIALS; i++) {
            ck_assert_str_eq(back.trials[i].product, t.trials[i].product);
            ck_assert_uint_eq(back.trials[i].vectors, t.trials[i].vectors);
            ck_assert_double_eq(back.trials[i].ns_per_vector, t.trials[i].ns_per_vector);
        }
        ck_assert_int_eq(back.splits.trials[2].state, VPPS_TRIAL_REMEMBERED);
        ck_assert_double_eq(back.splits.trials[1].ns_per_node, 9.5);
        vpps_cpu_tuning_free(&t);
        vpps_cpu_tuning_free(&back);
    }
END_TEST

#define SPLITS "split size 3.0 *\nsplit rows 4.0\nsplit vertices 5.0\n"

START_TEST(other_text_is_refused)
    {
        ck_assert(reads(SPLITS));
        ck_assert(reads("product 64 64 tile 96 12.5\n" SPLITS));
        static const char *const others[] = {
            "",
            "0 1",
            "product 64 64 tile 96 12.5\n", /* no split is chosen */
            SPLITS "split rows 4.0 *\n",    /* two are */
            "split columns 4.0 *\n",
            "split size 0 *\n",
            "product 64 128 tile 96 12.5\n" SPLITS, /* another model's */
            "product 64 64 guess 96 12.5\n" SPLITS,
            "product 64 64 tile 96\n" SPLITS,
            "product 64 64 tile 96 -12.5\n" SPLITS,
            "product 64 64 tile 96 nan\n" SPLITS,
            "product 64 64 tile 96 12.5 more\n" SPLITS,
        };
        for (size_t i = 0; i < VPPS_COUNT(others); i++) ck_assert_msg(!reads(others[i]), "%s", others[i]);
    }
END_TEST

/* ---------------------------------------------------------------- a handle's */

/* Trials of products and of splits, and how many of them are in that state. */
static uint32_t count_trials(vpps_handle *h, vpps_trial_state state, uint32_t *in_state, bool *done) {
    vpps_trial trials[200] = {{.size = sizeof *trials}};
    uint32_t n = VPPS_COUNT(trials);
    TEST_OK(vpps_handle_trials(h, trials, &n, done));
    ck_assert_uint_le(n, VPPS_COUNT(trials));
    *in_state = 0;
    for (uint32_t i = 0; i < n; i++) {
        ck_assert(trials[i].product || trials[i].split);
        *in_state += trials[i].state == state;
    }
    return n;
}

static void open_with(small_network *n, vpps_handle **h, vpps_options o) {
    sn_open(n, 1);
    TEST_OK(vpps_handle_create(h, n->model, &o));
}

static void open_handle(small_network *n, vpps_handle **h, uint32_t vps, bool tune, bool no_tuning) {
    vpps_options o = sn_options(vps, VPPS_SGD);
    o.tune = tune;
    o.no_tuning = no_tuning;
    open_with(n, h, o);
}

/* How many trials a handle of so many VPs has without measuring; `remembered` of them in that state. */
static uint32_t known_trials(uint32_t vps, bool no_tuning, uint32_t *remembered) {
    small_network n;
    vpps_handle *h;
    bool done;
    open_handle(&n, &h, vps, false, no_tuning);
    const uint32_t trials = count_trials(h, VPPS_TRIAL_REMEMBERED, remembered, &done);
    ck_assert(done);
    TEST_OK(vpps_fb(h, n.g, sn_build(&n, 0, 1), NULL));
    vpps_handle_destroy(h);
    sn_close(&n);
    return trials;
}

/* Trains with options.tune until the choice is made; the number of batches. */
static uint32_t tune(uint32_t vps) {
    small_network n;
    vpps_handle *h;
    uint32_t batches = 0, chosen;
    bool done = false;
    open_handle(&n, &h, vps, true, false);
    for (; count_trials(h, VPPS_TRIAL_CURRENT, &chosen, &done), !done; batches++)
        TEST_OK(vpps_fb(h, n.g, sn_build(&n, batches % 4, 1), NULL));
    vpps_handle_destroy(h);
    sn_close(&n);
    return batches;
}

START_TEST(the_cache_remembers)
    {
        uint32_t remembered;
        char entry[600];
        cache_folder_make();
        ck_assert_uint_eq(known_trials(2, false, &remembered), 0); /* training measures nothing */
        ck_assert_int_eq(cache_folder_count(NULL, 0), 0);
        ck_assert_uint_gt(tune(2), 3 * VPPS_TRIAL_BATCHES);
        ck_assert_int_eq(cache_folder_count(entry, sizeof entry), 1);
        ck_assert_uint_gt(known_trials(2, false, &remembered), 3);
        ck_assert_uint_gt(remembered, 1);
        ck_assert_uint_eq(tune(2), 0);                             /* it is known */
        ck_assert_uint_eq(known_trials(2, true, &remembered), 0);  /* no_tuning */
        ck_assert_uint_eq(known_trials(1, false, &remembered), 0); /* another number of VPs */

        size_t bytes;
        char *file = cache_folder_load(entry, &bytes);
        file[bytes - 3] ^= 1;
        cache_folder_store(entry, file, bytes);
        free(file);
        ck_assert_uint_eq(known_trials(2, false, &remembered), 0); /* damaged: as good as none */
        ck_assert_uint_gt(tune(2), 0);
        ck_assert_uint_gt(known_trials(2, false, &remembered), 3);
        ck_assert_uint_eq(tune(1), 0); /* one VP: nothing to share out, so no batch is needed */
        ck_assert_uint_gt(known_trials(1, false, &remembered), 3);
        cache_folder_remove();
    }
END_TEST

START_TEST(without_a_cache_it_goes_on)
    {
        uint32_t remembered;
        setenv("VPPS_CACHE_DIR", "/dev/null/nowhere", 1);
        ck_assert_uint_gt(tune(2), 0);
        ck_assert_uint_eq(known_trials(2, false, &remembered), 0);
    }
END_TEST

/* ---------------------------------------------------------------- what no choice changes */

static vpps_cpu *cpu_of(vpps_handle *h) { return (vpps_cpu *)h->device; }

static void choose(vpps_handle *h, const small_network *n, vpps_cpu_choice c) {
    for (uint32_t p = 0; p < n->model->n_params; p++) cpu_of(h)->choices[p] = c;
}

/* Is a matrix's copy multiplied with in the latest batch? */
static bool used_copies(vpps_handle *h, vpps_param matrix) {
    return cpu_of(h)->matrices[matrix].wanted == cpu_of(h)->launch;
}

/* Small and large batches in turn, in fp32 and in bf16x3: a copy that is not made anew while batches do without it is made again when one wants it. */
START_TEST(copies_are_of_the_values_as_they_are)
    {
        const vpps_cpu_choice choice = {96, 1, 7};
        uint32_t with = 0, without = 0;
        small_network n, again;
        vpps_handle *h, *fresh;
        vpps_options o = sn_options(1 + (uint32_t)_i % 3, VPPS_SGD);
        o.no_tuning = true;
        if (_i >= 3) o.precision = VPPS_PRECISION_BF16X3;
        open_with(&n, &h, o);
        choose(h, &n, choice);
        open_with(&again, &fresh, o);
        choose(fresh, &again, choice);
        for (uint32_t batch = 0; batch < 24; batch++) {
            TEST_OK(vpps_fb(h, n.g, sn_build(&n, batch, 1), NULL));
            TEST_OK(vpps_fb(fresh, again.g, sn_build(&again, batch, 1), NULL));
            TEST_OK(vpps_read_parameters(fresh));
            TEST_OK(vpps_write_parameters(fresh)); /* which no copy outlives */
            with += used_copies(h, n.U);
            without += !used_copies(h, n.U);
        }
        if (_i < 3 || cpu_of(h)->precision.unit.product_t) { /* else they are multiplied with always */
            ck_assert_uint_gt(with, 2);
            ck_assert_uint_gt(without, 2);
        }
        TEST_OK(vpps_read_parameters(h));
        size_t count;
        float *a = sn_values(&n, &count), *b = sn_values(&again, &count);
        ck_assert_int_eq(memcmp(a, b, count * sizeof *a), 0);
        free(a);
        free(b);
        vpps_handle_destroy(h);
        vpps_handle_destroy(fresh);
        sn_close(&n);
        sn_close(&again);
    }
END_TEST

/* Vectors at a time are no part of a result. */
START_TEST(tiles_give_the_same_bits)
    {
        static const uint32_t sizes[] = {96, 6, 1};
        float *values[VPPS_COUNT(sizes)];
        size_t count = 0;
        for (size_t i = 0; i < VPPS_COUNT(sizes); i++) {
            small_network n;
            vpps_handle *h;
            open_handle(&n, &h, 1, false, true);
            choose(h, &n, (vpps_cpu_choice){sizes[i], 2, 4});
            for (uint32_t batch = 0; batch < 8; batch++) TEST_OK(vpps_fb(h, n.g, sn_build(&n, batch, 1), NULL));
            TEST_OK(vpps_read_parameters(h));
            values[i] = sn_values(&n, &count);
            vpps_handle_destroy(h);
            sn_close(&n);
        }
        for (size_t i = 1; i < VPPS_COUNT(sizes); i++)
            ck_assert_msg(!memcmp(values[0], values[i], count * sizeof(float)), "tiles of %u", sizes[i]);
        for (size_t i = 0; i < VPPS_COUNT(sizes); i++) free(values[i]);
    }
END_TEST

int main(void) {
    Suite *s = suite_create("tuning");
    TCase *t = tcase_create("tuning");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, times_ask_for_a_choice, 0, VPPS_COUNT(cases));
    tcase_add_test(t, without_times_the_table);
    tcase_add_test(t, trials_are_text_and_back);
    tcase_add_test(t, other_text_is_refused);
    tcase_add_test(t, the_cache_remembers);
    tcase_add_test(t, without_a_cache_it_goes_on);
    tcase_add_loop_test(t, copies_are_of_the_values_as_they_are, 0, 6);
    tcase_add_test(t, tiles_give_the_same_bits);
    suite_add_tcase(s, t);
    return test_main(s);
}
