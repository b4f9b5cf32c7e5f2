/* automaton.c - learns a batching policy by tabular Q-learning (automaton.h). */
#include "script/automaton.h"

/* For each encoding: the most learning trials. A trial runs the policy once over the graph. */
static const uint32_t most_trials[VPPS_ENCODINGS] = {350, 200, 200, 50, 50, 150};

void vpps_automaton_free(vpps_automaton *a) {
    VPPS_FREE_ARRAYS(a->states, a->words, a->q);
    vpps_index_free(&a->numbers);
    *a = (vpps_automaton){0};
}

/* ---------------------------------------------------------------- states */

/* The words that encode a state of the automaton (the policy being learned): which cells or ops have ready vertices. */
typedef struct frontier {
    uint32_t *words; /* words that encode the state; the array has 2 * n_types + 1 elements */
    uint32_t n, n_words;
} frontier;

/* Lists cells and ops that have ready vertices: by their numbers or, with `sorted`, by the number of ready vertices. */
static void list_types(bool sorted, const vpps_walk *w, frontier *f) {
    f->n = 0;
    for (uint32_t t = 0; t < w->graph->n_types; t++) {
        if (!w->ready[t]) continue;
        uint32_t at = f->n++;
        for (; sorted && at && w->ready[t] > w->ready[f->words[at - 1]]; at--) f->words[at] = f->words[at - 1];
        f->words[at] = t;
    }
    f->n_words = f->n;
}

static void put_most_first(const vpps_walk *w, frontier *f) {
    uint32_t most = 0;
    for (uint32_t i = 1; i < f->n; i++)
        if (w->ready[f->words[i]] > w->ready[f->words[most]]) most = i;
    const uint32_t first = f->words[most];
    memmove(f->words + 1, f->words, most * sizeof *f->words);
    f->words[0] = first;
}

static void encode(uint32_t encoding, vpps_walk *w, frontier *f) {
    enum { MOST_TIMES = 4, PHASES = 8, PARTS = 2 };
    list_types(encoding != VPPS_ENCODING_BASE && encoding != VPPS_ENCODING_MAX, w, f);
    if (encoding == VPPS_ENCODING_MAX) put_most_first(w, f);
    for (uint32_t i = 1; i < f->n && encoding == VPPS_ENCODING_SHARE; i++) {
        uint32_t times = 0;
        while (times < MOST_TIMES && w->ready[f->words[0]] >> (times + 1) >= w->ready[f->words[i]]) times++;
        f->words[f->n_words++] = times;
    }
    for (uint32_t i = 0; i < f->n && encoding == VPPS_ENCODING_RATIO; i++)
        f->words[f->n_words++] = (uint32_t)(PARTS * vpps_walk_ratio(w, f->words[i]));
    if (encoding == VPPS_ENCODING_PHASE)
        f->words[f->n_words++] = (uint32_t)((uint64_t)(w->n_left - 1) * PHASES / w->graph->n);
}

#define NONE UINT32_MAX

/* Returns the number of the known state that encodes frontier f (the types with ready vertices); NONE: the automaton has no such state. */
static uint32_t find(const vpps_automaton *a, const frontier *f) {
    const uint64_t hash = vpps_hash_words(f->words, f->n_words);
    for (uint32_t at = vpps_index_first(hash), i; (i = vpps_index_next(&a->numbers, hash, &at)) != UINT32_MAX;) {
        const vpps_state *s = &a->states[i];
        if (s->n_words == f->n_words && !memcmp(a->words + s->first, f->words, f->n_words * sizeof *f->words)) return i;
    }
    return NONE;
}

static bool note_state(vpps_automaton *a, uint32_t i) {
    const vpps_state *s = &a->states[i];
    return vpps_index_add(&a->numbers, vpps_hash_words(a->words + s->first, s->n_words), i);
}

/* Appends to the automaton the state that encodes frontier f (the types with ready vertices); its Q values are zero. */
static bool append_state(vpps_automaton *a, const frontier *f) {
    const size_t end = a->n_values + (size_t)f->n_words;
    if (!VPPS_RESERVE(a->states, a->n_states + 1u) || !VPPS_RESERVE(a->words, end) || !VPPS_RESERVE(a->q, end))
        return false;
    a->states[a->n_states++] = (vpps_state){a->n_values, f->n, f->n_words};
    memcpy(a->words + a->n_values, f->words, f->n_words * sizeof *f->words);
    memset(a->q + a->n_values, 0, f->n_words * sizeof *a->q);
    a->n_values = (uint32_t)end;
    return note_state(a, a->n_states - 1);
}

uint32_t vpps_automaton_best(const vpps_automaton *a, const vpps_state *s) {
    uint32_t best = s->first;
    for (uint32_t i = s->first; i < s->first + s->n; i++)
        if (a->q[i] > a->q[best]) best = i;
    return best;
}

/* ---------------------------------------------------------------- the next type */

static uint32_t best_ratio(vpps_walk *w) {
    uint32_t best = UINT32_MAX;
    double ratio = 0;
    for (uint32_t t = 0; t < w->graph->n_types; t++) {
        if (!w->ready[t]) continue;
        const double r = vpps_walk_ratio(w, t);
        if (best == UINT32_MAX || r > ratio) {
            best = t;
            ratio = r;
        }
    }
    return best;
}

uint32_t vpps_automaton_next(const vpps_automaton *a, vpps_walk *w) {
    if (!a) return best_ratio(w);
    frontier f = {.words = w->words};
    encode(a->encoding, w, &f);
    const uint32_t state = find(a, &f);
    return state == NONE ? best_ratio(w) : a->words[vpps_automaton_best(a, &a->states[state])];
}

/* ---------------------------------------------------------------- learning
 *
 * The paper does not give its constants' values. The values here are from the authors' program, which has another name for alpha. */

static const double alpha = 1, discount = 0.9, rate = 0.2, explore_first = 0.8, explore_factor = 0.99,
                    explore_last = 0.05;
enum { BOOTSTRAP = 10 };

typedef struct learner {
    vpps_automaton *a;
    vpps_walk walk;
    uint32_t *state, *chosen; /* for each choice in a run over the graph: state; index of the chosen type's Q value */
    uint32_t *followed;       /* for each state: index of the Q value chosen there in this trial; NONE: not yet */
    double *reward;
    float *best_q; /* copy of the Q values that gave the fewest batches so far, for the first best_states states */
    uint32_t best_states, best_values;
    uint64_t vertices; /* number of vertices run so far, in all trials (runs over the graph) together */
    uint64_t random;
} learner;

/* Sets *out to the number of the simulated run's (l->walk) state: which cells or ops have ready vertices. Appends a new
 * state; its Q value for a cell begins as the reward, at most 0, of running that cell next. */
static bool find_state(learner *l, uint32_t *out) {
    vpps_automaton *a = l->a;
    vpps_walk *w = &l->walk;
    frontier f = {.words = w->words};
    encode(a->encoding, w, &f);
    const uint32_t known = find(a, &f);
    *out = known == NONE ? a->n_states : known;
    if (known != NONE) return true;
    if (!append_state(a, &f)) return false;
    const vpps_state *s = &a->states[*out];
    for (uint32_t i = s->first; i < s->first + s->n; i++)
        a->q[i] = (float)(alpha * vpps_walk_ratio(w, a->words[i]) - 1);
    return true;
}

/* Saves a copy of the Q values as the best so far. If `followed`, first makes this trial's choice in each state the best choice there:
 * raises its Q value above all other Q values of the state. */
static bool keep(learner *l, bool followed) {
    vpps_automaton *a = l->a;
    float *q = realloc(l->best_q, (a->n_values + 1u) * sizeof *q);
    if (!q) return false;
    l->best_q = q;
    if (a->n_values) memcpy(q, a->q, a->n_values * sizeof *q);
    for (uint32_t i = 0; followed && i < a->n_states; i++)
        if (l->followed[i] != NONE) q[l->followed[i]] = a->q[vpps_automaton_best(a, &a->states[i])] + 1;
    l->best_states = a->n_states;
    l->best_values = a->n_values;
    a->batches = l->walk.n_batches;
    return true;
}

/* Gives the cell or op that this trial (run over the graph) runs next in a state: with probability `explore`, a random
 * one. A trial makes the same choice each time the state recurs, so that a trial is the run of one automaton. */
static bool follow(learner *l, uint32_t state, double explore, uint32_t *value) {
    const size_t known = vpps_capacity(l->followed);
    if (!VPPS_RESERVE(l->followed, state + (size_t)1)) return false;
    for (size_t i = known; i < vpps_capacity(l->followed); i++) l->followed[i] = NONE;
    if (l->followed[state] == NONE) {
        const vpps_state *s = &l->a->states[state];
        const bool random = (double)vpps_random_unit(&l->random) < explore;
        l->followed[state] = random ? s->first + vpps_random_below(&l->random, s->n) : vpps_automaton_best(l->a, s);
    }
    *value = l->followed[state];
    return true;
}

/* Runs all vertices of the graph once. The type whose vertices run next is chosen at random with probability `explore`, else by Q values. */
static bool go_through(learner *l, double explore) {
    vpps_walk *w = &l->walk;
    vpps_walk_restart(w);
    for (size_t i = 0; i < vpps_capacity(l->followed); i++) l->followed[i] = NONE;
    while (w->n_left) {
        const uint32_t t = w->n_batches;
        if (!find_state(l, &l->state[t]) || !follow(l, l->state[t], explore, &l->chosen[t])) return false;
        const uint32_t type = l->a->words[l->chosen[t]];
        l->reward[t] = alpha * vpps_walk_ratio(w, type) - 1;
        vpps_walk_run(w, type, NULL);
    }
    l->vertices += w->graph->n;
    return w->n_batches >= l->a->batches || keep(l, true);
}

/* Updates the Q values that a trial (run over the graph) chose, from its last batch to its first, by N-step bootstrapping: the rewards of N batches
 * plus the Q value of the state after these. */
static void learn_from(learner *l) {
    const uint32_t n = l->walk.n_batches;
    float *q = l->a->q;
    for (uint32_t t = n; t-- > 0;) {
        double sum = t + BOOTSTRAP < n ? q[vpps_automaton_best(l->a, &l->a->states[l->state[t + BOOTSTRAP]])] : 0;
        for (uint32_t k = vpps_min_u32(n, t + BOOTSTRAP); k-- > t;) sum = l->reward[k] + discount * sum;
        q[l->chosen[t]] += (float)(rate * (sum - q[l->chosen[t]]));
    }
}

static bool keep_best(learner *l) {
    vpps_automaton *a = l->a;
    vpps_walk *w = &l->walk;
    vpps_walk_restart(w);
    while (w->n_left) vpps_walk_run(w, vpps_automaton_next(a, w), NULL);
    l->vertices += w->graph->n;
    return w->n_batches >= a->batches || keep(l, false);
}

static bool learn_encoding(learner *l) {
    vpps_automaton *a = l->a;
    const uint32_t trials = most_trials[a->encoding];
    const uint64_t most_vertices = (uint64_t)trials * VPPS_LEARN_VERTICES;
    double explore = explore_first;
    bool ok = keep_best(l); /* there are no Q values yet: a heuristic (best_ratio) chooses each next cell */
    while (ok && a->trials < trials && a->batches > a->bound && l->vertices < most_vertices) {
        ok = go_through(l, explore);
        if (ok) learn_from(l);
        explore = explore * explore_factor > explore_last ? explore * explore_factor : explore_last;
        if (++a->trials % VPPS_LEARN_CHECK == 0) ok = ok && keep_best(l);
    }
    if (!ok) return false;
    a->n_states = l->best_states;
    a->n_values = l->best_values;
    if (a->n_values) memcpy(a->q, l->best_q, a->n_values * sizeof *a->q);
    vpps_index_clear(&a->numbers);
    for (uint32_t i = 0; i < a->n_states; i++) note_state(a, i);
    return true;
}

static bool learn(vpps_automaton *a, const vpps_typed_graph *g) {
    const size_t n = g->n + 1u;
    learner l = {.a = a,
                 .state = malloc(n * sizeof *l.state),
                 .chosen = malloc(n * sizeof *l.chosen),
                 .reward = malloc(n * sizeof *l.reward)};
    const bool ok = vpps_walk_open(&l.walk, g) && l.state && l.chosen && l.reward && learn_encoding(&l);
    vpps_walk_close(&l.walk);
    VPPS_FREE_ARRAYS(l.followed);
    VPPS_FREE(l.state, l.chosen, l.reward, l.best_q);
    return ok;
}

bool vpps_automaton_learn(vpps_automaton *a, const vpps_typed_graph *g) {
    uint32_t bound, trials = 0;
    *a = (vpps_automaton){.batches = UINT32_MAX};
    if (!vpps_batches_bound(g, &bound)) return false;
    bool ok = true;
    for (uint32_t e = 0; e < VPPS_ENCODINGS && a->batches > bound && ok; e++) {
        vpps_automaton next = {.encoding = e, .n_types = g->n_types, .batches = UINT32_MAX, .bound = bound};
        ok = learn(&next, g);
        trials += next.trials;
        if (ok && next.batches < a->batches) {
            const vpps_automaton worse = *a;
            *a = next;
            next = worse;
        }
        vpps_automaton_free(&next);
    }
    a->trials = trials;
    if (!ok) vpps_automaton_free(a);
    return ok;
}

/* ---------------------------------------------------------------- automata as bytes */

/* A learned batching policy (automaton) as an array of words. First PACKED_HEADER words: encoding, number of vertex
 * types, trials, batches, least possible number of batches, number of states. Then each state: PACKED_STATE words n and
 * m, m words that encode the state, n Q values. */
enum { PACKED_HEADER = 6, PACKED_STATE = 2 };

static size_t packed_words(const vpps_automaton *a) {
    size_t n = PACKED_HEADER;
    for (uint32_t i = 0; i < a->n_states; i++) n += PACKED_STATE + (size_t)a->states[i].n_words + a->states[i].n;
    return n;
}

void *vpps_automaton_pack(const vpps_automaton *a, size_t *bytes) {
    *bytes = 4 * packed_words(a);
    uint32_t *words = malloc(*bytes), *at = words;
    if (!words) return NULL;
    const uint32_t header[PACKED_HEADER] = {a->encoding, a->n_types, a->trials, a->batches, a->bound, a->n_states};
    memcpy(at, header, sizeof header);
    at += PACKED_HEADER;
    for (uint32_t i = 0; i < a->n_states; i++) {
        const vpps_state *s = &a->states[i];
        *at++ = s->n;
        *at++ = s->n_words;
        memcpy(at, a->words + s->first, s->n_words * sizeof *at);
        at += s->n_words;
        memcpy(at, a->q + s->first, s->n * sizeof *at);
        at += s->n;
    }
    return words;
}

/* Unpacks the state that begins at *at, with `left` words left; returns how many words the state takes. 0: the words encode no state. */
static size_t unpack_state(vpps_automaton *a, uint32_t *at, size_t left) {
    if (left < PACKED_STATE) return 0;
    const frontier f = {.words = at + PACKED_STATE, .n = at[0], .n_words = at[1]};
    const size_t most = 2 * (size_t)a->n_types + 1;
    if (!f.n || f.n > a->n_types || f.n_words < f.n || f.n_words > most) return 0;
    const size_t n = PACKED_STATE + (size_t)f.n_words + f.n;
    if (left < n) return 0;
    for (uint32_t i = 0; i < f.n; i++)
        if (f.words[i] >= a->n_types) return 0;
    if (find(a, &f) != NONE || !append_state(a, &f)) return 0;
    memcpy(a->q + a->n_values - f.n_words, f.words + f.n_words, f.n * sizeof *at);
    return n;
}

bool vpps_automaton_unpack(vpps_automaton *a, uint32_t n_types, void *packed, size_t bytes) {
    uint32_t *words = packed;
    size_t left = bytes / 4;
    *a = (vpps_automaton){0};
    if (bytes % 4 || left < PACKED_HEADER || words[0] >= VPPS_ENCODINGS || words[1] != n_types) return false;
    *a = (vpps_automaton){
        .encoding = words[0], .n_types = n_types, .trials = words[2], .batches = words[3], .bound = words[4]};
    const uint32_t n_states = words[5];
    words += PACKED_HEADER;
    left -= PACKED_HEADER;
    bool ok = true;
    for (uint32_t i = 0; i < n_states && ok; i++) {
        const size_t n = unpack_state(a, words, left);
        ok = n > 0;
        words += n;
        left -= n;
    }
    if (ok && !left) return true;
    vpps_automaton_free(a);
    return false;
}
