/* ops_traits.cuh - reading an instruction by its traits (emit_ops.c). */

/* Operand k behind the tensors: its word, or, of a scalar, the scalar's bits. */
__device__ __forceinline__ unsigned vpps_param(const unsigned *operands, unsigned traits, unsigned k,
                                               const float *pool) {
    const unsigned word = operands[1 + VPPS_TRAIT_TENSORS(traits) + k];
    return VPPS_TRAIT_SCALARS(traits) >> k & 1 ? __float_as_uint(pool[word]) : word;
}

/* The same value, of which the compiler knows nothing: or it makes a copy of a loop for each outcome of the conditions
 * that do not change in it, which takes long to compile and fills the instruction cache. */
__device__ __forceinline__ unsigned vpps_opaque(unsigned x) {
    asm volatile("" : "+r"(x));
    return x;
}

/* Words of the instruction, word 0 included; 0: unknown opcode. `left`: words that are readable at `at`. When they do
 * not suffice: 0x80000000 | how many it takes at least. */
__device__ __forceinline__ unsigned vpps_instruction_words(const unsigned *at, unsigned left) {
    if (left == 0) return 0x80000001u;
    const unsigned word = at[0];
    if ((word & 0xff) >= VPPS_I_COUNT) return 0;
    const unsigned traits = vpps_traits[word & 0xff];
    unsigned words = VPPS_TRAIT_WORDS(traits);
    if (VPPS_TRAIT_FORM(traits) == VPPS_FORM_EW && (word & VPPS_WORD_SPLIT)) words++;
    if (VPPS_TRAIT_LIST(traits) && words <= left) { /* the last word so far is the list's length */
        const unsigned members = at[words - 1];
        words = members < 0x7fffffffu - words ? words + members : 0x7fffffffu;
    }
    return words <= left ? words : 0x80000000u | words;
}
