/* tags_read.c - finds by the first lines of a text whether tagged sentences are word|TAG lines, columns or CoNLL-U. */
#include "base/base.h"
#include "cli/input/input.h"
#include "cli/tasks/tags.h"
#include "io/file.h"
#include "io/sequences.h"

/* ---------------------------------------------------------------- columns by --word-column and --tag-column */

/* Reads the value of an option that names a column: the column's number, from 1, or the column's name. */
static vpps_status take_column(const char *option, const char *given, uint32_t *number, const char **name) {
    char *end;
    if (!given) return VPPS_OK;
    const unsigned long value = strtoul(given, &end, 10);
    if (*given < '0' || *given > '9')
        *name = given;
    else if (*end || value < 1 || value > 1000000)
        return vpps_fail(VPPS_ARGUMENT, "--%s: expected a column's number, from 1, or its name, found '%.64s'", option,
                         given);
    else
        *number = (uint32_t)value;
    return VPPS_OK;
}

/* ---------------------------------------------------------------- what the first lines look like */

#define MOST_BARS 8u /* tokens with 8 or more '|' count as tokens with 7 */

/* The look of a text's first lines. Lines that are blank, begin with '#', or mark a document are no lines of columns. */
typedef struct look {
    uint32_t
        bars; /* word|TAG: least number of '|' in a word like word|TAG of the first line; 0: the first word has no '|' */
    bool barred;       /* whether all words of the first line have a '|' */
    char parted;       /* '/' or '_', if all words of the first line of columns are like word/TAG or word_TAG; else 0 */
    bool tabs, conllu; /* whether columns end at tabs, and are those of CoNLL-U (Plus): of the first line of columns */
    bool numbers;      /* whether the first two lines of columns begin with their numbers in a sentence */
    uint32_t line;     /* number of the first line of columns; 0: there is none */
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

static void look_for_bars(look *l, const vpps_line *line) {
    const char *at = line->begin;
    vpps_word word;
    l->barred = true;
    for (bool first = true; vpps_text_next_word(&at, line->end, &word); first = false) {
        const uint32_t bars = count_bars(word);
        const bool barred = memchr(word.at, '|', word.len);
        if (first && barred) l->bars = MOST_BARS;
        if (bars) l->bars = vpps_min_u32(l->bars, bars);
        l->barred = l->barred && barred;
    }
    if (l->bars == MOST_BARS) l->bars = 1; /* no word is like word|TAG, although the first word has a '|' */
}

/* Returns whether a line has two words or more, and each contains the byte `by` other than at its ends. */
static bool is_parted(const vpps_line *line, char by) {
    const char *at = line->begin;
    vpps_word word;
    uint32_t n = 0;
    for (; vpps_text_next_word(&at, line->end, &word); n++)
        if (word.len < 3 || !memchr(word.at + 1, by, word.len - 2)) return false;
    return n > 1;
}

static bool first_number(const vpps_line *line, uint64_t *number) {
    const char *at = line->begin;
    vpps_word word;
    vpps_text_next_word(&at, line->end, &word);
    return vpps_text_whole_number(word.at, word.at + word.len, UINT32_MAX, number);
}

static look look_at(const vpps_text *t) {
    look l = {.tabs = t->begin < t->end && memchr(t->begin, '\t', (size_t)(t->end - t->begin))};
    uint64_t number, second;
    bool begun = false;
    for (vpps_line line = {0}; !l.line && vpps_text_next_line(t, &line);) {
        const size_t len = (size_t)(line.end - line.begin);
        if (vpps_line_is_blank(&line)) continue;
        if (line.number == 1) l.conllu = vpps_conllu_plus(&line);
        if (!begun) look_for_bars(&l, &line);
        begun = true;
        if (*line.begin == '#' || vpps_columns_document_start(line.begin, len)) continue;
        l.line = line.number;
        l.tabs = memchr(line.begin, '\t', len);
        l.conllu = l.conllu || looks_like_conllu(&line, l.tabs);
        l.parted = l.tabs ? 0 : is_parted(&line, '/') ? '/' : is_parted(&line, '_') ? '_' : 0;
        const bool counts = first_number(&line, &number) && number < 2 && vpps_text_next_line(t, &line);
        const bool ends = counts && vpps_line_is_blank(&line) && vpps_text_next_line(t, &line);
        l.numbers = counts && first_number(&line, &second) && second == number + !ends;
    }
    return l;
}

/* Returns how columns are read by the text's look and by --word-column and --tag-column. */
static vpps_status columns_of(const settings *options, const look *l, vpps_columns *columns) {
    *columns = (vpps_columns){.tabs = l->tabs, .comments = true, .conllu = l->conllu};
    VPPS_TRY(take_column("word-column", options->word_column, &columns->word, &columns->word_name));
    VPPS_TRY(take_column("tag-column", options->tag_column, &columns->tag, &columns->tag_name));
    if (columns->word_name || columns->tag_name) columns->conllu = true;
    return VPPS_OK;
}

static vpps_bars bars_of(uint32_t n, const vpps_columns *columns) {
    return (vpps_bars){n, columns->word ? columns->word : 1, columns->tag ? columns->tag : n + 1};
}

/* ---------------------------------------------------------------- for prediction */

/* Returns whether a text can be read as columns whose tags are mostly the network's. *some: at least one tag is. */
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
    while (vpps_text_next_line(t, &line))
        if (vpps_text_count_words(line.begin, line.end) > 1) return false;
    return true;
}

vpps_status tags_look(const corpus *c, const settings *options, input_form form, const task_text *text,
                      input_reading *in) {
    const vpps_text t = vpps_text_of(text->name, text->text, text->len, "");
    const look l = look_at(&t);
    vpps_columns columns;
    VPPS_TRY(columns_of(options, &l, &columns));
    *in = (input_reading){.form = READ_LINES};
    if (form == INPUT_TEXT) return VPPS_OK;
    if (form == INPUT_TAGGED || (form == INPUT_AUTO && l.bars)) {
        *in = (input_reading){.form = READ_BARRED, .bars = bars_of(vpps_max_u32(l.bars, 1), &columns)};
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

vpps_status tags_read(vpps_sentences *s, const settings *options, const task_text *text) {
    const vpps_text t = vpps_text_of(text->name, text->text, text->len, "");
    const look l = look_at(&t);
    vpps_columns columns;
    vpps_columns_seen seen = {0};
    VPPS_TRY(columns_of(options, &l, &columns));
    const bool asked = columns.word || columns.tag,
               barred = l.bars && input_form_of_name(text->name) != INPUT_COLUMNS && (l.barred || !asked);
    if (barred && !columns.conllu) {
        const vpps_bars bars = bars_of(l.bars, &columns);
        return vpps_sentences_read_barred_text(s, text->name, text->text, text->len, &bars);
    }
    if (l.parted && !columns.conllu && !asked)
        return vpps_fail(VPPS_FORMAT,
                         "%s%s:%u:1: expected word|TAG or columns, found words with '%c', as in word%cTAG: write '|'",
                         VPPS_PATH_ARGS(text->name), l.line, l.parted, l.parted);
    if (l.numbers && !columns.conllu && !columns.word)
        return vpps_fail(VPPS_FORMAT,
                         "%s%s:%u:1: expected words in column 1, found the running numbers of the lines: which column "
                         "has the words? --word-column 2",
                         VPPS_PATH_ARGS(text->name), l.line);
    return vpps_sentences_read_columns_seen(s, text->name, text->text, text->len, &columns, false, &seen);
}
