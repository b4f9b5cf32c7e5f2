/* lattices_build.c - reads a lexicon, and builds lattices of the lexicon's words found in sentences of characters. */
#include "lattices.h"

#include "base/base.h"
#include "file.h"
#include "text.h"
#include "vocab.h"

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

/* ---------------------------------------------------------------- lattices
 *
 * A sentence's characters are joined to one text. A candidate word is a part of this text, looked up by its hash:
 * seven look-ups per character. */

typedef struct builder {
    vpps_lattices *l;
    const vpps_vocab *characters, *lexicon;
    char *text;     /* the sentence's characters, joined */
    size_t *starts; /* starts[i]: first byte of character i; the last entry is the end */
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

/* Adds the character and the words that end at node `node`. */
static vpps_status add_arcs(builder *b, vpps_sentence s, uint32_t node) {
    if (node > 0) VPPS_TRY(vpps_lattices_add_arc(b->l, node, node - 1, s.words[node - 1]));
    for (uint32_t n = VPPS_LATTICE_WORD_MIN; n <= VPPS_LATTICE_WORD_MAX && n <= node; n++) {
        const size_t begin = b->starts[node - n];
        const uint32_t word = vpps_vocab_find(b->lexicon, b->text + begin, b->starts[node] - begin);
        if (word != VPPS_NO_WORD) VPPS_TRY(vpps_lattices_add_arc(b->l, node, node - n, word));
    }
    return vpps_lattices_end_node(b->l, node);
}

static vpps_status build_lattice(builder *b, vpps_sentence s, uint32_t line) {
    if (s.n_words == UINT32_MAX) return vpps_fail(VPPS_MEMORY, "lattices: a sentence has too many characters");
    VPPS_TRY(join_characters(b, s));
    VPPS_TRY(vpps_lattices_begin(b->l, line));
    VPPS_TRY(vpps_lattices_add_tag(b->l, 0));
    for (uint32_t i = 0; i < s.n_words; i++) VPPS_TRY(vpps_lattices_add_tag(b->l, s.tags ? s.tags[i] : 0));
    for (uint32_t node = 0; node <= s.n_words; node++) VPPS_TRY(add_arcs(b, s, node));
    vpps_lattices_end(b->l);
    return VPPS_OK;
}

vpps_status vpps_lattices_build(vpps_lattices *l, const vpps_sentences *characters, const vpps_vocab *lexicon) {
    VPPS_NEED(l, characters, lexicon);
    builder b = {.l = l, .characters = vpps_sentences_vocab(characters), .lexicon = lexicon};
    const vpps_lattices_mark before = vpps_lattices_extent(l);
    vpps_status status = VPPS_OK;
    for (uint32_t i = 0; i < vpps_sentences_size(characters) && status == VPPS_OK; i++) {
        status = build_lattice(&b, vpps_sentences_get(characters, i), vpps_sentences_line(characters, i));
    }
    VPPS_FREE_ARRAYS(b.text, b.starts);
    if (status != VPPS_OK) vpps_lattices_restore(l, before);
    return status;
}
