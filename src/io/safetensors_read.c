/* safetensors_read.c - opens a safetensors file, and finds tensors and metadata in it. */
#include "safetensors_file.h"

#include "base/base.h"
#include "base/hash.h"
#include "file.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static vpps_status create(vpps_safetensors **out, const char *path) {
    vpps_safetensors *file = calloc(1, sizeof *file);
    *out = NULL;
    if (file) file->fd = -1;
    if (file) file->path = strdup(path);
    if (!file || !file->path) {
        free(file);
        return vpps_fail(VPPS_MEMORY, "%s%s: out of memory", VPPS_PATH_ARGS(path));
    }
    *out = file;
    return VPPS_OK;
}

void vpps_safetensors_close(vpps_safetensors *file) {
    if (!file) return;
    vpps_json_free(&file->header);
    VPPS_FREE(file->path, file->infos, file->by_name, file->metadata);
    if (file->fd >= 0) close(file->fd);
    free(file);
}

/* Reads and checks the header of the open file. */
static vpps_status read_header(vpps_safetensors *file) {
    const char *path = file->path;
    struct stat info;
    unsigned char first[8] = {0};
    size_t got;
    uint64_t n = 0;
    if (fstat(file->fd, &info) != 0 || !S_ISREG(info.st_mode))
        return vpps_fail(VPPS_IO, "%s%s: cannot be read: not a regular file", VPPS_PATH_ARGS(path));
    VPPS_TRY(vpps_file_read(file->fd, path, first, sizeof first, &got));
    VPPS_TRY(vpps_safetensors_header_length(path, first, got < 8 ? got : (uint64_t)info.st_size, &n));
    VPPS_FREED char *header = vpps_scratch((size_t)n + 1);
    if (!header)
        return vpps_fail(VPPS_MEMORY, "%s%s: out of memory for %llu bytes", VPPS_PATH_ARGS(path),
                         (unsigned long long)n);
    VPPS_TRY(vpps_file_read(file->fd, path, header, (size_t)n, &got));
    if (got != n) return VPPS_FAIL_SAFETENSORS(path, "expected %llu more bytes, found %zu", (unsigned long long)n, got);
    file->data_at = 8 + n;
    file->data_bytes = (uint64_t)info.st_size - file->data_at;
    return vpps_safetensors_parse_header(file, header, (size_t)n, file->data_bytes);
}

vpps_status vpps_safetensors_open(vpps_safetensors **out, const char *path) {
    vpps_safetensors *file;
    VPPS_TRY(create(&file, path));
    *out = NULL;
    vpps_status status = vpps_file_open(&file->fd, path);
    if (status == VPPS_OK) status = read_header(file);
    if (status == VPPS_OK)
        *out = file;
    else
        vpps_safetensors_close(file);
    return status;
}

/* Reads bytes [at, at + n) of the data after the header. */
static vpps_status read_at(const vpps_safetensors *file, uint64_t at, size_t n, void *out) {
    for (size_t done = 0; done < n;) {
        const ssize_t got = pread(file->fd, (char *)out + done, n - done, (off_t)(file->data_at + at + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return vpps_fail(VPPS_IO, "%s%s: cannot be read: %s", VPPS_PATH_ARGS(file->path), strerror(errno));
        if (!got)
            return VPPS_FAIL_SAFETENSORS(file->path, "expected %llu bytes of tensors, found %llu",
                                         (unsigned long long)file->data_bytes, (unsigned long long)(at + done));
        done += (size_t)got;
    }
    return VPPS_OK;
}

static vpps_status hash_data(const vpps_safetensors *file, unsigned long long *hash) {
    enum { PIECE = 1 << 20 };
    VPPS_FREED unsigned char *piece = vpps_scratch(PIECE);
    vpps_hash state;
    if (!piece) return vpps_fail(VPPS_MEMORY, "%s%s: out of memory", VPPS_PATH_ARGS(file->path));
    vpps_hash_begin(&state, 0);
    for (uint64_t at = 0; at < file->data_bytes; at += PIECE) {
        const size_t n = file->data_bytes - at < PIECE ? (size_t)(file->data_bytes - at) : PIECE;
        VPPS_TRY(read_at(file, at, n, piece));
        vpps_hash_add(&state, piece, n);
    }
    *hash = vpps_hash_digest(&state, 0);
    return VPPS_OK;
}

vpps_status vpps_safetensors_verify(const vpps_safetensors *file) {
    char text[VPPS_CHECKSUM_BYTES];
    unsigned long long hash = 0;
    const char *wanted = vpps_safetensors_metadata(file, VPPS_CHECKSUM_KEY);
    if (!wanted || strncmp(wanted, VPPS_CHECKSUM_OTHER, strlen(VPPS_CHECKSUM_OTHER)) == 0) return VPPS_OK;
    VPPS_TRY(hash_data(file, &hash));
    snprintf(text, sizeof text, VPPS_CHECKSUM_FORMAT, hash);
    if (strcmp(text, wanted) == 0) return VPPS_OK;
    return vpps_fail(VPPS_FORMAT,
                     "%s%s: its tensors have checksum %s, but its metadata says %.40s: it was damaged, or changed by "
                     "what left its metadata as they were",
                     VPPS_PATH_ARGS(file->path), text, wanted);
}

size_t vpps_safetensors_count(const vpps_safetensors *file) { return file->n_infos; }

const vpps_safetensors_info *vpps_safetensors_at(const vpps_safetensors *file, size_t i) {
    return i < file->n_infos ? &file->infos[i] : NULL;
}

const vpps_safetensors_info *vpps_safetensors_find(const vpps_safetensors *file, const char *name) {
    const vpps_safetensors_info wanted = {.name = name}, *key = &wanted;
    vpps_safetensors_info **found =
        bsearch(&key, file->by_name, file->n_infos, sizeof *file->by_name, vpps_safetensors_by_name);
    return found ? *found : NULL;
}

static void print_shape(char *text, size_t bytes, uint32_t n_dims, const uint64_t *dims) {
    size_t at = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < n_dims && at < bytes; i++) {
        int n = snprintf(text + at, bytes - at, "%s%llu", i ? ", " : "", (unsigned long long)dims[i]);
        at += n > 0 ? (size_t)n : 0;
    }
}

static vpps_status find_f32(const vpps_safetensors *file, const char *name, uint32_t n_dims, const uint64_t *dims,
                            const vpps_safetensors_info **out) {
    const vpps_safetensors_info *info = *out = vpps_safetensors_find(file, name);
    if (!info)
        return vpps_fail(VPPS_FORMAT, "%s%s: expected a tensor '%.*s', found none", VPPS_PATH_ARGS(file->path),
                         VPPS_NAME_ARGS(name));
    if (strcmp(info->dtype, "F32") != 0)
        return vpps_fail(VPPS_FORMAT, "%s%s: tensor '%.*s': expected dtype F32, found %s", VPPS_PATH_ARGS(file->path),
                         VPPS_NAME_ARGS(name), info->dtype);
    if (info->n_dims != n_dims || (n_dims && memcmp(info->dims, dims, n_dims * sizeof *dims) != 0)) {
        char expected[64], found[64];
        print_shape(expected, sizeof expected, n_dims, dims);
        print_shape(found, sizeof found, info->n_dims, info->dims);
        return vpps_fail(VPPS_FORMAT, "%s%s: tensor '%.*s': expected shape [%s], found [%s]",
                         VPPS_PATH_ARGS(file->path), VPPS_NAME_ARGS(name), expected, found);
    }
    return VPPS_OK;
}

vpps_status vpps_safetensors_read_part(const vpps_safetensors *file, const char *name, uint32_t n_dims,
                                       const uint64_t *dims, uint64_t first, size_t n, float *out) {
    const vpps_safetensors_info *info;
    VPPS_TRY(find_f32(file, name, n_dims, dims, &info));
    uint64_t at = first * sizeof *out;
    for (const vpps_safetensors_info *x = file->infos; x < info; x++) at += x->n_bytes;
    return n ? read_at(file, at, n * sizeof *out, out) : VPPS_OK;
}

vpps_status vpps_safetensors_read_f32(const vpps_safetensors *file, const char *name, uint32_t n_dims,
                                      const uint64_t *dims, float *out) {
    uint64_t n = 1;
    for (uint32_t i = 0; i < n_dims; i++) n *= dims[i];
    return vpps_safetensors_read_part(file, name, n_dims, dims, 0, (size_t)n, out);
}

const char *vpps_safetensors_metadata(const vpps_safetensors *file, const char *key) {
    for (size_t i = 0; i < file->n_metadata; i++)
        if (strcmp(file->metadata[i].key, key) == 0) return file->metadata[i].value;
    return NULL;
}

size_t vpps_safetensors_metadata_count(const vpps_safetensors *file) { return file->n_metadata; }

vpps_metadata vpps_safetensors_metadata_at(const vpps_safetensors *file, size_t i) {
    return i < file->n_metadata ? file->metadata[i] : (vpps_metadata){NULL, NULL};
}

vpps_status vpps_checkpoint_metadata(const char *path, const char *key, char **out) {
    VPPS_NEED(path, key, out);
    vpps_safetensors *file;
    *out = NULL;
    VPPS_TRY(vpps_safetensors_open(&file, path));
    const char *value = vpps_safetensors_metadata(file, key);
    if (value) *out = strdup(value);
    vpps_safetensors_close(file);
    if (value && !*out) return vpps_fail(VPPS_MEMORY, "%s%s: out of memory", VPPS_PATH_ARGS(path));
    return VPPS_OK;
}
