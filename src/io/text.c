/* text.c - lines and words of a text, and failures in it. Positions are counted only when something fails. */
#include "text.h"

#include "base/base.h"
#include "stream.h"

#include <math.h>

static bool in_token(const vpps_text *t, char c) { return c > 0x20 && c < 0x7f && !strchr(t->stops, c); }

void vpps_text_found(const vpps_text *t, const char *at, char *found, size_t bytes) {
    if (at == t->end) {
        snprintf(found, bytes, "end of file");
        return;
    }
    const unsigned char c = (unsigned char)*at;
    if (c == '\n' || (c == '\r' && t->end - at > 1 && at[1] == '\n')) {
        snprintf(found, bytes, "end of line");
    } else if (c == ' ' || c == '\t') {
        snprintf(found, bytes, c == ' ' ? "a space" : "a tab");
    } else if (c < 0x20 || c >= 0x7f) {
        snprintf(found, bytes, "byte 0x%02X", c);
    } else {
        int len = 1;
        if (in_token(t, *at)) {
            while (len < 40 && at + len < t->end && in_token(t, at[len])) len++;
        }
        snprintf(found, bytes, "'%.*s'", len, at);
    }
}

static const char *line_begin(const vpps_text *t, const char *at) {
    const char *begin = at;
    while (begin > t->begin && begin[-1] != '\n') begin--;
    return vpps_skip_mark(begin, at);
}

/* Returns the number of the line that contains a byte, from 1. */
static size_t line_of(const vpps_text *t, const char *at) {
    size_t line = 1;
    for (const char *p = t->begin; p < at && (p = memchr(p, '\n', (size_t)(at - p))); p++) line++;
    return line;
}

#undef vpps_text_fail
vpps_status vpps_text_fail(const vpps_text *t, const char *at, const char *expected, const char *found) {
    char text[64];
    if (!found) {
        vpps_text_found(t, at, text, sizeof text);
        found = text;
    }
    return vpps_fail(VPPS_FORMAT, "%s%s:%zu:%zu: expected %s, found %s", VPPS_PATH_ARGS(t->name), line_of(t, at),
                     (size_t)(at - line_begin(t, at)) + 1, expected, found);
}

vpps_status vpps_text_check_encoding(const vpps_text *t) {
    if (t->end - t->begin < 2) return VPPS_OK;
    if (memcmp(t->begin, "\xff\xfe", 2) != 0 && memcmp(t->begin, "\xfe\xff", 2) != 0) return VPPS_OK;
    return vpps_text_fail(t, t->begin, "UTF-8 text", "the byte order mark of UTF-16");
}

vpps_status vpps_text_check(const vpps_text *t) {
    if (t->begin == t->end) return VPPS_OK;
    VPPS_TRY(vpps_text_check_encoding(t));
    const char *nul = memchr(t->begin, '\0', (size_t)(t->end - t->begin));
    const char *end = nul ? nul : t->end;
    for (const char *cr = t->begin; cr < end && (cr = memchr(cr, '\r', (size_t)(end - cr))); cr++)
        if (cr + 1 == t->end || cr[1] != '\n') return vpps_text_fail(t, cr, "LF after CR", "CR alone");
    return nul ? vpps_text_fail(t, nul, "text", NULL) : VPPS_OK;
}

bool vpps_text_next_line(const vpps_text *t, vpps_line *line) {
    const char *begin = line->number ? line->next : t->begin;
    if (begin == t->end) return false;
    const char *lf = memchr(begin, '\n', (size_t)(t->end - begin));
    line->end = lf ? lf : t->end;
    line->begin = vpps_skip_mark(begin, line->end);
    line->next = lf ? lf + 1 : t->end;
    if (line->number < UINT32_MAX) line->number++;
    if (lf && lf > line->begin && lf[-1] == '\r') line->end--;
    return true;
}

bool vpps_text_next_word(const char **at, const char *end, vpps_word *word) {
    const char *begin = vpps_skip_blanks(*at, end), *p = begin;
    while (p < end && !vpps_is_blank(*p)) p++;
    *word = (vpps_word){begin, (size_t)(p - begin)};
    *at = p;
    return p > begin;
}

uint32_t vpps_text_count_words(const char *at, const char *end) {
    vpps_word word;
    uint32_t n = 0;
    while (vpps_text_next_word(&at, end, &word)) n++;
    return n;
}

/* ---------------------------------------------------------------- numbers */

bool vpps_text_whole_number(const char *at, const char *end, uint64_t most, uint64_t *value) {
    uint64_t v = 0;
    if (at == end) return false;
    for (; at < end; at++) {
        const uint64_t digit = (uint64_t)(*at - '0');
        if (*at < '0' || *at > '9' || digit > most || v > (most - digit) / 10) return false;
        v = v * 10 + digit;
    }
    *value = v;
    return true;
}

bool vpps_text_number(const char *at, const char *end, float *value) {
    enum { MOST_DIGITS = 18, MOST_EXPONENT = 400 };
    uint64_t digits = 0;
    int exponent = 0, n_digits = 0;
    bool any = false;
    const bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) at++;
    for (bool fraction = false; at < end && ((*at >= '0' && *at <= '9') || (*at == '.' && !fraction)); at++) {
        if (*at == '.') {
            fraction = true;
            continue;
        }
        any = true;
        if (n_digits < MOST_DIGITS) {
            digits = digits * 10 + (uint64_t)(*at - '0');
            n_digits += digits > 0;
            exponent -= fraction;
        } else {
            exponent += !fraction;
        }
    }
    if (!any) return false;
    if (at < end && (*at == 'e' || *at == 'E')) {
        int written = 0;
        const bool below = ++at < end && *at == '-';
        if (at < end && (*at == '-' || *at == '+')) at++;
        if (at == end) return false;
        for (; at < end && *at >= '0' && *at <= '9'; at++)
            if (written < MOST_EXPONENT) written = written * 10 + (*at - '0');
        exponent += below ? -written : written;
    }
    if (at < end) return false;
    /* usual powers of ten are exact as doubles, so that only the quotient or product is rounded */
    const double power = pow(10, fabs((double)exponent)), x = (double)digits;
    const double result = digits == 0 ? 0 : exponent < 0 ? x / power : x * power;
    *value = (float)(negative ? -result : result);
    return isfinite(*value);
}
