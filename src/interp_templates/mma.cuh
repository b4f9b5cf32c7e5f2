/* mma.cuh - products of operands in bf16. VPPS_PARTS is the number of bf16 numbers whose sum is an operand: 1, or 2 (bf16x3); 0: products
 * are in fp32.
 *
 * The instruction mma.sync.m16n8k16 (PTX ISA, "Warp-level matrix instructions"): a warp multiplies 16 vectors with 8 rows of weights, 16
 * elements of each, and adds to fp32 sums. Lane l holds four elements, as two words of two, of vectors l / 4 and l / 4 + 8 and of row l /
 * 4. Its sums are those of the same two vectors and of rows 2 (l % 4) and 2 (l % 4) + 1. Any four of the 16 elements will do, as long as
 * both operands use the same ones; here they are the adjacent elements from 4 (l % 4) on.
 *
 * Operands are rounded as src/runtime/cpu/bf16.h says. */
#if VPPS_PARTS

/* Two numbers, each the sum of VPPS_PARTS bf16 numbers (parts). A word has one part of each number, the first number's in the lower half. */
struct vpps_split {
    unsigned part[VPPS_PARTS];
};

__device__ __forceinline__ float vpps_first_of(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float vpps_second_of(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }

#ifndef VPPS_SIMT
VPPS_PART unsigned vpps_rounded(float first, float second) {
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}

/* Rounds two numbers to bf16, but infinity to the greatest finite bf16 number. A float x is split into two bf16 numbers
 * whose sum it is: if x is infinite, the second (x minus the first) is then infinite, not NaN. */
VPPS_PART unsigned vpps_rounded_finite(float first, float second) {
    unsigned pair;
    asm("cvt.rn.satfinite.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}
__device__ __forceinline__ float vpps_rest(float x, float high) {
    asm("sub.rn.ftz.f32 %0, %1, %2;" : "=f"(x) : "f"(x), "f"(high));
    return x;
}

/* Runs the instruction mma. The assembly is volatile, so that the compiler does not move it into a branch: all lanes must reach it. */
VPPS_PART void vpps_mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, "
        "%1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
#else
VPPS_PART unsigned vpps_nearest(float x) {
    const unsigned u = __float_as_uint(x), magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return (u | 0x00400000u) >> 16;
    if (magnitude < 0x00800000u) return (u & 0x80000000u) >> 16;
    return (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
}
VPPS_PART unsigned vpps_rounded(float first, float second) { return vpps_nearest(first) | vpps_nearest(second) << 16; }
VPPS_PART unsigned vpps_finite(unsigned rounded) { return (rounded & 0x7fffu) == 0x7f80u ? rounded - 1 : rounded; }
VPPS_PART unsigned vpps_rounded_finite(float first, float second) {
    return vpps_finite(vpps_nearest(first)) | vpps_finite(vpps_nearest(second)) << 16;
}
__device__ __forceinline__ float vpps_rest(float x, float high) { return x - high; }

/* On a CPU that runs the kernel's lanes in turn, a lane stores its operands here for its warp's other lanes. vpps_turn
 * says which of two buffers a lane uses next: a lane already at the next product overwrites nothing. */
__shared__ unsigned vpps_operands[VPPS_WARPS][2][32][6], vpps_turn[VPPS_WARPS][32];

VPPS_PART void vpps_mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    const unsigned lane = VPPS_LANE, warp = VPPS_WARP, turn = vpps_turn[warp][lane] % 2;
    unsigned *mine = vpps_operands[warp][turn][lane];
    for (unsigned i = 0; i < 4; i++) mine[i] = a[i];
    mine[4] = b0;
    mine[5] = b1;
    vpps_turn[warp][lane] = turn + 1;
    __syncwarp();
    for (unsigned i = 0; i < 4; i++) {
        const unsigned row = i / 2, column = lane % 4 * 2 + i % 2;
        for (unsigned k = 0; k < 4; k++) {
            const unsigned *const left = vpps_operands[warp][turn][lane / 4 * 4 + k],
                                  *const right = vpps_operands[warp][turn][column * 4 + k];
            for (unsigned half = 0; half < 2; half++) {
                const unsigned x = left[row + 2 * half], y = right[4 + half];
                c[i] += vpps_first_of(x) * vpps_first_of(y);
                c[i] += vpps_second_of(x) * vpps_second_of(y);
            }
        }
    }
}
#endif

VPPS_PART vpps_split vpps_split_of(float x, float y) {
    vpps_split s;
#if VPPS_PARTS == 1
    s.part[0] = vpps_rounded(x, y);
#else
    s.part[0] = vpps_rounded_finite(x, y);
    s.part[1] = vpps_rounded(vpps_rest(x, vpps_first_of(s.part[0])), vpps_rest(y, vpps_second_of(s.part[0])));
#endif
    return s;
}

/* Returns sum + w x with operands rounded as for mma, for products too small for a warp. */
VPPS_PART float vpps_multiply_add(float w, float x, float sum) {
    const vpps_split s = vpps_split_of(w, x);
#if VPPS_PARTS == 2
    sum = fmaf(vpps_first_of(s.part[1]), vpps_second_of(s.part[0]), sum);
    sum = fmaf(vpps_first_of(s.part[0]), vpps_second_of(s.part[1]), sum);
#endif
    return fmaf(vpps_first_of(s.part[0]), vpps_second_of(s.part[0]), sum);
}

/* Packs float x, as the one or two (VPPS_PARTS) bf16 numbers whose sum stands for x, into one word: the greater in the
 * lower half. Values that only matrix products read are stored so. */
VPPS_PART float vpps_in_parts(float x) {
    const vpps_split s = vpps_split_of(x, 0.0f);
#if VPPS_PARTS == 2
    return __uint_as_float(s.part[0] | s.part[1] << 16);
#else
    return __uint_as_float(s.part[0]);
#endif
}
/* Returns the sum of the bf16 numbers that vpps_in_parts has packed into this word. */
VPPS_PART float vpps_whole_of(float kept) {
    const unsigned word = __float_as_uint(kept);
#if VPPS_PARTS == 2
    return vpps_first_of(word) + vpps_second_of(word);
#else
    return vpps_first_of(word);
#endif
}

/* Splits x and y each into VPPS_PARTS bf16 numbers that sum up to it. IN_PARTS: a word holds them already. */
template <bool IN_PARTS> VPPS_PART vpps_split vpps_parts_of(float x, float y) {
    if (!IN_PARTS) return vpps_split_of(x, y);
    const unsigned first = __float_as_uint(x), second = __float_as_uint(y);
    vpps_split s;
    s.part[0] = __byte_perm(first, second, 0x5410);
#if VPPS_PARTS == 2
    s.part[1] = __byte_perm(first, second, 0x7632);
#endif
    return s;
}

/* A lane's words of an mma operand of 16 vectors times 16 elements: four words, of two bf16 numbers each. If an element is the sum of two
 * bf16 numbers (VPPS_PARTS is 2), there are four words of the first numbers and four of the second. */
struct vpps_words {
    unsigned part[VPPS_PARTS][4];
};
template <bool IN_PARTS> VPPS_PART void vpps_put_words(vpps_words &to, unsigned at, unsigned next, vpps_quad q) {
    const vpps_split low = vpps_parts_of<IN_PARTS>(q.x, q.y), high = vpps_parts_of<IN_PARTS>(q.z, q.w);
#pragma unroll
    for (int p = 0; p < VPPS_PARTS; p++) {
        to.part[p][at] = low.part[p];
        to.part[p][next] = high.part[p];
    }
}

/* Adds products of 16 vectors x with 8 rows of weights to the sums. Each weight is the sum of VPPS_PARTS bf16 numbers; b has the lane's
 * words of the weights: two words for the first of these numbers, then two for the second. */
VPPS_PART void vpps_add_products(float (&sums)[4], const vpps_words &x, const unsigned (&b)[2 * VPPS_PARTS]) {
#if VPPS_PARTS == 2
    vpps_mma(sums, x.part[0], b[2], b[3]);
    vpps_mma(sums, x.part[1], b[0], b[1]);
#endif
    vpps_mma(sums, x.part[0], b[0], b[1]);
}

/* A row of weights of a matrix whose rows are divided among CTAs. at: where the matrix begins; rows: number of its
 * rows; number: which of this CTA's rows; row_words, element_words: distances in words of two rows, and of two elements
 * of a row. All zero: padding, whose products nobody reads. */
struct vpps_weight_row {
    unsigned at, rows, number, row_words, element_words;
};

/* Loads four elements of row r.number of the rows of weights that the CTA owns, with zeros after its end. If the CTA
 * has fewer rows, loads another one, whose products nobody reads. QUADS: rows begin and end at multiples of four words.
 * WHOLE: all four elements exist. */
template <bool QUADS, bool WHOLE, unsigned LENGTH>
VPPS_PART vpps_quad vpps_four_weights(const vpps_arguments &a, const vpps_weight_row &r, vpps_rows own,
                                      unsigned element_words, unsigned element) {
    const unsigned number = vpps_least(own.first + r.number, own.end - (own.end > 0));
    const float *row = (const float *)a.matrices + (r.at + number * r.row_words);
    if (QUADS) return vpps_four<true, WHOLE, LENGTH>(row + element, element);
    vpps_quad q = {0.0f, 0.0f, 0.0f, 0.0f};
    row += (unsigned long long)element * element_words;
    if (WHOLE || element < LENGTH) q.x = row[0];
    if (WHOLE || element + 1 < LENGTH) q.y = row[element_words];
    if (WHOLE || element + 2 < LENGTH) q.z = row[2 * element_words];
    if (WHOLE || element + 3 < LENGTH) q.w = row[3 * element_words];
    return q;
}

/* Makes two operands of mma, `left` and `right`, from 16 vectors of 32 elements. An operand's row is one element of
 * all vectors. Lane l gives in q[k] elements 4 (l / 4) to 4 (l / 4) + 3 of vector 4 (l % 4) + k; of these, x and y
 * become rows l / 4 and l / 4 + 8 of `left`, z and w of `right`. */
template <bool IN_PARTS> VPPS_PART void vpps_turn_quads(const vpps_quad (&q)[4], vpps_words &left, vpps_words &right) {
    vpps_put_words<IN_PARTS>(left, 0, 2, vpps_quad{q[0].x, q[1].x, q[2].x, q[3].x});
    vpps_put_words<IN_PARTS>(left, 1, 3, vpps_quad{q[0].y, q[1].y, q[2].y, q[3].y});
    vpps_put_words<IN_PARTS>(right, 0, 2, vpps_quad{q[0].z, q[1].z, q[2].z, q[3].z});
    vpps_put_words<IN_PARTS>(right, 1, 3, vpps_quad{q[0].w, q[1].w, q[2].w, q[3].w});
}

/* Returns a mask for a word whose halves belong to vectors number `at` and `at` + 1. The mask clears halves of vectors n and following. */
__device__ __forceinline__ unsigned vpps_pair_mask(unsigned at, unsigned n) {
    return at + 1 < n ? 0xffffffffu : at < n ? 0xffffu : 0u;
}

/* Adds the products dy x^T of 16 pairs of vectors to a warp's sums: 8 rows of dy times 32 columns. `left`, `right`: 32 elements of each x,
 * as mma operands that vpps_turn_quads (above) has made. d, in lane l: element l / 4 of vectors dy number 4 (l % 4) to 4 (l % 4) + 3;
 * IN_PARTS: each word of d has an element's bf16 numbers. The masks (vpps_pair_mask) clear vectors after the last. */
template <bool IN_PARTS>
VPPS_PART void vpps_add_factors(float (&left_sums)[4], float (&right_sums)[4], const vpps_words &left,
                                const vpps_words &right, const float (&d)[4], unsigned low_mask, unsigned high_mask) {
    const vpps_split low = vpps_parts_of<IN_PARTS>(d[0], d[1]), high = vpps_parts_of<IN_PARTS>(d[2], d[3]);
    unsigned b[2 * VPPS_PARTS];
#pragma unroll
    for (int p = 0; p < VPPS_PARTS; p++) {
        b[2 * p] = low.part[p] & low_mask;
        b[2 * p + 1] = high.part[p] & high_mask;
    }
    vpps_add_products(left_sums, left, b);
    vpps_add_products(right_sums, right, b);
}

/* Stores four columns of a row of a gradient, or adds them to the row if `add` is set. */
template <bool QUADS, unsigned LENGTH>
VPPS_PART void vpps_add_gradient(float *row, unsigned column, bool add, vpps_quad q) {
    if (QUADS) {
        if (column >= LENGTH) return;
        vpps_quad &to = vpps_at<vpps_quad>(row + column);
        if (add) q = vpps_quad{to.x + q.x, to.y + q.y, to.z + q.z, to.w + q.w};
        to = q;
    } else {
        const float x[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
        for (unsigned i = 0; i < 4; i++)
            if (column + i < LENGTH) row[column + i] = add ? row[column + i] + x[i] : x[i];
    }
}
#else
__device__ __forceinline__ float vpps_multiply_add(float w, float x, float sum) { return sum + w * x; }
__device__ __forceinline__ float vpps_whole_of(float kept) { return kept; } /* in fp32, values are stored as they are */
#endif
