/* loads.cuh - loads weights to registers and shared memory when a launch begins. codegen/resident.h and codegen/fragments.h say which
 * thread has which weights. Where a CTA owns fewer rows than others, zeros are loaded. */

/* ---------------------------------------------------------------- in fp32 */

/* Loads a thread's part of MATRIX, a vpps_matrix: COLUMNS elements of each of ROWS rows, in runs of RUN adjacent elements. The
 * lanes of a warp form BLOCKS blocks of lanes; each block loads other rows. */
template <class MATRIX, unsigned ROWS, unsigned COLUMNS, unsigned RUN, unsigned BLOCKS> struct vpps_resident_matrix {
    vpps_rows own;
    const float *from; /* address, among all matrices, of the first row of MATRIX that this CTA owns */

    __device__ __forceinline__ vpps_resident_matrix(const vpps_arguments &a, unsigned member)
        : own(MATRIX(member).own), from((const float *)a.matrices + MATRIX(member).at +
                                        vpps_least(own.first, MATRIX::HEIGHT - 1) * MATRIX::ROW_WORDS) {}

    /* Loads the weights that the thread keeps to its registers w[AT] and following. */
    template <unsigned AT> __device__ __forceinline__ void load(float (&w)[VPPS_WEIGHTS + 1]) const {
        each_run([&](unsigned i, const float *at, bool there, unsigned column) {
            float x[RUN];
            MATRIX::load(x, at, column);
#pragma unroll
            for (unsigned k = 0; k < RUN; k++) w[AT + i + k] = there ? x[k] : 0.0f;
        });
    }

    /* Starts to copy the thread's words to shared memory, from where vpps_take_staged moves them to registers. */
    __device__ __forceinline__ void stage(float *to) const {
        each_run([&](unsigned i, const float *at, bool there, unsigned column) {
#pragma unroll
            for (unsigned k = 0; k < RUN; k++)
                vpps_copy_word(to + (i + k) * VPPS_THREADS + threadIdx.x, at + MATRIX::template word_of<RUN>(k, column),
                               there);
        });
    }

    /* Starts to copy all threads' words to shared memory, where they stay. Adjacent threads copy adjacent elements. The
     * copy is a loop, since straight-line code would start all loads at once and lack registers for them. */
    __device__ __forceinline__ void copy_to(float *to) const {
        constexpr unsigned HEIGHT = ROWS * BLOCKS, WIDTH = COLUMNS / RUN * SPAN;
#pragma unroll 4
        for (unsigned i = threadIdx.x; i < HEIGHT * WIDTH; i += VPPS_THREADS) {
            const unsigned row = MATRIX::WORDS == 1 ? i / WIDTH : i % HEIGHT,
                           column = MATRIX::WORDS == 1 ? i % WIDTH : i / HEIGHT;
            const bool there = row < own.end - own.first && column < MATRIX::LENGTH;
            const unsigned place = column % SPAN / RUN;
            vpps_copy_word(to +
                               ((row / BLOCKS * (COLUMNS / RUN) + column / SPAN) * VPPS_THREADS + place / LANES * 32 +
                                row % BLOCKS * LANES + place % LANES) *
                                   RUN +
                               column % RUN,
                           from + (there ? word_of(row, column) : 0), there);
        }
    }

  private:
    /* LANES: lanes of a warp that load one row; SPAN: elements of the row that such lanes of all warps load at once */
    static constexpr unsigned LANES = 32 / BLOCKS, SPAN = VPPS_THREADS / BLOCKS * RUN;

    static __device__ __forceinline__ unsigned word_of(unsigned row, unsigned column) {
        return row * MATRIX::ROW_WORDS + column * MATRIX::WORDS;
    }

    /* Calls body(i, at, there, column) for each run: RUN adjacent elements of a row that the thread loads. i: number
     * of the first among the thread's words; at: its address; column: its column. After the row's end the last
     * element repeats, to be multiplied with zeros. there: false if all is padding; `at` is then any valid address. */
    template <class BODY> __device__ __forceinline__ void each_run(const BODY &body) const {
#pragma unroll
        for (unsigned i = 0; i < ROWS * COLUMNS; i += RUN) {
            const unsigned round = i % COLUMNS / RUN, row = VPPS_LANE / LANES + i / COLUMNS * BLOCKS,
                           column = vpps_column<RUN, SPAN>(threadIdx.x, round);
            const bool there =
                row < own.end - own.first && ((round + 1) * SPAN <= MATRIX::LENGTH || column < MATRIX::LENGTH);
            body(i, from + (there ? word_of(row, column) : 0), there, column);
        }
    }
};

/* Moves WORDS words of the thread from shared memory, to which stage() has copied them, to registers from number AT on. */
template <unsigned AT, unsigned WORDS>
__device__ __forceinline__ void vpps_take_staged(float (&w)[VPPS_WEIGHTS + 1], const float *staged) {
#pragma unroll
    for (unsigned i = 0; i < WORDS; i++) w[AT + i] = staged[i * VPPS_THREADS + threadIdx.x];
}

/* ---------------------------------------------------------------- in bf16 */
#if VPPS_PARTS

/* A fragment is eight rows of weights, of LENGTH elements each, an operand of the instruction mma. A warp multiplies STEPS times 16 columns
 * of it. Step number `step` loads 16 columns of FROM, a vpps_fragment_rows, and stores them in bf16 as words of TO, a vpps_fragment. */
template <class FROM, class TO, unsigned LENGTH, unsigned STEPS> struct vpps_fragment_load {
    static __device__ __forceinline__ vpps_quad load(unsigned step, const vpps_weights &weights,
                                                     const vpps_weight_row *rows) {
        constexpr bool WHOLE = STEPS * 16 * VPPS_WARPS <= LENGTH;
        return FROM::template load<WHOLE, LENGTH>((VPPS_WARP * STEPS + step) * 16 + VPPS_LANE % 4 * 4, weights, rows);
    }
    static __device__ __forceinline__ void store(vpps_quad q, unsigned step, const vpps_weights &weights) {
        unsigned words[VPPS_STEP_WORDS];
        vpps_split_weights(words, q);
        TO::store(words, step, weights);
    }

    /* Copies this warp's part of eight rows of weights to scratch memory, 16 columns a step, AT_ONCE steps at once. */
    static __device__ __forceinline__ void run(const vpps_weights &weights, const vpps_weight_row *rows) {
        enum { AT_ONCE = 8 };
#pragma unroll 1
        for (unsigned step = 0; step < STEPS; step += AT_ONCE) {
            vpps_quad q[AT_ONCE];
#pragma unroll
            for (unsigned i = 0; i < AT_ONCE; i++)
                if (STEPS % AT_ONCE == 0 || step + i < STEPS) q[i] = load(step + i, weights, rows);
#pragma unroll
            for (unsigned i = 0; i < AT_ONCE; i++)
                if (STEPS % AT_ONCE == 0 || step + i < STEPS) store(q[i], step + i, weights);
        }
    }
};

/* Runs step number STEP of LOAD, a vpps_fragment_load: copies 16 columns of weights. */
template <class LOAD, unsigned STEP> struct vpps_fragment_step {
    static __device__ __forceinline__ vpps_quad load(const vpps_weights &weights, const vpps_weight_row *rows) {
        return LOAD::load(STEP, weights, rows);
    }
    static __device__ __forceinline__ void store(vpps_quad q, const vpps_weights &weights) {
        LOAD::store(q, STEP, weights);
    }
};

/* Copies weights to registers or shared memory; each type of STEPS copies 8 rows x 16 columns. All loads come first. */
template <class... STEPS>
__device__ __forceinline__ void vpps_load_fragments(const vpps_weights &weights, const vpps_weight_row *rows) {
    const vpps_quad q[] = {STEPS::load(weights, rows)...};
    unsigned i = 0;
    (STEPS::store(q[i++], weights), ...);
}
#endif

/* A bias vector (to which products are added) of HEIGHT elements, at word FROM of the memory pool. The CTAs of a group
 * divide the elements, and each loads its own to shared memory, from word AT on. */
template <unsigned HEIGHT, unsigned AT, unsigned FROM> struct vpps_resident_vector {
    /* If word i of shared memory is for an element of this vector, sets `from` to its place in the memory pool. */
    static __device__ __forceinline__ void find(unsigned &from, unsigned i, unsigned member) {
        const vpps_rows own = vpps_rows_of(HEIGHT, VPPS_GROUP, member);
        if (i - AT < own.end - own.first) from = FROM + own.first + (i - AT);
    }
};

/* Loads the elements of bias vectors (VECTORS) that this CTA owns to the first WORDS words of its shared memory. */
template <unsigned WORDS, class... VECTORS>
__device__ __forceinline__ void vpps_load_vectors(const vpps_arguments &a, float *shared, unsigned member) {
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < WORDS; i += VPPS_THREADS) {
        unsigned from = VPPS_NONE;
        (VECTORS::find(from, i, member), ...);
        shared[i] = from == VPPS_NONE ? 0.0f : ((const float *)a.pool)[from];
    }
}
