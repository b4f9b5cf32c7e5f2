/* lists.c - parses lists that tables hold as text. */
#include "cli/lists.h"
#include "base/base.h"

#include <ctype.h>

static const char *skip_space(const char *at) { return at + strspn(at, " \t\r\n"); }

/* Parses n hexadecimal digits. Returns false when there are fewer. */
static bool take_hex(const char **at, int n, uint32_t *c) {
    *c = 0;
    for (; n; n--, ++*at) {
        if (!isxdigit((unsigned char)**at)) return false;
        *c = *c << 4 | (uint32_t)(isdigit((unsigned char)**at) ? **at - '0' : (**at | 0x20) - 'a' + 10);
    }
    return true;
}

static void put_utf8(FILE *f, uint32_t c) {
    const int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};
    fputc((int)(leads[more] | c >> 6 * more), f);
    for (int i = more - 1; i >= 0; i--) fputc((int)(0x80 | (c >> 6 * i & 0x3f)), f);
}

/* Takes an escape of Python or JSON after its backslash. */
static bool take_escape(const char **at, FILE *f) {
    static const char names[] = "\\'\"/abfnrtv", meant[] = "\\'\"/\a\b\f\n\r\t\v";
    const char name = *(*at)++, *found = name ? strchr(names, name) : NULL;
    uint32_t c, low;
    if (found) return fputc(meant[found - names], f) != EOF;
    if (!take_hex(at, name == 'x' ? 2 : name == 'u' ? 4 : name == 'U' ? 8 : 0, &c) || !c || c > 0x10ffff) return false;
    if (c >> 10 == 0xd800 >> 10) {
        if ((*at)[0] != '\\' || (*at)[1] != 'u') return false;
        *at += 2;
        if (!take_hex(at, 4, &low) || low >> 10 != 0xdc00 >> 10) return false;
        c = 0x10000 + ((c & 0x3ff) << 10) + (low & 0x3ff);
    }
    put_utf8(f, c);
    return true;
}

static bool take_quoted(const char **at, FILE *f) {
    const char quote = *(*at)++;
    while (**at != quote) {
        if (!**at) return false;
        if (**at != '\\') {
            fputc(*(*at)++, f);
            continue;
        }
        ++*at;
        if (!take_escape(at, f)) return false;
    }
    ++*at;
    return true;
}

static bool take_number(const char **at, FILE *f) {
    const size_t n = strspn(*at, "0123456789+-.eE");
    if (!n || !isdigit((unsigned char)(*at)[n - 1] == '.' ? (*at)[n > 1 ? n - 2 : 0] : (*at)[n - 1])) return false;
    fwrite(*at, 1, n, f);
    *at += n;
    return true;
}

static bool take_item(const char **at, json_t *items) {
    VPPS_FREED char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    if (!f) return false;
    const bool taken = **at == '\'' || **at == '"' ? take_quoted(at, f) : take_number(at, f);
    return fclose(f) == 0 && taken && json_array_append_new(items, json_stringn(text, len)) == 0;
}

json_t *list_of_text(const char *text, bool *cut) {
    const char *at = skip_space(text);
    const char close = *at == '[' ? ']' : *at == '(' ? ')' : '\0';
    json_t *items = close ? json_array() : NULL;
    *cut = false;
    if (!items) return NULL;
    at = skip_space(at + 1);
    bool good = true;
    while (good && *at != close) {
        good = take_item(&at, items);
        const char *after = skip_space(at);
        const bool parted = after > at || *after == ',' || *after == close;
        at = skip_space(after + (*after == ','));
        *cut = good && strncmp(at, "...", 3) == 0;
        good = good && parted && !*cut;
    }
    const bool list = good && !*skip_space(at + 1) && (json_array_size(items) || close == ']');
    if (list) return items;
    json_decref(items);
    return NULL;
}
