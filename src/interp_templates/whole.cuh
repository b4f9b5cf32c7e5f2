/* whole.cuh - instructions that need a sum over whole vectors: to a scalar, or to a vector again. */

/* The totals of all elements: the head, then the sum of an instruction's terms. */
struct vpps_totals {
    float head, sum;
    unsigned length;
};

/* Kinds of heads, of the first tensor: none; the greatest element (NaNs are skipped, since the sum meets them); the same, or 0 where that
 * is infinite; the sum of the squares; the mean. */
enum { VPPS_HEAD_NONE, VPPS_HEAD_GREATEST, VPPS_HEAD_FINITE, VPPS_HEAD_SQUARES, VPPS_HEAD_MEAN };

/* Operand u: is this element the class, and the class's element. */
struct vpps_pick {
    bool here;
    float value;
};

template <int HEAD> __device__ __forceinline__ float vpps_head(unsigned lane, unsigned length, const float *x) {
    if (HEAD == VPPS_HEAD_NONE) return 0.0f;
    if (HEAD == VPPS_HEAD_SQUARES)
        return vpps_warp_sum(vpps_add_up<4>(0.0f, lane, length, 32, [&](unsigned k) { return x[k] * x[k]; }));
    if (HEAD == VPPS_HEAD_MEAN)
        return vpps_warp_sum(vpps_add_up<4>(0.0f, lane, length, 32, [&](unsigned k) { return x[k]; })) / (float)length;
    float top = __uint_as_float(0xff800000u);
    for (unsigned k = lane; k < length; k += 32) top = fmaxf(top, x[k]);
    top = vpps_warp_max(top);
    return HEAD == VPPS_HEAD_GREATEST || fabsf(top) < __uint_as_float(0x7f800000u) ? top : 0.0f;
}

/* Of `length` elements, by a warp: the head of x, and the sum of term(totals, k). */
template <int HEAD, class TERM>
__device__ __forceinline__ vpps_totals vpps_total(unsigned lane, unsigned length, const float *x, const TERM &term) {
    vpps_totals totals = {vpps_head<HEAD>(lane, length, x), 0.0f, length};
    totals.sum = vpps_warp_sum(vpps_add_up<4>(0.0f, lane, length, 32, [&](unsigned k) { return term(totals, k); }));
    return totals;
}

/* The sum becomes finish(0), which may read it and the first elements. */
template <class FINISH> __device__ __forceinline__ void vpps_finish(vpps_totals &totals, const FINISH &finish) {
    totals.sum = finish(0);
}

/* body(k) for k below `length`, by the lanes of a warp. */
template <class BODY> __device__ __forceinline__ void vpps_each_lane(unsigned lane, unsigned length, const BODY &body) {
    for (unsigned k = lane; k < length; k += 32) body(k);
}

/* HEAD is one of VPPS_HEAD. TERM is summed up over the elements. FINISH is applied to the sum: the result, for instructions to a scalar.
 * VALUE is an element of the result, with t.sum the value of FINISH. */
#define VPPS_REDUCE(ID, HEAD, ARGUMENTS, TERM, FINISH)                                                                 \
    enum { vpps_head_##ID = VPPS_HEAD_##HEAD };                                                                        \
    __device__ __forceinline__ float vpps_term_##ID ARGUMENTS { return TERM; }                                         \
    __device__ __forceinline__ float vpps_finish_##ID ARGUMENTS { return FINISH; }
#define VPPS_ROW(ID, HEAD, ARGUMENTS, TERM, FINISH, VALUE)                                                             \
    VPPS_REDUCE(ID, HEAD, ARGUMENTS, TERM, FINISH)                                                                     \
    __device__ __forceinline__ float vpps_value_##ID ARGUMENTS { return VALUE; }

VPPS_REDUCE(DOT, NONE, (vpps_totals t, float x, float y), x *y, t.sum)
VPPS_REDUCE(SQUARED_DISTANCE, NONE, (vpps_totals t, float x, float y), (x - y) * (x - y), t.sum)
VPPS_REDUCE(SUM_ELEMENTS, NONE, (vpps_totals t, float x), x, t.sum)
VPPS_REDUCE(CROSS_ENTROPY, GREATEST, (vpps_totals t, float x, vpps_pick u), expf(x - t.head),
            (t.head - u.value) + logf(t.sum))
VPPS_REDUCE(LOG_SUM_EXP, FINITE, (vpps_totals t, float x), expf(x - t.head), t.head + logf(t.sum))
VPPS_REDUCE(HINGE, NONE, (vpps_totals t, float x, vpps_pick u, float margin),
            u.here || (margin - u.value) + x < 0.0f ? 0.0f : (margin - u.value) + x, t.sum)
VPPS_REDUCE(BINARY_LOG_LOSS, NONE, (vpps_totals t, float p, float target),
            times_log(target, p) + times_log(1.0f - target, 1.0f - p), -t.sum)

VPPS_ROW(SOFTMAX, GREATEST, (vpps_totals t, float x), expf(x - t.head), 1.0f / t.sum, expf(x - t.head) * t.sum)
VPPS_ROW(LOG_SOFTMAX, GREATEST, (vpps_totals t, float x), expf(x - t.head), logf(t.sum), (x - t.head) - t.sum)
VPPS_ROW(SOFTMAX_B, NONE, (vpps_totals t, float d, float y), d *y, t.sum, y *(d - t.sum))
VPPS_ROW(LOG_SOFTMAX_B, NONE, (vpps_totals t, float d, float y), d, t.sum, d - expf(y) * t.sum)
/* there is nothing to sum up */
VPPS_ROW(LOG_SUM_EXP_B, NONE, (vpps_totals t, float x, float y, float d), 0.0f, 0.0f, d *expf(x - y))
/* without the mean, rounded, and without the mean of what is left then, unless that is not finite */
VPPS_ROW(CENTRE, MEAN, (vpps_totals t, float x), x - t.head,
         fabsf(t.sum) < __uint_as_float(0x7f800000u) ? t.sum / (float)t.length : 0.0f, (x - t.head) - t.sum)
/* 1 / sqrt(the mean of squares + epsilon) */
__device__ __forceinline__ float vpps_inverse_norm(float squares, unsigned length, float epsilon) {
    return 1.0f / sqrtf(squares / (float)length + epsilon);
}
VPPS_ROW(RMS_NORM, NONE, (vpps_totals t, float x, float epsilon), x *x, vpps_inverse_norm(t.sum, t.length, epsilon),
         x *t.sum)
VPPS_ROW(RMS_NORM_B, SQUARES, (vpps_totals t, float x, float d, float epsilon), x *d,
         vpps_inverse_norm(t.head, t.length, epsilon) * vpps_inverse_norm(t.head, t.length, epsilon) *
             (t.sum / (float)t.length),
         vpps_inverse_norm(t.head, t.length, epsilon) * (d - x * t.sum))
/* softmax(x) = e^((x - x[label]) - loss), where subtracting in this order loses least */
VPPS_ROW(CROSS_ENTROPY_B, NONE, (vpps_totals t, float x, float loss, float d, vpps_pick u), 0.0f, 0.0f,
         d *(expf((x - u.value) - loss) - (u.here ? 1.0f : 0.0f)))
/* the sum is the number of elements */
VPPS_ROW(SMOOTH_LABEL, NONE, (vpps_totals t, float x, vpps_pick u, float smoothing), 1.0f, smoothing / t.sum,
         x *(t.sum + (u.here ? 1.0f - smoothing : 0.0f)))
VPPS_ROW(HINGE_B, NONE, (vpps_totals t, float x, float d, vpps_pick u, float margin),
         !u.here && (margin - u.value) + x > 0.0f ? 1.0f : 0.0f, -d *t.sum,
         u.here                          ? t.sum
         : (margin - u.value) + x > 0.0f ? d
                                         : 0.0f)
