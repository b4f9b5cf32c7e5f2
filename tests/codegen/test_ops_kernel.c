/* test_ops_kernel.c - the kernel's routine of every instruction of the forms EW, REDUCE, ROW and MATMUL, executed by
 * software SIMT, against the CPU device's kernels; instruction lengths against format.c. Cases are made from isa.def, so
 * none is left out. A pool holds the tensors of many cases; after a run all of it is compared, so a write beside a
 * result shows. VPPS_TEST_SEED draws other inputs.
 */
#include "codegen/ops_harness.h"
#include "common/testing.h"
#include "runtime/cpu/kernels.h"

#include <math.h>

/* ---------------------------------------------------------------- scripts and pools
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

static float float_at(const words *w, size_t i) {
    float x;
    memcpy(&x, w->at + i, sizeof x);
    return x;
}

enum { GAP = 0x7fc0beef };

/* n elements drawn from [low, high), and a gap behind them. */
static uint32_t tensor(words *pool, uint64_t *random, uint32_t n, float low, float high) {
    uint32_t offset = (uint32_t)pool->n;
    for (uint32_t i = 0; i < n; i++) append(pool, bits_of(low + (high - low) * vpps_random_unit(random)));
    append(pool, GAP);
    return offset;
}

typedef struct instruction {
    uint32_t address, opcode, length, vectors; /* vectors 0: not SPLIT */
    bool accumulate;
    uint32_t destination, results, indices; /* indices 0: none */
} instruction;

enum { MAX_CASES = 512, MAX_MEMBERS = 40 };

typedef struct batch {
    words pool, code;
    instruction cases[MAX_CASES];
    uint32_t n_cases;
    uint64_t random;
} batch;

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

/* Appends a case: operands as the letters say. `over`: the tensor operand that the destination lies over, from 0;
 * others than there are: a place of its own. */
static instruction *add_case(batch *b, uint32_t opcode, uint32_t length, uint32_t vectors, bool accumulate,
                             uint32_t members, uint32_t over) {
    ck_assert_uint_lt(b->n_cases, MAX_CASES);
    const vpps_instruction_row *row = &vpps_instructions[opcode];
    const float low = lowest(opcode), high = highest(opcode);
    uint32_t n = vectors ? length * vectors : length, r = 1, k = 0, c = length, sizes[3] = {n, n, n};
    if (row->form == VPPS_FORM_MATMUL) {
        r = length % 11 == 0 ? 11 : length % 5 == 0 ? 5 : length % 3 == 0 ? length / 3 : length;
        c = length / r;
        k = vpps_random_below(&b->random, 40);
        sizes[0] = r * k;
        sizes[1] = k * c;
    }
    instruction *i = &b->cases[b->n_cases++];
    *i = (instruction){(uint32_t)b->code.n, opcode, length, vectors, accumulate, 0, n, 0};
    if (row->form == VPPS_FORM_REDUCE) i->results = 1;
    i->destination = tensor(&b->pool, &b->random, i->results, -1, 1);
    append(&b->code, vpps_word(opcode, (accumulate ? VPPS_WORD_ACC : 0) | (vectors ? VPPS_WORD_SPLIT : 0), length));
    if (vectors) append(&b->code, vectors);
    uint32_t destination = append(&b->code, i->destination), tensors = 0;
    for (const char *letter = row->operands; *letter; letter++) switch (*letter) {
        case 't': {
            uint32_t t = append(&b->code, tensor(&b->pool, &b->random, sizes[tensors], low, high));
            if (over == tensors++ && (row->form == VPPS_FORM_EW || row->form == VPPS_FORM_ROW))
                i->destination = b->code.at[destination] = b->code.at[t];
            break;
        }
        case 's': append(&b->code, tensor(&b->pool, &b->random, 1, low, high)); break;
        case 'v': append(&b->code, tensor(&b->pool, &b->random, members, low, high)); break;
        case 'i': append(&b->code, i->indices = tensor(&b->pool, &b->random, n, 0, 1)); break;
        case 'f': append(&b->code, bits_of(0.1f + 0.8f * vpps_random_unit(&b->random))); break;
        case 'e': append(&b->code, (uint32_t)vpps_random(&b->random)); break;
        case 'u': append(&b->code, vpps_random_below(&b->random, opcode == VPPS_I_INDEX_B ? 3 : length)); break;
        case '*':
            append(&b->code, members);
            uint32_t second = 0;
            for (uint32_t m = 0; m < members; m++) { /* the fourth is the second: ties */
                uint32_t offset = m == 3 ? second : tensor(&b->pool, &b->random, n, low, high);
                if (m == 1) second = offset;
                append(&b->code, offset);
            }
            break;
        default: ck_abort_msg("operand letter %c", *letter);
        }
    if (row->form == VPPS_FORM_MATMUL) append(&b->code, r), append(&b->code, k), append(&b->code, c);
    if (opcode == VPPS_I_INDEX_B) {
        uint32_t indices = b->code.at[destination + 2];
        for (uint32_t e = 0; e < n; e++) b->pool.at[indices + e] = vpps_random_below(&b->random, 3);
    }
    return i;
}

static void clear(batch *b) {
    b->pool.n = b->code.n = b->n_cases = 0;
    append(&b->pool, GAP);
}

static void destroy(batch *b) {
    free(b->pool.at);
    free(b->code.at);
}

/* ---------------------------------------------------------------- what the CPU device makes of it */

static void run_on_cpu(const batch *b, const instruction *i, float *pool, uint64_t key) {
    const uint32_t *at = b->code.at + i->address + (i->vectors ? 3 : 2);
    const float *list[MAX_MEMBERS];
    vpps_operands o = {.key = key};
    uint32_t tensors = 0, scalars = 0;
    for (const char *letter = vpps_instructions[i->opcode].operands; *letter; letter++) switch (*letter) {
        case 't': o.t[tensors++] = pool + *at++; break;
        case 's': o.s[scalars++] = pool[*at++]; break;
        case 'v': o.weights = pool + *at++; break;
        case 'i': o.indices = (uint32_t *)(void *)(pool + *at++); break;
        case 'f': memcpy(&o.f, at++, sizeof o.f); break;
        case 'u': o.u = *at++; break;
        case 'e': o.e = *at++; break;
        default:
            o.n_list = *at++;
            for (uint32_t m = 0; m < o.n_list; m++) list[m] = pool + *at++;
            o.list = list;
        }
    if (vpps_instructions[i->opcode].form == VPPS_FORM_MATMUL) o.r = at[0], o.k = at[1], o.c = at[2];
    vpps_kernels_choose(true)->run[i->opcode](i->vectors ? i->length * i->vectors : i->length, i->accumulate,
                                              pool + i->destination, &o);
}

/* Instructions of at most one rounding, whose results are the CPU's to the bit. */
static bool is_exact(const instruction *i) {
    static const bool exact[VPPS_I_COUNT] = {
        [VPPS_I_FILL] = true,   [VPPS_I_COPY] = true,    [VPPS_I_NEG] = true,       [VPPS_I_ADD] = true,
        [VPPS_I_SUB] = true,    [VPPS_I_MUL] = true,     [VPPS_I_DIV] = true,       [VPPS_I_MAX] = true,
        [VPPS_I_MIN] = true,    [VPPS_I_SCALE] = true,   [VPPS_I_SCALE_BY] = true,  [VPPS_I_BROADCAST] = true,
        [VPPS_I_MAX_OF] = true, [VPPS_I_MIN_OF] = true,  [VPPS_I_DROPOUT] = true,   [VPPS_I_RELU] = true,
        [VPPS_I_SQUARE] = true, [VPPS_I_SQRT] = true,    [VPPS_I_ABS] = true,       [VPPS_I_RELU_B] = true,
        [VPPS_I_ABS_B] = true,  [VPPS_I_MAX_B0] = true,  [VPPS_I_MAX_B1] = true,    [VPPS_I_MIN_B0] = true,
        [VPPS_I_MIN_B1] = true, [VPPS_I_INDEX_B] = true, [VPPS_I_ONE_MINUS] = true, [VPPS_I_RECIPROCAL] = true,
        [VPPS_I_WHEN] = true,   [VPPS_I_ZERO] = true,
    };
    return exact[i->opcode] && !i->accumulate;
}

static bool agrees(const instruction *i, float got, float want) {
    if (isnan(want)) return isnan(got);
    if (is_exact(i)) return bits_of(got) == bits_of(want);
    if (isinf(want)) return got == want;
    if (fabsf(want) > 1e36f && isinf(got)) return signbit(got) == signbit(want); /* a step on the way may overflow */
    const float sums = vpps_instructions[i->opcode].form == VPPS_FORM_EW ? 0.0f : 2e-7f * (float)i->length;
    return fabsf(got - want) <= 1e-5f + 2e-6f * fabsf(want) + sums;
}

/* Runs the batch on both and compares the whole pools. */
static void check_batch(batch *b, vpps_simt_kernel *kernel, const ops_machine *m) {
    const uint64_t key = vpps_random(&b->random);
    words script = {0}, want = {0};
    uint32_t head = 4 + b->n_cases;
    append(&script, b->n_cases), append(&script, (uint32_t)key), append(&script, (uint32_t)(key >> 32));
    append(&script, 0);
    for (uint32_t i = 0; i < b->n_cases; i++) append(&script, head + b->cases[i].address);
    for (size_t i = 0; i < b->code.n; i++) append(&script, b->code.at[i]);
    for (size_t i = 0; i < b->pool.n; i++) append(&want, b->pool.at[i]);
    for (uint32_t i = 0; i < b->n_cases; i++) run_on_cpu(b, &b->cases[i], (float *)(void *)want.at, key);

    const vpps_arguments a = {.pool = (uintptr_t)b->pool.at, .script = (uintptr_t)script.at};
    TEST_OK(vpps_simt_run(kernel, m->n_vps, m->threads, 0, &a, sizeof a, (uint32_t)b->random | 1));
    for (uint32_t n = 0; n < b->n_cases; n++) {
        const instruction *i = &b->cases[n];
        for (uint32_t e = 0; e < i->results; e++) {
            float got = float_at(&b->pool, i->destination + e), expected = float_at(&want, i->destination + e);
            if (!agrees(i, got, expected))
                ck_abort_msg("%s%s, %u elements, %u vectors, %u VPs: element %u is %.9g, not %.9g",
                             vpps_instructions[i->opcode].name, i->accumulate ? " accumulating" : "", i->length,
                             i->vectors, m->n_vps, e, got, expected);
            want.at[i->destination + e] = b->pool.at[i->destination + e];
        }
    }
    for (size_t w = 0; w < want.n; w++) /* indices too */
        if (b->pool.at[w] != want.at[w])
            ck_abort_msg("%s: word %zu of the pool is %x, not %x", vpps_instructions[b->cases[0].opcode].name, w,
                         b->pool.at[w], want.at[w]);
    free(script.at);
    free(want.at);
}

/* ---------------------------------------------------------------- cases */

static const uint32_t lengths[] = {1, 5, 31, 33, 100, 257, 512};

static bool is_computed(uint32_t opcode) {
    vpps_form form = vpps_instructions[opcode].form;
    return form != VPPS_FORM_SHARED && form != VPPS_FORM_CONTROL;
}

static void add_drawn_cases(batch *b, uint32_t opcode) {
    const bool elementwise = vpps_instructions[opcode].form == VPPS_FORM_EW;
    const bool list = strchr(vpps_instructions[opcode].operands, '*') != NULL;
    for (uint32_t n = 0; n < 2 * VPPS_COUNT(lengths); n++) {
        uint32_t length = lengths[n / 2];
        add_case(b, opcode, length, 0, n % 2, 1 + n % 6, 3);
        for (uint32_t over = 0; over < 3; over++) add_case(b, opcode, length, 0, n % 2, 1 + n % 6, over);
        if (elementwise)
            for (uint32_t vectors = 1; vectors < 40; vectors = vectors * 3 + 1)
                add_case(b, opcode, length, vectors, n % 2, 2 + vectors % 4, vectors % 4);
        if (list && length < 64) add_case(b, opcode, length, 0, n % 2, MAX_MEMBERS, 3);
    }
}

static const float extremes[] = {0.0f,   -0.0f,   1e-40f,   -1e-40f,   0x1p-126f, 1.0f,  -1.0f,
                                 100.0f, -100.0f, INFINITY, -INFINITY, NAN,       20.0f, -20.0f};

/* Every pair of extreme inputs, through instructions that take elements one by one. */
static void add_extreme_case(batch *b, uint32_t opcode) {
    enum { N = VPPS_COUNT(extremes) };
    const char *operands = vpps_instructions[opcode].operands;
    if (vpps_instructions[opcode].form != VPPS_FORM_EW) return;
    const instruction *i = add_case(b, opcode, N * N, 0, false, 3, 3);
    const uint32_t *at = b->code.at + i->address + 2;
    const uint32_t *tensors = strchr(operands, '*') ? at + strlen(operands) : at;
    const uint32_t n = strchr(operands, '*') ? 3 : (uint32_t)strspn(operands, "t");
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t e = 0; e < N * N && (opcode != VPPS_I_INDEX_B || t != 1); e++)
            b->pool.at[tensors[t] + e] = bits_of(extremes[t == 0 ? e % N : t == 1 ? e / N : (e + 3) % N]);
}

START_TEST(instructions_do_what_the_cpus_do)
    {
        const ops_machine *m = &ops_machines[_i];
        vpps_simt_kernel *kernel = ops_load(m);
        if (!kernel) return;
        batch b = {.random = test_seed() + (uint64_t)_i};
        for (uint32_t opcode = 0; opcode < VPPS_I_COUNT; opcode++) {
            if (!is_computed(opcode)) continue;
            clear(&b);
            add_drawn_cases(&b, opcode);
            add_extreme_case(&b, opcode);
            check_batch(&b, kernel, m);
        }
        destroy(&b);
        vpps_simt_unload(kernel);
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
                vpps_form form = vpps_instructions[opcode].form;
                if (form != VPPS_FORM_REDUCE && form != VPPS_FORM_ROW) continue;
                const instruction *i = add_case(&b, opcode, 5, 0, false, 0, 3);
                for (uint32_t t = 0; t < strspn(vpps_instructions[opcode].operands, "t"); t++)
                    for (uint32_t e = 0; e < 5; e++)
                        b.pool.at[b.code.at[i->address + 2 + t] + e] = bits_of(rows[t ? VPPS_COUNT(rows) - 1 : r][e]);
            }
        check_batch(&b, kernel, m);
        destroy(&b);
        vpps_simt_unload(kernel);
    }
END_TEST

/* What the kernel has to answer, at `at` with `left` words: the CPU's count, or that it takes more, and how many. */
static uint32_t expected_words(const uint32_t *at, uint32_t left, uint32_t room) {
    uint32_t n = vpps_instruction_words(at, at + left);
    if (n || (left && vpps_word_opcode(*at) >= VPPS_I_COUNT)) return n;
    for (uint32_t more = left + 1; more <= room && !n; more++) n = vpps_instruction_words(at, at + more);
    return 0x80000000u | n;
}

enum { ROOM = 24, LEFTS = 17 };

/* Instructions whose lists have `members`, with ever more words left; those beyond are no words of the instruction, and
 * are not to be read as such. */
static void check_lengths(vpps_simt_kernel *kernel, const ops_machine *m, uint32_t flags, uint32_t members) {
    const uint32_t n = (VPPS_I_COUNT + 1) * LEFTS;
    words script = {0};
    uint32_t *answers = calloc(n, sizeof *answers);
    ck_assert_ptr_nonnull(answers);
    append(&script, 0), append(&script, 0), append(&script, 0), append(&script, n);
    for (uint32_t q = 0; q < n; q++) append(&script, 4 + 2 * n + q * ROOM), append(&script, q % LEFTS);
    for (uint32_t q = 0; q < n; q++) {
        append(&script, vpps_word(q / LEFTS, flags, 7));
        for (uint32_t w = 1; w < ROOM; w++) append(&script, w < q % LEFTS ? members : UINT32_MAX);
    }
    const vpps_arguments a = {.script = (uintptr_t)script.at, .counters = (uintptr_t)answers};
    TEST_OK(vpps_simt_run(kernel, m->n_vps, m->threads, 0, &a, sizeof a, 0));
    for (uint32_t q = 0; q < n; q++) {
        uint32_t at[ROOM] = {vpps_word(q / LEFTS, flags, 7)}, left = q % LEFTS;
        for (uint32_t w = 1; w < ROOM; w++) at[w] = members;
        const uint32_t want = expected_words(at, left, ROOM), got = answers[q];
        /* of one cut short: more than there is, and no more than it takes, if that is known */
        const bool bound = got >> 31 && (got & 0x7fffffffu) > left && (want == 0x80000000u || got <= want);
        if (want >> 31 ? !bound : got != want)
            ck_abort_msg("opcode %u, %u words left, lists of %u: %x instead of %x", q / LEFTS, left, members, got,
                         want);
    }
    free(script.at);
    free(answers);
}

START_TEST(lengths_are_the_cpus)
    {
        const ops_machine *m = &ops_machines[0];
        vpps_simt_kernel *kernel = ops_load(m);
        if (!kernel) return;
        check_lengths(kernel, m, 0, 6);
        check_lengths(kernel, m, VPPS_WORD_SPLIT | VPPS_WORD_ACC, 6);
        check_lengths(kernel, m, 0, UINT32_MAX);
        check_lengths(kernel, m, 0, 0x80000000u);
        vpps_simt_unload(kernel);
    }
END_TEST

int main(void) {
    Suite *suite = suite_create("ops_kernel");
    TCase *tests = tcase_create("ops_kernel");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, instructions_do_what_the_cpus_do, 0, N_OPS_MACHINES);
    tcase_add_test(tests, losses_take_extreme_vectors);
    tcase_add_test(tests, lengths_are_the_cpus);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
