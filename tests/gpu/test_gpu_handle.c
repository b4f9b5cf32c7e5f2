/* test_gpu_handle.c - what handles do only on the GPU device, or between devices: profile, groups, memory, limits, kernels of any size.
 * (What handles promise on every device: runtime/test_handle.c.) */
#include "common/folder.h"
#include "gpu_trees.h"
#include "runtime/gpu/gpu.h"
#include "runtime/handle.h"

enum { HIDDEN = 16, LINES = 64 };

/* Messages of the engine. */
static struct {
    char lines[LINES][256];
    uint32_t n;
} story;

static void note(void *context, const char *line) {
    (void)context;
    if (story.n < LINES) snprintf(story.lines[story.n++], sizeof story.lines[0], "%s", line);
}

static vpps_options options_for(const char *device, bool tuning) {
    vpps_options o = default_options();
    o.device = device;
    o.vps = strcmp(device, "cpu") ? 0 : 2;
    o.no_tuning = !tuning;
    o.pool_bytes = 32 << 20;
    o.verify = true;
    if (strcmp(device, "cpu")) o.log = note;
    return o;
}

static vpps_options options_for_trees(void) {
    vpps_options o = trees_options();
    o.log = note;
    return o;
}

/* ---------------------------------------------------------------- beside the CPU */

/* A network on some device, and the same on the CPU. */
typedef struct pair {
    gpu_trees here, cpu;
} pair;

static pair pair_with(vpps_options o) {
    vpps_options cpu = options_for("cpu", false);
    cpu.optimizer = o.optimizer;
    return (pair){trees_with(HIDDEN, HIDDEN, &o), trees_with(HIDDEN, HIDDEN, &cpu)};
}

static void pair_step(pair *p, uint32_t batch) {
    const float loss = trees_step(&p->here, batch), expected = trees_step(&p->cpu, batch);
    ck_assert_msg(fabsf(loss - expected) < 1e-4f, "batch %u: %g, not %g", batch, (double)loss, (double)expected);
}

static void pair_close(pair *p) {
    trees_close(&p->here);
    trees_close(&p->cpu);
}

/* ---------------------------------------------------------------- the profile */

enum { MOST_TRIALS = 64 };
static vpps_trial trials[MOST_TRIALS];

/* Reads the trials; returns their number. */
static uint32_t read_trials(vpps_handle *h, bool *done) {
    uint32_t n = MOST_TRIALS;
    trials->size = sizeof *trials;
    TEST_OK(vpps_handle_trials(h, trials, &n, done));
    return n;
}

static uint32_t count_state(uint32_t n, vpps_trial_state state) {
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++) found += trials[i].state == state;
    return found;
}

/* Trains until the choice is made; returns the number of trials. All losses must equal the CPU's. */
static uint32_t tune(uint32_t *batches) {
    static vpps_driver_table driver;
    vpps_options o = options_for(test_gpu_device(), true);
    o.optimizer.kind = VPPS_MOMENTUM; /* its state also moves from plan to plan */
    o.optimizer.lr = 0.02f;
    AT_END(pair_close) pair p = pair_with(o);
    driver = vpps_driver_simt;
    driver.load = gpu_load_shared;
    if (gpu_is_simulated()) gpu_drive_by(p.here.h, &driver, &o);
    bool done = false;
    uint32_t n;
    for (*batches = 0; n = read_trials(p.here.h, &done), !done; (*batches)++) /* kernels are compiled meanwhile, */
        pair_step(&p, *batches);                                              /* which may take any time */
    pair_step(&p, *batches);
    return n;
}

/* Damages an entry of the cache. */
static void damage_tuning(const char *path) {
    size_t bytes;
    FREED char *file = folder_load(path, &bytes);
    file[bytes - 1] ^= 1;
    folder_store(path, file, bytes);
}

TEST_GROUP("handle", .seconds = 120);

TEST(the_profile_finds_the_fastest_and_remembers_it) {
    uint32_t batches, chosen = 0, told = 0;
    cache_folder_make();
    uint32_t n = tune(&batches);
    ck_assert_uint_eq(n, 6); /* 1, 2, 4, 8 rows; then two other numbers of threads */
    ck_assert_uint_eq(count_state(n, VPPS_TRIAL_CURRENT), 1);
    ck_assert_uint_ge(count_state(n, VPPS_TRIAL_MEASURED), 3);
    ck_assert_uint_gt(trials[0].batches, 0); /* the profile begins with the first candidate */
    while (trials[chosen].state != VPPS_TRIAL_CURRENT) chosen++;
    for (uint32_t i = 0; i < n; i++) {
        if (trials[i].state == VPPS_TRIAL_MEASURED) ck_assert(trials[chosen].ns_per_node <= trials[i].ns_per_node);
        if (trials[i].state == VPPS_TRIAL_WAITING) ck_assert(trials[i].batches == 0 && trials[i].ns_per_node == 0);
    }
    for (uint32_t i = 0; i < story.n; i++) told += strstr(story.lines[i], "chosen: rpw") != NULL;
    ck_assert_uint_eq(told, 1);

    tune(&batches); /* another handle takes the choice at once */
    ck_assert_uint_eq(batches, 0);
    ck_assert_int_eq(trials[chosen].state, VPPS_TRIAL_REMEMBERED);

    cache_folder_each(damage_tuning);
    n = tune(&batches);
    ck_assert_uint_gt(batches, 0);
    ck_assert_uint_eq(count_state(n, VPPS_TRIAL_REMEMBERED), 0);
}

/* ---- kernels that cannot be compiled */

static const char *spilling; /* kernels with this text spill */

static vpps_status load_spilling(vpps_driver *d, const char *source, const char *description,
                                 const vpps_launch_shape *shape, vpps_kernel **out, vpps_cubin_report *report) {
    VPPS_TRY(gpu_load_shared(d, source, description, shape, out, report));
    if (strstr(source, spilling)) report->frame_bytes = 8;
    return VPPS_OK;
}

/* Returns options of a handle that looks for the fastest choice, with a cache of its own. */
static vpps_options options_for_tuning(void) {
    vpps_options o = options_for("simt", true);
    o.threads = 256;
    cache_folder_make();
    return o;
}

/* Makes a handle that looks for the fastest choice, and whose kernels with that text spill; and the CPU's handle. */
static pair pair_spilling(const char *text) {
    static vpps_driver_table driver;
    const vpps_options o = options_for_tuning();
    pair p = pair_with(o);
    driver = vpps_driver_simt;
    driver.load = load_spilling;
    spilling = text;
    gpu_drive_by(p.here.h, &driver, &o);
    story.n = 0;
    return p;
}

/* The batch that finds a candidate rejected runs with the next one. */
TEST(a_choice_whose_kernels_spill_is_rejected) {
    bool done;
    AT_END(pair_close) pair p = pair_spilling("#define VPPS_ROW_BLOCK 1u\n");
    for (uint32_t b = 0; b < 3; b++) pair_step(&p, b);
    read_trials(p.here.h, &done);
    ck_assert_int_eq(trials[0].state, VPPS_TRIAL_REJECTED);
    ck_assert_int_eq(trials[1].state, VPPS_TRIAL_CURRENT);
    const char *line = story.lines[0];
    ck_assert_msg(strstr(line, "rejected: ") && strstr(line, "frame of 8 bytes"), "%s", line);
}

TEST(where_all_kernels_spill_one_is_taken) {
    bool done;
    AT_END(pair_close) pair p = pair_spilling("vpps_kernel");
    for (uint32_t b = 0; b < 2; b++) pair_step(&p, b);
    const uint32_t n = read_trials(p.here.h, &done);
    ck_assert(done);
    ck_assert_int_eq(trials[0].state, VPPS_TRIAL_CURRENT);
    ck_assert_uint_eq(count_state(n, VPPS_TRIAL_REJECTED), n - 1);
    ck_assert(story.n > 0);
    const char *line = story.lines[story.n - 1];
    ck_assert_msg(strstr(line, "spilling"), "%s", line);
}

/* A compiler that works until it is told to end; its requests are checked. */
static struct {
    atomic_bool may_end;
    atomic_uint asked, alike; /* number of requests; of those, equal to the source loaded next */
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
    return gpu_load_shared(d, source, description, shape, out, report);
}

TEST(batches_go_on_while_the_next_kernel_is_made) {
    enum { MEASURED = 1 + VPPS_GPU_MEASURED, MORE = 4 };
    static vpps_driver_table driver;
    bool done;
    const vpps_options o = options_for_tuning();
    driver = vpps_driver_simt;
    driver.prepare = prepare_slowly;
    driver.load = load_after;
    AT_END(trees_close) gpu_trees t = trees_driven_by(&driver, HIDDEN, HIDDEN, &o);
    for (uint32_t b = 0; b < MEASURED + MORE; b++) trees_step(&t, 0);
    read_trials(t.h, &done);
    ck_assert_int_eq(trials[0].state, VPPS_TRIAL_CURRENT);
    ck_assert_uint_eq(trials[0].batches, VPPS_GPU_MEASURED); /* batches that ran during the wait are not counted */
    atomic_store(&slow.may_end, true);
    for (uint32_t b = 0; trials[1].state != VPPS_TRIAL_CURRENT; b++) {
        ck_assert_uint_lt(b, 10000);
        trees_step(&t, 0);
        read_trials(t.h, &done);
    }
    ck_assert_uint_eq(slow.asked, 1);
    ck_assert_uint_eq(slow.alike, 1); /* the right kernel was compiled ahead */
}

/* Returns the number of cells of the n-th kernel that was made; 0: none was. */
static unsigned cells_of_kernel(uint32_t n) {
    unsigned cells = 0;
    for (uint32_t i = 0; i < story.n; i++)
        if (sscanf(story.lines[i], "kernel of %u cells", &cells) == 1 && n-- == 0) return cells;
    return 0;
}

/* Training and inference in turn compile no kernel twice, and neither kernel has the other's cells. */
TEST(training_and_inference_have_kernels_of_their_own) {
    const vpps_options o = options_for_trees();
    AT_END(trees_close) gpu_trees t = trees_with(TREES_HIDDEN, TREES_EMBED, &o);
    for (uint32_t b = 0; b < 3; b++) {
        trees_step(&t, 0);
        infer(t.h, t.g, trees_build(&t, 0));
    }
    ck_assert_uint_eq(cells_of_kernel(0), 2);
    ck_assert_uint_eq(cells_of_kernel(1), 3); /* and a sum */
    ck_assert_uint_eq(cells_of_kernel(2), 0);
}

/* ---------------------------------------------------------------- groups of VPs */

enum { SENTENCES = 16, SIZE = 64 };

typedef struct chains {
    training t, cpu; /* `t` must train as `cpu` does */
    vpps_param U;
} chains;

/* Opens a network on 16 processors of a GPU, with 16 rows each in four groups, or on four of the CPU; and one on two of the CPU. */
static chains chains_open(const char *device, uint32_t groups) {
    const bool on_cpu = !strcmp(device, "cpu");
    vpps_options o = options_for(device, false), cpu = options_for("cpu", false);
    chains c = {training_of(5), training_of(5), 0};
    setenv("VPPS_SIMT_SMS", "16", 1);
    o.vps = on_cpu ? 4 : 16;
    o.rpw = 1;
    o.threads = 64;
    o.groups = groups;
    o.optimizer.lr = cpu.optimizer.lr = 0.01f;
    TEST_OK(vpps_add_matrix(c.t.model, &c.U, "U", SIZE, SIZE, NULL));
    TEST_OK(vpps_add_matrix(c.cpu.model, &c.U, "U", SIZE, SIZE, NULL));
    training_start(&c.t, &o);
    training_start(&c.cpu, &cpu);
    return c;
}

static void chains_close(chains *c) {
    training_end(&c->t);
    training_end(&c->cpu);
}

/* Trains on a batch of so many recurrences. */
static float train_chains(const training *t, vpps_param U, uint32_t n) {
    vpps_node terms[SENTENCES];
    float x[SIZE];
    vpps_graph_clear(t->g);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < SIZE; k++) x[k] = sinf((float)(i * SIZE + k));
        vpps_node state = vpps_input(t->g, SIZE, 1, x);
        for (uint32_t k = 0; k < 2 + i % 2; k++) state = vpps_tanh(t->g, vpps_affine1(t->g, VPPS_NO_PARAM, U, state));
        terms[i] = vpps_dot(t->g, state, state);
    }
    return train_batch(t->h, t->g, vpps_average(t->g, n, terms));
}

static void chains_step(const chains *c, uint32_t n) {
    ck_assert_float_eq_tol(train_chains(&c->t, c->U, n), train_chains(&c->cpu, c->U, n), 1e-4f);
}

/* Each group gets four inputs; once there are more groups, fewer inputs keep them; each number of groups has one kernel. */
TEST(groups_follow_the_batch) {
    static const struct {
        uint32_t inputs, groups;
    } batches[] = {{1, 1}, {7, 1}, {8, 2}, {15, 2}, {7, 2}, {16, 4}, {15, 4}, {1, 4}, {16, 4}};
    AT_END(chains_close) chains c = chains_open(test_gpu_device(), 0);
    for (size_t b = 0; b < VPPS_COUNT(batches); b++) {
        chains_step(&c, batches[b].inputs);
        ck_assert_uint_eq(stats_of(c.t.h).groups, batches[b].groups);
    }
    ck_assert_uint_gt(cells_of_kernel(2), 0);
    ck_assert_uint_eq(cells_of_kernel(3), 0);
}

/* With several inputs all numbers of groups are tried equally often, in turn, and the fastest is taken, on the CPU and on a GPU; a GPU with one input
 * uses one group. */
TEST_EACH(groups_by_profile, 0, 3) {
    static const uint32_t groups[] = {1, 2, 4};
    enum { NUMBERS = VPPS_COUNT(groups), BATCHES = NUMBERS * (VPPS_TRIAL_BATCHES + 1), MORE = 15 };
    const bool on_cpu = _i == 2, one = _i == 0;
    const uint32_t first = !on_cpu; /* a GPU's first trial is of rows and threads */
    bool done;
    AT_END(chains_close) chains c = chains_open(on_cpu ? "cpu" : test_gpu_device(), VPPS_GROUPS_PROFILE);
    for (uint32_t b = 0; b <= BATCHES + (on_cpu ? MORE : 0); b++) {
        ck_assert_uint_eq(read_trials(c.t.h, &done), first + NUMBERS);
        ck_assert(done == (b >= BATCHES)); /* each candidate's first batch does not count */
        chains_step(&c, one ? 1 : 8);
    }
    for (uint32_t i = 0; i < NUMBERS; i++) {
        const vpps_trial *t = &trials[first + i];
        ck_assert_uint_eq(t->groups, groups[i]);
        ck_assert_uint_eq(t->batches, !i || !one ? VPPS_TRIAL_BATCHES : 0);
        ck_assert((t->ns_per_node > 0) == (t->batches > 0));
        ck_assert((t->state == VPPS_TRIAL_CURRENT) == (stats_of(c.t.h).groups == groups[i]));
    }
    ck_assert((cells_of_kernel(NUMBERS - 1) > 0) == (_i == 1));
    if (one) ck_assert_uint_eq(cells_of_kernel(1), 0);
}

/* 40 virtual processors hold half of so many matrices of this size and their transposes; 20 with 16 rows each do not. */
TEST(groups_that_stream_most_weights_are_not_tried) {
    enum { LARGE = 320, MATRICES = 14 };
    bool done;
    vpps_options o = options_for(test_gpu_device(), false);
    AT_END(training_end) training t = training_of(5);
    setenv("VPPS_SIMT_SMS", "40", 1);
    o.vps = 40;
    o.rpw = 1;
    o.threads = LARGE;
    o.groups = VPPS_GROUPS_PROFILE;
    for (uint32_t i = 0; i <= MATRICES; i++) {
        const uint32_t size = i ? LARGE : SIZE;
        char name[8];
        snprintf(name, sizeof name, "V%u", i);
        TEST_OK(vpps_add_matrix(t.model, &(vpps_param){0}, name, size, size, NULL));
    }
    training_start(&t, &o);
    ck_assert_uint_eq(read_trials(t.h, &done), 2);
    ck_assert(done && trials[1].groups == 1 && trials[1].state == VPPS_TRIAL_CURRENT);
}

/* ---------------------------------------------------------------- memory, devices */

TEST(too_small_a_pool_is_told) {
    vpps_options o = options_for(test_gpu_device(), false);
    AT_END(trees_close) gpu_trees t = trees_of(HIDDEN, HIDDEN);
    o.pool_bytes = 64;
    TEST_FAILS(vpps_handle_create(&t.h, t.model, &o), VPPS_POOL, "pool_bytes");
    o.pool_bytes = 6144;
    TEST_OK(vpps_handle_create(&t.h, t.model, &o));
    TEST_FAILS(vpps_fb(t.h, t.g, trees_build(&t, 0), NULL), VPPS_POOL, "pool");
}

/* Trains on one device, saves, and continues on another; the losses equal those of one device throughout. */
TEST_EACH(a_checkpoint_moves_between_devices, 0, 2) {
    float losses[2][4];
    folder_make();
    for (int moves = 0; moves < 2; moves++) {
        const char *const there = moves ? test_gpu_device() : "cpu";
        vpps_options first = options_for(_i ? there : "cpu", false), second = options_for(_i ? "cpu" : there, false);
        first.optimizer.kind = second.optimizer.kind = VPPS_MOMENTUM;
        AT_END(trees_close) gpu_trees t = trees_with(HIDDEN, HIDDEN, &first);
        for (uint32_t b = 0; b < 2; b++) losses[moves][b] = trees_step(&t, b);
        TEST_OK(vpps_save(t.h, folder_path("run"), NULL, 0));
        vpps_handle_destroy(t.h);
        TEST_OK(vpps_handle_create(&t.h, t.model, &second));
        TEST_OK(vpps_load(t.h, folder_path("run")));
        for (uint32_t b = 2; b < 4; b++) losses[moves][b] = trees_step(&t, b);
    }
    for (uint32_t b = 0; b < 4; b++) ck_assert_float_eq_tol(losses[0][b], losses[1][b], 1e-5f);
}

/* ---------------------------------------------------------------- limits */

static uint64_t watchdog_ns; /* time limit of the latest launch */
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

/* The device sets a time limit on waiting and, on a GPU that ends long kernels, a watchdog that reports earlier. */
TEST(waits_are_limited) {
    static vpps_driver_table driver;
    const vpps_options o = options_for_trees();
    AT_END(trees_close) gpu_trees t = trees_with(TREES_HIDDEN, TREES_EMBED, &o);
    const vpps_gpu *gpu = (const vpps_gpu *)t.h->device;
    ck_assert_uint_eq(gpu->driver->limit_ns, vpps_driver_limit_ns(o.watchdog_ms));

    driver = vpps_driver_simt;
    driver.open = open_display;
    driver.launch = launch_watched;
    driver.await = await_or_stall;
    story.n = 0;
    gpu_drive_by(t.h, &driver, &o);
    ck_assert_msg(story.n > 0 && strstr(story.lines[0], "drives a display"), "%s", story.lines[0]);
    trees_step(&t, 0);
    ck_assert_uint_eq(watchdog_ns, 1000000000);

    trees_fb(&t, 1);
    outcome = VPPS_STALL;
    TEST_FAILS(vpps_sync_latest_loss(t.h, NULL), VPPS_STALL, "batch 2: the test's device does not finish");
    outcome = VPPS_OK;
    TEST_FAILS(vpps_save(t.h, "/dev/null", NULL, 0), VPPS_STALL, "batch 2: the test's device does not finish");
}

/* ---------------------------------------------------------------- polling */

static uint32_t asked; /* how often the driver was asked whether the launch has ended */

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

/* Polling asks the driver only after the kernel has reported its end, or every 64th time, in case it never does. */
TEST_EACH(polls_need_no_driver, 0, 2) {
    static vpps_driver_table driver;
    const vpps_options o = options_for_trees();
    driver = vpps_driver_simt;
    driver.passed = passed_asked;
    if (_i) driver.launch = launch_killed;
    AT_END(trees_close) gpu_trees t = trees_driven_by(&driver, TREES_HIDDEN, TREES_EMBED, &o);
    trees_fb(&t, 0);
    uint32_t polls = 0;
    asked = 0;
    for (bool done = false; !done; polls++) TEST_OK(vpps_poll_loss(t.h, &done, NULL));
    ck_assert_uint_eq(polls, _i ? 64 : 1);
    ck_assert_uint_eq(asked, 1);
}

/* ---------------------------------------------------------------- names */

/* Names of parameters and cells change nothing: the kernel's text has them as comments. */
GPU_EACH(names_are_only_comments, 1, 2) {
    static const char *const names[][5] = {
        {"W", "U", "b", "cell", "head"},
        {"enc*/W", "*/ } #error /*", "b \\", "*/ cell ?\?/", "// \xe2\x82\xac \"*/\""}};
    static const vpps_precision precisions[] = {VPPS_PRECISION_FP32, VPPS_PRECISION_BF16};
    enum { IN = 16, STEPS = 2 };
    float losses[2][STEPS], x[IN];
    for (uint32_t i = 0; i < IN; i++) x[i] = 0.1f * (float)i - 0.5f;
    for (uint32_t set = 0; set < 2; set++) {
        const char *const *name = names[set];
        vpps_options o = options_for(test_gpu_device(), false);
        o.precision = precisions[_i];
        AT_END(training_end) training t = training_of(4);
        const vpps_param W = add_matrix(t.model, name[0], HIDDEN, IN), U = add_matrix(t.model, name[1], HIDDEN, HIDDEN),
                         b = add_vector(t.model, name[2], HIDDEN);
        vpps_graph *r = begin_cell(t.model, name[3]);
        TEST_OK(vpps_scatter(r, vpps_tanh(r, vpps_affine1(r, b, W, vpps_pull(r, IN, 1)))));
        const vpps_cell cell = end_cell(r);
        TEST_OK(vpps_cell_begin(t.model, name[4], &r));
        TEST_OK(vpps_scatter(r, vpps_square(r, vpps_matvec(r, U, vpps_gather(r, 0, 0, HIDDEN, 1)))));
        const vpps_cell head = end_cell(r);
        training_start(&t, &o);
        for (uint32_t k = 0; k < STEPS; k++) {
            vpps_graph_clear(t.g);
            const vpps_node in = vpps_input(t.g, IN, 1, x);
            const vpps_vertex v = APPLY(t.g, cell, PULLS(1, &in));
            const vpps_vertex top = APPLY(t.g, head, CHILDREN(1, &v));
            losses[set][k] = train_batch(t.h, t.g, vpps_sum_elements(t.g, vpps_scattered(t.g, top, 0)));
        }
    }
    ck_assert_mem_eq(losses[0], losses[1], sizeof losses[0]);
}

/* ---------------------------------------------------------------- cells and graphs of any size */

/* Returns the losses of two steps with a cell of a chain of so many products. */
static void train_deep(const vpps_options *o, uint32_t products, float *losses) {
    enum { WIDTH = 64, MATRICES = 3 };
    vpps_param W[MATRICES], b;
    char name[8];
    float data[WIDTH];
    for (uint32_t i = 0; i < WIDTH; i++) data[i] = 0.02f * (float)i - 0.6f;
    AT_END(training_end) training t = training_of(9);
    for (uint32_t i = 0; i < MATRICES; i++) {
        snprintf(name, sizeof name, "W%u", i);
        TEST_OK(vpps_add_matrix(t.model, &W[i], name, WIDTH, WIDTH, NULL));
    }
    TEST_OK(vpps_add_vector(t.model, &b, "b", WIDTH, NULL));
    vpps_graph *r = begin_cell(t.model, "deep");
    vpps_node x = vpps_pull(r, WIDTH, 1);
    for (uint32_t i = 0; i < products; i++) x = vpps_tanh(r, vpps_affine1(r, b, W[i % MATRICES], x));
    TEST_OK(vpps_scatter(r, x));
    const vpps_cell cell = end_cell(r);
    training_start(&t, o);
    for (uint32_t step = 0; step < 2; step++) {
        vpps_graph_clear(t.g);
        const vpps_node in = vpps_input(t.g, WIDTH, 1, data);
        const vpps_vertex v = APPLY(t.g, cell, PULLS(1, &in));
        losses[step] = train_batch(t.h, t.g, vpps_sum_elements(t.g, vpps_square(t.g, vpps_scattered(t.g, v, 0))));
    }
}

/* If rows are shared out, each product is a stage of its own, of which there may be any number. */
TEST_EACH(cells_have_any_number_of_stages, 0, 2) {
    static const uint32_t products[] = {40, 200};
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

/* Builds a batch whose vertices outside cells are of types that no batch had before: slices of different rows. */
static vpps_node build_slices(vpps_graph *g, vpps_param table, uint32_t batch) {
    vpps_node parts[3];
    vpps_graph_clear(g);
    const vpps_node x = vpps_tanh(g, vpps_lookup(g, table, batch % 5));
    for (uint32_t i = 0; i < 3; i++)
        parts[i] = vpps_sum_elements(g, vpps_square(g, vpps_slice(g, x, 3 * batch + i, 2)));
    return vpps_sum(g, 3, parts);
}

/* Kernels have a limited number of cells, and handles of vertex types: losses equal those of a handle without limits. */
TEST(kernels_do_not_grow_for_ever) {
    enum { BATCHES = 5, LENGTH = 32, MOST = 8 };
    float losses[2][BATCHES];
    for (uint32_t limited = 0; limited < 2; limited++) {
        const vpps_options o = options_for(limited ? test_gpu_device() : "cpu", false);
        AT_END(training_end) training t = training_of(5);
        const vpps_param table = add_lookup(t.model, "T", 5, LENGTH, 1);
        training_start(&t, &o);
        vpps_gpu *gpu = limited ? (vpps_gpu *)t.h->device : NULL;
        if (gpu) gpu->layout.target.most_cells = MOST;
        for (uint32_t b = 0; b < BATCHES; b++) {
            if (b == 3 && limited)
                t.h->history.most = MOST; /* from now on the oldest types are dropped, and kernels with them */
            losses[limited][b] = train_batch(t.h, t.g, build_slices(t.g, table, b % 4));
            if (gpu) ck_assert_uint_le(gpu->kernel->n_cells, MOST + 2);
        }
        if (limited) ck_assert_uint_lt(t.h->history.n_types, 3 * BATCHES);
    }
    for (uint32_t b = 0; b < BATCHES; b++) ck_assert_float_eq_tol(losses[0][b], losses[1][b], 1e-5f);
}

int main(void) { return gpu_main("gpu handle"); }
