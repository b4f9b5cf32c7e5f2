/* verify.c - verifies a script (a batch's program): checks its header, executes its tasks, checks that all is done. */
#include "script/verify/verify.h"

#include "script/verify/checker.h"

#include <inttypes.h>
#include <stdarg.h>

void vpps_check_record(vpps_checker *c, const char *format, ...) {
    if (c->status != VPPS_OK) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(c->reason, sizeof c->reason, format, arguments);
    va_end(arguments);
    c->status = VPPS_SCRIPT;
}

void *vpps_check_zeros(vpps_checker *c, uint64_t n, size_t bytes) {
    void *block = NULL;
    if (n < SIZE_MAX / bytes && VPPS_RESERVE(c->memory, c->n_memory + 1u)) block = calloc(n ? n : 1, bytes);
    if (block)
        c->memory[c->n_memory++] = block;
    else
        c->status = VPPS_MEMORY;
    return block;
}

const uint32_t *vpps_check_words(vpps_checker *c, uint64_t address, uint64_t n, const char *what) {
    if (address <= c->words && n <= c->words - address) return c->script + address;
    vpps_check_record(c, "%s: words %" PRIu64 " to %" PRIu64 " of a script of %zu", what, address, address + n,
                      c->words);
    return NULL;
}

/* ---------------------------------------------------------------- the header */

static bool same(float a, float b) { return memcmp(&a, &b, sizeof a) == 0; }

static bool check_optimizer(vpps_checker *c) {
    const vpps_task_header *h = c->header;
    const vpps_optimizer *o = c->request->optimizer;
    if (h->step != c->request->step) return VPPS_REFUSE(c, "the header has the wrong step");
    if (h->dropout_key[0] != (uint32_t)c->request->dropout_key ||
        h->dropout_key[1] != (uint32_t)(c->request->dropout_key >> 32))
        return VPPS_REFUSE(c, "the header has the wrong dropout key");
    if (!c->training) return !h->update || VPPS_REFUSE(c, "the header has an update in inference");
#define X(name) &&same(h->name, o->name)
    const bool all = h->update == (uint32_t)o->kind + 1 VPPS_OPTIMIZER_NUMBERS(X) && same(h->corrections[0], 0) &&
                     same(h->corrections[1], 0);
#undef X
    if (!all) return VPPS_REFUSE(c, "the header has the wrong optimizer");
    if (h->lasting && c->request->goal != VPPS_GOAL_STEP)
        return VPPS_REFUSE(c, "gradients are left to an update, but there is none");
    const size_t steps = !vpps_goal_updates(c->request->goal) || !c->request->steps
                             ? 0
                             : c->g->model->n_params * sizeof *c->request->steps;
    const uint32_t *given = steps ? vpps_check_words(c, h->steps, steps / sizeof(uint32_t), "parameters' steps") : NULL;
    if (!steps != !h->steps || (given && memcmp(given, c->request->steps, steps) != 0) || (steps && !given))
        return VPPS_REFUSE(c, "wrong numbers for the parameters' steps");
    return !h->guard == !c->request->guard || VPPS_REFUSE(c, "the header has the wrong guard");
}

static bool check_header(vpps_checker *c) {
    if (c->words < VPPS_TASK_HEADER_WORDS) return VPPS_REFUSE(c, "incomplete header");
    const vpps_task_header *h = c->header = vpps_task_header_of(c->script);
    if (h->magic != VPPS_TASK_MAGIC) return VPPS_REFUSE(c, "wrong magic word");
    if (h->words != c->words)
        return VPPS_REFUSE(c, "the header counts %u words, the script has %zu", h->words, c->words);
    if (h->n_vps != c->target->n_vps || !h->n_vps || !h->n_groups || h->n_vps % h->n_groups)
        return VPPS_REFUSE(c, "script for %u VPs in %u groups, the machine has %u VPs", h->n_vps, h->n_groups,
                           c->target->n_vps);
    if (h->pool_words > c->target->pool_words || h->pool_words < c->target->batch)
        return VPPS_REFUSE(c, "script uses %u words of a pool of %u", h->pool_words, c->target->pool_words);
    if (h->n_barriers > c->words) return VPPS_REFUSE(c, "more barriers than words");
    if (h->pairs > VPPS_PAIRS_IN_RUNS) return VPPS_REFUSE(c, "unknown form of pairs");
    c->n_vps = h->n_vps;
    c->n_groups = h->n_groups;
    c->group_size = h->n_vps / h->n_groups;
    c->pool_words = h->pool_words;
    return check_optimizer(c);
}

/* ---------------------------------------------------------------- streams of tasks */

/* Returns the next task of the current group of threads or CTAs; NULL: the batch's program ends inside it: refused. */
static const vpps_task *fetch(vpps_checker *c, const vpps_stream *s) {
    c->at = s->at;
    if (s->end - s->at < VPPS_TASK_WORDS) {
        vpps_check_record(c, s->at < s->end ? "incomplete task" : "the group's tasks have no END");
        return NULL;
    }
    const vpps_task *t = vpps_task_at(c->script, s->at);
    const bool ends = t->kind == VPPS_TASK_END || t->kind == VPPS_TASK_PAUSE;
    if (t->signal == VPPS_NO_BARRIER || (t->signal < c->header->n_barriers && !ends)) return t;
    if (ends)
        vpps_check_record(c, "%s signals", vpps_task_rows[t->kind].name);
    else
        vpps_check_record(c, "no barrier %u", t->signal);
    return NULL;
}

/* Counts how often all tasks signal each barrier: waiting for fewer signals does not tell which tasks have run. */
static bool count_signals(vpps_checker *c) {
    for (c->group = 0; c->group < c->n_groups; c->group++) {
        vpps_stream s = c->streams[c->group];
        for (;; s.at += VPPS_TASK_WORDS) {
            const vpps_task *t = fetch(c, &s);
            if (!t) return false;
            if (t->kind == VPPS_TASK_END) break;
            if (t->signal != VPPS_NO_BARRIER) c->totals[t->signal] += c->group_size;
        }
    }
    return true;
}

static bool open_streams(vpps_checker *c) {
    const uint32_t *starts =
        vpps_check_words(c, VPPS_TASK_HEADER_WORDS, (uint64_t)c->n_groups + 1, "the groups' starts");
    const uint64_t bits = vpps_bit_words((uint64_t)c->n_groups * c->n_records);
    if (!starts) return false;
    c->streams = vpps_check_zeros(c, c->n_groups, sizeof *c->streams);
    c->known = vpps_check_zeros(c, (uint64_t)c->n_groups * c->n_groups, sizeof *c->known);
    c->carried = vpps_check_zeros(c, (uint64_t)c->header->n_barriers * c->n_groups, sizeof *c->carried);
    c->signals = vpps_check_zeros(c, c->header->n_barriers, sizeof *c->signals);
    c->totals = vpps_check_zeros(c, c->header->n_barriers, sizeof *c->totals);
    c->outer_done = vpps_check_zeros(c, bits, sizeof *c->outer_done);
    c->matrix_read = vpps_check_zeros(c, (uint64_t)c->g->model->n_params * c->n_groups, sizeof *c->matrix_read);
    c->matrix_spent = vpps_check_zeros(c, c->g->model->n_params, 1);
    c->touched = vpps_check_zeros(c, c->g->model->n_params, sizeof *c->touched);
    if (c->status != VPPS_OK) return false;
    for (uint32_t g = 0; g < c->n_groups; g++) {
        if (starts[g] > starts[g + 1] || starts[g + 1] > c->words)
            return VPPS_REFUSE(c, "group %u: invalid range of tasks, words %u to %u", g, starts[g], starts[g + 1]);
        c->streams[g] = (vpps_stream){.at = starts[g], .end = starts[g + 1]};
    }
    return count_signals(c);
}

/* ---------------------------------------------------------------- barriers */

/* Signals a barrier at the end of the latest task of the current group of threads or CTAs. */
static void signal(vpps_checker *c, uint32_t barrier) {
    if (barrier == VPPS_NO_BARRIER) return;
    uint32_t *carried = c->carried + (size_t)barrier * c->n_groups;
    const uint32_t *known = c->known + (size_t)c->group * c->n_groups;
    for (uint32_t g = 0; g < c->n_groups; g++) carried[g] = vpps_max_u32(carried[g], known[g]);
    carried[c->group] = vpps_max_u32(carried[c->group], c->streams[c->group].place);
    c->signals[barrier] += c->group_size;
}

/* The current group of threads or CTAs waits for a barrier; if signals are missing, other groups run first. If the
 * barrier gets more signals in all than the group waits for, nobody knows which came: the wait orders no accesses. */
static bool wait(vpps_checker *c, uint32_t barrier, uint32_t signals) {
    c->streams[c->group].waiting = false;
    if (barrier == VPPS_NO_BARRIER) return true;
    if (barrier >= c->header->n_barriers) return VPPS_REFUSE(c, "no barrier %u", barrier);
    if (signals > c->totals[barrier])
        return VPPS_REFUSE(c, "waits for %u signals, barrier %u gets %u", signals, barrier, c->totals[barrier]);
    c->streams[c->group].waiting = c->signals[barrier] < signals;
    if (c->streams[c->group].waiting || signals != c->totals[barrier]) return true;
    uint32_t *known = c->known + (size_t)c->group * c->n_groups;
    const uint32_t *carried = c->carried + (size_t)barrier * c->n_groups;
    for (uint32_t g = 0; g < c->n_groups; g++) known[g] = vpps_max_u32(known[g], carried[g]);
    return true;
}

/* ---------------------------------------------------------------- running */

static bool run_task(vpps_checker *c, const vpps_task *t) {
    const uint32_t *o = t->operands;
    vpps_stream *s = &c->streams[c->group];
    switch (t->kind) {
    case VPPS_TASK_END:
        s->ended = true;
        return s->paused == c->request->halves || VPPS_REFUSE(c, "the group ends without a pause");
    case VPPS_TASK_PAUSE:
        if (!c->request->halves || s->paused) return VPPS_REFUSE(c, "unexpected pause");
        return s->paused = true;
    case VPPS_TASK_NOTHING: return true;
    case VPPS_TASK_STAGE: return vpps_check_stage(c, t);
    case VPPS_TASK_CONSTANTS: return vpps_check_constants(c, o[0], o[1]);
    case VPPS_TASK_OUTER: return vpps_check_outer(c, o[0], o[1], o[2]);
    case VPPS_TASK_ENTRIES: return vpps_check_entries(c, o[0], o[1]);
    case VPPS_TASK_LOSS: return vpps_check_loss(c, o[0], o[1]);
    case VPPS_TASK_NORM: return vpps_check_norm(c);
    case VPPS_TASK_UPDATE: return vpps_check_update(c);
    default: return VPPS_REFUSE(c, "unknown task %u", t->kind);
    }
}

/* Simulates tasks of a group of threads or CTAs until it ends, pauses after forward or waits. Sets *any if one ran. */
static bool run_group(vpps_checker *c, bool *any) {
    vpps_stream *s = &c->streams[c->group];
    while (!s->ended && (!s->paused || c->goes_on)) {
        const vpps_task *t = fetch(c, s);
        if (!t || !wait(c, t->wait, t->signals)) return false;
        if (s->waiting) return true;
        if (!run_task(c, t)) return false;
        s->at += VPPS_TASK_WORDS;
        s->place++;
        signal(c, t->signal);
        *any = true;
    }
    return true;
}

/* Returns whether all groups of threads or CTAs pause after forward, and the host has not ended the pause. */
static bool all_pause(const vpps_checker *c) {
    bool all = !c->goes_on;
    for (uint32_t g = 0; g < c->n_groups; g++) all = all && c->streams[g].paused;
    return all;
}

static bool run(vpps_checker *c) {
    c->running = true;
    for (bool any = true; any;) {
        any = false;
        for (c->group = 0; c->group < c->n_groups; c->group++)
            if (!run_group(c, &any)) return false;
        if (!all_pause(c)) continue;
        if (!vpps_check_pause(c)) return false;
        c->goes_on = any = true;
    }
    for (c->group = 0; c->group < c->n_groups; c->group++) {
        const vpps_stream *s = &c->streams[c->group];
        if (!s->waiting) continue; /* not at a barrier: the group (threads, CTAs) has ended or pauses after forward */
        c->at = s->at;
        const uint32_t barrier = vpps_task_at(c->script, s->at)->wait;
        return VPPS_REFUSE(c, "deadlock: barrier %u has %u signals, and no more come", barrier, c->signals[barrier]);
    }
    c->running = false;
    return vpps_check_end(c);
}

static bool check(vpps_checker *c) {
    const vpps_tensor initial = {.kind = VPPS_TENSOR_INITIAL}, spent = {.kind = VPPS_TENSOR_SPENT};
    if (!check_header(c) || !vpps_check_demands(c)) return false;
    if (vpps_check_add_tensor(c, 0, initial) == VPPS_NONE || vpps_check_add_tensor(c, 0, spent) == VPPS_NONE)
        return false;
    if (!vpps_check_blocks(c) || !vpps_check_arrays(c)) return false;
    if (c->training && !vpps_check_gradients(c)) return false;
    c->running = true;
    const bool streams = vpps_check_tables(c) && vpps_check_open_pool(c) && open_streams(c);
    return streams && run(c);
}

static void tell(const vpps_checker *c) {
    const vpps_task none = {.kind = VPPS_TASK_COUNT};
    const bool whole = (uint64_t)c->at + VPPS_TASK_WORDS <= c->words;
    const vpps_task *t = whole ? vpps_task_at(c->script, c->at) : &none;
    const uint32_t *o = t->operands;
    if (!c->running || !c->streams) {
        vpps_fail(VPPS_SCRIPT, "script: %s", c->reason);
    } else if (t->kind == VPPS_TASK_STAGE && o[0] < c->header->n_blocks && c->blocks[o[0]].cell) {
        vpps_fail(VPPS_SCRIPT, "script: group %u, word %u, STAGE %u of block %u (%s), %u vertices from %u: %s",
                  c->group, c->at, t->stage, o[0], c->blocks[o[0]].cell->c->name, o[2], o[1], c->reason);
    } else {
        vpps_fail(VPPS_SCRIPT, "script: group %u, word %u, %s: %s", c->group, c->at,
                  t->kind < VPPS_TASK_COUNT ? vpps_task_rows[t->kind].name : "?", c->reason);
    }
}

vpps_status vpps_verify_batch(const uint32_t *script, size_t words, vpps_compiled_cell *const *cells, uint32_t n_cells,
                              const vpps_target *target, const vpps_graph *g, const vpps_batch_request *request,
                              const uint32_t *outputs, const uint32_t *gradients, const vpps_given_array *given) {
    vpps_checker *c = calloc(1, sizeof *c);
    if (!c) return vpps_fail(VPPS_MEMORY, "verify: out of memory");
    c->script = script;
    c->words = words;
    c->cells = cells;
    c->n_cells = n_cells;
    c->target = target;
    c->g = g;
    c->request = request;
    c->outputs = outputs;
    c->gradients = gradients;
    c->given = given;
    c->training = vpps_request_trains(request);
    const bool good = check(c);
    vpps_status status = good ? VPPS_OK : c->status;
    if (status == VPPS_SCRIPT) tell(c);
    if (!good && status != VPPS_SCRIPT) status = vpps_fail(VPPS_MEMORY, "verify: out of memory");
    vpps_check_close_pool(c);
    vpps_expressions_free(&c->expressions);
    for (uint32_t i = 0; i < c->n_cells && c->checked; i++) VPPS_FREE_ARRAYS(c->checked[i].reads);
    for (uint32_t i = 0; i < c->n_memory; i++) free(c->memory[i]);
    VPPS_FREE_ARRAYS(c->terms, c->tensors, c->memory);
    free(c);
    return status;
}
