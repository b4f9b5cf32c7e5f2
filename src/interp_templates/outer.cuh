/* outer.cuh - gradients of parameters. The gradient of a matrix is the sum of outer products dy x^T over a cell's
 * vertices, of which a CTA computes some rows and columns. The gradient of a vector, or of a matrix that cells read as
 * a value, is a sum of dy. A task names some vertices of a cell; consecutive tasks of one cell form one sum. */

/* Returns how many consecutive tasks, from t on, are of kind `kind` and have no barrier between them. */
__device__ __forceinline__ unsigned vpps_tasks_of_sum(const vpps_task *t, unsigned kind) {
    unsigned n = 1;
#pragma unroll 1
    while ((t[n].kind == kind) & (t[n].wait == VPPS_NO_BARRIER) & (t[n - 1].signal == VPPS_NO_BARRIER)) n++;
    return n;
}

/* The tasks whose gradients dy x^T form one sum. Each cell has a struct derived from this one; its task(i) tells where task i's vectors lie. */
struct vpps_sum {
    const vpps_arguments &a;
    float *staged; /* shared memory for copies of vectors */
    const vpps_task *tasks;
    unsigned n, vp;
};

/* Where a task's values lie in the pool (the batch's memory). Elements [0] are for the task's vertices, [d] for the nodes (members) that
 * their list input d - 1 reads; vertices and nodes are numbered within a block of vertices. first: the task's first number; n: how many it
 * has; kept: where the values lie that the vertex or node with number 0 keeps for backward; arrays: places of inputs. */
template <unsigned AXES, unsigned ARRAYS> struct vpps_sum_task {
    float *pool;
    unsigned first[AXES], n[AXES], kept[AXES];
    vpps_array arrays[ARRAYS + 1];
};

/* Where a value's vectors lie in the pool (device memory): COLS vectors of ROWS elements for each item (vertex or list
 * member). ARRAY: which of the task's arrays has their offsets; VPPS_NONE: they are among the STRIDE words that an item
 * keeps for backward (STRIDE 0: all items share a vector). AT_QUADS: they begin and end at multiples of four words.
 * AS_PARTS: they are in bf16. item() and vector() leave out WORD, so that it becomes part of the load instruction. */
template <unsigned VALUE_AXIS, unsigned ROWS, unsigned COLS, bool AT_QUADS, bool AS_PARTS, unsigned ARRAY,
          unsigned STRIDE, unsigned WORD>
struct vpps_vectors {
    static constexpr unsigned AXIS = VALUE_AXIS, LENGTH = ROWS, COLUMNS = COLS, OFFSET = WORD;
    static constexpr bool QUADS = AT_QUADS, IN_PARTS = AS_PARTS, LISTED = ARRAY != VPPS_NONE;

    template <class TASK> static __device__ __forceinline__ unsigned count(const TASK &t) {
        return t.n[AXIS] * COLUMNS;
    }
    template <class TASK> static __device__ __forceinline__ unsigned item(const TASK &t, unsigned i) {
        if constexpr (ARRAY != VPPS_NONE) return t.arrays[ARRAY][t.first[AXIS] + i];
        return STRIDE ? t.kept[AXIS] + (t.first[AXIS] + i) * STRIDE : 0;
    }
    template <class TASK> static __device__ __forceinline__ unsigned vector(const TASK &t, unsigned k) {
        return item(t, k / COLUMNS) + k % COLUMNS * LENGTH;
    }
    static __device__ __forceinline__ float element(float kept) { return IN_PARTS ? vpps_whole_of(kept) : kept; }
};

/* Returns whether parameter number `param` already has a gradient, to which sums must be added; true for VPPS_NONE. */
__device__ __forceinline__ bool vpps_is_begun(unsigned param) { return param == VPPS_NONE || vpps_touched[param]; }

/* Notes that a parameter has a gradient. Several threads may do so at once, with the same value. */
VPPS_SIMT_UNWATCHED __device__ __forceinline__ void vpps_begin_gradient(unsigned param) { vpps_touched[param] = 1; }

/* Notes that parameters number PARAMS have gradients, if any task whose products dy x^T are summed has vertices. */
template <unsigned... PARAMS> __device__ __forceinline__ void vpps_begin_gradients(const vpps_sum &sum) {
    VPPS_READ_PLACE;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < sum.n; i += VPPS_THREADS)
        if (sum.tasks[i].operands[2]) (vpps_begin_gradient(PARAMS), ...);
}

/* ---------------------------------------------------------------- of vectors, and of matrices that are values */

/* The gradient of a vector parameter, at word GRADIENT_AT of the memory pool: the sum of the values FIRST to LAST - 1
 * of those given to vpps_sum_vectors. If parameter number ADDED_TO already has a gradient, the sum is added to it. */
template <unsigned GRADIENT_AT, unsigned ADDED_TO, unsigned FIRST, unsigned LAST> struct vpps_vector_sum {
    static constexpr unsigned GRADIENT = GRADIENT_AT, PARAM = ADDED_TO, BEGIN = FIRST, END = LAST;
};

template <unsigned... CONSTANTS> struct vpps_constants {
    static __device__ __forceinline__ unsigned get(unsigned i) {
        unsigned k = 0, got = 0;
        ((got = i == k++ ? CONSTANTS : got), ...);
        return got;
    }
};

/* Computes gradients of vectors (SUMS), which are sums of values dy over all vertices. All values dy have equal layouts; value i lies
 * WORDS::get(i) words after DY. A warp computes one row of one gradient, and its lanes share the vertices. MOST: most rows of a
 * CTA. BEFORE: number of rows that other calls compute, on preceding warps. ADDS: some sums are added to those of other calls. */
template <class DY, unsigned MOST, unsigned BEFORE, bool ADDS, class WORDS, class... SUMS, class SUM>
__device__ __forceinline__ void vpps_sum_vectors(const SUM &sum) {
    VPPS_READ_PLACE;
    const vpps_rows own = vpps_rows_of(DY::LENGTH, VPPS_VPS, sum.vp);
    if (ADDS) __syncthreads();
#pragma unroll 1
    for (unsigned at = (VPPS_WARP + VPPS_WARPS - BEFORE % VPPS_WARPS) % VPPS_WARPS; at < sizeof...(SUMS) * MOST;
         at += VPPS_WARPS) {
        const unsigned which = at / MOST, row = own.first + at % MOST;
        if (row >= own.end) continue;
        const unsigned end = vpps_constants<SUMS::END...>::get(which);
        const bool begun = vpps_is_begun(vpps_constants<SUMS::PARAM...>::get(which));
        float *const to = (float *)sum.a.pool + vpps_constants<SUMS::GRADIENT...>::get(which) + row;
        const float before = VPPS_LANE == 0 && begun ? *to : 0.0f;
        vpps_long_sum total = {0.0f, 0.0f};
#pragma unroll 1
        for (unsigned j = vpps_constants<SUMS::BEGIN...>::get(which); j < end; j++) {
            const unsigned offset = WORDS::get(j);
#pragma unroll 1
            for (unsigned i = 0; i < sum.n; i++) {
                const auto t = sum.task(i);
                total.add(vpps_add_up<4, true>(0.0f, VPPS_LANE, DY::count(t), 32, [&](unsigned k) {
                    return DY::element(t.pool[DY::vector(t, k) + DY::OFFSET + offset + row]);
                }));
            }
        }
        const float whole = vpps_warp_sum(total.value());
        if (VPPS_LANE == 0) *to = before + whole;
    }
}

/* Computes the gradient, at word MATRIX of all gradients, of a matrix that a cell reads as a value, not as W in W x:
 * the sum, over vertices or nodes of their lists, of the value's gradient DY. Adjacent threads compute one column. */
template <class DY, unsigned MATRIX, unsigned PARAM, class SUM>
__device__ __forceinline__ void vpps_sum_values(const SUM &sum) {
    VPPS_READ_PLACE;
    const vpps_rows own = vpps_matrix_rows(DY::LENGTH, sum.vp),
                    columns = vpps_matrix_columns(DY::LENGTH, DY::COLUMNS, sum.vp);
    const unsigned height = own.end - own.first;
#pragma unroll 1
    for (unsigned e = threadIdx.x; e < height * (columns.end - columns.first); e += VPPS_THREADS) {
        const unsigned row = own.first + e % height, column = columns.first + e / height;
        float *const to = (float *)sum.a.gradients + MATRIX + row * DY::COLUMNS + column;
        float total = vpps_is_begun(PARAM) ? *to : 0.0f;
#pragma unroll 1
        for (unsigned i = 0; i < sum.n; i++) {
            const auto t = sum.task(i);
            total = vpps_add_up<1>(total, 0, t.n[DY::AXIS], 1, [&](unsigned k) {
                return DY::element(t.pool[DY::item(t, k) + DY::OFFSET + column * DY::LENGTH + row]);
            });
        }
        *to = total;
    }
    __syncthreads();
}

/* ---------------------------------------------------------------- long sums of products */

/* A sum of products is added to the total after this number of vectors. */
enum { VPPS_LONG_SUM = 4096 };

/* The position in a sum over the vectors of several tasks: the next vector is number `from` of task number `task`. `done`: number
 * of vectors in the current sum, which is not yet added to the total. */
struct vpps_runs {
    unsigned task, from, done;

    /* Takes up to `most` of the vectors of task t that are not summed yet: sets `first` to the number of the first, and returns the number
     * after the last. COLUMNS: number of vectors of each vertex (AXIS 0) or of each node that list input AXIS - 1 reads. */
    template <unsigned AXIS, unsigned COLUMNS, class TASK>
    __device__ __forceinline__ unsigned take(const TASK &t, unsigned most, unsigned &first) {
        const unsigned n = t.n[AXIS] * COLUMNS, end = n - from < most ? n : from + most;
        first = from;
        from = end == n ? 0 : end;
        task += end == n;
        return end;
    }

    /* Counts n more vectors. Returns whether VPPS_LONG_SUM vectors are summed, so that their sum must be added to the total. */
    __device__ __forceinline__ bool ends(unsigned n) {
        done += n;
        if (done < VPPS_LONG_SUM) return false;
        done = 0;
        return true;
    }

    /* Calls body(task, first, end) for the next ranges of vectors: VPPS_LONG_SUM or more in all, or the rest. */
    template <unsigned AXIS, unsigned COLUMNS, class SUM, class BODY>
    __device__ __forceinline__ void add_run(const SUM &sum, const BODY &body) {
#pragma unroll 1
        for (bool more = true; more;) {
            const auto t = sum.task(task);
            unsigned first;
            const unsigned end = take<AXIS, COLUMNS>(t, VPPS_LONG_SUM, first);
            body(t, first, end);
            more = !ends(end - first) && task < sum.n;
        }
    }
};

/* ---------------------------------------------------------------- of one matrix, where the faster ways below do not work
 *
 * A thread has some rows and columns at a time. The gradient begins at word MATRIX. */

/* Adds to q the products dy x^T of vectors k to k + AT_ONCE - 1 of task t. All vectors dy and x are loaded before the first is used. */
template <unsigned AT_ONCE, class DY, class X, int ROWS, int COLUMNS, class TASK>
__device__ __forceinline__ void vpps_add_block(float (&q)[ROWS][COLUMNS], const TASK &t, unsigned k, unsigned row,
                                               unsigned rows, unsigned column, unsigned columns) {
    float x[AT_ONCE][COLUMNS], d[AT_ONCE][ROWS];
#pragma unroll
    for (int v = 0; v < AT_ONCE; v++) {
        const float *const from = t.pool + (X::vector(t, k + v) + X::OFFSET + column);
        const float *const rows_of = t.pool + (DY::vector(t, k + v) + DY::OFFSET + row);
#pragma unroll
        for (int j = 0; j < COLUMNS; j++) x[v][j] = j * VPPS_THREADS < columns ? from[j * VPPS_THREADS] : 0.0f;
#pragma unroll
        for (int r = 0; r < ROWS; r++) d[v][r] = r < rows ? rows_of[r] : 0.0f;
    }
#pragma unroll
    for (int v = 0; v < AT_ONCE; v++)
#pragma unroll
        for (int e = 0; e < ROWS * COLUMNS; e++)
            q[e / COLUMNS][e % COLUMNS] =
                vpps_multiply_add(d[v][e / COLUMNS], x[v][e % COLUMNS], q[e / COLUMNS][e % COLUMNS]);
}

template <class DY, class X, unsigned MATRIX, unsigned PARAM, class SUM>
__device__ __forceinline__ void vpps_sum_blocks(const SUM &sum) {
    enum {
        ROWS = 8,
        NEEDED = (X::LENGTH + VPPS_THREADS - 1) / VPPS_THREADS,
        COLUMNS = NEEDED < 4 ? NEEDED : 4,
        AT_ONCE = 4
    };
    VPPS_READ_PLACE;
    const vpps_rows own = vpps_matrix_rows(DY::LENGTH, sum.vp),
                    own_columns = vpps_matrix_columns(DY::LENGTH, X::LENGTH, sum.vp);
#pragma unroll 1
    for (unsigned row = own.first; row < own.end; row += ROWS) {
#pragma unroll 1
        for (unsigned column = own_columns.first + threadIdx.x; column < own_columns.end;
             column += COLUMNS * VPPS_THREADS) {
            const unsigned rows = own.end - row, columns = own_columns.end - column;
            float *const to = (float *)sum.a.gradients + MATRIX + row * X::LENGTH + column;
            bool begun = vpps_is_begun(PARAM);
            vpps_runs runs = {0, 0, 0};
#pragma unroll 1
            do {
                float q[ROWS][COLUMNS];
#pragma unroll
                for (int e = 0; e < ROWS * COLUMNS; e++) q[e / COLUMNS][e % COLUMNS] = 0.0f;
                runs.add_run<X::AXIS, X::COLUMNS>(sum, [&](const decltype(sum.task(0)) &t, unsigned k, unsigned end) {
#pragma unroll 1
                    for (; k + AT_ONCE <= end; k += AT_ONCE)
                        vpps_add_block<AT_ONCE, DY, X>(q, t, k, row, rows, column, columns);
#pragma unroll 1
                    for (; k < end; k++) vpps_add_block<1, DY, X>(q, t, k, row, rows, column, columns);
                });
#pragma unroll
                for (unsigned e = 0; e < ROWS * COLUMNS; e++) {
                    const unsigned r = e / COLUMNS, j = e % COLUMNS, at = r * X::LENGTH + j * VPPS_THREADS;
                    if (r < rows && j * VPPS_THREADS < columns) to[at] = begun ? to[at] + q[r][j] : q[r][j];
                }
                begun = true;
            } while (runs.task < sum.n);
        }
    }
}

/* ---------------------------------------------------------------- of matrices, in fp32
 *
 * codegen/generate_outer_tiles.c says what units of work and slots are. */

/* A unit of work: columns (elements of a vector x), four for each of a few adjacent lanes, times some rows of vectors
 * dy. A vertex's x and dy are copied to an area of shared memory; x_at, d_at: words of the area where the unit's
 * columns and rows begin. length: elements of x. before: number of this CTA's columns that precede the unit's. */
struct vpps_unit {
    unsigned x_at, d_at, length, before;
};

/* A row of vectors dy that a unit of work multiplies with columns of x. matrix: word where the matrix's gradient
 * begins; row: which of this CTA's rows; height: the matrix's rows (0: padding); param: number of the matrix. */
struct vpps_unit_slot {
    unsigned matrix, row, height, param;
};

/* Copies elements number `column` to `column` + 3 of a row of `columns` elements. QUADS: rows begin and end at a multiple of four words. */
template <bool QUADS>
__device__ __forceinline__ void vpps_copy_columns(float *to, const float *from, unsigned column, unsigned columns) {
    if (QUADS) {
        if (column < columns) vpps_copy_quad(to + column, from + column);
    } else {
#pragma unroll
        for (unsigned i = column; i < column + 4; i++)
            if (i < columns) vpps_copy_word(to + i, from + i, true);
    }
}

/* Adds to q the products of four columns of x with SLOTS rows of dy, for some of the vectors number `first` to n - 1 in shared memory,
 * where each takes ROW words. Of each STEP vectors the thread adds the first AT_ONCE; other parts of the CTA add the rest. */
template <unsigned SLOTS, unsigned ROW, unsigned AT_ONCE, unsigned STEP>
VPPS_PART void vpps_add_outers(const float *vectors, unsigned x_at, unsigned d_at, unsigned first, unsigned n,
                               float (&q)[4 * SLOTS]) {
    const float *const x = vectors + x_at, *const d = vectors + d_at;
#pragma unroll 1
    for (; first < n; first += STEP) {
#pragma unroll
        for (unsigned k = 0; k < AT_ONCE; k++) {
            const vpps_quad columns = vpps_at<const vpps_quad>(x + (first + k) * ROW);
            float slots[(SLOTS + 3) / 4 * 4];
#pragma unroll
            for (unsigned s = 0; s < SLOTS; s += 4)
                *(vpps_quad *)(slots + s) = vpps_at<const vpps_quad>(d + (first + k) * ROW + s);
#pragma unroll
            for (unsigned s = 0; s < SLOTS; s++) {
                q[4 * s] += slots[s] * columns.x;
                q[4 * s + 1] += slots[s] * columns.y;
                q[4 * s + 2] += slots[s] * columns.z;
                q[4 * s + 3] += slots[s] * columns.w;
            }
        }
    }
}

/* Stores q, the thread's sums for four columns (from `column` on) of SLOTS rows of gradients, or adds them. LANES
 * adjacent lanes have the same rows; lane s passes where row s begins (to_row) and whether to add. */
template <unsigned SLOTS, unsigned LANES, bool QUADS>
VPPS_PART void vpps_store_slots(float *gradients, unsigned to_row, bool add, unsigned column, unsigned columns,
                                float (&q)[4 * SLOTS]) {
    const unsigned first = VPPS_LANE / LANES * LANES, adds = __ballot_sync(0xffffffffu, add) >> first;
    unsigned at[SLOTS];
#pragma unroll
    for (unsigned s = 0; s < SLOTS; s++) at[s] = __shfl_sync(0xffffffffu, to_row, first + s);
#pragma unroll
    for (unsigned s = 0; s < SLOTS; s++) { /* loads the current values of all rows of the gradients at once */
        if (at[s] == VPPS_NONE || !(adds >> s & 1)) continue;
        const float *const row = gradients + at[s] + column;
#pragma unroll
        for (unsigned i = 0; i < 4; i++)
            if (column + i < columns) q[4 * s + i] += row[i];
    }
#pragma unroll
    for (unsigned s = 0; s < SLOTS; s++) {
        if (at[s] == VPPS_NONE || column >= columns) continue;
        float *const row = gradients + at[s] + column;
        if (QUADS) {
            vpps_at<vpps_quad>(row) = vpps_quad{q[4 * s], q[4 * s + 1], q[4 * s + 2], q[4 * s + 3]};
        } else {
#pragma unroll
            for (unsigned i = 0; i < 4; i++)
                if (column + i < columns) row[i] = q[4 * s + i];
        }
    }
}

/* Shared memory `to` receives copies of `there` vectors of a task, from vector number `from` on. */
struct vpps_staging {
    float *to;
    unsigned from, there, vp, thread;
};

/* Copies vectors X to shared memory: of each, the elements that this CTA owns, without the first BEFORE. LANES lanes, four elements each,
 * copy the vector of one vertex (or node that a list input reads), which has WORDS words of shared memory, to word AT of these. */
template <class X, unsigned BEFORE, unsigned AT> struct vpps_staged_columns {
    template <unsigned LANES, unsigned WORDS, class TASK>
    static __device__ __forceinline__ void copy(const vpps_staging &s, const TASK &t) {
        /* AT_ONCE: number of vectors whose addresses a thread reads before it copies the first of them */
        constexpr unsigned STEP = VPPS_THREADS / LANES, AT_ONCE = X::LISTED ? 4 : 1;
        const vpps_rows own = vpps_matrix_columns(VPPS_NONE, X::LENGTH, s.vp);
        const unsigned columns = own.end - own.first, lane = s.thread % LANES;
#pragma unroll 1
        for (unsigned k = s.thread / LANES; k < s.there; k += AT_ONCE * STEP) {
            unsigned from[AT_ONCE];
#pragma unroll
            for (unsigned i = 0; i < AT_ONCE; i++)
                from[i] = X::vector(t, vpps_least(s.from + k + i * STEP, X::count(t) - 1));
#pragma unroll
            for (unsigned i = 0; i < AT_ONCE && k + i * STEP < s.there; i++)
                vpps_copy_columns<X::QUADS>(s.to + (k + i * STEP) * WORDS + AT,
                                            t.pool + (from[i] + X::OFFSET + own.first + BEFORE), lane * 4,
                                            columns - vpps_least(BEFORE, columns));
        }
    }
};

/* Copies rows BASE to BASE + ROWS - 1 of those rows of vectors DY that this CTA owns to shared memory (missing ones as
 * zeros): row r to word AT + s / SLOTS * (SLOTS rounded up to 4) + s % SLOTS, with s = FIRST + r, of a vector's area. A
 * lane copies one row; WARPS warps from WARP on divide the vectors. If ROWS > 32, each thread copies some rows. */
template <class DY, unsigned ROWS, unsigned AT, unsigned FIRST, unsigned SLOTS, unsigned WARP, unsigned WARPS,
          unsigned BASE>
struct vpps_staged_rows {
    template <unsigned LANES, unsigned WORDS, class TASK>
    static __device__ __forceinline__ void copy(const vpps_staging &s, const TASK &t) {
        constexpr unsigned VECTORS = ROWS > 32 ? 1 : 32 / ROWS; /* VECTORS: how many vectors a warp copies at once */
        const unsigned warp = s.thread / 32, lane = s.thread % 32;
        if constexpr (ROWS > 32)
            vpps_by_turns(s.thread, ROWS, VPPS_THREADS, [&](unsigned row) { copy<WORDS>(s, t, BASE + row, 0, 1); });
        else if (warp - WARP < WARPS && lane < VECTORS * ROWS)
            copy<WORDS>(s, t, BASE + lane % ROWS, (warp - WARP) * VECTORS + lane / ROWS, WARPS * VECTORS);
    }

  private:
    template <unsigned WORDS, class TASK>
    static __device__ __forceinline__ void copy(const vpps_staging &s, const TASK &t, unsigned row, unsigned k,
                                                unsigned step) {
        const vpps_rows own = vpps_matrix_rows(DY::LENGTH, s.vp);
        const unsigned slot = FIRST + row, n = DY::count(t);
        float *const slots = s.to + AT + slot / SLOTS * ((SLOTS + 3) / 4 * 4) + slot % SLOTS;
#pragma unroll 1
        for (; k < s.there; k += step)
            vpps_copy_word(slots + k * WORDS,
                           t.pool + (DY::vector(t, vpps_least(s.from + k, n - 1)) + DY::OFFSET + own.first + row),
                           row < own.end - own.first && s.from + k < n);
    }
};

/* Computes gradients dy x^T by units of work: LANES lanes, with four columns of x each, times SLOTS rows of dy. STAGED:
 * types that copy VECTORS vertices' vectors to shared memory (WORDS words each) while preceding ones are multiplied,
 * AT_ONCE vertices at once. WITH_VECTORS: also computes vectors' gradients. PARTS groups of threads divide vertices. */
template <unsigned SLOTS, unsigned LANES, unsigned WORDS, unsigned VECTORS, unsigned AT_ONCE, unsigned PARTS,
          bool QUADS, bool WITH_VECTORS, unsigned AXIS, class... STAGED>
struct vpps_unit_sums {
    /* Sums dy x^T for UNITS units: for each, 4 * LANES columns (of x) times SLOTS rows (of dy). All threads call it. */
    template <unsigned UNITS, class SUM>
    static __device__ __forceinline__ void run(const SUM &sum, const vpps_unit *units, const vpps_unit_slot *slots) {
        const unsigned thread = vpps_thread(), number = thread / LANES, lane = thread % LANES;
        const vpps_unit &unit = units[number % UNITS];
        const unsigned part = number / UNITS, x_at = unit.x_at + lane * 4, d_at = unit.d_at;
        /* columns: how many this CTA owns, from the unit's first on; to_row: where, among all gradients, the unit's row `lane` begins there */
        unsigned columns = 0, to_row = VPPS_NONE;
        bool add = false;
        if (number < UNITS) {
            const vpps_rows l = vpps_matrix_columns(VPPS_NONE, unit.length, sum.vp);
            columns = l.end - l.first;
            columns -= vpps_least(columns, unit.before);
            if (lane < SLOTS) {
                const vpps_unit_slot &s = slots[number * SLOTS + lane];
                const vpps_rows own = vpps_matrix_rows(s.height, sum.vp);
                if (s.row < own.end - own.first) {
                    to_row = s.matrix + (own.first + s.row) * unit.length + l.first + unit.before;
                    add = vpps_is_begun(s.param);
                }
            }
        }
        float q[4 * SLOTS];
#pragma unroll
        for (unsigned k = 0; k < 4 * SLOTS; k++) q[k] = 0.0f;
        vpps_runs runs = {0, 0, 0};
        unsigned ready = 0;
        bool first = true;
#pragma unroll 1
        for (unsigned turn = 0;; turn ^= 1) {
            vpps_wait_for_copies();
            __syncthreads();
            const bool more = runs.task < sum.n;
            unsigned coming = 0;
            if (more) {
                VPPS_READ_PLACE;
                const auto t = sum.task(runs.task);
                unsigned from;
                coming = runs.take<AXIS, 1>(t, VECTORS, from) - from;
                const unsigned there = (coming + AT_ONCE - 1) / AT_ONCE * AT_ONCE;
                const vpps_staging to = {sum.staged + turn * (VECTORS * WORDS), from, there, sum.vp, threadIdx.x};
                (STAGED::template copy<LANES, WORDS>(to, t), ...);
            }
            if (WITH_VECTORS && first) sum.vectors();
            first = false;
            if (part < PARTS)
                vpps_add_outers<SLOTS, WORDS, AT_ONCE, AT_ONCE * PARTS>(sum.staged + (turn ^ 1) * (VECTORS * WORDS),
                                                                        x_at, d_at, part * AT_ONCE, ready, q);
            if (runs.ends(ready) || !more) {
                if constexpr (PARTS > 1)
                    add_parts(q, (vpps_quad *)(sum.staged + 2 * VECTORS * WORDS) + thread % (UNITS * LANES),
                              UNITS * LANES, part);
                vpps_store_slots<SLOTS, LANES, QUADS>((float *)sum.a.gradients, to_row, add, lane * 4, columns, q);
                if (!more) break;
                add = true;
#pragma unroll
                for (unsigned k = 0; k < 4 * SLOTS; k++) q[k] = 0.0f;
            }
            ready = coming;
        }
    }

  private:
    /* Adds up the sums of all parts of the CTA: each part, from the last on, passes its sums to the preceding part, and part 0 gets the
     * result. The sums pass through shared memory at `to`, `step` quads apart. */
    static __device__ __forceinline__ void add_parts(float (&q)[4 * SLOTS], vpps_quad *to, unsigned step,
                                                     unsigned part) {
#pragma unroll 1
        for (unsigned giver = PARTS - 1; giver; giver--) {
            if (part == giver) {
#pragma unroll
                for (unsigned s = 0; s < SLOTS; s++)
                    to[s * step] = vpps_quad{q[4 * s], q[4 * s + 1], q[4 * s + 2], q[4 * s + 3]};
            }
            __syncthreads();
            if (part + 1 == giver) {
#pragma unroll
                for (unsigned s = 0; s < SLOTS; s++) {
                    const vpps_quad other = to[s * step];
                    q[4 * s] += other.x, q[4 * s + 1] += other.y, q[4 * s + 2] += other.z, q[4 * s + 3] += other.w;
                }
            }
        }
    }
};

/* ---------------------------------------------------------------- of matrices, in bf16 */
#if VPPS_PARTS

/* Four of a task's n vectors, from number `at` on, of which the lane loads elements. Vector n - 1 stands in for missing vectors after the
 * end. low, high: masks for a word with elements of the first two, and of the last two vectors; they clear missing vectors. */
struct vpps_four_vectors {
    unsigned lane, number[4], low, high;
    __device__ __forceinline__ vpps_four_vectors(unsigned lane, unsigned at, unsigned n)
        : lane(lane), low(vpps_pair_mask(at, n)), high(vpps_pair_mask(at + 2, n)) {
#pragma unroll
        for (unsigned k = 0; k < 4; k++) number[k] = vpps_least(at + k, n - 1);
    }
};

/* Where the gradient of a tile (eight rows) is stored. matrix: word where the matrix's gradient begins; param: the matrix's parameter. If
 * vpps_is_begun(param), sums are added to the gradient in memory, else they overwrite it. */
struct vpps_tile_gradient {
    unsigned matrix, param;
};

/* A tile: eight rows of vectors DY, from 8 NUMBER + skip rows after this CTA's first on (skip: an argument). */
template <class DY, unsigned NUMBER> struct vpps_row_tile {
    using V = DY;

    static __device__ __forceinline__ bool is_there(unsigned vp, unsigned skip) {
        const vpps_rows own = vpps_matrix_rows(DY::LENGTH, vp);
        return own.first + NUMBER * 8 + skip < own.end;
    }

    /* Loads the element in the lane's row of each of four vectors dy. */
    template <class TASK>
    static __device__ __forceinline__ void load(float (&d)[4], const TASK &t, const vpps_four_vectors &v, unsigned vp,
                                                unsigned skip) {
        const unsigned row =
            vpps_least(vpps_matrix_rows(DY::LENGTH, vp).first + v.lane / 4 + NUMBER * 8 + skip, DY::LENGTH - 1);
#pragma unroll
        for (unsigned k = 0; k < 4; k++) d[k] = (t.pool + (DY::vector(t, v.number[k]) + row))[DY::OFFSET];
    }

    /* Stores four columns of two rows of a gradient with LENGTH columns. later: adds them to sums that an earlier call has stored. */
    template <unsigned LENGTH>
    static __device__ __forceinline__ void store(const float (&left)[4], const float (&right)[4], const vpps_sum &sum,
                                                 const vpps_tile_gradient &g, unsigned column, unsigned lane,
                                                 bool later, unsigned skip) {
        const vpps_rows own = vpps_matrix_rows(DY::LENGTH, sum.vp);
        const unsigned row = own.first + NUMBER * 8 + lane % 4 * 2 + skip;
        const bool add = later || vpps_is_begun(g.param);
        float *const to = (float *)sum.a.gradients + g.matrix + row * LENGTH;
#pragma unroll
        for (unsigned r = 0; r < 2; r++)
            if (row + r < own.end)
                vpps_add_gradient<LENGTH % 4 == 0, LENGTH>(to + r * LENGTH, column, add,
                                                           vpps_quad{left[r], left[2 + r], right[r], right[2 + r]});
    }
};

/* A strip: the gradients (sums of dy x^T) of one vector x, described by VALUE, and some tiles (eight rows of dy each).
 * Its columns (elements of x) form SLOTS blocks of 32, which have numbers from FIRST on among all strips' blocks.
 * GRADIENTS: for each tile, where the matrix's gradient begins, and the matrix's parameter (vpps_tile_gradient). */
template <class VALUE, unsigned FIRST, unsigned SLOTS, unsigned... GRADIENTS> struct vpps_strip {
    using X = VALUE;

    /* If block `slot` (32 columns) is in this strip, sets `column` to the block's first column (`first`: the CTA's first). Else false. */
    static __device__ __forceinline__ bool find(unsigned slot, unsigned first, unsigned &column) {
        if (slot < FIRST || slot >= FIRST + SLOTS) return false;
        column = first + (slot - FIRST) * 32;
        return true;
    }
    template <int TILES> static __device__ __forceinline__ void know(vpps_tile_gradient (&tiles)[TILES]) {
        constexpr unsigned all[] = {GRADIENTS...};
#pragma unroll
        for (unsigned k = 0; k < TILES; k++) tiles[k] = vpps_tile_gradient{all[2 * k], all[2 * k + 1]};
    }
    template <class TASK>
    static __device__ __forceinline__ void place(unsigned (&at)[4], const TASK &t, const vpps_four_vectors &v) {
#pragma unroll
        for (unsigned k = 0; k < 4; k++) at[k] = X::vector(t, v.number[k]) + X::OFFSET;
    }
};

/* A list of tiles. A tile: eight rows of the vectors dy of matrices' gradients dy x^T, which mma computes at once. */
template <class TILE, class... OTHERS> struct vpps_row_tiles {
    static constexpr unsigned HEIGHT = TILE::V::LENGTH; /* rows; either all matrices are low (vpps_is_low) or none */
};
/* Strips (gradients dy x^T, each for another x) that have the same rows dy (TILES); one loop computes them all. */
template <class TILES, class STRIP, class... OTHERS> struct vpps_strips_alike;
template <class... TILES, class STRIP, class... OTHERS>
struct vpps_strips_alike<vpps_row_tiles<TILES...>, STRIP, OTHERS...> {
    using X = typename STRIP::X;

    static __device__ __forceinline__ vpps_rows columns(unsigned vp) {
        return vpps_matrix_columns(vpps_row_tiles<TILES...>::HEIGHT, X::LENGTH, vp);
    }
    static __device__ __forceinline__ bool is_there(unsigned vp, unsigned skip) {
        const vpps_rows own = columns(vp);
        return own.first < own.end && (TILES::is_there(vp, skip) || ...);
    }

    /* Adds dy x^T of 16 vertices or list nodes to a warp's sums q: for each tile, its 8 rows of dy times block `slot`, 32 elements of x. */
    template <int SUMS, class TASK>
    static __device__ __forceinline__ void add(float (&q)[SUMS][4], const TASK &t, const vpps_four_vectors &v,
                                               unsigned slot, unsigned vp, unsigned skip) {
        const vpps_rows own = columns(vp);
        unsigned column = VPPS_NONE, at[4] = {0, 0, 0, 0};
        if (STRIP::find(slot, own.first, column)) STRIP::place(at, t, v);
        ((OTHERS::find(slot, own.first, column) ? OTHERS::place(at, t, v) : (void)0), ...);
        if (column >= own.end) return;
        column += v.lane / 4 * 4;
        vpps_quad x[4];
#pragma unroll
        for (unsigned k = 0; k < 4; k++)
            x[k] = vpps_four<X::QUADS, X::LENGTH % 32 == 0, X::LENGTH>(t.pool + (at[k] + column), column);
        float d[sizeof...(TILES)][4];
        unsigned k = 0;
        (TILES::load(d[k++], t, v, vp, skip), ...);
        vpps_words left, right;
        vpps_turn_quads<X::IN_PARTS>(x, left, right);
        k = 0;
        ((vpps_add_factors<TILES::V::IN_PARTS>(q[2 * k], q[2 * k + 1], left, right, d[k], v.low, v.high), k++), ...);
    }

    template <int SUMS>
    static __device__ __forceinline__ void store(const float (&q)[SUMS][4], const vpps_sum &sum, unsigned slot,
                                                 bool later, unsigned skip) {
        VPPS_READ_PLACE;
        unsigned column = VPPS_NONE;
        vpps_tile_gradient gradients[sizeof...(TILES)];
        STRIP::know(gradients);
        const vpps_rows own = columns(sum.vp);
        STRIP::find(slot, own.first, column);
        ((OTHERS::find(slot, own.first, column) ? OTHERS::know(gradients) : (void)0), ...);
        if (column >= own.end) return;
        column += VPPS_LANE / 4 * 4;
        unsigned k = 0;
        ((TILES::template store<X::LENGTH>(q[2 * k], q[2 * k + 1], sum, gradients[k], column, VPPS_LANE, later, skip),
          k++),
         ...);
    }
};

/* Computes gradients dy x^T by strips. A strip is a vector x times TILES tiles (eight rows of dy each). Its blocks of 32 elements of x are
 * numbered: FIRST to FIRST + SLOTS - 1 are computed here, each by PARTS warps, which divide the vertices (AXIS > 0: the nodes that list
 * input AXIS - 1 reads). ALIKE: types vpps_strips_alike, strips with the same rows of dy. */
template <unsigned TILES, unsigned FIRST, unsigned SLOTS, unsigned PARTS, unsigned AXIS, class... ALIKE>
struct vpps_strip_sums {
    /* Computes the gradients of all tiles (eight rows), or of those `skip` rows further down. All threads call it. */
    template <class SUM> static __device__ __forceinline__ void run(const SUM &sum, unsigned skip = 0) {
        VPPS_READ_PLACE;
        if (!(ALIKE::is_there(sum.vp, skip) || ...)) return;
        const unsigned part = VPPS_WARP / SLOTS, slot = part < PARTS ? VPPS_WARP % SLOTS + FIRST : VPPS_NONE;
        bool later = false;
        vpps_runs runs = {0, 0, 0};
#pragma unroll 1
        do {
            float q[2 * TILES][4];
#pragma unroll
            for (unsigned k = 0; k < 8 * TILES; k++) q[k / 4][k % 4] = 0.0f;
            runs.add_run<AXIS, 1>(sum, [&](const decltype(sum.task(0)) &t, unsigned k, unsigned end) {
#pragma unroll 1
                for (k += part * 16; k < end; k += 16 * PARTS) {
                    const vpps_four_vectors v(VPPS_LANE, k + VPPS_LANE % 4 * 4, end);
                    (ALIKE::add(q, t, v, slot, sum.vp, skip), ...);
                }
            });
            if constexpr (PARTS > 1) add_parts(q, (vpps_quad *)sum.staged, part);
            if (part == 0) (ALIKE::store(q, sum, slot, later, skip), ...);
            later = true;
            __syncthreads();
        } while (runs.task < sum.n);
    }

  private:
    /* PARTS warps sum products of one block (32 columns), each for some of the vectors. Adds up their sums, through shared memory. */
    static __device__ __forceinline__ void add_parts(float (&q)[2 * TILES][4], vpps_quad *staged, unsigned part) {
        constexpr unsigned QUADS = 2 * TILES * 32;
        VPPS_READ_PLACE;
        vpps_quad *const own = staged + VPPS_WARP % SLOTS * QUADS + VPPS_LANE;
        if (part && part < PARTS) {
#pragma unroll
            for (unsigned k = 0; k < 2 * TILES; k++)
                own[(part - 1) * (SLOTS * QUADS) + k * 32] = vpps_quad{q[k][0], q[k][1], q[k][2], q[k][3]};
        }
        __syncthreads();
#pragma unroll 1
        for (unsigned other = 0; other < PARTS - 1 && !part; other++) {
#pragma unroll
            for (unsigned k = 0; k < 2 * TILES; k++) {
                const vpps_quad sums = own[other * (SLOTS * QUADS) + k * 32];
                q[k][0] += sums.x, q[k][1] += sums.y, q[k][2] += sums.z, q[k][3] += sums.w;
            }
        }
    }
};
#endif
