/* test_instructions.c - every instruction of isa.def and every optimiser's step against what meanings.def says, as the CPU's kernels of
 * each instruction set do them and as a GPU's kernel does them under software SIMT. Cases are made from isa.def, so none is left out.
 *
 * A pool holds the tensors of many cases. A device runs them; then all of the pool is compared, so that a write beside a result shows.
 * The CPU reads operands that end where a page without access begins. VPPS_TEST_SEED repeats a run. */
#include "codegen/ops_harness.h"
#include "common/meaning.h"
#include "runtime/kernel_inputs.h"

#include <ctype.h>

/* ---------------------------------------------------------------- pools
 *
 * Checks of single words are written out: Check's assertions cost a system call each. */

enum { MAX_CASES = 1024, MAX_TENSORS = 3, MEMBERS = 5, LONG = 1 << 16, LONGEST = LONG + 1, GAP = 0x7fc0beef };

/* Words that grow: a script, or a pool (whose words are the bits of floats). */
typedef struct words {
    uint32_t *at;
    size_t n;
} words;

static uint32_t append(words *w, uint32_t word) {
    if (!VPPS_RESERVE(w->at, w->n + 1)) ck_abort_msg("out of memory");
    w->at[w->n] = word;
    return (uint32_t)w->n++;
}

static void copy_words(words *to, const words *from) {
    if (!VPPS_RESERVE(to->at, from->n)) ck_abort_msg("out of memory");
    memcpy(to->at, from->at, from->n * sizeof *to->at);
    to->n = from->n;
}

static float float_at(const words *w, size_t i) {
    float x;
    memcpy(&x, &w->at[i], sizeof x);
    return x;
}

/* Adds n elements drawn from [low, high), and a gap after them. */
static uint32_t tensor(words *pool, uint32_t n, float low, float high) {
    const uint32_t offset = (uint32_t)pool->n;
    for (uint32_t i = 0; i < n; i++) append(pool, vpps_float_bits(draw(low, high)));
    append(pool, GAP);
    return offset;
}

/* What software SIMT's kernel gets, and what only the CPU does: lists, products, results that are added to existing values. */
typedef struct test_case {
    ops_case of;
    uint32_t list[MEMBERS], weights, indices, key;
    uint32_t rows, inner, cols;
} test_case;

typedef struct batch {
    words pool;
    test_case cases[MAX_CASES];
    uint32_t n_cases;
    vpps_task_header header;
} batch;

static void clear(batch *b) {
    b->pool.n = b->n_cases = 0;
    append(&b->pool, GAP);
    b->header = (vpps_task_header){.dropout_key = {(uint32_t)vpps_random(&state), (uint32_t)vpps_random(&state)}};
}

static bool is_step(const test_case *c) { return c->of.what >= VPPS_I_COUNT; }
static vpps_form form_of(const test_case *c) { return vpps_instructions[c->of.what].form; }
static uint32_t results_of(const test_case *c) {
    return c->of.items * (!is_step(c) && form_of(c) == VPPS_FORM_REDUCE ? 1 : c->of.length);
}
static const char *name_of(const test_case *c) {
    static const char *const steps[] = {
#define X(id, name, states, lr) "step of " name,
        VPPS_OPTIMIZER_TABLE(X)
#undef X
    };
    return is_step(c) ? steps[c->of.what - VPPS_I_COUNT] : vpps_instructions[c->of.what].name;
}

/* Returns the number of elements of an item in tensor operand t. */
static uint32_t elems_of(const test_case *c, uint32_t t) {
    switch (c->of.what) {
    case VPPS_I_MATMUL:
    case VPPS_I_MATMUL_NT:
    case VPPS_I_MATMUL_TN: return c->inner * (t ? c->cols : c->rows);
    case VPPS_I_SELECT_ROWS: return t ? c->rows : c->inner * c->cols;
    case VPPS_I_SELECT_ROWS_B: return t ? c->rows * c->cols : c->rows;
    default: return c->of.length;
    }
}

/* ---------------------------------------------------------------- what a case must give */

/* Returns the operands of item i, from the pool. */
static meaning_operands operands_of(const batch *b, const words *pool, const test_case *c, uint32_t i) {
    static double room[4 + MEMBERS][LONGEST];
    static const double *list[MEMBERS];
    const vpps_instruction_row *row = &vpps_instructions[c->of.what];
    const char *roles = meaning_of((vpps_opcode)c->of.what).roles;
    meaning_operands o = {.n = c->of.length, .list = list, .u = c->of.u, .e = c->of.e + i * c->of.length};
    uint32_t tensors = 0, scalars = 0, used = 0;
    float f;
    memcpy(&f, &c->of.f, sizeof f);
    o.f = (double)f;
    o.key = b->header.dropout_key[0] | (uint64_t)b->header.dropout_key[1] << 32;
    o.rows = c->rows, o.inner = c->inner, o.cols = c->cols;
    for (uint32_t k = 0; row->operands[k]; k++) {
        const char letter = row->operands[k];
        double *to = room[used];
        if (letter == 't') {
            const uint32_t n = elems_of(c, tensors);
            for (uint32_t e = 0; e < n; e++) {
                const size_t at = c->of.t[tensors] + (size_t)i * n + e;
                to[e] = roles[k] == 'i' ? pool->at[at] : (double)float_at(pool, at);
            }
            tensors++;
        } else if (letter == 's') {
            to[0] = (double)float_at(pool, c->of.s[scalars++] + i);
        } else if (letter == 'v') {
            for (uint32_t m = 0; m < MEMBERS; m++) to[m] = (double)float_at(pool, c->weights + m);
        } else if (letter == '*') {
            o.n_list = MEMBERS;
            for (uint32_t m = 0; m < MEMBERS; m++) {
                for (uint32_t e = 0; e < c->of.length; e++)
                    room[4 + m][e] = (double)float_at(pool, c->list[m] + i * c->of.length + e);
                list[m] = room[4 + m];
            }
            continue;
        } else {
            continue;
        }
        *meaning_place(&o, roles[k]) = to;
        used++;
    }
    return o;
}

/* Adds a case. `over`: the tensor operand, from 0, over which the result lies; for a number without operand, the result has its own place. */
static test_case *put_case(batch *b, uint32_t opcode, uint32_t length, uint32_t items, uint32_t over) {
    ck_assert_uint_lt(b->n_cases, MAX_CASES);
    const vpps_instruction_row *row = &vpps_instructions[opcode];
    const char *roles = meaning_of((vpps_opcode)opcode).roles;
    test_case *c = &b->cases[b->n_cases++];
    *c = (test_case){.of = {.what = opcode, .length = length, .items = items}};
    const bool matrix = row->form == VPPS_FORM_MATMUL || row->form == VPPS_FORM_MOVE;
    if (matrix) { /* a number of rows that divides the length */
        c->rows = length % 11 == 0 ? 11 : length % 5 == 0 ? 5 : length % 2 ? 1 : length;
        c->cols = length / c->rows;
        c->inner = 1 + vpps_random_below(&state, 40);
        if (opcode == VPPS_I_SELECT_ROWS_B) { /* the result has the shape from which rows are selected */
            const uint32_t rows = c->rows;
            c->rows = c->inner, c->inner = rows;
        }
    }
    c->of.to = tensor(&b->pool, results_of(c), -1, 1);
    uint32_t tensors = 0, scalars = 0;
    for (uint32_t k = 0; row->operands[k]; k++) {
        const uint32_t n = elems_of(c, tensors);
        float low, high;
        meaning_range((vpps_opcode)opcode, roles[k], &low, &high);
        switch (row->operands[k]) {
        case 't':
            c->of.t[tensors] = tensor(&b->pool, n * items, low, high);
            for (uint32_t e = 0; e < n * items && roles[k] == 'i'; e++) /* some positions, one of which is looked for */
                b->pool.at[c->of.t[tensors] + e] = vpps_random_below(&state, 3);
            tensors++;
            break;
        case 's': c->of.s[scalars++] = tensor(&b->pool, items, low, high); break;
        case 'f': c->of.f = vpps_float_bits(draw(0.1f, 0.9f)); break;
        case 'e': c->of.e = (uint32_t)vpps_random(&state); break;
        case 'u': c->of.u = vpps_random_below(&state, roles[k] == 'k' ? 3 : length); break;
        case 'i': c->indices = tensor(&b->pool, length * items, 0, 1); break;
        case 'v': c->weights = tensor(&b->pool, MEMBERS, low, high); break;
        case '*':
            for (uint32_t m = 0; m < MEMBERS; m++) c->list[m] = tensor(&b->pool, length * items, -3, 3);
            memcpy(&b->pool.at[c->list[3]], &b->pool.at[c->list[1]], length * items * sizeof(uint32_t)); /* ties */
            break;
        default: ck_abort_msg("operand letter %c", row->operands[k]);
        }
    }
    if (over < tensors && row->form != VPPS_FORM_REDUCE && !matrix) c->of.to = c->of.t[over];
    return c;
}

/* Sets losses: a loss that is an operand of a gradient must be the loss of the other operands. */
static void set_losses(batch *b, const test_case *c) {
    const meaning_use use = meaning_of((vpps_opcode)c->of.what);
    uint32_t scalars = 0;
    for (uint32_t k = 0; vpps_instructions[c->of.what].operands[k]; k++) {
        if (vpps_instructions[c->of.what].operands[k] != 's') continue;
        for (uint32_t i = 0; i < c->of.items && use.roles[k] == 'y'; i++) {
            double loss;
            meaning_operands o = operands_of(b, &b->pool, c, i);
            meaning_forward(use.op, &o, 1, &loss, NULL);
            b->pool.at[c->of.s[scalars] + i] = vpps_float_bits((float)loss);
        }
        scalars++;
    }
}

/* ---------------------------------------------------------------- devices */

typedef struct device {
    const char *name;
    const vpps_kernels *cpu;
    vpps_simt_kernel *simt;
    const ops_machine *machine;
    double absolute; /* allowed error of a function's result, besides the relative one */
} device;

static bool can_run(const device *d, const test_case *c) { return d->cpu || is_step(c) || ops_has(c->of.what); }

/* Returns memory that ends where a page without access begins. */
static float *guarded(uint32_t number, uint32_t n) {
    static float *end[6 + MEMBERS];
    ck_assert_uint_lt(number, VPPS_COUNT(end));
    ck_assert_uint_le(n, LONGEST);
    if (!end[number]) end[number] = floats(LONGEST) + LONGEST;
    return end[number] - n;
}

static float *take(uint32_t number, const words *pool, uint32_t at, uint32_t n) {
    float *x = guarded(number, n);
    memcpy(x, pool->at + at, n * sizeof *x);
    return x;
}

static void run_instruction(const vpps_kernels *kernels, const batch *b, words *pool, const test_case *c, uint32_t i,
                            bool cut) {
    const uint32_t n = c->of.length, results = results_of(c) / c->of.items, first_result = c->of.to + i * results;
    const char *letters = vpps_instructions[c->of.what].operands;
    const float *list[MEMBERS], *part[MEMBERS];
    vpps_operands o = {.u = c->of.u, .e = c->of.e + i * n, .r = c->rows, .k = c->inner, .c = c->cols};
    if (c->of.what == VPPS_I_SELECT_ROWS_B) o.r = c->inner, o.k = c->rows;
    o.key = b->header.dropout_key[0] | (uint64_t)b->header.dropout_key[1] << 32;
    memcpy(&o.f, &c->of.f, sizeof o.f);
    uint32_t tensors = 0, scalars = 0;
    float *dst = NULL;
    for (const char *letter = letters; *letter; letter++) {
        if (*letter == 't') {
            const uint32_t elems = elems_of(c, tensors);
            float *x = take(tensors, pool, c->of.t[tensors] + i * elems, elems);
            if (c->of.to == c->of.t[tensors]) dst = x;
            o.t[tensors++] = x;
        }
        if (*letter == 's') o.s[scalars] = float_at(pool, c->of.s[scalars] + i), scalars++;
        if (*letter == 'v') o.weights = take(3, pool, c->weights, MEMBERS);
        if (*letter == 'i') o.indices = (uint32_t *)guarded(4, n);
        if (*letter != '*') continue;
        o.n_list = MEMBERS;
        for (uint32_t m = 0; m < MEMBERS; m++) list[m] = take(6 + m, pool, c->list[m] + i * n, n);
        o.list = list;
    }
    if (!dst) {
        dst = take(5, pool, first_result - 1, results + 1) + 1;
        dst[-1] = 42;
    }
    uint32_t *const indices = o.indices;
    float *const result = dst;
    for (uint32_t at = 0, count = n; at < n; at += count, dst += count) {
        if (cut) count = 1 + vpps_random_below(&state, vpps_min_u32(n - at, 40)); /* like the scheduler's pieces */
        kernels->run[c->of.what](count, dst, &o);
        for (uint32_t t = 0; t < tensors; t++) o.t[t] += count;
        for (uint32_t m = 0; m < o.n_list; m++) part[m] = o.list[m] + count;
        o.list = memcpy(list, part, sizeof list);
        o.e += count;
        if (o.indices) o.indices += count;
    }
    if (result == guarded(5, results)) ck_assert_float_eq(result[-1], 42);
    memcpy(pool->at + first_result, result, results * sizeof *result);
    if (indices) memcpy(pool->at + c->indices + i * n, indices, n * sizeof *indices);
}

static uint32_t states_of(const test_case *c) {
    static const uint32_t states[] = {
#define X(id, name, states, lr) states,
        VPPS_OPTIMIZER_TABLE(X)
#undef X
    };
    return states[c->of.what - VPPS_I_COUNT];
}

static void run_step(const vpps_kernels *kernels, const batch *b, words *pool, const test_case *c, bool cut) {
    const vpps_task_header *h = &b->header;
#define X(name) .name = h->name,
    const vpps_step step = {.kind = c->of.what - VPPS_I_COUNT,
                            .scale = 1,
                            .corrections = {h->corrections[0], h->corrections[1]},
                            VPPS_OPTIMIZER_NUMBERS(X)};
#undef X
    const uint32_t n = c->of.length, places[] = {c->of.to, c->of.t[1], c->of.t[2]};
    const float *g = take(3, pool, c->of.t[0], n);
    float *x[3] = {NULL};
    for (uint32_t k = 0; k <= states_of(c); k++) x[k] = take(k, pool, places[k], n);
    for (uint32_t at = 0, count = n; at < n; at += count) {
        if (cut) count = 1 + vpps_random_below(&state, vpps_min_u32(n - at, 40));
        kernels->update(count, &step, x[0] + at, g + at, x[1] ? x[1] + at : NULL, x[2] ? x[2] + at : NULL);
    }
    for (uint32_t k = 0; k <= states_of(c); k++) memcpy(pool->at + places[k], x[k], n * sizeof(float));
}

/* Executes the cases that the device supports. `cut`: elements are computed in pieces. */
static void run_on(const device *d, const batch *b, words *pool, bool cut) {
    words script = {0};
    for (uint32_t i = 0; i < b->n_cases && d->cpu; i++) {
        const test_case *c = &b->cases[i];
        const bool cuts = cut && (is_step(c) || form_of(c) == VPPS_FORM_EW);
        if (is_step(c)) run_step(d->cpu, b, pool, c, cuts);
        for (uint32_t k = 0; k < c->of.items && !is_step(c); k++) run_instruction(d->cpu, b, pool, c, k, cuts);
    }
    if (d->cpu) return;
    uint32_t header[VPPS_TASK_HEADER_WORDS], n = 0;
    memcpy(header, &b->header, sizeof header);
    for (uint32_t i = 0; i < VPPS_TASK_HEADER_WORDS; i++) append(&script, header[i]);
    for (uint32_t i = 0; i < b->n_cases; i++) n += can_run(d, &b->cases[i]);
    append(&script, n);
    for (uint32_t i = 0; i < b->n_cases; i++) {
        uint32_t words_of_case[OPS_CASE_WORDS];
        memcpy(words_of_case, &b->cases[i].of, sizeof words_of_case);
        for (uint32_t k = 0; k < OPS_CASE_WORDS && can_run(d, &b->cases[i]); k++) append(&script, words_of_case[k]);
    }
    const vpps_arguments a = {.pool = (uintptr_t)pool->at, .script = (uintptr_t)script.at};
    TEST_OK(vpps_simt_run(d->simt, d->machine->n_vps, d->machine->threads, 0, &a, sizeof a, (uint32_t)state | 1, NULL));
    VPPS_FREE_ARRAYS(script.at);
}

/* ---------------------------------------------------------------- comparing */

/* Functions that every device rounds alike. A formula that calls no others has one result on all devices, to the bit. */
static const char *const exact[] = {"bits_of_float", "fabsf", "over", "sqrtf"};

static bool is_exact(const char *function, size_t n) {
    for (size_t i = 0; i < VPPS_COUNT(exact); i++)
        if (strlen(exact[i]) == n && memcmp(function, exact[i], n) == 0) return true;
    return false;
}

static bool calls_functions(uint32_t opcode) {
    static const char *const formulas[VPPS_I_COUNT] = {
#define EW(id, operands, cost, flops, formula) [VPPS_I_##id] = #formula,
#define INSTR(id, form, operands, cost, flops) [VPPS_I_##id] = "sums(...)",
#include "isa/isa.def"
#undef INSTR
    };
    for (const char *at = strchr(formulas[opcode], '('); at; at = strchr(at + 1, '(')) {
        size_t n = 0; /* length of the name before the parenthesis */
        while (at - n > formulas[opcode] &&
               (isalnum((unsigned char)at[-(ptrdiff_t)n - 1]) || at[-(ptrdiff_t)n - 1] == '_'))
            n++;
        if (n && !is_exact(at - n, n)) return true;
    }
    return false;
}

/* Returns what result e depends on, as text: element e of each operand, or the first elements of vector operands. */
static const char *inputs_of(const test_case *c, const words *before, uint32_t e) {
    static char text[256];
    const bool whole = !is_step(c) && form_of(c) != VPPS_FORM_EW;
    const uint32_t most = c->of.length < 8 ? c->of.length : 8;
    size_t n = 0;
    uint32_t t = 0, s = 0;
    for (const char *operand = is_step(c) ? "ttt" : vpps_instructions[c->of.what].operands; *operand; operand++) {
        if (*operand != 't' && *operand != 's') continue;
        const size_t at = *operand == 's' ? c->of.s[s++] + e / c->of.length : c->of.t[t++] + (whole ? 0 : e);
        n += (size_t)snprintf(text + n, sizeof text - n, " %c", *operand);
        for (uint32_t k = 0; n < sizeof text && k < (whole && *operand == 't' ? most : 1); k++)
            n += (size_t)snprintf(text + n, sizeof text - n, " %.9g", (double)float_at(before, at + k));
        if (n >= sizeof text) break;
    }
    return text;
}

static void check_element(const device *d, const test_case *c, const words *before, uint32_t e, float got, double want,
                          double allowed) {
    if (close_to(got, want, allowed)) return;
    ck_abort_msg("%s: %s, %u items of %u elements: element %u of%s is %.9g, not %.9g (VPPS_TEST_SEED=%llu)", d->name,
                 name_of(c), c->of.items, c->of.length, e, inputs_of(c, before, e), (double)got, want,
                 (unsigned long long)seed);
}

/* Compares a case's results in `got` with those expected from its operands in `before`, and copies them to `want`. They may differ by the noise of
 * the operation (meanings.def), relative to the sizes of the terms that are added up. */
static void check_instruction(const device *d, const batch *b, const test_case *c, const words *before,
                              const words *got, words *want) {
    static double results[LONGEST], terms[LONGEST];
    const double relative =
        (c->of.length == LONG ? 2.5e-6 : 1e-6) * meaning_cases[meaning_of((vpps_opcode)c->of.what).op].noise;
    const uint32_t n = results_of(c) / c->of.items, looked_at = n == LONG ? 1 : n;
    for (uint32_t i = 0; i < c->of.items; i++) {
        meaning_operands o = operands_of(b, before, c, i);
        meaning_instruction((vpps_opcode)c->of.what, &o, looked_at, results, terms);
        for (uint32_t e = looked_at; e < n; e++) want->at[c->of.to + e] = got->at[c->of.to + e];
        for (uint32_t e = 0; e < looked_at; e++) {
            const size_t at = c->of.to + (size_t)i * n + e;
            const double allowed = d->absolute + relative * (terms[e] + fabs(results[e]));
            check_element(d, c, before, i * n + e, float_at(got, at), results[e], allowed);
            want->at[at] = got->at[at];
            if (!c->indices) continue;
            const uint32_t position = meaning_position((vpps_opcode)c->of.what, &o, e), found = c->indices + i * n + e;
            if (got->at[found] != position) ck_abort_msg("%s: %s finds %u", d->name, name_of(c), got->at[found]);
            want->at[found] = position;
        }
    }
}

static void check_step(const device *d, const batch *b, const test_case *c, const words *before, const words *got,
                       words *want) {
    const vpps_task_header *h = &b->header;
    const double left[] = {1 / (double)h->corrections[0], 1 / (double)h->corrections[1]};
    const vpps_optimizer o = {.kind = (vpps_optimizer_kind)(c->of.what - VPPS_I_COUNT),
                              .lr = h->lr,
                              .momentum = h->momentum,
                              .beta1 = h->beta1,
                              .beta2 = h->beta2,
                              .epsilon = h->epsilon,
                              .weight_decay = h->weight_decay};
    const uint32_t places[] = {c->of.to, c->of.t[1], c->of.t[2]};
    for (uint32_t e = 0; e < c->of.length; e++) {
        double x[3];
        for (uint32_t k = 0; k < 3; k++) x[k] = (double)float_at(before, places[k] + e);
        meaning_step(&o, left, (double)float_at(before, c->of.t[0] + e), &x[0], &x[1], &x[2]);
        for (uint32_t k = 0; k <= states_of(c); k++) {
            check_element(d, c, before, e, float_at(got, places[k] + e), x[k], 5 * d->absolute + 2e-6 * fabs(x[k]));
            want->at[places[k] + e] = got->at[places[k] + e];
        }
    }
}

/* Returns the number of the first different word, except where both are NaN; n: there is none. */
static size_t first_difference(const words *x, const words *y) {
    size_t w = 0;
    while (w < x->n && (x->at[w] == y->at[w] || (isnan(float_at(x, w)) && isnan(float_at(y, w))))) w++;
    return w;
}

/* Runs the batch and compares the whole pool. Elements whose formulas call no function must have the bits of `like`, unless NULL. */
static void check_batch(const device *d, const batch *b, const words *like, words *pool) {
    words want = {0}, in_pieces = {0};
    copy_words(&want, &b->pool);
    copy_words(pool, &b->pool);
    run_on(d, b, pool, false);
    for (uint32_t n = 0; n < b->n_cases; n++) {
        const test_case *c = &b->cases[n];
        if (!can_run(d, c)) continue;
        if (is_step(c)) check_step(d, b, c, &b->pool, pool, &want);
        if (!is_step(c)) check_instruction(d, b, c, &b->pool, pool, &want);
        const bool same_bits = like && !is_step(c) && !calls_functions(c->of.what);
        for (uint32_t e = 0; same_bits && e < results_of(c); e++)
            if (pool->at[c->of.to + e] != like->at[c->of.to + e] && !isnan(float_at(like, c->of.to + e)))
                ck_abort_msg("%s: %s, element %u of %u, of%s, is %.9g, on the CPU %.9g", d->name, name_of(c), e,
                             c->of.length, inputs_of(c, &b->pool, e), (double)float_at(pool, c->of.to + e),
                             (double)float_at(like, c->of.to + e));
    }
    for (size_t w = 0; w < want.n; w++)
        if (pool->at[w] != want.at[w])
            ck_abort_msg("%s: %s: word %zu of the pool is %x, not %x", d->name, name_of(&b->cases[0]), w, pool->at[w],
                         want.at[w]);
    if (d->cpu) {
        copy_words(&in_pieces, &b->pool);
        run_on(d, b, &in_pieces, true);
        ck_assert_msg(first_difference(pool, &in_pieces) == pool->n, "%s: %s differs when it is cut", d->name,
                      name_of(&b->cases[0]));
        VPPS_FREE_ARRAYS(in_pieces.at);
    }
    VPPS_FREE_ARRAYS(want.at);
}

/* Compares the device with the CPU's first kernels. */
static void check_on(const device *d, const batch *b) {
    const device first = {.name = kernels_of(0)->isa, .cpu = kernels_of(0), .absolute = 2e-6};
    words like = {0}, pool = {0};
    copy_words(&like, &b->pool);
    if (d->cpu != first.cpu) run_on(&first, b, &like, false);
    check_batch(d, b, d->cpu != first.cpu ? &like : NULL, &pool);
    VPPS_FREE_ARRAYS(like.at);
    VPPS_FREE_ARRAYS(pool.at);
}

/* ---------------------------------------------------------------- cases */

static const uint32_t lengths[] = {1, 5, 15, 16, 17, 31, 33, 64, 100, 257, 512};

static void add_drawn_cases(batch *b, uint32_t opcode) {
    const vpps_form form = vpps_instructions[opcode].form;
    const bool product = form == VPPS_FORM_MATMUL || form == VPPS_FORM_MOVE;
    for (uint32_t n = 0; n < VPPS_COUNT(lengths); n++) {
        put_case(b, opcode, lengths[n], 1, MAX_TENSORS);
        for (uint32_t over = 0; over < MAX_TENSORS; over++)
            put_case(b, opcode, lengths[n], product ? 1 : 1 + n % 3, over);
        for (uint32_t items = 1; items < 40 && !product; items = items * 3 + 1)
            put_case(b, opcode, lengths[n], items, items % 4);
    }
}

static const float extremes[] = {0.0f,   -0.0f,   1e-40f,   -1e-40f,   0x1p-126f, 1.0f,  -1.0f,
                                 100.0f, -100.0f, INFINITY, -INFINITY, NAN,       20.0f, -20.0f};

/* Elementwise instructions make NaN and infinities, for every pair of extreme inputs, exactly where the formula does. */
static void add_extreme_case(batch *b, uint32_t opcode) {
    enum { N = VPPS_COUNT(extremes) };
    const char *roles = meaning_of((vpps_opcode)opcode).roles;
    if (vpps_instructions[opcode].form != VPPS_FORM_EW) return;
    const test_case *c = put_case(b, opcode, N * N, 1, MAX_TENSORS);
    for (uint32_t t = 0; t < strspn(vpps_instructions[opcode].operands, "t"); t++)
        for (uint32_t e = 0; e < N * N && roles[t] != 'i'; e++)
            b->pool.at[c->of.t[t] + e] = vpps_float_bits(extremes[t == 0 ? e % N : t == 1 ? e / N : (e + 3) % N]);
    uint32_t scalars = 0; /* no scalar so small that it makes infinite values finite again */
    for (const char *letter = vpps_instructions[opcode].operands; *letter; letter++)
        if (*letter == 's') b->pool.at[c->of.s[scalars++]] = vpps_float_bits(0.5f);
}

/* Adds logits that are far apart, and elements that are not finite. */
static void add_extreme_vectors(batch *b, uint32_t opcode) {
    static const float rows[][5] = {{3e4f, -3e4f, 0, -INFINITY, 2.9e4f},
                                    {1, NAN, 2, 3, 4},
                                    {INFINITY, 1, 2, 3, 4},
                                    {-INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY},
                                    {1, 0, 1, 0, 0.5f}};
    const vpps_form form = vpps_instructions[opcode].form;
    for (uint32_t r = 0; r < VPPS_COUNT(rows) && (form == VPPS_FORM_REDUCE || form == VPPS_FORM_ROW); r++) {
        const test_case *c = put_case(b, opcode, 5, 1, MAX_TENSORS);
        for (uint32_t t = 0; t < strspn(vpps_instructions[opcode].operands, "t"); t++)
            for (uint32_t e = 0; e < 5; e++)
                b->pool.at[c->of.t[t] + e] = vpps_float_bits(rows[t ? VPPS_COUNT(rows) - 1 : r][e]);
    }
}

/* Adds a long sum of equal terms, where rounding errors accumulate. Its first result is checked. */
static void add_long_case(batch *b, uint32_t opcode) {
    const vpps_form form = vpps_instructions[opcode].form;
    if (form != VPPS_FORM_REDUCE && form != VPPS_FORM_ROW) return;
    const test_case *c = put_case(b, opcode, LONG, 1, MAX_TENSORS);
    for (uint32_t t = 0; t < strspn(vpps_instructions[opcode].operands, "t"); t++)
        for (uint32_t e = 0; e < LONG; e++) b->pool.at[c->of.t[t] + e] = vpps_float_bits(t ? 0.3011f : 0.7123f);
}

/* Adds steps with gradients of any size; moments and Adagrad's sum are not negative. */
static void add_steps(batch *b, bool decays) {
    static const float gradients[] = {0.0f, -0.0f, 1e-40f, 1e-20f, 1e10f, -1e10f, INFINITY, -INFINITY, NAN};
    b->header.corrections[0] = 10, b->header.corrections[1] = 1000;
    b->header.lr = 0.1f, b->header.momentum = 0.9f, b->header.beta1 = 0.9f, b->header.beta2 = 0.999f;
    b->header.epsilon = 1e-8f, b->header.weight_decay = decays ? 0.01f : 0;
    for (uint32_t kind = 0; kind < VPPS_OPTIMIZERS; kind++) {
        for (uint32_t n = 0; n < VPPS_COUNT(lengths); n++) {
            test_case *c = &b->cases[b->n_cases++];
            *c = (test_case){.of = {.what = VPPS_I_COUNT + kind, .length = lengths[n], .items = 1}};
            c->of.to = tensor(&b->pool, lengths[n], -1, 1);
            for (uint32_t t = 0; t < 3; t++)
                c->of.t[t] = tensor(&b->pool, lengths[n], t ? 0.01f : -2.0f, t ? 1.0f : 2.0f);
            for (uint32_t e = 0; e < VPPS_COUNT(gradients) && lengths[n] == 100; e++)
                b->pool.at[c->of.t[0] + e] = vpps_float_bits(gradients[e]);
        }
    }
}

static void check_device(const device *d) {
    FREED batch *b = need(calloc(1, sizeof *b));
    for (uint32_t opcode = 0; opcode < VPPS_I_COUNT; opcode++) {
        if (vpps_instructions[opcode].form >= VPPS_FORM_PARTS) continue;
        clear(b);
        add_drawn_cases(b, opcode);
        add_extreme_case(b, opcode);
        add_extreme_vectors(b, opcode);
        add_long_case(b, opcode);
        for (uint32_t i = 0; i < b->n_cases; i++) set_losses(b, &b->cases[i]);
        check_on(d, b);
    }
    for (int decays = 0; decays < 2; decays++) {
        clear(b);
        add_steps(b, decays);
        check_on(d, b);
    }
    VPPS_FREE_ARRAYS(b->pool.at);
}

TEST_GROUP("cpu", .seconds = 120);

EACH_ISA(the_cpu_does_what_is_meant) {
    const device d = {.name = kernels_of(_i)->isa, .cpu = kernels_of(_i), .absolute = 2e-6};
    check_device(&d);
}

TEST_GROUP("simt", .seconds = 120);

TEST_EACH(a_gpus_kernel_does_what_is_meant, 0, N_OPS_MACHINES) {
    const device d = {
        .name = "simt", .simt = ops_load(&ops_machines[_i]), .machine = &ops_machines[_i], .absolute = 1e-5};
    if (d.simt) check_device(&d);
    if (d.simt) vpps_simt_unload(d.simt);
}

/* ---------------------------------------------------------------- none is left out */

TEST_GROUP("cpu", .seconds = 120);

TEST(every_instruction_has_what_runs_it) {
    for (uint32_t opcode = 0; opcode < VPPS_I_COUNT; opcode++) {
        const vpps_form form = vpps_instructions[opcode].form;
        const bool runs = form < VPPS_FORM_PARTS;
        const bool written_out = form == VPPS_FORM_MATMUL || form == VPPS_FORM_MOVE ||
                                 strchr(vpps_instructions[opcode].operands, '*'); /* stages have own code */
        ck_assert_msg(ops_has(opcode) == (runs && !written_out), "%s", vpps_instructions[opcode].name);
        for (int isa = 0; isa < n_isas(); isa++)
            ck_assert_msg(!kernels_of(isa)->run[opcode] == !runs, "%s", vpps_instructions[opcode].name);
    }
}

/* The structs that hold an instruction's operands have enough places for each kind. */
TEST(operands_have_places) {
    const vpps_operands o = {.n_list = 0};
    for (uint32_t opcode = 0; opcode < VPPS_I_COUNT; opcode++) {
        const vpps_instruction_row *row = &vpps_instructions[opcode];
        size_t tensors = 0, scalars = 0, others = 0;
        for (const char *letter = row->operands; *letter; letter++) {
            tensors += *letter == 't';
            scalars += *letter == 's';
            others += *letter != 't' && *letter != 's' && strchr(letter + 1, *letter) != NULL;
        }
        ck_assert_msg(tensors <= VPPS_COUNT(o.t) && scalars <= VPPS_COUNT(o.s) && !others,
                      "%s: no place for all operands of \"%s\"", row->name, row->operands);
    }
}
