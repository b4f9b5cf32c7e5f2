/* verify_shadow.c - the shadow memory: what each word holds, and whether accesses are ordered.
 *
 * Order is happens-before by vector clocks. A word keeps the epoch of its last write and the set of reads since then
 * (Flanagan and Freund 2009, "FastTrack", with read sets interned instead of inflated word by word: whole vectors are
 * read alike). Barriers are the only edges between VPs, so if all accesses are ordered in one run, they are in all.
 */
#include "nodes/verify/verify.h"

/* ---------------------------------------------------------------- clocks */

static uint32_t *clock_of(const vpps_verifier *v, uint32_t vp) { return v->clocks + (size_t)vp * v->n_vps; }

/* Results remembered for runs of equal words hold until the clocks change. */
static void forget_results(vpps_verifier *v) { v->seen_set = v->clear_set = v->clear_write = UINT32_MAX; }

void vpps_verify_switch(vpps_verifier *v, uint32_t vp) {
    v->vp = vp;
    v->epoch = vp << VPPS_CLOCK_BITS | clock_of(v, vp)[vp];
    forget_results(v);
}

void vpps_verify_signal(vpps_verifier *v, uint32_t barrier) {
    uint32_t *clock = clock_of(v, v->vp), *at = v->barrier_clocks + (size_t)barrier * v->n_vps;
    for (uint32_t i = 0; i < v->n_vps; i++) at[i] = vpps_max_u32(at[i], clock[i]);
    clock[v->vp]++; /* what comes later is not covered */
    v->barrier_count[barrier]++;
    vpps_verify_switch(v, v->vp);
}

void vpps_verify_acquire(vpps_verifier *v, uint32_t barrier) {
    uint32_t *clock = clock_of(v, v->vp), *at = v->barrier_clocks + (size_t)barrier * v->n_vps;
    for (uint32_t i = 0; i < v->n_vps; i++) clock[i] = vpps_max_u32(clock[i], at[i]);
    forget_results(v);
}

static uint32_t epoch_vp(uint32_t epoch) { return epoch >> VPPS_CLOCK_BITS; }

static bool is_before(const vpps_verifier *v, uint32_t epoch) {
    return clock_of(v, v->vp)[epoch_vp(epoch)] >= (epoch & ((1u << VPPS_CLOCK_BITS) - 1));
}

/* ---------------------------------------------------------------- sets of readers */

static bool equal_set(const vpps_reader_sets *s, uint32_t set, const uint32_t *epochs, uint32_t n) {
    return s->first[set + 1] - s->first[set] == n && memcmp(s->epochs + s->first[set], epochs, n * sizeof *epochs) == 0;
}

static uint32_t hash_set(const uint32_t *epochs, uint32_t n) {
    uint64_t h = n;
    for (uint32_t i = 0; i < n; i++) h = vpps_mix64(h ^ epochs[i]);
    return (uint32_t)h;
}

static bool grow_set_table(vpps_reader_sets *s) {
    uint32_t size = s->table_size ? s->table_size * 2 : 1024;
    uint32_t *table = calloc(size, sizeof *table);
    if (!table) return false;
    free(s->table);
    s->table = table;
    s->table_size = size;
    for (uint32_t i = 0; i < s->n_sets; i++) {
        uint32_t at = hash_set(s->epochs + s->first[i], s->first[i + 1] - s->first[i]) & (size - 1);
        while (table[at]) at = (at + 1) & (size - 1);
        table[at] = i + 1;
    }
    return true;
}

/* The number of the set with these epochs, new or known; UINT32_MAX: out of memory. */
static uint32_t intern_set(vpps_reader_sets *s, const uint32_t *epochs, uint32_t n) {
    if (s->n_sets * 2 >= s->table_size && !grow_set_table(s)) return UINT32_MAX;
    uint32_t at = hash_set(epochs, n) & (s->table_size - 1);
    for (; s->table[at]; at = (at + 1) & (s->table_size - 1)) {
        if (equal_set(s, s->table[at] - 1, epochs, n)) return s->table[at] - 1;
    }
    uint32_t used = s->n_sets ? s->first[s->n_sets] : 0;
    if (!VPPS_RESERVE(s->first, s->first_capacity, s->n_sets + (size_t)2) ||
        !VPPS_RESERVE(s->epochs, s->epochs_capacity, (size_t)used + n + 1)) {
        return UINT32_MAX;
    }
    s->first[s->n_sets] = used;
    if (n) memcpy(s->epochs + used, epochs, n * sizeof *epochs);
    s->first[s->n_sets + 1] = used + n;
    s->table[at] = ++s->n_sets;
    return s->n_sets - 1;
}

/* The set with the running VP's epoch added. Reads that come before it are dropped: who is ordered after this read is
 * ordered after them. */
static uint32_t add_reader(vpps_verifier *v, uint32_t set) {
    if (set == v->seen_set) return v->seen_result;
    vpps_reader_sets *s = &v->sets;
    uint32_t n = 0;
    bool placed = false;
    if (!s->n_sets && intern_set(s, s->scratch, 0) == UINT32_MAX) {
        v->status = VPPS_MEMORY;
        return UINT32_MAX;
    }
    for (uint32_t i = s->first[set]; i < s->first[set + 1]; i++) {
        if (is_before(v, s->epochs[i])) continue;
        if (!placed && s->epochs[i] > v->epoch) {
            s->scratch[n++] = v->epoch;
            placed = true;
        }
        s->scratch[n++] = s->epochs[i];
    }
    if (!placed) s->scratch[n++] = v->epoch;
    v->seen_set = set;
    v->seen_result = intern_set(s, s->scratch, n);
    if (v->seen_result == UINT32_MAX) v->status = VPPS_MEMORY;
    return v->seen_result;
}

/* ---------------------------------------------------------------- accesses */

bool vpps_verify_touch_read(vpps_verifier *v, vpps_shadow *s, const char *what, uint32_t offset) {
    if (s->write != v->clear_write) {
        if (!is_before(v, s->write)) {
            return VPPS_REFUSE(v, "reads %s %u, which VP %u writes without a barrier between", what, offset,
                               epoch_vp(s->write));
        }
        v->clear_write = s->write;
    }
    s->read = add_reader(v, s->read);
    return s->read != UINT32_MAX;
}

bool vpps_verify_touch_write(vpps_verifier *v, vpps_shadow *s, const char *what, uint32_t offset) {
    if (s->write != v->clear_write) {
        if (!is_before(v, s->write)) {
            return VPPS_REFUSE(v, "writes %s %u, which VP %u writes without a barrier between", what, offset,
                               epoch_vp(s->write));
        }
        v->clear_write = s->write;
    }
    if (s->read && s->read != v->clear_set) {
        for (uint32_t i = v->sets.first[s->read]; i < v->sets.first[s->read + 1]; i++) {
            if (is_before(v, v->sets.epochs[i])) continue;
            return VPPS_REFUSE(v, "writes %s %u, which VP %u reads without a barrier between", what, offset,
                               epoch_vp(v->sets.epochs[i]));
        }
        v->clear_set = s->read;
    }
    s->write = v->epoch;
    s->read = 0;
    return true;
}

bool vpps_verify_inside(vpps_verifier *v, uint64_t offset, uint64_t n) {
    if (offset <= v->pool_words && n <= v->pool_words - offset) return true;
    return VPPS_REFUSE(v, "words %" PRIu64 " to %" PRIu64 " lie outside the pool's %u words", offset, offset + n,
                       v->pool_words);
}

const char *vpps_verify_describe(const vpps_verifier *v, uint32_t token, char *text, size_t size) {
    uint32_t who = token & (VPPS_TOKEN_LIMIT - 1);
    const char *name = who < v->n_nodes ? vpps_ops[vpps_verify_signature(v, who)->op].name : "";
    switch (token & ~(uint32_t)(VPPS_TOKEN_LIMIT - 1)) {
    case VPPS_HOLDS_VALUE: snprintf(text, size, "the value of node %u (%s)", who, name); break;
    case VPPS_HOLDS_INDEX: snprintf(text, size, "the indices of node %u (%s)", who, name); break;
    case VPPS_HOLDS_GRADIENT:
        if (who < v->n_nodes)
            snprintf(text, size, "the gradient of node %u (%s)", who, name);
        else
            snprintf(text, size, "the gradient of vector %s", v->params[who - v->n_nodes].name);
        break;
    case VPPS_HOLDS_ZERO: snprintf(text, size, "zero"); break;
    case VPPS_HOLDS_PARTIAL: snprintf(text, size, "partial sums of the list at %u", who); break;
    case VPPS_HOLDS_NORM: snprintf(text, size, "the norm of VP %u", who); break;
    case VPPS_HOLDS_SPENT: snprintf(text, size, "what an update left"); break;
    default: snprintf(text, size, "what was there before the script"); break;
    }
    return text;
}

static bool refuse_token(vpps_verifier *v, uint32_t offset, uint32_t wanted) {
    char holds[96], wants[96];
    return VPPS_REFUSE(v, "word %u holds %s, not %s", offset,
                       vpps_verify_describe(v, v->pool[offset].token, holds, sizeof holds),
                       vpps_verify_describe(v, wanted, wants, sizeof wants));
}

bool vpps_verify_read(vpps_verifier *v, uint32_t offset, uint32_t n, uint32_t token) {
    if (!vpps_verify_inside(v, offset, n)) return false;
    for (uint32_t i = offset; i < offset + n; i++) {
        if (v->pool[i].token != token) return refuse_token(v, i, token);
        if (!vpps_verify_touch_read(v, &v->pool[i], "word", i)) return false;
    }
    return true;
}

bool vpps_verify_write(vpps_verifier *v, uint32_t offset, uint32_t n, uint32_t token) {
    if (!vpps_verify_inside(v, offset, n)) return false;
    for (uint32_t i = offset; i < offset + n; i++) {
        if (!vpps_verify_touch_write(v, &v->pool[i], "word", i)) return false;
        v->pool[i].token = token;
    }
    return true;
}

/* ---------------------------------------------------------------- values and gradients */

bool vpps_verify_read_value(vpps_verifier *v, uint32_t node, uint32_t from, uint32_t n) {
    uint32_t same = v->same_value[node];
    uint8_t op = vpps_verify_signature(v, same)->op;
    bool given = op == VPPS_OP_LOOKUP || op == VPPS_OP_PARAMETER;
    return vpps_verify_read(v, v->values[node] + from, n, given ? VPPS_HOLDS_INITIAL : VPPS_HOLDS_VALUE | same);
}

bool vpps_verify_write_value(vpps_verifier *v, uint32_t node, uint32_t from, uint32_t n) {
    for (uint32_t i = from; i < from + n; i++) {
        if (vpps_verify_bit(v, v->value_bits[node] + i)) {
            return VPPS_REFUSE(v, "element %u of node %u (%s) is computed a second time", i, node,
                               vpps_ops[vpps_verify_signature(v, node)->op].name);
        }
        vpps_verify_set_bit(v, v->value_bits[node] + i);
    }
    return vpps_verify_write(v, v->values[node] + from, n, VPPS_HOLDS_VALUE | node);
}

/* Zeroed by the script, or a parameter's gradient, which is zero from the start. */
static bool is_zero(const vpps_verifier *v, uint32_t slot, uint32_t token) {
    return token == VPPS_HOLDS_ZERO || (token == VPPS_HOLDS_INITIAL && slot >= v->n_nodes);
}

bool vpps_verify_read_gradient(vpps_verifier *v, uint32_t slot, uint32_t from, uint32_t n) {
    uint32_t root = v->slots[slot].root, token = VPPS_HOLDS_GRADIENT | root;
    const uint32_t start = v->slots[root].start;
    if (!vpps_verify_inside(v, (uint64_t)start + from, n)) return false;
    for (uint32_t i = from; i < from + n; i++) {
        vpps_shadow *s = &v->pool[start + i];
        if (!v->slots[root].required) { /* of no consequence: only ever added to what is of none */
            if (!vpps_verify_touch_read(v, s, "word", start + i)) return false;
            continue;
        }
        bool untouched = is_zero(v, root, s->token) && !v->slots[root].expected && !vpps_verify_expected(v, root, i);
        if (s->token != token && !untouched) return refuse_token(v, start + i, token);
        if (s->token == token && s->count) {
            char text[96];
            return VPPS_REFUSE(v, "element %u of %s lacks %u contributions", i,
                               vpps_verify_describe(v, token, text, sizeof text), s->count);
        }
        if (!vpps_verify_touch_read(v, s, "word", start + i)) return false;
    }
    return true;
}

/* One element's contribution: what the word holds afterwards. */
static bool contribute_element(vpps_verifier *v, uint32_t root, uint32_t element, bool acc) {
    uint32_t offset = v->slots[root].start + element, token = VPPS_HOLDS_GRADIENT | root;
    vpps_shadow *s = &v->pool[offset];
    bool counted = s->token == token;
    if (!vpps_verify_touch_write(v, s, "word", offset)) return false;
    if (!v->slots[root].required) {
        s->token = token;
        return true;
    }
    if (!counted || !acc) {
        uint32_t expected = vpps_verify_expected(v, root, element);
        if (acc && !is_zero(v, root, s->token)) return refuse_token(v, offset, VPPS_HOLDS_ZERO);
        if (counted && s->count < expected) {
            return VPPS_REFUSE(v, "word %u is overwritten, %u contributions to it are lost", offset,
                               expected - s->count);
        }
        s->token = token;
        s->count = expected;
    }
    if (!s->count) return VPPS_REFUSE(v, "word %u gets more contributions than the graph has", offset);
    s->count--;
    return true;
}

bool vpps_verify_contribute(vpps_verifier *v, uint32_t edge, uint32_t from, uint32_t n, int64_t bit, bool acc) {
    uint32_t root = v->slots[v->edges[edge].slot].root;
    if (!vpps_verify_inside(v, (uint64_t)v->slots[root].start + from, n)) return false;
    for (uint32_t i = 0; i < n; i++) {
        if (vpps_verify_bit(v, bit + i) && v->slots[root].required) {
            return VPPS_REFUSE(v, "node %u contributes to element %u of word %u's gradient a second time",
                               v->edges[edge].node, from + i, v->slots[root].start + from + i);
        }
        vpps_verify_set_bit(v, bit + i);
        if (!contribute_element(v, root, from + i, acc)) return false;
    }
    return true;
}

bool vpps_verify_seed(vpps_verifier *v, bool acc) {
    uint32_t root = v->slots[v->slot_of[v->request->loss]].root;
    return vpps_verify_inside(v, v->slots[root].start, 1) && contribute_element(v, root, 0, acc);
}
