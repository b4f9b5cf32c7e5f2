/* products.cuh - instructions on bundles: matrices times vectors, their gradients. See nodes/format.h for what a bundle
 * is, and plan/partition.h for pieces and slots.
 *
 * A bundle is done in rounds. A round is a set of groups; a group is one piece's rows of one destination, and has a term
 * for every matrix that is summed into them. A term of a group is an item: the work of one warp, the one whose registers
 * hold that piece of that matrix. The warps of the CTA multiply their items with vectors staged in shared memory; the
 * sums over a group's terms are made afterwards, in a fixed order, so results do not depend on who was first.
 *
 *   AFFINE      destinations: outputs; sources: lists; pieces of rows
 *   AFFINE_T    destinations: lists' gradients; sources: outputs' gradients; pieces of columns (the transposed copy)
 *   OUTER       groups as AFFINE; sums nothing: adds to gradients' registers
 *   AFFINE_P    groups as AFFINE; each warp adds up columns, then the warps' sums are added
 */

#define VPPS_STAGE 6144                       /* words of staged vectors */
#define VPPS_VALUES (VPPS_VECTORS * VPPS_RPW) /* a warp makes of one item at a time */
#define VPPS_ITEMS (VPPS_WARPS > 8 ? 128 : 256) /* of a round, at most */
#define VPPS_PARTS (VPPS_ITEMS * VPPS_VALUES < 4096 ? VPPS_ITEMS * VPPS_VALUES : 4096)
#define VPPS_ROUND_ITEMS (VPPS_PARTS / VPPS_VALUES)
#define VPPS_SPANS 64
#define VPPS_TERMS 128
#define VPPS_OUTPUTS 32       /* of a bundle, looked at together */
#define VPPS_BUNDLE_WORDS 512 /* kept in shared memory */
#define VPPS_CHUNK (32 * VPPS_CHUNK_STEPS) /* elements of a row that one switch over slots multiplies */

static_assert(VPPS_ITEMS <= 256 && VPPS_SPANS <= 256, "a group's number and its span's are bytes");
static_assert(VPPS_OUTPUTS <= 256 && VPPS_LISTS <= 256, "a source's number is a byte of an item");
static_assert(VPPS_SLOT_COUNT <= 65536 && VPPS_COLUMN_SLOT_COUNT <= 65536, "a slot's number is half of an item");
static_assert(VPPS_LISTS <= VPPS_TERMS, "the terms of one output fit");

/* Consecutive pieces of one destination, with the same terms. */
struct vpps_groups {
    unsigned destination, piece, n_pieces, term, n_terms, item, group;
};

struct vpps_bundle_state {
    unsigned opcode, wanted, first, end; /* the instruction: its bundle and vectors */
    unsigned vector;                     /* the first of those that are worked on now */
    unsigned address, columns;           /* the round that is ready: of which bundle and direction; NONE: of none */
    unsigned n_lists, n_outputs, first_output, n_window; /* outputs looked at now: first .. first + window - 1 */
    unsigned in_shared;
    unsigned output_at[VPPS_OUTPUTS + 1]; /* words into the bundle; the last: the next window's */
    unsigned n_spans, n_items, n_groups, n_terms;
    unsigned next_destination, next_term, next_piece; /* where the next round goes on */
    unsigned done;                                    /* there is no next round */
    unsigned begun;                                   /* this is not the bundle's first round */
    /* what is in shared memory now: sources first .. end - 1, elements from `from` on */
    unsigned staged_first, staged_end, staged_from;
    unsigned partial_list, partial_vector, partial_from; /* what AFFINE_P adds up now */
    vpps_groups span[VPPS_SPANS];
    unsigned short term_matrix[VPPS_TERMS], term_source[VPPS_TERMS];
    unsigned item[VPPS_ITEMS]; /* slot, source << 16, group << 24 */
    unsigned char group_span[VPPS_ITEMS];
    unsigned short list[VPPS_WARPS][VPPS_ITEMS]; /* a warp's items */
    unsigned count[VPPS_WARPS];
    unsigned source_at[VPPS_OUTPUTS > VPPS_LISTS ? VPPS_OUTPUTS : VPPS_LISTS]; /* where it is staged */
    unsigned words[VPPS_BUNDLE_WORDS];
};

__shared__ vpps_bundle_state vpps_b;
__shared__ float vpps_stage[VPPS_STAGE];
__shared__ float vpps_parts[VPPS_PARTS];

/* ---------------------------------------------------------------- reading a bundle */

__device__ __forceinline__ const unsigned *vpps_bundle_words(const vpps_arguments &a) {
    return vpps_b.in_shared ? vpps_b.words : (const unsigned *)a.script + vpps_b.address;
}
__device__ __forceinline__ const unsigned *vpps_list_of(const vpps_arguments &a, unsigned list) {
    return vpps_bundle_words(a) + 2 + 4 * list;
}
__device__ __forceinline__ const unsigned *vpps_output_of(const vpps_arguments &a, unsigned output) {
    return vpps_bundle_words(a) + vpps_b.output_at[output];
}

/* The window of outputs that begins at output `first`, whose words begin at `at`. One thread. */
__device__ __forceinline__ void vpps_open_window(const vpps_arguments &a, unsigned first, unsigned at) {
    const unsigned *words = vpps_bundle_words(a);
    unsigned n = 0;
#pragma unroll 1
    for (; n < VPPS_OUTPUTS && first + n < vpps_b.n_outputs; n++) {
        vpps_b.output_at[n] = at;
        at += 5 + 2 * words[at + 4];
    }
    vpps_b.output_at[n] = at;
    vpps_b.first_output = first;
    vpps_b.n_window = n;
    vpps_b.next_destination = vpps_b.next_term = vpps_b.next_piece = 0;
    vpps_b.done = 0;
}

__device__ __forceinline__ bool vpps_by_columns() { return vpps_b.opcode == VPPS_I_AFFINE_T; }

/* How many vectors are worked on now. */
__device__ __forceinline__ unsigned vpps_vectors_now() {
    const unsigned left = vpps_b.end - vpps_b.vector;
    return left < VPPS_VECTORS ? left : VPPS_VECTORS;
}

/* Makes the wanted bundle's first window current. All threads; ends with a barrier. */
__device__ __forceinline__ void vpps_open_bundle(const vpps_arguments &a) {
    const unsigned address = vpps_b.wanted, *from = (const unsigned *)a.script + address;
    const unsigned n = from[-1];
#pragma unroll 1
    for (unsigned i = vpps_thread(); i < n && n <= VPPS_BUNDLE_WORDS; i += VPPS_THREADS) vpps_b.words[i] = from[i];
    __syncthreads();
    if (vpps_thread() == 0) {
        vpps_b.address = address;
        vpps_b.in_shared = n <= VPPS_BUNDLE_WORDS;
        vpps_b.n_lists = from[0];
        vpps_b.n_outputs = from[1];
        vpps_open_window(a, 0, 2 + 4 * from[0]);
    }
    __syncthreads();
}

/* ---------------------------------------------------------------- rounds */

__device__ __forceinline__ unsigned vpps_pieces_in(vpps_rows r) {
    return (r.end - r.first + VPPS_RPW - 1) / VPPS_RPW;
}

/* Appends a destination's terms from number `skip` on; returns how many. One thread. */
__device__ __forceinline__ unsigned vpps_collect_terms(const vpps_arguments &a, unsigned destination, unsigned skip,
                                                       unsigned room) {
    volatile vpps_bundle_state *b = &vpps_b;
    const unsigned before = b->n_terms, end = vpps_by_columns() ? b->n_window : destination + 1;
#pragma unroll 1
    for (unsigned o = vpps_by_columns() ? 0 : destination; o < end; o++) {
        const unsigned *output = vpps_output_of(a, o);
#pragma unroll 1
        for (unsigned p = 0; p < output[4] && b->n_terms - before < room; p++) {
            if (vpps_by_columns() && output[6 + 2 * p] != destination) continue;
            if (skip) {
                skip--;
                continue;
            }
            b->term_matrix[b->n_terms] = (unsigned short)vpps_param_of(a, output[5 + 2 * p])->matrix;
            b->term_source[b->n_terms] = (unsigned short)(vpps_by_columns() ? o : output[6 + 2 * p]);
            b->n_terms = b->n_terms + 1;
        }
    }
    return b->n_terms - before;
}

/* Fills the round's spans from where the last one ended: as many as there is room for. One thread; what it counts is in
 * shared memory, as registers are short. */
__device__ __forceinline__ void vpps_fill_spans(const vpps_arguments &a) {
    volatile vpps_bundle_state *b = &vpps_b;
    b->n_spans = b->n_terms = b->n_items = b->n_groups = 0;
    while (b->n_spans < VPPS_SPANS) {
        const unsigned destination = b->next_destination, piece = b->next_piece;
        b->done = destination >= (vpps_by_columns() ? b->n_lists : b->n_window);
        if (b->done) break;
        const unsigned *words = vpps_by_columns() ? vpps_list_of(a, destination) : vpps_output_of(a, destination);
        const unsigned pieces = vpps_pieces_in(vpps_rows_of(words[3])), most = vpps_by_columns() ? 16 : VPPS_LISTS;
        unsigned n = 0;
        if (pieces && (!vpps_by_columns() || words[1])) {
            if (b->n_terms + most > VPPS_TERMS) break;
            n = vpps_collect_terms(a, destination, b->next_term, most);
        }
        if (!n) { /* there are no more terms */
            b->next_destination = destination + 1;
            b->next_term = b->next_piece = 0;
            continue;
        }
        unsigned take = (VPPS_ROUND_ITEMS - b->n_items) / n;
        take = take < pieces - piece ? take : pieces - piece;
        if (!take) break;
        volatile vpps_groups *span = &b->span[b->n_spans];
        span->destination = destination;
        span->piece = piece;
        span->n_pieces = take;
        span->term = b->n_terms - n;
        span->n_terms = n;
        span->item = b->n_items;
        span->group = b->n_groups;
        b->n_spans = b->n_spans + 1;
        b->n_items = b->n_items + take * n;
        b->n_groups = b->n_groups + take;
        b->next_piece = piece + take < pieces ? piece + take : 0;
        if (!b->next_piece) b->next_term = b->next_term + n;
    }
}

/* The next round's items, and each warp's list of them, in their order. All threads; ends with a barrier. */
__device__ __forceinline__ void vpps_next_round(const vpps_arguments &a) {
    const unsigned warp = vpps_thread() / 32, lane = vpps_thread() % 32;
    const unsigned *first_piece = (const unsigned *)a.tables +
                                  (vpps_by_columns() ? VPPS_TABLE_COLUMN_PIECES : VPPS_TABLE_PIECES) +
                                  vpps_vp() * VPPS_MATRICES;
    __syncthreads();
    if (vpps_thread() == 0) vpps_fill_spans(a);
    __syncthreads();
#pragma unroll 1
    for (unsigned s = 0; s < vpps_b.n_spans; s++) {
        const vpps_groups span = vpps_b.span[s];
#pragma unroll 1
        for (unsigned i = vpps_thread(); i < span.n_pieces * span.n_terms; i += VPPS_THREADS) {
            const unsigned piece = i / span.n_terms, term = i - piece * span.n_terms;
            const unsigned number = first_piece[vpps_b.term_matrix[span.term + term]] + span.piece + piece;
            const unsigned group = span.group + piece;
            vpps_b.item[span.item + i] = number / VPPS_WARPS | vpps_b.term_source[span.term + term] << 16 | group << 24;
            vpps_b.list[0][span.item + i] = (unsigned short)(number % VPPS_WARPS); /* whose it is, for now */
            if (term == 0) vpps_b.group_span[group] = (unsigned char)s;
        }
    }
    __syncthreads();
    unsigned mine[(VPPS_ITEMS + 31) / 32];
#pragma unroll
    for (unsigned k = 0; k < VPPS_ITEMS / 32; k++) {
        const unsigned i = 32 * k + lane;
        mine[k] = __ballot_sync(0xffffffffu, i < vpps_b.n_items && vpps_b.list[0][i] == warp);
    }
    __syncthreads();
    unsigned n = 0;
#pragma unroll
    for (unsigned k = 0; k < VPPS_ITEMS / 32; k++) {
        const unsigned before = mine[k] & ((1u << lane) - 1);
        if (mine[k] >> lane & 1) vpps_b.list[warp][n + __popc(before)] = (unsigned short)(32 * k + lane);
        n += __popc(mine[k]);
    }
    if (lane == 0) vpps_b.count[warp] = n;
    __syncthreads();
}

/* Is the wanted bundle's one round ready from the instruction before? Else opens the bundle. All threads; has barriers. */
__device__ __forceinline__ bool vpps_ready_round(const vpps_arguments &a) {
    const bool ready = vpps_b.columns == vpps_by_columns() && vpps_b.address == vpps_b.wanted;
    __syncthreads();
    if (vpps_thread() == 0) vpps_b.begun = 0;
    if (!ready) vpps_open_bundle(a);
    return ready;
}

/* After a round: if it was all of the bundle it may serve again; else the next window, if any. True: there is more. */
__device__ __forceinline__ bool vpps_more_rounds(const vpps_arguments &a) {
    __syncthreads();
    const bool more_windows = vpps_b.first_output + vpps_b.n_window < vpps_b.n_outputs;
    const bool more = !vpps_b.done || more_windows;
    __syncthreads();
    if (vpps_thread() == 0) {
        vpps_b.columns = !vpps_b.begun && !more ? vpps_by_columns() : VPPS_NONE;
        vpps_b.begun = 1;
        if (vpps_b.done && more_windows) {
            vpps_open_window(a, vpps_b.first_output + vpps_b.n_window, vpps_b.output_at[vpps_b.n_window]);
        }
    }
    __syncthreads();
    return more;
}

/* ---------------------------------------------------------------- staging */

#define VPPS_PAD(elems) (((elems) + VPPS_CHUNK - 1) / VPPS_CHUNK * VPPS_CHUNK) /* whole chunks */
#define VPPS_STAGE_PIECE (VPPS_STAGE / VPPS_VECTORS / VPPS_CHUNK * VPPS_CHUNK)

__device__ __forceinline__ unsigned vpps_source_elems(const vpps_arguments &a, unsigned source) {
    return vpps_by_columns() ? vpps_output_of(a, source)[3] : vpps_list_of(a, source)[3];
}

__device__ __forceinline__ void vpps_stage_vectors(const vpps_arguments &a, unsigned source, unsigned to, unsigned from,
                                                   unsigned length) {
    const bool columns = vpps_by_columns();
    const unsigned vector = vpps_b.vector, n = vpps_vectors_now();
    const float *pool = (const float *)a.pool;
    const unsigned *words = columns ? vpps_output_of(a, source) : vpps_list_of(a, source);
    const unsigned elems = words[3];
    const unsigned *offsets = (const unsigned *)a.script + words[0] + vector; /* of a list */
    const float *x[VPPS_VECTORS];
#pragma unroll
    for (unsigned v = 0; v < VPPS_VECTORS; v++) {
        x[v] = pool + (v >= n ? 0 : columns ? words[1] + (vector + v) * elems : offsets[v]);
    }
#pragma unroll 1
    for (unsigned i = vpps_thread(); i < length; i += VPPS_THREADS) {
#pragma unroll
        for (unsigned v = 0; v < VPPS_VECTORS; v++) {
            vpps_stage[to + v * length + i] = v < n && from + i < elems ? x[v][from + i] : 0.0f;
        }
    }
}

/* Stages what follows what is there (`start`: what is first): as many sources as there is room for, or a part of one.
 * False: that was all. Sources without a term in this round are staged all the same. All threads; has barriers. */
__device__ __forceinline__ bool vpps_stage_next(const vpps_arguments &a, bool start) {
    const unsigned n_sources = vpps_by_columns() ? vpps_b.n_window : vpps_b.n_lists;
    unsigned source = 0, from = 0;
    if (!start) {
        source = vpps_b.staged_first;
        from = vpps_b.staged_from + VPPS_STAGE_PIECE;
        if (vpps_b.staged_end != source + 1 || from >= VPPS_PAD(vpps_source_elems(a, source))) {
            source = vpps_b.staged_end;
            from = 0;
        }
    }
    __syncthreads();
    if (source >= n_sources) return false;
    unsigned end = source, used = 0;
    while (end < n_sources && (end == source || from == 0)) { /* the last part of a source is staged alone */
        const unsigned left = VPPS_PAD(vpps_source_elems(a, end)) - from;
        const unsigned length = left < VPPS_STAGE_PIECE ? left : VPPS_STAGE_PIECE;
        if (used + VPPS_VECTORS * length > VPPS_STAGE || (end > source && left > length)) break;
        vpps_stage_vectors(a, end, used, from, length);
        if (vpps_thread() == 0) vpps_b.source_at[end] = used;
        used += VPPS_VECTORS * length;
        end++;
        if (left > length) break;
    }
    if (vpps_thread() == 0) {
        vpps_b.staged_first = source;
        vpps_b.staged_end = end;
        vpps_b.staged_from = from;
    }
    __syncthreads();
    return true;
}

/* The destinations' gradients, of every group's rows, into the parts: [group][vector][row]. Ends with a barrier. */
__device__ __forceinline__ void vpps_load_gradients(const vpps_arguments &a) {
    const float *pool = (const float *)a.pool;
    const unsigned vector = vpps_b.vector, n = vpps_vectors_now();
    __syncthreads();
#pragma unroll 1
    for (unsigned i = vpps_thread(); i < vpps_b.n_groups * VPPS_VALUES; i += VPPS_THREADS) {
        const unsigned group = i / VPPS_VALUES, v = i % VPPS_VALUES / VPPS_RPW, r = i % VPPS_RPW;
        const vpps_groups *span = &vpps_b.span[vpps_b.group_span[group]];
        const unsigned *output = vpps_output_of(a, span->destination);
        const vpps_rows own = vpps_rows_of(output[3]);
        const unsigned row = own.first + (span->piece + group - span->group) * VPPS_RPW + r;
        vpps_parts[i] = v < n && row < own.end ? pool[output[1] + (vector + v) * output[3] + row] : 0.0f;
    }
    __syncthreads();
}

/* ---------------------------------------------------------------- sums over a warp */

/* Adds up VPPS_VALUES values over the warp's lanes, halving the values where possible: value i ends in the lanes from
 * i * (32 / VPPS_VALUES) on. Fewer shuffles than one sum after another: 6 for 4 values, not 20. */
__device__ __forceinline__ float vpps_sum_lanes(float (&value)[VPPS_VALUES]) {
    const unsigned lane = vpps_thread() % 32;
    unsigned offset = 16;
#pragma unroll
    for (unsigned half = VPPS_VALUES / 2; half > 0; half /= 2, offset /= 2) {
        const bool upper = lane & offset;
#pragma unroll
        for (unsigned k = 0; k < half; k++) {
            const float give = upper ? value[k] : value[k + half], keep = upper ? value[k + half] : value[k];
            value[k] = keep + __shfl_xor_sync(0xffffffffu, give, offset);
        }
    }
#pragma unroll
    for (; offset > 0; offset /= 2) value[0] += __shfl_xor_sync(0xffffffffu, value[0], offset);
    return value[0];
}

/* ---------------------------------------------------------------- slots */

/* Of slots that are not in registers: a row of the piece, step after step, 32 words each. */
__device__ __forceinline__ const float *vpps_slot_row(const vpps_arguments &a, unsigned slot, unsigned row) {
    const unsigned warp = vpps_thread() / 32, at = (warp * VPPS_RPW + row) * vpps_slot_table[slot].steps * 32;
    VPPS_DYNAMIC_SHARED(vpps_dynamic);
    if (vpps_slot_table[slot].level == VPPS_LEVEL_SHARED) return vpps_dynamic + vpps_slot_table[slot].at + at;
    return (const float *)a.master + (unsigned long long)vpps_vp() * VPPS_VP_WORDS + vpps_slot_table[slot].master + at;
}

__device__ __forceinline__ bool vpps_is_elsewhere(unsigned slot) {
    return VPPS_SLOTS_ELSEWHERE && vpps_slot_table[slot].level != VPPS_LEVEL_REGISTERS;
}

/* What a lane does with its `steps` elements of a slot's rows, from word `word` of the array on; rows lie `stride` words
 * apart. Every number is a literal, so arrays stay in registers. */
#define VPPS_EACH(steps, statement)                                                                                    \
    _Pragma("unroll") for (int j = 0; j < steps; j++) {                                                                \
        _Pragma("unroll") for (int v = 0; v < VPPS_VECTORS; v++) {                                                     \
            _Pragma("unroll") for (int r = 0; r < VPPS_RPW; r++) { statement; }                                        \
        }                                                                                                              \
    }                                                                                                                  \
    break;
#define VPPS_ROWS_CASE(slot, word, steps, stride)                                                                      \
    case slot:                                                                                                         \
        VPPS_EACH(steps, value[v * VPPS_RPW + r] = fmaf(w[word + r * stride + j], x[v][j], value[v * VPPS_RPW + r]))
#define VPPS_COLUMNS_CASE(slot, word, steps, stride)                                                                   \
    case slot:                                                                                                         \
        VPPS_EACH(steps, value[v * VPPS_RPW + r] = fmaf(t[word + r * stride + j], x[v][j], value[v * VPPS_RPW + r]))
#define VPPS_OUTER_CASE(slot, word, steps, stride)                                                                     \
    case slot:                                                                                                         \
        VPPS_EACH(steps,                                                                                               \
                  g[word + r * stride + j] = fmaf(value[v * VPPS_RPW + r], x[v][j], g[word + r * stride + j]))

/* Chunk c of an item, where it is staged: loads the vectors' elements that belong to this lane, then the slot's part. */
#define VPPS_ITEM_CHUNK(c)                                                                                             \
    if (VPPS_CHUNK * (c) >= from && VPPS_CHUNK * (c) < from + length) {                                                \
        float x[VPPS_VECTORS][VPPS_CHUNK_STEPS];                                                                       \
        _Pragma("unroll") for (int v = 0; v < VPPS_VECTORS; v++) {                                                     \
            _Pragma("unroll") for (int j = 0; j < VPPS_CHUNK_STEPS; j++) {                                             \
                x[v][j] = stage[v * length + VPPS_CHUNK * (c) - from + 32 * j + lane];                                 \
            }                                                                                                          \
        }                                                                                                              \
        if (opcode == VPPS_I_AFFINE) {                                                                                 \
            switch (slot) { VPPS_SLOTS_##c(VPPS_ROWS_CASE) default : break; }                                          \
        } else if (opcode == VPPS_I_AFFINE_T) {                                                                        \
            switch (slot) { VPPS_COLUMN_SLOTS_##c(VPPS_COLUMNS_CASE) default : break; }                                \
        } else {                                                                                                       \
            switch (slot) { VPPS_GRADIENT_SLOTS_##c(VPPS_OUTER_CASE) default : break; }                                \
        }                                                                                                              \
    }

/* A product with a slot elsewhere. */
__device__ __forceinline__ void vpps_multiply_elsewhere(const vpps_arguments &a, unsigned slot, const float *stage,
                                                        unsigned from, unsigned length, float (&value)[VPPS_VALUES]) {
    const unsigned lane = vpps_thread() % 32, steps = vpps_slot_table[slot].steps;
#pragma unroll 1
    for (unsigned j = from / 32; j < steps && 32 * j < from + length; j++) {
        const float *x = stage + 32 * j - from + lane;
#pragma unroll
        for (int r = 0; r < VPPS_RPW; r++) {
            const float w = vpps_slot_row(a, slot, r)[32 * j + lane];
#pragma unroll
            for (int v = 0; v < VPPS_VECTORS; v++) {
                value[v * VPPS_RPW + r] = fmaf(w, x[v * length], value[v * VPPS_RPW + r]);
            }
        }
    }
}

/* One warp's items against what is staged: products of the rows w or the columns t, or outer products added to g. */
template <int W, int G, int T>
__device__ __forceinline__ void vpps_run_items(const vpps_arguments &a, const float (&w)[W], float (&g)[G],
                                               const float (&t)[T]) {
    const unsigned warp = vpps_thread() / 32, lane = vpps_thread() % 32, opcode = vpps_b.opcode;
#pragma unroll 1
    for (unsigned i = 0; i < vpps_b.count[warp]; i++) {
        const unsigned number = vpps_b.list[warp][i], item = vpps_b.item[number];
        const unsigned slot = item & 0xffff, source = item >> 16 & 255;
        if (source < vpps_b.staged_first || source >= vpps_b.staged_end) continue;
        const unsigned from = vpps_b.staged_from;
        const unsigned left = VPPS_PAD(vpps_source_elems(a, source)) - from;
        const unsigned length = left < VPPS_STAGE_PIECE ? left : VPPS_STAGE_PIECE;
        const float *stage = vpps_stage + vpps_b.source_at[source];
        float value[VPPS_VALUES]; /* sums, or the rows' gradients */
        const float *gradients = vpps_parts + (item >> 24) * VPPS_VALUES;
#pragma unroll
        for (int k = 0; k < VPPS_VALUES; k++) value[k] = opcode == VPPS_I_OUTER ? gradients[k] : 0.0f;
        if (vpps_is_elsewhere(slot)) {
            vpps_multiply_elsewhere(a, slot, stage, from, length, value);
        } else {
            VPPS_CHUNKS(VPPS_ITEM_CHUNK)
        }
        if (opcode == VPPS_I_OUTER) continue;
        const float sum = vpps_sum_lanes(value);
        if (lane % (32 / VPPS_VALUES) == 0) {
            float *part = vpps_parts + number * VPPS_VALUES + lane / (32 / VPPS_VALUES);
            *part = from ? *part + sum : sum;
        }
    }
}

/* Adds up the terms of a group's value, `part` being the first of them. */
__device__ __forceinline__ float vpps_add_terms(float sum, const float *part, unsigned n_terms) {
#pragma unroll 1
    for (unsigned q = 0; q < n_terms; q++) sum += part[q * VPPS_VALUES];
    return sum;
}

/* AFFINE: outputs are the bias and the terms of every group. */
__device__ __forceinline__ void vpps_finish_outputs(const vpps_arguments &a) {
    float *pool = (float *)a.pool;
    const unsigned vector = vpps_b.vector, n = vpps_vectors_now();
#pragma unroll 1
    for (unsigned i = vpps_thread(); i < vpps_b.n_groups * VPPS_VALUES; i += VPPS_THREADS) {
        const unsigned group = i / VPPS_VALUES, value = i % VPPS_VALUES, v = value / VPPS_RPW, r = value % VPPS_RPW;
        const vpps_groups *span = &vpps_b.span[vpps_b.group_span[group]];
        const unsigned *output = vpps_output_of(a, span->destination);
        const vpps_rows own = vpps_rows_of(output[3]);
        const unsigned row = own.first + (span->piece + group - span->group) * VPPS_RPW + r;
        if (v >= n || row >= own.end) continue;
        const float *part = vpps_parts + (span->item + (group - span->group) * span->n_terms) * VPPS_VALUES + value;
        const float bias = output[2] != VPPS_NONE ? pool[vpps_param_of(a, output[2])->values + row] : 0.0f;
        pool[output[0] + (vector + v) * output[3] + row] = vpps_add_terms(bias, part, span->n_terms);
    }
}

/* AFFINE_T: adds the terms of every group to the lists' gradients. Members of a list may share one gradient (a word that
 * occurs twice), so the first of them adds for all; so may members of two lists, so the lists take turns. */
__device__ __forceinline__ void vpps_finish_gradients(const vpps_arguments &a) {
    const unsigned vector = vpps_b.vector, n = vpps_vectors_now();
#pragma unroll 1
    for (unsigned s = 0; s < vpps_b.n_spans; s++) {
        const vpps_groups *span = &vpps_b.span[s];
        const unsigned *list = vpps_list_of(a, span->destination);
        const unsigned *offsets = (const unsigned *)a.script + list[1] + vector;
        const vpps_rows own = vpps_rows_of(list[3]);
#pragma unroll 1
        for (unsigned i = vpps_thread(); i < span->n_pieces * VPPS_VALUES; i += VPPS_THREADS) {
            const unsigned group = i / VPPS_VALUES, v = i % VPPS_VALUES / VPPS_RPW, r = i % VPPS_RPW;
            const unsigned row = own.first + (span->piece + group) * VPPS_RPW + r;
            bool adds = v < n && row < own.end;
#pragma unroll 1
            for (unsigned u = 0; u < v && adds; u++) adds = offsets[u] != offsets[v];
            if (!adds) continue;
            const float *part = vpps_parts + (span->item + group * span->n_terms) * VPPS_VALUES + r;
            float *y = (float *)a.pool + offsets[v] + row, sum = *y;
#pragma unroll 1
            for (unsigned u = v; u < n; u++) {
                if (offsets[u] == offsets[v]) sum = vpps_add_terms(sum, part + u * VPPS_RPW, span->n_terms);
            }
            *y = sum;
        }
        __syncthreads();
    }
}

/* Gradients of biases: own rows. Outputs may share a bias: a row is the same thread's in all of them. */
__device__ __forceinline__ void vpps_add_biases(const vpps_arguments &a) {
    float *pool = (float *)a.pool;
#pragma unroll 1
    for (unsigned s = 0; s < vpps_b.n_spans; s++) {
        const vpps_groups *span = &vpps_b.span[s];
        const unsigned *output = vpps_output_of(a, span->destination);
        const vpps_rows own = vpps_rows_of(output[3]);
        const unsigned first = span->piece * VPPS_RPW, end = first + span->n_pieces * VPPS_RPW;
        if (output[2] == VPPS_NONE) continue;
#pragma unroll 1
        for (unsigned i = vpps_thread(); i < end && own.first + i < own.end; i += VPPS_THREADS) {
            if (i < first) continue;
            const float *part = vpps_parts + (span->group + (i - first) / VPPS_RPW) * VPPS_VALUES + i % VPPS_RPW;
            float sum = 0.0f;
#pragma unroll
            for (int v = 0; v < VPPS_VECTORS; v++) sum += part[v * VPPS_RPW];
            atomicAdd(pool + vpps_param_of(a, output[2])->gradient + own.first + i, sum); /* does not wait for it */
        }
    }
}

/* ---------------------------------------------------------------- AFFINE_P: columns added up */

#define VPPS_WARP_PIECE (VPPS_STAGE / VPPS_WARPS / VPPS_CHUNK * VPPS_CHUNK) /* columns that every warp adds up at a time */

#define VPPS_PARTIAL_CASE(slot, word, steps, stride)                                                                   \
    case slot:                                                                                                         \
        _Pragma("unroll") for (int j = 0; j < steps; j++) {                                                            \
            _Pragma("unroll") for (int r = 0; r < VPPS_RPW; r++) s[j] = fmaf(w[word + r * stride + j], d[r], s[j]);    \
        }                                                                                                              \
        break;
#define VPPS_PARTIAL_CHUNK(c)                                                                                          \
    if (VPPS_CHUNK * (c) >= from && VPPS_CHUNK * (c) < from + VPPS_WARP_PIECE) {                                       \
        float s[VPPS_CHUNK_STEPS], *to = sums + VPPS_CHUNK * (c) - from + lane;                                        \
        _Pragma("unroll") for (int j = 0; j < VPPS_CHUNK_STEPS; j++) s[j] = to[32 * j];                                \
        switch (slot) { VPPS_SLOTS_##c(VPPS_PARTIAL_CASE) default : break; }                                           \
        _Pragma("unroll") for (int j = 0; j < VPPS_CHUNK_STEPS; j++) to[32 * j] = s[j];                                \
    }

/* This warp's share of VPPS_WARP_PIECE columns of a list's vector: its items' rows times gradients. */
template <int W>
__device__ __forceinline__ void vpps_partial_items(const vpps_arguments &a, const float (&w)[W]) {
    const unsigned warp = vpps_thread() / 32, lane = vpps_thread() % 32, from = vpps_b.partial_from;
    float *sums = vpps_stage + warp * VPPS_WARP_PIECE;
#pragma unroll 1
    for (unsigned i = lane; i < VPPS_WARP_PIECE; i += 32) sums[i] = 0.0f;
    __syncwarp();
#pragma unroll 1
    for (unsigned i = 0; i < vpps_b.count[warp]; i++) {
        const unsigned item = vpps_b.item[vpps_b.list[warp][i]], slot = item & 0xffff;
        if ((item >> 16 & 255) != vpps_b.partial_list) continue;
        const float *part = vpps_parts + (item >> 24) * VPPS_VALUES + vpps_b.partial_vector * VPPS_RPW;
        float d[VPPS_RPW];
#pragma unroll
        for (int r = 0; r < VPPS_RPW; r++) d[r] = part[r];
        if (!vpps_is_elsewhere(slot)) {
            VPPS_CHUNKS(VPPS_PARTIAL_CHUNK)
            continue;
        }
#pragma unroll 1
        for (unsigned j = from / 32; j < vpps_slot_table[slot].steps && 32 * j < from + VPPS_WARP_PIECE; j++) {
            float sum = sums[32 * j - from + lane];
#pragma unroll
            for (int r = 0; r < VPPS_RPW; r++) sum = fmaf(vpps_slot_row(a, slot, r)[32 * j + lane], d[r], sum);
            sums[32 * j - from + lane] = sum;
        }
    }
}

/* The warps' shares added up, into the VP's; in a bundle's later rounds they are added to what is there. */
__device__ __forceinline__ void vpps_finish_partial(const vpps_arguments &a, const unsigned *list) {
    const unsigned elems = list[3], members = ((const unsigned *)a.script)[list[0] - 1];
    const unsigned long long member =
        (unsigned long long)vpps_vp() * members + vpps_b.vector + vpps_b.partial_vector;
    float *to = (float *)a.pool + list[2] + member * elems;
#pragma unroll 1
    for (unsigned i = vpps_thread(); i < VPPS_WARP_PIECE && vpps_b.partial_from + i < elems; i += VPPS_THREADS) {
        float *at = to + vpps_b.partial_from + i, sum = vpps_b.begun ? *at : 0.0f;
#pragma unroll 1
        for (unsigned k = 0; k < VPPS_WARPS; k++) sum += vpps_stage[k * VPPS_WARP_PIECE + i];
        *at = sum;
    }
}

/* To the next columns, vector, list. One thread. */
__device__ __forceinline__ void vpps_advance_partial(const unsigned *list) {
    vpps_b.partial_from += VPPS_WARP_PIECE;
    if (list[1] && vpps_b.partial_from < list[3]) return;
    vpps_b.partial_from = 0;
    vpps_b.partial_vector++;
    if (list[1] && vpps_b.partial_vector < vpps_vectors_now()) return;
    vpps_b.partial_vector = 0;
    vpps_b.partial_list++;
}

/* The VP's shares for every list that has gradients. */
template <int W>
__device__ __forceinline__ void vpps_add_columns(const vpps_arguments &a, const float (&w)[W]) {
    if (vpps_thread() == 0) vpps_b.partial_list = vpps_b.partial_vector = vpps_b.partial_from = 0;
    __syncthreads();
    while (vpps_b.partial_list < vpps_b.n_lists) {
        const unsigned *list = vpps_list_of(a, vpps_b.partial_list);
        if (list[1]) {
            vpps_partial_items(a, w);
            __syncthreads();
            vpps_finish_partial(a, vpps_list_of(a, vpps_b.partial_list));
        }
        __syncthreads();
        if (vpps_thread() == 0) vpps_advance_partial(vpps_list_of(a, vpps_b.partial_list));
        __syncthreads();
    }
}

/* ---------------------------------------------------------------- AFFINE, AFFINE_T, AFFINE_P, OUTER */

/* The instruction's words are in vpps_b: beside the weights there are no registers to keep them in. */
template <int W, int G, int T>
__device__ __forceinline__ void vpps_run_bundle(const vpps_arguments &a, const float (&w)[W], float (&g)[G],
                                                const float (&t)[T]) {
    bool ready = vpps_ready_round(a);
    do {
        if (!ready) vpps_next_round(a);
        if (vpps_thread() == 0) vpps_b.vector = vpps_b.first;
        __syncthreads();
        while (vpps_b.vector < vpps_b.end) {
            if (vpps_b.opcode == VPPS_I_AFFINE_P || vpps_b.opcode == VPPS_I_OUTER) vpps_load_gradients(a);
            if (vpps_b.opcode == VPPS_I_OUTER) vpps_add_biases(a);
            if (vpps_b.opcode == VPPS_I_AFFINE_P) {
                vpps_add_columns(a, w);
            } else {
#pragma unroll 1
                for (bool start = true; vpps_stage_next(a, start); start = false) vpps_run_items(a, w, g, t);
                if (vpps_b.opcode == VPPS_I_AFFINE) vpps_finish_outputs(a);
                if (vpps_b.opcode == VPPS_I_AFFINE_T) vpps_finish_gradients(a);
            }
            __syncthreads();
            if (vpps_thread() == 0) vpps_b.vector += VPPS_VECTORS;
            __syncthreads();
        }
        ready = false;
    } while (vpps_more_rounds(a));
}

/* ---------------------------------------------------------------- OUTER for the host, REDUCE_P */

/* Where the host makes the products: gathers the lists' vectors, dealt out over the VPs, and adds the biases' gradients,
 * a warp for every own row. */
__device__ __forceinline__ void vpps_gather(const vpps_arguments &a, unsigned first, unsigned count, unsigned bundle) {
    float *pool = (float *)a.pool;
    const unsigned *script = (const unsigned *)a.script, *words = script + bundle;
    const unsigned warp = vpps_thread() / 32, lane = vpps_thread() % 32;
#pragma unroll 1
    for (unsigned l = 0; l < words[0]; l++) {
        const unsigned *list = words + 2 + 4 * l, elems = list[3], copy = script[list[0] - 2];
#pragma unroll 1
        for (unsigned j = first + vpps_vp(); j < first + count; j += VPPS_VPS) {
            const float *from = pool + script[list[0] + j];
            float *to = pool + copy + (unsigned long long)j * elems;
#pragma unroll 1
            for (unsigned i = vpps_thread(); i < elems; i += VPPS_THREADS) to[i] = from[i];
        }
    }
    const unsigned *output = words + 2 + 4 * words[0];
#pragma unroll 1
    for (unsigned o = 0; o < words[1]; o++, output += 5 + 2 * output[4]) {
        const vpps_rows own = vpps_rows_of(output[3]);
        if (output[2] == VPPS_NONE) continue;
#pragma unroll 1
        for (unsigned row = own.first + warp; row < own.end; row += VPPS_WARPS) {
            float sum = 0.0f;
#pragma unroll 1
            for (unsigned j = first + lane; j < first + count; j += 32) sum += pool[output[1] + j * output[3] + row];
            sum = vpps_warp_sum(sum);
            if (lane == 0) pool[vpps_param_of(a, output[2])->gradient + row] += sum;
        }
    }
}

/* Lanes take the VPs' shares of an element. Members of lists may share one gradient, so what a gradient is added to by is
 * the same warp each time; the lanes look for a warp's members together. */
__device__ __forceinline__ void vpps_reduce(const vpps_arguments &a, unsigned first, unsigned count, unsigned bundle) {
    float *pool = (float *)a.pool;
    const unsigned *script = (const unsigned *)a.script, *words = script + bundle;
    const unsigned warp = vpps_thread() / 32, lane = vpps_thread() % 32;
#pragma unroll 1
    for (unsigned l = 0; l < words[0]; l++) {
        const unsigned *list = words + 2 + 4 * l, elems = list[3], members = script[list[0] - 1];
        const vpps_rows own = vpps_rows_of(elems);
        if (!list[1] || own.first == own.end) continue;
#pragma unroll 1
        for (unsigned start = 0; start < count; start += 32) {
            const bool there = start + lane < count;
            const unsigned gradient = there ? script[list[1] + first + start + lane] : 0;
            unsigned mine = __ballot_sync(0xffffffffu, there && gradient / elems % VPPS_WARPS == warp);
#pragma unroll 1
            for (; mine; mine &= mine - 1) {
                const unsigned k = __ffs(mine) - 1, j = first + start + k;
                float *to = pool + __shfl_sync(0xffffffffu, gradient, k);
#pragma unroll 1
                for (unsigned row = own.first; row < own.end; row++) {
                    const float *share = pool + list[2] + (unsigned long long)j * elems + row;
                    float sum = 0.0f;
#pragma unroll 1
                    for (unsigned vp = lane; vp < VPPS_VPS; vp += 32) {
                        sum += share[(unsigned long long)vp * members * elems];
                    }
                    sum = vpps_warp_sum(sum);
                    if (lane == 0) to[row] += sum;
                }
            }
        }
    }
}
