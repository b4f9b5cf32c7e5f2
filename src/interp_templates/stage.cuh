/* stage.cuh - the parts of a stage's function: where arrays and values lie; loops over tiles, items and elements, which call a function
 * for each; steps over lists; sums of gradients. A generated stage calls these with the numbers of its cell. */

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
    const vpps_array name = {script, array};                                                                           \
    array += words;                                                                                                    \
    (void)name, (void)array
/* Two arrays: where each vertex's list of contributions to the gradient begins; the lists. */
#define VPPS_GRADIENT_ARRAYS(starts, lists)                                                                            \
    const vpps_array starts = {script, array}, lists = {script, array + b->n + 1};                                     \
    array = lists.at + starts[b->n];                                                                                   \
    (void)lists, (void)array

/* An element of a value in a slot. WIDTH: elements of an item there. */
template <unsigned WIDTH> __device__ __forceinline__ float &vpps_slot(float *slot, unsigned item, unsigned element) {
    return slot[item * WIDTH + element];
}

/* An element of a kept value, at word OFFSET of the item's record of STRIDE words; `records`: the word where item 0's record would begin.
 * OFFSET is added last, to an address, so that it becomes part of the load's instruction. */
template <unsigned STRIDE, unsigned OFFSET>
__device__ __forceinline__ float &vpps_kept(float *pool, unsigned records, unsigned item, unsigned element) {
    return (pool + (records + item * STRIDE) + element)[OFFSET];
}

/* An element of a vector that begins at word `place`. */
__device__ __forceinline__ float &vpps_at(float *pool, unsigned place, unsigned element) {
    return (pool + place + element)[0];
}

/* An element of an item's contribution, WORDS long; `contributions`: the word where item 0's would begin. */
template <unsigned WORDS>
__device__ __forceinline__ float &vpps_contributed(float *pool, unsigned contributions, unsigned item,
                                                   unsigned element) {
    return pool[contributions + item * WORDS + element];
}

/* An element of an input op's data. */
__device__ __forceinline__ float vpps_datum(const unsigned *script, unsigned address, unsigned element) {
    return __uint_as_float(script[address + element]);
}

/* A VP's scratch memory: it has the slots for which shared memory has no room. */
__device__ __forceinline__ float *vpps_scratch_of(const vpps_arguments &a, unsigned vp) {
    return (float *)a.scratch + (unsigned long long)vp * a.scratch_words;
}

/* The word where item 0 of the block would have its part of the task's next contribution. The task has n items, from `first` on, of
 * WORDS each. */
template <unsigned WORDS>
__device__ __forceinline__ unsigned vpps_next_contribution(unsigned &next, unsigned first, unsigned n) {
    const unsigned at = next - first * WORDS;
    next += (n * WORDS + 15) & ~15u;
    return at;
}

/* ---------------------------------------------------------------- loops */

/* body(first, n) for each tile of the vertices [begin, end). All threads call it. A barrier separates two tiles. */
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

/* body(item, e, element) for every element of n items: `element` is one of `rows`, e its number among them. WIDTH: the most elements of
 * an item. ROUNDS: the most elements of a thread; 0: not known, the compiler may unroll; VPPS_NONE: not known, it may not. */
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

__device__ __forceinline__ unsigned vpps_members(const vpps_array &starts, unsigned vertex) {
    return starts[vertex + 1] - starts[vertex];
}

/* body(m) for each member of the vertex's list; m counts from member `first` of the block. */
template <class BODY>
__device__ __forceinline__ void vpps_each_member(const vpps_array &starts, unsigned vertex, unsigned first,
                                                 const BODY &body) {
    for (unsigned m = starts[vertex] - first; m < starts[vertex + 1] - first; m++) body(m);
}

/* Likewise, where body adds to `sum`: runs of VPPS_RUN members are added up in two floats. */
template <class BODY>
__device__ __forceinline__ void vpps_add_members(const vpps_array &starts, unsigned vertex, unsigned first, float &sum,
                                                 const BODY &body) {
    vpps_long_sum total = {0.0f, 0.0f};
    unsigned n = 0;
    vpps_each_member(starts, vertex, first, [&](unsigned m) {
        body(m);
        if (++n % VPPS_RUN == 0) total.add(sum), sum = 0.0f;
    });
    if (n >= VPPS_RUN) total.add(sum), sum = total.value();
}

/* 1 / n, and 0 for n = 0: the factor of a mean. */
__device__ __forceinline__ float vpps_inverse(unsigned n) { return n ? 1.0f / (float)n : 0.0f; }

/* Of the numbers taken the one that beats the others, and its first position. A NaN beats all. */
template <bool (*BEATS)(float x, float a)> struct vpps_found {
    float value;
    unsigned position, n;
    __device__ __forceinline__ vpps_found() : value(0.0f), position(0), n(0) {}
    __device__ __forceinline__ void take(float x) {
        if (n == 0 || BEATS(x, value) || (x != x && value == value)) value = x, position = n;
        n++;
    }
};

/* ---------------------------------------------------------------- gradients of outputs */

/* The sum of the contributions of a vertex's users, in the order of its list [at, end). Most vertices have no more than two: the words
 * where the first two begin are read early. A shorter list reads what follows it in the script, and total() ignores that. */
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
    __device__ __forceinline__ float total(const float *pool, const vpps_array &lists, unsigned element) {
        if (at + 1 < end) sum += next;
        return vpps_add_up<1>(sum, at + 2, end, 1, [&](unsigned k) { return pool[lists[k] + element]; });
    }
};

/* ---------------------------------------------------------------- products of values, parts of values */

/* The sum of left(k) * right(k) for k below DEPTH. */
template <unsigned DEPTH, class LEFT, class RIGHT>
__device__ __forceinline__ float vpps_inner(const LEFT &left, const RIGHT &right) {
    return vpps_add_up<8>(0.0f, 0, DEPTH, 1, [&](unsigned k) { return left(k) * right(k); });
}

/* The element of a value of OTHER_ROWS rows that is in the same column as `element` of a value of ROWS rows, and `first` rows further
 * down. */
template <unsigned ROWS, unsigned OTHER_ROWS>
__device__ __forceinline__ unsigned vpps_moved(unsigned element, unsigned first) {
    return element / ROWS * OTHER_ROWS + (element % ROWS + first);
}

/* Of a value of ROWS rows the element that is one of parts, which lie one below the other, from row FIRST on, of PART_ROWS rows each; 0: of
 * none. part(element) is a part's element. */
template <unsigned ROWS, unsigned FIRST, unsigned... PART_ROWS, class... PARTS>
__device__ __forceinline__ float vpps_of_parts(unsigned element, const PARTS &...part) {
    float x = 0.0f;
    unsigned row = FIRST;
    ((x = element % ROWS - row < PART_ROWS ? part(vpps_moved<ROWS, PART_ROWS>(element, 0u - row)) : x,
      row += PART_ROWS),
     ...);
    return x;
}

/* Likewise, where the parts are the members of the vertex's list, of MEMBER_ROWS rows each: member(m, element) is an element of one. */
template <unsigned ROWS, unsigned MEMBER_ROWS, class MEMBER>
__device__ __forceinline__ float vpps_of_stack(const vpps_array &starts, unsigned vertex, unsigned first,
                                               unsigned element, const MEMBER &member) {
    const unsigned row = element % ROWS, m = starts[vertex] + row / MEMBER_ROWS;
    if (m >= starts[vertex + 1]) return 0.0f;
    return member(m - first, element / ROWS * MEMBER_ROWS + row % MEMBER_ROWS);
}

/* Where the transpose of a value of ROWS x COLS has its element. */
template <unsigned ROWS, unsigned COLS> __device__ __forceinline__ unsigned vpps_turned(unsigned element) {
    return element % ROWS * COLS + element / ROWS;
}

/* The element of the row of this number, of ROWS; NaN: there is no such row. */
template <unsigned ROWS, class ELEMENT>
__device__ __forceinline__ float vpps_of_row(float number, const ELEMENT &element) {
    const bool found = number >= 0.0f && number < (float)ROWS;
    return found ? element((unsigned)number) : __uint_as_float(0x7fc00000u);
}

/* The sum of element(k), for k below N, where the whole part of number(k) is `row`. */
template <unsigned N, class NUMBER, class ELEMENT>
__device__ __forceinline__ float vpps_sum_of_row(unsigned row, const NUMBER &number, const ELEMENT &element) {
    return vpps_add_up<1>(0.0f, 0, N, 1, [&](unsigned k) {
        const float x = number(k);
        return x >= (float)row && x < (float)(row + 1) ? element(k) : 0.0f;
    });
}
