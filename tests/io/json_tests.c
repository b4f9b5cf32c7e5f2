/* json_tests.c - the reader of JSON compared with jansson: both accept the same texts with the same values; jansson reads our strings. */
#include "io_tests.h"

#include "io/json.h"
#include <jansson.h>

/* Returns whether jansson's value equals ours. */
static bool equal(const vpps_json *j, const vpps_json_value *v, json_t *theirs) {
    const char *key;
    json_t *member;
    const vpps_json_value *at = NULL;
    switch (v->kind) {
    case VPPS_JSON_STRING: return json_is_string(theirs) && strcmp(v->string, json_string_value(theirs)) == 0;
    case VPPS_JSON_INTEGER: return json_is_integer(theirs) && v->integer == json_integer_value(theirs);
    case VPPS_JSON_OTHER: return json_is_real(theirs) || json_is_boolean(theirs) || json_is_null(theirs);
    case VPPS_JSON_ARRAY:
        if (!json_is_array(theirs) || json_array_size(theirs) != v->n) return false;
        for (size_t i = 0; (at = vpps_json_next(j, v, at)); i++)
            if (!equal(j, at, json_array_get(theirs, i))) return false;
        return true;
    case VPPS_JSON_OBJECT:
        if (!json_is_object(theirs) || json_object_size(theirs) != v->n) return false;
        json_object_foreach(theirs, key, member) {
            at = vpps_json_get(j, v, key);
            if (!at || !equal(j, at, member)) return false;
        }
        return true;
    }
    return false;
}

/* Returns whether both accept the text. */
static bool compare(const char *text, size_t n) {
    json_error_t their_error;
    vpps_json_error error;
    vpps_json ours;
    json_t *theirs = json_loadb(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &their_error);
    const bool taken = vpps_json_parse(&ours, text, n, &error);
    if (!theirs && strstr(their_error.text, "real number overflow")) { /* a value that nothing uses */
        vpps_json_free(&ours);
        return taken;
    }
    ck_assert_msg(taken == (theirs != NULL), "'%.*s': jansson says \"%s\", we expected \"%s\"", (int)n, text,
                  theirs ? "good" : their_error.text, taken ? "good" : error.expected);
    if (taken) ck_assert_msg(equal(&ours, ours.values, theirs), "'%.*s' is another value", (int)n, text);
    ck_assert(taken || (error.line >= 1 && error.column >= 1 && !ours.text && !ours.values));
    vpps_json_free(&ours);
    json_decref(theirs);
    return taken;
}

static const char *const texts[] = {
    /* clang-format off */
    "{}", "[]", " [ ] ", "{\"a\":[1,-2,0,9223372036854775807,-9223372036854775808]}", "[9223372036854775808]",
    "[-9223372036854775809]", "[01]", "[-]", "[1.]", "[.5]", "[1e5,1E-5,1.5e+2,-0.0,-0]", "[1e]", "[true,false,null]",
    "[nul]", "[tru", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\u0041\\u00e9\\u20ac\\ud834\\udd1e\"", "\"\\ud834\"",
    "\"\\ud834\\u0041\"", "\"\\udd1e\"", "\"\\u0000\"", "\"\\x\"", "\"\\u12g4\"", "\"\x01\"", "\"a",
    "\"\xc3\xa9\xe2\x82\xac\xf0\x9d\x84\x9e\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"",
    "\"\xe2\x82", "\"\xff\"", "{\"a\":1,\"a\":2}", "{\"a\":1,\"b\":{\"a\":2,\"b\":3}}", "{\"\":1}",
    "{\"a\" : [ { } , [ ] ] }", "{\"a\":1,}", "[1,]", "[,1]", "{,}", "{1:2}", "{\"a\"}", "{\"a\":}", "[1 2]", "[1]]",
    "[1] x", "", " ", "{", "[", "[\"a\",", "\t\n\r[1]\n", "[1]\v", "'a'", "[\"\\u00e9\":1]",
    "{\"\\u0061\":1,\"a\":2}",
    /* clang-format on */
};

TEST_GROUP("json");

TEST(as_jansson) {
    uint32_t taken = 0;
    for (size_t i = 0; i < VPPS_COUNT(texts); i++) taken += compare(texts[i], strlen(texts[i]));
    ck_assert_uint_ge(taken, 12);
    vpps_json_error error;
    vpps_json j;
    ck_assert(!vpps_json_parse(&j, "[1\0]", 4, &error)); /* which jansson takes */
    ck_assert(!compare("\"a\0b\"", 5));
}

TEST(as_jansson_when_damaged) {
    static const char alphabet[] = "{}[]\",:\\u0d8e1-.\xc3\xa9 ntfa";
    uint64_t state = 7;
    uint32_t taken = 0, cases = test_scaled(20000);
    for (uint32_t i = 0; i < cases; i++) {
        char text[256];
        const char *from = texts[(state = vpps_mix64(state)) % VPPS_COUNT(texts)];
        size_t n = strlen(from);
        memcpy(text, from, n + 1);
        for (uint32_t k = (uint32_t)((state = vpps_mix64(state)) % 3); k > 0 && n; k--) {
            const size_t at = (state = vpps_mix64(state)) % n;
            const char c = alphabet[(state = vpps_mix64(state)) % (sizeof alphabet - 1)];
            if (state >> 63) {
                memmove(text + at + 1, text + at, n++ - at);
                text[at] = c;
            } else if (state >> 62 & 1) {
                memmove(text + at, text + at + 1, --n - at);
            } else {
                text[at] = c;
            }
        }
        taken += compare(text, n);
    }
    ck_assert_uint_gt(taken, cases / 20);
    ck_assert_uint_lt(taken, cases - cases / 20);
}

TEST(where_it_is_wrong) {
    vpps_json_error error;
    vpps_json j;
    ck_assert(!vpps_json_parse(&j, "{\"a\":\n 1,\n b}", 14, &error));
    ck_assert_uint_eq(error.line, 3);
    ck_assert_uint_eq(error.column, 2);
    ck_assert_str_eq(error.expected, "a string");
}

TEST(many_keys) {
    const uint32_t keys = test_scaled(100000); /* a sanitizer reads everything after a number */
    char last[16], other[16], *text = malloc(keys * 16 + 3), *to = text;
    vpps_json_error error;
    vpps_json j;
    *to++ = '{';
    for (uint32_t i = 0; i < keys; i++) to += sprintf(to, "%s\"%u\":%u", i ? "," : "", i, i);
    *to++ = '}';
    *to = '\0';
    ck_assert(vpps_json_parse(&j, text, (size_t)(to - text), &error));
    sprintf(last, "%u", keys - 1);
    ck_assert_int_eq(vpps_json_get(&j, j.values, last)->integer, keys - 1);
    vpps_json_free(&j);
    sprintf(other, "\"%u\"", keys / 9 * 7);
    memcpy(strstr(text, other), strstr(text, last) - 1, strlen(other)); /* as long */
    ck_assert(!vpps_json_parse(&j, text, (size_t)(to - text), &error));
    ck_assert_str_eq(error.expected, "every key of the object once");
    free(text);
}

TEST(strings_are_read_back) {
    char every[256];
    for (int i = 1; i < 128; i++) every[i - 1] = (char)i;
    strcpy(every + 127, "\xc3\xa9\xf0\x9d\x84\x9e");
    FREED char *text = NULL;
    size_t n = 0;
    FILE *file = open_memstream(&text, &n);
    vpps_json_write_string(file, every);
    fclose(file);
    json_error_t error;
    json_t *read = json_loadb(text, n, JSON_DECODE_ANY, &error);
    ck_assert_msg(read != NULL, "%s", error.text);
    ck_assert_str_eq(json_string_value(read), every);
    FREED char *theirs = json_dumps(read, JSON_ENCODE_ANY);
    ck_assert_str_eq(text, theirs); /* so that files stay the same, byte by byte */
    json_decref(read);
}
