/* test_gpu_faults.c - faults planted in the kernel's source, and in scripts, must show under software SIMT: as a wrong result, as a failure with its
 * reason, or as a stall; in some order of turns, if not in all. */
#include "common/episode.h"
#include "gpu_trees.h"
#include "runtime/gpu/gpu.h"
#include "runtime/handle.h"
#include "runtime/simt/simt.h"

enum { BATCHES = 2, WATCHDOG_MS = 200, SEEDS = 6 };

typedef enum where {
    ONCE,
    EVERYWHERE, /* in generated code: wherever the text occurs */
    CROWDED,    /* likewise, if registers do not hold all weights */
    IN_PARTS,   /* likewise, if products are in bf16x3 */
    WIDE,       /* likewise, if most weights have no place in registers or shared memory */
    WIDE_PARTS  /* likewise, if products are in bf16x3, too */
} where;

static const struct fault {
    const char *what, *text, *with;
    where where;
} faults[] = {
    {"the barrier after every task removed", "t = vpps_load_task(t.at + 1);",
     "t = vpps_load_task(t.at + 1), vpps_send(signal);\ncontinue;", ONCE},
    {"signals removed", "vpps_send(signal);", "", ONCE},
    {"waits removed", "if (t.wait != VPPS_NO_BARRIER)", "if (0)", ONCE},
    {"a wait that lets one signal too few do", "have = VPPS_ACQUIRE_LOAD(counter);",
     "have = VPPS_ACQUIRE_LOAD(counter) + 1;", ONCE},
    {"a shuffle between the wrong lanes", "keep + __shfl_xor_sync(0xffffffffu, give, MASK)",
     "keep + __shfl_xor_sync(0xffffffffu, give, MASK ^ 1)", ONCE},
    {"half of the lanes in a shuffle's mask", "keep + __shfl_xor_sync(0xffffffffu, give, MASK)",
     "keep + __shfl_xor_sync(0x0000ffffu, give, MASK)", ONCE},
    {"rows owned one off", "vpps_before_share(blocks, parts, member) * VPPS_ROW_BLOCK,",
     "vpps_before_share(blocks, parts, member) * VPPS_ROW_BLOCK + 1,", ONCE},
    {"a matrix's registers one off", "w[AT + i + k] = there", "w[AT + (i + RUN) % (ROWS * COLUMNS) + k] = there", ONCE},
    {"gradients that go on from what was there", "return param == VPPS_NONE || vpps_touched[param]",
     "return 1 || vpps_touched[param]", ONCE},
    {"the second of two vertices left out", "output = item ? number - OUTPUTS", "output = item ? 64 + number - OUTPUTS",
     ONCE},
    {"operands of the next vertices not loaded", "if (first + ITEMS < n)", "if (first + ITEMS + 1 < n)", ONCE},
    {"a vector's gradient written for another", "vpps_constants<SUMS::GRADIENT...>::get(which)",
     "vpps_constants<SUMS::GRADIENT...>::get(which ^ 1)", ONCE},
    {"gradients begun anew by every task", "add = vpps_is_begun(s.param)", "add = 0 & vpps_is_begun(s.param)", ONCE},
    {"a slot's gradient put where the first row's is", "(own.first + s.row) * unit.length", "own.first * unit.length",
     ONCE},
    {"sums of another unit's columns", "units[number % UNITS]", "units[(number ^ 1) % UNITS]", ONCE},
    {"a part's sums not added", "if (part + 1 == giver) {", "if (0 && part + 1 == giver) {", ONCE},
    {"late weights not taken", "case VPPS_KERNEL_WEIGHTS: vpps_take_late_weights(w, vpps_dynamic);",
     "case VPPS_KERNEL_WEIGHTS:", ONCE},
    {"late weights brought beside their place", "vpps_copy_word(to + (i + k) * VPPS_THREADS",
     "vpps_copy_word(to + ((i + k) ^ 1) * VPPS_THREADS", ONCE},
    {"late weights that stay in shared memory not brought", "vpps_load_late_weights(a, vpps_dynamic);", "", CROWDED},
    {"what is added to a bias's gradient read for another", "VPPS_LANE == 0 && begun ? *to",
     "VPPS_LANE == 0 && begun ? to[1]", ONCE},
    {"the barrier before factors of gradients are used removed", "__syncthreads();\n            const bool more",
     "const bool more", ONCE},
    {"vectors after the last added to gradients", " && s.from + k < n);", ");", ONCE},
    {"the barrier before copied operands are used removed", "if (coming) wait_for_copies();", "", CROWDED},
    {"operands copied over those in use", "copies + coming / VPPS_COPY_ITEMS % COPY_BUFFERS * WORDS",
     "copies + coming / VPPS_COPY_ITEMS % 1 * WORDS", CROWDED},
    {"operands of a vertex alone copied beside their place", "copy<ITEMS>(copies, 0, operands...);",
     "copy<ITEMS>(copies + 4, 0, operands...);", CROWDED},
    {"the first vertex of a task left out", "(t.operands[1] + share.first, ", "(t.operands[1] + share.first + 1, ",
     EVERYWHERE},
    {"the barrier between products and their sums removed", "__syncthreads();\nvpps_elements<", "vpps_elements<",
     EVERYWHERE},
    {"high parts of what is kept taken for low ones", "__byte_perm(first, second, 0x7632)",
     "__byte_perm(first, second, 0x5410)", IN_PARTS},
    {"what is kept in parts summed up as it is", "return IN_PARTS ? vpps_whole_of(kept) : kept;", "return kept;",
     IN_PARTS},
    {"other warps' parts of gradients left out", "q[k][0] += sums.x,", "q[k][0] += 0.0f,", IN_PARTS},
    {"the barrier before parts of gradients are added removed",
     "__syncthreads();\n#pragma unroll 1\n        for (unsigned other = 0;",
     "#pragma unroll 1\n        for (unsigned other = 0;", IN_PARTS},
    {"a share of the columns left out", "for (unsigned s = 0; s < shares; s++) sum",
     "for (unsigned s = 1; s < shares; s++) sum", WIDE},
    {"the barrier before copied blocks are multiplied removed",
     "vpps_wait_for_copies_before();\n                __syncthreads();", "vpps_wait_for_copies_before();", WIDE},
    {"the barrier before the shares' sums are added removed",
     "__syncthreads();\n#pragma unroll 1\n        for (unsigned k = threadIdx.x; k < OUTPUTS * all",
     "#pragma unroll 1\n        for (unsigned k = threadIdx.x; k < OUTPUTS * all", WIDE},
    {"columns after an operand's last one copied", "at + k + column < ends[0]", "true", WIDE},
    {"vectors after the first 32 left out", "if (first < n) multiply<1>", "if (!first) multiply<1>", WIDE_PARTS},
    {"16 vectors at once taken for 16 others", "first + k * 8 + lane / 4", "first + k % 2 * 8 + lane / 4", WIDE_PARTS},
    {"the barrier before the warps' sums are added removed",
     "__syncthreads();\n#pragma unroll 1\n        for (unsigned i = weights.thread; i < 8 * ROWS",
     "#pragma unroll 1\n        for (unsigned i = weights.thread; i < 8 * ROWS", WIDE_PARTS},
    {"the barrier before warps' sums are overwritten removed",
     "vpps_sum_of_warps<VPPS_WARPS>(buffer + i * VPPS_SUM_WORDS);\n        __syncthreads();",
     "vpps_sum_of_warps<VPPS_WARPS>(buffer + i * VPPS_SUM_WORDS);", WIDE_PARTS},
    {"weights stored for other columns", "store(q[i], step + i, weights)", "store(q[i], step + (i ^ 1), weights)",
     WIDE_PARTS},
    {"another virtual processor's weights overwritten", "blockIdx.x * (STEPS", "blockIdx.x / 2 * (STEPS", WIDE_PARTS},
    {"operands multiplied twice", "load(next, x, step + 1, weights)", "load(next, x, step, weights)", WIDE_PARTS},
};

static const struct fault *planted; /* NULL: none */

/* Returns the source with a text replaced by another; the caller frees it. *found: number of occurrences. */
static char *replace(const char *source, const char *text, const char *with, bool everywhere, uint32_t *found) {
    size_t size;
    char *changed = NULL;
    FILE *f = need(open_memstream(&changed, &size));
    *found = 0;
    for (const char *at; (at = strstr(source, text)) && (everywhere || !*found); ++*found) {
        fprintf(f, "%.*s%s", (int)(at - source), source, with);
        source = at + strlen(text);
    }
    fputs(source, f);
    fclose(f);
    return changed;
}

/* Makes no script short enough to be copied to shared memory. */
static const struct fault uncopied_script = {"", "if (words > VPPS_SCRIPT_WORDS) return script;", "return script;",
                                             ONCE};

/* Calls the driver's own function, with the fault in the source. */
static vpps_status load(vpps_driver *d, const char *source, const char *description, const vpps_launch_shape *shape,
                        vpps_kernel **out, vpps_cubin_report *report) {
    uint32_t found;
    if (!planted) return vpps_driver_simt.load(d, source, description, shape, out, report);
    FREED char *changed = replace(source, planted->text, planted->with, planted->where != ONCE, &found);
    ck_assert_msg(found && (planted->where != ONCE || !strstr(strstr(source, planted->text) + 1, planted->text)),
                  "%s: its text is not there, or not once", planted->what);
    return vpps_driver_simt.load(d, changed, description, shape, out, report);
}

static where looked_for; /* by look_for_texts, which loads nothing */

static const struct fault text_only;

static vpps_status look_for_texts(vpps_driver *d, const char *source, const char *description,
                                  const vpps_launch_shape *shape, vpps_kernel **out, vpps_cubin_report *report) {
    (void)d, (void)description, (void)shape, (void)out, (void)report;
    for (const struct fault *fault = faults; fault < faults + VPPS_COUNT(faults); fault++) {
        const char *first = strstr(source, fault->text);
        if (fault->where != looked_for) continue;
        ck_assert_msg(first, "%s: its text is not there", fault->what);
        ck_assert_msg(fault->where != ONCE || !strstr(first + 1, fault->text), "%s: its text is there twice",
                      fault->what);
    }
    return vpps_fail(VPPS_DEVICE, "all texts are there");
}

static gpu_trees open_trees(const struct fault *fault, where kind) {
    const uint32_t hidden = kind >= WIDE ? 136 : kind == CROWDED ? 64 : 40;
    static vpps_driver_table driver;
    driver = vpps_driver_simt;
    driver.load = fault == &text_only ? look_for_texts : load;
    planted = fault;
    vpps_options o = default_options();
    o.device = "simt";
    o.no_tuning = true;
    o.pool_bytes = 32 << 20;
    o.watchdog_ms = WATCHDOG_MS;
    o.precision = kind == IN_PARTS || kind == WIDE_PARTS ? VPPS_PRECISION_BF16X3 : VPPS_PRECISION_FP32;
    setenv("VPPS_SIMT_SMS", hidden > 40 ? "2" : "4", 1);
    return trees_driven_by(&driver, hidden, hidden, &o);
}

/* Trains; returns the parameters, or NULL (and *message) if a batch failed. */
static float *train(const struct fault *fault, where kind, uint32_t seed, size_t *n, char *message) {
    char text[16];
    snprintf(text, sizeof text, "%u", seed);
    setenv("VPPS_SIMT_SEED", text, 1);
    float *values = NULL;
    *message = '\0';
    AT_END(trees_close) gpu_trees t = open_trees(fault, kind);
    for (uint32_t batch = 0; batch < BATCHES && !*message; batch++) {
        vpps_status status = vpps_fb(t.h, t.g, trees_build(&t, batch), NULL);
        if (status == VPPS_OK) status = vpps_sync_latest_loss(t.h, NULL);
        if (status != VPPS_OK) snprintf(message, VPPS_MESSAGE_BYTES, "%s", vpps_error_message());
    }
    if (!*message) { values = handle_values(t.model, t.h, n); }
    return values;
}

/* Results without a fault, in the first order of turns; made before the tests fork. ONCE and EVERYWHERE have the same. */
static struct right {
    float *values;
    size_t n;
} rights[WIDE_PARTS + 1];

static void train_without_faults(void) {
    char message[VPPS_MESSAGE_BYTES];
    const where last = test_full() || test_kernels("all") || test_kernels("networks")
                           ? WIDE_PARTS
                           : IN_PARTS; /* everyday faults need no other */
    for (where kind = EVERYWHERE; kind <= last; kind++) {
        rights[kind].values = train(NULL, kind, 0, &rights[kind].n, message);
        ck_assert_msg(rights[kind].values != NULL, "without a fault: %s", message);
    }
}

static void forget_rights(void) {
    for (where kind = EVERYWHERE; kind <= WIDE_PARTS; kind++) free(rights[kind].values);
}

static bool is_right(const float *values, where kind) {
    const struct right *right = &rights[kind == ONCE ? EVERYWHERE : kind];
    return values && !memcmp(values, right->values, right->n * sizeof *values);
}

TEST_GROUP("faults", .seconds = 120, .before = train_without_faults, .after = forget_rights);

/* Every fault: the test below plants a share of them. */
TEST_EACH(a_fault_has_its_text_in_the_kernel, ONCE, WIDE_PARTS + 1) {
    char message[VPPS_MESSAGE_BYTES];
    size_t n;
    looked_for = (where)_i;
    ck_assert_ptr_null(train(&text_only, looked_for, 0, &n, message));
    ck_assert_str_eq(message, "all texts are there");
}

GPU_EACH(a_planted_fault_is_caught, 4, VPPS_COUNT(faults)) {
    const struct fault *fault = &faults[_i];
    char message[VPPS_MESSAGE_BYTES];
    size_t n;
    vpps_simt_set_patience(300000000);
    bool caught = false;
    for (uint32_t seed = 0; seed < SEEDS && !caught; seed++) {
        FREED float *values = train(fault, fault->where, seed, &n, message);
        caught = !is_right(values, fault->where);
        if (caught) printf("%s: seed %u: %s\n", fault->what, seed, values ? "wrong parameters" : message);
    }
    ck_assert_msg(caught, "%s: nothing was wrong", fault->what);
}

/* The order of turns alone changes no bit, so the comparisons of the test above are meaningful. */
TEST_EACH(without_faults_every_order_gives_the_same, EVERYWHERE, IN_PARTS + 1) {
    char message[VPPS_MESSAGE_BYTES];
    size_t n;
    const uint32_t seeds = test_full() || test_kernels("networks") ? SEEDS : SEEDS / 3;
    for (uint32_t seed = 1; seed < seeds; seed++) {
        FREED float *values = train(NULL, (where)_i, seed, &n, message);
        ck_assert_msg(values != NULL, "seed %u: %s", seed, message);
        ck_assert_msg(is_right(values, (where)_i), "seed %u gives other parameters", seed);
    }
}

TEST(a_script_beyond_shared_memory_gives_the_same) {
    char message[VPPS_MESSAGE_BYTES];
    size_t n;
    FREED float *uncopied = train(&uncopied_script, ONCE, 0, &n, message);
    ck_assert_msg(uncopied, "%s", message);
    ck_assert(is_right(uncopied, ONCE));
}

/* Returns the first task of that kind in the first group; VPPS_TASK_COUNT: the first that waits. */
static vpps_task *find(const vpps_batch *b, vpps_task_kind kind) {
    vpps_task *t = (vpps_task *)(void *)(b->script + vpps_task_starts(b->script)[0]);
    for (; t < vpps_end_of_tasks(b->script, 0); t++)
        if (t->kind == kind || (kind == VPPS_TASK_COUNT && t->wait != VPPS_NO_BARRIER)) return t;
    ck_abort_msg("the script has no such task");
    return NULL;
}

static void expect(const gpu_trees *t, const vpps_batch *b, vpps_status status, const char *text) {
    vpps_device *d = t->h->device;
    vpps_outcome out;
    const uint64_t start = vpps_now_ns();
    d->table->launch(d, b); /* the outcome has the failure, too */
    d->table->wait(d, &out);
    ck_assert_msg(out.status == status, "%s instead of %s: %s", vpps_status_name(out.status), vpps_status_name(status),
                  out.message);
    ck_assert_msg(strstr(out.message, text) != NULL, "\"%s\" lacks \"%s\"", out.message, text);
    if (status != VPPS_OK)
        ck_assert_msg(strstr(out.message, "VP ") && strstr(out.message, "task at word "), "%s", out.message);
    ck_assert_msg(vpps_now_ns() - start < 20000000000u, "took far longer than the watchdog's time");
}

static void expect_values(const gpu_trees *t, const float *values, bool same) {
    size_t n;
    FREED float *now = handle_values(t->model, t->h, &n);
    ck_assert_msg(!memcmp(now, values, n * sizeof *now) == same, "parameters are %s", same ? "others" : "the same");
}

TEST(a_broken_script_ends_with_a_reason_and_updates_nothing) {
    const vpps_batch *b;
    char text[64];
    size_t n;
    setenv("VPPS_SIMT_SEED", "0", 1);
    AT_END(trees_close) gpu_trees t = open_trees(NULL, ONCE);
    FREED float *before = handle_values(t.model, t.h, &n);
    TEST_OK(vpps_handle_batch(t.h, t.g, trees_build(&t, 0), &b));
    vpps_task *waits = find(b, VPPS_TASK_COUNT);
    const uint32_t wanted = waits->signals;
    snprintf(text, sizeof text, "waited 0.2 s at barrier %u, which has %u of %u signals", waits->wait, wanted,
             wanted + 1);
    waits->signals = wanted + 1;
    expect(&t, b, VPPS_STALL, text);
    expect_values(&t, before, true);
    waits->signals = wanted;
    vpps_task *update = find(b, VPPS_TASK_UPDATE);
    update->kind = 250;
    expect(&t, b, VPPS_SCRIPT, "250 is no known task");
    expect_values(&t, before, true);
    update->kind = VPPS_TASK_UPDATE;
    expect(&t, b, VPPS_OK, ""); /* the device works as before */
    expect_values(&t, before, false);
}

int main(void) { return gpu_main("gpu faults"); }
