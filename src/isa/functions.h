/* functions.h - the functions that the formulas of isa.def call. Written once for C and CUDA: a device includes it after defining
 * VPPS_INLINE, exp_of, log_of, tanh_of, sigmoid_of, expm1_of, multiply_add and bits_of_float. NaN gives NaN. */

/* GELU in its tanh form is x times this gate: sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3). */
VPPS_INLINE float gelu_gate(float x) { return sigmoid_of(1.5957691216f * (x + 0.044715f * (x * x * x))); }

/* Derivative of GELU in its tanh form. Beyond |x| = 16 the derivative is 0 or 1, and x^3 could overflow. A NaN gives NaN. */
VPPS_INLINE float gelu_derivative(float x) {
    const float below = x > 16.0f ? 16.0f : x, t = below < -16.0f ? -16.0f : below;
    const float gate = gelu_gate(t);
    return gate + t * gate * (1.0f - gate) * (1.5957691216f * (1.0f + 0.134145f * (t * t)));
}

/* The error function erf x to 1e-7, by a rational function of x (Eigen's). For |x| > 4 the result is 1 or -1. A NaN gives NaN. */
VPPS_INLINE float erf_of(float x) {
    const float below = x > 4.0f ? 4.0f : x, t = below < -4.0f ? -4.0f : below, square = t * t;
    float p = multiply_add(-2.72614225801306e-10f, square, 2.77068142495902e-08f);
    p = multiply_add(p, square, -2.10102402082508e-06f);
    p = multiply_add(p, square, -5.69250639462346e-05f);
    p = multiply_add(p, square, -7.34990630326855e-04f);
    p = multiply_add(p, square, -2.95459980854025e-03f);
    p = multiply_add(p, square, -1.60960333262415e-02f);
    float q = multiply_add(-1.45660718464996e-05f, square, -2.13374055278905e-04f);
    q = multiply_add(q, square, -1.68282697438203e-03f);
    q = multiply_add(q, square, -7.37332916720468e-03f);
    q = multiply_add(q, square, -1.42647390514189e-02f);
    const float y = t * (p / q);
    return x > 4.0f ? 1.0f : x < -4.0f ? -1.0f : y;
}

/* normal_below is the normal distribution function Phi(x); gelu_erf_derivative is the derivative of x Phi(x). */
VPPS_INLINE float normal_below(float x) { return multiply_add(0.5f, erf_of(0.70710678f * x), 0.5f); }
VPPS_INLINE float gelu_erf_derivative(float x) {
    const float below = x > 16.0f ? 16.0f : x, t = below < -16.0f ? -16.0f : below;
    return multiply_add(t, 0.39894228f * exp_of(-0.5f * (t * t)), normal_below(x));
}

/* over returns factor / x, times_log returns factor * log x. A factor of 0 gives 0, even if x is a probability rounded to 0 or 1. */
VPPS_INLINE float over(float factor, float x) { return factor == 0.0f ? 0.0f : factor / x; }
VPPS_INLINE float times_log(float factor, float x) { return factor == 0.0f ? 0.0f : factor * log_of(x); }

/* Returns a random number in [0, 1) for element e of the batch, which depends only on e and the key; dropout keeps the element unless the
 * number is below its probability. The hash runs at full speed on vectors and GPUs (Wellons 2018, "lowbias32"). */
VPPS_INLINE float dropout_uniform(unsigned key_low, unsigned key_high, unsigned e) {
    unsigned x = e ^ key_low;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    x = (x ^ (x >> 16)) + key_high;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = x ^ (x >> 15);
    return (float)(x >> 8) * (1.0f / 16777216.0f);
}
