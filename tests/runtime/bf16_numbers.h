/* bf16_numbers.h - operands for products in bf16, many of them hard cases, and the bound of a product's error. */
#pragma once

#include "runtime/kernel_inputs.h"

static float ordinary(void) { return draw(-1, 1); }

/* Draws a number of any size from 2^-40 to 2^40, with either sign. */
static float of_any_size(void) { return ldexpf(draw(-1, 1), (int)below(80) - 40); }

/* Draws one of a pair of great numbers that cancel except for their last bits. */
static float cancelling(void) {
    static uint32_t n;
    static float last;
    n++;
    if (n % 2) return last = draw(1000, 2000);
    return -last * (1 + draw(-1, 1) * 0x1p-12f);
}

static float tiny(void) { return ldexpf(draw(-1, 1), -64 - (int)below(70)); } /* products, some operands become zero */
static float great(void) { return ldexpf(draw(-1, 1), 60); }

static float (*const kinds[])(void) = {ordinary, of_any_size, cancelling, tiny, great};
enum { N_KINDS = VPPS_COUNT(kinds) };

/* The error bound of a sum of k products of operands in so many bf16 parts (bf16.h). u: unit roundoff of the sums. */
static inline double bf16_bound(uint32_t parts, uint32_t k, double terms, double operands, double u) {
    const double relative =
        parts == 1 ? 0x1p-7 + 0x1p-16 + 1.01 * (k + 1) * u : 0x1p-15 + 0x1p-23 + 1.01 * (3 * k + 2) * u;
    return relative * terms + 0x1p-125 * operands + 0x1p-124 * k * (parts == 1 ? 1 : 3);
}
