/* safetensors_file.h - an open safetensors file's inside, shared by what reads it. */
#pragma once

#include "json.h"
#include "safetensors.h"

#include <endian.h>

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "tensors are copied between file and memory as they are");

struct vpps_safetensors {
    char *path;
    vpps_json header;                /* owns all strings */
    vpps_safetensors_info *infos;    /* in the order of their data */
    vpps_safetensors_info **by_name; /* in ascending order of names */
    size_t n_infos;
    vpps_metadata *metadata; /* in ascending order of keys */
    size_t n_metadata;
    unsigned char *data; /* the data_bytes after the header; NULL: in the file, from byte data_at on */
    uint64_t data_bytes, data_at;
    int fd; /* -1: none */
};

/* The header's length from the file's first 8 bytes, checked against how long the whole file is. Fails with FORMAT. */
vpps_status vpps_safetensors_header_length(const char *path, const unsigned char first[8], uint64_t file_bytes,
                                           uint64_t *header_bytes);

/* Fills all but path and data from the header, given how many bytes follow it: then the tensors tile exactly these,
 * in the order of infos; their `bytes` are still NULL. Fails with FORMAT, MEMORY. */
vpps_status vpps_safetensors_parse_header(vpps_safetensors *file, const char *header, size_t header_bytes,
                                          uint64_t data_bytes);

/* For printf: a checksum's text, and how that of another hash begins, which is not checked. */
#define VPPS_CHECKSUM_FORMAT "vpps-64 %016llx"
#define VPPS_CHECKSUM_OTHER "xxh3-64 "

/* A FORMAT failure that names the file. */
#define VPPS_FAIL_SAFETENSORS(path, format, ...)                                                                       \
    vpps_fail(VPPS_FORMAT, "%s%s: not a valid safetensors file: " format, VPPS_PATH_ARGS(path), __VA_ARGS__)

/* For printf's "%.*s": a name from a file, cut so that it leaves room in the message. */
#define VPPS_NAME_ARGS(name) (int)(strlen(name) > 100 ? 100 : strlen(name)), (name)
