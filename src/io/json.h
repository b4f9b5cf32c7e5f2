/* json.h - parses JSON (RFC 8259) into an array of values, and writes JSON strings. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef enum vpps_json_kind {
    VPPS_JSON_OBJECT,
    VPPS_JSON_ARRAY,
    VPPS_JSON_STRING,
    VPPS_JSON_INTEGER,
    VPPS_JSON_OTHER /* a value that is not listed above: a number with a fraction or an exponent, true, false, null */
} vpps_json_kind;

typedef struct vpps_json_value {
    vpps_json_kind kind;
    uint32_t n;                /* number of members of an object or array */
    size_t first, next;        /* indices of the value's first member and of its next sibling; 0: none */
    size_t begin, end;         /* the value's bytes in the parsed text */
    const char *key;           /* name, if the value is a member of an object */
    size_t key_begin, key_end; /* range of the name's bytes in the text, quotation marks included */
    const char *string;
    int64_t integer;
} vpps_json_value;

typedef struct vpps_json {
    char *text; /* storage of all strings */
    vpps_json_value *values;
    size_t n;
} vpps_json;

typedef struct vpps_json_error {
    bool memory;           /* true: out of memory; false: the text has an error at line:column */
    uint32_t line, column; /* place of the error; both count from 1, columns in bytes */
    const char *expected;
} vpps_json_error;

/* Parses a text that is one JSON value; values[0] is that value. Strict: UTF-8, unique keys in each object, no NUL in strings, integers of
 * at most 64 bits, at most 2,048 levels. Returns false, with the reason in *error and an empty `out`, if the text fails. */
bool vpps_json_parse(vpps_json *out, const char *text, size_t n, vpps_json_error *error);

/* Parses a text that comes from another program, less strictly than vpps_json_parse: keys may be repeated; integers of
 * more than 64 bits and strings with a NUL become VPPS_JSON_OTHER. */
bool vpps_json_parse_foreign(vpps_json *out, const char *text, size_t n, vpps_json_error *error);
void vpps_json_free(vpps_json *json);

/* Finds an object's member by its key. Returns NULL when there is none, and when `object` is NULL or no object. */
const vpps_json_value *vpps_json_get(const vpps_json *json, const vpps_json_value *object, const char *key);

/* Returns the member of the object or array `of` that follows member `at`; the first member if `at` is NULL; NULL after the last. */
const vpps_json_value *vpps_json_next(const vpps_json *json, const vpps_json_value *of, const vpps_json_value *at);

/* Returns the length of the well-formed UTF-8 character that a text of len bytes, one or more, begins with; 0: there is none. */
size_t vpps_utf8_length(const char *text, size_t len);

/* Returns whether a text is well-formed UTF-8 (RFC 3629, section 4). */
bool vpps_is_utf8(const char *text);

/* Writes a character's one to four bytes of UTF-8. Returns where they end. */
char *vpps_put_utf8(char *to, uint32_t c);

/* Writes a UTF-8 text as a JSON string, with quotation marks and escapes. */
void vpps_json_write_string(FILE *file, const char *text);
