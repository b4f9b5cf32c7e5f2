/* safetensors.h - checkpoints on disk in the safetensors format: written atomically, checked completely when read.
 *
 * Format (github.com/huggingface/safetensors, README section "Format"): 8 bytes, the header's length N as an
 * unsigned little-endian integer; N bytes of JSON that begin with '{' and may be padded with spaces; the tensors'
 * bytes, row-major and little-endian. The JSON object maps a tensor's name to {"dtype", "shape", "data_offsets":
 * [begin, end]}: offsets from the first byte after the header, `end` exclusive; "__metadata__" maps strings to
 * strings. Names are unique, and the ranges tile the data: no hole, no overlap, nothing after them. */
#pragma once

#include "vpps.h"

#define VPPS_SAFETENSORS_DIMS 8                            /* largest number of dimensions of a tensor that is read */
#define VPPS_SAFETENSORS_HEADER_BYTES (100u * 1000 * 1000) /* longest header: the format's own limit */

/* One tensor to write: float32, row-major, dims[0] outermost. n_dims 0 is a scalar; a dimension may be 0. */
typedef struct vpps_safetensors_tensor {
    const char *name; /* UTF-8, non-empty, not "__metadata__" */
    uint32_t n_dims;  /* 0 .. 3 */
    uint64_t dims[3];
    /* the values, borrowed during the write; may be NULL if a dimension is 0, or if vpps_safetensors_source supplies the values */
    const float *data;
} vpps_safetensors_tensor;

/* Supplies the values of tensors whose `data` is NULL because they are not in memory. `read` stores elements of tensor number i from
 * element `first` on in `out`: one or more whole rows (indices of dimension 0), at most `room` elements; *got is the number stored. A
 * tensor's elements are requested in order. A failure of `read` is returned to the caller of the write. */
typedef struct vpps_safetensors_source {
    vpps_status (*read)(void *context, size_t i, uint64_t first, size_t room, float *out, size_t *got);
    void *context;
} vpps_safetensors_source;

/* Writes n tensors, in the order given, and m metadata pairs, atomically (output.h). Tensors without values in memory get them from `source`, which may
 * be NULL if there are none. Equal arguments give equal bytes. Fails with ARGUMENT (a name or key that is repeated, empty or not UTF-8, n_dims > 3, a size that overflows), IO (the
 * message names the path, the step and the system's reason), MEMORY. */
vpps_status vpps_safetensors_write(const char *path, const vpps_safetensors_tensor *tensors, size_t n,
                                   const vpps_metadata *metadata, size_t m, const vpps_safetensors_source *source);

/* Computes a checksum of the tensors' bytes, in their order, as text: "vpps-64 " and 16 hexadecimal digits (base/hash.h
 * with seed 0, over all bytes after the header). `source` as for vpps_safetensors_write. VPPS_CHECKSUM_KEY is the checksum's key in a file's metadata. Files
 * whose checksum begins with "xxh3-64 " are read without a check. */
#define VPPS_CHECKSUM_KEY "vpps.checksum"
#define VPPS_CHECKSUM_BYTES 32
#define VPPS_CHECKSUM_FORMAT "vpps-64 %016llx"
vpps_status vpps_safetensors_checksum(const vpps_safetensors_tensor *tensors, size_t n,
                                      const vpps_safetensors_source *source, char text[VPPS_CHECKSUM_BYTES]);

/* A file that was opened and checked as a whole. Immutable; several threads may read from it. */
typedef struct vpps_safetensors vpps_safetensors;

/* One tensor of a file. The strings live as long as the open file. */
typedef struct vpps_safetensors_info {
    const char *name;
    const char *dtype; /* the type's name in the format: "F32", "BF16", ... */
    uint32_t n_dims;
    uint64_t dims[VPPS_SAFETENSORS_DIMS]; /* dimensions after n_dims are 1 */
    uint64_t n_elems;
    uint64_t n_bytes;
} vpps_safetensors_info;

/* Opens a file and checks its header; after OK every tensor lies inside the file. The calls that need values read them from disk: the old
 * content if vpps_output replaces the file meanwhile. Fails with IO (cannot be opened or read), FORMAT (what is wrong, and where), MEMORY. */
vpps_status vpps_safetensors_open(vpps_safetensors **out, const char *path);

/* Compares the tensors' bytes with the checksum in the metadata; a file without a checksum passes. Fails with FORMAT
 * when they differ, and with IO, MEMORY. */
vpps_status vpps_safetensors_verify(const vpps_safetensors *file);

/* Frees an open file; NULL is allowed. */
void vpps_safetensors_close(vpps_safetensors *file);

/* vpps_safetensors_count returns the number of tensors; vpps_safetensors_at returns tensor i in the order of the data. */
size_t vpps_safetensors_count(const vpps_safetensors *file);
const vpps_safetensors_info *vpps_safetensors_at(const vpps_safetensors *file, size_t i);

/* Finds a tensor by its name. Returns NULL when there is none. */
const vpps_safetensors_info *vpps_safetensors_find(const vpps_safetensors *file, const char *name);

/* Copies tensor `name` to `out`, n_elems floats. Fails with FORMAT, out untouched, when the tensor is missing, its dtype is not F32, or its
 * shape is not dims[0 .. n_dims); the message names path, tensor, what was expected and what was found. */
vpps_status vpps_safetensors_read_f32(const vpps_safetensors *file, const char *name, uint32_t n_dims,
                                      const uint64_t *dims, float *out);

/* Copies elements [first, first + n) of tensor `name` to `out`; the range must lie inside the tensor. Fails as
 * vpps_safetensors_read_f32 does, and with IO. */
vpps_status vpps_safetensors_read_part(const vpps_safetensors *file, const char *name, uint32_t n_dims,
                                       const uint64_t *dims, uint64_t first, size_t n, float *out);

/* Returns the value of a metadata key, NULL when it is absent. The text lives as long as the open file. */
const char *vpps_safetensors_metadata(const vpps_safetensors *file, const char *key);

/* vpps_safetensors_metadata_count returns the number of metadata pairs; vpps_safetensors_metadata_at returns pair i in the order of
 * keys. */
size_t vpps_safetensors_metadata_count(const vpps_safetensors *file);
vpps_metadata vpps_safetensors_metadata_at(const vpps_safetensors *file, size_t i);
