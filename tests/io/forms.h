/* forms.h - the forms that data come in, each with a small text and a real file of it, for tests of what all of them share. */
#pragma once

#include "io_tests.h"

typedef struct form {
    const char *name;
    const char *text; /* lines end with LF */
    const char *file; /* of the data sets; NULL: there is none */
    /* Read a file, or with path NULL a text named "t": sentences; or what else it is, and write all of it. One is NULL. */
    vpps_status (*sentences)(vpps_sentences *s, const char *path, const char *text, size_t n);
    vpps_status (*other)(const char *path, const char *text, size_t n, FILE *out);
} form;

extern const form forms[];
extern const int n_forms;

/* Reads, and writes all that was read. Fails as the reader does. */
vpps_status form_read(const form *f, const char *path, const char *text, size_t n, FILE *out);

/* What the form's reader makes of a file, or a text, in memory that the caller frees. The check fails when it does. */
char *form_shown(const form *f, const char *path, const char *text, size_t n);

/* All sentences as text, in a static buffer: words in square brackets with their tags, or with their heads and relations; then the label; a
 * line each. */
const char *sentences_shown(const vpps_sentences *s);
