/* json.c - parses JSON. A string is unescaped in place: it never gets longer, and a NUL replaces its closing quotation mark. */
#include "json.h"

#include "base/base.h"

#include <errno.h>

enum { LEVELS = 2048 };

typedef struct parser {
    vpps_json *out;
    char *at, *end;
    const char *expected; /* the syntax that was expected but not found; NULL: no failure */
    bool memory, foreign; /* memory: memory ran out; foreign: takes other programs' repeated keys, NULs, big integers */
    bool nul;             /* whether the latest string contains a NUL */
} parser;

static bool fail(parser *p, const char *expected) {
    if (!p->expected) p->expected = expected;
    return false;
}

static void skip_space(parser *p) {
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r')) p->at++;
}

static bool take(parser *p, char c) {
    if (p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

static bool take_word(parser *p, const char *word) {
    const size_t n = strlen(word);
    if ((size_t)(p->end - p->at) < n || memcmp(p->at, word, n) != 0) return false;
    p->at += n;
    return true;
}

/* ---------------------------------------------------------------- strings */

size_t vpps_utf8_length(const char *text, size_t len) {
    const unsigned char *p = (const unsigned char *)text, lead = *p;
    const size_t n = lead < 0x80 ? 1 : lead >= 0xc2 && lead <= 0xdf ? 2 : (lead & 0xf0) == 0xe0 ? 3 : 4;
    unsigned char low = 0x80, high = 0xbf;
    if (n > len || (n == 4 && (lead < 0xf0 || lead > 0xf4))) return 0;
    if (lead == 0xe0) low = 0xa0;  /* excludes overlong forms */
    if (lead == 0xed) high = 0x9f; /* excludes surrogates */
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f; /* U+10FFFF is the largest code point */
    for (size_t i = 1; i < n; i++, low = 0x80, high = 0xbf)
        if (p[i] < low || p[i] > high) return 0;
    return n;
}

bool vpps_is_utf8(const char *text) {
    for (size_t n; *text; text += n) {
        n = vpps_utf8_length(text, 4); /* 4 is safe: the NUL ends a character, too */
        if (!n) return false;
    }
    return true;
}

char *vpps_put_utf8(char *to, uint32_t c) {
    static const unsigned char leads[] = {0, 0xc0, 0xe0, 0xf0};
    const unsigned further = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    *to++ = (char)(leads[further] | c >> 6 * further);
    for (unsigned i = further; i-- > 0;) *to++ = (char)(0x80 | (c >> 6 * i & 0x3f));
    return to;
}

static bool take_hex(parser *p, uint32_t *out) {
    *out = 0;
    for (int i = 0; i < 4; i++, p->at++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = p->at < p->end && *p->at ? strchr(digits, *p->at | 0x20) : NULL;
        if (!digit) return fail(p, "four hexadecimal digits after \\u");
        *out = *out << 4 | (uint32_t)(digit - digits);
    }
    return true;
}

/* Takes an escape after its backslash, and writes its character in UTF-8. */
static bool take_escape(parser *p, char **to) {
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *name = p->at < p->end && *p->at ? strchr(names, *p->at) : NULL;
    if (name) {
        *(*to)++ = meant[name - names];
        p->at++;
        return true;
    }
    uint32_t c, low;
    if (!take(p, 'u')) return fail(p, "an escape that JSON has");
    if (!take_hex(p, &c)) return false;
    if (c >= 0xd800 && c < 0xdc00) {
        if (!take_word(p, "\\u") || !take_hex(p, &low) || low < 0xdc00 || low > 0xdfff)
            return fail(p, "the second half of a surrogate pair");
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    } else if (c >= 0xdc00 && c < 0xe000) {
        return fail(p, "the first half of a surrogate pair");
    }
    if (!c && !p->foreign) return fail(p, "no NUL in a string");
    p->nul = p->nul || !c;
    *to = vpps_put_utf8(*to, c);
    return true;
}

static bool take_string(parser *p, const char **out) {
    if (!take(p, '"')) return fail(p, "a string");
    char *to = p->at;
    *out = to;
    p->nul = false;
    for (;;) {
        if (p->at == p->end) return fail(p, "the end of the string");
        const unsigned char c = (unsigned char)*p->at;
        if (c == '"') break;
        if (c < 0x20) return fail(p, "no control character in a string");
        if (c == '\\') {
            p->at++;
            if (!take_escape(p, &to)) return false;
            continue;
        }
        const size_t n = vpps_utf8_length(p->at, (size_t)(p->end - p->at));
        if (!n) return fail(p, "UTF-8");
        memmove(to, p->at, n);
        to += n;
        p->at += n;
    }
    p->at++;
    *to = '\0';
    return true;
}

/* ---------------------------------------------------------------- values */

static bool digits(parser *p) {
    const char *first = p->at;
    while (p->at < p->end && *p->at >= '0' && *p->at <= '9') p->at++;
    return p->at > first ? true : fail(p, "a digit");
}

static bool take_number(parser *p, vpps_json_value *v) {
    const char *first = p->at;
    take(p, '-');
    if (!take(p, '0') && !digits(p)) return false;
    v->kind = VPPS_JSON_INTEGER;
    if (take(p, '.')) {
        v->kind = VPPS_JSON_OTHER;
        if (!digits(p)) return false;
    }
    if (take(p, 'e') || take(p, 'E')) {
        v->kind = VPPS_JSON_OTHER;
        if (!take(p, '+')) take(p, '-');
        if (!digits(p)) return false;
    }
    if (v->kind != VPPS_JSON_INTEGER) return true;
    errno = 0;
    v->integer = strtoll(first, NULL, 10);
    if (errno && p->foreign) v->kind = VPPS_JSON_OTHER;
    return errno && !p->foreign ? fail(p, "an integer of at most 64 bits") : true;
}

static bool take_value(parser *p, size_t number, int level);

/* Adds a value and returns its index; the first one, 0, is the whole document's. Later, 0 means that memory ran out. */
static size_t add_value(parser *p) {
    if (!VPPS_RESERVE(p->out->values, p->out->n + 1)) {
        p->memory = true;
        fail(p, "memory");
        return 0;
    }
    p->out->values[p->out->n] = (vpps_json_value){.kind = VPPS_JSON_OTHER};
    return p->out->n++;
}

static bool check_keys(parser *p, const vpps_json_value *object) {
    const char **keys = malloc((object->n + 1) * sizeof *keys);
    if (!keys) {
        p->memory = true;
        return fail(p, "memory");
    }
    size_t n = 0;
    for (size_t i = object->first; i; i = p->out->values[i].next) keys[n++] = p->out->values[i].key;
    qsort(keys, n, sizeof *keys, vpps_by_text);
    bool ok = true;
    for (size_t i = 1; i < n && ok; i++) ok = strcmp(keys[i - 1], keys[i]) != 0;
    free(keys);
    return ok ? true : fail(p, "every key of the object once");
}

/* Takes the members of an object or array after its opening bracket. */
static bool take_members(parser *p, size_t number, char close, int level) {
    const bool object = close == '}';
    size_t last = 0;
    skip_space(p);
    if (take(p, close)) return true;
    if (level == LEVELS) return fail(p, "at most 2,048 levels");
    do {
        const char *key = NULL;
        skip_space(p);
        const char *key_begin = p->at, *key_end = key_begin;
        if (object) {
            if (!take_string(p, &key)) return false;
            key_end = p->at;
            if (p->nul) key = ""; /* a key with a NUL becomes empty, a name that nobody looks up */
            skip_space(p);
            if (!take(p, ':')) return fail(p, "':' after the key");
        }
        const size_t member = add_value(p);
        if (!member) return false;
        p->out->values[member].key = key;
        p->out->values[member].key_begin = (size_t)(key_begin - p->out->text);
        p->out->values[member].key_end = (size_t)(key_end - p->out->text);
        *(last ? &p->out->values[last].next : &p->out->values[number].first) = member;
        p->out->values[number].n++;
        last = member;
        if (!take_value(p, member, level + 1)) return false;
        skip_space(p);
    } while (take(p, ','));
    if (!take(p, close)) return fail(p, object ? "',' or '}'" : "',' or ']'");
    return object && !p->foreign ? check_keys(p, &p->out->values[number]) : true;
}

static bool take_this_value(parser *p, size_t number, int level) {
    vpps_json_value *v = &p->out->values[number]; /* a pointer that is valid until a member is added */
    if (p->at == p->end) return fail(p, "a value");
    if (*p->at == '"') {
        const bool taken = take_string(p, &v->string);
        v->kind = p->nul ? VPPS_JSON_OTHER : VPPS_JSON_STRING;
        return taken;
    }
    if (*p->at == '{' || *p->at == '[') {
        const bool object = *p->at++ == '{';
        v->kind = object ? VPPS_JSON_OBJECT : VPPS_JSON_ARRAY;
        return take_members(p, number, object ? '}' : ']', level);
    }
    if (*p->at == '-' || (*p->at >= '0' && *p->at <= '9')) return take_number(p, v);
    return take_word(p, "true") || take_word(p, "false") || take_word(p, "null") ? true : fail(p, "a value");
}

static bool take_value(parser *p, size_t number, int level) {
    skip_space(p);
    const size_t begin = (size_t)(p->at - p->out->text);
    if (!take_this_value(p, number, level)) return false;
    p->out->values[number].begin = begin;
    p->out->values[number].end = (size_t)(p->at - p->out->text);
    return true;
}

static bool parse(vpps_json *out, const char *text, size_t n, bool foreign, vpps_json_error *error) {
    *out = (vpps_json){.text = malloc(n + 1)};
    *error = (vpps_json_error){.memory = !out->text};
    if (!out->text) return false;
    memcpy(out->text, text, n);
    out->text[n] = '\0';
    parser p = {.out = out, .at = out->text, .end = out->text + n, .foreign = foreign};
    add_value(&p);
    if (!p.memory && take_value(&p, 0, 0)) {
        skip_space(&p);
        if (p.at < p.end) fail(&p, "the end");
    }
    if (!p.expected) return true;
    *error = (vpps_json_error){.memory = p.memory, .line = 1, .column = 1, .expected = p.expected};
    for (size_t i = 0; i < (size_t)(p.at - out->text); i++) {
        error->column = text[i] == '\n' ? 1 : error->column + 1;
        error->line += text[i] == '\n';
    }
    vpps_json_free(out);
    return false;
}

bool vpps_json_parse(vpps_json *out, const char *text, size_t n, vpps_json_error *error) {
    return parse(out, text, n, false, error);
}

bool vpps_json_parse_foreign(vpps_json *out, const char *text, size_t n, vpps_json_error *error) {
    return parse(out, text, n, true, error);
}

void vpps_json_free(vpps_json *json) {
    VPPS_FREE_ARRAYS(json->values);
    free(json->text);
    *json = (vpps_json){0};
}

const vpps_json_value *vpps_json_next(const vpps_json *json, const vpps_json_value *of, const vpps_json_value *at) {
    const size_t next = at ? at->next : of ? of->first : 0;
    return next ? &json->values[next] : NULL;
}

const vpps_json_value *vpps_json_get(const vpps_json *json, const vpps_json_value *object, const char *key) {
    if (!object || object->kind != VPPS_JSON_OBJECT) return NULL;
    for (const vpps_json_value *v = NULL; (v = vpps_json_next(json, object, v));)
        if (strcmp(v->key, key) == 0) return v;
    return NULL;
}

void vpps_json_write_string(FILE *file, const char *text) {
    static const char escaped[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    putc('"', file);
    for (; *text; text++) {
        const char *e = strchr(escaped, *text);
        if (e) {
            putc('\\', file);
            putc(names[e - escaped], file);
        } else if ((unsigned char)*text < 0x20) {
            fprintf(file, "\\u%04X", (unsigned)(unsigned char)*text);
        } else {
            putc(*text, file);
        }
    }
    putc('"', file);
}
