/* math.h - functions that formulas (isa/functions.h) call: exp, log, tanh and sigmoid of one element, without branches or calls, so that
 * loops over them become vector code with every compiler and instruction set. NaN gives NaN. The error is at most 1.1 units in the last
 * place; for sigmoid 2.5; for tanh 6.7, or 5.0 with fused multiply-adds. It was measured at every third float of a size from 2^-41 to
 * 128, and for tanh at every float from 2^-7 to 10. test_kernels.c draws some of them.
 *
 * Multiply-adds are explicit, and the compiler forms no others (-ffp-contract=off): it might do so in one copy of a loop's body and not in
 * another, so that an element's bits would depend on its place. */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifndef VPPS_INLINE /* an exported C file defines VPPS_INLINE itself */
#define VPPS_INLINE static inline __attribute__((always_inline))
#endif

VPPS_INLINE uint32_t bits_of_float(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof(u));
    return u;
}

VPPS_INLINE float float_of_bits(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof(x));
    return x;
}

/* Returns a * b + c, with one rounding if the processor has a fused multiply-add. */
VPPS_INLINE float multiply_add(float a, float b, float c) {
#if defined(__FMA__) || defined(__FP_FAST_FMAF) || defined(__ARM_FEATURE_FMA)
    return __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}

/* Clamps x to [low, high]. The comparisons let a NaN pass. */
VPPS_INLINE float clamp(float x, float low, float high) {
    x = x > high ? high : x;
    return x < low ? low : x;
}

/* Approximates (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2; from Cephes' expf (Moshier). */
VPPS_INLINE float exp_polynomial(float r) {
    float p = 1.9875691500e-4f;
    p = multiply_add(p, r, 1.3981999507e-3f);
    p = multiply_add(p, r, 8.3334519073e-3f);
    p = multiply_add(p, r, 4.1665795894e-2f);
    p = multiply_add(p, r, 1.6666665459e-1f);
    return multiply_add(p, r, 5.0000001201e-1f);
}

/* Computes e^x as 2^n e^r, adding n to the exponent's bits. Results smaller than the smallest normal number become 0,
 * since denormals are slow; those beyond the greatest become infinity. */
VPPS_INLINE float exp_of(float x) {
    const float round = 0x1.8p23f; /* adding this constant leaves the nearest integer in the float's low bits */
    const float shifted = multiply_add(x, 0x1.715476p0f, round), n = shifted - round;
    const float r = multiply_add(n, 0x1.bd0106p-13f, multiply_add(n, -0x1.63p-1f, x));
    const float p = multiply_add(exp_polynomial(r), r * r, r) + 1.0f;
    const float y = float_of_bits(bits_of_float(p) + (bits_of_float(shifted) << 23));
    const float below = x > -87.33654f ? y : 0.0f;
    return x < 88.72283f ? below : x * INFINITY; /* x * INFINITY is infinity for a large x, and NaN for NaN */
}

/* Computes e^x - 1 for x <= 0 without cancellation near 0 (-1 for x of large size). */
VPPS_INLINE float expm1_of(float x) {
    const float round = 0x1.8p23f;
    x = clamp(x, -20.0f, 0.0f);
    const float shifted = multiply_add(x, 0x1.715476p0f, round), n = shifted - round;
    const float r = multiply_add(n, 0x1.bd0106p-13f, multiply_add(n, -0x1.63p-1f, x));
    const float power = float_of_bits((bits_of_float(shifted) - bits_of_float(round) + 127u) << 23);
    return multiply_add(power, multiply_add(exp_polynomial(r), r * r, r), power - 1.0f);
}

/* Computes log x by x = 2^e m with m in [sqrt 1/2, sqrt 2); the polynomial is that of Cephes' logf. */
VPPS_INLINE float log_of(float x) {
    const uint32_t root_half = 0x3f3504f3u;
    /* A denormal is scaled to a normal number first, which the constant 23 << 23 undoes. */
    const uint32_t bits = (x < 0x1p-126f ? bits_of_float(x * 0x1p23f) - (23u << 23) : bits_of_float(x)) - root_half;
    const float e = (float)((int32_t)bits >> 23);
    const float m = float_of_bits((bits & 0x7fffffu) + root_half) - 1.0f;
    float p = 7.0376836292e-2f;
    p = multiply_add(p, m, -1.1514610310e-1f);
    p = multiply_add(p, m, 1.1676998740e-1f);
    p = multiply_add(p, m, -1.2420140846e-1f);
    p = multiply_add(p, m, 1.4249322787e-1f);
    p = multiply_add(p, m, -1.6668057665e-1f);
    p = multiply_add(p, m, 2.0000714765e-1f);
    p = multiply_add(p, m, -2.4999993993e-1f);
    p = multiply_add(p, m, 3.3333331174e-1f);
    p = multiply_add(p, m, -0.5f);
    const float y = multiply_add(e, 0.693359375f, multiply_add(p, m * m, multiply_add(e, -2.12194440e-4f, m)));
    const float above = x > 0.0f ? y : x == 0.0f ? -INFINITY : NAN;
    return x < INFINITY ? above : x; /* infinity and NaN are returned unchanged */
}

/* Computes tanh by the odd rational function of Eigen's ptanh; its error is 1 to 4 units in the last place up to where tanh rounds to 1. */
VPPS_INLINE float tanh_of(float x) {
    const float t = clamp(x, -7.9f, 7.9f), square = t * t;
    float p = -2.76076847742355e-16f;
    p = multiply_add(p, square, 2.00018790482477e-13f);
    p = multiply_add(p, square, -8.60467152213735e-11f);
    p = multiply_add(p, square, 5.12229709037114e-08f);
    p = multiply_add(p, square, 1.48572235717979e-05f);
    p = multiply_add(p, square, 6.37261928875436e-04f);
    p = multiply_add(p, square, 4.89352455891786e-03f);
    float q = 1.19825839466702e-06f;
    q = multiply_add(q, square, 1.18534705686654e-04f);
    q = multiply_add(q, square, 2.26843463243900e-03f);
    q = multiply_add(q, square, 4.89352518554385e-03f);
    const float y = t * (p / q); /* multiplying in this order avoids denormal products */
    return fabsf(x) > 7.9f ? copysignf(1.0f, x) : y;
}

/* Computes 1 / (1 + e^-x); if e^-x is infinite, the result is 0, as it should be. */
VPPS_INLINE float sigmoid_of(float x) { return 1.0f / (1.0f + exp_of(-x)); }
