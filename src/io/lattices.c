/* lattices.c - lattices in memory: one array each for tags, arcs, and the nodes' first arcs. Builds lattices of a lexicon's
 * words found in sentences of characters. */
#include "base/base.h"
#include "stream.h"
#include "text.h"
#include "vocab.h"

/* Sizes of a vpps_lattices. Building that fails restores them. */
typedef struct extent {
    size_t n_nodes, n_arcs;
    uint32_t n_lattices;
    uint32_t tag_ids, character_ids, word_ids; /* 1 + the largest id of tags, of characters, of words */
} extent;

struct vpps_lattices {
    extent now;
    uint32_t *tags;       /* one tag per node */
    uint32_t *first_arcs; /* index of each node's first arc within its lattice; one more entry ends each lattice */
    vpps_lattice_arc *arcs;
    struct vpps_lattice_range {
        size_t first_node, first_arc;
        uint32_t n_nodes, line;
    } * ranges;
};

vpps_status vpps_lattices_create(vpps_lattices **out) {
    VPPS_NEED(out);
    *out = calloc(1, sizeof **out);
    return *out ? VPPS_OK : vpps_fail(VPPS_MEMORY, "lattices: out of memory");
}

void vpps_lattices_destroy(vpps_lattices *l) {
    if (!l) return;
    VPPS_FREE_ARRAYS(l->tags, l->first_arcs, l->arcs, l->ranges);
    free(l);
}

uint32_t vpps_lattices_size(const vpps_lattices *l) { return l ? l->now.n_lattices : 0; }

vpps_lattice vpps_lattices_get(const vpps_lattices *l, uint32_t i) {
    if (i >= vpps_lattices_size(l)) return (vpps_lattice){0};
    const struct vpps_lattice_range *r = &l->ranges[i];
    return (vpps_lattice){r->n_nodes, l->tags + r->first_node, l->first_arcs + r->first_node + i,
                          l->arcs ? l->arcs + r->first_arc : NULL};
}

uint32_t vpps_lattices_line(const vpps_lattices *l, uint32_t i) {
    return i < vpps_lattices_size(l) ? l->ranges[i].line : 0;
}

uint32_t vpps_lattices_tags(const vpps_lattices *l) { return l ? l->now.tag_ids : 0; }

uint32_t vpps_lattices_characters(const vpps_lattices *l) { return l ? l->now.character_ids : 0; }

uint32_t vpps_lattices_words(const vpps_lattices *l) { return l ? l->now.word_ids : 0; }

/* ---------------------------------------------------------------- lexicon */

static vpps_status read_lexicon(vpps_vocab *words, const vpps_text *t) {
    vpps_line line = {0};
    VPPS_TRY(vpps_text_check(t));
    while (vpps_text_next_line(t, &line)) {
        const char *tab = memchr(line.begin, '\t', (size_t)(line.end - line.begin)), *end = line.begin;
        uint32_t id;
        if (vpps_line_is_blank(&line)) continue;
        if (vpps_is_blank(*line.begin)) return vpps_text_fail(t, line.begin, "a word", NULL);
        if (tab) {
            end = vpps_trim_blanks(line.begin, tab);
        } else {
            while (end < line.end && !vpps_is_blank(*end)) end++;
        }
        VPPS_TRY(vpps_vocab_add_unchecked(words, line.begin, (size_t)(end - line.begin), &id));
    }
    return VPPS_OK;
}

vpps_status vpps_lexicon_read_text(vpps_vocab *words, const char *name, const char *text, size_t len) {
    VPPS_NEED(words, name);
    if (len) VPPS_NEED(text);
    const vpps_text t = vpps_text_of(name, text, len, "");
    const uint32_t before = vpps_vocab_size(words);
    vpps_status status = read_lexicon(words, &t);
    if (status != VPPS_OK) vpps_vocab_truncate(words, before);
    return status;
}

vpps_status vpps_lexicon_read_file(vpps_vocab *words, const char *path) {
    VPPS_NEED(words, path);
    VPPS_TEXT_OF_FILE(path, text, len);
    return vpps_lexicon_read_text(words, path, text, len);
}

/* ---------------------------------------------------------------- of sentences and a lexicon
 *
 * A sentence's characters are joined to one text. A candidate word is a part of this text, looked up by its hash:
 * seven look-ups per character. */

typedef struct builder {
    vpps_lattices *l;
    const vpps_vocab *characters, *lexicon;
    char *text;     /* the sentence's characters, joined */
    size_t *starts; /* starts[i]: offset in `text` of character i; one more entry: the end */
} builder;

static vpps_status join_characters(builder *b, vpps_sentence s) {
    size_t bytes = 0;
    if (!VPPS_RESERVE(b->starts, (size_t)s.n_words + 1))
        return vpps_fail(VPPS_MEMORY, "lattices: out of memory for a sentence of %u characters", s.n_words);
    for (uint32_t i = 0; i < s.n_words; i++) {
        const char *character = vpps_vocab_word(b->characters, s.words[i]);
        const size_t len = strlen(character);
        if (!VPPS_RESERVE(b->text, bytes + len))
            return vpps_fail(VPPS_MEMORY, "lattices: out of memory at %zu bytes of a sentence", bytes);
        memcpy(b->text + bytes, character, len);
        b->starts[i] = bytes;
        bytes += len;
    }
    b->starts[s.n_words] = bytes;
    return VPPS_OK;
}

static void add_arc(vpps_lattices *l, uint32_t from, uint32_t id, bool is_character) {
    uint32_t *ids = is_character ? &l->now.character_ids : &l->now.word_ids;
    *ids = vpps_max_u32(*ids, id + 1);
    l->arcs[l->now.n_arcs++] = (vpps_lattice_arc){from, id, is_character};
}

/* Adds the character and the words that end at node `node`. */
static void add_arcs(builder *b, vpps_sentence s, uint32_t node) {
    if (node > 0) add_arc(b->l, node - 1, s.words[node - 1], true);
    for (uint32_t n = VPPS_LATTICE_WORD_MIN; n <= VPPS_LATTICE_WORD_MAX && n <= node; n++) {
        const size_t begin = b->starts[node - n];
        const uint32_t word = vpps_vocab_find(b->lexicon, b->text + begin, b->starts[node] - begin);
        if (word != VPPS_NO_WORD) add_arc(b->l, node - n, word, false);
    }
}

static vpps_status build_lattice(builder *b, vpps_sentence s, uint32_t line) {
    vpps_lattices *l = b->l;
    extent *now = &l->now;
    const size_t n = (size_t)s.n_words + 1, first_node = now->n_nodes, first_arc = now->n_arcs;
    if (s.n_words > UINT32_MAX / VPPS_LATTICE_WORD_MAX)
        return vpps_fail(VPPS_MEMORY, "lattices: a sentence has too many characters");
    VPPS_TRY(join_characters(b, s));
    if (now->n_lattices == UINT32_MAX || !VPPS_RESERVE(l->ranges, (size_t)now->n_lattices + 1) ||
        !VPPS_RESERVE(l->tags, first_node + n) || !VPPS_RESERVE(l->first_arcs, first_node + now->n_lattices + n + 1))
        return vpps_fail(VPPS_MEMORY, "lattices: out of memory at lattice %u", now->n_lattices);
    l->ranges[now->n_lattices] = (struct vpps_lattice_range){first_node, first_arc, (uint32_t)n, line};
    uint32_t *first_arcs = l->first_arcs + first_node + now->n_lattices;
    for (uint32_t node = 0; node < n; node++) {
        const uint32_t tag = node > 0 && s.tags ? s.tags[node - 1] : 0;
        if (!VPPS_RESERVE(l->arcs, now->n_arcs + VPPS_LATTICE_WORD_MAX))
            return vpps_fail(VPPS_MEMORY, "lattices: out of memory at lattice %u", now->n_lattices);
        first_arcs[node] = (uint32_t)(now->n_arcs - first_arc);
        add_arcs(b, s, node);
        l->tags[first_node + node] = tag;
        now->tag_ids = vpps_max_u32(now->tag_ids, tag + 1);
    }
    first_arcs[n] = (uint32_t)(now->n_arcs - first_arc);
    now->n_nodes += n;
    now->n_lattices++;
    return VPPS_OK;
}

vpps_status vpps_lattices_build(vpps_lattices *l, const vpps_sentences *characters, const vpps_vocab *lexicon) {
    VPPS_NEED(l, characters, lexicon);
    builder b = {.l = l, .characters = vpps_sentences_vocab(characters), .lexicon = lexicon};
    const extent before = l->now;
    vpps_status status = VPPS_OK;
    for (uint32_t i = 0; i < vpps_sentences_size(characters) && status == VPPS_OK; i++)
        status = build_lattice(&b, vpps_sentences_get(characters, i), vpps_sentences_line(characters, i));
    VPPS_FREE_ARRAYS(b.text, b.starts);
    if (status != VPPS_OK) l->now = before;
    return status;
}
