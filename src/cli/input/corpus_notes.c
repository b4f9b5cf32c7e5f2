/* corpus_notes.c - collects notes for the user about oddities in data files, such as bytes that are not UTF-8. */
#include "base/base.h"
#include "cli/input/corpus_read.h"
#include "io/chunks.h"
#include "io/descriptor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <strings.h>

void corpus_note(corpus *c, const char *format, ...) {
    va_list arguments;
    char *line = NULL;
    if (!VPPS_RESERVE(c->notes, c->n_notes + 1)) return;
    va_start(arguments, format);
    if (vasprintf(&line, format, arguments) >= 0) c->notes[c->n_notes++] = line;
    va_end(arguments);
}

/* ---------------------------------------------------------------- encoding */

/* Returns the first byte in at .. end that is not UTF-8, NULL if there is none. */
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
    corpus_note(c, "%s%s:%zu:%zu: byte 0x%02X is not UTF-8%s: words are taken as bytes", VPPS_PATH_ARGS(name),
                first_line, first_column, first, others);
}

/* ---------------------------------------------------------------- reserved words */

void corpus_note_reserved(corpus *c, const char *name, const char *text, size_t len) {
    const vpps_text t = vpps_text_of(name, text, len, "");
    uint64_t n_inside = 0, n_ends = 0, inside = 0, ends = 0;
    vpps_line line = {0};
    if (!memmem(t.begin, (size_t)(t.end - t.begin), END_WORD, sizeof END_WORD - 1)) return;
    while (vpps_text_next_line(&t, &line)) {
        const char *at = line.begin;
        vpps_word word;
        while (vpps_text_next_word(&at, line.end, &word)) {
            if (!vpps_word_is(word, END_WORD)) continue;
            const bool last = vpps_skip_blanks(at, line.end) == line.end;
            if (last && !n_ends++) ends = line.number;
            if (!last && !n_inside++) inside = line.number;
        }
    }
    if (n_inside)
        corpus_note(c,
                    "%s%s:%" PRIu64 ": " END_WORD
                    " marks the end of a sentence; inside a line it is read as <unk>; such words: %" PRIu64,
                    VPPS_PATH_ARGS(name), inside, n_inside);
    if (n_ends)
        corpus_note(c,
                    "%s%s:%" PRIu64 ": " END_WORD
                    " at the end of a line is the mark that every sentence gets; such lines: %" PRIu64,
                    VPPS_PATH_ARGS(name), ends, n_ends);
}

/* ---------------------------------------------------------------- labels */

/* Sets *label to label k of example i, an id in the split's own vocabulary (VPPS_NO_WORD: unlabelled). Returns false
 * when the example has no label k. */
static bool label_at(const corpus_split *split, uint32_t i, uint32_t k, uint32_t *label) {
    *label = VPPS_NO_WORD;
    if (split->bank) {
        const vpps_tree tree = vpps_treebank_tree(split->bank, i);
        if (k < tree.n_nodes && tree.nodes[k].label >= 0) *label = (uint32_t)tree.nodes[k].label;
        return k < tree.n_nodes;
    }
    const vpps_sentence s = vpps_sentences_get(split->sentences, i);
    const uint32_t n = s.tags ? s.n_words : 1;
    if (k < n) *label = s.tags ? s.tags[k] : vpps_sentences_label(split->sentences, i);
    return k < n;
}

static uint32_t n_labels(const corpus_split *split) {
    if (split->bank) return vpps_treebank_classes(split->bank);
    if (!split->ids[VOCAB_CLASSES] || split->target) return 0; /* words of a translation are no labels */
    return vpps_vocab_size(vpps_sentences_tag_vocab(split->sentences));
}

/* Returns a label's name, NULL if labels are numbers. */
static const char *label_word(const corpus *c, const corpus_split *split, uint32_t label) {
    const vpps_vocab *names = split->bank ? c->vocab[VOCAB_CLASSES] : vpps_sentences_tag_vocab(split->sentences);
    return names ? vpps_vocab_word(names, label) : NULL;
}

/* Returns for each of n labels whether the network cannot learn it: whether the training split lacks it. Without a training split, a tree's
 * label is unknown if it is none of the classes. NULL: out of memory. */
static bool *find_unknown(const corpus *c, const corpus_split *split, uint32_t n) {
    const corpus_split *train = &c->split[SPLIT_TRAIN];
    bool *unknown = vpps_scratch(((size_t)n + 1) * sizeof *unknown);
    for (uint32_t label = 0; unknown && label < n; label++)
        unknown[label] =
            split->bank ? train->present || label >= c->classes : split->ids[VOCAB_CLASSES][label] == VPPS_NO_WORD;
    for (uint32_t i = 0; unknown && split->bank && train->present && i < vpps_treebank_size(train->bank); i++) {
        uint32_t label;
        for (uint32_t k = 0; label_at(train, i, k, &label); k++)
            if (label < n) unknown[label] = false;
    }
    return unknown;
}

/* Parts of a warning about suspicious labels, such as labels that the training part lacks. */
typedef struct odd_label {
    /* place, name: "FILE:LINE" and name of the first suspicious label; others: the number of further ones, as ", nor 3 more" */
    char place[4096], name[72], others[64];
} odd_label;

/* Describes the first label marked in `odd`, and counts the others; `more` is the word before that count, as "nor" in ", nor 3 more".
 * Returns false when no marked label occurs. */
static bool find_odd_label(const corpus *c, const corpus_split *split, bool *odd, const char *more, odd_label *found) {
    uint32_t n = 0, label;
    *found->others = '\0';
    for (uint32_t i = 0; i < corpus_read_so_far(split); i++) {
        for (uint32_t k = 0; label_at(split, i, k, &label); k++) {
            if (label == VPPS_NO_WORD || !odd[label]) continue;
            odd[label] = false;
            if (n++) continue;
            const char *word = label_word(c, split, label);
            if (word)
                snprintf(found->name, sizeof found->name, "%.64s", word);
            else
                snprintf(found->name, sizeof found->name, "%u", label);
            if (split->sentences)
                snprintf(found->place, sizeof found->place, "%s:%u", corpus_file_of(split, i)->name,
                         vpps_sentences_word_line(split->sentences, i, k));
            else
                corpus_place(split, i, found->place, sizeof found->place);
        }
    }
    if (n > 1) snprintf(found->others, sizeof found->others, ", %s %u more", more, n - 1);
    return n > 0;
}

void corpus_note_labels(corpus *c, int which) {
    const corpus_split *split = &c->split[which];
    const uint32_t n = n_labels(split);
    VPPS_FREED bool *odd = n ? find_unknown(c, split, n) : NULL;
    odd_label found;
    if (odd && find_odd_label(c, split, odd, "nor", &found))
        corpus_note(c, "%s: the training part has no label %s%s: it is never right", found.place, found.name,
                    found.others);
}

/* Adds a note if tags include O but no tag of a known scheme of chunks such as B-PER; b-per, B_PER, PER-B and PER are of none. */
static void note_other_scheme(corpus *c, const corpus_split *split, uint32_t n) {
    const char *other = NULL;
    bool has_o = false;
    for (uint32_t label = 0; label < n; label++) {
        const char *name = label_word(c, split, label);
        const bool is_o = name && strcasecmp(name, "O") == 0;
        has_o |= is_o;
        if (!is_o && !other) other = name;
    }
    if (has_o && other)
        corpus_note(c,
                    "%s%s: tags such as '%.64s' are of no scheme (O, B-X, I-X and so on): accuracy is measured, no F1",
                    VPPS_PATH_ARGS(split->files[0].name), other);
}

void corpus_note_tags(corpus *c, int which) {
    const corpus_split *split = &c->split[which];
    const uint32_t n = n_labels(split);
    const bool chunks = vpps_f1_applies(c->vocab[VOCAB_CLASSES]);
    if (which == SPLIT_TRAIN && split->sentences && !chunks) note_other_scheme(c, split, n);
    VPPS_FREED bool *odd = n && chunks ? vpps_scratch(n * sizeof *odd) : NULL;
    odd_label found;
    for (uint32_t label = 0; odd && label < n; label++) {
        const char *name = label_word(c, split, label);
        vpps_chunk_tag tag;
        odd[label] = name && !vpps_chunk_tag_read(name, &tag);
    }
    if (odd && find_odd_label(c, split, odd, "as is the case with", &found))
        corpus_note(c, "%s: tag '%s' is of no scheme (O, B-X, I-X and so on)%s: F1 takes it for O", found.place,
                    found.name, found.others);
}
