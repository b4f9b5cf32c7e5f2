/* sequences_columns.c - reads tagged sentences from columns, as in the CoNLL shared tasks, and from CoNLL-U
 * (https://universaldependencies.org/format.html), whose columns have names. */
#include "sequences.h"

#include "base/base.h"
#include "stream.h"

#include <strings.h>

/* ---------------------------------------------------------------- columns of a line */

typedef struct column_reader {
    vpps_sentences *s;
    const vpps_text *t;
    vpps_columns wanted; /* numbers of the columns to read, from 1; tag is 0 until the first line is read */
    char separator;      /* byte that separates columns; ' ' stands for any run of white space */
    bool records;        /* whether sentences come from fields of records: there, -DOCSTART- is a word */
    bool varies;         /* whether sentences may differ in their number of columns */
    uint32_t id;         /* CoNLL-U: the column of the ID, from 1; 0: none */
    uint32_t n_columns;  /* number of columns of every line; 0: not known yet */
    uint32_t first_line; /* number of the line that set n_columns; 0: CoNLL-U's format set it */
    uint32_t open;       /* first line of the incomplete sentence; 0: none */
    /* number of columns of the preceding text or, if `varies`, of the preceding sentence */
    uint32_t last_columns;
    bool all_begin_hash; /* whether all lines from here on begin with '#' */
} column_reader;

/* Takes the next column in *at .. end, and advances *at past its separator, or to NULL after the last column. */
static bool next_column(char separator, const char **at, const char *end, vpps_word *c) {
    if (!*at) return false;
    if (separator == ' ') return vpps_text_next_word(at, end, c);
    const char *stop = memchr(*at, separator, (size_t)(end - *at));
    *c = (vpps_word){*at, (size_t)((stop ? stop : end) - *at)};
    *at = stop ? stop + 1 : NULL;
    return true;
}

static uint32_t count_columns(char separator, const vpps_line *line) {
    const char *at = line->begin;
    vpps_word c;
    uint32_t n = 0;
    while (next_column(separator, &at, line->end, &c)) n++;
    return n;
}

static vpps_word trim(vpps_word c) { return vpps_word_trimmed(c.at, vpps_trim_blanks(c.at, c.at + c.len)); }

/* ---------------------------------------------------------------- kinds of lines */

/* Returns whether a line's first column is CoNLL-2003's mark between documents (-DOCSTART-). The mark's line may have more or fewer columns than a
 * word's line. If tabs separate columns, a line whose first column is blank is a word's line. */
static bool is_document_start(const column_reader *r, const vpps_line *line) {
    const char *at = line->begin;
    vpps_word first;
    return !r->records && next_column(' ', &at, line->end, &first) && vpps_word_is(first, "-DOCSTART-") &&
           (r->separator == ' ' || !memchr(line->begin, r->separator, (size_t)(first.at - line->begin)));
}

bool vpps_columns_document_start(const char *line, size_t len) {
    /* With tab as separator, -DOCSTART- (a new document's mark) may follow spaces, but not a tab, which ends a blank first column. */
    const column_reader r = {.separator = '\t'};
    return is_document_start(&r, &(vpps_line){.begin = line, .end = line + len});
}

/* Goes to the first line after `line` (all zero: from the text's beginning) that has columns and does not begin with
 * '#'. Returns false when there is none. */
static bool find_plain_line(const column_reader *r, vpps_line *line) {
    while (vpps_text_next_line(r->t, line))
        if (!vpps_line_is_blank(line) && *line->begin != '#' && !is_document_start(r, line)) return true;
    return false;
}

bool vpps_conllu_id(vpps_word id, bool *is_word) {
    const char *p = id.at, *end = id.at + id.len;
    while (p < end && *p >= '0' && *p <= '9') p++;
    *is_word = p == end && id.len > 0;
    if (*is_word) return true;
    const char *second = end;
    if (p > id.at && p < end && (*p == '-' || *p == '.')) {
        for (second = ++p; p < end && *p >= '0' && *p <= '9';) p++;
    }
    return p == end && p > second;
}

static bool has_id(const column_reader *r, const vpps_line *line) {
    const char *at = line->begin;
    vpps_word c;
    bool is_word;
    for (uint32_t i = 1; next_column(r->separator, &at, line->end, &c); i++)
        if (i == r->id) return vpps_conllu_id(trim(c), &is_word);
    return r->id == 0;
}

/* Returns whether a line that begins with '#' is a comment, because its columns do not fit the columns of other lines. */
static bool is_comment(column_reader *r, const vpps_line *line) {
    if (!r->wanted.comments || *line->begin != '#') return false;
    uint32_t expected = r->n_columns;
    if (!expected) {
        vpps_line plain = *line;
        r->all_begin_hash = r->all_begin_hash || !find_plain_line(r, &plain);
        expected = r->all_begin_hash ? r->last_columns : count_columns(r->separator, &plain);
    }
    return expected && (count_columns(r->separator, line) != expected || !has_id(r, line));
}

/* ---------------------------------------------------------------- names of columns */

static const char conllu_names[] = "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC";

const char *vpps_comment_value(const vpps_line *line, const char *name) {
    const size_t len = strlen(name);
    if (line->begin == line->end || *line->begin != '#') return NULL;
    const char *at = vpps_skip_blanks(line->begin + 1, line->end);
    if ((size_t)(line->end - at) < len || memcmp(at, name, len) != 0) return NULL;
    at = vpps_skip_blanks(at + len, line->end);
    return at < line->end && *at == '=' ? vpps_skip_blanks(at + 1, line->end) : NULL;
}

const char *vpps_conllu_plus(const vpps_line *first) { return vpps_comment_value(first, "global.columns"); }

/* Returns the place of a name among `names`, from 1, ignoring case; 0: not found. */
static uint32_t find_name(const char *names, const char *end, const char *name) {
    vpps_word word;
    for (uint32_t i = 1; vpps_text_next_word(&names, end, &word); i++)
        if (word.len == strlen(name) && strncasecmp(word.at, name, word.len) == 0) return i;
    return 0;
}

/* Sets *number to the number of column `name`. If `name` is NULL, keeps *number, or looks for the column `standard` if *number is 0. */
static vpps_status resolve(const column_reader *r, const char *names, const char *end, const char *name,
                           const char *standard, uint32_t *number) {
    if (!name && *number) return VPPS_OK;
    const char *wanted = name ? name : standard;
    *number = find_name(names, end, wanted);
    if (*number) return VPPS_OK;
    char expected[64], found[128];
    const int shown = end - names < 100 ? (int)(end - names) : 100;
    snprintf(expected, sizeof expected, "a column %.40s", wanted);
    snprintf(found, sizeof found, "%.*s", shown, names);
    return vpps_text_fail(r->t, r->t->begin, expected, found);
}

/* Takes the columns' names: CoNLL-U's, or those in the text's first line (CoNLL-U Plus). Columns end at tabs; if the first line with words has no
 * tab, columns end at spaces. */
static vpps_status take_names(column_reader *r) {
    const char *names = conllu_names, *end = conllu_names + sizeof conllu_names - 1;
    vpps_line first = {0}, plain = {0};
    const char *given = vpps_text_next_line(r->t, &first) ? vpps_conllu_plus(&first) : NULL;
    if (given) {
        names = given;
        end = first.end;
        r->first_line = 1;
    }
    VPPS_TRY(resolve(r, names, end, r->wanted.word_name, "FORM", &r->wanted.word));
    VPPS_TRY(resolve(r, names, end, r->wanted.tag_name, "UPOS", &r->wanted.tag));
    r->id = find_name(names, end, "ID");
    r->n_columns = vpps_text_count_words(names, end);
    r->wanted.comments = true;
    r->separator = '\t';
    const bool spaces = find_plain_line(r, &plain) && !memchr(plain.begin, '\t', (size_t)(plain.end - plain.begin));
    if (spaces) r->separator = ' ';
    return VPPS_OK;
}

/* ---------------------------------------------------------------- words */

static vpps_status check_columns(const column_reader *r) {
    if (r->wanted.word != r->wanted.tag && r->wanted.word != UINT32_MAX) return VPPS_OK;
    return vpps_fail(VPPS_ARGUMENT, "sentences: expected word and tag in different columns, found %u for both",
                     r->wanted.word);
}

static vpps_status fail_columns(const column_reader *r, const vpps_line *line, const char *expected, uint32_t n) {
    char found[24];
    snprintf(found, sizeof found, "%u", n);
    return vpps_text_fail(r->t, line->begin, expected, found);
}

/* Sets the number of columns from the first line. If no option tells the column of tags, it is the last one. */
static vpps_status take_first_line(column_reader *r, const vpps_line *line, uint32_t n) {
    const uint32_t needed = r->wanted.tag ? vpps_max_u32(r->wanted.word, r->wanted.tag) : r->wanted.word + 1;
    if (n < needed) {
        char expected[40];
        snprintf(expected, sizeof expected, "at least %u columns", needed);
        return fail_columns(r, line, expected, n);
    }
    r->n_columns = n;
    r->first_line = line->number;
    if (!r->wanted.tag) r->wanted.tag = n;
    return VPPS_OK;
}

static vpps_status check_count(const column_reader *r, const vpps_line *line, uint32_t n) {
    if (n == r->n_columns) return VPPS_OK;
    char expected[64];
    if (r->first_line)
        snprintf(expected, sizeof expected, "%u columns as in line %u", r->n_columns, r->first_line);
    else
        snprintf(expected, sizeof expected, "the 10 columns of CoNLL-U%s",
                 r->separator == '\t' ? ", with tabs between" : "");
    return fail_columns(r, line, expected, n);
}

static vpps_status add_word(column_reader *r, const vpps_line *line, vpps_word word, vpps_word tag) {
    if (!r->open) r->open = line->number;
    r->s->line = line->number;
    return vpps_sentences_add_word(r->s, word.at, word.len, tag.at, tag.len);
}

static vpps_status read_token_line(column_reader *r, const vpps_line *line) {
    const uint32_t n = count_columns(r->separator, line);
    if (!r->n_columns) VPPS_TRY(take_first_line(r, line, n));
    VPPS_TRY(check_count(r, line, n));
    const char *at = line->begin;
    vpps_word c, word = {at, 0}, tag = {at, 0};
    bool is_word = true;
    for (uint32_t i = 1; next_column(r->separator, &at, line->end, &c); i++) {
        if (i == r->wanted.word) word = trim(c).len ? trim(c) : c; /* trims the word unless it has only blanks */
        if (i == r->wanted.tag) tag = trim(c);
        if (i == r->id && !vpps_conllu_id(trim(c), &is_word))
            return vpps_text_fail(r->t, c.at, "a word's number, a range as 3-4, or an empty node as 5.1", NULL);
    }
    if (!is_word) return VPPS_OK;
    if (!word.len) return vpps_text_fail(r->t, word.at, "a word", NULL);
    if (!tag.len) return vpps_text_fail(r->t, tag.at, "a tag", NULL);
    return add_word(r, line, word, tag);
}

static vpps_status end_open_sentence(column_reader *r) {
    const uint32_t line = r->open;
    r->open = 0;
    if (r->varies && r->n_columns) {
        r->last_columns = r->n_columns;
        r->n_columns = 0;
    }
    return line ? vpps_sentences_end(r->s, line, VPPS_NO_WORD) : VPPS_OK;
}

static vpps_status read_columns(column_reader *r) {
    vpps_line line = {0};
    while (vpps_text_next_line(r->t, &line)) {
        if (vpps_line_is_blank(&line) || is_document_start(r, &line))
            VPPS_TRY(end_open_sentence(r));
        else if (!is_comment(r, &line))
            VPPS_TRY(read_token_line(r, &line));
    }
    return end_open_sentence(r);
}

/* ---------------------------------------------------------------- the calls */

static vpps_status read_text(column_reader *r) {
    vpps_columns *wanted = &r->wanted;
    if ((wanted->word_name || wanted->tag_name) && !wanted->conllu)
        return vpps_fail(VPPS_ARGUMENT, "sentences: expected a column's number, found '%.40s': CoNLL-U's have names",
                         wanted->word_name ? wanted->word_name : wanted->tag_name);
    VPPS_TRY(vpps_text_check(r->t));
    r->separator = wanted->tabs ? '\t' : ' ';
    r->varies = wanted->word && wanted->tag && !wanted->conllu;
    if (wanted->conllu) VPPS_TRY(take_names(r));
    if (!wanted->word) wanted->word = 1;
    VPPS_TRY(check_columns(r));
    VPPS_TRY(vpps_sentences_begin(r->s, VPPS_TAGGED));
    return read_columns(r);
}

vpps_status vpps_sentences_read_columns_seen(vpps_sentences *s, const char *name, const char *text, size_t len,
                                             const vpps_columns *columns, bool records, vpps_columns_seen *seen) {
    const vpps_text t = vpps_text_of(name, text, len, "");
    const vpps_sentences_mark before = vpps_sentences_extent(s);
    column_reader r = {.s = s, .t = &t, .records = records, .last_columns = seen->columns};
    if (columns) r.wanted = *columns;
    const vpps_status status = read_text(&r);
    if (status == VPPS_OK) seen->columns = vpps_max_u32(r.n_columns, r.last_columns);
    if (status != VPPS_OK) vpps_sentences_restore(s, before);
    seen->tag = r.wanted.tag;
    seen->separator = r.separator;
    return status;
}

bool vpps_columns_find(char separator, const char *line, size_t len, uint32_t wanted, vpps_word *column) {
    const char *next = line;
    for (uint32_t i = 1; next_column(separator, &next, line + len, column); i++)
        if (i == wanted) return true;
    return false;
}

vpps_status vpps_sentences_read_columns_text(vpps_sentences *s, const char *name, const char *text, size_t len,
                                             const vpps_columns *columns) {
    VPPS_NEED(s, name);
    if (len) VPPS_NEED(text);
    vpps_columns_seen seen = {0};
    return vpps_sentences_read_columns_seen(s, name, text, len, columns, false, &seen);
}

vpps_status vpps_sentences_read_columns_file(vpps_sentences *s, const char *path, const vpps_columns *columns) {
    VPPS_NEED(s, path);
    VPPS_TEXT_OF_FILE(path, text, len);
    return vpps_sentences_read_columns_text(s, path, text, len, columns);
}
