/* dependencies_read.c - reads dependency trees from CoNLL-U: words, heads, and relations or a label per sentence. */
#include "sequences.h"

#include "base/base.h"
#include "stream.h"

enum { ID, FORM, LEMMA, UPOS, XPOS, FEATS, HEAD, DEPREL, DEPS, MISC, N_COLUMNS };

typedef struct tree_reader {
    vpps_sentences *s;
    const vpps_text *t;
    vpps_dependencies wanted;
    size_t first;      /* index of the sentence's first word among all sentences' words in `s` */
    uint32_t line;     /* number of the text's line that has the sentence's first word; 0: no word read yet */
    const char **head; /* for each word of the sentence: address in the text of the word's HEAD column */
    bool *seen;        /* for each word of the sentence: whether its chain of heads is known to reach a root */
    vpps_word label;   /* the sentence's label; label.at NULL: none yet */
} tree_reader;

/* ---------------------------------------------------------------- columns */

static vpps_status split_line(const tree_reader *r, const vpps_line *line, vpps_word *columns) {
    const char *at = line->begin;
    char found[40];
    uint32_t n = 0;
    for (;; n++) {
        const char *tab = memchr(at, '\t', (size_t)(line->end - at)), *end = tab ? tab : line->end;
        if (n < N_COLUMNS) columns[n] = vpps_word_trimmed(at, end);
        if (!tab) break;
        at = tab + 1;
    }
    if (n + 1 == N_COLUMNS) return VPPS_OK;
    snprintf(found, sizeof found, "%u", n + 1);
    return vpps_text_fail(r->t, line->begin, "the 10 columns of CoNLL-U, with tabs between", found);
}

static bool parse_number(vpps_word c, uint32_t *value) {
    uint64_t v;
    if (!vpps_text_whole_number(c.at, c.at + c.len, UINT32_MAX - 1, &v)) return false;
    *value = (uint32_t)v;
    return true;
}

/* ---------------------------------------------------------------- lines */

/* Reads the sentence's label from a comment "# NAME = LABEL" if NAME is the wanted one. */
static vpps_status read_comment(tree_reader *r, const vpps_line *line) {
    if (!r->wanted.label || r->wanted.heads_only) return VPPS_OK;
    const char *value = vpps_comment_value(line, r->wanted.label);
    if (!value) return VPPS_OK;
    const char *end = vpps_trim_blanks(value, line->end), *name = vpps_skip_blanks(line->begin + 1, line->end);
    if (value == end) return vpps_text_fail(r->t, value, "a label", NULL);
    if (r->label.at) return vpps_text_fail(r->t, name, "one label for the sentence", "a second one");
    r->label = (vpps_word){value, (size_t)(end - value)};
    return VPPS_OK;
}

static vpps_status read_word(tree_reader *r, const vpps_line *line) {
    vpps_word c[N_COLUMNS];
    uint32_t number;
    char expected[80];
    bool is_word;
    VPPS_TRY(split_line(r, line, c));
    if (vpps_conllu_id(c[ID], &is_word) && !is_word) return VPPS_OK;
    const size_t n = r->line ? r->s->n_words - r->first : 0;
    if (!parse_number(c[ID], &number) || number != n + 1) {
        snprintf(expected, sizeof expected, "the word's number %zu, a range as 3-4, or an empty node as 5.1", n + 1);
        return vpps_text_fail(r->t, c[ID].at, expected, NULL);
    }
    if (!c[FORM].len) return vpps_text_fail(r->t, c[FORM].at, "a word", NULL);
    const bool relations = !r->wanted.heads_only && !r->wanted.label;
    if (relations && (!c[DEPREL].len || (c[DEPREL].len == 1 && *c[DEPREL].at == '_')))
        return vpps_text_fail(r->t, c[DEPREL].at, "a relation", NULL);
    const char *colon = r->wanted.cut_subtypes ? memchr(c[DEPREL].at, ':', c[DEPREL].len) : NULL;
    if (colon > c[DEPREL].at) c[DEPREL].len = (size_t)(colon - c[DEPREL].at);
    if (!VPPS_RESERVE(r->head, n + 1)) return vpps_fail(VPPS_MEMORY, "no memory for %zu words", n);
    if (!r->line) {
        r->line = line->number;
        r->first = r->s->n_words;
    }
    r->s->line = line->number;
    VPPS_TRY(vpps_sentences_add_word(r->s, c[FORM].at, c[FORM].len, c[DEPREL].at, c[DEPREL].len));
    r->head[n] = c[HEAD].at;
    if (parse_number(c[HEAD], &r->s->heads[r->first + n]) && r->s->heads[r->first + n] != number) return VPPS_OK;
    return vpps_text_fail(r->t, c[HEAD].at, "a head: the number of another word, or 0", NULL);
}

/* ---------------------------------------------------------------- sentences */

/* Checks that heads are words of the sentence, and that a labelled sentence has one root. */
static vpps_status check_heads(const tree_reader *r, const uint32_t *heads, size_t n) {
    char expected[64];
    size_t root = n;
    for (size_t k = 0; k < n; k++) {
        if (heads[k] > n) {
            snprintf(expected, sizeof expected, "a head: 0 to %zu, the number of the last word", n);
            return vpps_text_fail(r->t, r->head[k], expected, NULL);
        }
        if (heads[k]) continue;
        if (r->wanted.label && root < n) {
            snprintf(expected, sizeof expected, "one root, which is word %zu", root + 1);
            return vpps_text_fail(r->t, r->head[k], expected, NULL);
        }
        root = k;
    }
    return VPPS_OK;
}

/* Checks that every word leads to a root: follows the heads from each word up to a word already known to lead to a root. */
static vpps_status check_circles(tree_reader *r, const uint32_t *heads, size_t n) {
    if (!VPPS_RESERVE(r->seen, n + 1)) return vpps_fail(VPPS_MEMORY, "no memory for %zu words", n);
    memset(r->seen, 0, (n + 1) * sizeof *r->seen);
    for (size_t k = 1; k <= n; k++) {
        size_t steps = 0, at = k;
        for (; at && !r->seen[at]; at = heads[at - 1])
            if (steps++ > n) return vpps_text_fail(r->t, r->head[at - 1], "a head that leads to a root", "a circle");
        for (at = k; at && !r->seen[at]; at = heads[at - 1]) r->seen[at] = true;
    }
    return VPPS_OK;
}

static vpps_status end_sentence(tree_reader *r) {
    const uint32_t line = r->line;
    uint32_t label = VPPS_NO_WORD;
    if (!line) return r->label.at ? vpps_text_fail(r->t, r->label.at, "a sentence below its label", "none") : VPPS_OK;
    const uint32_t *heads = r->s->heads + r->first;
    VPPS_TRY(check_heads(r, heads, r->s->n_words - r->first));
    VPPS_TRY(check_circles(r, heads, r->s->n_words - r->first));
    if (r->label.at) VPPS_TRY(vpps_vocab_add_unchecked(r->s->tag_vocab, r->label.at, r->label.len, &label));
    r->line = 0;
    r->label = (vpps_word){NULL, 0};
    return vpps_sentences_end(r->s, line, label);
}

static vpps_status read_trees(tree_reader *r) {
    vpps_line line = {0};
    VPPS_TRY(vpps_text_check(r->t));
    VPPS_TRY(vpps_sentences_begin_trees(r->s, r->wanted.heads_only ? VPPS_PLAIN
                                              : r->wanted.label    ? VPPS_LABELLED
                                                                   : VPPS_TAGGED));
    while (vpps_text_next_line(r->t, &line)) {
        if (vpps_line_is_blank(&line))
            VPPS_TRY(end_sentence(r));
        else if (*line.begin == '#')
            VPPS_TRY(read_comment(r, &line));
        else
            VPPS_TRY(read_word(r, &line));
    }
    return end_sentence(r);
}

/* ---------------------------------------------------------------- the calls */

vpps_status vpps_sentences_read_dependencies_text(vpps_sentences *s, const char *name, const char *text, size_t len,
                                                  const vpps_dependencies *dependencies) {
    VPPS_NEED(s, name);
    if (len) VPPS_NEED(text);
    const vpps_text t = vpps_text_of(name, text, len, "");
    const vpps_sentences_mark before = vpps_sentences_extent(s);
    tree_reader r = {.s = s, .t = &t};
    if (dependencies) r.wanted = *dependencies;
    const vpps_status status = read_trees(&r);
    VPPS_FREE_ARRAYS(r.head, r.seen);
    if (status != VPPS_OK) vpps_sentences_restore(s, before);
    return status;
}

vpps_status vpps_sentences_read_dependencies_file(vpps_sentences *s, const char *path,
                                                  const vpps_dependencies *dependencies) {
    VPPS_NEED(s, path);
    VPPS_TEXT_OF_FILE(path, text, len);
    return vpps_sentences_read_dependencies_text(s, path, text, len, dependencies);
}
