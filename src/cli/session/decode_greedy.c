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
    size_t n;      /* number of words */
    size_t *first; /* index of each source's first word; one more entry for the end */
} spoken;

static void close_spoken(spoken *s) {
    VPPS_FREE_ARRAYS(s->nodes);
    VPPS_FREE(s->log_p, s->first);
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

/* Runs all of it, and collects each translation's words without the end word. */
static vpps_status run(const spoken *s, uint32_t n, decoded *out) {
    const size_t all = s->n + n;
    VPPS_FREED float *values = malloc((all + 1) * sizeof *values);
    VPPS_FREED float **outs = malloc((all + 1) * sizeof *outs);
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

vpps_status decode_greedy(const decoder *d, uint32_t n, decode_example *example, void *context, decoded *out) {
    memset(out, 0, sizeof *out);
    VPPS_CLOSED_BY(close_spoken) spoken s = {.d = d};
    vpps_status status = add(&s, n, example, context);
    if (status == VPPS_OK) status = run(&s, n, out);
    if (status != VPPS_OK) decoded_destroy(out);
    return status;
}
