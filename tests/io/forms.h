/* forms.h - the formats of data, each with a small text and a real file, for tests of what all formats share. */
#pragma once

#include "io_tests.h"

typedef struct form {
    const char *name;
    const char *text; /* a text whose lines end with LF */
    const char *file; /* file of the data sets; NULL: none */
    /* Functions that read a file or, with path NULL, a text named "t": into sentences, or into other data, which are written. One is NULL. */
    vpps_status (*sentences)(vpps_sentences *s, const char *path, const char *text, size_t n);
    vpps_status (*other)(const char *path, const char *text, size_t n, FILE *out);
} form;

extern const form forms[];
extern const int n_forms;

/* Reads, and writes everything that was read. Fails as the reader does. */
vpps_status form_read(const form *f, const char *path, const char *text, size_t n, FILE *out);

/* Returns what the format's reader makes of a file or a text, as text that the caller frees. The check fails if reading fails. */
char *form_shown(const form *f, const char *path, const char *text, size_t n);

/* Returns all sentences as text in a static buffer, one line each: words in square brackets with their tags, or with heads and relations; then the
 * label. */
const char *sentences_shown(const vpps_sentences *s);
