/* ops_ew.cuh - instructions element by element: the formulas of isa.def, which emit_ops.c has made functions of. */

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
#define VPPS_RANDOM(k) dropout_uniform(key[0], key[1], p##k + i)
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
