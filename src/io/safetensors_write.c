/* safetensors_write.c - writes a checkpoint, header then tensors, atomically. */
#include "safetensors.h"

#include "base/base.h"
#include "base/hash.h"
#include "descriptor.h"
#include "json.h"
#include "output.h"

static vpps_status no_memory(const char *path) {
    return vpps_fail(VPPS_MEMORY, "%s%s: out of memory for the header", VPPS_PATH_ARGS(path));
}

/* Checks that names are non-empty UTF-8 and unique; sorts `names`. */
static vpps_status check_names(const char *path, const char *what, const char **names, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (names[i] && *names[i] && vpps_is_utf8(names[i])) continue;
        return vpps_fail(VPPS_ARGUMENT, "%s%s: expected a %s of one or more UTF-8 characters", VPPS_PATH_ARGS(path),
                         what);
    }
    qsort(names, n, sizeof *names, vpps_by_text);
    for (size_t i = 1; i < n; i++) {
        if (strcmp(names[i - 1], names[i]) != 0) continue;
        return vpps_fail(VPPS_ARGUMENT, "%s%s: expected every %s once, found '%.100s' twice", VPPS_PATH_ARGS(path),
                         what, names[i]);
    }
    return VPPS_OK;
}

static vpps_status check_all_names(const char *path, const vpps_safetensors_tensor *tensors, size_t n,
                                   const vpps_metadata *metadata, size_t m) {
    VPPS_FREED const char **names = vpps_scratch((n + m + 1) * sizeof *names);
    if (!names) return no_memory(path);
    for (size_t i = 0; i < m; i++) names[i] = metadata[i].key;
    VPPS_TRY(check_names(path, "metadata key", names, m));
    for (size_t i = 0; i < n; i++) names[i] = tensors[i].name;
    names[n] = "__metadata__";
    return check_names(path, "tensor name", names, n + 1);
}

static vpps_status put_metadata(const char *path, FILE *header, const vpps_metadata *metadata, size_t m) {
    fputs("{\"__metadata__\":{", header);
    for (size_t i = 0; i < m; i++) {
        if (!metadata[i].value || !vpps_is_utf8(metadata[i].value))
            return vpps_fail(VPPS_ARGUMENT, "%s%s: expected metadata '%.100s' to be UTF-8", VPPS_PATH_ARGS(path),
                             metadata[i].key);
        if (i) putc(',', header);
        vpps_json_write_string(header, metadata[i].key);
        putc(':', header);
        vpps_json_write_string(header, metadata[i].value);
    }
    putc('}', header);
    return VPPS_OK;
}

static vpps_status count_bytes(const char *path, const vpps_safetensors_tensor *t, bool from_source,
                               uint64_t *n_bytes) {
    if (t->n_dims > VPPS_COUNT(t->dims))
        return vpps_fail(VPPS_ARGUMENT, "%s%s: tensor '%.100s': expected at most %zu dimensions, found %u",
                         VPPS_PATH_ARGS(path), t->name, VPPS_COUNT(t->dims), t->n_dims);
    bool overflow = false;
    *n_bytes = sizeof(float);
    for (uint32_t i = 0; i < t->n_dims; i++)
        overflow |= t->dims[i] > INT64_MAX || __builtin_mul_overflow(*n_bytes, t->dims[i], n_bytes);
    if (overflow || *n_bytes > INT64_MAX || (*n_bytes && !t->data && !from_source))
        return vpps_fail(VPPS_ARGUMENT, "%s%s: tensor '%.100s': expected data of fewer than 2^63 bytes",
                         VPPS_PATH_ARGS(path), t->name);
    return VPPS_OK;
}

static vpps_status put_tensor(const char *path, FILE *header, const vpps_safetensors_tensor *t, bool from_source,
                              uint64_t *end) {
    uint64_t n_bytes;
    const uint64_t begin = *end;
    VPPS_TRY(count_bytes(path, t, from_source, &n_bytes));
    *end += n_bytes;
    if (*end > INT64_MAX)
        return vpps_fail(VPPS_ARGUMENT, "%s%s: expected fewer than 2^63 bytes of tensors", VPPS_PATH_ARGS(path));
    putc(',', header);
    vpps_json_write_string(header, t->name);
    fputs(":{\"dtype\":\"F32\",\"shape\":[", header);
    for (uint32_t i = 0; i < t->n_dims; i++) fprintf(header, "%s%llu", i ? "," : "", (unsigned long long)t->dims[i]);
    fprintf(header, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)begin, (unsigned long long)*end);
    return VPPS_OK;
}

static vpps_status put_header(const char *path, FILE *header, const vpps_safetensors_tensor *tensors, size_t n,
                              const vpps_metadata *metadata, size_t m, bool from_source) {
    uint64_t end = 0;
    static const char length[8] = {0}; /* placeholder until the length is known */
    fwrite(length, 1, sizeof length, header);
    VPPS_TRY(put_metadata(path, header, metadata, m));
    for (size_t i = 0; i < n; i++) VPPS_TRY(put_tensor(path, header, &tensors[i], from_source, &end));
    putc('}', header);
    return VPPS_OK;
}

/* Makes the file's first part: length, JSON, and spaces up to a multiple of 8 bytes, so that the data are aligned when
 * the file is mapped. */
static vpps_status make_header(const char *path, const vpps_safetensors_tensor *tensors, size_t n,
                               const vpps_metadata *metadata, size_t m, bool from_source, char **out, size_t *n_bytes) {
    VPPS_TRY(check_all_names(path, tensors, n, metadata, m));
    char *bytes = NULL;
    FILE *header = open_memstream(&bytes, n_bytes);
    if (!header) return no_memory(path);
    vpps_status status = put_header(path, header, tensors, n, metadata, m, from_source);
    fflush(header);
    const size_t json_bytes = *n_bytes - 8;
    while (status == VPPS_OK && *n_bytes % 8 && !ferror(header)) {
        putc(' ', header);
        fflush(header);
    }
    if (status == VPPS_OK && ferror(header)) status = no_memory(path);
    if (fclose(header) != 0 && status == VPPS_OK) status = no_memory(path);
    const uint64_t length = *n_bytes - 8;
    if (status == VPPS_OK && length > VPPS_SAFETENSORS_HEADER_BYTES)
        status = vpps_fail(VPPS_ARGUMENT, "%s%s: expected names and metadata of less than %u bytes, found %zu",
                           VPPS_PATH_ARGS(path), VPPS_SAFETENSORS_HEADER_BYTES, json_bytes);
    if (status != VPPS_OK) {
        free(bytes);
        return status;
    }
    memcpy(bytes, &length, 8);
    *out = bytes;
    return VPPS_OK;
}

/* Returns how many elements to request at a time from a vpps_safetensors_source: at least one row. */
static size_t piece_elems(const vpps_safetensors_tensor *t) {
    size_t row = 1;
    for (uint32_t i = 1; i < t->n_dims; i++) row *= (size_t)t->dims[i];
    return row < (1 << 18) ? 1 << 18 : row;
}

static vpps_status give_bytes(const char *path, const vpps_safetensors_tensor *tensors, size_t i,
                              const vpps_safetensors_source *source, void *to,
                              vpps_status (*take)(void *to, const void *bytes, uint64_t n_bytes)) {
    const vpps_safetensors_tensor *t = &tensors[i];
    uint64_t n_bytes = 0;
    VPPS_TRY(count_bytes(path, t, source != NULL, &n_bytes));
    if (t->data || !n_bytes || !source) return n_bytes ? take(to, t->data, n_bytes) : VPPS_OK;
    const uint64_t elems = n_bytes / sizeof(float);
    const size_t room = piece_elems(t);
    VPPS_FREED float *piece = vpps_scratch(room * sizeof *piece);
    if (!piece) return no_memory(path);
    for (uint64_t at = 0; at < elems;) {
        size_t got = 0;
        VPPS_TRY(source->read(source->context, i, at, elems - at < room ? (size_t)(elems - at) : room, piece, &got));
        VPPS_TRY(take(to, piece, got * sizeof *piece));
        at += got;
    }
    return VPPS_OK;
}

static vpps_status add_to_hash(void *to, const void *bytes, uint64_t n_bytes) {
    vpps_hash_add(to, bytes, (size_t)n_bytes);
    return VPPS_OK;
}

static vpps_status add_to_output(void *to, const void *bytes, uint64_t n_bytes) {
    return vpps_output_write(to, bytes, n_bytes);
}

vpps_status vpps_safetensors_checksum(const vpps_safetensors_tensor *tensors, size_t n,
                                      const vpps_safetensors_source *source, char text[VPPS_CHECKSUM_BYTES]) {
    vpps_hash hash;
    vpps_hash_begin(&hash, 0);
    for (size_t i = 0; i < n; i++) VPPS_TRY(give_bytes("checksum", tensors, i, source, &hash, add_to_hash));
    snprintf(text, VPPS_CHECKSUM_BYTES, VPPS_CHECKSUM_FORMAT, (unsigned long long)vpps_hash_digest(&hash, 0));
    return VPPS_OK;
}

vpps_status vpps_safetensors_write(const char *path, const vpps_safetensors_tensor *tensors, size_t n,
                                   const vpps_metadata *metadata, size_t m, const vpps_safetensors_source *source) {
    VPPS_FREED char *header = NULL;
    size_t header_bytes = 0;
    VPPS_TRY(make_header(path, tensors, n, metadata, m, source != NULL, &header, &header_bytes));
    vpps_output o;
    VPPS_TRY(vpps_output_open(&o, path));
    vpps_status status = vpps_output_write(&o, header, header_bytes);
    for (size_t i = 0; i < n && status == VPPS_OK; i++)
        status = give_bytes(path, tensors, i, source, &o, add_to_output);
    if (status == VPPS_OK) return vpps_output_commit(&o);
    vpps_output_discard(&o);
    return status;
}
