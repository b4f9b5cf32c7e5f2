/* tiles.cuh - products in fp32 with matrices that fit neither registers nor shared memory (codegen/resident.h: wide). A pass copies blocks of
 * columns of the VP's rows, and of many items (vertices or list members), to shared memory. So a CTA reads each weight once for up to 64 items. */

/* ROWS rows of MATRIX (a vpps_matrix), from the VP's row number ROW on. Their products belong to the pass's outputs FIRST, FIRST + 1, ... */
template <class MATRIX, unsigned FIRST, unsigned ROWS, unsigned ROW> struct vpps_wide_rows {
    /* If the rows have output o, adds the place of its row to `at`, sets `words` to the distance of its elements, and returns true. */
    static __device__ __forceinline__ bool find(const float *&at, unsigned &words, unsigned o) {
        if (o - FIRST >= ROWS) return false;
        const unsigned first = vpps_rows_of(MATRIX::HEIGHT, VPPS_GROUP, blockIdx.x % VPPS_GROUP).first + ROW;
        at += MATRIX::AT + vpps_least(first + (o - FIRST), MATRIX::HEIGHT - 1) * MATRIX::ROW_WORDS;
        words = MATRIX::WORDS;
        return true;
    }
};

/* An operand of a pass: place(item) returns the address of an item's vector of LENGTH words. ROWS (vpps_wide_rows) multiply it. IN_QUADS:
 * vectors begin and end at a multiple of four words. */
template <unsigned LENGTH, bool IN_QUADS, class PLACE, class... ROWS> struct vpps_wide_operand {
    PLACE place;

    static constexpr unsigned COLUMNS = LENGTH;
    static constexpr bool ALIGNED = IN_QUADS;

    /* Finds the row that computes output o, as vpps_wide_rows does. */
    static __device__ __forceinline__ bool row(const float *&at, unsigned &words, unsigned o) {
        return (ROWS::find(at, words, o) || ...);
    }
};
template <unsigned LENGTH, bool IN_QUADS, class... ROWS, class PLACE>
__device__ __forceinline__ vpps_wide_operand<LENGTH, IN_QUADS, PLACE, ROWS...>
vpps_wide_operand_at(const PLACE &place) {
    return {place};
}

constexpr __device__ unsigned vpps_up(unsigned n, unsigned unit) { return (n + unit - 1) / unit; }
constexpr __device__ unsigned vpps_fewer(unsigned a, unsigned b) { return a < b ? a : b; }

enum {
    VPPS_WIDE_COLUMNS = 64, /* columns of a block */
    VPPS_WIDE_STRIDE =
        68, /* words of an item, or a row, in a buffer: four more, so that few threads access the same bank */
    VPPS_WIDE_QUADS = VPPS_WIDE_COLUMNS / 4
};

/* Returns x. What is computed from the result is not computed earlier, and so takes no registers before. */
__device__ __forceinline__ unsigned vpps_opaque(unsigned x) {
#ifndef VPPS_SIMT
    asm volatile("" : "+r"(x));
#endif
    return x;
}

/* A thread's share of the copies of some items and of OUTPUTS rows to a buffer. Rows are copied four words at a time, or one if the matrices are
 * TRANSPOSED: then the elements of a row are not adjacent. ALIGNED: all operands are. */
template <unsigned OUTPUTS, bool TRANSPOSED, bool ALIGNED> struct vpps_wide_copies {
    enum {
        AT_ONCE = VPPS_THREADS / VPPS_WIDE_QUADS, /* items, or rows, that all threads copy at once */
        ROWS = vpps_up(OUTPUTS, 4) * 4,
        LANES = vpps_power_up(ROWS, 64), /* of transposed matrices: threads that copy a column of all rows */
        COLUMNS = VPPS_THREADS / LANES,
        ITEM_TURNS = vpps_up(VPPS_WIDE_ITEMS, AT_ONCE),
        TURNS = TRANSPOSED ? 1 : vpps_up(ROWS, AT_ONCE)
    };
    const float *items[ITEM_TURNS], *rows[TURNS];
    unsigned ends[TURNS]; /* the operand's number of columns; 0 if the row does not multiply the operand */
    unsigned words;       /* words from one column of a row to the next */
    unsigned at, end;     /* number of the next column to copy, and of the operand's columns */
    bool aligned;

    /* Begins with an operand: finds the addresses of n items and of all rows. */
    template <class OPERAND>
    __device__ __forceinline__ void begin(const OPERAND &operand, unsigned n, const float *matrices) {
        const unsigned thread = vpps_opaque(threadIdx.x), quad = thread % VPPS_WIDE_QUADS * 4,
                       in = thread / VPPS_WIDE_QUADS;
        at = 0;
        end = OPERAND::COLUMNS;
        aligned = OPERAND::ALIGNED;
        words = 1;
#pragma unroll
        for (unsigned k = 0; k < ITEM_TURNS; k++) items[k] = operand.place(vpps_least(k * AT_ONCE + in, n - 1)) + quad;
#pragma unroll
        for (unsigned k = 0; k < TURNS; k++) {
            ends[k] = end;
            rows[k] = matrices;
            if (!operand.row(rows[k], words, TRANSPOSED ? thread % LANES : k * AT_ONCE + in)) ends[k] = 0;
            rows[k] += TRANSPOSED ? thread / LANES * words : quad;
        }
    }

    /* Starts to copy the next columns of n items and of the rows. Zeros stand for columns after the last one, and for rows that do not multiply
     * the operand. */
    __device__ __forceinline__ void next(float *to, unsigned n) {
        const unsigned thread = threadIdx.x, quad = thread % VPPS_WIDE_QUADS * 4, in = thread / VPPS_WIDE_QUADS;
        float *const place = to + in * VPPS_WIDE_STRIDE + quad;
#pragma unroll
        for (unsigned k = 0; k < ITEM_TURNS; k++)
            if (k * AT_ONCE + in < n) copy(place + k * (AT_ONCE * VPPS_WIDE_STRIDE), items[k] + at, at + quad, end);
        if constexpr (TRANSPOSED) {
            const unsigned o = thread % LANES, column = thread / LANES;
            const float *const from = rows[0] + at * words;
            to += (n + o) * VPPS_WIDE_STRIDE + column;
            if (o < ROWS && column < COLUMNS) {
#pragma unroll
                for (unsigned k = 0; k < VPPS_WIDE_COLUMNS; k += COLUMNS)
                    if (VPPS_WIDE_COLUMNS % COLUMNS == 0 || k + column < VPPS_WIDE_COLUMNS)
                        vpps_copy_word(to + k, from + k * words, at + k + column < ends[0]);
            }
        } else {
#pragma unroll
            for (unsigned k = 0; k < TURNS; k++)
                if (ROWS % AT_ONCE == 0 || k * AT_ONCE + in < ROWS)
                    copy(place + n * VPPS_WIDE_STRIDE + k * (AT_ONCE * VPPS_WIDE_STRIDE), rows[k] + at, at + quad,
                         ends[k]);
        }
        at += VPPS_WIDE_COLUMNS;
    }

  private:
    /* Starts to copy four words: those of column k and of the following ones before `end`. */
    __device__ __forceinline__ void copy(float *to, const float *from, unsigned k, unsigned end) const {
        if (ALIGNED || aligned) {
            vpps_copy_quad(to, from, k < end);
            return;
        }
#pragma unroll
        for (unsigned i = 0; i < 4; i++) vpps_copy_word(to + i, from + i, k + i < end);
    }
};

/* Computes OUTPUTS outputs (rows of products) of n items, at most VPPS_WIDE_ITEMS, and stores their sums at words AT and following of an item's
 * ITEM_WORDS. A block of columns is multiplied while the next ones are copied. */
template <unsigned OUTPUTS, unsigned AT, unsigned ITEM_WORDS, bool TRANSPOSED> struct vpps_wide_pass {
    const float *matrices;
    float *part, *buffers; /* in shared memory: the sums, and VPPS_WIDE_WORDS of memory */
    unsigned n;

    /* Runs the pass. All threads must call it. */
    template <class... OPERANDS> __device__ __forceinline__ void run(const OPERANDS &...operands) const {
        unsigned bits = 0; /* 2^bits threads share the items */
        while (K << bits < n) bits++;
        const unsigned all = K << bits, shares = vpps_least(VPPS_WIDE_QUADS, VPPS_THREADS / 4 >> bits),
                       item = threadIdx.x & ((1u << bits) - 1), row = threadIdx.x >> bits & 3,
                       share = threadIdx.x >> bits >> 2;
        vpps_wide_copies<OUTPUTS, TRANSPOSED, (OPERANDS::ALIGNED && ...)> copies;
        copies.at = copies.end = 0;
        unsigned operand = 0;
        float sums[ROWS][K];
#pragma unroll
        for (unsigned k = 0; k < K * ROWS; k++) sums[k / K][k % K] = 0.0f;
        constexpr unsigned BLOCKS = (0 + ... + vpps_up(OPERANDS::COLUMNS, VPPS_WIDE_COLUMNS));
        unsigned to = 0, from = WORDS; /* places of the next block to copy, and to multiply, in the buffers */
#pragma unroll 1
        for (unsigned coming = 0; coming < BLOCKS + STAGES - 1; coming++) {
            if (coming >= STAGES - 1) {
                vpps_wait_for_copies_before();
                __syncthreads();
            }
            if (coming < BLOCKS) {
                if (copies.at >= copies.end) begin(copies, operand++, operands...);
                copies.next(buffers + to, all);
            }
            vpps_close_copies();
            if (coming >= STAGES - 1 && share < shares)
                add(sums, buffers + from + item * VPPS_WIDE_STRIDE, VPPS_WIDE_STRIDE << bits,
                    buffers + from + (all + row) * VPPS_WIDE_STRIDE, share, shares);
            to = to + WORDS < STAGES * WORDS ? to + WORDS : 0;
            from = from + WORDS < STAGES * WORDS ? from + WORDS : 0;
        }
        __syncthreads();
        store(sums, share, shares, row, item, bits);
    }

  private:
    enum {
        ROWS = vpps_up(OUTPUTS, 4), /* of a thread */
        K = ROWS > 6 ? 4 : 8,       /* items of a thread */
        STAGES = 3,                 /* buffers */
        WORDS = (VPPS_WIDE_ITEMS + 4 * ROWS) * VPPS_WIDE_STRIDE
    };
    static_assert(STAGES * WORDS <= VPPS_WIDE_WORDS && VPPS_THREADS * (K * ROWS) <= VPPS_WIDE_WORDS,
                  "buffers of a wide pass");

    /* Begins with operand number `number` of those given. */
    template <class COPIES, class OPERAND, class... OTHERS>
    __device__ __forceinline__ void begin(COPIES &copies, unsigned number, const OPERAND &operand,
                                          const OTHERS &...others) const {
        if (!number)
            copies.begin(operand, n, matrices);
        else if constexpr (sizeof...(OTHERS) > 0)
            begin(copies, number - 1, others...);
    }

    /* Adds the products of a thread's items and rows with its share of the columns, every so many quads one. */
    static __device__ __forceinline__ void add(float (&sums)[ROWS][K], const float *x, unsigned to_item, const float *w,
                                               unsigned share, unsigned shares) {
#pragma unroll 1
        for (unsigned k = 4 * share; k < VPPS_WIDE_COLUMNS; k += 4 * shares) {
            vpps_quad of_item[K];
#pragma unroll
            for (unsigned i = 0; i < K; i++) of_item[i] = *(const vpps_quad *)(x + i * to_item + k);
#pragma unroll
            for (unsigned r = 0; r < ROWS; r++) {
                const vpps_quad q = *(const vpps_quad *)(w + r * (4 * VPPS_WIDE_STRIDE) + k);
#pragma unroll
                for (unsigned i = 0; i < K; i++) {
                    sums[r][i] += q.x * of_item[i].x;
                    sums[r][i] += q.y * of_item[i].y;
                    sums[r][i] += q.z * of_item[i].z;
                    sums[r][i] += q.w * of_item[i].w;
                }
            }
        }
    }

    /* Adds up the sums of the shares, in their order, by way of the buffers. */
    __device__ __forceinline__ void store(const float (&sums)[ROWS][K], unsigned share, unsigned shares, unsigned row,
                                          unsigned item, unsigned bits) const {
        const unsigned all = K << bits, words = 4 * ROWS * all;
        if (share < shares) {
#pragma unroll
            for (unsigned k = 0; k < K * ROWS; k++)
                buffers[share * words + (row + k / K * 4) * all + item + (k % K << bits)] = sums[k / K][k % K];
        }
        __syncthreads();
#pragma unroll 1
        for (unsigned k = threadIdx.x; k < OUTPUTS * all; k += VPPS_THREADS) {
            float sum = 0.0f;
#pragma unroll 4
            for (unsigned s = 0; s < shares; s++) sum += buffers[s * words + k];
            const unsigned of_item = k & (all - 1), output = k / K >> bits;
            if (of_item < n) part[of_item * ITEM_WORDS + AT + output] = sum;
        }
        __syncthreads();
    }
};
