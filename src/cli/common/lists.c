/* lists.c - parses lists that cells of CSV and TSV tables hold as text. Exported programs have this file, too. */
#include "cli/common/lists.h"
#include "base/base.h"
#include "io/json.h"

#include <ctype.h>

static const char *skip_blank(const char *at) { return at + strspn(at, " \t\r\n"); }

/* Parses n hexadecimal digits. Returns false when there are fewer. */
static bool take_digits(const char **at, int n, uint32_t *c) {
    *c = 0;
    for (; n; n--, ++*at) {
        if (!isxdigit((unsigned char)**at)) return false;
        *c = *c << 4 | (uint32_t)(isdigit((unsigned char)**at) ? **at - '0' : (**at | 0x20) - 'a' + 10);
    }
    return true;
}

/* Takes an escape of Python or JSON after its backslash, and writes the character that it stands for. */
static bool take_escaped(const char **at, char **to) {
    static const char names[] = "\\'\"/abfnrtv", meant[] = "\\'\"/\a\b\f\n\r\t\v";
    const char name = *(*at)++, *found = name ? strchr(names, name) : NULL;
    uint32_t c, low;
    if (found) {
        *(*to)++ = meant[found - names];
        return true;
    }
    if (!take_digits(at, name == 'x' ? 2 : name == 'u' ? 4 : name == 'U' ? 8 : 0, &c) || !c || c > 0x10ffff)
        return false;
    if (c >> 10 == 0xdc00 >> 10) return false;
    if (c >> 10 == 0xd800 >> 10) {
        if ((*at)[0] != '\\' || (*at)[1] != 'u') return false;
        *at += 2;
        if (!take_digits(at, 4, &low) || low >> 10 != 0xdc00 >> 10) return false;
        c = 0x10000 + ((c & 0x3ff) << 10) + (low & 0x3ff);
    }
    *to = vpps_put_utf8(*to, c);
    return true;
}

static bool take_quoted(const char **at, char **to) {
    const char quote = *(*at)++;
    while (**at != quote) {
        if (!**at) return false;
        if (**at != '\\') {
            *(*to)++ = *(*at)++;
            continue;
        }
        ++*at;
        if (!take_escaped(at, to)) return false;
    }
    ++*at;
    return true;
}

static bool take_numeral(const char **at, char **to) {
    const size_t n = strspn(*at, "0123456789+-.eE");
    if (!n || !isdigit((unsigned char)(*at)[n - 1] == '.' ? (*at)[n > 1 ? n - 2 : 0] : (*at)[n - 1])) return false;
    memcpy(*to, *at, n);
    *to += n;
    *at += n;
    return true;
}

bool list_of_text(const char *text, char *items, size_t *n, bool *cut) {
    const char *at = skip_blank(text);
    const char close = *at == '[' ? ']' : *at == '(' ? ')' : '\0';
    *cut = false;
    *n = 0;
    if (!close) return false;
    at = skip_blank(at + 1);
    bool good = true;
    for (; good && *at != close; ++*n) {
        good = *at == '\'' || *at == '"' ? take_quoted(&at, &items) : take_numeral(&at, &items);
        *items++ = '\0';
        const char *after = skip_blank(at);
        const bool parted = after > at || *after == ',' || *after == close;
        at = skip_blank(after + (*after == ','));
        *cut = good && strncmp(at, "...", 3) == 0;
        good = good && parted && !*cut;
    }
    return good && !*skip_blank(at + 1) && (*n || close == ']');
}
