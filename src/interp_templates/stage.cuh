/* stage.cuh - what the code of a stage (a part of a cell without a barrier between CTAs inside) calls: where values
 * lie; loops over tiles of vertices, over items (vertices or list members), elements and lists; sums of gradients. */

#define VPPS_STAGE_PARAMETERS                                                                                          \
    const vpps_arguments &a, float(&w)[VPPS_WEIGHTS + 1], float *shared, const vpps_kernel_task &t

/* ---------------------------------------------------------------- arrays and values
 *
 * The arrays of a block (script/task.h) follow each other: VPPS_VIEW begins with the one after its vertices, and each VPPS_ARRAY
 * names the next one. */
#define VPPS_VIEW(block)                                                                                               \
    const unsigned *const script = (const unsigned *)a.script;                                                         \
    float *const pool = (float *)a.pool;                                                                               \
    const vpps_block *const b = (const vpps_block *)a.blocks + block;                                                  \
    unsigned array = b->arrays + b->n;                                                                                 \
    (void)script, (void)pool
#define VPPS_ARRAY(name, words)                                                                                        \
    const vpps_array name = {script, array, 0};                                                                        \
    array += words;                                                                                                    \
    (void)name, (void)array
/* Declares the array for an input that reads a list's members. The batch's program has the address of an array with a
 * word for each member, and a shift: a member's value lies at word array[member] + shift of device memory. */
#define VPPS_MEMBERS_ARRAY(name)                                                                                       \
    const vpps_array name = {script, script[array], script[array + 1]};                                                \
    array += 2;                                                                                                        \
    (void)name, (void)array
/* Declares arrays for the gradient of an output, a sum of terms from the output's readers. starts[v]: vertex v's first index in `lists`, the terms'
 * offsets. factors[v]: for terms scalar * vector, vertex v's first index in the list of pairs of offsets (scalar, vector) after `factors`. */
#define VPPS_GRADIENT_ARRAYS(starts, lists, factors)                                                                   \
    const vpps_array starts = {script, array, 0}, lists = {script, array + b->n + 1, 0};                               \
    const vpps_array factors = {script, lists.at + starts[b->n], 0};                                                   \
    array = factors.at + (VPPS_PAIRS && vpps_header.pairs ? b->n + 1 + 2 * factors[b->n] : 0u);                        \
    (void)factors, (void)array

/* Returns an element of a value in a slot (a buffer of the tile). WIDTH: elements per item in the buffer. */
template <unsigned WIDTH> __device__ __forceinline__ float &vpps_slot(float *slot, unsigned item, unsigned element) {
    return slot[item * WIDTH + element];
}

/* Returns an element of a value that an item (vertex or list member) keeps in the pool (the batch's memory), at word
 * OFFSET of the STRIDE words from records + item * STRIDE on. Added last, OFFSET is part of the load instruction. */
template <unsigned STRIDE, unsigned OFFSET>
__device__ __forceinline__ float &vpps_kept(float *pool, unsigned records, unsigned item, unsigned element) {
    return (pool + (records + item * STRIDE) + element)[OFFSET];
}

__device__ __forceinline__ float &vpps_at(float *pool, unsigned place, unsigned element) {
    return (pool + place + element)[0];
}

/* Returns an element of the gradient that an item (vertex or node of its list) computes for an input: WORDS words of
 * the pool (the batch's memory), from contributions + item * WORDS on. */
template <unsigned WORDS>
__device__ __forceinline__ float &vpps_contributed(float *pool, unsigned contributions, unsigned item,
                                                   unsigned element) {
    return pool[contributions + item * WORDS + element];
}

/* Returns the scratch memory of CTA number vp, for values of a part of a cell that do not fit into shared memory. It lies in device memory,
 * after the weights of all CTAs. */
__device__ __forceinline__ float *vpps_scratch_of(const vpps_arguments &a, unsigned vp) {
    return (float *)a.scratch + VPPS_MEMORY_WEIGHTS * 1ull * VPPS_VPS + (unsigned long long)vp * a.scratch_words;
}

/* Reserves words from `next` on in the pool (the batch's memory): WORDS for the gradient that each of a task's n items (vertices or list
 * nodes), from number `first` on, computes for an input, or for each of its SHARES partial sums, one for each CTA that adds to it. Returns
 * where item 0's gradient, or this CTA's partial sum of it, would be if the task had this item (vpps_contributed adds the number of an item). */
template <unsigned WORDS, unsigned SHARES>
__device__ __forceinline__ unsigned vpps_next_contribution(unsigned &next, unsigned first, unsigned n) {
    const unsigned words = (n * WORDS + 15) & ~15u, at = next + vpps_vp() % VPPS_GROUP % SHARES * words - first * WORDS;
    next += SHARES * words;
    return at;
}

/* ---------------------------------------------------------------- loops */

/* Calls body(first, n) for each tile of the vertices [begin, end), with a barrier between two tiles. All threads must call it. */
template <unsigned TILE, class BODY>
__device__ __forceinline__ void vpps_tiles(unsigned begin, unsigned end, const BODY &body) {
    if (begin >= end) return;
#pragma unroll 1
    for (unsigned first = begin;; first += TILE) {
        body(first, vpps_least(end - first, TILE));
        if (end - first <= TILE) break;
        __syncthreads();
    }
}

/* Calls body(item, e, element) for each of n items (vertices or nodes of their lists) and each element in the range `rows` of an item's
 * elements; e is `element` minus the range's first. WIDTH: most elements in the range. ROUNDS: most calls by a thread. If the
 * number is unknown, ROUNDS is 0, so that the compiler may unroll the loop, or VPPS_NONE, so that it does not. */
template <unsigned ROUNDS, unsigned WIDTH, class BODY>
__device__ __forceinline__ void vpps_elements(unsigned thread, unsigned n, vpps_rows rows, const BODY &body) {
    const auto once = [&](unsigned i) {
        const unsigned item = i / WIDTH, e = i % WIDTH;
        if ((ROUNDS != 1 || item < n) && e < rows.end - rows.first) body(item, e, rows.first + e);
    };
    if constexpr (ROUNDS == 1) {
        once(thread);
    } else if constexpr (ROUNDS > 1) {
#pragma unroll 1
        for (unsigned i = thread; i < n * WIDTH; i += VPPS_THREADS) once(i);
    } else {
        for (unsigned i = thread; i < n * WIDTH; i += VPPS_THREADS) once(i);
    }
}

/* ---------------------------------------------------------------- lists */

/* Returns the last v <= n for which (work(v - 1) + work(v)) * parts <= most, or 0. work(v) rises with v. A warp's lanes try 32 numbers at once. */
template <class WORK>
__device__ __forceinline__ unsigned vpps_end_of_share(unsigned n, unsigned parts, unsigned long long most,
                                                      const WORK &work) {
    unsigned low = 0, high = n + 1;
#pragma unroll 1
    while (high - low > 1) {
        const unsigned step = (high - low + 31) / 32, v = low + step * (VPPS_LANE + 1);
        low += step * __popc(__ballot_sync(~0u, v < high && (work(v - 1) + work(v)) * parts <= most));
        high = vpps_least(high, low + step);
    }
    return low;
}

/* Divides n vertices into `parts` parts of about equal work, and returns the vertices of part number `member` (script/task.h). work(v) returns the
 * work of the first v vertices. All threads must call it. */
template <class WORK>
__device__ __forceinline__ vpps_rows vpps_share_of_work(unsigned n, unsigned parts, unsigned member, const WORK &work) {
    const unsigned long long all = 2 * work(n);
    return vpps_rows{vpps_end_of_share(n, parts, all * member, work),
                     vpps_end_of_share(n, parts, all * (member + 1), work)};
}

__device__ __forceinline__ unsigned vpps_members(const vpps_array &starts, unsigned vertex) {
    return starts[vertex + 1] - starts[vertex];
}

/* Calls body(m) for each member of a vertex's list. m is the member's number, in order through all vertices' lists, minus `first`. */
template <class BODY>
__device__ __forceinline__ void vpps_each_member(const vpps_array &starts, unsigned vertex, unsigned first,
                                                 const BODY &body) {
    for (unsigned m = starts[vertex] - first; m < starts[vertex + 1] - first; m++) body(m);
}

/* Calls body(m) for each member of a vertex's list input, where body adds to `sum`. In a long list, each VPPS_RUN members are summed in
 * `sum`, and these sums are added up in a vpps_long_sum (two floats). The loads of several members are in flight at once. */
template <class BODY>
__device__ __forceinline__ void vpps_add_members(const vpps_array &starts, unsigned vertex, unsigned first, float &sum,
                                                 const BODY &body) {
    vpps_long_sum total = {0.0f, 0.0f};
    unsigned m = starts[vertex] - first;
    const unsigned end = starts[vertex + 1] - first;
    const bool is_long = end - m >= VPPS_RUN;
#pragma unroll 1
    while (end - m >= VPPS_RUN) {
#pragma unroll 8
        for (const unsigned stop = m + VPPS_RUN; m < stop; m++) body(m);
        total.add(sum), sum = 0.0f;
    }
#pragma unroll 8
    for (; m < end; m++) body(m);
    if (is_long) total.add(sum), sum = total.value();
}

__device__ __forceinline__ float vpps_inverse(unsigned n) { return n ? 1.0f / (float)n : 0.0f; }

/* Finds the number that beats all others, such as the maximum, and its first position. A NaN beats all. */
template <bool (*BEATS)(float x, float a)> struct vpps_found {
    float value;
    unsigned position, n;
    __device__ __forceinline__ vpps_found() : value(0.0f), position(0), n(0) {}
    __device__ __forceinline__ void take(float x) {
        if (n == 0 || BEATS(x, value) || (x != x && value == value)) value = x, position = n;
        n++;
    }
};

/* Adds a gradient's terms scalar * vector: pairs starts[item] to starts[item + 1] - 1 of the list after `starts`. A pair is the offsets of
 * scalar and vector or, if vpps_header.pairs is 2, of a run (terms at equal distances) the first scalar's offset and a vpps_pair_run's index. */
__device__ __forceinline__ float vpps_add_pairs(float sum, const float *pool, const vpps_array &starts, unsigned n,
                                                unsigned item, unsigned element) {
    const unsigned *const lists = starts.script + starts.at + n + 1;
    const unsigned first = starts[item], end = starts[item + 1];
    if (vpps_header.pairs == 1)
        return vpps_add_up<8, !VPPS_RECURRENT>(
            sum, first, end, 1, [&](unsigned i) { return pool[lists[2 * i]] * pool[lists[2 * i + 1] + element]; });
#pragma unroll 1
    for (unsigned i = first; i < end; i++) {
        const unsigned *const run = starts.script + lists[2 * i + 1], by = lists[2 * i], of = run[0] + element;
        const unsigned by_step = run[1], of_step = run[2];
        sum = vpps_add_up<8, !VPPS_RECURRENT>(
            sum, 0, run[3], 1, [&](unsigned k) { return pool[by + k * by_step] * pool[of + k * of_step]; });
    }
    return sum;
}

/* Sums the gradient of a vertex's output: one term from each vertex that reads the output. Words of the batch's
 * program, lists[at] to lists[end - 1], say where the terms begin. Most vertices have at most two terms, so
 * lists[at] and lists[at + 1] are always read, early; words after the list's end are not used. */
struct vpps_gradient {
    unsigned at, end, first, second;
    float sum, next;
    __device__ __forceinline__ vpps_gradient(const vpps_array &starts, const vpps_array &lists, unsigned item)
        : at(starts[item]), end(starts[item + 1]), first(lists[at]), second(lists[at + 1]), sum(0.0f), next(0.0f) {}
    __device__ __forceinline__ void know() { vpps_know(first), vpps_know(second); }
    __device__ __forceinline__ void load(const float *pool, unsigned element) {
        if (at < end) sum = pool[first + element];
        if (at + 1 < end) next = pool[second + element];
    }
    __device__ __forceinline__ float total(const float *pool, const vpps_array &lists, const vpps_array &pairs,
                                           unsigned n, unsigned item, unsigned element) {
        if (at + 1 < end) sum += next;
        sum =
            vpps_add_up<8, !VPPS_RECURRENT>(sum, at + 2, end, 1, [&](unsigned k) { return pool[lists[k] + element]; });
        return VPPS_PAIRS && vpps_header.pairs ? vpps_add_pairs(sum, pool, pairs, n, item, element) : sum;
    }
};

/* ---------------------------------------------------------------- products of values, parts of values */

template <unsigned DEPTH, class LEFT, class RIGHT>
__device__ __forceinline__ float vpps_inner(const LEFT &left, const RIGHT &right) {
    return vpps_add_up<8>(0.0f, 0, DEPTH, 1, [&](unsigned k) { return left(k) * right(k); });
}

/* Moves an element of a value of ROWS rows to a value of OTHER_ROWS rows: into the same column, `first` rows further down. Returns the
 * number of the element there. */
template <unsigned ROWS, unsigned OTHER_ROWS>
__device__ __forceinline__ unsigned vpps_moved(unsigned element, unsigned first) {
    return element / ROWS * OTHER_ROWS + (element % ROWS + first);
}

/* Returns an element of a value of ROWS rows that consists of parts stacked from row FIRST on, with PART_ROWS rows
 * each; 0 outside of all parts. part(element) returns a part's element. */
template <unsigned ROWS, unsigned FIRST, unsigned... PART_ROWS, class... PARTS>
__device__ __forceinline__ float vpps_of_parts(unsigned element, const PARTS &...part) {
    float x = 0.0f;
    unsigned row = FIRST;
    ((x = element % ROWS - row < PART_ROWS ? part(vpps_moved<ROWS, PART_ROWS>(element, 0u - row)) : x,
      row += PART_ROWS),
     ...);
    return x;
}

/* Returns an element of a value of ROWS rows that is a stack of the nodes (members) of the vertex's list input, with
 * MEMBER_ROWS rows each; 0 outside. member(m, element) returns a member's element. */
template <unsigned ROWS, unsigned MEMBER_ROWS, class MEMBER>
__device__ __forceinline__ float vpps_of_stack(const vpps_array &starts, unsigned vertex, unsigned first,
                                               unsigned element, const MEMBER &member) {
    const unsigned row = element % ROWS, m = starts[vertex] + row / MEMBER_ROWS;
    if (m >= starts[vertex + 1]) return 0.0f;
    return member(m - first, element / ROWS * MEMBER_ROWS + row % MEMBER_ROWS);
}

/* Returns the number that an element of a ROWS x COLS value has in its transpose. */
template <unsigned ROWS, unsigned COLS> __device__ __forceinline__ unsigned vpps_turned(unsigned element) {
    return element % ROWS * COLS + element / ROWS;
}

/* Returns element(number) if `number` is the number of a row, less than ROWS; NaN if there is no such row. */
template <unsigned ROWS, class ELEMENT>
__device__ __forceinline__ float vpps_of_row(float number, const ELEMENT &element) {
    const bool found = number >= 0.0f && number < (float)ROWS;
    return found ? element((unsigned)number) : __uint_as_float(0x7fc00000u);
}

/* Returns the sum of element(k) over those k < N for which the integer part of number(k) is `row`. */
template <unsigned N, class NUMBER, class ELEMENT>
__device__ __forceinline__ float vpps_sum_of_row(unsigned row, const NUMBER &number, const ELEMENT &element) {
    return vpps_add_up<1>(0.0f, 0, N, 1, [&](unsigned k) {
        const float x = number(k);
        return x >= (float)row && x < (float)(row + 1) ? element(k) : 0.0f;
    });
}
