/* words.c - tracks every word of device memory: its tensor, its writer, its readers since the write, and whether barriers order
 * these accesses. Each group of threads or CTAs has a vector clock (Mattern 1989): for each other group, the number of its tasks
 * that barriers order before the group's next task. Processors of a group share a clock, since they run the same tasks. */
#include "script/verify/checker.h"

#include <inttypes.h>

bool vpps_check_open_pool(vpps_checker *c) {
    vpps_reader_sets *sets = &c->sets;
    c->pool = vpps_check_zeros(c, c->pool_words, sizeof *c->pool);
    if (!c->pool || !VPPS_RESERVE(sets->first, 2)) {
        c->status = VPPS_MEMORY;
        return false;
    }
    sets->n = 1; /* makes the empty set, number 0 */
    sets->first[0] = sets->first[1] = 0;
    return true;
}

void vpps_check_close_pool(vpps_checker *c) {
    vpps_reader_sets *sets = &c->sets;
    VPPS_FREE_ARRAYS(sets->readers, sets->first, sets->scratch);
    vpps_index_free(&sets->numbers);
    *sets = (vpps_reader_sets){0};
}

void vpps_check_act(vpps_checker *c, uint32_t unit) {
    c->actor = (vpps_actor){unit, c->group, c->streams[c->group].place};
    c->memo.valid = false;
}

static bool is_group(const vpps_checker *c, uint32_t unit) { return unit >= c->n_vps; }
static uint32_t group_of(const vpps_checker *c, uint32_t unit) {
    return is_group(c, unit) ? unit - c->n_vps : unit / c->group_size;
}

/* Returns whether barriers make task `place` of `unit` (thread, CTA, or group of them) precede the task of c->actor. */
static bool comes_before(const vpps_checker *c, uint32_t unit, uint32_t place) {
    const uint32_t group = group_of(c, unit);
    if (unit == c->actor.unit && !is_group(c, unit)) return place < c->actor.place;
    return place < c->known[(size_t)c->actor.group * c->n_groups + group];
}

static bool write_comes_before(const vpps_checker *c, const vpps_word *w) {
    return !w->writer || comes_before(c, w->writer - 1, w->written);
}

static uint64_t hash_set(const vpps_reader *readers, uint32_t n) {
    uint64_t h = n;
    for (uint32_t i = 0; i < n; i++) h = vpps_mix64(h + ((uint64_t)readers[i].unit << 32 | readers[i].place));
    return h;
}

static uint32_t set_size(const vpps_reader_sets *s, uint32_t set) { return s->first[set + 1] - s->first[set]; }

static uint32_t intern_set(vpps_reader_sets *s, const vpps_reader *readers, uint32_t n) {
    const uint64_t hash = hash_set(readers, n);
    for (uint32_t at = vpps_index_first(hash), set; (set = vpps_index_next(&s->numbers, hash, &at)) != UINT32_MAX;)
        if (set_size(s, set) == n && !memcmp(s->readers + s->first[set], readers, n * sizeof *readers)) return set;
    const size_t first = s->first[s->n];
    if (first + n > UINT32_MAX || !VPPS_RESERVE(s->readers, first + n) || !VPPS_RESERVE(s->first, s->n + 2u) ||
        !vpps_index_add(&s->numbers, hash, s->n))
        return VPPS_NONE;
    memcpy(s->readers + first, readers, n * sizeof *readers);
    s->first[s->n + 1] = (uint32_t)(first + n);
    return s->n++;
}

/* Returns the set of readers plus the current reader. Drops readers that barriers order before the current one: a later write that comes after the
 * current reader comes after the dropped ones, too. */
static uint32_t add_reader(vpps_checker *c, uint32_t set) {
    vpps_reader_sets *s = &c->sets;
    const uint32_t n = set_size(s, set);
    if (!VPPS_RESERVE(s->scratch, n + 1u)) return VPPS_NONE;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        const vpps_reader r = s->readers[s->first[set] + i];
        const bool mine =
            r.unit == c->actor.unit || (is_group(c, c->actor.unit) && group_of(c, r.unit) == c->actor.group);
        if (!mine && !comes_before(c, r.unit, r.place)) s->scratch[kept++] = r;
    }
    s->scratch[kept++] = (vpps_reader){c->actor.unit, c->actor.place};
    return intern_set(s, s->scratch, kept);
}

/* Returns whether barriers make all readers of a memory word precede its writer c->actor (a thread, CTA or group of
 * them); own: the writer itself may read the word in the writing task. */
static bool readers_come_before(const vpps_checker *c, uint32_t set, bool own) {
    const vpps_reader_sets *s = &c->sets;
    for (uint32_t i = s->first[set]; i < s->first[set + 1]; i++) {
        const vpps_reader r = s->readers[i];
        if (own && r.unit == c->actor.unit && r.place == c->actor.place) continue;
        if (!comes_before(c, r.unit, r.place)) return false;
    }
    return true;
}

void vpps_check_describe(const vpps_checker *c, uint32_t tensor, uint32_t offset, char *text, size_t size) {
    const vpps_tensor *t = &c->tensors[tensor];
    const vpps_checked_block *b =
        t->kind == VPPS_TENSOR_KEPT || t->kind == VPPS_TENSOR_CONTRIBUTION ? &c->blocks[t->block] : NULL;
    const uint32_t item = t->stride && offset >= t->offset ? t->first + (offset - t->offset) / t->stride : 0;
    switch (t->kind) {
    case VPPS_TENSOR_INITIAL:
        snprintf(text, size, "%s", offset < c->target->batch ? "a parameter" : "a value that was never written");
        break;
    case VPPS_TENSOR_KEPT:
        snprintf(text, size, "value %u of %s, block %u, item %u", t->index, b->cell->c->name, t->block, item);
        break;
    case VPPS_TENSOR_CONTRIBUTION:
        snprintf(text, size, "contribution %u (share %u) of %s, block %u, item %u", t->index, t->share,
                 b->cell->c->name, t->block, item);
        break;
    case VPPS_TENSOR_CONSTANT: snprintf(text, size, "the constant %g", (double)vpps_bits_float(t->index)); break;
    case VPPS_TENSOR_GIVEN:
        if (t->index == VPPS_NONE)
            snprintf(text, size, "the loss that the host gives");
        else
            snprintf(text, size, "the gradient that the host gives of output %u", t->index);
        break;
    case VPPS_TENSOR_ENTRY: snprintf(text, size, "the gradient of entry %u of table %u", item, t->index); break;
    default: snprintf(text, size, "a parameter after its update"); break;
    }
}

static bool refuse_content(vpps_checker *c, uint32_t offset, uint32_t want) {
    char is[160], expected[160];
    vpps_check_describe(c, c->pool[offset].tensor, offset, is, sizeof is);
    vpps_check_describe(c, want, offset, expected, sizeof expected);
    return VPPS_REFUSE(c, "word %u holds %s; expected %s", offset, is, expected);
}

static bool refuse_order(vpps_checker *c, uint32_t offset, const char *accesses) {
    char text[160];
    vpps_check_describe(c, c->pool[offset].tensor, offset, text, sizeof text);
    return VPPS_REFUSE(c, "word %u (%s) is %s without a barrier in between", offset, text, accesses);
}

static bool is_inside(vpps_checker *c, uint32_t offset, uint32_t n) {
    if ((uint64_t)offset + n <= c->pool_words) return true;
    return VPPS_REFUSE(c, "words %u to %" PRIu64 " are outside the pool, which has %u", offset, (uint64_t)offset + n,
                       c->pool_words);
}

bool vpps_check_read(vpps_checker *c, uint32_t offset, uint32_t n, uint32_t tensor) {
    if (!is_inside(c, offset, n)) return false;
    for (uint32_t i = offset; i < offset + n; i++) {
        vpps_word *w = &c->pool[i];
        if (!c->memo.valid || c->memo.tensor != tensor || memcmp(w, &c->memo.word, sizeof *w) != 0) {
            c->memo.valid = false;
            if (w->tensor != tensor) return refuse_content(c, i, tensor);
            if (!write_comes_before(c, w)) return refuse_order(c, i, "written and read");
            const uint32_t result = add_reader(c, w->readers);
            if (result == VPPS_NONE) return c->status = VPPS_MEMORY, false;
            c->memo.word = *w;
            c->memo.tensor = tensor;
            c->memo.result = result;
            c->memo.valid = true;
        }
        w->readers = c->memo.result;
    }
    return true;
}

/* Returns whether a word's old value and the value that overwrites it belong to one vertex (or one node of a list). */
static bool in_own_record(const vpps_checker *c, const vpps_word *w, uint32_t offset, uint32_t tensor, uint32_t item) {
    const vpps_tensor *t = &c->tensors[w->tensor], *to = &c->tensors[tensor];
    return t->kind == VPPS_TENSOR_KEPT && to->kind == VPPS_TENSOR_KEPT && t->block == to->block &&
           t->stride == to->stride && t->stride && t->first + (offset - t->offset) / t->stride == item;
}

bool vpps_check_write(vpps_checker *c, uint32_t offset, uint32_t n, uint32_t tensor, uint32_t item) {
    if (!is_inside(c, offset, n)) return false;
    for (uint32_t i = offset; i < offset + n; i++) {
        vpps_word *w = &c->pool[i];
        if (!write_comes_before(c, w)) return refuse_order(c, i, "written twice");
        if (w->readers && !readers_come_before(c, w->readers, in_own_record(c, w, i, tensor, item)))
            return refuse_order(c, i, "read and overwritten");
        *w = (vpps_word){.tensor = tensor, .writer = c->actor.unit + 1, .written = c->actor.place};
    }
    return true;
}
