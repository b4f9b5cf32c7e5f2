/* file.h - reads whole files. */
#pragma once

#include "descriptor.h"

/* Reads a whole file into memory that the caller frees. Compressed files are decompressed (stream.h). Fails with IO,
 * FORMAT, MEMORY. */
vpps_status vpps_file_read_all(const char *path, char **bytes, size_t *n_bytes);
