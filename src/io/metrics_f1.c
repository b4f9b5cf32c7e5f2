/* metrics_f1.c - counts chunks of tagged sentences as conlleval, the script of the CoNLL shared tasks, does. */
#include "vpps_data.h"

#include "base/base.h"
#include "chunks.h"

#define NO_TYPE UINT32_MAX

typedef struct tag_parts {
    char part;     /* letter of the tag: O, B, I, E or S (vpps_chunk_tag) */
    uint32_t type; /* index of the tag's type in `types`; NO_TYPE for O */
} tag_parts;

struct vpps_f1 {
    tag_parts *tags; /* indexed by a tag's id */
    uint32_t n_tags;
    const char **types;     /* names of types; they point into the vocabulary */
    vpps_f1_counts *counts; /* indexed by type */
    uint32_t n_types;
    uint64_t tokens, right;
};

/* ---------------------------------------------------------------- tags */

static vpps_status find_type(vpps_f1 *f, const char *name, uint32_t *type) {
    for (*type = 0; *type < f->n_types; (*type)++)
        if (strcmp(f->types[*type], name) == 0) return VPPS_OK;
    if (!VPPS_RESERVE(f->types, (size_t)f->n_types + 1) || !VPPS_RESERVE(f->counts, (size_t)f->n_types + 1))
        return vpps_fail(VPPS_MEMORY, "F1: out of memory at %u types", f->n_types);
    f->types[f->n_types] = name;
    f->counts[f->n_types++] = (vpps_f1_counts){0};
    return VPPS_OK;
}

static vpps_status take_apart(vpps_f1 *f, const char *text, tag_parts *parts) {
    vpps_chunk_tag tag;
    vpps_chunk_tag_read(text, &tag);
    *parts = (tag_parts){tag.part, NO_TYPE};
    return tag.part == 'O' ? VPPS_OK : find_type(f, tag.type, &parts->type);
}

static vpps_status take_all_apart(vpps_f1 *f, const vpps_vocab *tags) {
    const uint32_t n = vpps_vocab_size(tags);
    f->tags = malloc((n ? n : 1) * sizeof *f->tags);
    if (!f->tags) return vpps_fail(VPPS_MEMORY, "F1: out of memory for %u tags", n);
    for (; f->n_tags < n; f->n_tags++) VPPS_TRY(take_apart(f, vpps_vocab_word(tags, f->n_tags), &f->tags[f->n_tags]));
    return VPPS_OK;
}

bool vpps_f1_applies(const vpps_vocab *tags) {
    uint32_t good = 0, bad = 0, chunks = 0, typed = 0;
    for (uint32_t i = 0; i < vpps_vocab_size(tags); i++) {
        vpps_chunk_tag tag;
        const bool of_scheme = vpps_chunk_tag_read(vpps_vocab_word(tags, i), &tag);
        good += of_scheme;
        bad += !of_scheme;
        chunks += tag.part != 'O';
        typed += *tag.type != '\0';
    }
    return chunks > 0 && (typed ? 2 * good > bad : good > 2 * bad);
}

vpps_status vpps_f1_create(vpps_f1 **out, const vpps_vocab *tags) {
    VPPS_NEED(out);
    *out = NULL;
    VPPS_NEED(tags);
    vpps_f1 *f = calloc(1, sizeof *f);
    if (!f) return vpps_fail(VPPS_MEMORY, "F1: out of memory");
    vpps_status status = take_all_apart(f, tags);
    if (status == VPPS_OK)
        *out = f;
    else
        vpps_f1_destroy(f);
    return status;
}

void vpps_f1_destroy(vpps_f1 *f) {
    if (!f) return;
    VPPS_FREE_ARRAYS(f->types, f->counts);
    VPPS_FREE(f->tags, f);
}

/* ---------------------------------------------------------------- chunks */

typedef struct chunk {
    uint32_t begin, end, type; /* words begin .. end - 1 and the type of the chunk */
} chunk;

static bool goes_on(tag_parts before, tag_parts tag) {
    return tag.type == before.type && vpps_chunk_goes_on(before.part, tag.part);
}

/* Finds the first chunk that begins at *at or later, and advances *at to its end. Returns false when there is none. */
static bool next_chunk(const vpps_f1 *f, uint32_t n, const uint32_t *ids, uint32_t *at, chunk *c) {
    while (*at < n && f->tags[ids[*at]].part == 'O') (*at)++;
    if (*at == n) return false;
    c->begin = *at;
    c->type = f->tags[ids[*at]].type;
    do { (*at)++; } while (*at < n && goes_on(f->tags[ids[*at - 1]], f->tags[ids[*at]]));
    c->end = *at;
    return true;
}

/* Counts gold and predicted chunks in one pass over both lists, since chunks of one sequence do not overlap. */
static void count_chunks(vpps_f1 *f, uint32_t n, const uint32_t *gold, const uint32_t *predicted) {
    uint32_t gold_at = 0, predicted_at = 0;
    chunk g, p;
    bool has_g = next_chunk(f, n, gold, &gold_at, &g), has_p = next_chunk(f, n, predicted, &predicted_at, &p);
    while (has_g || has_p) {
        const bool take_g = has_g && (!has_p || g.begin <= p.begin), take_p = has_p && (!has_g || p.begin <= g.begin);
        if (take_g && take_p && g.end == p.end && g.type == p.type) f->counts[g.type].correct++;
        if (take_g) {
            f->counts[g.type].gold++;
            has_g = next_chunk(f, n, gold, &gold_at, &g);
        }
        if (take_p) {
            f->counts[p.type].predicted++;
            has_p = next_chunk(f, n, predicted, &predicted_at, &p);
        }
    }
}

vpps_status vpps_f1_add(vpps_f1 *f, uint32_t n, const uint32_t *gold, const uint32_t *predicted) {
    VPPS_NEED(f);
    if (n) VPPS_NEED(gold);
    if (n) VPPS_NEED(predicted);
    for (uint32_t i = 0; i < n; i++) {
        if (gold[i] >= f->n_tags || predicted[i] >= f->n_tags)
            return vpps_fail(VPPS_ARGUMENT, "F1: expected tags below %u, found %u (gold) and %u (predicted) at word %u",
                             f->n_tags, gold[i], predicted[i], i);
    }
    for (uint32_t i = 0; i < n; i++) f->right += gold[i] == predicted[i];
    f->tokens += n;
    count_chunks(f, n, gold, predicted);
    return VPPS_OK;
}

/* ---------------------------------------------------------------- results */

uint32_t vpps_f1_types(const vpps_f1 *f) { return f ? f->n_types : 0; }

const char *vpps_f1_type(const vpps_f1 *f, uint32_t type) { return type < vpps_f1_types(f) ? f->types[type] : NULL; }

vpps_f1_counts vpps_f1_all_counts(const vpps_f1 *f) {
    vpps_f1_counts all = {0};
    for (uint32_t t = 0; t < vpps_f1_types(f); t++) {
        all.gold += f->counts[t].gold;
        all.predicted += f->counts[t].predicted;
        all.correct += f->counts[t].correct;
    }
    return all;
}

vpps_f1_counts vpps_f1_type_counts(const vpps_f1 *f, uint32_t type) {
    return type < vpps_f1_types(f) ? f->counts[type] : (vpps_f1_counts){0};
}

uint64_t vpps_f1_tokens(const vpps_f1 *f, uint64_t *right) {
    if (right) *right = f ? f->right : 0;
    return f ? f->tokens : 0;
}

static double ratio(double a, double b) { return b > 0 ? a / b : 0; }

double vpps_f1_precision(vpps_f1_counts c) { return ratio((double)c.correct, (double)c.predicted); }

double vpps_f1_recall(vpps_f1_counts c) { return ratio((double)c.correct, (double)c.gold); }

double vpps_f1_score(vpps_f1_counts c) { return ratio(2 * (double)c.correct, (double)c.gold + (double)c.predicted); }
