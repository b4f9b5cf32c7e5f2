/* whole.cuh - instructions that need a sum over whole vectors: to a scalar, or to a vector again. */

/* The greatest element (NaNs are passed over, as what is computed from it comes upon them again) and the sum. */
struct vpps_totals {
    float top, sum;
};

/* Operand u: is this element the class, and the class's element. */
struct vpps_pick {
    bool here;
    float value;
};

/* Of `length` elements, by a warp: the greatest of x where TOP, and the sum of term(totals, k). */
template <bool TOP, class TERM>
__device__ __forceinline__ vpps_totals vpps_total(unsigned lane, unsigned length, const float *x, const TERM &term) {
    vpps_totals totals = {0.0f, 0.0f};
    if (TOP) {
        totals.top = __uint_as_float(0xff800000u);
        for (unsigned k = lane; k < length; k += 32) totals.top = fmaxf(totals.top, x[k]);
        totals.top = vpps_warp_max(totals.top);
    }
    float sum = 0.0f;
    for (unsigned k = lane; k < length; k += 32) sum += term(totals, k);
    totals.sum = vpps_warp_sum(sum);
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

/* TERM is summed up over the elements; FINISH is what becomes of the sum, and the result for instructions to a scalar;
 * VALUE is an element of the result, with t.sum what FINISH made. */
#define VPPS_REDUCE(ID, ARGUMENTS, TERM, FINISH)                                                                       \
    __device__ __forceinline__ float vpps_term_##ID ARGUMENTS { return TERM; }                                         \
    __device__ __forceinline__ float vpps_finish_##ID ARGUMENTS { return FINISH; }
#define VPPS_ROW(ID, ARGUMENTS, TERM, FINISH, VALUE)                                                                   \
    VPPS_REDUCE(ID, ARGUMENTS, TERM, FINISH)                                                                           \
    __device__ __forceinline__ float vpps_value_##ID ARGUMENTS { return VALUE; }

VPPS_REDUCE(DOT, (vpps_totals t, float x, float y), x * y, t.sum)
VPPS_REDUCE(SQUARED_DISTANCE, (vpps_totals t, float x, float y), (x - y) * (x - y), t.sum)
VPPS_REDUCE(SUM_ELEMENTS, (vpps_totals t, float x), x, t.sum)
VPPS_REDUCE(CROSS_ENTROPY, (vpps_totals t, float x, vpps_pick u), expf(x - t.top), (t.top - u.value) + logf(t.sum))
VPPS_REDUCE(HINGE, (vpps_totals t, float x, vpps_pick u, float margin),
            u.here || (margin - u.value) + x < 0.0f ? 0.0f : (margin - u.value) + x, t.sum)
VPPS_REDUCE(BINARY_LOG_LOSS, (vpps_totals t, float p, float target),
            times_log(target, p) + times_log(1.0f - target, 1.0f - p), -t.sum)

VPPS_ROW(SOFTMAX, (vpps_totals t, float x), expf(x - t.top), 1.0f / t.sum, expf(x - t.top) * t.sum)
VPPS_ROW(LOG_SOFTMAX, (vpps_totals t, float x), expf(x - t.top), logf(t.sum), (x - t.top) - t.sum)
VPPS_ROW(SOFTMAX_B, (vpps_totals t, float d, float y), d * y, t.sum, y *(d - t.sum))
VPPS_ROW(LOG_SOFTMAX_B, (vpps_totals t, float d, float y), d, t.sum, d - expf(y) * t.sum)
/* softmax(x) = e^((x - x[label]) - loss), where subtracting in this order loses least; there is nothing to sum up */
VPPS_ROW(CROSS_ENTROPY_B, (vpps_totals t, float x, float loss, float d, vpps_pick u), 0.0f, 0.0f,
         d *(expf((x - u.value) - loss) - (u.here ? 1.0f : 0.0f)))
/* the sum is the number of elements */
VPPS_ROW(SMOOTH_LABEL, (vpps_totals t, float x, vpps_pick u, float smoothing), 1.0f, smoothing / t.sum,
         x *(t.sum + (u.here ? 1.0f - smoothing : 0.0f)))
VPPS_ROW(HINGE_B, (vpps_totals t, float x, float d, vpps_pick u, float margin),
         !u.here && (margin - u.value) + x > 0.0f ? 1.0f : 0.0f, -d * t.sum,
         u.here                          ? t.sum
         : (margin - u.value) + x > 0.0f ? d
                                         : 0.0f)
