/* mutate.c - see mutate.h. Changes scripts: tasks, their barriers, and single words. */
#include "mutate.h"
#include "common/testing.h"

/* ---------------------------------------------------------------- tasks come and go: they are last in a script */

static bool find_sites(editor *e) {
    const uint32_t *starts = vpps_task_starts(e->script);
    e->n_sites = 0;
    for (uint32_t g = 0; g < editor_header(e)->n_groups; g++) {
        for (uint32_t at = starts[g]; at < starts[g + 1]; at += VPPS_TASK_WORDS) {
            if (!VPPS_RESERVE(e->sites, e->n_sites + 1)) return false;
            e->sites[e->n_sites++] = (site){at, g};
        }
    }
    return true;
}

bool editor_open(editor *e, const subject *of, uint64_t seed) {
    *e = (editor){.of = of, .random = seed};
    if (!VPPS_RESERVE(e->script, of->words + 64)) return false;
    memcpy(e->script, of->script, of->words * sizeof *e->script);
    e->words = of->words;
    return find_sites(e);
}

void editor_close(editor *e) {
    VPPS_FREE_ARRAYS(e->script);
    VPPS_FREE_ARRAYS(e->sites);
}

/* Notes that so many words were added after address `at`. */
static bool finish(editor *e, uint32_t at, int32_t words) {
    uint32_t *starts = e->script + VPPS_TASK_HEADER_WORDS;
    e->words += (size_t)words;
    for (uint32_t g = 0; g <= editor_header(e)->n_groups; g++)
        if (starts[g] > at) starts[g] += (uint32_t)words;
    editor_header(e)->words = (uint32_t)e->words;
    return find_sites(e);
}

bool editor_insert(editor *e, uint32_t at, const vpps_task *task) {
    const vpps_task copy = *task; /* the task may be one of the script */
    if (!VPPS_RESERVE(e->script, e->words + VPPS_TASK_WORDS)) return false;
    memmove(editor_task(e, at + VPPS_TASK_WORDS), editor_task(e, at), (e->words - at) * sizeof *e->script);
    *editor_task(e, at) = copy;
    return finish(e, at, VPPS_TASK_WORDS);
}

bool editor_remove(editor *e, uint32_t at) {
    const uint32_t next = at + VPPS_TASK_WORDS;
    memmove(editor_task(e, at), editor_task(e, next), (e->words - next) * sizeof *e->script);
    return finish(e, at, -VPPS_TASK_WORDS);
}

static uint32_t below(editor *e, uint32_t n) { return vpps_random_below(&e->random, n); }

static vpps_task *task_of(editor *e, const site *s) { return editor_task(e, s->at); }

enum {
    STAGES = 1 << VPPS_TASK_STAGE,
    CONSTANTS = 1 << VPPS_TASK_CONSTANTS,
    UPDATES = 1 << VPPS_TASK_NORM | 1 << VPPS_TASK_UPDATE | 1 << VPPS_TASK_ENTRIES | 1 << VPPS_TASK_OUTER |
              1 << VPPS_TASK_LOSS,
    WORK = STAGES | CONSTANTS | UPDATES,
    ANY = (1 << VPPS_TASK_COUNT) - 1,
    WAITS = ANY + 1,    /* any that waits */
    SIGNALS = 2 * WAITS /* any that signals */
};

static bool is_any_of(const vpps_task *t, uint32_t kinds) {
    return kinds >> t->kind & 1 || (kinds & WAITS && t->wait != VPPS_NO_BARRIER) ||
           (kinds & SIGNALS && t->signal != VPPS_NO_BARRIER);
}

/* Returns a random task of these kinds (bits); NULL: there is none. */
static const site *pick(editor *e, uint32_t kinds) {
    uint32_t n = 0;
    const site *chosen = NULL;
    for (size_t i = 0; i < e->n_sites; i++)
        if (is_any_of(task_of(e, &e->sites[i]), kinds) && below(e, ++n) == 0) chosen = &e->sites[i];
    return chosen;
}

static bool drop(editor *e, uint32_t kinds) {
    const site *s = pick(e, kinds);
    return s && editor_remove(e, s->at);
}

static void wait_for_nothing(vpps_task *t) {
    t->wait = VPPS_NO_BARRIER;
    t->signals = 0;
}

enum { SIGNAL = 1, WAIT = 2, LOWER = 4 };

/* Drops a task's signal, its wait, or its wait and the signal of the preceding task. LOWER: others no longer wait for the signal. */
static bool drop_barrier(editor *e, uint32_t what) {
    const site *s = pick(e, what & WAIT ? WAITS : SIGNALS), *signals = what == (SIGNAL | WAIT) ? s - 1 : s;
    if (!s || (what == (SIGNAL | WAIT) && (s == e->sites || task_of(e, signals)->signal == VPPS_NO_BARRIER)))
        return false;
    const uint32_t barrier = task_of(e, signals)->signal, size = editor_header(e)->n_vps / editor_header(e)->n_groups;
    if (what & WAIT) wait_for_nothing(task_of(e, s));
    if (what & SIGNAL) task_of(e, signals)->signal = VPPS_NO_BARRIER;
    for (size_t i = 0; what & LOWER && i < e->n_sites; i++) {
        vpps_task *t = task_of(e, &e->sites[i]);
        if (t->wait == barrier) t->signals -= size;
    }
    return true;
}

/* Words of a task, as bits. */
enum { WORKS = 0xf8f, WAITINGS = 0x30, SIGNALLING = 0x40, WHOLE = WORKS | WAITINGS | SIGNALLING };
_Static_assert(offsetof(vpps_task, wait) == 4 * 4 && offsetof(vpps_task, signal) == 6 * 4,
               "of wait and signals; of signal");

/* Exchanges words of a task with the next task of its group. */
static bool exchange(editor *e, uint32_t words) {
    const site *s = pick(e, words == WAITINGS ? WAITS : ANY);
    if (!s || s + 1 == e->sites + e->n_sites || s[1].group != s->group) return false;
    uint32_t *a = e->script + s[0].at, *b = e->script + s[1].at;
    for (uint32_t w = 0; w < VPPS_TASK_WORDS; w++) {
        const uint32_t first = a[w];
        if (!(words >> w & 1)) continue;
        a[w] = b[w];
        b[w] = first;
    }
    return true;
}

/* Changes a task to one of the first `n` kinds; 0: it does nothing. */
static bool change_kind(editor *e, uint32_t n) {
    const site *s = pick(e, WORK);
    if (s) task_of(e, s)->kind = n ? below(e, n) : VPPS_TASK_NOTHING;
    return s != NULL;
}

static bool duplicate(editor *e, uint32_t kinds) {
    const site *s = pick(e, kinds);
    if (!s) return false;
    vpps_task copy = *task_of(e, s);
    copy.signal = VPPS_NO_BARRIER;
    return editor_insert(e, s->at, &copy);
}

/* Moves a task to another place. */
static bool move(editor *e, uint32_t kinds) {
    const site *s = pick(e, kinds);
    if (!s) return false;
    const vpps_task task = *task_of(e, s);
    if (!editor_remove(e, s->at)) return false;
    const site *to = pick(e, ANY);
    return to && editor_insert(e, to->at, &task);
}

/* Leaves a vertex out, or divides a stage in two, of which the second begins one vertex too early or too late. */
static bool cut_stage(editor *e, uint32_t kinds) {
    const site *s = pick(e, kinds);
    if (!s || task_of(e, s)->operands[2] < 2) return false;
    const uint32_t at = s->at;
    vpps_task *first = task_of(e, s), second = *first;
    const uint32_t n = 1 + below(e, first->operands[2] - 1);
    second.operands[1] += n + (below(e, 2) ? 1 : UINT32_MAX);
    second.operands[2] -= n;
    wait_for_nothing(&second);
    first->operands[2] = n;
    first->signal = VPPS_NO_BARRIER;
    return editor_insert(e, at + VPPS_TASK_WORDS, &second);
}

/* ---------------------------------------------------------------- words */

/* Changes 1 to `most` random words, each: to any number, by one bit, to another word of the script, to a near number, or to a small one. */
static bool corrupt_words(editor *e, uint32_t most) {
    for (uint32_t n = 1 + below(e, most); n > 0; n--) {
        uint32_t *w = &e->script[below(e, (uint32_t)e->words)];
        switch (below(e, 5)) {
        case 0: *w = (uint32_t)vpps_random(&e->random); break;
        case 1: *w ^= 1u << below(e, 32); break;
        case 2: *w = e->script[below(e, (uint32_t)e->words)]; break;
        case 3: *w = below(e, 16); break;
        default: *w += below(e, 64) - 32; break;
        }
    }
    return true;
}

const mutation mutations[] = {
    {"signal dropped", drop_barrier, SIGNAL, 5},
    {"signal dropped, waits lowered", drop_barrier, SIGNAL | LOWER, 5},
    {"wait dropped", drop_barrier, WAIT, 5},
    {"signal and wait dropped", drop_barrier, SIGNAL | WAIT, 5},
    {"waits of neighbours exchanged", exchange, WAITINGS, 5},
    {"signals of neighbours exchanged", exchange, SIGNALLING, 5},
    {"neighbours exchanged", exchange, WHOLE, 5},
    {"neighbours exchanged between their barriers", exchange, WORKS, 5},
    {"stage dropped", drop, STAGES, 5},
    {"gradient, norm, loss or update dropped", drop, UPDATES, 5},
    {"constants dropped", drop, CONSTANTS, 5},
    {"task done twice", duplicate, WORK, 5},
    {"task moved", move, WORK, 5},
    {"task not done", change_kind, 0, 5},
    {"task of another kind", change_kind, VPPS_TASK_COUNT, 5},
    {"stage cut in two wrongly", cut_stage, STAGES, 5},
    {"word", corrupt_words, 1, 70},
    {"several words", corrupt_words, 6, 20},
};
const size_t n_mutations = VPPS_COUNT(mutations);
