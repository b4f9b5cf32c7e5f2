/* decode.c - beam search, greedy search step by step, and greedy search as one forward pass, in which the device chooses each next word and
 * decides when a translation ends. */
#include "cli/session/decode.h"
#include "base/base.h"

#include <math.h>

/* ---------------------------------------------------------------- what is kept */

/* A node's value after a forward pass. */
typedef struct value {
    uint32_t rows, cols;
    size_t at; /* index of the first element in fetched.values */
} value;

typedef struct fetched {
    value *list;
    vpps_node *nodes; /* nodes whose values go to outs[] in the next forward pass */
    float **outs;
    float *values;
    size_t n, n_values;
} fetched;

/* A word of a hypothesis. Hypotheses share their beginnings: each word refers to the preceding one. */
typedef struct link {
    size_t before; /* index in batch.links of the hypothesis's preceding word; NO_LINK for the first word */
    uint32_t word;
} link;

#define NO_LINK SIZE_MAX

typedef struct hypothesis {
    double sum;    /* log-probability of the hypothesis's words */
    size_t states; /* index of the hypothesis's first state among the fetched values */
    size_t last;   /* index in batch.links of the hypothesis's last word */
} hypothesis;

/* A hypothesis extended by one word, or a finished one. */
typedef struct candidate {
    /* the hypothesis before `word`, but from.sum includes `word`; if finished, all of it, with its score in from.sum */
    hypothesis from;
    uint32_t word;
} candidate;

typedef struct source {
    uint64_t max_words;
    uint32_t n_states, n_memory;
    size_t memory;    /* index of the source's first vector for attention in the encoders' values */
    hypothesis *live; /* unfinished hypotheses, best first */
    uint32_t n_live;
    candidate *ended; /* best finished hypotheses, best first */
    uint32_t n_ended;
} source;

typedef struct batch {
    const decoder *d;
    uint32_t n, n_best;
    source *sources;
    hypothesis *live; /* storage for the unfinished hypotheses of all sources */
    candidate *ended; /* storage for the finished hypotheses of all sources */
    /* for each source: the states with which decoding begins, then the vectors that attention reads */
    fetched encoded;
    /* results of step k, in made[k % 2] until step k + 2: the states and the logits of each hypothesis */
    fetched made[2];
    vpps_node *memory;  /* nodes of the vectors of one source sentence, which attention reads */
    candidate *choices; /* storage for one source's candidates, best first */
    link *links;
    size_t n_links;
} batch;

static void close_batch(batch *b) {
    fetched *const all[] = {&b->encoded, &b->made[0], &b->made[1]};
    for (size_t i = 0; i < VPPS_COUNT(all); i++)
        VPPS_FREE_ARRAYS(all[i]->list, all[i]->nodes, all[i]->outs, all[i]->values);
    VPPS_FREE_ARRAYS(b->memory, b->links);
    VPPS_FREE(b->sources, b->live, b->ended, b->choices);
}

static vpps_status open_batch(batch *b) {
    const size_t beam = b->d->options.beam;
    b->sources = calloc(b->n, sizeof *b->sources);
    b->live = calloc(b->n * beam, sizeof *b->live);
    b->ended = calloc((size_t)b->n * b->n_best, sizeof *b->ended);
    b->choices = calloc(2 * beam, sizeof *b->choices);
    if (!b->sources || !b->live || !b->ended || !b->choices)
        return vpps_fail(VPPS_MEMORY, "no memory for %u beams of %zu hypotheses", b->n, beam);
    for (uint32_t i = 0; i < b->n; i++) {
        b->sources[i].live = b->live + i * beam;
        b->sources[i].ended = b->ended + (size_t)i * b->n_best;
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- values from one forward pass to the next */

/* Asks for node x's value after the next forward pass. */
static vpps_status want(fetched *f, const vpps_graph *g, vpps_node x) {
    value v = {.at = f->n_values};
    VPPS_TRY(vpps_graph_status(g));
    VPPS_TRY(vpps_node_shape(g, x, &v.rows, &v.cols));
    if (!VPPS_RESERVE(f->nodes, f->n + 1) || !VPPS_RESERVE(f->list, f->n + 1))
        return vpps_fail(VPPS_MEMORY, "no memory for %zu values of a decoder", f->n + 1);
    f->nodes[f->n] = x;
    f->list[f->n++] = v;
    f->n_values += (size_t)v.rows * v.cols;
    return VPPS_OK;
}

static vpps_status fetch(fetched *f, const decoder *d) {
    if (!f->n) return VPPS_OK; /* nothing is to be fetched */
    if (!VPPS_RESERVE(f->values, f->n_values + 1) || !VPPS_RESERVE(f->outs, f->n))
        return vpps_fail(VPPS_MEMORY, "no memory for %zu numbers of a decoder", f->n_values);
    for (size_t i = 0; i < f->n; i++) f->outs[i] = f->values + f->list[i].at;
    return vpps_forward(d->handle, d->graph, (uint32_t)f->n, f->nodes, f->outs);
}

static vpps_node give_back(const fetched *f, size_t i, const decoder *d) {
    const value *v = &f->list[i];
    return vpps_input(d->graph, v->rows, v->cols, f->values + v->at);
}

/* ---------------------------------------------------------------- before the first word */

/* Returns the most words that a translation of source x may have, end word included. */
static uint64_t decode_most_words(const decoder *d, const net_example *x) {
    if (d->options.max_words) return d->options.max_words;
    const uint64_t positions = d->net->kind == NET_PAIRS ? x->sentence.n_words : x->lattice->n_nodes - 1;
    return 2 * positions + 10;
}

static vpps_status encode(batch *b, decode_example *example, void *context) {
    const decoder *d = b->d;
    fetched *to = &b->encoded;
    vpps_graph_clear(d->graph);
    for (uint32_t i = 0; i < b->n; i++) {
        source *s = &b->sources[i];
        net_example x = {0};
        net_decoding step = {0};
        VPPS_TRY(example(context, i, &x));
        VPPS_TRY(d->net->encode(d->instance, d->graph, &x, &step));
        s->max_words = decode_most_words(d, &x);
        s->n_states = step.n_states;
        s->n_memory = step.n_memory;
        s->live[0] = (hypothesis){.states = to->n, .last = NO_LINK};
        s->n_live = 1;
        for (uint32_t k = 0; k < step.n_states; k++) VPPS_TRY(want(to, d->graph, step.states[k]));
        s->memory = to->n;
        for (uint32_t k = 0; k < step.n_memory; k++) VPPS_TRY(want(to, d->graph, step.memory[k]));
    }
    return fetch(to, d);
}

/* ---------------------------------------------------------------- a step of the network, for all hypotheses */

static vpps_status add_step(const batch *b, const source *s, const hypothesis *h, const fetched *from, fetched *to) {
    const decoder *d = b->d;
    net_decoding step = {.n_states = s->n_states, .memory = b->memory, .n_memory = s->n_memory};
    for (uint32_t k = 0; k < s->n_states; k++) step.states[k] = give_back(from, h->states + k, d);
    const uint32_t word = h->last == NO_LINK ? d->end_word : b->links[h->last].word;
    VPPS_TRY(d->net->decode(d->instance, d->graph, word, &step));

    for (uint32_t k = 0; k < s->n_states; k++) VPPS_TRY(want(to, d->graph, step.states[k]));
    VPPS_TRY(want(to, d->graph, step.logits));
    const value *logits = &to->list[to->n - 1];
    if (logits->rows == d->classes && logits->cols == 1) return VPPS_OK;
    return vpps_fail(VPPS_SHAPE, "%s says %u x %u logits; expected %u x 1", d->net->name, logits->rows, logits->cols,
                     d->classes);
}

static vpps_status add_steps(batch *b, const fetched *from, fetched *to) {
    vpps_graph_clear(b->d->graph);
    to->n = to->n_values = 0;
    for (const source *s = b->sources; s < b->sources + b->n; s++) {
        if (!s->n_live) continue;
        if (!VPPS_RESERVE(b->memory, s->n_memory))
            return vpps_fail(VPPS_MEMORY, "no memory for the %u vectors of a source", s->n_memory);
        for (uint32_t k = 0; k < s->n_memory; k++) b->memory[k] = give_back(&b->encoded, s->memory + k, b->d);
        for (uint32_t j = 0; j < s->n_live; j++) VPPS_TRY(add_step(b, s, &s->live[j], from, to));
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- which hypotheses go on */

static double score(const decoder *d, double sum, uint64_t length) {
    const double alpha = d->options.beam > 1 ? d->options.length_penalty : 0;
    return sum / pow((5 + (double)length) / 6, alpha);
}

/* Inserts candidate c among the `most` best candidates. Of equally good candidates the earlier one stays in front. */
static void choose(candidate *best, uint32_t *n, uint32_t most, candidate c) {
    if (*n == most && c.from.sum <= best[most - 1].from.sum) return;
    uint32_t i = *n < most ? (*n)++ : most - 1;
    for (; i > 0 && best[i - 1].from.sum < c.from.sum; i--) best[i] = best[i - 1];
    best[i] = c;
}

double decode_log_sum(const float *x, uint32_t n) {
    double most = -INFINITY, sum = 0;
    for (uint32_t j = 0; j < n; j++)
        if (x[j] > most) most = x[j];
    for (uint32_t j = 0; j < n; j++) sum += exp(x[j] - most);
    return most + log(sum);
}

/* Finds the best continuations of a source's hypotheses, whose states and logits begin at values[at]. */
static vpps_status continue_all(batch *b, const source *s, const fetched *made, size_t at, uint32_t *n) {
    const decoder *d = b->d;
    *n = 0;
    for (uint32_t k = 0; k < s->n_live; k++, at += s->n_states + 1) {
        const float *logits = made->values + made->list[at + s->n_states].at;
        const double all = decode_log_sum(logits, d->classes);
        if (!isfinite(all)) return vpps_fail(VPPS_NONFINITE, "%s: logits are not finite", d->net->name);
        for (uint32_t word = 0; word < d->classes; word++) {
            const hypothesis h = {s->live[k].sum + (logits[word] - all), at, s->live[k].last};
            choose(b->choices, n, 2 * d->options.beam, (candidate){h, word});
        }
    }
    return VPPS_OK;
}

/* Adds a finished hypothesis to the best finished ones of its source. */
static void end(const batch *b, source *s, const hypothesis *h, uint64_t length) {
    const hypothesis ended = {.sum = score(b->d, h->sum, length), .last = h->last};
    choose(s->ended, &s->n_ended, b->n_best, (candidate){.from = ended});
}

static vpps_status keep(batch *b, source *s, const candidate *c) {
    if (!VPPS_RESERVE(b->links, b->n_links + 1)) return vpps_fail(VPPS_MEMORY, "no memory for the words of hypotheses");
    b->links[b->n_links] = (link){c->from.last, c->word};
    s->live[s->n_live] = c->from;
    s->live[s->n_live++].last = b->n_links++;
    return VPPS_OK;
}

/* Replaces a source's unfinished hypotheses by their best continuations, of `length` words each. */
static vpps_status advance(batch *b, source *s, const fetched *made, size_t at, uint64_t length) {
    const decoder *d = b->d;
    uint32_t n;
    VPPS_TRY(continue_all(b, s, made, at, &n));
    s->n_live = 0;
    /* A hypothesis has one continuation that finishes it, by the end word. Therefore at least `beam` of the 2 * beam best continuations are
     * unfinished, if as many exist. */
    for (uint32_t rank = 0; rank < n; rank++) {
        const candidate *c = &b->choices[rank];
        if (c->word != d->end_word) {
            if (s->n_live < d->options.beam) VPPS_TRY(keep(b, s, c));
        } else if (rank < d->options.beam) {
            end(b, s, &c->from, length);
        }
    }
    /* Drops a hypothesis that must lose: even if all further words, up to max_words, had probability 1, its score would be too low. */
    while (s->n_live && s->n_ended == b->n_best &&
           s->ended[s->n_ended - 1].from.sum >= score(d, s->live[s->n_live - 1].sum, s->max_words))
        s->n_live--;
    if (length == s->max_words) {
        if (!s->n_ended) end(b, s, &s->live[0], length);
        s->n_live = 0;
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- all steps */

static vpps_status search(batch *b) {
    const fetched *from = &b->encoded;
    bool live = b->n > 0;
    for (uint64_t length = 1; live; length++) {
        fetched *to = &b->made[length % 2];
        VPPS_TRY(add_steps(b, from, to));
        VPPS_TRY(fetch(to, b->d));
        size_t at = 0;
        live = false;
        for (source *s = b->sources; s < b->sources + b->n; s++) {
            const size_t next = at + (size_t)s->n_live * (s->n_states + 1);
            if (s->n_live) VPPS_TRY(advance(b, s, to, at, length));
            live |= s->n_live > 0;
            at = next;
        }
        from = to;
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- the result */

static size_t count_words(const batch *b, size_t last) {
    size_t n = 0;
    for (; last != NO_LINK; last = b->links[last].before) n++;
    return n;
}

/* Allocates room for `total` translations of n sources. Returns false when out of memory. */
static bool decoded_create(decoded *out, uint32_t n, size_t total) {
    out->n = n;
    out->of = calloc((size_t)n + 1, sizeof *out->of);
    out->first = calloc(total + 1, sizeof *out->first);
    out->scores = calloc(total + 1, sizeof *out->scores);
    return out->of && out->first && out->scores;
}

void decoded_destroy(decoded *out) {
    VPPS_FREE(out->of, out->first, out->words, out->scores);
    memset(out, 0, sizeof *out);
}

static vpps_status collect(const batch *b, decoded *out) {
    size_t total = 0, n_words = 0, k = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        const source *s = &b->sources[i];
        total += s->n_ended;
        for (uint32_t e = 0; e < s->n_ended; e++) n_words += count_words(b, s->ended[e].from.last);
    }
    if (!decoded_create(out, b->n, total) || !(out->words = calloc(n_words + 1, sizeof *out->words)))
        return vpps_fail(VPPS_MEMORY, "no memory for %zu translations", total);
    for (uint32_t i = 0; i < b->n; i++) {
        const source *s = &b->sources[i];
        for (uint32_t e = 0; e < s->n_ended; e++, k++) {
            out->scores[k] = s->ended[e].from.sum;
            size_t at = out->first[k + 1] = out->first[k] + count_words(b, s->ended[e].from.last);
            for (size_t l = s->ended[e].from.last; l != NO_LINK; l = b->links[l].before)
                out->words[--at] = b->links[l].word;
        }
        out->of[i + 1] = k;
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- greedy search in one forward pass: the device chooses each word */

bool decode_by_device(const decoder *d) {
    enum { MOST_WORDS = 1000 }; /* limit, since the device's memory pool holds the values of all words at once */
    vpps_stats stats = {.size = sizeof stats};
    return d->options.beam == 1 && d->options.max_words <= MOST_WORDS && d->net->greedy &&
           vpps_handle_stats(d->handle, &stats) == VPPS_OK && stats.decides;
}

/* Greedy search by the device: graph nodes whose values are the translations' words and log-probabilities. */
typedef struct spoken {
    const decoder *d;
    vpps_node *nodes, *log_p;
    size_t n;      /* number of words */
    size_t *first; /* index of each source's first word; one more entry for the end */
} spoken;

static void close_spoken(spoken *s) {
    VPPS_FREE_ARRAYS(s->nodes);
    VPPS_FREE(s->log_p, s->first);
}

static vpps_status no_memory(uint32_t n) { return vpps_fail(VPPS_MEMORY, "no memory for %u translations", n); }

static vpps_status speak(spoken *s, uint32_t n, decode_example *example, void *context) {
    const decoder *d = s->d;
    s->first = vpps_scratch(((size_t)n + 1) * sizeof *s->first);
    s->log_p = vpps_scratch(((size_t)n + 1) * sizeof *s->log_p);
    if (!s->first || !s->log_p) return no_memory(n);
    vpps_graph_clear(d->graph);
    for (uint32_t i = 0; i < n; i++) {
        net_example x = {0};
        net_decoding encoded = {0};
        VPPS_TRY(example(context, i, &x));
        VPPS_TRY(d->net->encode(d->instance, d->graph, &x, &encoded));
        const uint64_t limit = decode_most_words(d, &x);
        if (limit > UINT32_MAX || !VPPS_RESERVE(s->nodes, s->n + limit + n)) return no_memory(n);
        net_greedy g = {.end_word = d->end_word, .limit = (uint32_t)limit, .words = s->nodes + s->n};
        VPPS_TRY(d->net->greedy(d->instance, d->graph, &encoded, &g));
        s->log_p[i] = g.log_p;
        s->n += limit;
        s->first[i + 1] = s->n;
    }
    return VPPS_OK;
}

/* Runs the graph of all translations, and collects each translation's words without the end word. */
static vpps_status run(const spoken *s, uint32_t n, decoded *out) {
    const size_t all = s->n + n;
    VPPS_FREED float *values = vpps_scratch((all + 1) * sizeof *values);
    VPPS_FREED float **outs = vpps_scratch((all + 1) * sizeof *outs);
    if (!values || !outs || !decoded_create(out, n, n) || !(out->words = calloc(s->n + 1, sizeof *out->words)))
        return no_memory(n);
    if (!n) return VPPS_OK;
    memcpy(s->nodes + s->n, s->log_p, n * sizeof *s->nodes);
    for (size_t i = 0; i < all; i++) outs[i] = values + i;
    VPPS_TRY(vpps_forward(s->d->handle, s->d->graph, (uint32_t)all, s->nodes, outs));
    size_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        out->scores[i] = (double)values[s->n + i];
        if (!isfinite(out->scores[i])) return vpps_fail(VPPS_NONFINITE, "%s: logits are not finite", s->d->net->name);
        for (size_t k = s->first[i]; k < s->first[i + 1] && values[k] != (float)s->d->end_word; k++)
            out->words[at++] = (uint32_t)values[k];
        out->first[i + 1] = at;
        out->of[i + 1] = i + 1;
    }
    return VPPS_OK;
}

static vpps_status decode_greedy(const decoder *d, uint32_t n, decode_example *example, void *context, decoded *out) {
    memset(out, 0, sizeof *out);
    VPPS_CLOSED_BY(close_spoken) spoken s = {.d = d};
    vpps_status status = speak(&s, n, example, context);
    if (status == VPPS_OK) status = run(&s, n, out);
    if (status != VPPS_OK) decoded_destroy(out);
    return status;
}

/* ---------------------------------------------------------------- all of it */

vpps_status decode_batch(const decoder *d, uint32_t n, decode_example *example, void *context, decoded *out) {
    memset(out, 0, sizeof *out);
    if (decode_by_device(d)) return decode_greedy(d, n, example, context, out);
    batch b = {.d = d, .n = n, .n_best = d->options.n_best ? d->options.n_best : 1};
    vpps_status status = n ? open_batch(&b) : VPPS_OK;
    if (status == VPPS_OK && n) status = encode(&b, example, context);
    if (status == VPPS_OK) status = search(&b);
    if (status == VPPS_OK) status = collect(&b, out);
    if (status != VPPS_OK) decoded_destroy(out);
    close_batch(&b);
    return status;
}
