/* safetensors_write.c - writing a checkpoint so that a crash at any instant leaves the old one or the new one.
 *
 * The order is what makes it so (rename(2) is atomic; fsync(2), NOTES: a file's fsync does not flush its directory
 * entry): write a new file, fsync it, rename it over the path, fsync the folder. All steps go through the folder's
 * descriptor, so the folder itself may be moved meanwhile. */
#include "safetensors.h"

#include "base/base.h"
#include "file.h"

#include <endian.h>
#include <errno.h>
#include <jansson.h>
#include <stdatomic.h>

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "tensors are copied between memory and file as they are");

#define WRITE_BYTES ((size_t)1 << 30) /* Linux writes at most 0x7ffff000 bytes at once */
#define TEMPORARY_TRIES 100
#define BASE_BYTES 200 /* of the path's last part in the temporary name, which NAME_MAX limits to 255 */

/* Well-formed UTF-8 (RFC 3629, section 4), as jansson asks for: checked first, so that its refusal means memory. */
static bool is_utf8(const char *text) {
    const unsigned char *p = (const unsigned char *)text;
    while (*p) {
        unsigned char lead = *p++, low = 0x80, high = 0xbf;
        int more = lead < 0x80 ? 0 : lead >= 0xc2 && lead <= 0xdf ? 1 : (lead & 0xf0) == 0xe0 ? 2 : 3;
        if (more == 3 && (lead < 0xf0 || lead > 0xf4)) return false;
        if (lead == 0xe0) low = 0xa0;  /* overlong */
        if (lead == 0xed) high = 0x9f; /* surrogates */
        if (lead == 0xf0) low = 0x90;
        if (lead == 0xf4) high = 0x8f; /* beyond U+10FFFF */
        for (; more > 0; more--, p++, low = 0x80, high = 0xbf) {
            if (*p < low || *p > high) return false;
        }
    }
    return true;
}

static vpps_status no_memory(const char *path) {
    return vpps_fail(VPPS_MEMORY, "%s%s: out of memory for the header", VPPS_PATH_ARGS(path));
}

/* A name or key that can enter `object`. */
static vpps_status check_name(const char *path, const json_t *object, const char *what, const char *name) {
    if (!name || !*name || !is_utf8(name)) {
        return vpps_fail(VPPS_ARGUMENT, "%s%s: expected a %s of one or more UTF-8 characters", VPPS_PATH_ARGS(path),
                         what);
    }
    if (json_object_get(object, name)) {
        return vpps_fail(VPPS_ARGUMENT, "%s%s: expected every %s once, found '%.100s' twice", VPPS_PATH_ARGS(path),
                         what, name);
    }
    return VPPS_OK;
}

static vpps_status add_metadata(const char *path, json_t *header, const vpps_metadata *metadata, size_t m) {
    json_t *object = json_object();
    if (json_object_set_new(header, "__metadata__", object) != 0) return no_memory(path);
    for (size_t i = 0; i < m; i++) {
        VPPS_TRY(check_name(path, object, "metadata key", metadata[i].key));
        if (!metadata[i].value || !is_utf8(metadata[i].value)) {
            return vpps_fail(VPPS_ARGUMENT, "%s%s: expected metadata '%.100s' to be UTF-8", VPPS_PATH_ARGS(path),
                             metadata[i].key);
        }
        if (json_object_set_new(object, metadata[i].key, json_string(metadata[i].value)) != 0) return no_memory(path);
    }
    return VPPS_OK;
}

/* A tensor's size in bytes. */
static vpps_status count_bytes(const char *path, const vpps_safetensors_tensor *t, uint64_t *n_bytes) {
    if (t->n_dims > VPPS_COUNT(t->dims)) {
        return vpps_fail(VPPS_ARGUMENT, "%s%s: tensor '%.100s': expected at most %zu dimensions, found %u",
                         VPPS_PATH_ARGS(path), t->name, VPPS_COUNT(t->dims), t->n_dims);
    }
    bool overflow = false;
    *n_bytes = sizeof(float);
    for (uint32_t i = 0; i < t->n_dims; i++) {
        overflow |= t->dims[i] > INT64_MAX || __builtin_mul_overflow(*n_bytes, t->dims[i], n_bytes);
    }
    if (overflow || *n_bytes > INT64_MAX || (*n_bytes && !t->data)) {
        return vpps_fail(VPPS_ARGUMENT, "%s%s: tensor '%.100s': expected data of fewer than 2^63 bytes",
                         VPPS_PATH_ARGS(path), t->name);
    }
    return VPPS_OK;
}

static vpps_status add_tensor(const char *path, json_t *header, const vpps_safetensors_tensor *t, uint64_t *end) {
    uint64_t n_bytes, begin = *end;
    VPPS_TRY(check_name(path, header, "tensor name", t->name)); /* __metadata__ is there already */
    VPPS_TRY(count_bytes(path, t, &n_bytes));
    *end += n_bytes;
    if (*end > INT64_MAX) {
        return vpps_fail(VPPS_ARGUMENT, "%s%s: expected fewer than 2^63 bytes of tensors", VPPS_PATH_ARGS(path));
    }
    json_t *shape = json_array();
    for (uint32_t i = 0; shape && i < t->n_dims; i++) {
        if (json_array_append_new(shape, json_integer((json_int_t)t->dims[i])) != 0) {
            json_decref(shape);
            return no_memory(path);
        }
    }
    json_t *entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", "F32", "shape", shape, "data_offsets", (json_int_t)begin,
                              (json_int_t)*end);
    return json_object_set_new(header, t->name, entry) == 0 ? VPPS_OK : no_memory(path);
}

/* The file's first part: length, JSON, and spaces up to a multiple of 8 bytes, so that the data is aligned when the
 * file is mapped. */
static vpps_status encode_header(const char *path, const json_t *header, char **out, size_t *n_bytes) {
    size_t json_bytes = json_dumpb(header, NULL, 0, JSON_COMPACT);
    size_t padded_bytes = (json_bytes + 7) / 8 * 8;
    if (padded_bytes > VPPS_SAFETENSORS_HEADER_BYTES) {
        return vpps_fail(VPPS_ARGUMENT, "%s%s: expected names and metadata of less than %u bytes, found %zu",
                         VPPS_PATH_ARGS(path), VPPS_SAFETENSORS_HEADER_BYTES, json_bytes);
    }
    char *bytes = json_bytes ? malloc(8 + padded_bytes) : NULL;
    if (!bytes) return no_memory(path);
    uint64_t length = padded_bytes;
    memcpy(bytes, &length, 8);
    memset(bytes + 8, ' ', padded_bytes);
    if (json_dumpb(header, bytes + 8, json_bytes, JSON_COMPACT) != json_bytes) {
        free(bytes);
        return no_memory(path);
    }
    *out = bytes;
    *n_bytes = 8 + padded_bytes;
    return VPPS_OK;
}

static vpps_status make_header(const char *path, const vpps_safetensors_tensor *tensors, size_t n,
                               const vpps_metadata *metadata, size_t m, char **out, size_t *n_bytes) {
    uint64_t end = 0;
    json_t *header = json_object();
    if (!header) return no_memory(path);
    vpps_status status = add_metadata(path, header, metadata, m);
    for (size_t i = 0; i < n && status == VPPS_OK; i++) status = add_tensor(path, header, &tensors[i], &end);
    if (status == VPPS_OK) status = encode_header(path, header, out, n_bytes);
    json_decref(header);
    return status;
}

static vpps_status fail_io(const char *path, const char *step) {
    int error = errno;
    return vpps_fail(VPPS_IO, "%s%s: %s: %s", VPPS_PATH_ARGS(path), step, strerror(error));
}

static vpps_status write_all(int fd, const char *path, const void *bytes, uint64_t n_bytes) {
    const char *at = bytes;
    while (n_bytes > 0) {
        ssize_t n = write(fd, at, n_bytes < WRITE_BYTES ? (size_t)n_bytes : WRITE_BYTES);
        if (n > 0) {
            at += n;
            n_bytes -= (uint64_t)n;
        } else if (n == 0) {
            errno = ENOSPC; /* POSIX leaves open what a file that takes nothing means; retrying forever is worse */
            return fail_io(path, "cannot be written");
        } else if (errno != EINTR) {
            return fail_io(path, "cannot be written");
        }
    }
    return VPPS_OK;
}

/* The folder of a path, opened, and the path's last part. */
static vpps_status open_folder(const char *path, int *folder, const char **base) {
    const char *slash = strrchr(path, '/');
    *base = slash ? slash + 1 : path;
    char *name = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    if (!name) return no_memory(path);
    *folder = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = errno;
    free(name);
    errno = error;
    return *folder >= 0 ? VPPS_OK : fail_io(path, "its folder cannot be opened");
}

/* A new file next to the path; its name is in `name`. */
static vpps_status open_temporary(int folder, const char *path, const char *base, char *name, size_t name_bytes,
                                  int *fd) {
    static atomic_uint counter;
    for (int i = 0; i < TEMPORARY_TRIES; i++) {
        snprintf(name, name_bytes, "%.*s.tmp-%ld-%u", BASE_BYTES, base, (long)getpid(), atomic_fetch_add(&counter, 1));
        *fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (*fd >= 0) return VPPS_OK;
        if (errno != EEXIST && errno != EINTR) break; /* EEXIST: left by a killed process that had this number */
    }
    return fail_io(path, "no temporary file can be made beside it");
}

/* Writes and flushes the content, and closes fd in any case. */
static vpps_status fill_file(int fd, const char *path, const char *header, size_t header_bytes,
                             const vpps_safetensors_tensor *tensors, size_t n) {
    vpps_status status = write_all(fd, path, header, header_bytes);
    for (size_t i = 0; i < n && status == VPPS_OK; i++) {
        uint64_t n_bytes;
        status = count_bytes(path, &tensors[i], &n_bytes);
        if (status == VPPS_OK) status = write_all(fd, path, tensors[i].data, n_bytes);
    }
    if (status == VPPS_OK && fsync(fd) != 0) status = fail_io(path, "cannot be flushed to disk");
    if (close(fd) != 0 && status == VPPS_OK && errno != EINTR) status = fail_io(path, "cannot be closed");
    return status;
}

/* The file at `path` becomes header and tensors, or stays what it is. */
static vpps_status replace_file(const char *path, const char *header, size_t header_bytes,
                                const vpps_safetensors_tensor *tensors, size_t n) {
    int folder = -1, fd = -1;
    const char *base;
    char name[BASE_BYTES + 48];
    VPPS_TRY(open_folder(path, &folder, &base));
    vpps_status status = open_temporary(folder, path, base, name, sizeof name, &fd);
    if (status == VPPS_OK) {
        status = fill_file(fd, path, header, header_bytes, tensors, n);
        if (status == VPPS_OK && renameat(folder, name, folder, base) != 0) {
            status = fail_io(path, "cannot be replaced");
        }
        if (status != VPPS_OK) {
            unlinkat(folder, name, 0);
        } else if (fsync(folder) != 0 && errno != EINVAL) { /* EINVAL: this file system has no such flush */
            status = fail_io(path, "is written, but its folder cannot be flushed to disk");
        }
    }
    close(folder);
    return status;
}

vpps_status vpps_safetensors_write(const char *path, const vpps_safetensors_tensor *tensors, size_t n,
                                   const vpps_metadata *metadata, size_t m) {
    char *header = NULL;
    size_t header_bytes = 0;
    VPPS_TRY(make_header(path, tensors, n, metadata, m, &header, &header_bytes));
    vpps_status status = replace_file(path, header, header_bytes, tensors, n);
    free(header);
    return status;
}
