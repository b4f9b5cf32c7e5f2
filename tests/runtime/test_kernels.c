/* test_kernels.c - every kernel of every instruction set this CPU runs, against plain loops in double precision, on
 * inputs drawn fresh (VPPS_TEST_SEED repeats a run). Tensors end where a page without access begins, so reading or
 * writing past the end faults.
 */
#include "kernel_inputs.h"

enum { LARGEST = 257, MEMBERS = 5, MAX_TENSORS = 3 };

static const uint32_t sizes[] = {1, 15, 16, 17, 31, 33, 64, 100, LARGEST};

/* ---------------------------------------------------------------- what instructions mean */

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double gelu(double x) { return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }
static double gelu_slope(double x) {
    if (fabs(x) > 50) return x > 0;
    const double t = tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
}
static double times_log(double factor, double x) { return factor == 0 ? 0 : factor * log(x); }
static double over(double x, double y) { return x == 0 ? 0 : x / y; }
static double top(uint32_t n, const float *x) {
    double best = -INFINITY;
    for (uint32_t i = 0; i < n; i++) best = fmax(best, x[i]);
    return best;
}
static double log_sum_exp(uint32_t n, const float *x) {
    double sum = 0, best = top(n, x);
    for (uint32_t i = 0; i < n; i++) sum += exp(x[i] - best);
    return best + log(sum);
}
static double dot(uint32_t n, const float *x, const float *y) {
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += (double)x[i] * y[i];
    return sum;
}

/* The member of the list that has the extreme at i. */
static uint32_t extreme(const vpps_operands *o, uint32_t i, bool greatest) {
    uint32_t best = 0;
    for (uint32_t m = 1; m < o->n_list; m++) {
        const float x = o->list[m][i], b = o->list[best][i];
        if ((greatest ? x > b : x < b) || (isnan(x) && !isnan(b))) best = m;
    }
    return best;
}

/* Element i of the instruction's result; adds the magnitudes of what was summed up to *scale. */
static double expected(vpps_opcode opcode, uint32_t n, const vpps_operands *o, uint32_t i, double *scale) {
    const float *t0 = o->t[0], *t1 = o->t[1], *t2 = o->t[2];
    const bool aligned = !o->k; /* element i of the result is made from the tensors' elements i */
    const double x = t0 && aligned ? (double)t0[i] : 0, y = t1 && aligned ? (double)t1[i] : 0;
    const double z = t2 && aligned ? (double)t2[i] : 0;
    const double s = o->s[0], f = o->f;
    double sum = 0;
    switch (opcode) {
    case VPPS_I_FILL: return f;
    case VPPS_I_BROADCAST: return s;
    case VPPS_I_COPY: return x;
    case VPPS_I_NEG: return -x;
    case VPPS_I_ONE_MINUS: return 1 - x;
    case VPPS_I_RECIPROCAL: return 1 / x;
    case VPPS_I_ADD: return x + y;
    case VPPS_I_SUB: return x - y;
    case VPPS_I_MUL: return x * y;
    case VPPS_I_DIV: return x / y;
    case VPPS_I_MAX: return isnan(x) || isnan(y) ? NAN : fmax(x, y);
    case VPPS_I_MIN: return isnan(x) || isnan(y) ? NAN : fmin(x, y);
    case VPPS_I_SCALE: return x * f;
    case VPPS_I_SCALE_BY: return x * s;
    case VPPS_I_WHEN: return s > 0 ? x : 0;
    case VPPS_I_ZERO: return 0;
    case VPPS_I_SUM:
    case VPPS_I_WEIGHTED_SUM:
        for (uint32_t m = 0; m < o->n_list; m++) {
            const double term = (opcode == VPPS_I_SUM ? f : (double)o->weights[m]) * o->list[m][i];
            sum += term;
            *scale += fabs(term);
        }
        return sum;
    case VPPS_I_MAX_OF: return o->list[extreme(o, i, true)][i];
    case VPPS_I_MIN_OF: return o->list[extreme(o, i, false)][i];
    case VPPS_I_DROPOUT: return vpps_dropout_keeps(o->key, o->e + i, o->f) ? x / (1 - f) : 0;
    case VPPS_I_SIGMOID: return sigmoid(x);
    case VPPS_I_TANH: return tanh(x);
    case VPPS_I_RELU: return x < 0 ? 0 : x;
    case VPPS_I_ELU: return x > 0 ? x : f * expm1(x);
    case VPPS_I_GELU: return gelu(x);
    case VPPS_I_EXP: return exp(x);
    case VPPS_I_LOG: return log(x);
    case VPPS_I_SQUARE: return x * x;
    case VPPS_I_SQRT: return sqrt(x);
    case VPPS_I_ABS: return fabs(x);
    case VPPS_I_SIGMOID_B: return x * y * (1 - y);
    case VPPS_I_TANH_B: return x * (1 - y * y);
    case VPPS_I_RELU_B: return y > 0 ? x : 0;
    case VPPS_I_ELU_B: return y > 0 ? x : x * (y + f);
    case VPPS_I_GELU_B: return x * gelu_slope(y);
    case VPPS_I_SQUARE_B: return 2 * x * y;
    case VPPS_I_SQRT_B: return x / (2 * y);
    case VPPS_I_ABS_B: return y > 0 ? x : y < 0 ? -x : 0;
    case VPPS_I_RECIPROCAL_B: return -x * y * y;
    case VPPS_I_DIV_B: return -x * y / z;
    case VPPS_I_MAX_B0: return y >= z ? x : 0;
    case VPPS_I_MAX_B1: return y >= z ? 0 : x;
    case VPPS_I_MIN_B0: return y <= z ? x : 0;
    case VPPS_I_MIN_B1: return y <= z ? 0 : x;
    case VPPS_I_INDEX_B: return bits(t1[i]) == o->u ? x : 0;
    case VPPS_I_SQUARED_DISTANCE_B: return 2 * s * (x - y);
    case VPPS_I_BINARY_LOG_LOSS_BP:
        *scale += fabs(s) * (fabs(over(1 - y, 1 - x)) + fabs(over(y, x)));
        return s * (over(1 - y, 1 - x) - over(y, x));
    case VPPS_I_BINARY_LOG_LOSS_BT: return s * (log(1 - x) - log(x));
    case VPPS_I_DOT:
    case VPPS_I_SQUARED_DISTANCE:
    case VPPS_I_SUM_ELEMENTS:
    case VPPS_I_HINGE:
    case VPPS_I_BINARY_LOG_LOSS:
        for (uint32_t j = 0; j < n; j++) {
            const double p = t0[j], q = t1 ? (double)t1[j] : 0;
            const double margin = opcode == VPPS_I_HINGE ? f - t0[o->u] + p : 0;
            const double term = opcode == VPPS_I_DOT                ? p * q
                                : opcode == VPPS_I_SQUARED_DISTANCE ? (p - q) * (p - q)
                                : opcode == VPPS_I_SUM_ELEMENTS     ? p
                                : opcode == VPPS_I_HINGE            ? (j == o->u || margin < 0 ? 0 : margin)
                                                                    : -times_log(q, p) - times_log(1 - q, 1 - p);
            sum += term;
            *scale += fabs(term);
        }
        return sum;
    case VPPS_I_CROSS_ENTROPY: return log_sum_exp(n, t0) - t0[o->u];
    case VPPS_I_SOFTMAX: return exp(x - log_sum_exp(n, t0));
    case VPPS_I_LOG_SOFTMAX: return x - log_sum_exp(n, t0);
    case VPPS_I_SOFTMAX_B: *scale += n; return y * (x - dot(n, t0, t1));
    case VPPS_I_LOG_SOFTMAX_B:
        for (uint32_t j = 0; j < n; j++) sum += t0[j], *scale += exp(y) * fabs((double)t0[j]);
        return x - exp(y) * sum;
    case VPPS_I_CROSS_ENTROPY_B: return o->s[1] * (exp(x - s - t0[o->u]) - (i == o->u));
    case VPPS_I_HINGE_B:
        for (uint32_t j = 0; j < n; j++) sum += j != o->u && f - t0[o->u] + t0[j] > 0;
        return i == o->u ? -s * sum : f - t0[o->u] + x > 0 ? s : 0;
    case VPPS_I_MATMUL:
    case VPPS_I_MATMUL_NT:
    case VPPS_I_MATMUL_TN:
        for (uint32_t p = 0; p < o->k; p++) {
            const uint32_t row = i % o->r, column = i / o->r;
            const double a = opcode == VPPS_I_MATMUL_TN ? t0[p + row * o->k] : t0[row + p * o->r];
            const double b = opcode == VPPS_I_MATMUL_NT ? t1[column + p * o->c] : t1[p + column * o->k];
            sum += a * b;
            *scale += fabs(a * b);
        }
        return sum;
    default: ck_abort_msg("row %d of isa.def has no reference", (int)opcode);
    }
}

/* ---------------------------------------------------------------- instructions on drawn inputs */

typedef struct problem {
    vpps_opcode opcode;
    uint32_t n, results; /* results: elements of the destination */
    uint32_t n_tensors;
    vpps_operands o;
    float *tensors[MAX_TENSORS]; /* o.t, writable */
    const float *list[MEMBERS];
} problem;

static void draw_problem(problem *p, vpps_opcode opcode, uint32_t n) {
    const vpps_instruction_row *row = &vpps_instructions[opcode];
    memset(p, 0, sizeof(*p));
    p->opcode = opcode;
    p->n = n;
    p->results = row->form == VPPS_FORM_REDUCE ? 1 : n;
    vpps_operands *o = &p->o;
    float low = -3, high = 3;
    switch (opcode) {
    case VPPS_I_LOG:
    case VPPS_I_SQRT:
    case VPPS_I_SQRT_B:
    case VPPS_I_RECIPROCAL:
    case VPPS_I_DIV:
    case VPPS_I_DIV_B: low = 0.1f; break;
    case VPPS_I_BINARY_LOG_LOSS:
    case VPPS_I_BINARY_LOG_LOSS_BP:
    case VPPS_I_BINARY_LOG_LOSS_BT: low = 0.02f, high = 0.98f; break;
    default: break;
    }
    uint32_t lengths[2] = {n, n};
    if (row->form == VPPS_FORM_MATMUL) { /* as many rows as divide n */
        o->r = n % 11 == 0 ? 11 : n % 5 == 0 ? 5 : n % 2 ? 1 : n;
        o->c = n / o->r;
        o->k = 1 + vpps_random_below(&state, 40);
        lengths[0] = o->r * o->k, lengths[1] = o->c * o->k;
    }
    uint32_t scalars = 0;
    for (const char *letter = row->operands; *letter; letter++) switch (*letter) {
        case 't':
            p->tensors[p->n_tensors] = drawn(p->n_tensors < 2 ? lengths[p->n_tensors] : n, low, high);
            o->t[p->n_tensors] = p->tensors[p->n_tensors];
            p->n_tensors++;
            break;
        case 's': o->s[scalars++] = draw(low, high); break;
        case 'f': o->f = draw(0.1f, 0.9f); break;
        case 'u': o->u = vpps_random_below(&state, n); break;
        case 'e': o->e = (uint32_t)vpps_random(&state), o->key = vpps_random(&state); break;
        case 'i': o->indices = (uint32_t *)floats(n); break;
        case 'v': o->weights = drawn(MEMBERS, low, high); break;
        case '*':
            o->n_list = MEMBERS;
            for (uint32_t m = 0; m < MEMBERS; m++) p->list[m] = drawn(n, low, high);
            p->list[3] = p->list[1]; /* ties */
            o->list = p->list;
            break;
        default: ck_abort_msg("operand letter %c", *letter);
        }
    if (opcode == VPPS_I_INDEX_B) {
        o->u = vpps_random_below(&state, 3);
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t index = vpps_random_below(&state, 3);
            memcpy(&p->tensors[1][i], &index, sizeof(index));
        }
    }
    if (opcode == VPPS_I_CROSS_ENTROPY_B) o->s[0] = (float)(log_sum_exp(n, o->t[0]) - o->t[0][o->u]);
}

/* dst, which held `before`, is the instruction's result. */
static void check_result(const vpps_kernels *kernels, const problem *p, bool accumulate, const float *before,
                         const float *dst) {
    for (uint32_t i = 0; i < p->results; i++) {
        double scale = 1, want = expected(p->opcode, p->n, &p->o, i, &scale);
        if (accumulate) want += before[i];
        const double tolerance = 2e-6 * (scale + fabs(want) + (accumulate ? fabs((double)before[i]) : 0));
        ck_assert_msg(close_to(dst[i], want, tolerance),
                      "%s %s%s, element %u of %u: %.9g, expected %.9g (inputs %g %g; VPPS_TEST_SEED=%llu)",
                      kernels->isa, vpps_instructions[p->opcode].name, accumulate ? " accumulating" : "", i, p->n,
                      dst[i], want, p->o.t[0] && !p->o.k ? (double)p->o.t[0][i] : 0,
                      p->o.t[1] && !p->o.k ? (double)p->o.t[1][i] : 0, (unsigned long long)seed);
        if (p->o.indices) ck_assert_uint_eq(p->o.indices[i], extreme(&p->o, i, p->opcode == VPPS_I_MAX_OF));
    }
}

/* The same instruction on the elements from `first` on: as the scheduler cuts. */
static vpps_operands cut(const problem *p, uint32_t first, const float **list) {
    vpps_operands o = p->o;
    for (uint32_t t = 0; t < p->n_tensors; t++) o.t[t] += first;
    for (uint32_t m = 0; m < o.n_list; m++) list[m] = o.list[m] + first;
    o.list = list;
    o.e += first;
    if (o.indices) o.indices += first;
    return o;
}

static void check_cuts(const vpps_kernels *kernels, const problem *p, bool accumulate, const float *before,
                       const float *whole) {
    float *parts = floats(p->n);
    memcpy(parts, before, p->n * sizeof(*parts));
    for (uint32_t first = 0, count; first < p->n; first += count) {
        count = 1 + vpps_random_below(&state, vpps_min_u32(p->n - first, 40));
        const float *list[MEMBERS];
        const vpps_operands o = cut(p, first, list);
        kernels->run[p->opcode](count, accumulate, parts + first, &o);
    }
    for (uint32_t i = 0; i < p->n; i++)
        ck_assert_msg(bits(parts[i]) == bits(whole[i]), "%s %s: element %u of %u differs when cut", kernels->isa,
                      vpps_instructions[p->opcode].name, i, p->n);
}

static void check_in_place(const vpps_kernels *kernels, const problem *p, bool accumulate) {
    for (uint32_t t = 0; t < p->n_tensors; t++) {
        float *before = floats(p->n), *dst = floats(p->n);
        memcpy(before, p->tensors[t], p->n * sizeof(*before));
        memcpy(dst, before, p->n * sizeof(*before));
        kernels->run[p->opcode](p->n, accumulate, dst, &p->o);
        kernels->run[p->opcode](p->n, accumulate, p->tensors[t], &p->o);
        ck_assert_msg(memcmp(dst, p->tensors[t], p->n * sizeof(*dst)) == 0, "%s %s over its operand %u", kernels->isa,
                      vpps_instructions[p->opcode].name, t);
        memcpy(p->tensors[t], before, p->n * sizeof(*before));
    }
}

/* Whoever decodes an instruction has so many places for operands of a kind. */
START_TEST(operands_have_places)
    {
        const vpps_operands o = {.n_list = 0};
        const vpps_instruction_row *row = &vpps_instructions[_i];
        size_t tensors = 0, scalars = 0, others = 0;
        for (const char *letter = row->operands; *letter; letter++) {
            tensors += *letter == 't';
            scalars += *letter == 's';
            others += *letter != 't' && *letter != 's' && strchr(letter + 1, *letter) != NULL;
        }
        ck_assert_msg(tensors <= VPPS_COUNT(o.t) && scalars <= VPPS_COUNT(o.s) && !others,
                      "%s: no place for all operands of \"%s\"", row->name, row->operands);
    }
END_TEST

START_TEST(instruction_matches_its_definition)
    {
        const vpps_opcode opcode = (vpps_opcode)_i;
        const vpps_instruction_row *row = &vpps_instructions[opcode];
        const bool has_kernel = row->form < VPPS_FORM_PARTS;
        for (int isa = 0; isa < N_ISAS; isa++) {
            const vpps_kernels *kernels = kernels_to_try(isa);
            if (!kernels) continue;
            ck_assert(has_kernel || !kernels->run[opcode]);
            if (!has_kernel) continue;
            ck_assert_msg(kernels->run[opcode], "%s has no kernel", row->name);
            for (size_t s = 0; s < 2 * VPPS_COUNT(sizes); s++) {
                const bool accumulate = s % 2;
                problem p;
                draw_problem(&p, opcode, sizes[s / 2]);
                float *before = drawn(p.results, -1, 1), *dst = floats(p.results + 1) + 1;
                dst[-1] = 42;
                memcpy(dst, before, p.results * sizeof(*dst));
                kernels->run[opcode](p.n, accumulate, dst, &p.o);
                ck_assert_float_eq(dst[-1], 42);
                check_result(kernels, &p, accumulate, before, dst);
                if (row->form == VPPS_FORM_EW) check_cuts(kernels, &p, accumulate, before, dst);
                if (row->form == VPPS_FORM_EW || row->form == VPPS_FORM_ROW) check_in_place(kernels, &p, accumulate);
            }
        }
    }
END_TEST

/* ---------------------------------------------------------------- extreme inputs */

static const float extremes[] = {0.0f,   -0.0f,   1e-40f,   -1e-40f,   0x1p-126f, 1.0f,  -1.0f,
                                 100.0f, -100.0f, INFINITY, -INFINITY, NAN,       20.0f, -20.0f};
enum { N_EXTREMES = VPPS_COUNT(extremes) };

/* Every pair of extreme inputs through every elementwise instruction of one or two tensors: NaN and infinities come
 * out where the formula says, and only there. */
START_TEST(elementwise_takes_extreme_inputs)
    {
        const vpps_opcode opcode = (vpps_opcode)_i;
        const char *operands = vpps_instructions[opcode].operands;
        if (vpps_instructions[opcode].form != VPPS_FORM_EW || operands[0] != 't') return;
        for (int isa = 0; isa < N_ISAS; isa++) {
            const vpps_kernels *kernels = kernels_to_try(isa);
            if (!kernels) continue;
            problem p;
            draw_problem(&p, opcode, N_EXTREMES * N_EXTREMES);
            for (uint32_t i = 0; i < p.n; i++)
                for (uint32_t t = 0; t < p.n_tensors; t++)
                    if (opcode != VPPS_I_INDEX_B || t != 1)
                        p.tensors[t][i] = extremes[t == 0   ? i % N_EXTREMES
                                                   : t == 1 ? i / N_EXTREMES
                                                            : (i + 3) % N_EXTREMES];
            float *dst = floats(p.n);
            kernels->run[opcode](p.n, false, dst, &p.o);
            check_result(kernels, &p, false, dst, dst);
        }
    }
END_TEST

START_TEST(functions_are_accurate_to_the_last_places)
    {
        const vpps_opcode functions[] = {VPPS_I_EXP, VPPS_I_LOG, VPPS_I_TANH, VPPS_I_SIGMOID, VPPS_I_ELU};
        enum { COUNT = 1 << 16 };
        for (int isa = 0; isa < N_ISAS; isa++)
            for (size_t f = 0; f < VPPS_COUNT(functions); f++) {
                const vpps_kernels *kernels = kernels_to_try(isa);
                if (!kernels) continue;
                float *x = floats(COUNT), *y = floats(COUNT);
                for (uint32_t i = 0; i < COUNT; i++) /* of every magnitude */
                    x[i] = ldexpf(draw(1, 2), (int)vpps_random_below(&state, 47) - 40) * (i % 2 ? 1.0f : -1.0f);
                const vpps_operands o = {.t = {x}, .f = 1};
                kernels->run[functions[f]](COUNT, false, y, &o);
                for (uint32_t i = 0; i < COUNT; i++) {
                    double scale = 0, want = expected(functions[f], COUNT, &o, i, &scale);
                    const double unit = nextafterf(fmaxf(fabsf((float)want), 0x1p-126f), INFINITY) -
                                        fmaxf(fabsf((float)want), 0x1p-126f);
                    ck_assert_msg(close_to(y[i], want, (functions[f] == VPPS_I_TANH ? 6 : 3) * unit + 0x1p-126),
                                  "%s %s(%.9g) = %.9g, expected %.9g", kernels->isa,
                                  vpps_instructions[functions[f]].name, x[i], y[i], want);
                }
            }
    }
END_TEST

START_TEST(losses_stay_finite_for_extreme_logits)
    {
        for (int isa = 0; isa < N_ISAS; isa++) {
            const vpps_kernels *kernels = kernels_to_try(isa);
            if (!kernels) continue;
            float x[5] = {3e4f, -3e4f, 0, -INFINITY, 2.9e4f}, y[5];
            vpps_operands o = {.t = {x}, .u = 1};
            kernels->run[VPPS_I_CROSS_ENTROPY](5, false, y, &o);
            ck_assert_float_eq(y[0], 6e4f);
            kernels->run[VPPS_I_SOFTMAX](5, false, y, &o);
            for (int i = 0; i < 5; i++) ck_assert_float_eq(y[i], i == 0);
            o.s[0] = 6e4f, o.s[1] = 2;
            kernels->run[VPPS_I_CROSS_ENTROPY_B](5, false, y, &o);
            for (int i = 0; i < 5; i++) ck_assert_float_eq(y[i], i == 0 ? 2 : i == 1 ? -2 : 0);

            float p[2] = {1, 0}, target[2] = {1, 0};
            const vpps_operands binary = {.t = {p, target}, .s = {1}};
            kernels->run[VPPS_I_BINARY_LOG_LOSS](2, false, y, &binary);
            ck_assert_float_eq(y[0], 0);
            kernels->run[VPPS_I_BINARY_LOG_LOSS_BP](2, false, y, &binary);
            ck_assert(y[0] == -1 && y[1] == 1);

            x[2] = NAN;
            const vpps_opcode all[] = {VPPS_I_CROSS_ENTROPY, VPPS_I_HINGE, VPPS_I_SUM_ELEMENTS, VPPS_I_SOFTMAX};
            for (size_t i = 0; i < VPPS_COUNT(all); i++) {
                kernels->run[all[i]](5, false, y, &o);
                ck_assert_msg(isnan(y[0]), "%s hides a NaN", vpps_instructions[all[i]].name);
            }
        }
    }
END_TEST

/* ---------------------------------------------------------------- matrices */

typedef void (*gemm_function)(uint32_t, uint32_t, uint32_t, const float *, size_t, const float *, size_t, float *,
                              size_t, bool);

/* C (rows x n) from A and B: element (i, j) is the sum over p < depth; kind 0 nn, 1 nt, 2 tn. */
static void check_gemm(const vpps_kernels *kernels, int kind, uint32_t rows, uint32_t n, uint32_t depth,
                       bool accumulate) {
    const gemm_function gemm = kind == 0 ? kernels->gemm_nn : kind == 1 ? kernels->gemm_nt : kernels->gemm_tn;
    const uint32_t more = vpps_random_below(&state, 2) * 5;
    const size_t a_rows = kind == 2 ? depth : rows, a_columns = kind == 2 ? rows : depth;
    const size_t b_rows = kind == 1 ? n : depth, b_columns = kind == 1 ? depth : n;
    const size_t lda = a_rows + more, ldb = b_rows + more, ldc = rows + more;
    float *a = drawn(lda * (a_columns - 1) + a_rows, -1, 1), *b = drawn(ldb * (b_columns - 1) + b_rows, -1, 1);
    const size_t c_elems = ldc * (n - 1) + rows;
    float *before = drawn(c_elems, -1, 1), *c = floats(c_elems), *single = floats(rows);
    memcpy(c, before, c_elems * sizeof(*c));
    /* the function's own order of sizes: for tn, A is m x k */
    gemm(kind == 2 ? depth : rows, n, kind == 2 ? rows : depth, a, lda, b, ldb, c, ldc, accumulate);
    for (uint32_t j = 0; j < n; j++) {
        memcpy(single, before + j * ldc, rows * sizeof(*single));
        gemm(kind == 2 ? depth : rows, 1, kind == 2 ? rows : depth, a, lda, kind == 1 ? b + j : b + j * ldb, ldb,
             single, rows, accumulate);
        ck_assert_msg(memcmp(single, c + j * ldc, rows * sizeof(*single)) == 0,
                      "%s kind %d %u x %u x %u: column %u depends on the others", kernels->isa, kind, rows, n, depth,
                      j);
        for (uint32_t i = 0; i < rows; i++) {
            double want = accumulate ? (double)before[i + j * ldc] : 0, scale = 1;
            for (uint32_t p = 0; p < depth; p++) {
                const double term = (double)(kind == 2 ? a[p + i * lda] : a[i + p * lda]) *
                                    (kind == 1 ? b[j + p * ldb] : b[p + j * ldb]);
                want += term;
                scale += fabs(term);
            }
            ck_assert_msg(close_to(c[i + j * ldc], want, 1e-6 * scale),
                          "%s kind %d %u x %u x %u: (%u, %u) is %.9g, expected %.9g", kernels->isa, kind, rows, n,
                          depth, i, j, c[i + j * ldc], want);
        }
        for (uint32_t i = rows; i < ldc && j + 1 < n; i++) ck_assert_float_eq(c[i + j * ldc], before[i + j * ldc]);
    }
}

START_TEST(products_match_a_plain_loop)
    {
        static const uint32_t lengths[] = {1, 3, 16, 31, 33, 130, 257}, widths[] = {1, 2, 3, 4, 7, 17};
        const vpps_kernels *kernels = kernels_of(_i / 3);
        if (!kernels) TEST_SKIP("products for %s, which this processor lacks", isas[_i / 3]);
        for (size_t i = 0; i < VPPS_COUNT(lengths); i++)
            for (size_t p = 0; p < VPPS_COUNT(lengths); p++)
                for (size_t j = 0; j < VPPS_COUNT(widths); j++)
                    check_gemm(kernels, _i % 3, lengths[i], widths[j], lengths[p], (i + p + j) % 2);
    }
END_TEST

START_TEST(product_over_nothing_is_zero)
    {
        for (int isa = 0; isa < N_ISAS; isa++) {
            const vpps_kernels *kernels = kernels_to_try(isa);
            if (!kernels) continue;
            float c[3] = {1, 2, 3};
            kernels->gemm_nn(3, 1, 0, c, 3, c, 1, c, 3, true);
            ck_assert_float_eq(c[1], 2);
            kernels->gemm_nn(3, 1, 0, c, 3, c, 1, c, 3, false);
            ck_assert_float_eq(c[0] + c[1] + c[2], 0);
        }
    }
END_TEST

START_TEST(transpose_moves_every_element)
    {
        static const uint32_t lengths[] = {1, 15, 16, 33, 100};
        for (int isa = 0; isa < N_ISAS; isa++)
            for (size_t s = 0; s < VPPS_COUNT(lengths) * VPPS_COUNT(lengths); s++) {
                const vpps_kernels *kernels = kernels_to_try(isa);
                if (!kernels) continue;
                const uint32_t rows = lengths[s % 5], cols = lengths[s / 5], lda = rows + 3, ldb = cols + 2;
                float *a = drawn(lda * (cols - 1) + rows, -1, 1), *b = drawn(ldb * (rows - 1) + cols, 5, 6);
                kernels->transpose(rows, cols, a, lda, b, ldb);
                for (uint32_t i = 0; i < rows; i++) {
                    for (uint32_t j = 0; j < cols; j++) ck_assert_float_eq(b[j + i * ldb], a[i + j * lda]);
                    if (i + 1 < rows) ck_assert(b[cols + i * ldb] >= 5);
                }
            }
    }
END_TEST

/* ---------------------------------------------------------------- parameters */

static void plain_step(const vpps_step *p, double *w, double g, double *s0, double *s1) {
    g *= p->scale;
    if (p->kind != VPPS_ADAMW) g += p->weight_decay * *w;
    switch (p->kind) {
    case VPPS_SGD: *w -= p->lr * g; break;
    case VPPS_MOMENTUM: *s0 = p->momentum * *s0 + g, *w -= p->lr * *s0; break;
    case VPPS_ADAGRAD: *s0 += g * g, *w -= p->lr * g / (sqrt(*s0) + p->epsilon); break;
    default:
        *s0 = p->beta1 * *s0 + (1 - p->beta1) * g;
        *s1 = p->beta2 * *s1 + (1 - p->beta2) * g * g;
        if (p->kind == VPPS_ADAMW) *w -= p->lr * p->weight_decay * *w;
        *w -= p->lr * (*s0 * p->corrections[0]) / (sqrt(*s1 * p->corrections[1]) + p->epsilon);
    }
}

START_TEST(update_matches_the_formulas)
    {
        for (int isa = 0; isa < N_ISAS; isa++)
            for (uint32_t kind = VPPS_SGD; kind <= VPPS_ADAMW; kind++)
                for (size_t s = 0; s < VPPS_COUNT(sizes); s++) {
                    const vpps_kernels *kernels = kernels_to_try(isa);
                    if (!kernels) continue;
                    const vpps_step step = {kind, 0.5f, 0.1f, 0.9f, 0.8f, 0.95f, 1e-6f, 0.03f, {1.25f, 4.0f}};
                    const uint32_t n = sizes[s], n_states = kind == VPPS_SGD ? 0 : kind < VPPS_ADAM ? 1 : 2;
                    float *w = drawn(n, -1, 1), *g = drawn(n, -1, 1), *w2 = floats(n);
                    float *s0 = n_states > 0 ? drawn(n, 0, 1) : NULL, *s1 = n_states > 1 ? drawn(n, 0, 1) : NULL;
                    double want[LARGEST][3];
                    for (uint32_t i = 0; i < n; i++) {
                        want[i][0] = w[i], want[i][1] = s0 ? (double)s0[i] : 0, want[i][2] = s1 ? (double)s1[i] : 0;
                        plain_step(&step, &want[i][0], g[i], &want[i][1], &want[i][2]);
                        w2[i] = w[i];
                    }
                    const float last[3] = {w[n - 1], s0 ? s0[n - 1] : 0, s1 ? s1[n - 1] : 0};
                    kernels->update(n, &step, w, g, s0, s1);
                    for (uint32_t i = 0; i < n; i++)
                        ck_assert_msg(close_to(w[i], want[i][0], 1e-6) && (!s0 || close_to(s0[i], want[i][1], 1e-6)) &&
                                          (!s1 || close_to(s1[i], want[i][2], 1e-6)),
                                      "%s optimiser %u, element %u of %u: %.9g, expected %.9g", kernels->isa, kind, i,
                                      n, w[i], want[i][0]);
                    float one[3] = {last[0], last[1], last[2]}; /* the last element alone: the same bits */
                    kernels->update(1, &step, &one[0], g + n - 1, &one[1], &one[2]);
                    ck_assert_uint_eq(bits(one[0]), bits(w[n - 1]));
                }
    }
END_TEST

START_TEST(sums_of_squares_and_addition)
    {
        for (int isa = 0; isa < N_ISAS; isa++)
            for (size_t s = 0; s < VPPS_COUNT(sizes); s++) {
                const vpps_kernels *kernels = kernels_to_try(isa);
                if (!kernels) continue;
                const uint32_t n = sizes[s];
                float *x = drawn(n, -1e25f, 1e25f), *y = drawn(n, -1, 1), *z = floats(n);
                const double want = dot(n, x, x);
                ck_assert_double_eq_tol(kernels->sum_squares(n, x) / want, 1, 1e-14);
                memcpy(z, y, n * sizeof(*z));
                kernels->add(n, z, x);
                for (uint32_t i = 0; i < n; i++) ck_assert_float_eq(z[i], y[i] + x[i]);
            }
    }
END_TEST

START_TEST(portable_choice_is_generic)
    {
        setenv("VPPS_ISA", "avx512", 1);
        ck_assert_str_eq(vpps_kernels_choose(true)->isa, isas[0]);
        setenv("VPPS_ISA", "no such thing", 1);
        const vpps_kernels *best = vpps_kernels_choose(false);
        unsetenv("VPPS_ISA");
        ck_assert_ptr_eq(vpps_kernels_choose(false), best);
    }
END_TEST

int main(void) {
    draw_seed();
    Suite *suite = suite_create("kernels");
    TCase *tests = tcase_create("kernels");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, operands_have_places, 0, VPPS_I_COUNT);
    tcase_add_loop_test(tests, instruction_matches_its_definition, 0, VPPS_I_COUNT);
    tcase_add_loop_test(tests, elementwise_takes_extreme_inputs, 0, VPPS_I_COUNT);
    tcase_add_test(tests, functions_are_accurate_to_the_last_places);
    tcase_add_test(tests, losses_stay_finite_for_extreme_logits);
    tcase_add_loop_test(tests, products_match_a_plain_loop, 0, 3 * N_ISAS);
    tcase_add_test(tests, product_over_nothing_is_zero);
    tcase_add_test(tests, transpose_moves_every_element);
    tcase_add_test(tests, update_matches_the_formulas);
    tcase_add_test(tests, sums_of_squares_and_addition);
    tcase_add_test(tests, portable_choice_is_generic);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
