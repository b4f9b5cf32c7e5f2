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
VPPS_ROW(HINGE_B, (vpps_totals t, float x, float d, vpps_pick u, float margin),
         !u.here && (margin - u.value) + x > 0.0f ? 1.0f : 0.0f, -d * t.sum,
         u.here                          ? t.sum
         : (margin - u.value) + x > 0.0f ? d
                                         : 0.0f)
