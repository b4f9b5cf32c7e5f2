/* safetensors_write.c - a checkpoint's bytes: the header, then the tensors, into an output that is whole or not there. */
#include "safetensors_file.h"

#include "base/base.h"
#include "descriptor.h"
#include "output.h"

#include <xxhash.h>

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
static vpps_status count_bytes(const char *path, const vpps_safetensors_tensor *t, bool from_source,
                               uint64_t *n_bytes) {
    if (t->n_dims > VPPS_COUNT(t->dims)) {
        return vpps_fail(VPPS_ARGUMENT, "%s%s: tensor '%.100s': expected at most %zu dimensions, found %u",
                         VPPS_PATH_ARGS(path), t->name, VPPS_COUNT(t->dims), t->n_dims);
    }
    bool overflow = false;
    *n_bytes = sizeof(float);
    for (uint32_t i = 0; i < t->n_dims; i++) {
        overflow |= t->dims[i] > INT64_MAX || __builtin_mul_overflow(*n_bytes, t->dims[i], n_bytes);
    }
    if (overflow || *n_bytes > INT64_MAX || (*n_bytes && !t->data && !from_source)) {
        return vpps_fail(VPPS_ARGUMENT, "%s%s: tensor '%.100s': expected data of fewer than 2^63 bytes",
                         VPPS_PATH_ARGS(path), t->name);
    }
    return VPPS_OK;
}

static vpps_status add_tensor(const char *path, json_t *header, const vpps_safetensors_tensor *t, bool from_source,
                              uint64_t *end) {
    uint64_t n_bytes, begin = *end;
    VPPS_TRY(check_name(path, header, "tensor name", t->name)); /* __metadata__ is there already */
    VPPS_TRY(count_bytes(path, t, from_source, &n_bytes));
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
                               const vpps_metadata *metadata, size_t m, bool from_source, char **out, size_t *n_bytes) {
    uint64_t end = 0;
    json_t *header = json_object();
    if (!header) return no_memory(path);
    vpps_status status = add_metadata(path, header, metadata, m);
    for (size_t i = 0; i < n && status == VPPS_OK; i++)
        status = add_tensor(path, header, &tensors[i], from_source, &end);
    if (status == VPPS_OK) status = encode_header(path, header, out, n_bytes);
    json_decref(header);
    return status;
}

/* Room for pieces of a tensor that comes from a source. */
static size_t piece_elems(const vpps_safetensors_tensor *t) {
    size_t row = 1;
    for (uint32_t i = 1; i < t->n_dims; i++) row *= (size_t)t->dims[i];
    return row < (1 << 18) ? 1 << 18 : row;
}

/* Gives tensor i's bytes to `take`, in their order. */
static vpps_status give_bytes(const char *path, const vpps_safetensors_tensor *tensors, size_t i,
                              const vpps_safetensors_source *source, void *to,
                              vpps_status (*take)(void *to, const void *bytes, uint64_t n_bytes)) {
    const vpps_safetensors_tensor *t = &tensors[i];
    uint64_t n_bytes = 0;
    VPPS_TRY(count_bytes(path, t, source != NULL, &n_bytes));
    if (t->data || !n_bytes || !source) return n_bytes ? take(to, t->data, n_bytes) : VPPS_OK;
    const uint64_t elems = n_bytes / sizeof(float);
    const size_t room = piece_elems(t);
    float *piece = malloc(room * sizeof *piece);
    vpps_status status = piece ? VPPS_OK : no_memory(path);
    for (uint64_t at = 0; at < elems && status == VPPS_OK;) {
        size_t got = 0;
        status = source->read(source->context, i, at, elems - at < room ? (size_t)(elems - at) : room, piece, &got);
        if (status == VPPS_OK) status = take(to, piece, got * sizeof *piece);
        at += got;
    }
    free(piece);
    return status;
}

static vpps_status add_to_hash(void *to, const void *bytes, uint64_t n_bytes) {
    XXH3_64bits_update(to, bytes, (size_t)n_bytes);
    return VPPS_OK;
}

static vpps_status add_to_output(void *to, const void *bytes, uint64_t n_bytes) {
    return vpps_output_write(to, bytes, n_bytes);
}

vpps_status vpps_safetensors_checksum_from(const vpps_safetensors_tensor *tensors, size_t n,
                                           const vpps_safetensors_source *source, char text[VPPS_CHECKSUM_BYTES]) {
    XXH3_state_t *state = XXH3_createState();
    vpps_status status = state ? VPPS_OK : vpps_fail(VPPS_MEMORY, "no memory for a checksum");
    if (state) XXH3_64bits_reset(state);
    for (size_t i = 0; i < n && status == VPPS_OK; i++)
        status = give_bytes("checksum", tensors, i, source, state, add_to_hash);
    if (status == VPPS_OK) {
        snprintf(text, VPPS_CHECKSUM_BYTES, VPPS_CHECKSUM_FORMAT, (unsigned long long)XXH3_64bits_digest(state));
    }
    XXH3_freeState(state);
    return status;
}

vpps_status vpps_safetensors_checksum(const vpps_safetensors_tensor *tensors, size_t n,
                                      char text[VPPS_CHECKSUM_BYTES]) {
    return vpps_safetensors_checksum_from(tensors, n, NULL, text);
}

vpps_status vpps_safetensors_write(const char *path, const vpps_safetensors_tensor *tensors, size_t n,
                                   const vpps_metadata *metadata, size_t m) {
    return vpps_safetensors_write_from(path, tensors, n, metadata, m, NULL);
}

vpps_status vpps_safetensors_write_from(const char *path, const vpps_safetensors_tensor *tensors, size_t n,
                                        const vpps_metadata *metadata, size_t m,
                                        const vpps_safetensors_source *source) {
    char *header = NULL;
    size_t header_bytes = 0;
    VPPS_TRY(make_header(path, tensors, n, metadata, m, source != NULL, &header, &header_bytes));
    vpps_output o;
    vpps_status status = vpps_output_open(&o, path);
    if (status == VPPS_OK) {
        status = vpps_output_write(&o, header, header_bytes);
        for (size_t i = 0; i < n && status == VPPS_OK; i++)
            status = give_bytes(path, tensors, i, source, &o, add_to_output);
        if (status == VPPS_OK) {
            status = vpps_output_commit(&o);
        } else {
            vpps_output_discard(&o);
        }
    }
    free(header);
    return status;
}
