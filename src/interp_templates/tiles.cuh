/* tiles.cuh - wide products: with matrices most of which fit neither registers nor shared memory. Each weight that is read from
 * memory is multiplied with many items (vertices or nodes of their lists). A vpps_wide_pass also adds up the warps' sums. */
#if VPPS_PARTS

/* ---------------------------------------------------------------- in bf16
 *
 * Each warp reads its columns of weights and of vectors from memory, and multiplies a weight with up to 32 vectors. Sums are added in the order of
 * products.cuh. */

/* Multiplies 8 * TILES rows of a weight matrix with n vectors, each of an item (a vertex, or a node in its list).
 * Shared memory has ITEM_WORDS words for each item's results; the results of these rows are stored from word AT on. */
template <unsigned TILES, unsigned AT, unsigned ITEM_WORDS> struct vpps_wide_pass {
    vpps_weights weights;
    /* in shared memory. part: results of all n vectors; buffer: each warp's partial sums for eight of the vectors */
    float *part, *buffer;
    unsigned n;

    /* Computes sums of operands: vectors, with their weights (vpps_tile_operand). All threads of the CTA call it. */
    template <class... OPERANDS> __device__ __forceinline__ void run(const OPERANDS &...operands) const {
        unsigned first = 0;
#pragma unroll 1
        for (; first + 16 < n; first += 32) multiply<2>(first, operands...);
        if (first < n) multiply<1>(first, operands...);
    }

  private:
    static_assert(TILES * 64 * VPPS_SUM_WORDS <= VPPS_WIDE_WORDS, "buffer of a wide pass");

    template <unsigned BLOCKS, class... OPERANDS>
    __device__ __forceinline__ void multiply(unsigned first, const OPERANDS &...operands) const {
        float sums[BLOCKS][TILES][4];
#pragma unroll
        for (unsigned k = 0; k < 4 * TILES * BLOCKS; k++) sums[k / 4 / TILES][k / 4 % TILES][k % 4] = 0.0f;
        (operands.multiply(sums, first, n, weights), ...);
#pragma unroll
        for (unsigned k = 0; k < 2 * BLOCKS; k++)
            if (first + k * 8 < n) store(sums[k / 2], first + k * 8, k % 2 * 2);
    }

    /* Stores in `part` the totals of all warps' sums for 8 vectors; of a tile a lane has sums[tile][k] and [k + 1]. */
    __device__ __forceinline__ void store(const float (&sums)[TILES][4], unsigned first, unsigned k) const {
        constexpr unsigned ROWS = TILES * 8;
        vpps_store_sums(buffer + weights.thread % 32 / 4 * ROWS * VPPS_SUM_WORDS, sums, k, weights.thread);
        __syncthreads();
#pragma unroll 1
        for (unsigned i = weights.thread; i < 8 * ROWS; i += VPPS_THREADS)
            if (first + i / ROWS < n)
                part[(first + i / ROWS) * ITEM_WORDS + AT + i % ROWS] =
                    vpps_sum_of_warps<VPPS_WARPS>(buffer + i * VPPS_SUM_WORDS);
        __syncthreads();
    }
};
#else

/* ---------------------------------------------------------------- in fp32
 *
 * Blocks of columns of the CTA's rows and of up to 64 vectors are copied to shared memory, a weight once for all 64. */

/* ROWS rows of a matrix (MATRIX: a vpps_matrix), beginning at number ROW of the rows that the CTA has. Times a vector,
 * the rows give elements FIRST to FIRST + ROWS - 1 of the result that a vpps_wide_pass computes. */
template <class MATRIX, unsigned FIRST, unsigned ROWS, unsigned ROW> struct vpps_wide_rows {
    /* Returns whether one of these ROWS rows of weights gives row o of the result. If so, adds the row's offset in
     * memory to `at`, and sets `words` to the distance of two elements of the row. */
    static __device__ __forceinline__ bool find(const float *&at, unsigned &words, unsigned o) {
        if (o - FIRST >= ROWS) return false;
        const MATRIX matrix(blockIdx.x % VPPS_GROUP);
        at += matrix.at + vpps_least(matrix.own.first + ROW + (o - FIRST), MATRIX::HEIGHT - 1) * MATRIX::ROW_WORDS;
        words = MATRIX::WORDS;
        return true;
    }
};

/* The vectors that rows of weights multiply: of each item (a vertex, or a node in its list) LENGTH words at address
 * place(item). ROWS: the rows, types vpps_wide_rows. IN_QUADS: vectors begin and end at multiples of four words. */
template <unsigned LENGTH, bool IN_QUADS, class PLACE, class... ROWS> struct vpps_wide_operand {
    PLACE place;

    static constexpr unsigned COLUMNS = LENGTH;
    static constexpr bool ALIGNED = IN_QUADS;

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

enum {
    VPPS_WIDE_COLUMNS = 64, /* columns that are copied and multiplied together: a block */
    /* words of shared memory for a block of a vector or row: four more than its columns, so that few threads access the same bank */
    VPPS_WIDE_STRIDE = 68,
    VPPS_WIDE_QUADS = VPPS_WIDE_COLUMNS / 4
};

/* Returns x. The compiler cannot move computations with the result before this call, where their results would take registers. */
__device__ __forceinline__ unsigned vpps_opaque(unsigned x) {
#ifndef VPPS_SIMT
    asm volatile("" : "+r"(x));
#endif
    return x;
}

/* Copies blocks of columns of several vectors, and of all rows of weights that make OUTPUTS outputs, to a buffer in
 * shared memory; each thread copies a share, four adjacent words at once. TRANSPOSED: rows of weights have no adjacent
 * elements, and are copied word by word. ALIGNED: vectors begin and end at multiples of four words. */
template <unsigned OUTPUTS, bool TRANSPOSED, bool ALIGNED> struct vpps_wide_copies {
    enum {
        AT_ONCE = VPPS_THREADS / VPPS_WIDE_QUADS, /* vectors, or rows of weights, that all threads copy at once */
        ROWS = vpps_up(OUTPUTS, 4) * 4,
        /* with transposed matrices: number of threads that together copy one column of all rows */
        LANES = vpps_power_up(ROWS, 64),
        COLUMNS = VPPS_THREADS / LANES,
        ITEM_TURNS = vpps_up(VPPS_WIDE_ITEMS, AT_ONCE),
        TURNS = TRANSPOSED ? 1 : vpps_up(ROWS, AT_ONCE)
    };
    const float *items[ITEM_TURNS], *rows[TURNS];
    /* for each row that the thread copies: number of its columns; 0 if the row does not multiply the current operand's vectors */
    unsigned ends[TURNS];
    unsigned words;   /* words from one column of a row to the next */
    unsigned at, end; /* at: index of the next column to copy; end: number of columns */
    bool aligned;

    /* Finds where the thread copies from: n vectors of the operand, and rows of weights for outputs from `first` on. */
    template <class OPERAND>
    __device__ __forceinline__ void begin(const OPERAND &operand, unsigned n, const float *matrices, unsigned first) {
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
            if (!operand.row(rows[k], words, first + (TRANSPOSED ? thread % LANES : k * AT_ONCE + in))) ends[k] = 0;
            rows[k] += TRANSPOSED ? thread / LANES * words : quad;
        }
    }

    /* Starts to copy the next block of columns (elements) of n vectors and of all rows of weights. In the copy, columns after the last one
     * are zeros, and so are rows that multiply only other operands' vectors. */
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
    /* Starts to copy four words, columns k to k + 3; words of columns from `end` on become zeros. */
    __device__ __forceinline__ void copy(float *to, const float *from, unsigned k, unsigned end) const {
        if (ALIGNED || aligned) {
            vpps_copy_quad(to, from, k < end);
            return;
        }
#pragma unroll
        for (unsigned i = 0; i < 4; i++) vpps_copy_word(to + i, from + i, k + i < end);
    }
};

/* Multiplies OUTPUTS rows of weights, from row `before` on, with n <= VPPS_WIDE_ITEMS vectors, one of each item (vertex
 * or node in its list). Shared memory has ITEM_WORDS words for an item's results; these rows' begin at word AT. */
template <unsigned OUTPUTS, unsigned AT, unsigned ITEM_WORDS, bool TRANSPOSED> struct vpps_wide_pass {
    const float *matrices;
    float *part, *buffers; /* in shared memory: results of all n vectors; copies of vectors and weights */
    unsigned n, before = 0;

    /* Multiplies each operand's vectors with its rows of weights (vpps_wide_operand); a result sums up all operands' products. All threads call it. */
    template <class... OPERANDS> __device__ __forceinline__ void run(const OPERANDS &...operands) const {
        unsigned bits = 0; /* 2^bits threads divide the n vectors, K each */
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
        unsigned to = 0, from = WORDS; /* offsets in `buffers` of the next block to copy, to multiply */
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
        ROWS = vpps_up(OUTPUTS, 4), /* rows that a thread multiplies */
        K = ROWS > 6 ? 4 : 8,       /* number of vectors that a thread multiplies */
        STAGES = 3,                 /* buffers */
        WORDS = (VPPS_WIDE_ITEMS + 4 * ROWS) * VPPS_WIDE_STRIDE
    };
    static_assert(STAGES * WORDS <= VPPS_WIDE_WORDS && VPPS_THREADS * (K * ROWS) <= VPPS_WIDE_WORDS,
                  "buffers of a wide pass");

    template <class COPIES, class OPERAND, class... OTHERS>
    __device__ __forceinline__ void begin(COPIES &copies, unsigned number, const OPERAND &operand,
                                          const OTHERS &...others) const {
        if (!number)
            copies.begin(operand, n, matrices, before);
        else if constexpr (sizeof...(OTHERS) > 0)
            begin(copies, number - 1, others...);
    }

    /* Adds products of the thread's rows and vectors to the sums. `shares` threads divide the columns: in groups of four, this thread takes
     * the groups with the numbers `share`, `share` + `shares`, `share` + 2 `shares`. */
    static __device__ __forceinline__ void add(float (&sums)[ROWS][K], const float *x, unsigned to_item, const float *w,
                                               unsigned share, unsigned shares) {
#pragma unroll 1
        for (unsigned k = 4 * share; k < VPPS_WIDE_COLUMNS; k += 4 * shares) {
            vpps_quad of_item[K];
#pragma unroll
            for (unsigned i = 0; i < K; i++) of_item[i] = vpps_at<const vpps_quad>(x + i * to_item + k);
#pragma unroll
            for (unsigned r = 0; r < ROWS; r++) {
                const vpps_quad q = vpps_at<const vpps_quad>(w + r * (4 * VPPS_WIDE_STRIDE) + k);
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

    /* Adds up the sums of all threads that multiplied different columns, in the order of the columns' shares, and stores them. */
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
#endif
