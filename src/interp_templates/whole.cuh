/* whole.cuh - instructions that sum over whole vectors, with a scalar or a vector as the result. */

/* Totals over all elements: a "head" (such as the maximum), then the sum of an instruction's terms, which may use the head. */
struct vpps_totals {
    float head, sum;
    unsigned length;
};

/* The "head": what an instruction, such as a softmax, computes from its first operand, a vector, before it sums up its terms: nothing; the
 * greatest element (without NaNs, which the sum passes on); the greatest element, but 0 if infinite; the sum of squares; the mean. */
enum { VPPS_HEAD_NONE, VPPS_HEAD_GREATEST, VPPS_HEAD_FINITE, VPPS_HEAD_SQUARES, VPPS_HEAD_MEAN };

/* An instruction's operand u is a class (label), the index of an element of a vector. here: whether the current element is that element;
 * value: that element. */
struct vpps_pick {
    bool here;
    float value;
};

/* Vectors are divided among TEAM adjacent threads: lanes of a warp (a power of two), or the whole CTA. All threads of a warp, or of the CTA,
 * must call these functions. */

template <unsigned TEAM, class TERM> __device__ __forceinline__ float vpps_team_sum(unsigned length, const TERM &term) {
    const float sum = vpps_add_up<4>(0.0f, threadIdx.x % TEAM, length, TEAM, term);
    return TEAM <= 32 ? vpps_warp_sum(sum, TEAM) : vpps_over_cta(sum);
}

template <int HEAD, unsigned TEAM> __device__ __forceinline__ float vpps_head(unsigned length, const float *x) {
    if (HEAD == VPPS_HEAD_NONE) return 0.0f;
    if (HEAD == VPPS_HEAD_SQUARES) return vpps_team_sum<TEAM>(length, [&](unsigned k) { return x[k] * x[k]; });
    if (HEAD == VPPS_HEAD_MEAN) return vpps_team_sum<TEAM>(length, [&](unsigned k) { return x[k]; }) / (float)length;
    float top = __uint_as_float(0xff800000u);
#pragma unroll 4
    for (unsigned k = threadIdx.x % TEAM; k < length; k += TEAM) top = fmaxf(top, x[k]);
    top = TEAM <= 32 ? vpps_warp_max(top, TEAM) : vpps_over_cta<vpps_warp_max>(top, top);
    return HEAD == VPPS_HEAD_GREATEST || fabsf(top) < __uint_as_float(0x7f800000u) ? top : 0.0f;
}

/* Returns totals over vector x: a head (such as its maximum), and the sum of term(totals, k) over element numbers k. */
template <int HEAD, unsigned TEAM, class TERM>
__device__ __forceinline__ vpps_totals vpps_total(unsigned length, const float *x, const TERM &term) {
    vpps_totals totals = {vpps_head<HEAD, TEAM>(length, x), 0.0f, length};
    totals.sum = vpps_team_sum<TEAM>(length, [&](unsigned k) { return term(totals, k); });
    return totals;
}

/* Ends the computing of totals over a vector: replaces totals.sum by `finish`, a formula of totals and scalars. */
template <class FINISH> __device__ __forceinline__ void vpps_finish(vpps_totals &totals, const FINISH &finish) {
    totals.sum = finish(0);
}

template <unsigned TEAM, class BODY>
__device__ __forceinline__ void vpps_each_of_row(unsigned length, const BODY &body) {
    for (unsigned k = threadIdx.x % TEAM; k < length; k += TEAM) body(k);
}

__device__ __forceinline__ float vpps_inverse_norm(float squares, unsigned length, float epsilon) {
    return 1.0f / sqrtf(squares / (float)length + epsilon);
}

/* Turns the rows of whole.def, which follows, into functions. */
#define VPPS_REDUCE(ID, HEAD, ARGUMENTS, TERM, FINISH)                                                                 \
    enum { vpps_head_##ID = VPPS_HEAD_##HEAD };                                                                        \
    __device__ __forceinline__ float vpps_term_##ID ARGUMENTS { return TERM; }                                         \
    __device__ __forceinline__ float vpps_finish_##ID ARGUMENTS { return FINISH; }
#define VPPS_ROW(ID, HEAD, ARGUMENTS, TERM, FINISH, VALUE)                                                             \
    VPPS_REDUCE(ID, HEAD, ARGUMENTS, TERM, FINISH)                                                                     \
    __device__ __forceinline__ float vpps_value_##ID ARGUMENTS { return VALUE; }
