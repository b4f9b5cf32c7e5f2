/* products.cuh - products of matrices with vectors. */

/* ---------------------------------------------------------------- products of one CTA, of matrices in memory */

/* Adds this thread's share of a row times x to `sum`. The row's elements lie WORDS words apart, and LANES threads share them. */
template <unsigned LENGTH, unsigned WORDS, unsigned LANES>
__device__ __forceinline__ float vpps_multiply_row(unsigned lane, float sum, const float *row, const float *x) {
    constexpr unsigned RUN = LENGTH <= VPPS_RUN * LANES ? LENGTH : VPPS_RUN * LANES;
    vpps_long_sum total = {0.0f, 0.0f};
#pragma unroll 1
    for (unsigned k = lane, end = RUN;; end += RUN) {
#pragma unroll 8
        for (; k < vpps_least(end, LENGTH); k += LANES) sum = vpps_multiply_add(row[k * WORDS], x[k], sum);
        if constexpr (RUN == LENGTH) return sum;
        total.add(sum);
        sum = 0.0f;
        if (end >= LENGTH) return total.value();
    }
}

/* Computes elements [0, n) of a product by warps. A warp loads the operands of several elements before it adds up the first.
 * product(i, start) returns the lane's share of element i's sum, and sets `start` to a number that is added to the sum. */
template <class PRODUCT>
__device__ __forceinline__ void vpps_multiply_by_warps(float *to, unsigned n, const PRODUCT &product) {
    enum { AT_ONCE = 4 };
    vpps_by_turns(VPPS_WARP * AT_ONCE, n, VPPS_WARPS * AT_ONCE, [&](unsigned first) {
        float sums[AT_ONCE], starts[AT_ONCE];
#pragma unroll
        for (unsigned k = 0; k < AT_ONCE; k++) sums[k] = product(vpps_least(first + k, n - 1), starts[k]);
#pragma unroll
        for (unsigned k = 0; k < AT_ONCE; k++) sums[k] = vpps_warp_sum(sums[k]);
#pragma unroll
        for (unsigned k = 0; k < AT_ONCE; k++)
            if (VPPS_LANE == 0 && first + k < n) to[first + k] = sums[k] + starts[k];
    });
}

/* Computes elements [0, n) of a product with a transposed matrix, one element per thread at a time. */
template <class PRODUCT>
__device__ __forceinline__ void vpps_multiply_by_threads(float *to, unsigned n, const PRODUCT &product) {
    vpps_by_turns(threadIdx.x, n, VPPS_THREADS, [&](unsigned i) {
        float start;
        const float sum = product(i, start);
        to[i] = sum + start;
    });
}

/* ---------------------------------------------------------------- products of rows that are dealt
 *
 * A warp has the sums over its columns; VPPS_SUM_WORDS of shared memory are for the sums of all warps. */

/* Loads RUN (1, 2 or 4) adjacent words, whose address is a multiple of RUN words if ALIGNED. Without a loop, `to` stays in registers. */
template <bool ALIGNED, unsigned RUN>
__device__ __forceinline__ void vpps_load_run(float (&to)[RUN], const float *from) {
    if constexpr (ALIGNED && RUN == 4) {
        const vpps_quad x = vpps_at<const vpps_quad>(from);
        to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
    } else if constexpr (ALIGNED && RUN == 2) {
        const vpps_pair x = vpps_at<const vpps_pair>(from);
        to[0] = x.x, to[1] = x.y;
    } else {
        to[0] = from[0];
        if constexpr (RUN > 1) to[1] = from[1];
        if constexpr (RUN > 2) to[2] = from[2], to[3] = from[3];
    }
}
template <bool ALIGNED, unsigned RUN>
__device__ __forceinline__ void vpps_store_run(float *to, const float (&from)[RUN]) {
    if constexpr (ALIGNED && RUN == 4) {
        vpps_at<vpps_quad>(to) = vpps_quad{from[0], from[1], from[2], from[3]};
    } else if constexpr (ALIGNED && RUN == 2) {
        vpps_at<vpps_pair>(to) = vpps_pair{from[0], from[1]};
    } else {
        to[0] = from[0];
        if constexpr (RUN > 1) to[1] = from[1];
        if constexpr (RUN > 2) to[2] = from[2], to[3] = from[3];
    }
}

/* Where weights are: the thread's registers, shared memory, and device memory, which has all of them. */
struct vpps_weights {
    float (&registers)[VPPS_WEIGHTS + 1];
    float *shared;
    unsigned thread;
    const vpps_arguments &a;
};

/* ---------------------------------------------------------------- in fp32
 *
 * codegen/resident.h says which thread holds which weights. A pass makes some outputs of every item; an output is a row of a product. A
 * thread multiplies its columns, and a block of lanes adds up its sums. */

/* A matrix or its transpose: ROWS rows. Rows begin TO_ROW words apart, elements of a row TO_ELEMENT words apart; the
 * matrix begins at word FROM of all matrices. The CTAs of a group divide the rows (`own`: this CTA's) and each row, in
 * SHARES parts of COLUMNS elements; `at`: word of the first element of this CTA's part of row 0. */
template <unsigned ROWS, unsigned COLUMNS, unsigned FROM, unsigned TO_ROW, unsigned TO_ELEMENT, unsigned SHARES>
struct vpps_matrix {
    static constexpr unsigned HEIGHT = ROWS, LENGTH = COLUMNS, ROW_WORDS = TO_ROW, WORDS = TO_ELEMENT;
    const unsigned at;
    const vpps_rows own;
    __device__ __forceinline__ explicit vpps_matrix(unsigned member)
        : at(FROM + member % SHARES * (COLUMNS * TO_ELEMENT)),
          own(vpps_rows_of(ROWS, VPPS_GROUP / SHARES, member / SHARES)) {}

    /* Returns the distance, in words, of a row's element number `column` + k from element number `column`, the first of RUN that are loaded
     * together. For an element after the row's end, returns the distance of the row's last element: a zero multiplies it. */
    template <unsigned RUN> static __device__ __forceinline__ unsigned word_of(unsigned k, unsigned column) {
        return (LENGTH % RUN == 0 ? k : vpps_least(k, LENGTH - 1 - column)) * WORDS;
    }
    /* Loads RUN elements of a row, from number `column` on; `from` is the address of the first. */
    template <unsigned RUN>
    static __device__ __forceinline__ void load(float (&to)[RUN], const float *from, unsigned column) {
        if constexpr (WORDS == 1 && LENGTH % RUN == 0) {
            vpps_load_run<true>(to, from);
        } else {
#pragma unroll
            for (unsigned k = 0; k < RUN; k++) to[k] = from[word_of<RUN>(k, column)];
        }
    }
};

/* Threads share the columns of a row in rounds: in each, a block of lanes multiplies SPAN columns, and each thread RUN adjacent ones. Returns the
 * thread's first column in a round. */
template <unsigned RUN, unsigned SPAN>
__device__ __forceinline__ unsigned vpps_column(unsigned thread, unsigned round) {
    constexpr unsigned LANES = SPAN / RUN / VPPS_WARPS;
    return (thread / 32 * LANES + thread % 32 % LANES) * RUN + round * SPAN;
}

/* ROWS of the CTA's rows of a matrix. Multiplied by a vector, these rows give the results number FIRST, FIRST + 1, ...
 * The thread's weights begin at its register AT or, if IN_SHARED, at word AT of shared memory. */
template <unsigned FIRST, unsigned ROWS, unsigned AT, bool IN_SHARED> struct vpps_matrix_part {
    static constexpr bool LOADED = IN_SHARED; /* weights are loaded at each use */

    /* Adds weights times RUN elements of ITEMS vectors. sums[i * OUTPUTS + o]: of vector i, for result row o. */
    template <unsigned OUTPUTS, unsigned ROUNDS, unsigned ITEMS, unsigned RUN, int SUMS>
    static __device__ __forceinline__ void add(float (&sums)[SUMS], const float (&x)[ITEMS][RUN], unsigned round,
                                               const vpps_weights &weights) {
#pragma unroll
        for (unsigned row = 0; row < ROWS; row++) {
            const unsigned at = AT + (row * ROUNDS + round) * RUN;
            float w[RUN];
            if constexpr (IN_SHARED) vpps_load_run<true>(w, weights.shared + at * VPPS_THREADS + weights.thread * RUN);
#pragma unroll
            for (unsigned k = 0; k < RUN; k++) {
                if constexpr (!IN_SHARED) w[k] = weights.registers[at + k];
#pragma unroll
                for (unsigned i = 0; i < ITEMS; i++) sums[i * OUTPUTS + FIRST + row] += w[k] * x[i][k];
            }
        }
    }
};

/* Rows of MATRIX (a vpps_matrix) that are read from device memory at each use: the thread's rows from number ROW on. If
 * the CTA owns too few rows, another row of the matrix is multiplied instead, and its sums are not read. */
template <class MATRIX, unsigned FIRST, unsigned ROWS, unsigned ROW, unsigned BLOCKS> struct vpps_streamed_part {
    static constexpr bool LOADED = true;

    template <unsigned OUTPUTS, unsigned ROUNDS, unsigned ITEMS, unsigned RUN, int SUMS>
    static __device__ __forceinline__ void add(float (&sums)[SUMS], const float (&x)[ITEMS][RUN], unsigned round,
                                               const vpps_weights &weights) {
        constexpr unsigned SPAN = VPPS_THREADS / BLOCKS * RUN;
        const MATRIX matrix(blockIdx.x % VPPS_GROUP);
        const unsigned column = vpps_column<RUN, SPAN>(weights.thread, round),
                       block = weights.thread % 32 / (32 / BLOCKS), first = matrix.own.first + block;
        const bool there = ROUNDS * SPAN <= MATRIX::LENGTH || column < MATRIX::LENGTH;
        float w[ROWS][RUN];
#pragma unroll
        for (unsigned row = 0; row < ROWS; row++) {
            const unsigned number = vpps_least(first + (ROW + row) * BLOCKS, MATRIX::HEIGHT - 1);
            MATRIX::load(w[row],
                         (const float *)weights.a.matrices +
                             (matrix.at + number * MATRIX::ROW_WORDS + (there ? column : 0) * MATRIX::WORDS),
                         column);
        }
#pragma unroll
        for (unsigned row = 0; row < ROWS; row++)
#pragma unroll
            for (unsigned k = 0; k < RUN; k++)
#pragma unroll
                for (unsigned i = 0; i < ITEMS; i++)
                    sums[i * OUTPUTS + FIRST + row] += (there ? w[row][k] : 0.0f) * x[i][k];
    }
};

/* A vector of LENGTH words of each item (vertex or node of its list), which MATRICES multiply; place(item) returns the vector's address. In each
 * of ROUNDS rounds a thread multiplies RUN adjacent columns, SPAN columns after those of the preceding round. ALIGNED: vectors begin at a
 * multiple of four words. If COPY_AT is not VPPS_NONE, an item's vector is copied to shared memory, to word COPY_AT of the item's words. A
 * vector that matrices in registers and matrices in memory multiply is two operands. */
template <unsigned LENGTH, unsigned RUN, unsigned ROUNDS, unsigned SPAN, bool ALIGNED, unsigned COPY_AT, class PLACE,
          class... MATRICES>
struct vpps_operand {
    PLACE place;

    static constexpr bool COPIED = COPY_AT != VPPS_NONE;
    /* Whether the columns are multiplied in a loop. Without a loop the compiler would load all weights first, for which registers do not suffice. */
    static constexpr bool LOOPED = ROUNDS > 1 && (MATRICES::LOADED && ...);
    /* Registers to load a vector during the preceding one's multiplication; LOOPED: a number that forbids this. */
    static constexpr unsigned WORDS = LOOPED ? 256 : ROUNDS * RUN;

    /* The elements of ITEMS vectors that the thread multiplies. */
    template <unsigned ITEMS> struct columns { float x[ROUNDS][ITEMS][RUN]; };

    /* Starts to copy ITEMS vectors (of vertices or nodes of their lists) to shared memory, ITEM_WORDS words apart. */
    template <unsigned ITEMS, unsigned ITEM_WORDS>
    __device__ __forceinline__ void copy(float *to, unsigned first, unsigned n, unsigned thread) const {
        if constexpr (COPIED) {
            constexpr unsigned QUADS = LENGTH / 4;
#pragma unroll
            for (unsigned k = 0; k < (ITEMS * QUADS + VPPS_THREADS - 1) / VPPS_THREADS; k++) {
                const unsigned i = k * VPPS_THREADS + thread;
                if (i < ITEMS * QUADS)
                    vpps_copy_quad(to + i / QUADS * ITEM_WORDS + COPY_AT + i % QUADS * 4,
                                   place(vpps_least(first + i / QUADS, n - 1)) + i % QUADS * 4);
            }
        }
    }

    /* Sets x to where the vectors of items (vertices, list members) `first` and on are; copied ones are at `copies`. */
    template <unsigned ITEM_WORDS, unsigned ITEMS>
    __device__ __forceinline__ void find(const float *(&x)[ITEMS], unsigned first, unsigned n,
                                         const float *copies) const {
#pragma unroll
        for (unsigned i = 0; i < ITEMS; i++) {
            if constexpr (COPIED) {
                x[i] = copies + (i * ITEM_WORDS + COPY_AT);
            } else {
                x[i] = place(vpps_least(first + i, n - 1));
            }
        }
    }

    /* Loads the elements of each vector that the thread multiplies in one round; zeros stand for elements after the vector's end. whole: no
     * thread has such elements. */
    template <unsigned ITEMS>
    static __device__ __forceinline__ void load(float (&to)[ITEMS][RUN], const float *const (&x)[ITEMS], unsigned round,
                                                bool whole, unsigned thread) {
        const unsigned from = vpps_column<RUN, SPAN>(thread, round);
#pragma unroll
        for (unsigned i = 0; i < ITEMS; i++) {
            if (whole || from + (LENGTH % RUN == 0 ? 0 : RUN - 1) < LENGTH) {
                vpps_load_run<ALIGNED>(to[i], x[i] + from);
            } else {
#pragma unroll
                for (unsigned k = 0; k < RUN; k++)
                    to[i][k] = LENGTH % RUN != 0 && from + k < LENGTH ? x[i][from + k] : 0.0f;
            }
        }
    }

    /* Loads all elements of each vector that the thread multiplies. */
    template <unsigned ITEM_WORDS, unsigned ITEMS>
    __device__ __forceinline__ void load(columns<ITEMS> &to, unsigned first, unsigned n, const float *copies,
                                         unsigned thread) const {
        const float *x[ITEMS];
        find<ITEM_WORDS>(x, first, n, copies);
#pragma unroll
        for (unsigned round = 0; round < ROUNDS; round++)
            load(to.x[round], x, round, (round + 1) * SPAN <= LENGTH, thread);
    }
    template <unsigned OUTPUTS, unsigned ITEMS, int SUMS>
    static __device__ __forceinline__ void add(float (&sums)[SUMS], const columns<ITEMS> &columns,
                                               const vpps_weights &weights) {
#pragma unroll
        for (unsigned round = 0; round < ROUNDS; round++)
            (MATRICES::template add<OUTPUTS, ROUNDS>(sums, columns.x[round], round, weights), ...);
    }

    /* Loads elements of ITEMS vectors and adds their products with the matrices to the sums. */
    template <unsigned OUTPUTS, unsigned ITEM_WORDS, unsigned ITEMS, int SUMS>
    __device__ __forceinline__ void multiply(float (&sums)[SUMS], unsigned first, unsigned n, const float *copies,
                                             const vpps_weights &weights) const {
        if constexpr (LOOPED) {
            constexpr unsigned LOADS =
                ITEMS * RUN < 32 ? 32 / (ITEMS * RUN) : 1; /* unrolls the loop, so that 32 loads are in flight */
            const float *x[ITEMS];
            find<ITEM_WORDS>(x, first, n, copies);
            constexpr unsigned WHOLE = LENGTH / SPAN; /* rounds in which all threads have columns */
            const auto add_round = [&](unsigned round, bool whole) {
                float columns[ITEMS][RUN];
                load(columns, x, round, whole, weights.thread);
                (MATRICES::template add<OUTPUTS, ROUNDS>(sums, columns, round, weights), ...);
            };
#pragma unroll(LOADS)
            for (unsigned round = 0; round < WHOLE; round++) add_round(round, true);
            if (WHOLE < ROUNDS) add_round(WHOLE, false);
        } else {
            columns<ITEMS> columns;
            load<ITEM_WORDS>(columns, first, n, copies, weights.thread);
            add<OUTPUTS, ITEMS>(sums, columns, weights);
        }
    }
};
template <unsigned LENGTH, unsigned RUN, unsigned ROUNDS, unsigned SPAN, bool ALIGNED, unsigned COPY_AT,
          class... MATRICES, class PLACE>
__device__ __forceinline__ vpps_operand<LENGTH, RUN, ROUNDS, SPAN, ALIGNED, COPY_AT, PLACE, MATRICES...>
vpps_operand_at(const PLACE &place) {
    return {place};
}

/* The elements that a thread multiplies, of ITEMS vectors of each operand. */
template <unsigned ITEMS, class... OPERANDS> struct vpps_columns_of_all : OPERANDS::template columns<ITEMS>... {};

/* Returns the least power of two that is at least n, but at most `most`. */
constexpr __device__ unsigned vpps_power_up(unsigned n, unsigned most) {
    unsigned power = 1;
    while (power < n && power < most) power *= 2;
    return power;
}

/* Computes OUTPUTS outputs (rows of products) of n items (vertices or nodes of their lists). An item has ITEM_WORDS words of shared memory for sums; the
 * outputs' sums are stored from word AT on. A warp's lanes form BLOCKS blocks, which compute different rows. COPY_WORDS words of vectors per item are
 * copied to shared memory, which has COPY_BUFFERS buffers for VPPS_COPY_ITEMS items each. */
template <unsigned OUTPUTS, unsigned BLOCKS, unsigned AT, unsigned ITEM_WORDS, unsigned COPY_WORDS,
          unsigned COPY_BUFFERS>
struct vpps_pass {
    vpps_weights weights;
    float *part, *copies; /* in shared memory: the sums, and the copied operands */
    unsigned n;

    /* Computes the products. operands: vectors, with their weights. All threads of the CTA must call it. */
    template <class... OPERANDS> __device__ __forceinline__ void run(const OPERANDS &...operands) const {
        enum {
            MOST_SUMS = 32,                         /* most registers of a thread for sums */
            MOST_COLUMNS = 64,                      /* most registers of a thread for elements of vectors */
            MOST_WORDS = VPPS_RECURRENT ? 136 : 208 /* most for elements of vectors and weights together */
        };
        constexpr unsigned ITEMS = OUTPUTS > MOST_SUMS / 2 ? 1 : OUTPUTS > MOST_SUMS / 4 ? 2 : 4; /* items per turn */
        constexpr unsigned WORDS = (0 + ... + OPERANDS::WORDS) * ITEMS;
        constexpr bool COPIED = (OPERANDS::COPIED || ...);
        if constexpr (COPIED && AT) __syncthreads(); /* other threads may still read what the preceding pass copied */
        if (ITEMS > 1 && n <= ITEMS / 2) {           /* few items (vertices, list nodes): takes half as many at once */
            run_few<(ITEMS + 1) / 2>(operands...);
        } else if constexpr (COPIED) {
            run_copied<ITEMS>(operands...);
        } else if constexpr (WORDS <= MOST_COLUMNS && WORDS + VPPS_WEIGHTS <= MOST_WORDS) {
            run_ahead<ITEMS>(operands...);
        } else {
#pragma unroll 1
            for (unsigned first = 0; first < n; first += ITEMS) multiply<ITEMS>(first, copies, operands...);
        }
    }

  private:
    template <unsigned ITEMS, class... OPERANDS>
    __device__ __forceinline__ void run_few(const OPERANDS &...operands) const {
        if constexpr ((OPERANDS::COPIED || ...)) {
            copy<ITEMS>(copies, 0, operands...);
            wait_for_copies();
        }
        multiply<ITEMS>(0, copies, operands...);
    }

    /* Copies operands of the next items while the present ones are multiplied, if there are two buffers. */
    template <unsigned ITEMS, class... OPERANDS>
    __device__ __forceinline__ void run_copied(const OPERANDS &...operands) const {
        constexpr unsigned WORDS = VPPS_COPY_ITEMS * COPY_WORDS;
        if constexpr (COPY_BUFFERS > 1) {
#pragma unroll 1
            for (unsigned coming = 0; coming < n + VPPS_COPY_ITEMS; coming += VPPS_COPY_ITEMS) {
                if (coming) wait_for_copies();
                if (coming < n)
                    copy<VPPS_COPY_ITEMS>(copies + coming / VPPS_COPY_ITEMS % COPY_BUFFERS * WORDS, coming,
                                          operands...);
                if (!coming) continue;
                const unsigned first = coming - VPPS_COPY_ITEMS;
                multiply_copied<ITEMS>(first, copies + first / VPPS_COPY_ITEMS % COPY_BUFFERS * WORDS, operands...);
            }
        } else {
#pragma unroll 1
            for (unsigned first = 0; first < n; first += VPPS_COPY_ITEMS) {
                if (first) __syncthreads();
                copy<VPPS_COPY_ITEMS>(copies, first, operands...);
                wait_for_copies();
                multiply_copied<ITEMS>(first, copies, operands...);
            }
        }
    }

    template <unsigned ITEMS, class... OPERANDS>
    __device__ __forceinline__ void multiply_copied(unsigned first, const float *copies,
                                                    const OPERANDS &...operands) const {
        if constexpr (ITEMS == VPPS_COPY_ITEMS) {
            multiply<ITEMS>(first, copies, operands...);
        } else {
#pragma unroll 1
            for (unsigned at = first; at < vpps_least(first + VPPS_COPY_ITEMS, n); at += ITEMS)
                multiply<ITEMS>(at, copies + (at - first) * COPY_WORDS, operands...);
        }
    }

    /* Loads the next ITEMS vertices' (or list nodes') vectors before the present ones' products are added up. */
    template <unsigned ITEMS, class... OPERANDS>
    __device__ __forceinline__ void run_ahead(const OPERANDS &...operands) const {
        vpps_columns_of_all<ITEMS, OPERANDS...> columns;
        (operands.template load<COPY_WORDS, ITEMS>(columns, 0, n, copies, weights.thread), ...);
#pragma unroll 1
        for (unsigned first = 0; first < n; first += ITEMS) {
            sums<ITEMS> q;
            (OPERANDS::template add<OUTPUTS, ITEMS>(q.of, columns, weights), ...);
            if (first + ITEMS < n)
                (operands.template load<COPY_WORDS, ITEMS>(columns, first + ITEMS, n, copies, weights.thread), ...);
            store(q, first);
        }
    }

    template <unsigned ITEMS, class... OPERANDS>
    __device__ __forceinline__ void multiply(unsigned first, const float *copies, const OPERANDS &...operands) const {
        sums<ITEMS> q;
        (operands.template multiply<OUTPUTS, COPY_WORDS, ITEMS>(q.of, first, n, copies, weights), ...);
        store(q, first);
    }

    template <unsigned ITEMS, class... OPERANDS>
    __device__ __forceinline__ void copy(float *to, unsigned first, const OPERANDS &...operands) const {
        (operands.template copy<ITEMS, COPY_WORDS>(to, first, n, weights.thread), ...);
    }
    static __device__ __forceinline__ void wait_for_copies() {
        vpps_wait_for_copies();
        __syncthreads();
    }

    /* A thread's sums for ITEMS items (vertices or nodes of their lists). When LANES lanes have added up theirs,
     * HOLDERS of them have HAS final sums each, and EACH adjacent lanes have the same. */
    template <unsigned ITEMS> struct sums {
        static constexpr unsigned LANES = 32 / BLOCKS, N = ITEMS * OUTPUTS, HOLDERS = vpps_power_up(N, LANES),
                                  HAS = (N + HOLDERS - 1) / HOLDERS, EACH = LANES / HOLDERS;
        float of[HOLDERS * HAS];
        __device__ __forceinline__ sums() {
#pragma unroll
            for (unsigned k = 0; k < HOLDERS * HAS; k++) of[k] = 0.0f;
        }
    };

    template <unsigned ITEMS> __device__ __forceinline__ void store(sums<ITEMS> &q, unsigned first) const {
        using S = sums<ITEMS>;
        vpps_fold<S::HOLDERS * S::HAS, S::LANES>(q.of);
        const unsigned lane = weights.thread % 32, holder = lane % S::LANES / S::EACH;
        if (lane % S::EACH == 0) {
#pragma unroll
            for (unsigned k = 0; k < S::HAS; k++) {
                const unsigned number = holder * S::HAS + k;
                unsigned item = number / OUTPUTS, output = number % OUTPUTS;
                if constexpr (S::HAS % OUTPUTS == 0)
                    item = holder * (S::HAS / OUTPUTS) + k / OUTPUTS, output = k % OUTPUTS;
                if constexpr (S::HAS % OUTPUTS != 0 && ITEMS == 2)
                    item = number >= OUTPUTS, output = item ? number - OUTPUTS : number; /* avoids a division */
                if (number < S::N && first + item < n)
                    part[(first + item) * ITEM_WORDS + AT + (output * BLOCKS + lane / S::LANES) * VPPS_SUM_WORDS +
                         weights.thread / 32] = q.of[k];
            }
        }
    }
};

/* ---------------------------------------------------------------- in bf16 */
#if VPPS_PARTS

/* A lane's words of 8 x 16 weights that its warp multiplies at once: four weights, each VPPS_PARTS bf16 numbers. */
enum { VPPS_STEP_WORDS = 2 * VPPS_PARTS };

__device__ __forceinline__ void vpps_split_weights(unsigned (&words)[VPPS_STEP_WORDS], vpps_quad q) {
    const vpps_split low = vpps_split_of(q.x, q.y), high = vpps_split_of(q.z, q.w);
#pragma unroll
    for (unsigned p = 0; p < VPPS_PARTS; p++) words[2 * p] = low.part[p], words[2 * p + 1] = high.part[p];
}

/* Returns `a` with scratch memory moved past weights that were put there first: `words` words of each thread. */
__device__ __forceinline__ vpps_arguments vpps_later(vpps_arguments a, unsigned words) {
    a.scratch += words * 4ull * VPPS_VPS * VPPS_THREADS;
    return a;
}

/* Where the words of a fragment (eight rows of weights) are: in registers, in shared memory, or in scratch memory. */
enum { VPPS_IN_REGISTERS, VPPS_IN_SHARED, VPPS_IN_MEMORY };

/* A thread's words of a fragment, which is eight rows of weights: VPPS_STEP_WORDS for each of STEPS steps of 16
 * columns, from word AT on of LEVEL: registers, shared or scratch memory. TILE: which eight rows of results. */
template <unsigned AT, unsigned LEVEL, unsigned STEPS, unsigned TILE = 0> struct vpps_fragment {
    /* Whether steps of 16 columns form a loop. Without it, all steps' weights would be loaded before any product. */
    static constexpr bool LOOPED = LEVEL == VPPS_IN_MEMORY || (LEVEL == VPPS_IN_SHARED && STEPS > 16);

    template <int BLOCKS, int TILES>
    static __device__ __forceinline__ void add(float (&sums)[BLOCKS][TILES][4], const vpps_words (&x)[BLOCKS],
                                               const unsigned (&words)[VPPS_STEP_WORDS]) {
#pragma unroll
        for (unsigned b = 0; b < BLOCKS; b++) vpps_add_products(sums[b][TILE], x[b], words);
    }
    static __device__ __forceinline__ void load(unsigned (&words)[VPPS_STEP_WORDS], unsigned step,
                                                const vpps_weights &weights) {
        float w[VPPS_STEP_WORDS];
        vpps_load_run<LEVEL != VPPS_IN_REGISTERS>(w, place(step, weights));
#pragma unroll
        for (unsigned i = 0; i < VPPS_STEP_WORDS; i++) words[i] = __float_as_uint(w[i]);
    }
    static __device__ __forceinline__ void store(const unsigned (&words)[VPPS_STEP_WORDS], unsigned step,
                                                 const vpps_weights &weights) {
        float w[VPPS_STEP_WORDS];
#pragma unroll
        for (unsigned i = 0; i < VPPS_STEP_WORDS; i++) w[i] = __uint_as_float(words[i]);
        vpps_store_run<LEVEL != VPPS_IN_REGISTERS>(place(step, weights), w);
    }

  private:
    static __device__ __forceinline__ float *place(unsigned step, const vpps_weights &weights) {
        const unsigned at = step * VPPS_STEP_WORDS;
        if constexpr (LEVEL == VPPS_IN_REGISTERS) return weights.registers + AT + at;
        float *words = weights.shared + AT * VPPS_THREADS;
        if (LEVEL == VPPS_IN_MEMORY)
            words = (float *)weights.a.scratch +
                    (AT * 1ull * VPPS_VPS + blockIdx.x * (STEPS * VPPS_STEP_WORDS)) * VPPS_THREADS;
        return words + at * VPPS_THREADS + weights.thread * VPPS_STEP_WORDS;
    }
};

/* The weights in memory, of one or several matrices, from which fragment NUMBER (eight rows) is loaded. HEIGHT: rows of
 * the matrix; WORDS: words from one element of a row to the next; 0 for either: it differs between the eight rows.
 * ALIGNED: rows begin and end at multiples of four words. SHARES: CTAs that divide a row's columns. PADDED: some of the eight are zeros. */
template <unsigned NUMBER, unsigned HEIGHT, unsigned WORDS, bool ALIGNED, unsigned SHARES, bool PADDED>
struct vpps_fragment_rows {
    template <bool WHOLE, unsigned LENGTH>
    static __device__ __forceinline__ vpps_quad load(unsigned element, const vpps_weights &weights,
                                                     const vpps_weight_row *rows) {
        const unsigned member = blockIdx.x % VPPS_GROUP;
        vpps_weight_row row = rows[NUMBER * 8 + weights.thread % 32 / 4];
        if (PADDED && !row.rows) return {0.0f, 0.0f, 0.0f, 0.0f}; /* not a row of this product: adds nothing */
        const unsigned words = WORDS ? WORDS : row.element_words;
        row.at += member % SHARES * (LENGTH * words);
        const vpps_rows own = vpps_rows_of(HEIGHT ? HEIGHT : row.rows, VPPS_GROUP / SHARES, member / SHARES);
        return vpps_four_weights<ALIGNED, WHOLE, LENGTH>(weights.a, row, own, words, element);
    }
};

/* What a lane multiplies in one step: four elements of each of its two vectors of every block of 16 vectors, and its weights of N fragments. */
template <int BLOCKS, int N> struct vpps_step_operands {
    vpps_quad x[BLOCKS][2];
    unsigned weights[N][VPPS_STEP_WORDS];
};

/* A vector of LENGTH words of each item (vertex, or node that a list input reads); place(item) returns its address. FRAGMENTS, eight rows
 * of weights each, multiply it; all are in memory, or all in registers or shared memory. A warp multiplies STEPS times 16 elements.
 * IN_PARTS: a word holds an element as VPPS_PARTS bf16 numbers. ALIGNED: vectors begin and end at multiples of four words. */
template <unsigned LENGTH, unsigned STEPS, bool IN_PARTS, bool ALIGNED, class PLACE, class... FRAGMENTS>
struct vpps_tile_operand {
    PLACE place;

    template <int BLOCKS, int TILES>
    __device__ __forceinline__ void multiply(float (&sums)[BLOCKS][TILES][4], unsigned first, unsigned n,
                                             const vpps_weights &weights) const {
        constexpr unsigned OF_WARP = STEPS * 16;
        const unsigned warp = weights.thread / 32, lane = weights.thread % 32;
        if (OF_WARP * (VPPS_WARPS - 1) >= LENGTH && warp * OF_WARP >= LENGTH) return;
        const float *x[BLOCKS][2];
#pragma unroll
        for (unsigned k = 0; k < 2 * BLOCKS; k++) x[k / 2][k % 2] = place(vpps_least(first + k * 8 + lane / 4, n - 1));
        vpps_step_operands<BLOCKS, sizeof...(FRAGMENTS)> now, next;
        if (LOOPED) load(next, x, 0, weights);
#pragma unroll(LOOPED ? 2 : STEPS)
        for (unsigned step = 0; step < STEPS; step++) {
            if (LOOPED)
                now = next;
            else
                load(now, x, step, weights);
            if (LOOPED && step + 1 < STEPS) load(next, x, step + 1, weights);
            vpps_words words[BLOCKS];
#pragma unroll
            for (unsigned b = 0; b < BLOCKS; b++) {
                vpps_put_words<IN_PARTS>(words[b], 0, 2, now.x[b][0]);
                vpps_put_words<IN_PARTS>(words[b], 1, 3, now.x[b][1]);
            }
            unsigned i = 0;
            (FRAGMENTS::add(sums, words, now.weights[i++]), ...);
        }
    }

  private:
    static constexpr bool LOOPED = (FRAGMENTS::LOOPED && ...);

    /* Loads a lane's elements of the vectors, and its weights, for one step. */
    template <int BLOCKS>
    static __device__ __forceinline__ void load(vpps_step_operands<BLOCKS, sizeof...(FRAGMENTS)> &to,
                                                const float *(&x)[BLOCKS][2], unsigned step,
                                                const vpps_weights &weights) {
        constexpr bool WHOLE = STEPS * 16 * VPPS_WARPS <= LENGTH;
        const unsigned element = (weights.thread / 32 * STEPS + step) * 16 + weights.thread % 4 * 4;
#pragma unroll
        for (unsigned k = 0; k < 2 * BLOCKS; k++)
            to.x[k / 2][k % 2] = vpps_four<ALIGNED, WHOLE, LENGTH>(x[k / 2][k % 2] + element, element);
        unsigned i = 0;
        (FRAGMENTS::load(to.weights[i++], step, weights), ...);
    }
};
template <unsigned LENGTH, unsigned STEPS, bool IN_PARTS, bool ALIGNED, class... FRAGMENTS, class PLACE>
__device__ __forceinline__ vpps_tile_operand<LENGTH, STEPS, IN_PARTS, ALIGNED, PLACE, FRAGMENTS...>
vpps_tile_operand_at(const PLACE &place) {
    return {place};
}

/* Stores a thread's sums for an item (vertex or list node): sums[t][k] and [k + 1] (k: 0 or 2) of two adjacent rows of
 * tile t, eight rows of products. to: the item's words, VPPS_SUM_WORDS for each row, of which a warp fills one. */
template <int TILES>
__device__ __forceinline__ void vpps_store_sums(float *to, const float (&sums)[TILES][4], unsigned k, unsigned thread) {
    to += thread % 4 * 2 * VPPS_SUM_WORDS + thread / 32;
#pragma unroll
    for (unsigned tile = 0; tile < TILES; tile++) {
        to[tile * 8 * VPPS_SUM_WORDS] = sums[tile][k];
        to[(tile * 8 + 1) * VPPS_SUM_WORDS] = sums[tile][k + 1];
    }
}

/* Computes TILES times eight rows of products for n items (vertices or nodes of their lists). An item has ITEM_WORDS words of shared memory for
 * sums; the rows' sums are stored from word AT on. */
template <unsigned TILES, unsigned AT, unsigned ITEM_WORDS> struct vpps_tile_pass {
    vpps_weights weights;
    float *part; /* shared memory for products: of each item (vertex or node of its list), partial sums of all warps */
    unsigned n;

    template <class... OPERANDS> __device__ __forceinline__ void run(const OPERANDS &...operands) const {
#pragma unroll 1
        for (unsigned first = 0; first < n; first += 16) {
            float sums[1][TILES][4];
#pragma unroll
            for (unsigned k = 0; k < 4 * TILES; k++) sums[0][k / 4][k % 4] = 0.0f;
            (operands.multiply(sums, first, n, weights), ...);
            store(sums[0], first, 0);
            store(sums[0], first + 8, 2);
        }
    }

  private:
    __device__ __forceinline__ void store(const float (&sums)[TILES][4], unsigned first, unsigned k) const {
        const unsigned item = first + weights.thread % 32 / 4;
        if (item < n) vpps_store_sums(part + item * ITEM_WORDS + AT, sums, k, weights.thread);
    }
};

/* Computes a product of many rows (vpps_product_tile.tall) in TURNS turns of TILES times eight rows. A warp multiplies all columns, also
 * those whose weights other warps loaded, so that it has final sums: one word for each row. A turn's weights begin SHARED words of shared
 * memory, or MEMORY words of each thread in device memory, after those of the preceding turn. */
template <unsigned TILES, unsigned AT, unsigned ITEM_WORDS, unsigned TURNS, unsigned SHARED, unsigned MEMORY>
struct vpps_tall_pass {
    vpps_weights weights;
    float *part; /* shared memory: sums of products, for each vertex or node of its list */
    unsigned n;

    template <class... OPERANDS> __device__ __forceinline__ void run(const OPERANDS &...operands) const {
        const unsigned lane = weights.thread % 32;
#pragma unroll 1
        for (unsigned k = weights.thread / 32; k < (n + 15) / 16 * TURNS; k += VPPS_WARPS) {
            const unsigned first = k / TURNS * 16, turn = k % TURNS;
            float sums[1][TILES][4];
#pragma unroll
            for (unsigned i = 0; i < 4 * TILES; i++) sums[0][i / 4][i % 4] = 0.0f;
#pragma unroll 2
            for (unsigned warp = 0; warp < VPPS_WARPS; warp++) {
                const vpps_weights of_warp = {weights.registers, weights.shared + turn * SHARED, warp * 32 + lane,
                                              vpps_later(weights.a, turn * MEMORY)};
                (operands.multiply(sums, first, n, of_warp), ...);
            }
            float *const to = part + (first + lane / 4) * ITEM_WORDS + AT + turn * (TILES * 8) + lane % 4 * 2;
#pragma unroll
            for (unsigned i = 0; i < 2 * TILES; i++)
                if (first + lane / 4 + i % 2 * 8 < n)
                    vpps_at<vpps_pair>(to + i % 2 * 8 * ITEM_WORDS + i / 2 * 8) =
                        vpps_pair{sums[0][i / 2][i % 2 * 2], sums[0][i / 2][i % 2 * 2 + 1]};
        }
    }
};
#endif

/* ---------------------------------------------------------------- finishing products */

/* Calls body(first, n) for CHUNK items at a time, with a barrier after each call. CHUNK 0: one call for all items, without a barrier. */
template <unsigned CHUNK, class BODY> __device__ __forceinline__ void vpps_chunks(unsigned n, const BODY &body) {
    if constexpr (CHUNK == 0) {
        body(0u, n);
    } else {
#pragma unroll 1
        for (unsigned first = 0; first < n; first += CHUNK) {
            body(first, vpps_least(n - first, CHUNK));
            __syncthreads();
        }
    }
}

/* Returns element e of a product of one item (vertex or node of its list): the final sum, if ROW_WORDS is 1, else the
 * sum of all warps' sums. An item has ITEM_WORDS words of sums; the product's words begin at word AT. */
template <unsigned AT, unsigned ITEM_WORDS, unsigned ROW_WORDS>
__device__ __forceinline__ float vpps_product_sum(const float *part, unsigned item, unsigned e) {
    if constexpr (ROW_WORDS == 1) return part[item * ITEM_WORDS + AT + e];
    return vpps_sum_of_warps<VPPS_WARPS>(part + item * ITEM_WORDS + e * VPPS_SUM_WORDS + AT);
}
