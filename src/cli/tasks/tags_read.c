/* tags_read.c - finds by the whole text whether tagged sentences are word|TAG lines, columns or CoNLL-U. */
#include "base/base.h"
#include "cli/input/corpus_read.h"
#include "cli/input/input.h"
#include "cli/tasks/tags.h"
#include "io/file.h"
#include "io/sequences.h"

#include <inttypes.h>

/* ---------------------------------------------------------------- columns by --word-column and --tag-column */

/* Reads the value of an option that names a column: the column's number, from 1, or the column's name. */
static vpps_status take_column(const char *option, const char *given, uint32_t *number, const char **name) {
    char *end;
    if (!given) return VPPS_OK;
    const unsigned long value = strtoul(given, &end, 10);
    if (*given < '0' || *given > '9') {
        *name = given;
    } else if (*end || value < 1 || value > 1000000) {
        return vpps_fail(VPPS_ARGUMENT, "--%s: expected a column's number, from 1, or its name, found '%.64s'", option,
                         given);
    } else {
        *number = (uint32_t)value;
    }
    return VPPS_OK;
}

/* ---------------------------------------------------------------- what a text looks like */

#define MOST_BARS 8u /* size of arrays indexed by a token's number of '|', 0 to 7; more than 7 count as 7 */

typedef struct look {
    uint64_t words, lines; /* words: number of words; lines: number of lines that are not blank */
    /* 0: line 1's first word has no '|'; else the least number of '|' in line 1's words like word|TAG; MOST_BARS: no such word */
    uint32_t bars;
    /* following: number of lines that follow a line of the same sentence; alike: number of these with as many words as the line before */
    uint64_t following, alike;
    uint32_t line_words;            /* number of words in the latest line; 0: it is blank */
    uint64_t slashed, underscored;  /* numbers of words like word/TAG, and like word_TAG */
    bool barred;                    /* whether all words of the first line read so far have a '|' */
    uint64_t with_bars[MOST_BARS];  /* with_bars[n]: number of words like word|TAG with n '|' */
    uint32_t first_line[MOST_BARS]; /* first_line[n]: number of the first line with a word like word|TAG with n '|' */
    bool tabs, conllu, plus;        /* tabs: whether every line has a tab; conllu, plus: whether CoNLL-U (Plus) */
    /* whether every line so far begins with a running number, which may restart at 0 or 1 where a sentence begins */
    bool numbers;
    /* number: the number at the beginning of the latest line; first_number: number of the first line that begins with a number */
    uint32_t number, first_number;
    uint64_t n_following; /* lines that begin with a number one greater than the line before */
} look;

/* Returns whether a line has CoNLL-U's ten columns: the first is a word's number or a range, the head is a number or missing. */
static bool looks_like_conllu(const vpps_line *line, bool tabs) {
    enum { COLUMNS = 10, HEAD = 6 };
    const char *at = line->begin, *end, *next;
    for (int i = 0; i < COLUMNS; i++) {
        if (!tabs) at = vpps_skip_blanks(at, line->end);
        if (at == line->end) return false;
        for (end = at; end < line->end && (tabs ? *end != '\t' : !vpps_is_blank(*end));) end++;
        next = end < line->end ? end + 1 : end;
        const char *p = at;
        while (p < end && ((*p >= '0' && *p <= '9') || (i == 0 && at < p && (*p == '-' || *p == '.')))) p++;
        const bool number = p == end && at < end, missing = end == at + 1 && *at == '_';
        if ((i == 0 && !number) || (i == HEAD && !number && !missing)) return false;
        at = next;
    }
    return vpps_skip_blanks(at, line->end) == line->end;
}

/* Returns the number of '|' in a word like word|TAG or word|POS|TAG; 0: the word is not of this form. */
static uint32_t count_bars(vpps_word w) {
    uint32_t n = 0;
    const char *last = memrchr(w.at, '|', w.len);
    if (!last || last == w.at || last + 1 == w.at + w.len) return 0;
    for (size_t i = 0; i < w.len; i++) n += w.at[i] == '|';
    return vpps_min_u32(n, MOST_BARS - 1);
}

/* Returns whether a word contains the byte `by` other than at its ends. */
static bool is_parted(vpps_word w, char by) { return w.len > 2 && memchr(w.at + 1, by, w.len - 2); }

/* Counts the words of a line by their form. Text is word|TAG if its first word has a '|'. The least number of '|' in a word of the
 * first line tells how many columns words have. */
static void look_at_words(look *l, const vpps_line *line) {
    const char *at = line->begin;
    vpps_word word;
    l->lines++;
    while (vpps_text_next_word(&at, line->end, &word)) {
        const uint32_t bars = count_bars(word);
        const bool barred = memchr(word.at, '|', word.len);
        if (l->words == 0) l->bars = barred ? MOST_BARS : 0;
        if (l->lines == 1 && bars) l->bars = vpps_min_u32(l->bars, bars);
        if (l->lines == 1) l->barred = (l->barred || !l->words) && barred;
        l->words++;
        l->slashed += is_parted(word, '/');
        l->underscored += is_parted(word, '_');
        if (!l->with_bars[bars]++) l->first_line[bars] = line->number;
    }
}

/* Returns how many '|' divide each word of a text: 1 for word|TAG, 2 for word|POS|TAG, 0 if words have another form. A first word "a|" counts
 * as divided. `asked`: whether --word-column or --tag-column is given; then the result is 0 unless all words of line 1 have a '|'. */
static uint32_t bars_of(const look *l, bool asked) {
    return asked && !l->barred ? 0 : l->bars == MOST_BARS ? 1 : l->bars;
}

/* Refuses text whose words are nearly all word/TAG, as NLTK writes them, or word_TAG, as Stanford's tagger does. */
static vpps_status refuse_other_bars(const task_text *text, const look *l) {
    const char by = 10 * l->slashed >= 9 * l->words ? '/' : '_';
    if (!l->words || l->tabs || l->words < 2 * l->lines ||
        10 * (by == '/' ? l->slashed : l->underscored) < 9 * l->words)
        return VPPS_OK;
    return vpps_fail(VPPS_FORMAT,
                     "%s%s:%u:1: expected word|TAG or columns, found words with '%c', as in word%cTAG: write '|'",
                     VPPS_PATH_ARGS(text->name), l->first_line[0], by, by);
}

/* Refuses to read a text as columns if most of its lines have another number of words than the preceding line. */
static vpps_status refuse_text(const task_text *text, const look *l) {
    enum { FEW = 8 }; /* too few lines to tell columns from text by their numbers of words */
    if (l->tabs || l->following < FEW || 2 * l->alike >= l->following) return VPPS_OK;
    return vpps_fail(VPPS_FORMAT, "%s%s: expected word|TAG, or a line a word with its tag, found lines of text",
                     VPPS_PATH_ARGS(text->name));
}

/* Checks whether lines begin with running numbers of words; the numbers of multiword tokens, such as 3-4, are ignored. */
static void look_at_number(look *l, const vpps_line *line, bool begins) {
    const char *at = line->begin;
    vpps_word word;
    uint64_t value = 0;
    vpps_text_next_word(&at, line->end, &word);
    bool plain = true;
    for (size_t i = 0; i < word.len; i++) {
        const char c = word.at[i];
        const bool digit = c >= '0' && c <= '9';
        plain = plain && digit;
        if (!digit && (i == 0 || (c != '-' && c != '.'))) l->numbers = false;
        value = value * 10 + (uint64_t)(c - '0');
    }
    if (word.len > 9) l->numbers = false;
    if (!l->numbers || !plain) return;
    const bool follows = l->first_number && value == (uint64_t)l->number + 1;
    l->numbers = follows || (begins && value <= 1);
    l->n_following += follows;
    l->number = (uint32_t)value;
    if (!l->first_number) l->first_number = line->number;
}

static void look_at_columns(look *l, const vpps_line *line) {
    const uint32_t n = vpps_text_count_words(line->begin, line->end);
    l->following += l->line_words > 0;
    l->alike += n == l->line_words;
    l->line_words = n;
    l->tabs = l->tabs && memchr(line->begin, '\t', (size_t)(line->end - line->begin)) != NULL;
}

static look look_at(const vpps_text *t) {
    look l = {.tabs = true, .numbers = true};
    vpps_line line = {0}, first = {0};
    bool begins = true;
    while (vpps_text_next_line(t, &line)) {
        if (line.number == 1) l.plus = vpps_conllu_plus(&line) != NULL;
        if (vpps_line_is_blank(&line)) {
            begins = true;
            l.line_words = 0;
            continue;
        }
        look_at_words(&l, &line);
        if (*line.begin == '#') continue;
        if (!first.number) first = line;
        look_at_number(&l, &line, begins);
        begins = false;
        look_at_columns(&l, &line);
    }
    if (!first.number) l.tabs = t->begin < t->end && memchr(t->begin, '\t', (size_t)(t->end - t->begin)) != NULL;
    l.conllu = l.plus || (first.number && looks_like_conllu(&first, l.tabs));
    return l;
}

/* ---------------------------------------------------------------- reading */

static vpps_status read_columns(corpus *c, vpps_sentences *s, const task_text *text, const look *l,
                                const vpps_columns *columns) {
    vpps_columns_seen seen = {0};
    if (l->numbers && l->n_following && !columns->conllu && !columns->word) {
        return vpps_fail(VPPS_FORMAT,
                         "%s%s:%u:1: expected words in column 1, found the running numbers of the lines: which column "
                         "has the words? --word-column 2",
                         VPPS_PATH_ARGS(text->name), l->first_number);
    }
    VPPS_TRY(vpps_sentences_read_columns_seen(s, text->name, text->text, text->len, columns, false, &seen));
    if (seen.odd) {
        corpus_note(c, "%s%s:%u: this line, which begins with '#', is read as a word: it has as many columns as others",
                    VPPS_PATH_ARGS(text->name), seen.odd);
    }
    if (seen.n_inside) {
        corpus_note(c,
                    "%s%s:%u: this line inside a sentence is taken for a comment: it begins with '#', and has other "
                    "columns; such lines: %u",
                    VPPS_PATH_ARGS(text->name), seen.inside, seen.n_inside);
    }
    return VPPS_OK;
}

static vpps_status read_barred(corpus *c, vpps_sentences *s, const task_text *text, const look *l,
                               const vpps_bars *bars) {
    for (uint32_t n = bars->n + 1; n < MOST_BARS; n++) {
        if (!l->first_line[n]) continue;
        corpus_note(c, "%s%s:%u: this line has a word that holds a '|' itself; such words: %" PRIu64,
                    VPPS_PATH_ARGS(text->name), l->first_line[n], l->with_bars[n]);
        break;
    }
    return vpps_sentences_read_barred_text(s, text->name, text->text, text->len, bars);
}

/* ---------------------------------------------------------------- for prediction */

/* Returns whether a text can be read as columns whose tags are mostly the network's. *some: whether at least one is the network's. */
static bool has_known_tags(const corpus *c, const task_text *text, const vpps_columns *columns, bool *some,
                           vpps_columns_seen *seen) {
    vpps_sentences *s;
    uint64_t n = 0, known = 0;
    bool varied = false;
    *some = true;
    if (vpps_sentences_create(&s) != VPPS_OK) return false;
    const bool reads =
        vpps_sentences_read_columns_seen(s, text->name, text->text, text->len, columns, false, seen) == VPPS_OK;
    const vpps_vocab *tags = vpps_sentences_tag_vocab(s);
    for (uint32_t i = 0; reads && i < vpps_sentences_size(s); i++) {
        const vpps_sentence sentence = vpps_sentences_get(s, i);
        for (uint32_t k = 0; k < sentence.n_words; k++) {
            const char *tag = vpps_vocab_word(tags, sentence.tags[k]);
            n++;
            known +=
                vpps_vocab_find(c->vocab[VOCAB_CLASSES], tag, strlen(tag)) != VPPS_NO_WORD || strcmp(tag, "_") == 0;
            varied |= sentence.tags[k] != sentence.tags[0] || i > 0;
        }
    }
    vpps_sentences_destroy(s);
    if (reads && n) *some = known > 0;
    return n && 10 * known >= 9 * n && (columns->tabs || varied);
}

/* Returns whether no line has more than one word. */
static bool is_words_only(const vpps_text *t) {
    vpps_line line = {0};
    while (vpps_text_next_line(t, &line)) {
        if (vpps_text_count_words(line.begin, line.end) > 1) return false;
    }
    return true;
}

vpps_status tags_look(const corpus *c, const settings *options, input_form form, const task_text *text,
                      input_reading *in) {
    const vpps_text t = vpps_text_of(text->name, text->text, text->len, "");
    const look l = look_at(&t);
    vpps_columns columns = {.tabs = l.tabs, .comments = true, .conllu = l.conllu};
    VPPS_TRY(take_column("word-column", options->word_column, &columns.word, &columns.word_name));
    VPPS_TRY(take_column("tag-column", options->tag_column, &columns.tag, &columns.tag_name));
    if (columns.word_name || columns.tag_name) columns.conllu = true;
    *in = (input_reading){.form = READ_LINES};
    if (form == INPUT_TEXT) return VPPS_OK;
    if (form == INPUT_TAGGED || (form == INPUT_AUTO && l.bars)) {
        const uint32_t n = vpps_max_u32(bars_of(&l, false), 1);
        *in = (input_reading){.form = READ_BARRED,
                              .bars = {n, columns.word ? columns.word : 1, columns.tag ? columns.tag : n + 1}};
        return VPPS_OK;
    }
    bool some;
    vpps_columns_seen seen = {0};
    const bool known = has_known_tags(c, text, &columns, &some, &seen);
    if (form == INPUT_AUTO && !l.conllu && !known) return VPPS_OK;
    *in = (input_reading){.form = READ_COLUMNS, .columns = columns, .other_tags = !some, .seen = seen};
    if (!columns.conllu && !columns.word && !columns.tag && is_words_only(&t)) {
        in->words_only = true;
        in->columns = (vpps_columns){.word = 1, .tag = 2, .tabs = true};
    }
    return VPPS_OK;
}

vpps_status tags_read_input(corpus *c, vpps_sentences *s, const task_text *text) {
    input_reading *in = &c->input;
    if (in->form == READ_BARRED)
        return vpps_sentences_read_barred_text(s, text->name, text->text, text->len, &in->bars);
    return vpps_sentences_read_columns_seen(s, text->name, text->text, text->len, &in->columns, in->records, &in->seen);
}

/* ---------------------------------------------------------------- for training */

vpps_status tags_read(corpus *c, vpps_sentences *s, const settings *options, const task_text *text) {
    const vpps_text t = vpps_text_of(text->name, text->text, text->len, "");
    VPPS_TRY(vpps_text_check(&t));
    const look l = look_at(&t);
    vpps_columns columns = {.tabs = l.tabs, .comments = true, .conllu = l.conllu};
    VPPS_TRY(take_column("word-column", options->word_column, &columns.word, &columns.word_name));
    VPPS_TRY(take_column("tag-column", options->tag_column, &columns.tag, &columns.tag_name));
    if (columns.word_name || columns.tag_name) columns.conllu = true;
    const uint32_t bars =
        input_form_of_name(text->name) == INPUT_COLUMNS ? 0 : bars_of(&l, columns.word || columns.tag);
    if (!bars && !columns.conllu && !columns.word && !columns.tag) VPPS_TRY(refuse_other_bars(text, &l));
    if (!bars && !columns.conllu && !l.tabs) VPPS_TRY(refuse_text(text, &l));
    if (columns.conllu || !bars) return read_columns(c, s, text, &l, &columns);
    const vpps_bars barred = {bars, columns.word ? columns.word : 1, columns.tag ? columns.tag : bars + 1};
    return read_barred(c, s, text, &l, &barred);
}
