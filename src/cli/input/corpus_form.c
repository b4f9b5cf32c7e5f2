/* corpus_form.c - adds notes about data that could be read but seem to have another format. */
#include "cli/input/corpus_form.h"
#include "base/base.h"
#include "cli/input/corpus_notes.h"
#include "cli/input/input.h"
#include "cli/input/task.h"
#include "io/file.h"

#include <inttypes.h>
#include <strings.h>

void corpus_note_quotes(corpus *c, const char *name, const char *text, size_t len) {
    const vpps_text t = vpps_text_of(name, text, len, "");
    uint32_t first = 0, n = 0;
    if (input_form_of_name(name) != INPUT_TSV) return;
    for (vpps_line line = {0}; vpps_text_next_line(&t, &line);) {
        const char *tab = memchr(line.begin, '\t', (size_t)(line.end - line.begin));
        if (!tab || line.end - tab < 3 || tab[1] != '"' || line.end[-1] != '"') continue;
        if (!n++) first = line.number;
    }
    if (n) {
        corpus_note(c,
                    "%s%s:%u: the quotes around this text are words; a first line with the names label and text has "
                    "them taken off; such lines: %u",
                    VPPS_PATH_ARGS(name), first, n);
    }
}

void corpus_note_text(corpus *c, const char *name, const char *text, size_t len) {
    const vpps_text t = vpps_text_of(name, text, len, "");
    const char *looks = input_text_looks(&t);
    if (looks) {
        corpus_note(c, "%s%s: every line looks like %s: it is read as plain text, a sentence a line",
                    VPPS_PATH_ARGS(name), looks);
    }
}

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
    if (n_inside) {
        corpus_note(c,
                    "%s%s:%" PRIu64 ": " END_WORD
                    " marks the end of a sentence; inside a line it is read as <unk>; such words: %" PRIu64,
                    VPPS_PATH_ARGS(name), inside, n_inside);
    }
    if (n_ends) {
        corpus_note(c,
                    "%s%s:%" PRIu64 ": " END_WORD
                    " at the end of a line is the mark that every sentence gets; such lines: %" PRIu64,
                    VPPS_PATH_ARGS(name), ends, n_ends);
    }
}

/* Returns whether a word is a usual name of a column of text or labels. */
static bool is_column_name(const char *word) {
    static const char *const names[] = {"label",      "labels", "tag",      "tags",      "class",    "category",
                                        "sentence",   "text",   "target",   "gold",      "ner",      "pos",
                                        "upos",       "xpos",   "ner_tag",  "pos_tag",   "ner_tags", "sentiment",
                                        "gold_label", "score",  "question", "sentence1", "token",    "word"};
    for (size_t i = 0; i < VPPS_COUNT(names); i++) {
        if (strcasecmp(word, names[i]) == 0) return true;
    }
    return false;
}

/* Adds a note if the very first label occurs once and is a usual name of a column: it is probably a heading. */
static void note_heading(corpus *c, const corpus_split *split) {
    uint32_t first, label, n = 0;
    char place[4096], name[72];
    if (!corpus_label(split, 0, 0, &first) || first == VPPS_NO_WORD) return;
    /* the label is after line 1, which was read as names of fields */
    if (split->sentences && vpps_sentences_word_line(split->sentences, 0, 0) > 1) return;
    corpus_label_name(c, split, first, name, sizeof name);
    if (!is_column_name(name)) return;
    for (uint32_t i = 0; i < corpus_read_so_far(split) && n < 2; i++) {
        for (uint32_t k = 0; corpus_label(split, i, k, &label); k++) n += label == first;
    }
    if (n != 1) return;
    corpus_label_place(split, 0, 0, place, sizeof place);
    corpus_note(c, "%s: '%s' is read as a label; it looks like the heading of a column", place, name);
}

/* Adds a note if there are nearly as many classes as labels. */
static void note_many_classes(corpus *c, const settings *s, const corpus_split *split) {
    uint64_t labels = 0;
    uint32_t label;
    for (uint32_t i = 0; i < corpus_read_so_far(split); i++) {
        for (uint32_t k = 0; corpus_label(split, i, k, &label); k++) labels += label != VPPS_NO_WORD;
    }
    const bool all_differ = c->classes == labels && labels > 2;
    const uint64_t share = s->network->kind == NET_SENTENCES ? 2 : 10;
    if (!all_differ && (c->classes < 10 || c->classes * share <= labels)) return;
    corpus_note(c, "%s%s: %u classes for %" PRIu64 " labels: is this the form that %s reads? %s",
                VPPS_PATH_ARGS(split->files[0].name), c->classes, labels, s->network->name,
                s->network->kind == NET_SENTENCES ? "The label is the first column, a sentence the second"
                                                  : "See DATA OPTIONS in vpps(1)");
}

/* Adds a note if the network knows too few words to distinguish examples. */
static void note_words(corpus *c, const settings *s, const corpus_split *split) {
    enum { FEW = 3 };
    const uint32_t known = vpps_vocab_size(c->vocab[VOCAB_WORDS]);
    const vpps_vocab *all = split->sentences ? vpps_sentences_vocab(split->sentences)
                            : split->bank    ? vpps_treebank_vocab(split->bank)
                                             : NULL;
    const char *name = split->files[0].name;
    if (!all || split->lattices || s->network->kind == NET_TEXT) return;
    if (known == 1 && vpps_vocab_size(all) > 0) {
        corpus_note(c, "%s%s: no word occurs %u times (--min-count): all are <unk>", VPPS_PATH_ARGS(name),
                    s->min_count);
    } else if (vpps_vocab_size(all) == 1 && corpus_read_so_far(split) > FEW) {
        corpus_note(c, "%s%s: all words are '%.40s': is this the column of words?", VPPS_PATH_ARGS(name),
                    vpps_vocab_word(all, 0));
    }
}

void corpus_note_form(corpus *c, const settings *s) {
    const corpus_split *split = &c->split[SPLIT_TRAIN];
    const net_kind kind = s->network->kind;
    if (!split->n_files) return;
    const bool in_brackets = kind == NET_TREES; /* trees have brackets; other text was refused */
    if (split->n_all == 1 && corpus_read_so_far(split) == 1 && kind != NET_LATTICES && !in_brackets) {
        corpus_note(c, "%s%s: all of it is one of the %s to train on: is this the form that %s reads?",
                    VPPS_PATH_ARGS(split->files[0].name), task_for(s)->examples, s->network->name);
    }
    note_words(c, s, split);
    if (!task_for(s)->classifies) return;
    note_heading(c, split);
    note_many_classes(c, s, split);
}
