/* test_slices.c - classifier heads in slices: what lies where, which limits of the pool slices meet, and the message if nothing does. */
#include "common/testing.h"
#include "subjects.h"

/* ---------------------------------------------------------------- a language model of plain operations */

enum { WORDS = 20, HIDDEN = 8, MOST_TERMS = 200 };

typedef struct batch {
    vpps_model *model;
    vpps_graph *g;
    vpps_node loss;
} batch;

/* Builds sentences: chains whose every word, or last word, is classified; the loss is the sum over all. */
static void open_batch(batch *b, uint32_t sentences, uint32_t length, uint32_t classes, bool last_only) {
    vpps_node terms[MOST_TERMS];
    uint32_t n = 0;
    TEST_OK(vpps_model_create(&b->model, 1));
    const vpps_param E = add_lookup(b->model, "E", WORDS, HIDDEN, 1), W = add_matrix(b->model, "W", HIDDEN, HIDDEN),
                     U = add_matrix(b->model, "U", HIDDEN, HIDDEN), C = add_matrix(b->model, "C", classes, HIDDEN),
                     bias = add_vector(b->model, "bias", classes);
    TEST_OK(vpps_graph_create(&b->g, b->model));
    for (uint32_t s = 0; s < sentences; s++) {
        vpps_node h = vpps_tanh(b->g, vpps_lookup(b->g, E, s % WORDS));
        for (uint32_t t = 0; t < length; t++) {
            const vpps_node x = vpps_lookup(b->g, E, (3 * s + t) % WORDS);
            h = vpps_tanh(b->g, vpps_affine2(b->g, VPPS_NO_PARAM, W, x, U, h));
            if (last_only && t + 1 < length) continue;
            ck_assert_uint_lt(n, MOST_TERMS);
            terms[n++] = vpps_cross_entropy(b->g, vpps_affine1(b->g, bias, C, h), (s + t) % classes);
        }
    }
    b->loss = vpps_sum(b->g, n, terms);
}

static void close_batch(batch *b) {
    vpps_graph_destroy(b->g);
    vpps_model_destroy(b->model);
}

static const way machines[] = {{.n_vps = 2, .groups = 1}, {.n_vps = 4, .groups = 2}, {.n_vps = 1, .groups = 1}};

/* Schedules the batch, which must succeed, and verifies the script. */
static void open_job(job *j, const batch *b, way w) {
    TEST_OK(job_open(j, b->g, b->loss, w, 5));
    TEST_OK(verify_subject(&j->subject));
}

static uint32_t words_taken(const batch *b, way w) {
    AT_END(job_close) job j;
    open_job(&j, b, w);
    const uint32_t words = j.batch->pool_words;
    return words;
}

/* ---------------------------------------------------------------- places */

/* The blocks of one cell. */
typedef struct extent {
    uint32_t n, vertices, least, most; /* number of blocks; their vertices: of all, least and most of one */
    bool together;                     /* whether all of them share a word of their kept values */
} extent;

static extent extent_of(const job *j, uint32_t cell) {
    const vpps_task_header *h = vpps_task_header_of(j->subject.script);
    const uint32_t words = j->batch->cells[cell]->kept_words[0];
    uint32_t last_start = 0, first_end = UINT32_MAX;
    extent e = {.least = UINT32_MAX};
    for (uint32_t i = 0; i < h->n_blocks; i++) {
        const vpps_block *b = vpps_block_at(j->subject.script, i);
        if (b->cell != cell || !b->n) continue;
        e.n++;
        e.vertices += b->n;
        e.least = vpps_min_u32(e.least, b->n);
        e.most = vpps_max_u32(e.most, b->n);
        last_start = vpps_max_u32(last_start, b->kept[0]);
        first_end = vpps_min_u32(first_end, b->kept[0] + b->n * words);
    }
    e.together = last_start < first_end;
    return e;
}

TEST_GROUP("slices", .seconds = 60);

TEST(slices_keep_in_the_same_words) {
    enum { LENGTH = 22, SLICES = 4 };
    AT_END(close_batch) batch b;
    AT_END(job_close) job j;
    uint32_t heads = 0;
    bool together = false;
    open_batch(&b, 1, LENGTH, 300, false);
    open_job(&j, &b, (way){.n_vps = 2, .groups = 1, .slices = SLICES});
    ck_assert_uint_eq(j.batch->n_slices, SLICES);
    ck_assert_uint_eq(j.batch->n_waves, 1);
    for (uint32_t cell = 0; cell < j.batch->n_cells; cell++) {
        const extent e = extent_of(&j, cell);
        if (e.n == 1) continue;
        heads++;
        ck_assert_uint_eq(e.n, SLICES);
        ck_assert_uint_eq(e.vertices, LENGTH);
        ck_assert_uint_le(e.most, e.least + 1);
        together |= e.together;
    }
    ck_assert_uint_eq(heads, 2); /* affine and cross_entropy */
    ck_assert(together);
    ck_assert_uint_lt(2 * j.batch->pool_words, words_taken(&b, (way){.n_vps = 2, .groups = 1}));
}

TEST(there_are_no_more_slices_than_heads) {
    AT_END(close_batch) batch b;
    job j;
    open_batch(&b, 3, 5, 40, false);
    open_job(&j, &b, (way){.n_vps = 2, .groups = 1, .slices = 1000});
    ck_assert_uint_eq(j.batch->n_slices, 15);
    job_close(&j);
    open_job(&j, &b, (way){.n_vps = 2, .groups = 1, .waves = 1000, .slices = 1000});
    ck_assert_uint_eq(j.batch->n_waves, 3);
    ck_assert_uint_eq(j.batch->n_slices, 5);
    job_close(&j);
    const vpps_node wanted = b.loss;
    TEST_OK(job_open(&j, b.g, b.loss,
                     (way){.n_vps = 2, .slices = 3, .inference = true, .wanted = &wanted, .n_wanted = 1}, 5));
    ck_assert_uint_eq(j.batch->n_slices, 1); /* nothing waits for a backward pass */
    job_close(&j);
}

/* ---------------------------------------------------------------- limits */

/* One input is one wave, whatever the limit. */
TEST_EACH(slices_meet_what_waves_cannot, 0, VPPS_COUNT(machines)) {
    way w = machines[_i];
    AT_END(close_batch) batch b;
    job j;
    open_batch(&b, w.groups, 20, 400, false); /* one input for each group */
    const uint32_t whole = words_taken(&b, w);
    w.pool_words = whole / 2;
    open_job(&j, &b, w);
    ck_assert_uint_eq(j.batch->n_waves, 1);
    ck_assert_uint_gt(j.batch->n_slices, 1);
    ck_assert_uint_le(j.batch->pool_words, w.pool_words);
    job_close(&j);
    w.pool_words = whole; /* which is enough */
    open_job(&j, &b, w);
    ck_assert_uint_eq(j.batch->n_slices, 1);
    job_close(&j);
}

TEST_EACH(what_keeps_more_is_taken_apart, 0, VPPS_COUNT(machines)) {
    way w = machines[_i];
    for (uint32_t k = 0; k < 2; k++) {
        AT_END(close_batch) batch b;
        AT_END(job_close) job j;
        open_batch(&b, 12, 10, k ? 2 : 400, k);
        w.pool_words = 0;
        const uint32_t whole = words_taken(&b, w);
        w.pool_words = whole / 2;
        open_job(&j, &b, w);
        ck_assert_msg(
            k ? j.batch->n_waves > 1 && j.batch->n_slices == 1 : j.batch->n_waves == 1 && j.batch->n_slices > 1,
            "%s classifiers: %u waves of %u slices", k ? "small" : "large", j.batch->n_waves, j.batch->n_slices);
    }
}

/* Returns the bytes that the message asks for if the pool has so many words; 0: the pool suffices. */
static unsigned long long bytes_asked(vpps_graph *g, vpps_node loss, way w, uint32_t pool_words, uint64_t seed) {
    unsigned long long bytes = 0;
    AT_END(job_close) job j;
    w.pool_words = pool_words;
    const vpps_status status = job_open(&j, g, loss, w, seed);
    if (status == VPPS_OK) {
        TEST_OK(verify_subject(&j.subject));
        ck_assert_uint_le(j.batch->pool_words, pool_words);
    } else {
        ck_assert_msg(status == VPPS_POOL, "%s", vpps_error_message());
        ck_assert_msg(sscanf(vpps_error_message(), "the batch needs %llu bytes of the pool", &bytes) == 1, "%s",
                      vpps_error_message());
    }
    return bytes;
}

static void check_figure(vpps_graph *g, vpps_node loss, way w, uint64_t seed) {
    job j;
    TEST_OK(job_open(&j, g, loss, w, seed));
    const uint32_t parameters = j.machine.batch;
    job_close(&j);
    const unsigned long long bytes = bytes_asked(g, loss, w, parameters, seed);
    if (!bytes) return; /* a loss that keeps nothing */
    ck_assert_uint_eq(bytes_asked(g, loss, w, (uint32_t)(bytes / 4 - 1), seed), bytes);
    ck_assert_uint_eq(bytes_asked(g, loss, w, (uint32_t)(bytes / 4), seed), 0);
}

TEST_EACH(what_is_told_would_do_does_and_less_does_not, 0, VPPS_COUNT(machines)) {
    static const uint32_t shapes[][3] = {{1, 15, 200}, {6, 5, 100}, {6, 5, 2}, {1, 1, 5}};
    for (uint32_t k = 0; k < VPPS_COUNT(shapes); k++) {
        AT_END(close_batch) batch b;
        open_batch(&b, shapes[k][0], shapes[k][1], shapes[k][2], k == 2);
        check_figure(b.g, b.loss, machines[_i], 5);
    }
}

TEST(so_it_is_for_random_graphs) {
    const uint64_t first = test_seed() * 1000;
    for (uint64_t seed = first; seed < first + cases(40); seed++) {
        rg_case c;
        AT_END(rg_destroy) rg_built built;
        draw_small(&c, seed);
        TEST_OK(rg_build(&built, &c, NULL));
        check_figure(built.g[0], built.loss[0], way_of((uint32_t)(seed % TRAINING_WAYS)), seed);
    }
}

static uint32_t waves_of(const batch *b, way w) {
    AT_END(job_close) job j;
    open_job(&j, b, w);
    const uint32_t waves = j.batch->n_waves;
    return waves;
}

/* As many waves as make a wave small enough, unless its steps would get too narrow, and no more; but as many as requested. */
TEST_EACH(waves_stay_in_caches, 0, VPPS_COUNT(machines)) {
    enum { SENTENCES = 24, MANY = 1 << 30 };
    AT_END(close_batch) batch b;
    way w = machines[_i];
    open_batch(&b, SENTENCES, 5, 10, false);
    ck_assert_uint_eq(waves_of(&b, w), 1);
    w.wave_rule = (vpps_wave_rule){.cached_words = MANY, .cached_vertices = 1};
    ck_assert_uint_eq(waves_of(&b, w), 1);
    w.wave_rule.cached_words = 1;
    for (uint32_t n = 1; n < 4; n++) { /* a step has about as many vertices as there are sentences */
        w.wave_rule.cached_vertices = n;
        const uint32_t waves = waves_of(&b, w), wide = SENTENCES / w.n_vps / n;
        ck_assert_msg(waves >= wide / 2 + 1 && waves <= 2 * wide, "%u waves; expected about %u", waves, wide);
    }
    w.wave_rule.cached_vertices = MANY;
    ck_assert_uint_eq(waves_of(&b, w), 1);
    w.wave_rule.cached_vertices = 1;
    w.waves = 2;
    ck_assert_uint_eq(waves_of(&b, w), 2);
}

/* Returns whether any stage's rows are shared out, in a batch of classifiers with enough rows. */
static bool by_rows(uint32_t sentences, uint32_t length, uint32_t wide) {
    AT_END(close_batch) batch b;
    AT_END(job_close) job j;
    bool any = false;
    open_batch(&b, sentences, length, 40, false);
    open_job(&j, &b, (way){.n_vps = 2, .groups = 1, .wide = wide});
    for (uint32_t i = 0; i < j.batch->n_cells; i++)
        for (uint32_t s = 0; s < j.batch->cells[i]->n_stages; s++) any |= j.batch->cells[i]->programs[s].rows;
    return any;
}

TEST(wide_levels_are_shared_out_by_vertices) { ck_assert(by_rows(2, 4, 0) && by_rows(1, 7, 4) && !by_rows(2, 4, 4)); }
