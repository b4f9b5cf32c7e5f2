/* safetensors_read.c - opens a safetensors file, checks everything in its header against the file's size, and finds tensors and metadata
 * in it. */
#include "safetensors.h"

#include "base/base.h"
#include "base/hash.h"
#include "descriptor.h"
#include "json.h"

#include <errno.h>
#include <sys/stat.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are copied between file and memory as they are");

struct vpps_safetensors {
    char *path;
    vpps_json header;             /* the parsed header, which owns the strings of infos and metadata */
    vpps_safetensors_info *infos; /* the tensors, in the order of their data */
    size_t n_infos;
    vpps_metadata *metadata; /* metadata pairs, in ascending order of their keys */
    size_t n_metadata;
    uint64_t data_bytes, data_at; /* size of the data after the header, and where they begin in the file */
    int fd;
};

/* Fails with FORMAT and a message that names the file. */
#define FAIL_FILE(path, format, ...)                                                                                   \
    vpps_fail(VPPS_FORMAT, "%s%s: not a valid safetensors file: " format, VPPS_PATH_ARGS(path), __VA_ARGS__)

/* Two arguments for printf's "%.*s": a name from a file, cut to 100 bytes to leave room in the message. */
#define NAME_ARGS(name) (int)(strlen(name) > 100 ? 100 : strlen(name)), (name)

/* ---------------------------------------------------------------- the header */

/* The format's dtypes and their widths (safetensors/src/tensor.rs, enum Dtype and Dtype::bitsize). */
static const struct dtype {
    const char *name;
    uint32_t bits;
} dtypes[] = {{"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
              {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
              {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
              {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}};

/* Reads the header's length from the file's first 8 bytes, and checks it against the file's length. Fails with FORMAT. */
static vpps_status read_length(const char *path, const unsigned char first[8], uint64_t file_bytes,
                               uint64_t *header_bytes) {
    if (file_bytes < 8) return FAIL_FILE(path, "expected at least 8 bytes, found %llu", (unsigned long long)file_bytes);
    memcpy(header_bytes, first, 8);
    if (*header_bytes > VPPS_SAFETENSORS_HEADER_BYTES) {
        bool text = true; /* a file that begins with 8 printable characters is text, not a header's length */
        for (int i = 0; i < 8; i++) text = text && first[i] >= ' ' && first[i] <= '~';
        if (text) return FAIL_FILE(path, "it begins with the text '%.8s'", (const char *)first);
        return FAIL_FILE(path, "expected a header of at most %u bytes, found a size of %llu",
                         VPPS_SAFETENSORS_HEADER_BYTES, (unsigned long long)*header_bytes);
    }
    if (*header_bytes > file_bytes - 8)
        return FAIL_FILE(path, "expected a header of %llu bytes, found the end of the file after %llu",
                         (unsigned long long)*header_bytes, (unsigned long long)(file_bytes - 8));
    return VPPS_OK;
}

static vpps_status read_shape(const char *path, const vpps_json *json, const vpps_json_value *shape,
                              vpps_safetensors_info *info) {
    if (!shape || shape->kind != VPPS_JSON_ARRAY || shape->n > VPPS_SAFETENSORS_DIMS)
        return FAIL_FILE(path, "tensor '%.*s': expected a shape of at most %d dimensions", NAME_ARGS(info->name),
                         VPPS_SAFETENSORS_DIMS);
    const vpps_json_value *dim = NULL;
    info->n_dims = shape->n;
    info->n_elems = 1;
    for (size_t i = 0; i < VPPS_SAFETENSORS_DIMS; i++) {
        if (i < shape->n) dim = vpps_json_next(json, shape, dim);
        if (i < shape->n && (dim->kind != VPPS_JSON_INTEGER || dim->integer < 0))
            return FAIL_FILE(path, "tensor '%.*s': expected dimension %zu to be an integer of at least 0",
                             NAME_ARGS(info->name), i);
        info->dims[i] = i < shape->n ? (uint64_t)dim->integer : 1;
        if (__builtin_mul_overflow(info->n_elems, info->dims[i], &info->n_elems))
            return FAIL_FILE(path, "tensor '%.*s': expected fewer than 2^64 elements", NAME_ARGS(info->name));
    }
    return VPPS_OK;
}

static vpps_status count_bytes(const char *path, const char *dtype, const vpps_safetensors_info *info,
                               uint64_t *n_bytes) {
    for (size_t i = 0; i < VPPS_COUNT(dtypes); i++) {
        if (strcmp(dtypes[i].name, dtype) != 0) continue;
        uint64_t bits;
        if (__builtin_mul_overflow(info->n_elems, (uint64_t)dtypes[i].bits, &bits) || bits % 8)
            return FAIL_FILE(path, "tensor '%.*s': expected a whole number of bytes below 2^61", NAME_ARGS(info->name));
        *n_bytes = bits / 8;
        return VPPS_OK;
    }
    return FAIL_FILE(path, "tensor '%.*s': expected a known dtype, found '%.*s'", NAME_ARGS(info->name),
                     NAME_ARGS(dtype));
}

/* Reads one tensor's entry of the header; *begin is the offset of its data. */
static vpps_status read_entry(const char *path, const vpps_json *json, const vpps_json_value *entry,
                              uint64_t data_bytes, vpps_safetensors_info *info, uint64_t *begin) {
    const char *name = entry->key;
    const vpps_json_value *dtype = vpps_json_get(json, entry, "dtype");
    info->name = name;
    if (!dtype || dtype->kind != VPPS_JSON_STRING)
        return FAIL_FILE(path, "tensor '%.*s': expected a dtype string", NAME_ARGS(name));
    info->dtype = dtype->string;
    VPPS_TRY(read_shape(path, json, vpps_json_get(json, entry, "shape"), info));
    VPPS_TRY(count_bytes(path, info->dtype, info, &info->n_bytes));
    const vpps_json_value *offsets = vpps_json_get(json, entry, "data_offsets");
    const bool two = offsets && offsets->kind == VPPS_JSON_ARRAY && offsets->n == 2;
    const vpps_json_value *first = two ? vpps_json_next(json, offsets, NULL) : NULL;
    const vpps_json_value *last = two ? vpps_json_next(json, offsets, first) : NULL;
    if (!two || first->kind != VPPS_JSON_INTEGER || last->kind != VPPS_JSON_INTEGER)
        return FAIL_FILE(path, "tensor '%.*s': expected data_offsets of two integers", NAME_ARGS(name));
    const int64_t from = first->integer, to = last->integer;
    if (from < 0 || to < from || (uint64_t)to > data_bytes)
        return FAIL_FILE(path, "tensor '%.*s': expected data_offsets within %llu bytes, found [%lld, %lld]",
                         NAME_ARGS(name), (unsigned long long)data_bytes, (long long)from, (long long)to);
    if ((uint64_t)(to - from) != info->n_bytes)
        return FAIL_FILE(path, "tensor '%.*s': expected %llu bytes by its shape, found %lld", NAME_ARGS(name),
                         (unsigned long long)info->n_bytes, (long long)(to - from));
    *begin = (uint64_t)from;
    return VPPS_OK;
}

static vpps_status read_metadata(vpps_safetensors *file, const vpps_json_value *object) {
    if (!object) return VPPS_OK;
    if (object->kind != VPPS_JSON_OBJECT) return FAIL_FILE(file->path, "expected __metadata__ to be an %s", "object");
    file->metadata = calloc(object->n + 1u, sizeof *file->metadata);
    if (!file->metadata) return vpps_fail(VPPS_MEMORY, "%s%s: out of memory", VPPS_PATH_ARGS(file->path));
    for (const vpps_json_value *v = NULL; (v = vpps_json_next(&file->header, object, v));) {
        if (v->kind != VPPS_JSON_STRING)
            return FAIL_FILE(file->path, "expected metadata '%.*s' to be a string", NAME_ARGS(v->key));
        file->metadata[file->n_metadata++] = (vpps_metadata){v->key, v->string};
    }
    qsort(file->metadata, file->n_metadata, sizeof *file->metadata, vpps_by_text); /* a pair begins with its key */
    return VPPS_OK;
}

/* A tensor with the offset of its data. After sorting by offset, neighbours show whether the ranges tile the data. */
typedef struct placed {
    uint64_t begin;
    vpps_safetensors_info info;
} placed;

static int compare_placed(const void *a, const void *b) {
    const placed *p = a, *q = b;
    if (p->begin != q->begin) return p->begin < q->begin ? -1 : 1;
    if (p->info.n_bytes != q->info.n_bytes) return p->info.n_bytes < q->info.n_bytes ? -1 : 1;
    return strcmp(p->info.name, q->info.name);
}

/* Sorts the tensors by offset, and checks that they cover the data without hole or overlap. */
static vpps_status check_tiling(const char *path, placed *tensors, size_t n, uint64_t data_bytes) {
    uint64_t end = 0;
    qsort(tensors, n, sizeof *tensors, compare_placed);
    for (size_t i = 0; i < n; i++) {
        if (tensors[i].begin != end)
            return FAIL_FILE(path, "tensor '%.*s': expected its data to begin at %llu, found %llu",
                             NAME_ARGS(tensors[i].info.name), (unsigned long long)end,
                             (unsigned long long)tensors[i].begin);
        end += tensors[i].info.n_bytes;
    }
    if (end == data_bytes) return VPPS_OK;
    return FAIL_FILE(path, "expected %llu bytes of data, found %llu", (unsigned long long)end,
                     (unsigned long long)data_bytes);
}

static vpps_status read_tensors(vpps_safetensors *file, uint64_t data_bytes) {
    const vpps_json_value *root = &file->header.values[0];
    size_t n = 0;
    VPPS_FREED placed *tensors = vpps_scratch((root->n + 1u) * sizeof *tensors);
    if (!tensors) return vpps_fail(VPPS_MEMORY, "%s%s: out of memory", VPPS_PATH_ARGS(file->path));
    for (const vpps_json_value *v = NULL; (v = vpps_json_next(&file->header, root, v));) {
        if (strcmp(v->key, "__metadata__") == 0) continue;
        VPPS_TRY(read_entry(file->path, &file->header, v, data_bytes, &tensors[n].info, &tensors[n].begin));
        n++;
    }
    VPPS_TRY(check_tiling(file->path, tensors, n, data_bytes));
    file->infos = calloc(n + 1, sizeof *file->infos);
    if (!file->infos) return vpps_fail(VPPS_MEMORY, "%s%s: out of memory", VPPS_PATH_ARGS(file->path));
    for (; file->n_infos < n; file->n_infos++) file->infos[file->n_infos] = tensors[file->n_infos].info;
    return VPPS_OK;
}

/* Parses the header and sets the members from `header` to n_metadata. After OK the tensors in `infos` fill the data_bytes bytes after the
 * header, one after the other. Fails with FORMAT, MEMORY. */
static vpps_status parse_header(vpps_safetensors *file, const char *header, size_t header_bytes, uint64_t data_bytes) {
    vpps_json_error error;
    if (header_bytes == 0 || header[0] != '{')
        return FAIL_FILE(file->path, "expected the header to begin with '%c'", '{');
    if (!vpps_json_parse(&file->header, header, header_bytes, &error)) {
        if (error.memory)
            return vpps_fail(VPPS_MEMORY, "%s%s: out of memory in the header", VPPS_PATH_ARGS(file->path));
        return FAIL_FILE(file->path, "expected a header in JSON; line %u, column %u: expected %s", error.line,
                         error.column, error.expected);
    }
    VPPS_TRY(read_metadata(file, vpps_json_get(&file->header, &file->header.values[0], "__metadata__")));
    return read_tensors(file, data_bytes);
}

/* ---------------------------------------------------------------- files */

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
    VPPS_FREE(file->path, file->infos, file->metadata);
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
    VPPS_TRY(read_length(path, first, got < 8 ? got : (uint64_t)info.st_size, &n));
    VPPS_FREED char *header = vpps_scratch((size_t)n + 1);
    if (!header)
        return vpps_fail(VPPS_MEMORY, "%s%s: out of memory for %llu bytes", VPPS_PATH_ARGS(path),
                         (unsigned long long)n);
    VPPS_TRY(vpps_file_read(file->fd, path, header, (size_t)n, &got));
    if (got != n) return FAIL_FILE(path, "expected %llu more bytes, found %zu", (unsigned long long)n, got);
    file->data_at = 8 + n;
    file->data_bytes = (uint64_t)info.st_size - file->data_at;
    return parse_header(file, header, (size_t)n, file->data_bytes);
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
            return FAIL_FILE(file->path, "expected %llu bytes of tensors, found %llu",
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
    static const char unchecked[] = "xxh3-64 ";
    char text[VPPS_CHECKSUM_BYTES];
    unsigned long long hash = 0;
    const char *wanted = vpps_safetensors_metadata(file, VPPS_CHECKSUM_KEY);
    if (!wanted || strncmp(wanted, unchecked, sizeof unchecked - 1) == 0) return VPPS_OK;
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
    for (size_t i = 0; i < file->n_infos; i++)
        if (strcmp(file->infos[i].name, name) == 0) return &file->infos[i];
    return NULL;
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
                         NAME_ARGS(name));
    if (strcmp(info->dtype, "F32") != 0)
        return vpps_fail(VPPS_FORMAT, "%s%s: tensor '%.*s': expected dtype F32, found %s", VPPS_PATH_ARGS(file->path),
                         NAME_ARGS(name), info->dtype);
    if (info->n_dims != n_dims || (n_dims && memcmp(info->dims, dims, n_dims * sizeof *dims) != 0)) {
        char expected[64], found[64];
        print_shape(expected, sizeof expected, n_dims, dims);
        print_shape(found, sizeof found, info->n_dims, info->dims);
        return vpps_fail(VPPS_FORMAT, "%s%s: tensor '%.*s': expected shape [%s], found [%s]",
                         VPPS_PATH_ARGS(file->path), NAME_ARGS(name), expected, found);
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
