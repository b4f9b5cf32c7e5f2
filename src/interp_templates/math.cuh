/* math.cuh - functions of one element that CUDA lacks or that the CPU device defines; accurate to a few units in the
 * last place, NaN gives NaN. The formulas are those of runtime/cpu/kernels.c. */

/* e^-x may be infinite: then the quotient is 0, as it should. The fast division is 2 units off and has no slow path; it
 * gives 0 for divisors beyond 2^126, where the true quotient is next to nothing. */
__device__ __forceinline__ float vpps_sigmoid(float x) { return __fdividef(1.0f, 1.0f + expf(-x)); }

/* x Phi(x) in its tanh form is x sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3). */
__device__ __forceinline__ float vpps_gelu_gate(float x) {
    return vpps_sigmoid(1.5957691216f * (x + 0.044715f * (x * x * x)));
}

/* Beyond 16 the derivative is 0 or 1, but its cubes would overflow. Comparisons let a NaN pass. */
__device__ __forceinline__ float vpps_gelu_derivative(float x) {
    const float t = x > 16.0f ? 16.0f : x < -16.0f ? -16.0f : x;
    const float gate = vpps_gelu_gate(t);
    return gate + t * gate * (1.0f - gate) * (1.5957691216f * (1.0f + 0.134145f * (t * t)));
}

/* e^x - 1 for x <= 0 (-1 for any great one), without cancellation near 0: 2^n e^r - 1 with n the integer nearest to
 * x / ln 2, and Cephes' polynomial for (e^r - 1 - r) / r^2. Shorter than CUDA's, which takes any x. */
__device__ __forceinline__ float vpps_expm1(float x) {
    const float round = 12582912.0f; /* 1.5 * 2^23: adding it leaves the nearest integer in the low bits */
    x = x < -20.0f ? -20.0f : x;
    const float shifted = fmaf(x, 1.442695041f, round), n = shifted - round;
    const float r = fmaf(n, 2.12194440e-4f, fmaf(n, -0.693359375f, x));
    float p = fmaf(1.9875691500e-4f, r, 1.3981999507e-3f);
    p = fmaf(p, r, 8.3334519073e-3f);
    p = fmaf(p, r, 4.1665795894e-2f);
    p = fmaf(p, r, 1.6666665459e-1f);
    p = fmaf(p, r, 5.0000001201e-1f);
    const unsigned exponent = __float_as_uint(shifted) - __float_as_uint(round) + 127u;
    const float power = __uint_as_float(exponent << 23);
    return fmaf(power, fmaf(p, r * r, r), power - 1.0f);
}

/* factor * log(x), where a factor of 0 wins over an infinite logarithm; likewise factor / x. */
__device__ __forceinline__ float vpps_times_log(float factor, float x) {
    return factor == 0.0f ? 0.0f : factor * logf(x);
}
__device__ __forceinline__ float vpps_over(float factor, float x) { return factor == 0.0f ? 0.0f : factor / x; }

/* Uniform in [0, 1), for element number e of the batch: what vpps_dropout_keeps (graph.h) compares, bit by bit. */
__device__ __forceinline__ float vpps_uniform(unsigned key_low, unsigned key_high, unsigned e) {
    unsigned x = e ^ key_low;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    x = (x ^ (x >> 16)) + key_high;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = x ^ (x >> 15);
    return (float)(x >> 8) * (1.0f / 16777216.0f);
}
