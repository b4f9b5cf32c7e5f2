/* tags_read.c - which of the forms of tagged sentences a text has: word|TAG lines, columns, CoNLL-U. */
#include "base/base.h"
#include "cli/tasks/tags.h"
#include "io/text.h"

#include <stdlib.h>

/* ---------------------------------------------------------------- columns that were asked for */

/* A column's number, from 1, or its name. */
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

typedef struct look {
    vpps_line first, token; /* the first line that has something in it, and the first of those that is no comment */
    bool any, bars, tabs, comments, conllu;
} look;

static bool is_blank_line(const vpps_line *line) {
    const char *at = line->begin;
    while (at < line->end && (*at == ' ' || *at == '\t')) at++;
    return at == line->end;
}

static uint32_t count_tabs(const vpps_line *line) {
    uint32_t n = 0;
    for (const char *at = line->begin; at < line->end; at++) n += *at == '\t';
    return n;
}

/* Ten columns, the first one a word's number, or a range of them, and the head's a number, too, or missing. */
static bool looks_like_conllu(const vpps_line *line) {
    enum { COLUMNS = 10, HEAD = 6 };
    const char *at = line->begin;
    if (count_tabs(line) != COLUMNS - 1) return false;
    for (int i = 0; i <= HEAD; i++) {
        const char *begin = at, *end = memchr(at, '\t', (size_t)(line->end - at));
        while (at < end && ((*at >= '0' && *at <= '9') || (i == 0 && begin < at && (*at == '-' || *at == '.')))) at++;
        const bool number = at == end && begin < end, missing = end == begin + 1 && *begin == '_';
        if (i == 0 && !number) return false;
        if (i == HEAD) return number || missing;
        at = end + 1;
    }
    return false;
}

/* Words split by spaces or tabs. */
static uint32_t count_words(const vpps_line *line) {
    uint32_t n = 0;
    bool inside = false;
    for (const char *at = line->begin; at < line->end; at++) {
        const bool blank = *at == ' ' || *at == '\t';
        n += !blank && !inside;
        inside = !blank;
    }
    return n;
}

/* A '#' begins a comment where the columns of its line are not those of the first line without one. */
static look look_at(const vpps_text *t) {
    look l = {.any = false};
    vpps_line line = {0};
    while (vpps_text_next_line(t, &line)) {
        if (is_blank_line(&line)) continue;
        if (!l.any) l.first = line;
        l.any = true;
        l.token = line;
        if (*line.begin != '#') break;
    }
    if (!l.any) return l;
    const char *space = memchr(l.first.begin, ' ', (size_t)(l.first.end - l.first.begin));
    const char *token_end = space ? space : l.first.end;
    l.tabs = memchr(l.token.begin, '\t', (size_t)(l.token.end - l.token.begin)) != NULL;
    l.bars = !l.tabs && memchr(l.first.begin, '|', (size_t)(token_end - l.first.begin)) != NULL;
    l.conllu = l.tabs && looks_like_conllu(&l.token);
    l.comments = *l.first.begin == '#' && count_words(&l.first) != count_words(&l.token);
    return l;
}

vpps_status tags_read(vpps_sentences *s, const settings *options, const task_text *text) {
    static const char global[] = "# global.columns =";
    const vpps_text t = vpps_text_of(text->name, text->text, text->len, "");
    const look l = look_at(&t);
    const bool plus = (size_t)(t.end - t.begin) >= sizeof global - 1 && memcmp(t.begin, global, sizeof global - 1) == 0;
    vpps_columns columns = {.tabs = l.tabs, .comments = l.comments, .conllu = l.conllu || plus};
    VPPS_TRY(take_column("word-column", options->word_column, &columns.word, &columns.word_name));
    VPPS_TRY(take_column("tag-column", options->tag_column, &columns.tag, &columns.tag_name));
    const bool asked = options->word_column || options->tag_column;
    if (columns.word_name || columns.tag_name) columns.conllu = true;
    if (l.bars && !asked) return vpps_sentences_read_tagged_text(s, text->name, text->text, text->len);
    return vpps_sentences_read_columns_text(s, text->name, text->text, text->len, &columns);
}
