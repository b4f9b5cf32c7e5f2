/* safetensors_file.h - the struct of an open safetensors file, for the source files that read such files. */
#pragma once

#include "json.h"
#include "safetensors.h"

#include <endian.h>

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "tensors are copied between file and memory as they are");

struct vpps_safetensors {
    char *path;
    vpps_json header;                /* the parsed header, which owns the strings of infos and metadata */
    vpps_safetensors_info *infos;    /* the tensors, in the order of their data */
    vpps_safetensors_info **by_name; /* the tensors, in ascending order of their names */
    size_t n_infos;
    vpps_metadata *metadata; /* metadata pairs, in ascending order of their keys */
    size_t n_metadata;
    uint64_t data_bytes, data_at; /* size of the data after the header, and where they begin in the file */
    int fd;
};

/* Reads the header's length from the file's first 8 bytes, and checks it against the file's length. Fails with FORMAT. */
vpps_status vpps_safetensors_header_length(const char *path, const unsigned char first[8], uint64_t file_bytes,
                                           uint64_t *header_bytes);

/* Parses the header and sets the members from `header` to n_metadata; data_bytes is the number of bytes after the header. After OK the
 * tensors in `infos` fill these bytes one after the other. Fails with FORMAT, MEMORY. */
vpps_status vpps_safetensors_parse_header(vpps_safetensors *file, const char *header, size_t header_bytes,
                                          uint64_t data_bytes);

/* Compares two pointers to tensors by the tensors' names, for qsort and bsearch. */
int vpps_safetensors_by_name(const void *a, const void *b);

/* printf's format of a checksum as text. Checksums that begin with VPPS_CHECKSUM_OTHER are not checked. */
#define VPPS_CHECKSUM_FORMAT "vpps-64 %016llx"
#define VPPS_CHECKSUM_OTHER "xxh3-64 "

/* Fails with FORMAT and a message that names the file. */
#define VPPS_FAIL_SAFETENSORS(path, format, ...)                                                                       \
    vpps_fail(VPPS_FORMAT, "%s%s: not a valid safetensors file: " format, VPPS_PATH_ARGS(path), __VA_ARGS__)

/* Two arguments for printf's "%.*s": a name from a file, cut to 100 bytes to leave room in the message. */
#define VPPS_NAME_ARGS(name) (int)(strlen(name) > 100 ? 100 : strlen(name)), (name)
