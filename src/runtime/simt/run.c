/* run.c - software SIMT's scheduler: CUDA threads are fibers, whose CTAs take turns.
 *
 * A CTA's turn lasts until each of its threads waits, sleeps or has finished. Within a turn, threads run one after another: a lane that
 * waits switches directly to the next ready lane of its warp, or else to another warp. So if a turn ends with nobody asleep, but not all
 * threads finished, no thread of the CTA can ever continue. */
#include "runtime/simt/fiber.h"
#include "runtime/simt/kernel.h"
#include "runtime/simt/watch.h"

#include <stdatomic.h>

enum { LANES = 32, MAX_WARPS = 32, MAX_CTAS = 65535 };

/* Number of rounds (turns of all CTAs) without progress after which the clock decides whether all CTAs only spin. */
enum { IDLE_ROUNDS = 64 };

/* Byte that fills memory that nobody has written: floats of such bytes are NaN, and indices point nowhere. */
enum { UNWRITTEN = 0xff };

struct warp;
struct cta;

typedef struct thread {
    vpps_simt_thread known; /* the fields that the kernel's code knows; first, so that both structs have one address */
    vpps_fiber fiber;
    struct cta *cta;
    struct warp *warp;
    uint32_t lane, line; /* line: source line at which the thread waits, or last waited */
    uint32_t mask, value, source, result;
    vpps_simt_collective kind;
} thread;

/* A warp. Bit sets of lanes tell who is ready, waits or sleeps; the running lane is in no set. */
typedef struct warp {
    uint32_t ready, at_collective, at_barrier, asleep, finished;
    uint32_t interval; /* number of the interval since the last barrier of its CTA or warp (watch.h) */
    thread *lanes;
} warp;

typedef struct cta {
    vpps_simt_grid *grid;
    warp *warps;
    uint32_t number;
    uint32_t ready_warps;    /* set of the warps that have a ready lane */
    uint32_t now;            /* number of the warp whose lanes run next */
    uint32_t arrived, line;  /* arrived: number of threads at the CTA's barrier; line: the barrier's source line */
    uint32_t finished;       /* finished threads */
    uint32_t interval;       /* number of the interval since the CTA's last barrier (watch.h) */
    char *statics, *dynamic; /* __shared__ variables, saved while another CTA is simulated; dynamic shared memory */
} cta;

struct vpps_simt_grid {
    uint32_t n_ctas, n_threads, n_warps;
    size_t static_bytes, dynamic_bytes, cta_bytes; /* size of a CTA's shared memory: static; dynamic; all, padded */
    thread *threads;
    warp *warps;
    cta *ctas;
    char *shared;
    /* for each word of shared memory: the threads that used it last; NULL until a kernel runs whose accesses are checked (watch.h) */
    vpps_simt_word *words;
    uint32_t *order; /* numbers of the CTAs that have not finished, in the order of their turns */
    vpps_fiber_stacks stacks;

    /* The members from here on are set anew for each run of the kernel. */
    const vpps_simt_library *library;
    const void *arguments;
    vpps_simt_piece *const *memory;
    vpps_fiber scheduler;
    uint32_t seed;
    uint64_t random;
    uint64_t finished; /* number of threads, of all CTAs, that have finished */
    const cta *loaded; /* the CTA whose static shared memory lies where the kernel's code expects it */
    vpps_status status;
};

static atomic_uint_least64_t patience_ns = 2000000000u;

void vpps_simt_set_patience(uint64_t ns) { atomic_store(&patience_ns, ns); }

static size_t padded(size_t bytes) { return (bytes + 127) / 128 * 128; }
static uint32_t number_of(const thread *t) { return t->known.thread.x; }
static thread *thread_of(vpps_simt_thread *known) { return (thread *)(void *)known; }
static uint32_t lowest(uint32_t set) { return (uint32_t)__builtin_ctz(set); }
static uint32_t any_of(uint32_t set, uint64_t *random) {
    for (uint32_t i = vpps_random_below(random, (uint32_t)__builtin_popcount(set)); i; i--) set &= set - 1;
    return lowest(set);
}

static atomic_uint_least32_t intervals;
static uint32_t next_interval(void) { return atomic_fetch_add(&intervals, 1) + 1; }

/* ---------------------------------------------------------------- handing over */

static void make_ready(warp *w, uint32_t lanes) {
    cta *c = w->lanes->cta;
    w->ready |= lanes;
    c->ready_warps |= 1u << (w - c->warps);
}

/* Returns the number of the first warp, from `warp_number` on and then from 0, that has a ready lane. */
static uint32_t ready_from(const cta *c, uint32_t warp_number) {
    const uint32_t after = c->ready_warps >> warp_number << warp_number;
    return lowest(after ? after : c->ready_warps);
}

/* Takes a ready thread of the current warp, else of the next that has any; with a seed, a random one. NULL: none. */
static thread *take_ready(cta *c) {
    vpps_simt_grid *g = c->grid;
    if (!c->ready_warps) return NULL;
    if (g->seed) {
        c->now = any_of(c->ready_warps, &g->random);
    } else if (!c->warps[c->now].ready) {
        c->now = ready_from(c, c->now);
    }
    warp *w = &c->warps[c->now];
    const uint32_t lane = g->seed ? any_of(w->ready, &g->random) : lowest(w->ready);
    w->ready &= ~(1u << lane);
    if (!w->ready) c->ready_warps &= ~(1u << c->now);
    return &w->lanes[lane];
}

/* Runs other ready threads until t, the running thread, is resumed. The caller has noted in t's warp why t stops. */
static void hand_over(thread *t) {
    vpps_simt_grid *g = t->cta->grid;
    thread *next = take_ready(t->cta);
    if (next == t) return;
    if (next) g->library->port->self = &next->known;
    vpps_fiber_switch(&t->fiber, next ? &next->fiber : &g->scheduler);
}

/* Ends the running thread, and lets another one run. If `status` is a failure, ends the kernel's run. */
static _Noreturn void leave(thread *t, vpps_status status) {
    vpps_simt_grid *g = t->cta->grid;
    g->status = status;
    thread *next = status == VPPS_OK ? take_ready(t->cta) : NULL;
    if (next) g->library->port->self = &next->known;
    vpps_fiber_leave(&t->fiber, next ? &next->fiber : &g->scheduler);
}

/* If there is a seed: sometimes lets another warp run after threads have met at a barrier or shuffle. */
static void maybe_let_others(thread *t) {
    cta *c = t->cta;
    vpps_simt_grid *g = c->grid;
    if (!g->seed || vpps_random_below(&g->random, 8)) return;
    make_ready(t->warp, 1u << t->lane);
    hand_over(t);
}

/* ---------------------------------------------------------------- where threads meet */

static void barrier(vpps_simt_thread *self, unsigned line) {
    thread *t = thread_of(self);
    cta *c = t->cta;
    if (c->arrived == 0) c->line = line;
    if (c->line != line)
        leave(t, vpps_fail(VPPS_STALL,
                           "software SIMT: CTA %u: thread %u is at the CTA barrier of line %u while %u of %u threads "
                           "wait at that of line %u",
                           c->number, number_of(t), line, c->arrived, c->grid->n_threads, c->line));
    if (c->finished)
        leave(t, vpps_fail(VPPS_STALL,
                           "software SIMT: CTA %u: thread %u is at the CTA barrier of line %u, which %u of %u threads "
                           "will not reach: they have finished",
                           c->number, number_of(t), line, c->finished, c->grid->n_threads));
    t->line = line;
    if (++c->arrived < c->grid->n_threads) {
        t->warp->at_barrier |= 1u << t->lane;
        hand_over(t);
        return;
    }
    c->arrived = 0;
    c->interval = next_interval();
    for (uint32_t i = 0; i < c->grid->n_warps; i++) {
        warp *w = &c->warps[i];
        w->interval = c->interval;
        if (w->at_barrier) make_ready(w, w->at_barrier);
        w->at_barrier = 0;
    }
    maybe_let_others(t);
}

static void sleep_a_turn(vpps_simt_thread *self, unsigned line) {
    thread *t = thread_of(self);
    t->line = line;
    t->warp->asleep |= 1u << t->lane;
    hand_over(t);
}

/* If all lanes that thread t named have come to a shuffle, ballot or warp barrier: checks that they agree, and gives each its result. */
static void complete_collective(thread *t) {
    const warp *w = t->warp;
    uint32_t ballot = 0;
    for (uint32_t left = t->mask; left; left &= left - 1) {
        const thread *other = &w->lanes[lowest(left)];
        if (other->mask != t->mask || other->kind != t->kind ||
            (other->line != t->line && t->kind != VPPS_SIMT_SYNCWARP))
            leave(t, vpps_fail(
                         VPPS_DEVICE,
                         "software SIMT: CTA %u: threads %u and %u of a warp do not meet: line %u with mask %08x, "
                         "line %u with mask %08x",
                         t->cta->number, number_of(t), number_of(other), t->line, t->mask, other->line, other->mask));
        if (t->kind == VPPS_SIMT_SHUFFLE && !(t->mask >> other->source & 1))
            leave(t, vpps_fail(VPPS_DEVICE,
                               "software SIMT: CTA %u: thread %u reads lane %u in line %u, which the mask %08x lacks",
                               t->cta->number, number_of(other), other->source, other->line, other->mask));
        ballot |= (uint32_t)(other->value != 0) << other->lane;
    }
    for (uint32_t left = t->mask; left; left &= left - 1) {
        thread *other = &w->lanes[lowest(left)];
        other->result = t->kind == VPPS_SIMT_SHUFFLE ? w->lanes[other->source].value : ballot;
    }
}

static unsigned collective(vpps_simt_thread *self, vpps_simt_collective kind, unsigned line, unsigned mask,
                           unsigned value, unsigned source) {
    thread *t = thread_of(self);
    warp *w = t->warp;
    const uint32_t bit = 1u << t->lane;
    t->kind = kind;
    t->line = line;
    t->mask = mask;
    t->value = value;
    t->source = source;
    if (!(mask & bit) || (mask & w->finished))
        leave(t, vpps_fail(VPPS_DEVICE, "software SIMT: CTA %u: thread %u is in line %u with the mask %08x, which %s",
                           t->cta->number, number_of(t), line, mask,
                           mask & bit ? "names lanes that have finished" : "lacks its own lane"));
    const uint32_t others = mask & ~bit;
    if ((w->at_collective & others) != others) {
        w->at_collective |= bit;
        hand_over(t);
        return t->result;
    }
    complete_collective(t);
    if (kind == VPPS_SIMT_SYNCWARP) w->interval = next_interval();
    w->at_collective &= ~others;
    if (others) make_ready(w, others);
    maybe_let_others(t);
    return t->result;
}

/* ---------------------------------------------------------------- what watched kernels use */

static bool lies_in(const char *at, size_t bytes, const void *begin, size_t size) {
    return at >= (const char *)begin && at + bytes <= (const char *)begin + size;
}

/* Returns whether the bytes are private to a thread: in a fiber's stack, or read from memory that no kernel writes. */
static bool is_private(const vpps_simt_grid *g, const char *at, size_t bytes, bool is_write) {
    const vpps_simt_library *l = g->library;
    if (lies_in(at, bytes, g->stacks.memory, g->stacks.bytes)) return true;
    return !is_write && (lies_in(at, bytes, l->image, (size_t)(l->image_end - l->image)) ||
                         lies_in(at, bytes, g->threads, (size_t)g->n_ctas * g->n_threads * sizeof *g->threads) ||
                         lies_in(at, bytes, g->arguments, l->argument_bytes));
}

/* Returns the records of which threads use these words of shared or device memory. NULL: the words are private, or *status is a failure. */
static vpps_simt_word *shared_words(const cta *c, const char *at, size_t bytes, vpps_status *status) {
    const vpps_simt_grid *g = c->grid;
    vpps_simt_word *own = g->words + c->number * g->cta_bytes / 4;
    if (lies_in(at, bytes, g->library->shared, g->static_bytes)) return own + (at - g->library->shared) / 4;
    if (lies_in(at, bytes, c->dynamic, g->dynamic_bytes))
        return own + (padded(g->static_bytes) + (size_t)(at - c->dynamic)) / 4;
    return vpps_simt_words_at(g->memory, at, bytes, status);
}

static void watch(vpps_simt_thread *self, const void *address, unsigned bytes, unsigned is_write) {
    thread *t = thread_of(self);
    const cta *c = t->cta;
    const char *at = address;
    vpps_status status = VPPS_OK;
    vpps_simt_word *words = shared_words(c, at, bytes, &status);
    if (status != VPPS_OK) leave(t, status);
    if (!words && is_private(c->grid, at, bytes, is_write)) return;
    const char *what = is_write ? "writes" : "reads";
    if (!words)
        leave(t, vpps_fail(VPPS_DEVICE,
                           "software SIMT: CTA %u: thread %u %s %u bytes outside of the kernel's memory, after line %u",
                           c->number, number_of(t), what, bytes, t->line));
    const vpps_simt_user user = {number_of(t), c->interval, t->warp->interval};
    for (size_t i = 0; i < (bytes + 3) / 4; i++) {
        uint32_t other;
        if (vpps_simt_use(&words[i], &user, is_write, &other)) continue;
        leave(t, vpps_fail(VPPS_DEVICE,
                           "software SIMT: CTA %u: thread %u %s a word that thread %d uses, too, with no barrier "
                           "between, after line %u",
                           c->number, number_of(t), what, (int)other, t->line));
    }
}

static unsigned long long now_ns(void) { return vpps_thread_ns(); }

/* ---------------------------------------------------------------- threads */

static void run_thread(void *argument) {
    thread *t = argument;
    cta *c = t->cta;
    c->grid->library->enter(c->grid->arguments);
    t->warp->finished |= 1u << t->lane;
    c->finished++;
    c->grid->finished++;
    if (c->arrived)
        leave(t, vpps_fail(VPPS_STALL,
                           "software SIMT: CTA %u: %u of %u threads wait at the CTA barrier of line %u, but thread %u "
                           "has finished",
                           c->number, c->arrived, c->grid->n_threads, c->line, number_of(t)));
    leave(t, VPPS_OK);
}

static void prepare(vpps_simt_grid *g) {
    memset(g->warps, 0, (size_t)g->n_ctas * g->n_warps * sizeof *g->warps);
    memset(g->shared, UNWRITTEN, g->n_ctas * g->cta_bytes);
    for (uint32_t i = 0; i < g->n_ctas; i++) {
        cta *c = &g->ctas[i];
        *c = (cta){.grid = g, .warps = g->warps + (size_t)i * g->n_warps, .number = i};
        c->interval = next_interval();
        c->statics = g->shared + i * g->cta_bytes;
        c->dynamic = c->statics + padded(g->static_bytes);
        for (uint32_t k = 0; k < g->n_threads; k++) {
            thread *t = &g->threads[(size_t)i * g->n_threads + k];
            warp *w = &c->warps[k / LANES];
            t->known = (vpps_simt_thread){{k, 0, 0}, {i, 0, 0}, (float *)(void *)c->dynamic};
            t->cta = c;
            t->warp = w;
            t->lane = k % LANES;
            t->line = 0;
            if (t->lane == 0) w->lanes = t, w->interval = c->interval;
            make_ready(w, 1u << t->lane);
            vpps_fiber_prepare(&t->fiber, &g->stacks, (size_t)i * g->n_threads + k, run_thread, t);
        }
        g->order[i] = i;
    }
}

/* ---------------------------------------------------------------- turns */

/* Reports that no thread of the CTA can continue. The message names lanes that wait for others of their warp, else the barrier. */
static vpps_status deadlock(const cta *c) {
    const vpps_simt_grid *g = c->grid;
    const thread *stuck = NULL;
    for (uint32_t i = 0; i < g->n_warps && !stuck; i++)
        if (c->warps[i].at_collective) stuck = &c->warps[i].lanes[lowest(c->warps[i].at_collective)];
    char where[160] = "";
    if (stuck)
        snprintf(where, sizeof where, "; thread %u waits in line %u for other lanes of its warp (mask %08x)",
                 number_of(stuck), stuck->line, stuck->mask);
    return vpps_fail(
        VPPS_STALL,
        "software SIMT: CTA %u: nobody can go on: %u of %u threads alive, %u at the CTA barrier (line %u)%s", c->number,
        g->n_threads - c->finished, g->n_threads, c->arrived, c->line, where);
}

static vpps_status spinning(const vpps_simt_grid *g, uint32_t alive, uint64_t ns) {
    const cta *c = &g->ctas[g->order[0]];
    const thread *t = NULL;
    for (uint32_t i = 0; i < g->n_warps && !t; i++)
        if (c->warps[i].asleep) t = &c->warps[i].lanes[lowest(c->warps[i].asleep)];
    return vpps_fail(VPPS_STALL,
                     "software SIMT: no progress for %.1f s, %u of %u CTAs spin; CTA %u: %u of %u threads alive, %u at "
                     "the CTA barrier, thread %u spins in line %u",
                     (double)ns * 1e-9, alive, g->n_ctas, c->number, g->n_threads - c->finished, g->n_threads,
                     c->arrived, t ? number_of(t) : 0, t ? t->line : 0);
}

static void load_statics(vpps_simt_grid *g, const cta *c) {
    if (g->loaded == c) return;
    if (g->loaded) memcpy(g->loaded->statics, g->library->shared, g->static_bytes);
    memcpy(g->library->shared, c->statics, g->static_bytes);
    g->loaded = c;
}

static vpps_status take_turn(vpps_simt_grid *g, cta *c) {
    load_statics(g, c);
    bool asleep = false;
    for (uint32_t i = 0; i < g->n_warps; i++) {
        warp *w = &c->warps[i];
        if (w->asleep) make_ready(w, w->asleep);
        w->asleep = 0;
    }
    thread *first = take_ready(c);
    g->library->port->self = &first->known;
    vpps_fiber_switch(&g->scheduler, &first->fiber);
    VPPS_TRY(g->status);
    for (uint32_t i = 0; i < g->n_warps; i++) asleep |= c->warps[i].asleep != 0;
    return asleep || c->finished == g->n_threads ? VPPS_OK : deadlock(c);
}

static void shuffle(uint32_t *order, uint32_t n, uint64_t *random) {
    for (uint32_t i = n; i > 1; i--) {
        const uint32_t k = vpps_random_below(random, i), other = order[k];
        order[k] = order[i - 1];
        order[i - 1] = other;
    }
}

static vpps_status run_to_end(vpps_simt_grid *g) {
    uint64_t seen = UINT64_MAX, since = 0, idle = 0;
    for (uint32_t alive = g->n_ctas; alive > 0;) {
        uint32_t left = 0;
        if (g->seed) shuffle(g->order, alive, &g->random);
        for (uint32_t i = 0; i < alive; i++) {
            cta *c = &g->ctas[g->order[i]];
            VPPS_TRY(take_turn(g, c));
            if (c->finished < g->n_threads) g->order[left++] = c->number;
        }
        alive = left;
        const uint64_t progress = g->library->port->progress + g->finished, now = now_ns();
        if (progress != seen) idle = 0, since = now;
        seen = progress;
        if (++idle > IDLE_ROUNDS && now - since > atomic_load(&patience_ns)) return spinning(g, alive, now - since);
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- runs */

void vpps_simt_grid_destroy(vpps_simt_grid *g) {
    if (!g) return;
    vpps_fiber_stacks_destroy(&g->stacks);
    VPPS_FREE(g->threads, g->warps, g->ctas, g->shared, g->words, g->order, g);
}

/* Makes a grid of this shape, unless *grid, from the latest run, already has the shape. */
static vpps_status shape_grid(vpps_simt_grid **grid, uint32_t ctas, uint32_t threads, size_t static_bytes,
                              size_t dynamic_bytes) {
    vpps_simt_grid *g = *grid;
    if (g && g->n_ctas == ctas && g->n_threads == threads && g->dynamic_bytes == dynamic_bytes) return VPPS_OK;
    vpps_simt_grid_destroy(g);
    *grid = g = calloc(1, sizeof *g);
    if (!g) return vpps_fail(VPPS_MEMORY, "software SIMT: out of memory");
    g->n_ctas = ctas;
    g->n_threads = threads;
    g->n_warps = threads / LANES;
    g->static_bytes = static_bytes;
    g->dynamic_bytes = dynamic_bytes;
    g->cta_bytes = padded(static_bytes) + padded(dynamic_bytes);
    g->threads = calloc((size_t)ctas * threads, sizeof *g->threads);
    g->warps = calloc((size_t)ctas * g->n_warps, sizeof *g->warps);
    g->ctas = calloc(ctas, sizeof *g->ctas);
    g->order = calloc(ctas, sizeof *g->order);
    g->shared = aligned_alloc(128, ctas * g->cta_bytes);
    const vpps_status status = g->threads && g->warps && g->ctas && g->order && g->shared
                                   ? vpps_fiber_stacks_create(&g->stacks, (size_t)ctas * threads)
                                   : vpps_fail(VPPS_MEMORY, "software SIMT: out of memory for %u CTAs", ctas);
    if (status != VPPS_OK) {
        vpps_simt_grid_destroy(g);
        *grid = NULL;
    }
    return status;
}

vpps_status vpps_simt_run(vpps_simt_kernel *kernel, uint32_t ctas, uint32_t threads, uint32_t dynamic_shared_bytes,
                          const void *arguments, size_t bytes, uint32_t seed, vpps_simt_piece *const *memory) {
    const vpps_simt_library *library = kernel->library;
    if (ctas == 0 || ctas > MAX_CTAS || threads == 0 || threads % LANES || threads > LANES * MAX_WARPS)
        return vpps_fail(VPPS_ARGUMENT,
                         "software SIMT: %u CTAs of %u threads: CTAs are of 32 to 1024 threads, whole warps", ctas,
                         threads);
    if (bytes != library->argument_bytes)
        return vpps_fail(VPPS_ARGUMENT, "software SIMT: the kernel's parameter has %u bytes, not %zu",
                         library->argument_bytes, bytes);
    const size_t static_bytes = (size_t)(library->shared_end - library->shared);
    VPPS_TRY(shape_grid(&kernel->grid, ctas, threads, static_bytes, dynamic_shared_bytes));
    vpps_simt_grid *g = kernel->grid;
    if (library->watched && !g->words) g->words = calloc(ctas * g->cta_bytes / 4, sizeof *g->words);
    if (library->watched && !g->words) return vpps_fail(VPPS_MEMORY, "software SIMT: out of memory to watch memory");
    g->library = library;
    g->arguments = arguments;
    g->memory = memory;
    g->seed = seed;
    g->random = seed;
    g->finished = 0;
    g->loaded = NULL;
    g->status = VPPS_OK;
    *library->port = (vpps_simt_port){
        .threads = {threads, 1, 1}, .ctas = {ctas, 1, 1}, .hooks = {barrier, sleep_a_turn, collective, now_ns, watch}};
    prepare(g);
    return run_to_end(g);
}
