/* safetensors_read.c - opens a safetensors file, and finds tensors and metadata in it. */
#include "safetensors_file.h"

#include "base/base.h"
#include "base/hash.h"
#include "file.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* Takes ownership of `data` and points every tensor into it. */
static void bind_data(vpps_safetensors *file, unsigned char *data) {
    file->data = data;
    file->data_bytes = 0;
    for (size_t i = 0; i < file->n_infos; i++) {
        file->infos[i].bytes = data;
        data += file->infos[i].n_bytes;
        file->data_bytes += file->infos[i].n_bytes;
    }
}

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
    VPPS_FREE(file->path, file->infos, file->by_name, file->metadata, file->data);
    if (file->fd >= 0) close(file->fd);
    free(file);
}

vpps_status vpps_safetensors_parse(vpps_safetensors **out, const char *name, const void *bytes, size_t n_bytes) {
    const unsigned char *all = bytes;
    uint64_t header_bytes = 0;
    vpps_safetensors *file;
    *out = NULL;
    VPPS_TRY(vpps_safetensors_header_length(name, all, n_bytes, &header_bytes));
    size_t data_bytes = n_bytes - 8 - (size_t)header_bytes;
    VPPS_TRY(create(&file, name));
    vpps_status status = vpps_safetensors_parse_header(file, (const char *)all + 8, (size_t)header_bytes, data_bytes);
    unsigned char *data = NULL;
    if (status == VPPS_OK && !(data = malloc(data_bytes + 1)))
        status = vpps_fail(VPPS_MEMORY, "%s%s: out of memory for %zu bytes", VPPS_PATH_ARGS(name), data_bytes);
    if (status != VPPS_OK) {
        vpps_safetensors_close(file);
        return status;
    }
    memcpy(data, all + 8 + header_bytes, data_bytes);
    bind_data(file, data);
    *out = file;
    return VPPS_OK;
}

/* Reads n_bytes of the file into new memory. Fails with FORMAT if the file has shrunk to fewer bytes. */
static vpps_status read_block(int fd, const char *path, uint64_t n_bytes, void *out) {
    size_t got;
    void *bytes = n_bytes < SIZE_MAX ? malloc((size_t)n_bytes + 1) : NULL;
    if (!bytes)
        return vpps_fail(VPPS_MEMORY, "%s%s: out of memory for %llu bytes", VPPS_PATH_ARGS(path),
                         (unsigned long long)n_bytes);
    vpps_status status = vpps_file_read(fd, path, bytes, (size_t)n_bytes, &got);
    if (status == VPPS_OK && got != n_bytes)
        status = VPPS_FAIL_SAFETENSORS(path, "expected %llu more bytes, found %zu", (unsigned long long)n_bytes, got);
    if (status != VPPS_OK) {
        free(bytes);
        return status;
    }
    memcpy(out, &bytes, sizeof bytes);
    return VPPS_OK;
}

/* Reads and checks the header of an open file; *data_bytes is the number of bytes after it. */
static vpps_status read_header(int fd, const char *path, vpps_safetensors *file, uint64_t *data_bytes) {
    struct stat info;
    unsigned char first[8] = {0};
    size_t got;
    uint64_t header_bytes = 0;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        return vpps_fail(VPPS_IO, "%s%s: cannot be read: not a regular file", VPPS_PATH_ARGS(path));
    VPPS_TRY(vpps_file_read(fd, path, first, sizeof first, &got));
    VPPS_TRY(vpps_safetensors_header_length(path, first, got < 8 ? got : (uint64_t)info.st_size, &header_bytes));
    *data_bytes = (uint64_t)info.st_size - 8 - header_bytes;
    file->data_at = 8 + header_bytes;
    VPPS_FREED char *header = NULL;
    VPPS_TRY(read_block(fd, path, header_bytes, &header));
    return vpps_safetensors_parse_header(file, header, (size_t)header_bytes, *data_bytes);
}

/* Where the bytes of a file's tensors are once it is open: nowhere (only the header was read), in memory, or on disk. */
typedef enum content_place { CONTENT_NONE, CONTENT_READ, CONTENT_ON_DISK } content_place;

static vpps_status open_file(vpps_safetensors **out, const char *path, content_place content) {
    int fd;
    vpps_safetensors *file;
    uint64_t data_bytes = 0;
    unsigned char *data;
    *out = NULL;
    VPPS_TRY(vpps_file_open(&fd, path));
    vpps_status status = create(&file, path);
    if (status == VPPS_OK) status = read_header(fd, path, file, &data_bytes);
    if (status == VPPS_OK && content == CONTENT_READ) {
        status = read_block(fd, path, data_bytes, &data);
        if (status == VPPS_OK) bind_data(file, data);
    }
    if (status == VPPS_OK && content == CONTENT_ON_DISK) {
        file->data_bytes = data_bytes;
        file->fd = fd;
    } else {
        close(fd);
    }
    if (status != VPPS_OK) {
        vpps_safetensors_close(file);
        return status;
    }
    *out = file;
    return VPPS_OK;
}

vpps_status vpps_safetensors_open(vpps_safetensors **out, const char *path) {
    return open_file(out, path, CONTENT_READ);
}

vpps_status vpps_safetensors_open_on_disk(vpps_safetensors **out, const char *path) {
    return open_file(out, path, CONTENT_ON_DISK);
}

/* Reads bytes [at, at + n) of the data after the header. */
static vpps_status read_at(const vpps_safetensors *file, uint64_t at, size_t n, void *out) {
    if (file->data) return memcpy(out, file->data + at, n), VPPS_OK;
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
    VPPS_TRY(open_file(&file, path, CONTENT_NONE));
    const char *value = vpps_safetensors_metadata(file, key);
    if (value) *out = strdup(value);
    vpps_safetensors_close(file);
    if (value && !*out) return vpps_fail(VPPS_MEMORY, "%s%s: out of memory", VPPS_PATH_ARGS(path));
    return VPPS_OK;
}
