/* text.h - common functions of readers of text: lines, words, numbers, and messages that tell the place and what was expected there. */
#pragma once

#include "vpps.h"

#include <string.h>

/* A whole text. Error messages quote one token of it. A token ends at white space, at unprintable bytes, and at the bytes in `stops`. */
typedef struct vpps_text {
    const char *name, *begin, *end, *stops;
} vpps_text;

/* The byte order mark that some editors put before UTF-8 text. */
#define VPPS_BYTE_ORDER_MARK "\xef\xbb\xbf"

/* Returns the position after a byte order mark, if `at` is at one, else `at`. */
static inline const char *vpps_skip_mark(const char *at, const char *end) {
    const size_t mark = sizeof VPPS_BYTE_ORDER_MARK - 1;
    return (size_t)(end - at) >= mark && memcmp(at, VPPS_BYTE_ORDER_MARK, mark) == 0 ? at + mark : at;
}

/* Makes a vpps_text that begins after the byte order mark; messages count columns from there. `text` may be NULL if len is 0. */
static inline vpps_text vpps_text_of(const char *name, const char *text, size_t len, const char *stops) {
    if (len == 0) text = "";
    return (vpps_text){name, vpps_skip_mark(text, text + len), text + len, stops};
}

/* Describes the text at `at` for a message: a whole token if there is one, since `'film'` tells more than `'f'`. */
void vpps_text_found(const vpps_text *t, const char *at, char *found, size_t bytes);

/* Fails with FORMAT and the message "name:line:column: expected ..., found ...". If `found` is NULL, vpps_text_found describes the text at `at`. */
vpps_status vpps_text_fail(const vpps_text *t, const char *at, const char *expected, const char *found);
#ifdef __clang_analyzer__ /* tells clang's analyzer, which sees no body of vpps_text_fail, that it returns FORMAT */
#define vpps_text_fail(...) (vpps_text_fail(__VA_ARGS__), VPPS_FORMAT)
#endif

/* Fails with FORMAT when the text begins as UTF-16 does: one message instead of confusing ones about lines. */
vpps_status vpps_text_check_encoding(const vpps_text *t);

/* Fails with FORMAT for UTF-16 (vpps_text_check_encoding), at a NUL, and at a CR that no LF follows. After OK, LF and
 * CR LF are the only line ends. */
vpps_status vpps_text_check(const vpps_text *t);

/* A line of a text, without its line end (LF or CR LF) and without a byte order mark at its beginning (joined files have such marks
 * inside). A vpps_line whose members are all 0 stands before the first line. */
typedef struct vpps_line {
    const char *begin, *end, *next;
    uint32_t number; /* the line's number, from 1; saturates at 2^32 - 1 */
} vpps_line;

/* Goes to the next line. Returns false at the end of the text. */
bool vpps_text_next_line(const vpps_text *t, vpps_line *line);

/* Returns whether a byte is white space within a line, which separates words, columns and brackets in every format.
 * Unicode's spaces beyond ASCII belong to words. */
static inline bool vpps_is_blank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; }
static inline bool vpps_is_space(char c) { return vpps_is_blank(c) || c == '\n' || c == '\r'; }

/* Returns the first byte of at .. end that is not blank, `end` if there is none. */
static inline const char *vpps_skip_blanks(const char *at, const char *end) {
    while (at < end && vpps_is_blank(*at)) at++;
    return at;
}

/* Returns where begin .. end ends without its trailing blanks. */
static inline const char *vpps_trim_blanks(const char *begin, const char *end) {
    while (end > begin && vpps_is_blank(end[-1])) end--;
    return end;
}

static inline bool vpps_line_is_blank(const vpps_line *line) {
    return vpps_skip_blanks(line->begin, line->end) == line->end;
}

/* A word, or another part of a text. */
typedef struct vpps_word {
    const char *at;
    size_t len;
} vpps_word;

/* Takes the next word in *at .. end, a run of bytes that are not blank, and advances *at. Returns false after the last. */
bool vpps_text_next_word(const char **at, const char *end, vpps_word *word);

static inline bool vpps_word_is(vpps_word w, const char *text) {
    return w.len == strlen(text) && memcmp(w.at, text, w.len) == 0;
}

/* Returns the text begin .. end without the blanks at its ends. */
static inline vpps_word vpps_word_trimmed(const char *begin, const char *end) {
    begin = vpps_skip_blanks(begin, end);
    return (vpps_word){begin, (size_t)(vpps_trim_blanks(begin, end) - begin)};
}

uint32_t vpps_text_count_words(const char *at, const char *end);

/* Parses a finite number in C's notation, in any locale, that fills at .. end. Returns false for any other text. */
bool vpps_text_number(const char *at, const char *end, float *value);
/* Parses a whole number in digits, at most `most`, that fills at .. end. Returns false, *value unchanged, otherwise. */
bool vpps_text_whole_number(const char *at, const char *end, uint64_t most, uint64_t *value);
