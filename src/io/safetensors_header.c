/* safetensors_header.c - parses a header, and checks everything in it against the file's size. */
#include "safetensors_file.h"

#include "base/base.h"
#include "file.h"

/* The format's dtypes and their widths (safetensors/src/tensor.rs, enum Dtype and Dtype::bitsize). */
static const struct dtype {
    const char *name;
    uint32_t bits;
} dtypes[] = {{"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},     {"U8", 8},          {"I8", 8},
              {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16},
              {"U16", 16},    {"F16", 16},    {"BF16", 16},   {"I32", 32},        {"U32", 32},        {"F32", 32},
              {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64}};

static uint64_t load_u64(const unsigned char bytes[8]) {
    uint64_t value;
    memcpy(&value, bytes, 8);
    return value;
}

vpps_status vpps_safetensors_header_length(const char *path, const unsigned char first[8], uint64_t file_bytes,
                                           uint64_t *header_bytes) {
    if (file_bytes < 8)
        return VPPS_FAIL_SAFETENSORS(path, "expected at least 8 bytes, found %llu", (unsigned long long)file_bytes);
    *header_bytes = load_u64(first);
    if (*header_bytes > VPPS_SAFETENSORS_HEADER_BYTES) {
        bool text = true; /* a file that begins with 8 printable characters is text, not a header's length */
        for (int i = 0; i < 8; i++) text = text && first[i] >= ' ' && first[i] <= '~';
        if (text) return VPPS_FAIL_SAFETENSORS(path, "it begins with the text '%.8s'", (const char *)first);
        return VPPS_FAIL_SAFETENSORS(path, "expected a header of at most %u bytes, found a size of %llu",
                                     VPPS_SAFETENSORS_HEADER_BYTES, (unsigned long long)*header_bytes);
    }
    if (*header_bytes > file_bytes - 8)
        return VPPS_FAIL_SAFETENSORS(path, "expected a header of %llu bytes, found the end of the file after %llu",
                                     (unsigned long long)*header_bytes, (unsigned long long)(file_bytes - 8));
    return VPPS_OK;
}

static vpps_status read_shape(const char *path, const vpps_json *json, const vpps_json_value *shape,
                              vpps_safetensors_info *info) {
    if (!shape || shape->kind != VPPS_JSON_ARRAY || shape->n > VPPS_SAFETENSORS_DIMS)
        return VPPS_FAIL_SAFETENSORS(path, "tensor '%.*s': expected a shape of at most %d dimensions",
                                     VPPS_NAME_ARGS(info->name), VPPS_SAFETENSORS_DIMS);
    const vpps_json_value *dim = NULL;
    info->n_dims = shape->n;
    info->n_elems = 1;
    for (size_t i = 0; i < VPPS_SAFETENSORS_DIMS; i++) {
        if (i < shape->n) dim = vpps_json_next(json, shape, dim);
        if (i < shape->n && (dim->kind != VPPS_JSON_INTEGER || dim->integer < 0))
            return VPPS_FAIL_SAFETENSORS(path, "tensor '%.*s': expected dimension %zu to be an integer of at least 0",
                                         VPPS_NAME_ARGS(info->name), i);
        info->dims[i] = i < shape->n ? (uint64_t)dim->integer : 1;
        if (__builtin_mul_overflow(info->n_elems, info->dims[i], &info->n_elems))
            return VPPS_FAIL_SAFETENSORS(path, "tensor '%.*s': expected fewer than 2^64 elements",
                                         VPPS_NAME_ARGS(info->name));
    }
    return VPPS_OK;
}

static vpps_status count_bytes(const char *path, const char *dtype, const vpps_safetensors_info *info,
                               uint64_t *n_bytes) {
    for (size_t i = 0; i < VPPS_COUNT(dtypes); i++) {
        if (strcmp(dtypes[i].name, dtype) != 0) continue;
        uint64_t bits;
        if (__builtin_mul_overflow(info->n_elems, (uint64_t)dtypes[i].bits, &bits) || bits % 8)
            return VPPS_FAIL_SAFETENSORS(path, "tensor '%.*s': expected a whole number of bytes below 2^61",
                                         VPPS_NAME_ARGS(info->name));
        *n_bytes = bits / 8;
        return VPPS_OK;
    }
    return VPPS_FAIL_SAFETENSORS(path, "tensor '%.*s': expected a known dtype, found '%.*s'",
                                 VPPS_NAME_ARGS(info->name), VPPS_NAME_ARGS(dtype));
}

/* Reads one tensor's entry of the header; *begin is the offset of its data. */
static vpps_status read_entry(const char *path, const vpps_json *json, const vpps_json_value *entry,
                              uint64_t data_bytes, vpps_safetensors_info *info, uint64_t *begin) {
    const char *name = entry->key;
    const vpps_json_value *dtype = vpps_json_get(json, entry, "dtype");
    info->name = name;
    if (!dtype || dtype->kind != VPPS_JSON_STRING)
        return VPPS_FAIL_SAFETENSORS(path, "tensor '%.*s': expected a dtype string", VPPS_NAME_ARGS(name));
    info->dtype = dtype->string;
    VPPS_TRY(read_shape(path, json, vpps_json_get(json, entry, "shape"), info));
    VPPS_TRY(count_bytes(path, info->dtype, info, &info->n_bytes));
    const vpps_json_value *offsets = vpps_json_get(json, entry, "data_offsets");
    const bool two = offsets && offsets->kind == VPPS_JSON_ARRAY && offsets->n == 2;
    const vpps_json_value *first = two ? vpps_json_next(json, offsets, NULL) : NULL;
    const vpps_json_value *last = two ? vpps_json_next(json, offsets, first) : NULL;
    if (!two || first->kind != VPPS_JSON_INTEGER || last->kind != VPPS_JSON_INTEGER)
        return VPPS_FAIL_SAFETENSORS(path, "tensor '%.*s': expected data_offsets of two integers",
                                     VPPS_NAME_ARGS(name));
    const int64_t from = first->integer, to = last->integer;
    if (from < 0 || to < from || (uint64_t)to > data_bytes)
        return VPPS_FAIL_SAFETENSORS(path, "tensor '%.*s': expected data_offsets within %llu bytes, found [%lld, %lld]",
                                     VPPS_NAME_ARGS(name), (unsigned long long)data_bytes, (long long)from,
                                     (long long)to);
    if ((uint64_t)(to - from) != info->n_bytes)
        return VPPS_FAIL_SAFETENSORS(path, "tensor '%.*s': expected %llu bytes by its shape, found %lld",
                                     VPPS_NAME_ARGS(name), (unsigned long long)info->n_bytes, (long long)(to - from));
    *begin = (uint64_t)from;
    return VPPS_OK;
}

static vpps_status read_metadata(vpps_safetensors *file, const vpps_json_value *object) {
    if (!object) return VPPS_OK;
    if (object->kind != VPPS_JSON_OBJECT)
        return VPPS_FAIL_SAFETENSORS(file->path, "expected __metadata__ to be an %s", "object");
    file->metadata = calloc(object->n + 1u, sizeof *file->metadata);
    if (!file->metadata) return vpps_fail(VPPS_MEMORY, "%s%s: out of memory", VPPS_PATH_ARGS(file->path));
    for (const vpps_json_value *v = NULL; (v = vpps_json_next(&file->header, object, v));) {
        if (v->kind != VPPS_JSON_STRING)
            return VPPS_FAIL_SAFETENSORS(file->path, "expected metadata '%.*s' to be a string", VPPS_NAME_ARGS(v->key));
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
            return VPPS_FAIL_SAFETENSORS(path, "tensor '%.*s': expected its data to begin at %llu, found %llu",
                                         VPPS_NAME_ARGS(tensors[i].info.name), (unsigned long long)end,
                                         (unsigned long long)tensors[i].begin);
        end += tensors[i].info.n_bytes;
    }
    if (end == data_bytes) return VPPS_OK;
    return VPPS_FAIL_SAFETENSORS(path, "expected %llu bytes of data, found %llu", (unsigned long long)end,
                                 (unsigned long long)data_bytes);
}

int vpps_safetensors_by_name(const void *a, const void *b) {
    return strcmp((*(vpps_safetensors_info *const *)a)->name, (*(vpps_safetensors_info *const *)b)->name);
}

/* Moves the checked tensors to the file's arrays `infos` and `by_name`. */
static vpps_status keep_tensors(vpps_safetensors *file, const placed *tensors, size_t n) {
    file->infos = calloc(n + 1, sizeof *file->infos);
    file->by_name = calloc(n + 1, sizeof *file->by_name);
    if (!file->infos || !file->by_name)
        return vpps_fail(VPPS_MEMORY, "%s%s: out of memory for %zu tensors", VPPS_PATH_ARGS(file->path), n);
    for (size_t i = 0; i < n; i++) {
        file->infos[i] = tensors[i].info;
        file->by_name[i] = &file->infos[i];
    }
    file->n_infos = n;
    qsort(file->by_name, n, sizeof *file->by_name, vpps_safetensors_by_name);
    return VPPS_OK;
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
    return keep_tensors(file, tensors, n);
}

vpps_status vpps_safetensors_parse_header(vpps_safetensors *file, const char *header, size_t header_bytes,
                                          uint64_t data_bytes) {
    vpps_json_error error;
    if (header_bytes == 0 || header[0] != '{')
        return VPPS_FAIL_SAFETENSORS(file->path, "expected the header to begin with '%c'", '{');
    if (!vpps_json_parse(&file->header, header, header_bytes, &error)) {
        if (error.memory)
            return vpps_fail(VPPS_MEMORY, "%s%s: out of memory in the header", VPPS_PATH_ARGS(file->path));
        return VPPS_FAIL_SAFETENSORS(file->path, "expected a header in JSON; line %u, column %u: expected %s",
                                     error.line, error.column, error.expected);
    }
    VPPS_TRY(read_metadata(file, vpps_json_get(&file->header, &file->header.values[0], "__metadata__")));
    return read_tensors(file, data_bytes);
}
