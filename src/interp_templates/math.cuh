/* math.cuh - functions of one element that formulas (isa/functions.h) call, accurate to a few units in the last place. NaN gives NaN. */
#define VPPS_INLINE __device__ __forceinline__

VPPS_INLINE unsigned bits_of_float(float x) { return __float_as_uint(x); }
VPPS_INLINE float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
VPPS_INLINE float exp_of(float x) { return expf(x); }
VPPS_INLINE float log_of(float x) { return logf(x); }

/* If e^-x is infinite, the quotient is 0, as it should be. The fast division is 2 units off and has no slow path; it
 * gives 0 for divisors greater than 2^126, where the true quotient is almost nothing. */
VPPS_INLINE float sigmoid_of(float x) { return __fdividef(1.0f, 1.0f + expf(-x)); }

/* Computes tanh by a polynomial near 0, else by the exponential. Both are always computed: a branch, as in CUDA's
 * function, would prevent interleaving with the surrounding code. */
VPPS_INLINE float tanh_of(float x) {
    const float size = fabsf(x), square = x * x;
    const float far = 1.0f - __fdividef(2.0f, expf(2.0f * size) + 1.0f);
    float p = fmaf(1.5739873e-2f, square, -5.2303962e-2f);
    p = fmaf(p, square, 1.3315299e-1f);
    p = fmaf(p, square, -3.3332768e-1f);
    const float near = fmaf(p * square, x, x);
    return size < 0.55f ? near : copysignf(far, x);
}

/* Computes e^x - 1 for x <= 0 (-1 for x of large size) without cancellation near 0: as 2^n e^r - 1, with n the integer nearest to x / ln 2,
 * and Cephes' polynomial for (e^r - 1 - r) / r^2. Shorter than CUDA's function, which takes any x. */
VPPS_INLINE float expm1_of(float x) {
    const float round = 12582912.0f; /* 1.5 * 2^23: adding this leaves the nearest integer in the low bits */
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
