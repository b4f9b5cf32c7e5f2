/* tags_read.c - reads tagged sentences. What neither --input-format nor a file's name tells of their format, the first line tells. */
#include "base/base.h"
#include "cli/input/corpus_read.h"
#include "cli/input/input.h"
#include "cli/tasks/tags.h"
#include "io/sequences.h"
#include "io/stream.h"

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

/* ---------------------------------------------------------------- the first line */

/* The line of a text by which the text's format is told: the first line that has words and is neither a comment nor -DOCSTART-; if none is, the first
 * line with words. */
typedef struct look {
    vpps_line line;        /* number 0: the text has no words */
    vpps_word first, last; /* the line's first and last word */
    uint32_t words;        /* number of words in the line */
    bool barred;           /* whether the line's first word has a '|', as in word|TAG */
    uint32_t bars;         /* least number of '|', at least 1, in the line's words like word|TAG */
    /* slashed, underscored: whether all words are like word/TAG, or word_TAG */
    bool slashed, underscored;
    bool plus;            /* whether the text is CoNLL-U Plus, whose first line names the columns */
    bool conllu;          /* whether the text is CoNLL-U, or CoNLL-U Plus */
    bool document;        /* whether -DOCSTART-, which begins a document of CoNLL-2003, stands before the line */
    vpps_columns columns; /* the options' columns, and what separates them */
} look;

/* Returns the number of '|' in a word like word|TAG or word|POS|TAG; 0: the word is not of this form. */
static uint32_t count_bars(vpps_word w) {
    uint32_t n = 0;
    const char *last = memrchr(w.at, '|', w.len);
    if (!last || last == w.at || last + 1 == w.at + w.len) return 0;
    for (size_t i = 0; i < w.len; i++) n += w.at[i] == '|';
    return n;
}

/* Returns whether a word contains the byte `by` other than at its ends. */
static bool is_parted(vpps_word w, char by) { return w.len > 2 && memchr(w.at + 1, by, w.len - 2); }

static look look_at_line(const vpps_line *line) {
    look l = {.line = *line, .slashed = true, .underscored = true};
    const char *at = line->begin;
    for (vpps_word word; vpps_text_next_word(&at, line->end, &word); l.words++) {
        const uint32_t bars = count_bars(word);
        if (!l.words) l.first = word, l.barred = memchr(word.at, '|', word.len);
        if (bars && (!l.bars || bars < l.bars)) l.bars = bars;
        l.slashed = l.slashed && is_parted(word, '/');
        l.underscored = l.underscored && is_parted(word, '_');
        l.last = word;
    }
    l.bars = vpps_max_u32(l.bars, 1);
    return l;
}

/* Returns whether a line has CoNLL-U's ten columns: the first is the number of a word, or a range of numbers; the seventh, the number of the
 * word's head, is a number or missing. */
static bool looks_like_conllu(const vpps_line *line, char separator) {
    enum { COLUMNS = 10, HEAD = 7 };
    const size_t len = (size_t)(line->end - line->begin);
    vpps_word id, head, c;
    if (!vpps_columns_find(separator, line->begin, len, COLUMNS, &c) ||
        vpps_columns_find(separator, line->begin, len, COLUMNS + 1, &c) ||
        !vpps_columns_find(separator, line->begin, len, 1, &id) ||
        !vpps_columns_find(separator, line->begin, len, HEAD, &head))
        return false;
    const bool missing = head.len == 1 && *head.at == '_';
    bool is_word;
    return vpps_conllu_id(id, &is_word) && (missing || (head.len && strspn(head.at, "0123456789") >= head.len));
}

static vpps_status look_at(const settings *options, const vpps_text *t, look *l) {
    vpps_line line = {0};
    bool plus = false, document = false, decided = false;
    *l = (look){0};
    while (!decided && vpps_text_next_line(t, &line)) {
        plus = plus || (line.number == 1 && vpps_conllu_plus(&line));
        if (vpps_line_is_blank(&line)) continue;
        document = document || vpps_columns_document_start(line.begin, (size_t)(line.end - line.begin));
        decided = input_decides(&line, true);
        if (decided || !l->words) *l = look_at_line(&line);
    }
    const size_t len = (size_t)(l->line.end - l->line.begin);
    l->columns.tabs = len && memchr(l->line.begin, '\t', len);
    l->columns.comments = true;
    l->document = document;
    l->plus = plus;
    l->conllu = plus || (len && looks_like_conllu(&l->line, l->columns.tabs ? '\t' : ' '));
    VPPS_TRY(take_column("word-column", options->word_column, &l->columns.word, &l->columns.word_name));
    VPPS_TRY(take_column("tag-column", options->tag_column, &l->columns.tag, &l->columns.tag_name));
    l->columns.conllu = l->conllu || l->columns.word_name || l->columns.tag_name;
    return VPPS_OK;
}

static vpps_bars bars_of(const look *l) {
    const vpps_columns *c = &l->columns;
    return (vpps_bars){l->bars, c->word ? c->word : 1, c->tag ? c->tag : l->bars + 1};
}

/* Fails at the beginning of the deciding line. */
static vpps_status fail_look(const task_text *text, const look *l, const char *why) {
    return vpps_fail(VPPS_FORMAT, "%s%s:%u:1: %s", VPPS_PATH_ARGS(text->name), l->line.number, why);
}

/* ---------------------------------------------------------------- for prediction */

/* Returns whether the network has a tag; "_" stands for any. */
static bool is_tag(const corpus *c, const char *at, size_t len) {
    return vpps_vocab_find(c->vocab[VOCAB_CLASSES], at, len) != VPPS_NO_WORD || (len == 1 && *at == '_');
}

/* Reads the text from the deciding line to the first word as columns: sets in->seen, and in->other_tags if the word's tag is none of the
 * network's. */
static vpps_status look_at_tag(const corpus *c, const task_text *text, const look *l, input_reading *in) {
    vpps_sentences *s;
    VPPS_TRY(vpps_sentences_create(&s));
    const vpps_text t = vpps_text_of(text->name, text->text, text->len, "");
    const char *begin = l->plus ? text->text : l->line.begin; /* the names of CoNLL-U Plus stand in line 1 */
    bool reads = l->line.number;
    for (vpps_line line = l->line; reads && !vpps_sentences_size(s); reads = reads && vpps_text_next_line(&t, &line)) {
        const size_t len = (size_t)(line.end - begin);
        reads = vpps_sentences_read_columns_seen(s, text->name, begin, len, &in->columns, false, &in->seen) == VPPS_OK;
    }
    if (vpps_sentences_size(s)) {
        const char *tag = vpps_vocab_word(vpps_sentences_tag_vocab(s), vpps_sentences_get(s, 0).tags[0]);
        in->other_tags = !is_tag(c, tag, strlen(tag));
    }
    vpps_sentences_destroy(s);
    return VPPS_OK;
}

/* Returns whether a line of text ends with a tag, as a line of columns does, and the tag is no word of the network, or all of the line is the
 * tag twice, as a quotation mark or a comma with its tag. */
static bool ends_with_tag(const corpus *c, const look *l) {
    const bool twice = l->words == 2 && l->first.len == l->last.len && !memcmp(l->first.at, l->last.at, l->last.len);
    return l->words > 1 && vpps_vocab_find(c->vocab[VOCAB_CLASSES], l->last.at, l->last.len) != VPPS_NO_WORD &&
           (twice || vpps_vocab_find(c->vocab[VOCAB_WORDS], l->last.at, l->last.len) == VPPS_NO_WORD);
}

vpps_status tags_look(const corpus *c, const settings *options, input_form form, const task_text *text,
                      input_reading *in) {
    const vpps_text t = vpps_text_of(text->name, text->text, text->len, "");
    look l;
    VPPS_TRY(look_at(options, &t, &l));
    *in = (input_reading){.form = READ_LINES};
    if (form == INPUT_TEXT) return VPPS_OK;
    if (form == INPUT_TAGGED || (form == INPUT_AUTO && l.barred && !l.plus)) {
        *in = (input_reading){.form = READ_BARRED, .bars = bars_of(&l)};
        return VPPS_OK;
    }
    if (form == INPUT_AUTO && !l.plus && !l.document && !l.columns.tabs) {
        return l.conllu || ends_with_tag(c, &l) ? fail_look(text, &l,
                                                            "expected text, found a line that may be of columns; "
                                                            "--input-format text or columns says what the lines are")
                                                : VPPS_OK;
    }
    *in = (input_reading){.form = READ_COLUMNS, .columns = l.columns};
    VPPS_TRY(look_at_tag(c, text, &l, in));
    if (form == INPUT_AUTO && !l.conllu && !l.document && in->other_tags)
        return fail_look(text, &l,
                         "expected a tag of the network in the column of tags; --input-format text or columns "
                         "says what the lines are");
    if (!l.columns.conllu && !l.columns.word && !l.columns.tag && l.words <= 1) {
        in->words_only = true;
        in->columns = (vpps_columns){.word = 1, .tag = 2, .tabs = true};
    }
    return VPPS_OK;
}

/* Checks that each line holds one word alone; predict has added a tab and "_" to it. */
static vpps_status check_words_only(const task_text *text) {
    const vpps_text t = vpps_text_of(text->name, text->text, text->len, "");
    for (vpps_line line = {0}; vpps_text_next_line(&t, &line);) {
        const bool one = vpps_line_is_blank(&line) || vpps_text_count_words(line.begin, line.end) == 2;
        if (!one) return vpps_text_fail(&t, line.begin, "one word a line, as in the first line", NULL);
    }
    return VPPS_OK;
}

vpps_status tags_read_input(corpus *c, vpps_sentences *s, const task_text *text) {
    input_reading *in = &c->input;
    if (in->words_only) VPPS_TRY(check_words_only(text));
    if (in->form == READ_BARRED)
        return vpps_sentences_read_barred_text(s, text->name, text->text, text->len, &in->bars);
    return vpps_sentences_read_columns_seen(s, text->name, text->text, text->len, &in->columns, in->records, &in->seen);
}

/* ---------------------------------------------------------------- for training */

/* Refuses columns whose first line shows another format, or numbers where words are expected. */
static vpps_status check_columns(const task_text *text, const look *l, bool told) {
    char why[160];
    const char by = l->slashed ? '/' : '_';
    if (l->columns.conllu || l->columns.word) return VPPS_OK;
    if (!told && !l->columns.tag && !l->columns.tabs && l->words > 1 && (l->slashed || l->underscored)) {
        snprintf(why, sizeof why, "expected word|TAG or columns, found words with '%c', as in word%cTAG: write '|'", by,
                 by);
        return fail_look(text, l, why);
    }
    const bool number = l->words > 1 && l->first.len == 1 && (*l->first.at == '0' || *l->first.at == '1');
    return number ? fail_look(text, l,
                              "expected words in column 1, found a number: which column has the words? "
                              "--word-column 2")
                  : VPPS_OK;
}

vpps_status tags_read(vpps_sentences *s, const settings *options, const task_text *text) {
    const vpps_text t = vpps_text_of(text->name, text->text, text->len, "");
    const input_form given = input_form_of(options, text->name);
    char why[VPPS_MESSAGE_BYTES], how[48];
    look l;
    VPPS_TRY(vpps_text_check(&t));
    VPPS_TRY(look_at(options, &t, &l));
    const bool told = given == INPUT_TAGGED || given == INPUT_COLUMNS,
               barred = told ? given == INPUT_TAGGED : l.barred && !l.columns.conllu;
    const vpps_bars bars = bars_of(&l);
    if (!barred) VPPS_TRY(check_columns(text, &l, told));
    const vpps_status status = barred
                                   ? vpps_sentences_read_barred_text(s, text->name, text->text, text->len, &bars)
                                   : vpps_sentences_read_columns_text(s, text->name, text->text, text->len, &l.columns);
    if (status != VPPS_FORMAT) return status;
    snprintf(how, sizeof how, told ? "--input-format or the file's name" : "line %u", l.line.number);
    snprintf(why, sizeof why, "%s", vpps_error_message());
    return vpps_fail(status, "%s (read as %s by %s; --input-format names another format)", why,
                     barred ? "word|TAG" : "columns", how);
}
