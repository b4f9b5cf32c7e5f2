/* decode_greedy.c - greedy search as one forward pass: the device chooses each next word, and decides when a translation ends. */
#include "base/base.h"
#include "cli/session/decode.h"

#include <math.h>

bool decode_by_device(const decoder *d) {
    enum { MOST_WORDS = 1000 }; /* most words of a translation: the device's memory pool holds all steps */
    vpps_stats stats = {.size = sizeof stats};
    return d->options.beam == 1 && d->options.max_words <= MOST_WORDS && d->net->greedy &&
           vpps_handle_stats(d->handle, &stats) == VPPS_OK && stats.decides;
}

/* The nodes of the words of all translations, source after source, and of each translation's log-probability. */
typedef struct spoken {
    const decoder *d;
    vpps_node *nodes, *log_p;
    float *values, **outs;
    size_t n;      /* number of words */
    size_t *first; /* index of each source's first word; one more entry for the end */
} spoken;

static void close_spoken(spoken *s) {
    VPPS_FREE_ARRAYS(s->nodes);
    VPPS_FREE(s->log_p, s->values, s->outs, s->first);
}

static vpps_status no_memory(uint32_t n) { return vpps_fail(VPPS_MEMORY, "no memory for %u translations", n); }

static vpps_status add(spoken *s, uint32_t n, decode_example *example, void *context) {
    const decoder *d = s->d;
    s->first = calloc((size_t)n + 1, sizeof *s->first);
    s->log_p = calloc((size_t)n + 1, sizeof *s->log_p);
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

static vpps_status run(spoken *s, uint32_t n) {
    if (!n) return VPPS_OK;
    s->values = malloc((s->n + n) * sizeof *s->values);
    s->outs = malloc((s->n + n) * sizeof *s->outs);
    if (!s->values || !s->outs) return no_memory(n);
    memcpy(s->nodes + s->n, s->log_p, n * sizeof *s->nodes);
    for (size_t i = 0; i < s->n + n; i++) s->outs[i] = s->values + i;
    return vpps_forward(s->d->handle, s->d->graph, (uint32_t)(s->n + n), s->nodes, s->outs);
}

/* Collects each translation's words without the end word. */
static vpps_status collect(const spoken *s, uint32_t n, decoded *out) {
    if (!decoded_create(out, n, n) || !(out->words = calloc(s->n + 1, sizeof *out->words))) return no_memory(n);
    size_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double score = (double)s->values[s->n + i];
        if (!isfinite(score)) return vpps_fail(VPPS_NONFINITE, "%s: logits are not finite", s->d->net->name);
        out->scores[i] = score;
        for (size_t k = s->first[i]; k < s->first[i + 1] && s->values[k] != (float)s->d->end_word; k++)
            out->words[at++] = (uint32_t)s->values[k];
        out->first[i + 1] = at;
        out->of[i + 1] = i + 1;
    }
    return VPPS_OK;
}

vpps_status decode_greedy(const decoder *d, uint32_t n, decode_example *example, void *context, decoded *out) {
    memset(out, 0, sizeof *out);
    spoken s = {.d = d};
    vpps_status status = add(&s, n, example, context);
    if (status == VPPS_OK) status = run(&s, n);
    if (status == VPPS_OK) status = collect(&s, n, out);
    if (status != VPPS_OK) decoded_destroy(out);
    close_spoken(&s);
    return status;
}
