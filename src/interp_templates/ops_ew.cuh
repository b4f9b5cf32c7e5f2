/* ops_ew.cuh - instructions element by element. A row here per instruction; the operands' order is isa.def's, and the
 * generated list of cases passes them: a missing row, or one of other operands, does not compile. */

#define VPPS_EW(ID, ARGUMENTS, VALUE)                                                                                  \
    __device__ __forceinline__ float vpps_value_##ID ARGUMENTS { return VALUE; }

VPPS_EW(FILL, (float f), f)
VPPS_EW(BROADCAST, (float s), s)
VPPS_EW(COPY, (float x), x)
VPPS_EW(NEG, (float x), -x)
VPPS_EW(ADD, (float x, float y), x + y)
VPPS_EW(SUB, (float x, float y), x - y)
VPPS_EW(MUL, (float x, float y), x * y)
VPPS_EW(DIV, (float x, float y), x / y)
VPPS_EW(MAX, (float x, float y), y > x || y != y ? y : x) /* either's NaN */
VPPS_EW(MIN, (float x, float y), y < x || y != y ? y : x)
VPPS_EW(SCALE, (float x, float f), x * f)
VPPS_EW(SCALE_BY, (float x, float s), x * s)
VPPS_EW(DROPOUT, (float x, float random, float p), random >= p ? x * (1.0f / (1.0f - p)) : 0.0f)

VPPS_EW(SIGMOID, (float x), vpps_sigmoid(x))
VPPS_EW(TANH, (float x), tanhf(x))
VPPS_EW(RELU, (float x), x < 0.0f ? 0.0f : x)
VPPS_EW(ELU, (float x, float alpha), x > 0.0f ? x : alpha * vpps_expm1(x))
VPPS_EW(GELU, (float x), x * vpps_gelu_gate(x))
VPPS_EW(EXP, (float x), expf(x))
VPPS_EW(LOG, (float x), logf(x))
VPPS_EW(SQUARE, (float x), x * x)
VPPS_EW(SQRT, (float x), sqrtf(x))
VPPS_EW(ABS, (float x), fabsf(x))

VPPS_EW(SIGMOID_B, (float d, float y), d * y *(1.0f - y))
VPPS_EW(TANH_B, (float d, float y), d * (1.0f - y * y))
VPPS_EW(RELU_B, (float d, float y), y > 0.0f ? d : 0.0f)
VPPS_EW(ELU_B, (float d, float y, float alpha), y > 0.0f ? d : d * (y + alpha))
VPPS_EW(GELU_B, (float d, float x), d * vpps_gelu_derivative(x))
VPPS_EW(SQUARE_B, (float d, float x), 2.0f * d * x)
VPPS_EW(SQRT_B, (float d, float y), 0.5f * d / y)
VPPS_EW(ABS_B, (float d, float x), x > 0.0f ? d : x < 0.0f ? -d : 0.0f)
VPPS_EW(DIV_B, (float d, float y, float b), -(d * y) / b)
VPPS_EW(MAX_B0, (float d, float a, float b), a >= b ? d : 0.0f)
VPPS_EW(MAX_B1, (float d, float a, float b), a >= b ? 0.0f : d)
VPPS_EW(MIN_B0, (float d, float a, float b), a <= b ? d : 0.0f)
VPPS_EW(MIN_B1, (float d, float a, float b), a <= b ? 0.0f : d)
VPPS_EW(INDEX_B, (float d, float index, unsigned u), __float_as_uint(index) == u ? d : 0.0f)
VPPS_EW(SQUARED_DISTANCE_B, (float a, float b, float d), 2.0f * d * (a - b))

/* A term whose factor is 0 counts as 0 even where p has been rounded to 0 or 1 and the other factor is infinite. */
VPPS_EW(BINARY_LOG_LOSS_BP, (float p, float target, float d),
        d * (vpps_over(1.0f - target, 1.0f - p) - vpps_over(target, p)))
VPPS_EW(BINARY_LOG_LOSS_BT, (float p, float d), d * (logf(1.0f - p) - logf(p)))

/* Which elements this CTA does: `rows` of each vector. They are counted with a power of two of places for every vector,
 * so that no division is needed; a vector's places beyond its rows stay empty. */
struct vpps_span {
    unsigned base; /* number of the first element */
    unsigned rows, bits, places;
};

__device__ __forceinline__ vpps_span vpps_span_of(const unsigned *at) {
    vpps_span s;
    unsigned vectors = 1;
    s.base = 0;
    s.rows = at[0] >> VPPS_LENGTH_SHIFT;
    if (at[0] & VPPS_WORD_SPLIT) {
        const vpps_rows own = vpps_rows_of(s.rows);
        vectors = at[1];
        if (own.end - own.first == s.rows) { /* all rows: the vectors are one */
            s.rows *= vectors;
            vectors = 1;
        } else {
            s.base = own.first;
            s.rows = own.end - own.first;
        }
    }
    s.bits = s.rows > 1 ? 32 - __clz(s.rows - 1) : 0;
    s.places = s.rows && vectors ? ((vectors - 1) << s.bits) + s.rows : 0;
    return s;
}

/* The element in place t; false: there is none. `length`: of a vector. */
__device__ __forceinline__ bool vpps_element_at(const vpps_span &s, unsigned t, unsigned length, unsigned *i) {
    const unsigned vector = s.bits < 32 ? t >> s.bits : 0, row = vector ? t - (vector << s.bits) : t;
    *i = s.base + vector * length + row;
    return row < s.rows;
}

__device__ __forceinline__ float vpps_ew_value(unsigned opcode, float x, float y, float z, unsigned p0, unsigned p1,
                                               unsigned i, const unsigned *key) {
#define VPPS_UINT(k) p##k
#define VPPS_FLOAT(k) __uint_as_float(p##k)
#define VPPS_RANDOM(k) vpps_uniform(key[0], key[1], p##k + i)
#define VPPS_CASE(ID, ARGUMENTS)                                                                                       \
    case VPPS_I_##ID: return vpps_value_##ID ARGUMENTS;
    switch (opcode) {
        VPPS_EW_CASES(VPPS_CASE)
    default: return 0.0f;
    }
#undef VPPS_CASE
#undef VPPS_RANDOM
#undef VPPS_FLOAT
#undef VPPS_UINT
}

/* Operands are loaded before the opcode is looked at: the way to the instruction's case passes while they come. Their
 * offsets are read anew for every element, which is no slower where threads have one element each, as most have, and
 * keeps registers free. */
__device__ __forceinline__ void vpps_elementwise(const unsigned *at, unsigned traits, float *pool,
                                                 const unsigned *key) {
    const vpps_span s = vpps_span_of(at);
#pragma unroll 1
    for (unsigned t = vpps_thread(); t < s.places; t += VPPS_THREADS) {
        const unsigned word = vpps_opaque(at[0]), has = vpps_opaque(traits);
        const unsigned *operands = at + (word & VPPS_WORD_SPLIT ? 2 : 1);
        unsigned i;
        if (!vpps_element_at(s, t, word >> VPPS_LENGTH_SHIFT, &i)) continue;
        const unsigned tensors = VPPS_TRAIT_TENSORS(has), params = VPPS_TRAIT_PARAMS(has);
        float x = 0.0f, y = 0.0f, z = 0.0f, old = 0.0f;
        unsigned p0 = 0, p1 = 0;
        if (tensors > 0) x = pool[operands[1] + i];
        if (tensors > 1) y = pool[operands[2] + i];
        if (tensors > 2) z = pool[operands[3] + i];
        if (params > 0) p0 = vpps_param(operands, has, 0, pool);
        if (params > 1) p1 = vpps_param(operands, has, 1, pool);
        if (word & VPPS_WORD_ACC) old = pool[operands[0] + i];
        const float value = vpps_ew_value(word & 0xff, x, y, z, p0, p1, i, key);
        pool[operands[0] + i] = word & VPPS_WORD_ACC ? old + value : value;
    }
}
