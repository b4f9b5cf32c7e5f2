/* file.h - reads whole files. */
#pragma once

#include "descriptor.h"

/* Reads a file, decompressed (stream.h), into memory that the caller frees. Fails with IO, FORMAT, MEMORY. */
vpps_status vpps_file_read_all(const char *path, char **bytes, size_t *n_bytes);

/* Declares `text`, a file's bytes, which are freed at the end of the block, and their number `len`; returns the status of a failure. */
#define VPPS_TEXT_OF_FILE(path, text, len)                                                                             \
    VPPS_FREED char *text = NULL;                                                                                      \
    size_t len;                                                                                                        \
    VPPS_TRY(vpps_file_read_all(path, &text, &len))
