/* test_gpu_handle.c - handles on the GPU device: life, pipeline, profile, memory, and moving between devices. */
#include "common/episode.h"
#include "common/gpu_tests.h"
#include "common/testing.h"
#include "gpu_trees.h"
#include "runtime/gpu/gpu.h"
#include "runtime/handle.h"
#include "runtime/simt/simt.h"

#include <dirent.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HIDDEN = 16, LINES = 64 };

/* What the engine told. */
typedef struct story {
    char lines[LINES][256];
    uint32_t n;
} story;

static void note(void *context, const char *line) {
    story *s = context;
    if (s->n < LINES) snprintf(s->lines[s->n++], sizeof s->lines[0], "%s", line);
}

static vpps_options options_for(const char *device, bool tuning) {
    vpps_options o;
    vpps_options_default(&o);
    o.device = device;
    o.vps = strcmp(device, "cpu") ? 0 : 2;
    o.no_tuning = !tuning;
    o.pool_bytes = 32 << 20;
    o.verify = true;
    return o;
}

static vpps_handle *open_handle(gpu_trees *t, const vpps_options *o) {
    vpps_handle *h = NULL;
    TEST_OK(vpps_handle_create(&h, t->model, o));
    return h;
}

static float step(vpps_handle *h, gpu_trees *t, uint32_t batch) {
    float loss;
    TEST_OK(vpps_fb(h, t->g, trees_build(t, batch), NULL));
    TEST_OK(vpps_sync_latest_loss(h, &loss));
    return loss;
}

/* A cache of this test's own, away from the others'. */
static void fresh_cache(char *folder) {
    strcpy(folder, "/tmp/vpps-gpu-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("VPPS_CACHE_DIR", folder, 1);
}

/* Calls see(path) for every file in the folder. */
static void each_file(const char *folder, void (*see)(const char *path)) {
    DIR *d = opendir(folder);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] != '.') see(path);
    }
    closedir(d);
}

static void remove_file(const char *path) { ck_assert_int_eq(unlink(path), 0); }
static void remove_folder(const char *folder) {
    each_file(folder, remove_file);
    ck_assert_int_eq(rmdir(folder), 0);
}

/* A byte in the middle of every small file, which tuning entries are. */
static void damage_small(const char *path) {
    struct stat s;
    ck_assert_int_eq(stat(path, &s), 0);
    if (s.st_size > 4096) return;
    FILE *f = fopen(path, "r+b");
    ck_assert_ptr_nonnull(f);
    fseek(f, -1, SEEK_END);
    const int last = fgetc(f);
    fseek(f, -1, SEEK_END);
    fputc(last ^ 1, f);
    fclose(f);
}

/* ---------------------------------------------------------------- life */

START_TEST(creating_and_destroying_leaks_nothing)
    {
        gpu_trees t;
        const vpps_options o = options_for(test_gpu_device(), false);
        trees_open(&t, HIDDEN, HIDDEN);
        const uint32_t before = gpu_is_simulated() ? vpps_simt_live_allocations() : 0;
        for (uint32_t i = 0; i < 20; i++) {
            vpps_handle *h = open_handle(&t, &o);
            if (i % 3) step(h, &t, i);
            if (i % 3 == 2) TEST_OK(vpps_fb(h, t.g, trees_build(&t, 1), NULL)); /* destroyed in flight */
            vpps_handle_destroy(h);
        }
        if (gpu_is_simulated()) ck_assert_uint_eq(vpps_simt_live_allocations(), before);
        trees_close(&t);
    }
END_TEST

/* Two handles with a batch in flight each, on both devices: the losses and parameters of each alone, to the bit. */
START_TEST(two_handles_in_flight)
    {
        enum { BATCHES = 4 };
        gpu_trees t[2];
        vpps_handle *h[2];
        float alone[2][BATCHES], stale;
        float *values[2] = {NULL, NULL};
        size_t count;
        const vpps_options o = options_for(_i ? "cpu" : test_gpu_device(), false);
        for (uint32_t i = 0; i < 2; i++) {
            trees_open(&t[i], i ? 40 : HIDDEN, HIDDEN);
            h[i] = open_handle(&t[i], &o);
            for (uint32_t b = 0; b < BATCHES; b++) alone[i][b] = step(h[i], &t[i], b);
            TEST_OK(vpps_read_parameters(h[i]));
            values[i] = model_values(t[i].model, &count);
            vpps_handle_destroy(h[i]);
            trees_close(&t[i]);
        }
        for (uint32_t i = 0; i < 2; i++) {
            trees_open(&t[i], i ? 40 : HIDDEN, HIDDEN);
            h[i] = open_handle(&t[i], &o);
        }
        for (uint32_t b = 0; b <= BATCHES; b++) {
            for (uint32_t i = 0; i < 2; i++) {
                if (b < BATCHES)
                    TEST_OK(vpps_fb(h[i], t[i].g, trees_build(&t[i], b), &stale));
                else
                    TEST_OK(vpps_sync_latest_loss(h[i], &stale));
                if (b) ck_assert_float_eq(stale, alone[i][b - 1]);
            }
        }
        for (uint32_t i = 0; i < 2; i++) {
            TEST_OK(vpps_read_parameters(h[i]));
            float *now = model_values(t[i].model, &count);
            ck_assert_mem_eq(now, values[i], count * sizeof *now);
            free(now);
            free(values[i]);
            vpps_handle_destroy(h[i]);
            trees_close(&t[i]);
        }
    }
END_TEST

/* ---------------------------------------------------------------- the profile */

static uint32_t count_state(const vpps_trial *trials, uint32_t n, vpps_trial_state state) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++) found += trials[i].state == state;
    return found;
}

/* Trains until the choice is made; the trials. The losses must be the CPU's all the while. */
static uint32_t tune(story *s, vpps_trial *trials, uint32_t room, uint32_t *batches) {
    gpu_trees t, same;
    vpps_options o = options_for(test_gpu_device(), true), cpu = options_for("cpu", false);
    o.log = note;
    o.log_context = s;
    o.optimizer.kind = cpu.optimizer.kind = VPPS_MOMENTUM; /* whose state moves from plan to plan, too */
    o.optimizer.lr = cpu.optimizer.lr = 0.02f;
    trees_open(&t, HIDDEN, HIDDEN);
    trees_open(&same, HIDDEN, HIDDEN);
    vpps_handle *h = open_handle(&t, &o), *reference = open_handle(&same, &cpu);
    bool done = false;
    uint32_t n;
    for (*batches = 0;; (*batches)++) { /* kernels are made meanwhile, which takes as long as it takes */
        n = room;
        TEST_OK(vpps_handle_trials(h, trials, &n, &done));
        if (done) break;
        const float loss = step(h, &t, *batches), expected = step(reference, &same, *batches);
        ck_assert_msg(fabsf(loss - expected) < 1e-4f, "batch %u: %g, not %g", *batches, (double)loss, (double)expected);
    }
    const float loss = step(h, &t, *batches), expected = step(reference, &same, *batches);
    ck_assert_float_eq_tol(loss, expected, 1e-4f);
    vpps_handle_destroy(h);
    vpps_handle_destroy(reference);
    trees_close(&t);
    trees_close(&same);
    return n;
}

START_TEST(the_profile_finds_the_fastest_and_remembers_it)
    {
        char folder[64];
        vpps_trial trials[64] = {{.size = sizeof *trials}};
        story *s = calloc(1, sizeof *s);
        uint32_t batches;
        ck_assert_ptr_nonnull(s);
        fresh_cache(folder);
        uint32_t n = tune(s, trials, 64, &batches);
        ck_assert_uint_eq(n, 6); /* 1, 2, 4, 8 rows; then two more numbers of threads */
        ck_assert_uint_eq(count_state(trials, n, VPPS_TRIAL_CURRENT), 1);
        ck_assert_uint_ge(count_state(trials, n, VPPS_TRIAL_MEASURED), 3);
        ck_assert_uint_gt(trials[0].batches, 0); /* begins with the first */
        uint32_t chosen = 0;
        while (trials[chosen].state != VPPS_TRIAL_CURRENT) chosen++;
        for (uint32_t i = 0; i < n; i++) {
            if (trials[i].state == VPPS_TRIAL_MEASURED) ck_assert(trials[chosen].ns_per_node <= trials[i].ns_per_node);
            if (trials[i].state == VPPS_TRIAL_WAITING) ck_assert(trials[i].batches == 0 && trials[i].ns_per_node == 0);
        }
        uint32_t told = 0;
        for (uint32_t i = 0; i < s->n; i++) told += strstr(s->lines[i], "chosen: rpw") != NULL;
        ck_assert_uint_eq(told, 1);

        vpps_trial again[64] = {{.size = sizeof *again}}; /* another handle takes it at once */
        n = tune(s, again, 64, &batches);
        ck_assert_uint_eq(batches, 0);
        ck_assert_int_eq(again[chosen].state, VPPS_TRIAL_REMEMBERED);

        each_file(folder, damage_small);
        n = tune(s, again, 64, &batches);
        ck_assert_uint_gt(batches, 0);
        ck_assert_uint_eq(count_state(again, n, VPPS_TRIAL_REMEMBERED), 0);
        remove_folder(folder);
        free(s);
    }
END_TEST

/* ---- kernels that cannot be made */

static const char *spilling, *refused; /* of a kernel with this text */

static vpps_status load_spilling(vpps_driver *d, const char *source, const char *description,
                                 const vpps_launch_shape *shape, vpps_kernel **out, vpps_cubin_report *report) {
    if (refused && strstr(source, refused)) return vpps_fail(VPPS_POOL, "the test's compiler refuses it");
    VPPS_TRY(vpps_driver_simt.load(d, source, description, shape, out, report));
    if (strstr(source, spilling)) report->spill_bytes = 8;
    return VPPS_OK;
}

/* A handle that looks for the fastest choice with that driver. */
static vpps_handle *open_tuning(gpu_trees *t, const vpps_driver_table *driver, story *s) {
    vpps_options o = options_for("simt", true);
    o.threads = 256;
    o.log = note;
    o.log_context = s;
    trees_open(t, HIDDEN, HIDDEN);
    vpps_handle *h = open_handle(t, &o);
    h->device->table->destroy(h->device);
    TEST_OK(vpps_gpu_create(&h->device, &vpps_device_simt, driver, t->model, &o, &h->plan));
    h->machine = h->device->table->machine(h->device);
    return h;
}

/* Its device's kernels with that text spill. */
static vpps_handle *open_spilling(gpu_trees *t, const char *text, story *s) {
    static vpps_driver_table driver;
    driver = vpps_driver_simt;
    driver.load = load_spilling;
    spilling = text;
    return open_tuning(t, &driver, s);
}

/* The batch that found it out runs with the next choice. */
START_TEST(a_choice_whose_kernels_spill_is_rejected)
    {
        char folder[64];
        gpu_trees t, same;
        vpps_trial trials[8] = {{.size = sizeof *trials}};
        uint32_t n = 8;
        bool done;
        story *s = calloc(1, sizeof *s);
        vpps_options cpu = options_for("cpu", false);
        ck_assert_ptr_nonnull(s);
        fresh_cache(folder);
        vpps_handle *h = open_spilling(&t, "#define VPPS_ROW_BLOCK 1u\n", s);
        trees_open(&same, HIDDEN, HIDDEN);
        vpps_handle *reference = open_handle(&same, &cpu);
        for (uint32_t b = 0; b < 3; b++) ck_assert_float_eq_tol(step(h, &t, b), step(reference, &same, b), 1e-4f);
        TEST_OK(vpps_handle_trials(h, trials, &n, &done));
        ck_assert_int_eq(trials[0].state, VPPS_TRIAL_REJECTED);
        ck_assert_int_eq(trials[1].state, VPPS_TRIAL_CURRENT);
        ck_assert_msg(strstr(s->lines[0], "rejected: ") && strstr(s->lines[0], "8 bytes spilled"), "%s", s->lines[0]);
        vpps_handle_destroy(h);
        vpps_handle_destroy(reference);
        trees_close(&same);
        trees_close(&t);
        remove_folder(folder);
        free(s);
    }
END_TEST

/* Nothing was started: what was trained is there, and other batches run. */
START_TEST(a_batch_without_a_kernel_leaves_the_handle_whole)
    {
        char folder[64];
        gpu_trees t, same;
        story *s = calloc(1, sizeof *s);
        vpps_options cpu = options_for("cpu", false);
        ck_assert_ptr_nonnull(s);
        fresh_cache(folder);
        vpps_handle *h = open_spilling(&t, "no kernel has this", s);
        h->device->profile.done = true;
        trees_open(&same, HIDDEN, HIDDEN);
        vpps_handle *reference = open_handle(&same, &cpu);
        ck_assert_float_eq_tol(step(h, &t, 0), step(reference, &same, 0), 1e-4f);
        refused = "vpps_kernel";
        const vpps_node loss = trees_build(&t, 1);
        float value, *const outs[] = {&value};
        TEST_FAILS(vpps_forward(h, t.g, 1, &loss, outs), VPPS_POOL, "the test's compiler refuses it");
        refused = NULL;
        ck_assert_float_eq_tol(step(h, &t, 2), step(reference, &same, 2), 1e-4f);
        vpps_handle_destroy(h);
        vpps_handle_destroy(reference);
        trees_close(&same);
        trees_close(&t);
        remove_folder(folder);
        free(s);
    }
END_TEST

START_TEST(where_all_kernels_spill_one_is_taken)
    {
        char folder[64];
        gpu_trees t, same;
        vpps_trial trials[8] = {{.size = sizeof *trials}};
        uint32_t n = 8;
        bool done;
        story *s = calloc(1, sizeof *s);
        vpps_options cpu = options_for("cpu", false);
        ck_assert_ptr_nonnull(s);
        fresh_cache(folder);
        vpps_handle *h = open_spilling(&t, "vpps_kernel", s);
        trees_open(&same, HIDDEN, HIDDEN);
        vpps_handle *reference = open_handle(&same, &cpu);
        for (uint32_t b = 0; b < 2; b++) ck_assert_float_eq_tol(step(h, &t, b), step(reference, &same, b), 1e-4f);
        TEST_OK(vpps_handle_trials(h, trials, &n, &done));
        ck_assert(done);
        ck_assert_int_eq(trials[0].state, VPPS_TRIAL_CURRENT);
        ck_assert_uint_eq(count_state(trials, n, VPPS_TRIAL_REJECTED), n - 1);
        ck_assert_msg(s->n > 0 && strstr(s->lines[s->n - 1], "spilling"), "%s", s->lines[s->n - 1]);
        vpps_handle_destroy(h);
        vpps_handle_destroy(reference);
        trees_close(&same);
        trees_close(&t);
        remove_folder(folder);
        free(s);
    }
END_TEST

/* A compiler that takes until it is told to end. What it was asked for is looked at. */
static struct {
    atomic_bool may_end;
    atomic_uint asked, alike; /* how often; with the source that was loaded next */
    char *source;
} slow;

static vpps_status prepare_slowly(vpps_driver *d, const char *source, const char *description,
                                  vpps_cubin_report *report) {
    (void)d, (void)description;
    *report = (vpps_cubin_report){.registers = 100};
    slow.source = strdup(source);
    slow.asked++;
    while (!atomic_load(&slow.may_end)) nanosleep(&(struct timespec){0, 1000000}, NULL);
    return VPPS_OK;
}

static vpps_status load_after(vpps_driver *d, const char *source, const char *description,
                              const vpps_launch_shape *shape, vpps_kernel **out, vpps_cubin_report *report) {
    if (slow.source && !strcmp(slow.source, source)) slow.alike++;
    free(slow.source);
    slow.source = NULL;
    return vpps_driver_simt.load(d, source, description, shape, out, report);
}

START_TEST(batches_go_on_while_the_next_kernel_is_made)
    {
        enum { MEASURED = 1 + VPPS_GPU_MEASURED, MORE = 4 };
        static vpps_driver_table driver;
        gpu_trees t;
        vpps_trial trials[8] = {{.size = sizeof *trials}};
        uint32_t n = 8;
        bool done;
        char folder[64];
        story *s = calloc(1, sizeof *s);
        ck_assert_ptr_nonnull(s);
        fresh_cache(folder);
        driver = vpps_driver_simt;
        driver.prepare = prepare_slowly;
        driver.load = load_after;
        vpps_handle *h = open_tuning(&t, &driver, s);
        for (uint32_t b = 0; b < MEASURED + MORE; b++) step(h, &t, 0);
        TEST_OK(vpps_handle_trials(h, trials, &n, &done));
        ck_assert_int_eq(trials[0].state, VPPS_TRIAL_CURRENT);
        ck_assert_uint_eq(trials[0].batches, VPPS_GPU_MEASURED); /* and those that it waited are not counted */
        atomic_store(&slow.may_end, true);
        for (uint32_t b = 0; trials[1].state != VPPS_TRIAL_CURRENT; b++) {
            ck_assert_uint_lt(b, 10000);
            step(h, &t, 0);
            TEST_OK(vpps_handle_trials(h, trials, &n, &done));
        }
        ck_assert_uint_eq(slow.asked, 1);
        ck_assert_uint_eq(slow.alike, 1); /* it was the kernel that was needed */
        vpps_handle_destroy(h);
        trees_close(&t);
        remove_folder(folder);
        free(s);
    }
END_TEST

/* Cells of the n-th kernel that was made; 0: none was. */
static unsigned cells_of_kernel(const story *s, uint32_t n) {
    unsigned cells = 0;
    for (uint32_t i = 0; i < s->n; i++)
        if (sscanf(s->lines[i], "kernel of %u cells", &cells) == 1 && n-- == 0) return cells;
    return 0;
}

/* Batches that take turns have no kernel made again, and none has the other's cells. */
START_TEST(training_and_inference_have_kernels_of_their_own)
    {
        gpu_trees t;
        float value, *const outs[] = {&value};
        story *s = calloc(1, sizeof *s);
        ck_assert_ptr_nonnull(s);
        vpps_options o = options_for("simt", false);
        o.log = note;
        o.log_context = s;
        trees_open(&t, HIDDEN, HIDDEN);
        vpps_handle *h = open_handle(&t, &o);
        for (uint32_t b = 0; b < 3; b++) {
            step(h, &t, 0);
            const vpps_node loss = trees_build(&t, 0);
            TEST_OK(vpps_forward(h, t.g, 1, &loss, outs));
        }
        ck_assert_uint_eq(cells_of_kernel(s, 0), 2);
        ck_assert_uint_eq(cells_of_kernel(s, 1), 3); /* and a sum */
        ck_assert_uint_eq(cells_of_kernel(s, 2), 0);
        vpps_handle_destroy(h);
        trees_close(&t);
        free(s);
    }
END_TEST

/* ---------------------------------------------------------------- groups of VPs */

enum { SENTENCES = 16, SIZE = 64 };

typedef struct chains {
    vpps_model *model;
    vpps_graph *g;
    vpps_param U;
} chains;

static void chains_open(chains *c) {
    TEST_OK(vpps_model_create(&c->model, 5));
    TEST_OK(vpps_add_matrix(c->model, &c->U, "U", SIZE, SIZE, NULL));
    TEST_OK(vpps_graph_create(&c->g, c->model));
}

static void chains_close(chains *c) {
    vpps_graph_destroy(c->g);
    vpps_model_destroy(c->model);
}

/* Trains on a batch of so many recurrences. */
static float chains_step(vpps_handle *h, chains *c, uint32_t n) {
    vpps_node terms[SENTENCES];
    float x[SIZE], loss;
    vpps_graph_clear(c->g);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < SIZE; k++) x[k] = sinf((float)(i * SIZE + k));
        vpps_node state = vpps_input(c->g, SIZE, 1, x);
        for (uint32_t t = 0; t < 2 + i % 2; t++)
            state = vpps_tanh(c->g, vpps_affine1(c->g, VPPS_NO_PARAM, c->U, state));
        terms[i] = vpps_dot(c->g, state, state);
    }
    TEST_OK(vpps_fb(h, c->g, vpps_average(c->g, n, terms), NULL));
    TEST_OK(vpps_sync_latest_loss(h, &loss));
    return loss;
}

/* A handle on 16 VPs, which have 16 rows each in four groups, and the CPU's. */
static void open_grouped(chains *c, chains *same, uint32_t groups, story *s, vpps_handle **h, vpps_handle **reference) {
    vpps_options o = options_for(test_gpu_device(), false), cpu = options_for("cpu", false);
    setenv("VPPS_SIMT_SMS", "16", 1);
    o.vps = 16;
    o.rpw = 1;
    o.threads = 64;
    o.groups = groups;
    o.log = note;
    o.log_context = s;
    o.optimizer.lr = cpu.optimizer.lr = 0.01f;
    chains_open(c);
    chains_open(same);
    TEST_OK(vpps_handle_create(h, c->model, &o));
    TEST_OK(vpps_handle_create(reference, same->model, &cpu));
}

static void close_grouped(chains *c, chains *same, vpps_handle *h, vpps_handle *reference) {
    vpps_handle_destroy(h);
    vpps_handle_destroy(reference);
    chains_close(c);
    chains_close(same);
}

/* Four inputs each, and once there are more groups, as many for fewer inputs; every number's kernel is made once. */
START_TEST(groups_follow_the_batch)
    {
        static const struct {
            uint32_t inputs, groups;
        } batches[] = {{1, 1}, {7, 1}, {8, 2}, {15, 2}, {7, 2}, {16, 4}, {15, 4}, {1, 4}, {16, 4}};
        chains c, same;
        vpps_handle *h, *reference;
        story *s = calloc(1, sizeof *s);
        ck_assert_ptr_nonnull(s);
        open_grouped(&c, &same, 0, s, &h, &reference);
        for (size_t b = 0; b < VPPS_COUNT(batches); b++) {
            vpps_stats stats = {.size = sizeof stats};
            const float expected = chains_step(reference, &same, batches[b].inputs);
            ck_assert_float_eq_tol(chains_step(h, &c, batches[b].inputs), expected, 1e-4f);
            TEST_OK(vpps_handle_stats(h, &stats));
            ck_assert_uint_eq(stats.groups, batches[b].groups);
        }
        ck_assert_uint_gt(cells_of_kernel(s, 2), 0);
        ck_assert_uint_eq(cells_of_kernel(s, 3), 0);
        close_grouped(&c, &same, h, reference);
        free(s);
    }
END_TEST

/* Of one input, nothing but one group is tried; of some, all numbers are, in turn, and the fastest is taken. */
START_TEST(groups_by_profile)
    {
        static const uint32_t groups[] = {1, 2, 4};
        enum { NUMBERS = VPPS_COUNT(groups), BATCHES = NUMBERS * (VPPS_TRIAL_BATCHES + 1) };
        const uint32_t inputs = _i ? 8 : 1;
        chains c, same;
        vpps_handle *h, *reference;
        vpps_trial trials[1 + NUMBERS] = {{.size = sizeof *trials}};
        uint32_t n;
        bool done;
        story *s = calloc(1, sizeof *s);
        ck_assert_ptr_nonnull(s);
        open_grouped(&c, &same, VPPS_GROUPS_PROFILE, s, &h, &reference);
        for (uint32_t b = 0; b <= BATCHES; b++) {
            n = VPPS_COUNT(trials);
            TEST_OK(vpps_handle_trials(h, trials, &n, &done));
            ck_assert_uint_eq(n, 1 + NUMBERS); /* the first is of rows and threads */
            ck_assert(done == (b == BATCHES));
            const float expected = chains_step(reference, &same, inputs);
            ck_assert_float_eq_tol(chains_step(h, &c, inputs), expected, 1e-4f);
        }
        vpps_stats stats = {.size = sizeof stats};
        TEST_OK(vpps_handle_stats(h, &stats));
        for (uint32_t i = 0; i < NUMBERS; i++) {
            const vpps_trial *t = &trials[1 + i];
            ck_assert_uint_eq(t->groups, groups[i]);
            ck_assert_uint_eq(t->batches, !i || _i ? VPPS_TRIAL_BATCHES : 0);
            ck_assert((t->state == VPPS_TRIAL_CURRENT) == (stats.groups == groups[i]));
        }
        ck_assert((cells_of_kernel(s, NUMBERS - 1) > 0) == (_i > 0));
        if (!_i) ck_assert_uint_eq(cells_of_kernel(s, 1), 0);
        close_grouped(&c, &same, h, reference);
        free(s);
    }
END_TEST

/* 40 VPs hold so many matrices of this size and their transposes, 16 rows of each on 20 do not fit. */
START_TEST(groups_that_stream_are_not_tried)
    {
        enum { LARGE = 320, MATRICES = 7 };
        chains c;
        vpps_handle *h;
        vpps_param V;
        vpps_trial trials[4] = {{.size = sizeof *trials}};
        uint32_t n = VPPS_COUNT(trials);
        bool done;
        vpps_options o = options_for(test_gpu_device(), false);
        setenv("VPPS_SIMT_SMS", "40", 1);
        o.vps = 40;
        o.rpw = 1;
        o.threads = LARGE;
        o.groups = VPPS_GROUPS_PROFILE;
        chains_open(&c);
        for (uint32_t i = 0; i < MATRICES; i++) {
            char name[8];
            snprintf(name, sizeof name, "V%u", i);
            TEST_OK(vpps_add_matrix(c.model, &V, name, LARGE, LARGE, NULL));
        }
        TEST_OK(vpps_handle_create(&h, c.model, &o));
        TEST_OK(vpps_handle_trials(h, trials, &n, &done));
        ck_assert_uint_eq(n, 2);
        ck_assert(done && trials[1].groups == 1 && trials[1].state == VPPS_TRIAL_CURRENT);
        vpps_handle_destroy(h);
        chains_close(&c);
    }
END_TEST

/* ---------------------------------------------------------------- memory, devices */

START_TEST(the_pool_grows_with_the_batch)
    {
        gpu_trees t;
        vpps_options o = options_for(test_gpu_device(), false);
        o.pool_bytes = 0;
        trees_open(&t, HIDDEN, HIDDEN);
        vpps_handle *h = open_handle(&t, &o);
        step(h, &t, 0);
        vpps_stats small = {.size = sizeof small}, large = {.size = sizeof large};
        TEST_OK(vpps_handle_stats(h, &small));
        static float zeros[20000];
        vpps_graph_clear(t.g);
        vpps_node x = vpps_input(t.g, 20000, 1, zeros), y = vpps_exp(t.g, x);
        float sum;
        float *const outs[] = {&sum};
        const vpps_node total = vpps_sum_elements(t.g, y);
        TEST_OK(vpps_forward(h, t.g, 1, &total, outs));
        ck_assert_float_eq_tol(sum, 20000, 1);
        const float loss = step(h, &t, 1); /* parameters moved along */
        TEST_OK(vpps_handle_stats(h, &large));
        vpps_handle_destroy(h);
        trees_close(&t);
        trees_open(&t, HIDDEN, HIDDEN);
        o.pool_bytes = 32 << 20;
        h = open_handle(&t, &o);
        step(h, &t, 0);
        ck_assert_float_eq(step(h, &t, 1), loss);
        vpps_handle_destroy(h);
        trees_close(&t);
    }
END_TEST

START_TEST(too_small_a_pool_is_told)
    {
        gpu_trees t;
        vpps_options o = options_for(test_gpu_device(), false);
        vpps_handle *h;
        trees_open(&t, HIDDEN, HIDDEN);
        o.pool_bytes = 64;
        TEST_FAILS(vpps_handle_create(&h, t.model, &o), VPPS_POOL, "pool_bytes");
        o.pool_bytes = 6144;
        h = open_handle(&t, &o);
        TEST_FAILS(vpps_fb(h, t.g, trees_build(&t, 0), NULL), VPPS_POOL, "pool");
        vpps_handle_destroy(h);
        trees_close(&t);
    }
END_TEST

/* Trains on one device, saves, and goes on with another; the losses are those of one device all the way. */
START_TEST(a_checkpoint_moves_between_devices)
    {
        char path[] = "/tmp/vpps-gpu-XXXXXX";
        close(mkstemp(path));
        float losses[2][4];
        for (int moves = 0; moves < 2; moves++) {
            gpu_trees t;
            vpps_options first = options_for("cpu", false),
                         second = options_for(moves ? test_gpu_device() : "cpu", false);
            if (moves && _i) first = options_for(test_gpu_device(), false), second = options_for("cpu", false);
            first.optimizer.kind = second.optimizer.kind = VPPS_MOMENTUM;
            trees_open(&t, HIDDEN, HIDDEN);
            vpps_handle *h = open_handle(&t, &first);
            for (uint32_t b = 0; b < 2; b++) losses[moves][b] = step(h, &t, b);
            TEST_OK(vpps_save(h, path, NULL, 0));
            vpps_handle_destroy(h);
            h = open_handle(&t, &second);
            TEST_OK(vpps_load(h, path));
            for (uint32_t b = 2; b < 4; b++) losses[moves][b] = step(h, &t, b);
            vpps_handle_destroy(h);
            trees_close(&t);
        }
        for (uint32_t b = 0; b < 4; b++) ck_assert_float_eq_tol(losses[0][b], losses[1][b], 1e-5f);
        unlink(path);
    }
END_TEST

START_TEST(without_a_gpu_there_is_a_reason)
    {
        gpu_trees t;
        story *s = calloc(1, sizeof *s);
        vpps_options o = options_for("cuda", false);
        vpps_handle *h;
        ck_assert_ptr_nonnull(s);
        setenv("VPPS_LIBCUDA", "/nowhere/libcuda.so", 1);
        trees_open(&t, HIDDEN, HIDDEN);
        TEST_FAILS(vpps_handle_create(&h, t.model, &o), VPPS_DEVICE, "/nowhere/libcuda.so");
        o.device = "abacus";
        TEST_FAILS(vpps_handle_create(&h, t.model, &o), VPPS_DEVICE, "abacus");
        o.device = "auto";
        o.log = note;
        o.log_context = s;
        h = open_handle(&t, &o);
        ck_assert_uint_eq(s->n, 1);
        ck_assert_msg(strstr(s->lines[0], "using the cpu: cuda: ") && strstr(s->lines[0], "/nowhere"), "%s",
                      s->lines[0]);
        vpps_stats stats = {.size = sizeof stats};
        TEST_OK(vpps_handle_stats(h, &stats));
        ck_assert_str_eq(stats.device, "cpu");
        vpps_trial trial = {.size = sizeof trial};
        uint32_t n = 1;
        bool done;
        TEST_OK(vpps_handle_trials(h, &trial, &n, &done));
        ck_assert(n == 0 && done); /* nothing to choose */
        step(h, &t, 0);
        vpps_handle_destroy(h);
        trees_close(&t);
        free(s);
    }
END_TEST

/* ---------------------------------------------------------------- limits */

static uint64_t watchdog_ns; /* of the latest launch */
static vpps_status outcome = VPPS_OK;

static vpps_status open_display(vpps_driver **out, uint32_t number, vpps_machine *machine) {
    VPPS_TRY(vpps_driver_simt.open(out, number, machine));
    (*out)->kernels_time_out = true;
    return VPPS_OK;
}

static vpps_status launch_watched(vpps_driver *d, vpps_kernel *kernel, const vpps_launch_shape *shape,
                                  const void *arguments, size_t bytes) {
    watchdog_ns = ((const vpps_arguments *)arguments)->watchdog_ns;
    return vpps_driver_simt.launch(d, kernel, shape, arguments, bytes);
}

static vpps_status await_or_stall(vpps_driver *d, uint32_t which) {
    VPPS_TRY(vpps_driver_simt.await(d, which));
    return outcome == VPPS_OK ? VPPS_OK : vpps_fail(outcome, "the test's device does not finish");
}

/* Gives a handle's device another driver. */
static void drive_by(vpps_handle *h, const vpps_driver_table *driver, const vpps_options *o) {
    h->device->table->destroy(h->device);
    TEST_OK(vpps_gpu_create(&h->device, &vpps_device_simt, driver, h->model, o, &h->plan));
    h->machine = h->device->table->machine(h->device);
}

/* What the device asks of its driver: a limit on waiting, and on a GPU that ends kernels, a watchdog that barks before. */
START_TEST(waits_are_limited)
    {
        gpu_trees t;
        static vpps_driver_table driver;
        story *s = calloc(1, sizeof *s);
        vpps_options o = options_for("simt", false);
        ck_assert_ptr_nonnull(s);
        trees_open(&t, HIDDEN, HIDDEN);
        vpps_handle *h = open_handle(&t, &o);
        const vpps_gpu *gpu = (const vpps_gpu *)h->device;
        ck_assert_uint_eq(gpu->driver->limit_ns, vpps_driver_limit_ns(o.watchdog_ms));

        driver = vpps_driver_simt;
        driver.open = open_display;
        driver.launch = launch_watched;
        driver.await = await_or_stall;
        o.log = note;
        o.log_context = s;
        drive_by(h, &driver, &o);
        ck_assert_msg(s->n > 0 && strstr(s->lines[0], "drives a display"), "%s", s->lines[0]);
        step(h, &t, 0);
        ck_assert_uint_eq(watchdog_ns, 1000000000);

        TEST_OK(vpps_fb(h, t.g, trees_build(&t, 1), NULL));
        outcome = VPPS_STALL;
        TEST_FAILS(vpps_sync_latest_loss(h, NULL), VPPS_STALL, "batch 2: the test's device does not finish");
        outcome = VPPS_OK;
        TEST_FAILS(vpps_save(h, "/dev/null", NULL, 0), VPPS_STALL, "batch 2: the test's device does not finish");
        vpps_handle_destroy(h);
        trees_close(&t);
        free(s);
    }
END_TEST

/* ---------------------------------------------------------------- queued batches */

/* Each launch's part in a test, by its number: what it is told, and what it leaves. */
static struct {
    const vpps_gpu *gpu;
    uint32_t n, queued; /* launches; those behind one that nobody has waited for */
    uint32_t fails;     /* the number of the launch that says it stalled; 0: none */
    float *before;      /* matrices before a queued launch, and whether one has changed them */
    bool changed;
    uint32_t ends[16]; /* how they ended */
} queue;

static vpps_status launch_noted(vpps_driver *d, vpps_kernel *kernel, const vpps_launch_shape *shape,
                                const void *arguments, size_t bytes) {
    const vpps_arguments *a = arguments;
    vpps_launch_end *end = (vpps_launch_end *)(uintptr_t)a->end;
    const size_t words = queue.gpu->layout.matrix_words;
    const bool queued = queue.gpu->n_flights > 0;
    if (queued) memcpy(queue.before, (const void *)(uintptr_t)a->matrices, words * sizeof(float));
    VPPS_TRY(vpps_driver_simt.launch(d, kernel, shape, arguments, bytes));
    if (queued) {
        queue.queued++;
        queue.changed = memcmp(queue.before, (const void *)(uintptr_t)a->matrices, words * sizeof(float)) != 0;
    }
    ck_assert_uint_le(end->begin_ns, end->end_ns);
    if (++queue.n == queue.fails) ((vpps_failure *)(uintptr_t)a->failure)->failed = end->failed = VPPS_FAILURE_STALL;
    queue.ends[queue.n % VPPS_COUNT(queue.ends)] = end->failed;
    return VPPS_OK;
}

static vpps_handle *open_queue(gpu_trees *t, vpps_nonfinite nonfinite) {
    static vpps_driver_table driver;
    vpps_options o = options_for("simt", false);
    o.nonfinite = nonfinite;
    trees_open(t, HIDDEN, HIDDEN);
    vpps_handle *h = open_handle(t, &o);
    driver = vpps_driver_simt;
    driver.launch = launch_noted;
    drive_by(h, &driver, &o);
    memset(&queue, 0, sizeof queue);
    queue.gpu = (const vpps_gpu *)h->device;
    queue.before = calloc(queue.gpu->layout.matrix_words + 1, sizeof(float));
    ck_assert_ptr_nonnull(queue.before);
    return h;
}

static void close_queue(gpu_trees *t, vpps_handle *h) {
    free(queue.before);
    vpps_handle_destroy(h);
    trees_close(t);
}

/* A loss that is infinite, of a parameter. */
static vpps_node build_infinite(gpu_trees *t) {
    const vpps_node loss = trees_build(t, 1);
    return vpps_add(t->g, loss, vpps_constant(t->g, 1, 1, INFINITY));
}

/* The second batch is launched before the first is waited for, and so on; the device tells how long it had nothing to do. */
START_TEST(the_next_batch_is_queued)
    {
        gpu_trees t;
        vpps_handle *h = open_queue(&t, VPPS_NONFINITE_STOP);
        vpps_stats stats = {.size = sizeof stats};
        uint64_t wall = 0, gap = 0;
        for (uint32_t b = 0; b < 5; b++) {
            TEST_OK(vpps_fb(h, t.g, trees_build(&t, b), NULL));
            TEST_OK(vpps_handle_stats(h, &stats));
            ck_assert(stats.gap_ns <= stats.wall_ns && (stats.wall_ns > 0) == (b > 1));
            wall += stats.wall_ns, gap += stats.gap_ns;
            ck_assert(stats.total_wall_ns == wall && stats.total_gap_ns == gap);
        }
        TEST_OK(vpps_sync_latest_loss(h, NULL));
        ck_assert_uint_eq(queue.queued, 4);
        ck_assert(queue.changed);
        TEST_OK(vpps_read_parameters(h));
        TEST_OK(vpps_fb(h, t.g, trees_build(&t, 0), NULL)); /* nothing is in flight: it is queued behind none */
        ck_assert_uint_eq(queue.queued, 4);
        close_queue(&t, h);
    }
END_TEST

/* Behind a batch that failed, or that is not finite where that stops training, a queued one does nothing; where such batches are passed
 * over, it trains. */
START_TEST(behind_a_failure_nothing_is_done)
    {
        gpu_trees t;
        vpps_handle *h = open_queue(&t, _i == 2 ? VPPS_NONFINITE_SKIP : VPPS_NONFINITE_STOP);
        const uint32_t ends = _i == 2 ? VPPS_FAILURE_NONE : VPPS_FAILURE_BEFORE;
        if (_i == 0) queue.fails = 2;
        TEST_OK(vpps_fb(h, t.g, trees_build(&t, 0), NULL));
        TEST_OK(vpps_fb(h, t.g, _i == 0 ? trees_build(&t, 1) : build_infinite(&t), NULL));
        const vpps_node next = trees_build(&t, 2);
        if (_i == 0) TEST_FAILS(vpps_fb(h, t.g, next, NULL), VPPS_STALL, "batch 2: VP 0");
        if (_i == 1) TEST_FAILS(vpps_fb(h, t.g, next, NULL), VPPS_NONFINITE, "batch 2: the loss is inf");
        if (_i == 2) TEST_OK(vpps_fb(h, t.g, next, NULL));
        ck_assert_uint_eq(queue.queued, 2);
        ck_assert_uint_eq(queue.ends[3], ends);
        ck_assert_int_eq(queue.changed, _i == 2);
        if (_i == 1) {
            TEST_OK(vpps_fb(h, t.g, next, NULL)); /* training goes on, with the same number */
            TEST_OK(vpps_sync_latest_loss(h, NULL));
            ck_assert_uint_eq(queue.ends[4], VPPS_FAILURE_NONE);
            ck_assert_uint_eq(h->latest_number, 3);
        }
        close_queue(&t, h);
    }
END_TEST

static uint32_t asked; /* how often the driver was asked whether the launch is over */

static vpps_status launch_killed(vpps_driver *d, vpps_kernel *kernel, const vpps_launch_shape *shape,
                                 const void *arguments, size_t bytes) {
    VPPS_TRY(vpps_driver_simt.launch(d, kernel, shape, arguments, bytes));
    ((vpps_launch_end *)(uintptr_t)((const vpps_arguments *)arguments)->end)->end_ns = 0;
    return VPPS_OK;
}

static bool passed_asked(vpps_driver *d, uint32_t which) {
    asked++;
    return vpps_driver_simt.passed(d, which);
}

/* Who polls asks the driver only when the kernel has told its end, or every 64th time, if it never does. */
START_TEST(polls_need_no_driver)
    {
        static vpps_driver_table driver;
        gpu_trees t;
        vpps_options o = options_for("simt", false);
        trees_open(&t, HIDDEN, HIDDEN);
        vpps_handle *h = open_handle(&t, &o);
        driver = vpps_driver_simt;
        driver.passed = passed_asked;
        if (_i) driver.launch = launch_killed;
        drive_by(h, &driver, &o);
        TEST_OK(vpps_fb(h, t.g, trees_build(&t, 0), NULL));
        uint32_t polls = 0;
        asked = 0;
        for (bool done = false; !done; polls++) TEST_OK(vpps_poll_loss(h, &done, NULL));
        ck_assert_uint_eq(polls, _i ? 64 : 1);
        ck_assert_uint_eq(asked, 1);
        vpps_handle_destroy(h);
        trees_close(&t);
    }
END_TEST

static bool busy; /* a launch has not been waited for */
static uint32_t released;

static vpps_status launch_busily(vpps_driver *d, vpps_kernel *kernel, const vpps_launch_shape *shape,
                                 const void *arguments, size_t bytes) {
    busy = true;
    return vpps_driver_simt.launch(d, kernel, shape, arguments, bytes);
}

static vpps_status wait_for_idle(vpps_driver *d, uint64_t *device_ns) {
    busy = false;
    return vpps_driver_simt.wait(d, device_ns);
}

static void release_idle(vpps_driver *d, uint64_t address) {
    ck_assert_msg(!busy, "memory is given back while a kernel runs");
    released++;
    vpps_driver_simt.release(d, address);
}

static vpps_status read_idle(vpps_driver *d, void *to, uint64_t from, size_t bytes) {
    busy = false; /* it waits */
    return vpps_driver_simt.read(d, to, from, bytes);
}

/* Buffers grow with the batches, whose kernels are queued. */
START_TEST(memory_in_use_is_not_given_back)
    {
        static vpps_driver_table driver;
        gpu_trees t;
        vpps_node losses[12];
        vpps_options o = options_for("simt", false);
        trees_open(&t, HIDDEN, HIDDEN);
        vpps_handle *h = open_handle(&t, &o);
        driver = vpps_driver_simt;
        driver.launch = launch_busily;
        driver.wait = wait_for_idle;
        driver.release = release_idle;
        driver.read = read_idle;
        drive_by(h, &driver, &o);
        for (uint32_t n = 1; n <= VPPS_COUNT(losses); n++) { /* by less than the pool grows at once */
            vpps_graph_clear(t.g);
            for (uint32_t i = 0; i < n; i++) losses[i] = trees_add(&t, i);
            TEST_OK(vpps_fb(h, t.g, vpps_sum(t.g, n, losses), NULL));
        }
        ck_assert_uint_gt(released, 4);
        TEST_OK(vpps_read_parameters(h));
        vpps_handle_destroy(h);
        trees_close(&t);
    }
END_TEST

/* ---------------------------------------------------------------- names */

/* Names of parameters and cells change nothing: they are in the kernel's text, as comments. */
START_TEST(names_are_only_comments)
    {
        static const char *const names[][5] = {
            {"W", "U", "b", "cell", "head"},
            {"enc*/W", "*/ } #error /*", "b \\", "*/ cell ?\?/", "// \xe2\x82\xac \"*/\""}};
        static const vpps_precision precisions[] = {VPPS_PRECISION_FP32, VPPS_PRECISION_BF16};
        enum { IN = 16, STEPS = 2 };
        float losses[2][STEPS], x[IN];
        for (uint32_t i = 0; i < IN; i++) x[i] = 0.1f * (float)i - 0.5f;
        for (uint32_t set = 0; set < 2; set++) {
            vpps_model *model;
            vpps_graph *g;
            vpps_handle *h;
            vpps_param W, U, b;
            vpps_cell cell, head;
            const char *const *name = names[set];
            vpps_options o = options_for(test_gpu_device(), false);
            o.precision = precisions[_i];
            TEST_OK(vpps_model_create(&model, 4));
            TEST_OK(vpps_add_matrix(model, &W, name[0], HIDDEN, IN, NULL));
            TEST_OK(vpps_add_matrix(model, &U, name[1], HIDDEN, HIDDEN, NULL));
            TEST_OK(vpps_add_vector(model, &b, name[2], HIDDEN, NULL));
            TEST_OK(vpps_cell_begin(model, name[3], &g));
            TEST_OK(vpps_scatter(g, vpps_tanh(g, vpps_affine1(g, b, W, vpps_pull(g, IN, 1)))));
            TEST_OK(vpps_cell_end(g, &cell));
            TEST_OK(vpps_cell_begin(model, name[4], &g));
            TEST_OK(vpps_scatter(g, vpps_square(g, vpps_matvec(g, U, vpps_gather(g, 0, 0, HIDDEN, 1)))));
            TEST_OK(vpps_cell_end(g, &head));
            TEST_OK(vpps_graph_create(&g, model));
            TEST_OK(vpps_handle_create(&h, model, &o));
            for (uint32_t k = 0; k < STEPS; k++) {
                vpps_graph_clear(g);
                const vpps_node in = vpps_input(g, IN, 1, x);
                const vpps_vertex v = vpps_apply(g, VPPS_APPLICATION(.cell = cell, .n_pulls = 1, .pulls = &in));
                const vpps_vertex top = vpps_apply(g, VPPS_APPLICATION(.cell = head, .n_children = 1, .children = &v));
                TEST_OK(vpps_fb(h, g, vpps_sum_elements(g, vpps_scattered(g, top, 0)), NULL));
                TEST_OK(vpps_sync_latest_loss(h, &losses[set][k]));
            }
            vpps_handle_destroy(h);
            vpps_graph_destroy(g);
            vpps_model_destroy(model);
        }
        ck_assert_mem_eq(losses[0], losses[1], sizeof losses[0]);
    }
END_TEST

/* ---------------------------------------------------------------- cells and graphs of any size */

/* Losses of two steps with a cell of so many products, each of the one's before. */
static void train_deep(const vpps_options *o, uint32_t products, float *losses) {
    enum { WIDTH = 64, MATRICES = 3 };
    vpps_model *model;
    vpps_graph *g;
    vpps_handle *h;
    vpps_cell cell;
    vpps_param W[MATRICES], b;
    char name[8];
    float data[WIDTH];
    for (uint32_t i = 0; i < WIDTH; i++) data[i] = 0.02f * (float)i - 0.6f;
    TEST_OK(vpps_model_create(&model, 9));
    for (uint32_t i = 0; i < MATRICES; i++) {
        snprintf(name, sizeof name, "W%u", i);
        TEST_OK(vpps_add_matrix(model, &W[i], name, WIDTH, WIDTH, NULL));
    }
    TEST_OK(vpps_add_vector(model, &b, "b", WIDTH, NULL));
    TEST_OK(vpps_cell_begin(model, "deep", &g));
    vpps_node x = vpps_pull(g, WIDTH, 1);
    for (uint32_t i = 0; i < products; i++) x = vpps_tanh(g, vpps_affine1(g, b, W[i % MATRICES], x));
    TEST_OK(vpps_scatter(g, x));
    TEST_OK(vpps_cell_end(g, &cell));
    TEST_OK(vpps_graph_create(&g, model));
    TEST_OK(vpps_handle_create(&h, model, o));
    for (uint32_t step = 0; step < 2; step++) {
        vpps_graph_clear(g);
        const vpps_node in = vpps_input(g, WIDTH, 1, data);
        const vpps_vertex v = vpps_apply(g, VPPS_APPLICATION(.cell = cell, .n_pulls = 1, .pulls = &in));
        TEST_OK(vpps_fb(h, g, vpps_sum_elements(g, vpps_square(g, vpps_scattered(g, v, 0))), NULL));
        TEST_OK(vpps_sync_latest_loss(h, &losses[step]));
    }
    vpps_handle_destroy(h);
    vpps_graph_destroy(g);
    vpps_model_destroy(model);
}

/* Where rows are shared out each product is a stage of its own: there may be any number of them. */
START_TEST(cells_have_any_number_of_stages)
    {
        static const uint32_t products[] = {34, 40, 200};
        const gpu_layout two = {2, 256, 4, 1};
        const uint32_t n = products[_i];
        float one_vp[2], losses[2];
        const vpps_options gpu = gpu_options(&two, VPPS_SGD);
        vpps_options o = options_for("cpu", false);
        o.optimizer = gpu.optimizer;
        o.vps = 1;
        train_deep(&o, n, one_vp);
        ck_assert(one_vp[0] > 1e-3f && one_vp[1] != one_vp[0]);
        o.vps = 2;
        train_deep(&o, n, losses);
        for (uint32_t k = 0; k < 2; k++) ck_assert_float_eq_tol(losses[k], one_vp[k], 1e-3f * one_vp[k]);
        if (n > 40) return; /* the kernel would take minutes to compile */
        train_deep(&gpu, n, losses);
        for (uint32_t k = 0; k < 2; k++) ck_assert_float_eq_tol(losses[k], one_vp[k], 1e-3f * one_vp[k]);
    }
END_TEST

/* A batch whose vertices outside cells are of kinds that no batch had before: slices of ever other rows. */
static vpps_node build_slices(vpps_graph *g, vpps_param table, uint32_t batch) {
    vpps_node parts[3];
    vpps_graph_clear(g);
    const vpps_node x = vpps_tanh(g, vpps_lookup(g, table, batch % 5));
    for (uint32_t i = 0; i < 3; i++)
        parts[i] = vpps_sum_elements(g, vpps_square(g, vpps_slice(g, x, 3 * batch + i, 2)));
    return vpps_sum(g, 3, parts);
}

/* Kernels have a limited number of cells, and a handle of types of vertices: losses are those of a handle without limits. */
START_TEST(kernels_do_not_grow_for_ever)
    {
        enum { BATCHES = 5, LENGTH = 32, MOST = 8 };
        float losses[2][BATCHES];
        for (uint32_t limited = 0; limited < 2; limited++) {
            vpps_model *model;
            vpps_graph *g;
            vpps_handle *h;
            vpps_param table;
            const vpps_options o = options_for(limited ? test_gpu_device() : "cpu", false);
            TEST_OK(vpps_model_create(&model, 5));
            TEST_OK(vpps_add_lookup(model, &table, "T", 5, LENGTH, 1, NULL));
            TEST_OK(vpps_graph_create(&g, model));
            TEST_OK(vpps_handle_create(&h, model, &o));
            vpps_gpu *gpu = limited ? (vpps_gpu *)h->device : NULL;
            if (gpu) gpu->most_cells = MOST;
            for (uint32_t b = 0; b < BATCHES; b++) {
                if (b == 3 && limited)
                    h->types.most = MOST; /* from now on the oldest types go, and with them the kernels */
                TEST_OK(vpps_fb(h, g, build_slices(g, table, b % 4), NULL));
                TEST_OK(vpps_sync_latest_loss(h, &losses[limited][b]));
                if (gpu) ck_assert_uint_le(gpu->kernel->n_cells, MOST + 2);
            }
            if (limited) ck_assert_uint_lt(h->types.n_types, 3 * BATCHES);
            vpps_handle_destroy(h);
            vpps_graph_destroy(g);
            vpps_model_destroy(model);
        }
        for (uint32_t b = 0; b < BATCHES; b++) ck_assert_float_eq_tol(losses[0][b], losses[1][b], 1e-5f);
    }
END_TEST

static Suite *make_suite(void) {
    Suite *suite = suite_create("gpu handle");
    TCase *t = tcase_create("handle");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, creating_and_destroying_leaks_nothing);
    tcase_add_loop_test(t, two_handles_in_flight, 0, 2);
    tcase_add_test(t, the_profile_finds_the_fastest_and_remembers_it);
    tcase_add_test(t, batches_go_on_while_the_next_kernel_is_made);
    tcase_add_test(t, training_and_inference_have_kernels_of_their_own);
    tcase_add_test(t, a_choice_whose_kernels_spill_is_rejected);
    tcase_add_test(t, a_batch_without_a_kernel_leaves_the_handle_whole);
    tcase_add_test(t, where_all_kernels_spill_one_is_taken);
    tcase_add_test(t, groups_follow_the_batch);
    tcase_add_loop_test(t, groups_by_profile, 0, 2);
    tcase_add_test(t, groups_that_stream_are_not_tried);
    tcase_add_test(t, the_pool_grows_with_the_batch);
    tcase_add_test(t, too_small_a_pool_is_told);
    tcase_add_loop_test(t, a_checkpoint_moves_between_devices, 0, 2);
    tcase_add_test(t, without_a_gpu_there_is_a_reason);
    tcase_add_test(t, waits_are_limited);
    tcase_add_test(t, the_next_batch_is_queued);
    tcase_add_loop_test(t, behind_a_failure_nothing_is_done, 0, 3);
    tcase_add_test(t, memory_in_use_is_not_given_back);
    tcase_add_loop_test(t, polls_need_no_driver, 0, 2);
    tcase_add_loop_test(t, names_are_only_comments, 0, 2);
    tcase_add_loop_test(t, cells_have_any_number_of_stages, 0, 3);
    tcase_add_test(t, kernels_do_not_grow_for_ever);
    suite_add_tcase(suite, t);
    return suite;
}

int main(void) { return gpu_main(make_suite); }
