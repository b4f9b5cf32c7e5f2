/* functions.h - what the formulas of isa.def call. Written once for C and CUDA: a device includes it where VPPS_INLINE and its own
 * exp_of, log_of, tanh_of, sigmoid_of, expm1_of and bits_of_float are there. NaN gives NaN. */

/* x Phi(x) in its tanh form is x sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3). */
VPPS_INLINE float gelu_gate(float x) { return sigmoid_of(1.5957691216f * (x + 0.044715f * (x * x * x))); }

/* Beyond 16 the derivative is 0 or 1, but its cubes would overflow. Comparisons let a NaN pass. */
VPPS_INLINE float gelu_derivative(float x) {
    const float below = x > 16.0f ? 16.0f : x, t = below < -16.0f ? -16.0f : below;
    const float gate = gelu_gate(t);
    return gate + t * gate * (1.0f - gate) * (1.5957691216f * (1.0f + 0.134145f * (t * t)));
}

/* factor / x, and factor log x: a factor of 0 wins over what is infinite, as where a probability has been rounded to 0 or 1. */
VPPS_INLINE float over(float factor, float x) { return factor == 0.0f ? 0.0f : factor / x; }
VPPS_INLINE float times_log(float factor, float x) { return factor == 0.0f ? 0.0f : factor * log_of(x); }

/* In [0, 1), of element number e of the batch: what vpps_dropout_keeps (graph.h) compares, bit by bit. */
VPPS_INLINE float dropout_uniform(unsigned key_low, unsigned key_high, unsigned e) {
    unsigned x = e ^ key_low;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    x = (x ^ (x >> 16)) + key_high;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = x ^ (x >> 15);
    return (float)(x >> 8) * (1.0f / 16777216.0f);
}
