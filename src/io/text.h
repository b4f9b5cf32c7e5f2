/* text.h - common parts of the readers of text: lines, and failures that tell the place, what was expected and what was found. */
#pragma once

#include "vpps.h"

#include <string.h>

/* A whole text. `stops` are the bytes, besides white space and what is not printable, that end a token in a message. */
typedef struct vpps_text {
    const char *name, *begin, *end, *stops;
} vpps_text;

/* What some editors put before UTF-8 text. */
#define VPPS_BYTE_ORDER_MARK "\xef\xbb\xbf"

/* Goes over a byte order mark. */
static inline const char *vpps_skip_mark(const char *at, const char *end) {
    const size_t mark = sizeof VPPS_BYTE_ORDER_MARK - 1;
    return (size_t)(end - at) >= mark && memcmp(at, VPPS_BYTE_ORDER_MARK, mark) == 0 ? at + mark : at;
}

/* The text without a byte order mark at its beginning: columns are counted from there. A text of no bytes may be NULL. */
static inline vpps_text vpps_text_of(const char *name, const char *text, size_t len, const char *stops) {
    if (len == 0) text = "";
    return (vpps_text){name, vpps_skip_mark(text, text + len), text + len, stops};
}

/* What stands at `at`, in words: a whole token where there is one, since `'film'` tells more than `'f'`. */
void vpps_text_found(const vpps_text *t, const char *at, char *found, size_t bytes);

/* Fails with FORMAT: "name:line:column: expected ..., found ...". `found` NULL: what vpps_text_found says. */
vpps_status vpps_text_fail(const vpps_text *t, const char *at, const char *expected, const char *found);
#ifdef __clang_analyzer__ /* which cannot see what it returns */
#define vpps_text_fail(...) (vpps_text_fail(__VA_ARGS__), VPPS_FORMAT)
#endif

/* Fails when the text begins as UTF-16 does: errors about its lines would be less clear. */
vpps_status vpps_text_check_encoding(const vpps_text *t);

/* Fails as vpps_text_check_encoding, and at the first NUL, or CR that no LF follows: then lines end where vpps_text_next_line says. */
vpps_status vpps_text_check(const vpps_text *t);

/* A line, without LF or CR LF, and without a byte order mark at its beginning, which files that were joined have. All zero is
 * before the first. */
typedef struct vpps_line {
    const char *begin, *end, *next;
    uint32_t number; /* from 1; lines beyond 2^32 - 1 have that number */
} vpps_line;

/* Goes to the next line; false at the end of the text. */
bool vpps_text_next_line(const vpps_text *t, vpps_line *line);

/* White space within a line: what parts words, columns and brackets in every form. The spaces that Unicode has beyond
 * ASCII belong to words. */
static inline bool vpps_is_blank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; }
static inline bool vpps_is_space(char c) { return vpps_is_blank(c) || c == '\n' || c == '\r'; }

/* The first byte of at .. end that is not blank; `end`: there is none. */
static inline const char *vpps_skip_blanks(const char *at, const char *end) {
    while (at < end && vpps_is_blank(*at)) at++;
    return at;
}

/* Where begin .. end ends without the blanks at its end. */
static inline const char *vpps_trim_blanks(const char *begin, const char *end) {
    while (end > begin && vpps_is_blank(end[-1])) end--;
    return end;
}

static inline bool vpps_line_is_blank(const vpps_line *line) {
    return vpps_skip_blanks(line->begin, line->end) == line->end;
}

/* The next word in *at .. end, a run of bytes that are not blank; *at goes after it. False: there is none. */
bool vpps_text_next_word(const char **at, const char *end, const char **word, size_t *len);

/* How many words there are. */
uint32_t vpps_text_count_words(const char *at, const char *end);

/* Does a number stand between at and end, and nothing else? In C's form, whatever the locale; finite. */
bool vpps_text_number(const char *at, const char *end, float *value);
/* Likewise, in digits alone, and at most `most`; else *value stays. */
bool vpps_text_whole_number(const char *at, const char *end, uint64_t most, uint64_t *value);
