/* file.h - reads whole files. */
#pragma once

#include "descriptor.h"

/* Reads a file, decompressed (stream.h), into memory that the caller frees. Fails with IO, FORMAT, MEMORY. */
vpps_status vpps_file_read_all(const char *path, char **bytes, size_t *n_bytes);
