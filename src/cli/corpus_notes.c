/* corpus_notes.c - see corpus_notes.h. */
#include "cli/corpus_notes.h"
#include "base/base.h"
#include "io/file.h"

#include <stdarg.h>

/* Keeps a line to be told. A line too many, or without memory, is not kept. */
static void note(corpus *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(corpus *c, const char *format, ...) {
    va_list arguments;
    char *line = NULL;
    if (c->n_notes == VPPS_COUNT(c->notes)) return;
    va_start(arguments, format);
    if (vasprintf(&line, format, arguments) >= 0) c->notes[c->n_notes++] = line;
    va_end(arguments);
}

/* ---------------------------------------------------------------- encoding */

/* The first byte in at .. end that is not UTF-8; NULL: all is. */
static const char *find_bad_byte(const char *at, const char *end) {
    while (at < end) {
        const uint32_t n = (unsigned char)*at < 0x80 ? 1 : vpps_utf8_character(at, (size_t)(end - at));
        if (n == 1 && (unsigned char)*at >= 0x80) return at;
        at += n;
    }
    return NULL;
}

void corpus_note_encoding(corpus *c, const char *name, const char *text, size_t len) {
    size_t line = 1, first_line = 0, first_column = 0, lines = 0;
    unsigned first = 0;
    for (const char *at = text, *end = text + len; at < end; line++) {
        const char *lf = memchr(at, '\n', (size_t)(end - at)), *line_end = lf ? lf : end;
        const char *bad = find_bad_byte(at, line_end);
        if (bad && !lines++) {
            first_line = line;
            first_column = (size_t)(bad - at) + 1;
            first = (unsigned char)*bad;
        }
        at = lf ? lf + 1 : end;
    }
    if (!lines) return;
    char others[64] = "";
    if (lines > 1) snprintf(others, sizeof others, ", nor are those of %zu more lines", lines - 1);
    note(c, "%s%s:%zu:%zu: byte 0x%02X is not UTF-8%s: words are taken as bytes", VPPS_PATH_ARGS(name), first_line,
         first_column, first, others);
}

static bool find_in_file(const char *name, const char *word, char *place, size_t n) {
    char *text;
    size_t len, line = 1;
    if (!name || vpps_file_read_all(name, &text, &len) != VPPS_OK) return false;
    const char *found = text ? memmem(text, len, word, strlen(word)) : NULL, *line_begin = text;
    for (const char *p = text; found && p < found; p++) {
        if (*p == '\n') line++, line_begin = p + 1;
    }
    if (found) snprintf(place, n, "%s:%zu:%zu: ", name, line, (size_t)(found - line_begin) + 1);
    free(text);
    return found != NULL;
}

void corpus_find_word(const corpus *c, const char *word, char *place, size_t n) {
    const corpus_split *train = &c->split[SPLIT_TRAIN];
    *place = '\0';
    for (size_t i = 0; i < train->n_files; i++) {
        if (find_in_file(train->files[i].name, word, place, n)) return;
        if (find_in_file(train->files[i].target, word, place, n)) return;
    }
}

/* ---------------------------------------------------------------- labels */

/* Label k of number i of what was read, in the part's own ids (VPPS_NO_WORD: none); false: there are fewer. */
static bool label_at(const corpus_split *split, uint32_t i, uint32_t k, uint32_t *label) {
    *label = VPPS_NO_WORD;
    if (split->bank) {
        const vpps_tree tree = vpps_treebank_tree(split->bank, i);
        if (k < tree.n_nodes && tree.nodes[k].label >= 0) *label = (uint32_t)tree.nodes[k].label;
        return k < tree.n_nodes;
    }
    if (!split->sentences) {
        const vpps_lattice l = vpps_lattices_get(split->lattices, i);
        if (k + 1 < l.n_nodes) *label = l.tags[k + 1];
        return k + 1 < l.n_nodes;
    }
    const vpps_sentence s = vpps_sentences_get(split->sentences, i);
    const uint32_t n = s.tags ? s.n_words : 1;
    if (k < n) *label = s.tags ? s.tags[k] : vpps_sentences_label(split->sentences, i);
    return k < n;
}

static uint32_t n_labels(const corpus_split *split) {
    if (split->bank) return vpps_treebank_classes(split->bank);
    if (!split->ids[VOCAB_CLASSES] || split->target) return 0; /* a target's words are another thing */
    if (split->sentences) return vpps_vocab_size(vpps_sentences_tag_vocab(split->sentences));
    return vpps_lattices_tags(split->lattices);
}

static void name_label(const corpus *c, const corpus_split *split, uint32_t label, char *name, size_t n) {
    const vpps_vocab *names = split->bank        ? c->vocab[VOCAB_CLASSES]
                              : split->sentences ? vpps_sentences_tag_vocab(split->sentences)
                                                 : NULL;
    const char *word = names ? vpps_vocab_word(names, label) : NULL;
    if (word) {
        snprintf(name, n, "%.64s", word);
    } else {
        snprintf(name, n, "%u", label);
    }
}

/* Which labels the network can learn. Those of trees are the same numbers in all parts: what the training part has, or
 * without one what is below the number of classes. NULL: out of memory. */
static bool *find_known(const corpus *c, const corpus_split *split, uint32_t n) {
    const corpus_split *train = &c->split[SPLIT_TRAIN];
    bool *known = calloc((size_t)n + 1, sizeof *known);
    for (uint32_t label = 0; known && label < n; label++) {
        known[label] =
            split->bank ? !train->present && label < c->classes : split->ids[VOCAB_CLASSES][label] != VPPS_NO_WORD;
    }
    for (uint32_t i = 0; known && split->bank && train->present && i < vpps_treebank_size(train->bank); i++) {
        uint32_t label;
        for (uint32_t k = 0; label_at(train, i, k, &label); k++) {
            if (label < n) known[label] = true;
        }
    }
    return known;
}

void corpus_note_labels(corpus *c, int which) {
    const corpus_split *split = &c->split[which];
    const uint32_t n = n_labels(split), n_read = corpus_read_so_far(split);
    uint32_t unseen = 0, first = 0, first_label = 0, label;
    bool *known = find_known(c, split, n);
    for (uint32_t i = 0; known && n && i < n_read; i++) {
        for (uint32_t k = 0; label_at(split, i, k, &label); k++) {
            if (label == VPPS_NO_WORD || known[label]) continue;
            if (!unseen++) first = i, first_label = label;
            known[label] = true;
        }
    }
    free(known);
    if (!unseen) return;
    char place[4096], name[72], others[32] = "";
    corpus_place(split, first, place, sizeof place);
    name_label(c, split, first_label, name, sizeof name);
    if (unseen > 1) snprintf(others, sizeof others, ", nor %u more", unseen - 1);
    note(c, "%s: the training part has no label %s%s: it is never right", place, name, others);
}
