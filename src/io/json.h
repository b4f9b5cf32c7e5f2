/* json.h - JSON (RFC 8259) as a checkpoint's header needs it: reading a text into values, and writing strings. */
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
    VPPS_JSON_OTHER /* a number with a fraction or an exponent, true, false, null */
} vpps_json_kind;

typedef struct vpps_json_value {
    vpps_json_kind kind;
    uint32_t n;         /* of an object or array: members */
    size_t first, next; /* numbers of the first member, and of the one after this in its object or array; 0: none */
    size_t begin, end;  /* its bytes in the text that was read */
    const char *key;    /* of an object's member */
    size_t key_begin, key_end; /* the key's bytes, with its quotation marks */
    const char *string;
    int64_t integer;
} vpps_json_value;

typedef struct vpps_json {
    char *text; /* holds all strings */
    vpps_json_value *values;
    size_t n;
} vpps_json;

typedef struct vpps_json_error {
    bool memory;           /* out of memory; else the text is at fault: */
    uint32_t line, column; /* from 1, in bytes */
    const char *expected;
} vpps_json_error;

/* Reads a text, which is one value; values[0] is that. Strict: UTF-8, no key twice in an object, no NUL in strings, integers of 64
 * bits, at most 2,048 levels. False: *error tells why; out is empty. */
bool vpps_json_parse(vpps_json *out, const char *text, size_t n, vpps_json_error *error);

/* The same of a text that is passed on rather than understood: keys may be there twice; an integer of more than 64 bits and a string with
 * NUL are VPPS_JSON_OTHER. */
bool vpps_json_parse_foreign(vpps_json *out, const char *text, size_t n, vpps_json_error *error);
void vpps_json_free(vpps_json *json);

/* A member of an object; NULL: there is none, or `object` is NULL or no object. */
const vpps_json_value *vpps_json_get(const vpps_json *json, const vpps_json_value *object, const char *key);

/* Walks the members: from `at` NULL the first, then the next; NULL: no more. */
const vpps_json_value *vpps_json_next(const vpps_json *json, const vpps_json_value *of, const vpps_json_value *at);

/* Well-formed UTF-8 (RFC 3629, section 4)? */
bool vpps_is_utf8(const char *text);

/* Writes a string of JSON with its quotation marks; text is UTF-8. */
void vpps_json_write_string(FILE *file, const char *text);
