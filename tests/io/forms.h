/* forms.h - the forms that data come in, each with a small text and a real file of it, for tests of what all of them
 * share. */
#pragma once

#include "io_tests.h"

typedef struct form {
    const char *name;
    const char *text; /* lines end with LF */
    const char *file; /* of the data sets; NULL: there is none */
    /* Reads a file, or with path NULL a text named "t"; writes all that was read. Fails as the reader does. */
    vpps_status (*read)(const char *path, const char *text, size_t n, FILE *out);
} form;

extern const form forms[];
extern const int n_forms;

/* What the form's reader makes of a file, or a text, in memory that the caller frees. The check fails when it does. */
char *form_shown(const form *f, const char *path, const char *text, size_t n);

/* A file's bytes, as they lie on the disk, in memory that the caller frees. */
char *file_bytes(const char *path, size_t *n);
