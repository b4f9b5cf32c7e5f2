/* test_ops_kernel.c - what a kernel computes of elements and of whole vectors, executed by software SIMT, against the CPU device's
 * kernels; and the optimisers' steps, against vpps.h. Cases are made from isa.def, so none is left out. A pool holds the tensors of
 * many cases; after a run all of it is compared, so a write beside a result shows. VPPS_TEST_SEED draws other inputs.
 */
#include "codegen/ops_harness.h"
#include "common/testing.h"
#include "runtime/cpu/kernels.h"

#include <math.h>

/* ---------------------------------------------------------------- pools
 *
 * Checks of single words are written out: Check's assertions cost a system call each. */

/* Words that grow: a script, or a pool (whose words are floats' bits). */
typedef struct words {
    uint32_t *at;
    size_t n, capacity;
} words;

static uint32_t append(words *w, uint32_t word) {
    if (!VPPS_RESERVE(w->at, w->capacity, w->n + 1)) ck_abort_msg("out of memory");
    w->at[w->n] = word;
    return (uint32_t)w->n++;
}

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float float_at(const words *w, size_t i) { return float_of(w->at[i]); }

enum { GAP = 0x7fc0beef };

/* n elements drawn from [low, high), and a gap behind them. */
static uint32_t tensor(words *pool, uint64_t *random, uint32_t n, float low, float high) {
    const uint32_t offset = (uint32_t)pool->n;
    for (uint32_t i = 0; i < n; i++) append(pool, bits_of(low + (high - low) * vpps_random_unit(random)));
    append(pool, GAP);
    return offset;
}

enum { MAX_CASES = 512, MAX_TENSORS = 3 };

typedef struct batch {
    words pool;
    ops_case cases[MAX_CASES];
    uint32_t n_cases;
    vpps_task_header header;
    uint64_t random;
} batch;

static void clear(batch *b) {
    b->pool.n = b->n_cases = 0;
    append(&b->pool, GAP);
}

/* Executes the cases; the pool is changed. */
static void run_on_simt(batch *b, vpps_simt_kernel *kernel, const ops_machine *m) {
    words script = {0};
    uint32_t header[VPPS_TASK_HEADER_WORDS];
    memcpy(header, &b->header, sizeof header);
    for (uint32_t i = 0; i < VPPS_TASK_HEADER_WORDS; i++) append(&script, header[i]);
    append(&script, b->n_cases);
    for (uint32_t i = 0; i < b->n_cases; i++) {
        uint32_t words_of_case[OPS_CASE_WORDS];
        memcpy(words_of_case, &b->cases[i], sizeof words_of_case);
        for (uint32_t k = 0; k < OPS_CASE_WORDS; k++) append(&script, words_of_case[k]);
    }
    const vpps_arguments a = {.pool = (uintptr_t)b->pool.at, .script = (uintptr_t)script.at};
    TEST_OK(vpps_simt_run(kernel, m->n_vps, m->threads, 0, &a, sizeof a, (uint32_t)b->random | 1));
    free(script.at);
}

/* ---------------------------------------------------------------- instructions */

static bool is_reduction(const ops_case *c) { return vpps_instructions[c->what].form == VPPS_FORM_REDUCE; }

static float lowest(uint32_t opcode) {
    switch (opcode) {
    case VPPS_I_LOG:
    case VPPS_I_SQRT:
    case VPPS_I_SQRT_B:
    case VPPS_I_RECIPROCAL:
    case VPPS_I_DIV:
    case VPPS_I_DIV_B: return 0.1f;
    case VPPS_I_BINARY_LOG_LOSS:
    case VPPS_I_BINARY_LOG_LOSS_BP:
    case VPPS_I_BINARY_LOG_LOSS_BT: return 0.02f;
    default: return -3.0f;
    }
}

static float highest(uint32_t opcode) { return lowest(opcode) == 0.02f ? 0.98f : 3.0f; }

/* Appends a case: operands as the letters say. `over`: the tensor operand that the destination lies over, from 0; others than
 * there are: a place of its own. */
static ops_case *add_case(batch *b, uint32_t opcode, uint32_t length, uint32_t items, uint32_t over) {
    ck_assert_uint_lt(b->n_cases, MAX_CASES);
    const float low = lowest(opcode), high = highest(opcode);
    ops_case *c = &b->cases[b->n_cases++];
    *c = (ops_case){.what = opcode, .length = length, .items = items};
    c->to = tensor(&b->pool, &b->random, is_reduction(c) ? items : length * items, -1, 1);
    uint32_t tensors = 0, scalars = 0;
    for (const char *letter = vpps_instructions[opcode].operands; *letter; letter++) switch (*letter) {
        case 't': c->t[tensors++] = tensor(&b->pool, &b->random, length * items, low, high); break;
        case 's': c->s[scalars++] = tensor(&b->pool, &b->random, items, low, high); break;
        case 'f': c->f = bits_of(0.1f + 0.8f * vpps_random_unit(&b->random)); break;
        case 'e': c->e = (uint32_t)vpps_random(&b->random); break;
        case 'u': c->u = vpps_random_below(&b->random, opcode == VPPS_I_INDEX_B ? 3 : length); break;
        default: ck_abort_msg("operand letter %c", *letter);
        }
    if (over < tensors && !is_reduction(c)) c->to = c->t[over];
    if (opcode == VPPS_I_INDEX_B)
        for (uint32_t e = 0; e < length * items; e++) b->pool.at[c->t[1] + e] = vpps_random_below(&b->random, 3);
    if (opcode == VPPS_I_LOG_SOFTMAX_B) /* e^y is what the sum's error is multiplied with: y is not positive */
        for (uint32_t e = 0; e < length * items; e++)
            b->pool.at[c->t[1] + e] = bits_of(float_at(&b->pool, c->t[1] + e) - highest(opcode));
    return c;
}

/* What the CPU device makes of it. */
static void run_on_cpu(const batch *b, const ops_case *c, float *pool) {
    const uint64_t key = b->header.dropout_key[0] | (uint64_t)b->header.dropout_key[1] << 32;
    for (uint32_t i = 0; i < c->items; i++) {
        vpps_operands o = {.f = float_of(c->f), .u = c->u, .e = c->e + i * c->length, .key = key};
        for (uint32_t t = 0; t < MAX_TENSORS; t++) o.t[t] = pool + c->t[t] + (size_t)i * c->length;
        for (uint32_t s = 0; s < VPPS_COUNT(o.s); s++) o.s[s] = pool[c->s[s] + i];
        vpps_kernels_choose(true)->run[c->what](c->length, false, pool + c->to + (is_reduction(c) ? i : i * c->length),
                                                &o);
    }
}

/* Instructions of at most one rounding, whose results are the CPU's to the bit. */
static bool is_exact(const ops_case *c) {
    static const bool exact[VPPS_I_COUNT] = {
        [VPPS_I_FILL] = true,      [VPPS_I_COPY] = true,       [VPPS_I_NEG] = true,      [VPPS_I_ADD] = true,
        [VPPS_I_SUB] = true,       [VPPS_I_MUL] = true,        [VPPS_I_DIV] = true,      [VPPS_I_MAX] = true,
        [VPPS_I_MIN] = true,       [VPPS_I_SCALE] = true,      [VPPS_I_SCALE_BY] = true, [VPPS_I_BROADCAST] = true,
        [VPPS_I_DROPOUT] = true,   [VPPS_I_RELU] = true,       [VPPS_I_SQUARE] = true,   [VPPS_I_SQRT] = true,
        [VPPS_I_ABS] = true,       [VPPS_I_RELU_B] = true,     [VPPS_I_ABS_B] = true,    [VPPS_I_MAX_B0] = true,
        [VPPS_I_MAX_B1] = true,    [VPPS_I_MIN_B0] = true,     [VPPS_I_MIN_B1] = true,   [VPPS_I_INDEX_B] = true,
        [VPPS_I_ONE_MINUS] = true, [VPPS_I_RECIPROCAL] = true, [VPPS_I_WHEN] = true,     [VPPS_I_ZERO] = true,
    };
    return exact[c->what];
}

static bool agrees(const ops_case *c, float got, float want) {
    if (isnan(want)) return isnan(got);
    if (is_exact(c)) return bits_of(got) == bits_of(want);
    if (isinf(want)) return got == want;
    if (fabsf(want) > 1e36f && isinf(got)) return signbit(got) == signbit(want); /* a step on the way may overflow */
    const float sums = vpps_instructions[c->what].form == VPPS_FORM_EW ? 0.0f : 2e-7f * (float)c->length;
    return fabsf(got - want) <= 1e-5f + 2e-6f * fabsf(want) + sums;
}

/* Runs the batch on both and compares the whole pools. */
static void check_batch(batch *b, vpps_simt_kernel *kernel, const ops_machine *m) {
    words want = {0};
    b->header.dropout_key[0] = (uint32_t)vpps_random(&b->random);
    b->header.dropout_key[1] = (uint32_t)vpps_random(&b->random);
    for (size_t i = 0; i < b->pool.n; i++) append(&want, b->pool.at[i]);
    for (uint32_t i = 0; i < b->n_cases; i++) run_on_cpu(b, &b->cases[i], (float *)(void *)want.at);
    run_on_simt(b, kernel, m);
    for (uint32_t n = 0; n < b->n_cases; n++) {
        const ops_case *c = &b->cases[n];
        for (uint32_t e = 0; e < (is_reduction(c) ? c->items : c->length * c->items); e++) {
            const float got = float_at(&b->pool, c->to + e), expected = float_at(&want, c->to + e);
            if (!agrees(c, got, expected))
                ck_abort_msg("%s, %u items of %u elements, %u VPs: element %u is %.9g, not %.9g",
                             vpps_instructions[c->what].name, c->items, c->length, m->n_vps, e, (double)got,
                             (double)expected);
            want.at[c->to + e] = b->pool.at[c->to + e];
        }
    }
    for (size_t w = 0; w < want.n; w++)
        if (b->pool.at[w] != want.at[w])
            ck_abort_msg("%s: word %zu of the pool is %x, not %x", vpps_instructions[b->cases[0].what].name, w,
                         b->pool.at[w], want.at[w]);
    free(want.at);
}

/* ---------------------------------------------------------------- cases of instructions */

static const uint32_t lengths[] = {1, 5, 31, 33, 100, 257, 512};

static void add_drawn_cases(batch *b, uint32_t opcode) {
    for (uint32_t n = 0; n < VPPS_COUNT(lengths); n++) {
        add_case(b, opcode, lengths[n], 1, MAX_TENSORS);
        for (uint32_t over = 0; over < MAX_TENSORS; over++) add_case(b, opcode, lengths[n], 1 + n % 3, over);
        for (uint32_t items = 1; items < 40; items = items * 3 + 1) add_case(b, opcode, lengths[n], items, items % 4);
    }
}

static const float extremes[] = {0.0f,   -0.0f,   1e-40f,   -1e-40f,   0x1p-126f, 1.0f,  -1.0f,
                                 100.0f, -100.0f, INFINITY, -INFINITY, NAN,       20.0f, -20.0f};

/* Every pair of extreme inputs, through instructions that take elements one by one. */
static void add_extreme_case(batch *b, uint32_t opcode) {
    enum { N = VPPS_COUNT(extremes) };
    if (vpps_instructions[opcode].form != VPPS_FORM_EW) return;
    const ops_case *c = add_case(b, opcode, N * N, 1, MAX_TENSORS);
    for (uint32_t t = 0; t < strspn(vpps_instructions[opcode].operands, "t"); t++)
        for (uint32_t e = 0; e < N * N && (opcode != VPPS_I_INDEX_B || t != 1); e++)
            b->pool.at[c->t[t] + e] = bits_of(extremes[t == 0 ? e % N : t == 1 ? e / N : (e + 3) % N]);
}

START_TEST(instructions_do_what_the_cpus_do)
    {
        const ops_machine *m = &ops_machines[_i];
        vpps_simt_kernel *kernel = ops_load(m);
        if (!kernel) return;
        batch b = {.random = test_seed() + (uint64_t)_i};
        for (uint32_t opcode = 0; opcode < VPPS_I_COUNT; opcode++) {
            if (!ops_has(opcode)) continue;
            clear(&b);
            add_drawn_cases(&b, opcode);
            add_extreme_case(&b, opcode);
            check_batch(&b, kernel, m);
        }
        free(b.pool.at);
        vpps_simt_unload(kernel);
    }
END_TEST

/* Every instruction but those that the generator writes out in each stage. */
START_TEST(none_is_left_out)
    {
        for (uint32_t opcode = 0; opcode < VPPS_I_COUNT; opcode++) {
            static const uint32_t written_out[] = {VPPS_I_SUM,          VPPS_I_MAX_OF, VPPS_I_MIN_OF,
                                                   VPPS_I_WEIGHTED_SUM, VPPS_I_MATMUL, VPPS_I_MATMUL_NT,
                                                   VPPS_I_MATMUL_TN};
            bool want = vpps_instructions[opcode].form < VPPS_FORM_PARTS;
            for (size_t i = 0; i < VPPS_COUNT(written_out); i++) want &= opcode != written_out[i];
            ck_assert_msg(ops_has(opcode) == want, "%s", vpps_instructions[opcode].name);
        }
    }
END_TEST

/* Losses of logits far apart, and of elements that are not numbers. */
START_TEST(losses_take_extreme_vectors)
    {
        static const float rows[][5] = {{3e4f, -3e4f, 0, -INFINITY, 2.9e4f},
                                        {1, NAN, 2, 3, 4},
                                        {INFINITY, 1, 2, 3, 4},
                                        {-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY},
                                        {0, 1, 1, 0, 0.5f}};
        const ops_machine *m = &ops_machines[0];
        vpps_simt_kernel *kernel = ops_load(m);
        if (!kernel) return;
        batch b = {.random = test_seed()};
        clear(&b);
        for (uint32_t opcode = 0; opcode < VPPS_I_COUNT; opcode++)
            for (uint32_t r = 0; r < VPPS_COUNT(rows); r++) {
                const vpps_form form = vpps_instructions[opcode].form;
                if (form != VPPS_FORM_REDUCE && form != VPPS_FORM_ROW) continue;
                const ops_case *c = add_case(&b, opcode, 5, 1, MAX_TENSORS);
                for (uint32_t t = 0; t < strspn(vpps_instructions[opcode].operands, "t"); t++)
                    for (uint32_t e = 0; e < 5; e++)
                        b.pool.at[c->t[t] + e] = bits_of(rows[t ? VPPS_COUNT(rows) - 1 : r][e]);
            }
        check_batch(&b, kernel, m);
        free(b.pool.at);
        vpps_simt_unload(kernel);
    }
END_TEST

/* ---------------------------------------------------------------- the optimisers' steps */

/* vpps.h's formulas in double precision. */
static void step(const vpps_task_header *h, vpps_optimizer_kind kind, double g, double *w, double *s0, double *s1) {
    const double decay = (double)h->weight_decay, lr = (double)h->lr, beta1 = (double)h->beta1,
                 beta2 = (double)h->beta2, epsilon = (double)h->epsilon;
    if (kind != VPPS_ADAMW) g += decay * *w;
    switch (kind) {
    case VPPS_SGD: *w -= lr * g; return;
    case VPPS_MOMENTUM:
        *s0 = (double)h->momentum * *s0 + g;
        *w -= lr * *s0;
        return;
    case VPPS_ADAGRAD:
        *s0 += g * g;
        *w -= lr * g / (sqrt(*s0) + epsilon);
        return;
    case VPPS_ADAM:
    case VPPS_ADAMW:
        *s0 = beta1 * *s0 + (1 - beta1) * g;
        *s1 = beta2 * *s1 + (1 - beta2) * g * g;
        *w -= lr * (*s0 * (double)h->corrections[0] / (sqrt(*s1 * (double)h->corrections[1]) + epsilon) +
                    (kind == VPPS_ADAMW ? decay * *w : 0));
        return;
    }
}

static void check_near(const char *what, uint32_t kind, uint32_t e, float got, double want) {
    const bool good = isnan(want)   ? isnan(got)
                      : isinf(want) ? (double)got == want
                                    : fabs((double)got - want) <= 1e-5 + 2e-6 * fabs(want);
    if (!good) ck_abort_msg("optimiser %u: %s %u is %.9g, not %.9g", kind, what, e, (double)got, want);
}

static void check_steps(const batch *b, const words *before) {
    static const uint32_t states[] = {
#define X(id, name, states) states,
        VPPS_OPTIMIZER_TABLE(X)
#undef X
    };
    words want = {0};
    for (size_t i = 0; i < before->n; i++) append(&want, before->at[i]);
    for (uint32_t n = 0; n < b->n_cases; n++) {
        const ops_case *c = &b->cases[n];
        const uint32_t kind = c->what - VPPS_I_COUNT, places[] = {c->to, c->t[1], c->t[2]};
        static const char *const names[] = {"weight", "first state", "second state"};
        for (uint32_t e = 0; e < c->length; e++) {
            double x[3];
            for (uint32_t k = 0; k < 3; k++) x[k] = (double)float_at(before, places[k] + e);
            step(&b->header, (vpps_optimizer_kind)kind, (double)float_at(before, c->t[0] + e), &x[0], &x[1], &x[2]);
            for (uint32_t k = 0; k <= states[kind]; k++) {
                check_near(names[k], kind, e, float_at(&b->pool, places[k] + e), x[k]);
                want.at[places[k] + e] = b->pool.at[places[k] + e];
            }
        }
    }
    for (size_t w = 0; w < want.n; w++) /* states that an optimiser has not, too */
        if (b->pool.at[w] != want.at[w])
            ck_abort_msg("word %zu of the pool is %x, not %x", w, b->pool.at[w], want.at[w]);
    free(want.at);
}

START_TEST(steps_are_those_of_the_optimisers)
    {
        static const float gradients[] = {0.0f, -0.0f, 1e-40f, 1e-20f, 1e10f, -1e10f, INFINITY, -INFINITY, NAN};
        const ops_machine *m = &ops_machines[_i];
        vpps_simt_kernel *kernel = ops_load(m);
        if (!kernel) return;
        batch b = {.random = test_seed() + (uint64_t)_i};
        for (uint32_t round = 0; round < 2; round++) {
            words before = {0};
            clear(&b);
            b.header = (vpps_task_header){.corrections = {10.0f, 1000.0f},
                                          .lr = 0.1f,
                                          .momentum = 0.9f,
                                          .beta1 = 0.9f,
                                          .beta2 = 0.999f,
                                          .epsilon = 1e-8f,
                                          .weight_decay = round ? 0.01f : 0.0f};
            for (uint32_t kind = 0; kind < VPPS_OPTIMIZERS; kind++)
                for (uint32_t n = 0; n < VPPS_COUNT(lengths); n++) {
                    ops_case *c = &b.cases[b.n_cases++];
                    *c = (ops_case){.what = VPPS_I_COUNT + kind, .length = lengths[n], .items = 1};
                    c->to = tensor(&b.pool, &b.random, lengths[n], -1, 1);
                    for (uint32_t t = 0; t < 3; t++) /* the second moment, and Adagrad's sum, are not negative */
                        c->t[t] = tensor(&b.pool, &b.random, lengths[n], t ? 0.01f : -2.0f, t ? 1.0f : 2.0f);
                    for (uint32_t e = 0; e < VPPS_COUNT(gradients) && lengths[n] == 100; e++)
                        b.pool.at[c->t[0] + e] = bits_of(gradients[e]);
                }
            for (size_t i = 0; i < b.pool.n; i++) append(&before, b.pool.at[i]);
            run_on_simt(&b, kernel, m);
            check_steps(&b, &before);
            free(before.at);
        }
        free(b.pool.at);
        vpps_simt_unload(kernel);
    }
END_TEST

int main(void) {
    Suite *suite = suite_create("ops_kernel");
    TCase *tests = tcase_create("ops_kernel");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, instructions_do_what_the_cpus_do, 0, N_OPS_MACHINES);
    tcase_add_test(tests, none_is_left_out);
    tcase_add_test(tests, losses_take_extreme_vectors);
    tcase_add_loop_test(tests, steps_are_those_of_the_optimisers, 0, N_OPS_MACHINES);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
