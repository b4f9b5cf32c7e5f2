/* safetensors.h - checkpoints on disk: the safetensors format, written atomically, and checked completely when it is read.
 *
 * Format (github.com/huggingface/safetensors, README section "Format"): 8 bytes, the header's length N as an unsigned
 * little-endian integer; N bytes of JSON that begin with '{' and may be padded with spaces; the tensors' bytes,
 * row-major and little-endian. The JSON object maps a tensor's name to {"dtype", "shape", "data_offsets": [begin,
 * end)}, offsets counted from the first byte after the header; "__metadata__" maps strings to strings. Names are
 * unique and the ranges tile the data: no hole, no overlap, nothing after them.
 */
#pragma once

#include "vpps.h"

#define VPPS_SAFETENSORS_DIMS 8                            /* at most, of a tensor that is read */
#define VPPS_SAFETENSORS_HEADER_BYTES (100u * 1000 * 1000) /* at most: the format's own limit */

/* One tensor to write: float32, row-major, dims[0] outermost. n_dims 0 is a scalar; a dimension may be 0. */
typedef struct vpps_safetensors_tensor {
    const char *name; /* UTF-8, non-empty, not "__metadata__" */
    uint32_t n_dims;  /* 0 .. 3 */
    uint64_t dims[3];
    const float *data; /* borrowed during the write; may be NULL when a dimension is 0 */
} vpps_safetensors_tensor;

/* A source of tensors that are not in memory: those without data. read: up to `room` elements of tensor number `i`, from element `first`
 * on, as many rows (of all dimensions but the outermost) as it likes, at least one; *got tells how many elements. Elements of a tensor are
 * requested in their order. A failure of `read` is the caller's failure. */
typedef struct vpps_safetensors_source {
    vpps_status (*read)(void *context, size_t i, uint64_t first, size_t room, float *out, size_t *got);
    void *context;
} vpps_safetensors_source;

/* Writes n tensors in the order given, and m metadata pairs, as output.h does: whatever happens, the path afterwards holds
 * either its old content or all of the new one. Equal arguments give equal bytes.
 * Fails with ARGUMENT (a name or key that is repeated, empty or not UTF-8, n_dims > 3, a size that overflows),
 * IO (the message names the path, the step and the system's reason), MEMORY. */
vpps_status vpps_safetensors_write(const char *path, const vpps_safetensors_tensor *tensors, size_t n,
                                   const vpps_metadata *metadata, size_t m);

/* A checksum of the tensors' bytes, in their order, as text: "vpps-64 " and 16 hexadecimal digits (base/hash.h,
 * seed 0, of all that follows the header). In the metadata of a file it stands under this key. Files whose checksum begins with "xxh3-64 "
 * are read without a check. */
#define VPPS_CHECKSUM_KEY "vpps.checksum"
#define VPPS_CHECKSUM_BYTES 32
vpps_status vpps_safetensors_checksum(const vpps_safetensors_tensor *tensors, size_t n, char text[VPPS_CHECKSUM_BYTES]);

/* Both, of tensors some of which come from a source (NULL: none does). */
vpps_status vpps_safetensors_write_from(const char *path, const vpps_safetensors_tensor *tensors, size_t n,
                                        const vpps_metadata *metadata, size_t m, const vpps_safetensors_source *source);
vpps_status vpps_safetensors_checksum_from(const vpps_safetensors_tensor *tensors, size_t n,
                                           const vpps_safetensors_source *source, char text[VPPS_CHECKSUM_BYTES]);

/* A file that was read and checked as a whole. Immutable; reading from several threads is safe. */
typedef struct vpps_safetensors vpps_safetensors;

/* One tensor of a file. The strings and `bytes` live as long as the file. */
typedef struct vpps_safetensors_info {
    const char *name;
    const char *dtype; /* as the format spells it: "F32", "BF16", ... */
    uint32_t n_dims;
    uint64_t dims[VPPS_SAFETENSORS_DIMS]; /* entries past n_dims are 1 */
    uint64_t n_elems;
    const unsigned char *bytes; /* as in the file: may be unaligned */
    uint64_t n_bytes;
} vpps_safetensors_info;

/* Opens and checks a file: after OK every tensor lies inside it. Its content is read into memory, so changing or
 * replacing the file afterwards changes nothing here. Fails with IO (cannot be opened or read), FORMAT (what is wrong,
 * and where), MEMORY. */
vpps_status vpps_safetensors_open(vpps_safetensors **out, const char *path);

/* The same without the content, which calls read when they need it; tensors' `bytes` are NULL. If vpps_output replaces the file meanwhile,
 * they read the old one. */
vpps_status vpps_safetensors_open_on_disk(vpps_safetensors **out, const char *path);

/* The same from memory, which is copied; `name` stands for the path in messages. */
vpps_status vpps_safetensors_parse(vpps_safetensors **out, const char *name, const void *bytes, size_t n_bytes);

/* Are the tensors' bytes those that the file's metadata has a checksum of? A file without one is taken as it is. Fails with
 * FORMAT; on disk also with IO, MEMORY. */
vpps_status vpps_safetensors_verify(const vpps_safetensors *file);

/* NULL is allowed. */
void vpps_safetensors_close(vpps_safetensors *file);

/* Iteration, in the order of the data in the file: i < count. */
size_t vpps_safetensors_count(const vpps_safetensors *file);
const vpps_safetensors_info *vpps_safetensors_at(const vpps_safetensors *file, size_t i);

/* By name; NULL when there is none. */
const vpps_safetensors_info *vpps_safetensors_find(const vpps_safetensors *file, const char *name);

/* Copies tensor `name` to `out`, n_elems floats. Fails with FORMAT, out untouched, when the tensor is missing, its
 * dtype is not F32, or its shape is not dims[0 .. n_dims); the message names path, tensor, what was expected and what
 * was found. */
vpps_status vpps_safetensors_read_f32(const vpps_safetensors *file, const char *name, uint32_t n_dims,
                                      const uint64_t *dims, float *out);

/* The same of elements [first, first + n) alone, which are there. Fails with IO, too. */
vpps_status vpps_safetensors_read_part(const vpps_safetensors *file, const char *name, uint32_t n_dims,
                                       const uint64_t *dims, uint64_t first, size_t n, float *out);

/* The value of a metadata key, NULL when absent; lives as long as the file. */
const char *vpps_safetensors_metadata(const vpps_safetensors *file, const char *key);

/* All metadata pairs, in order of their keys: i < metadata_count. */
size_t vpps_safetensors_metadata_count(const vpps_safetensors *file);
vpps_metadata vpps_safetensors_metadata_at(const vpps_safetensors *file, size_t i);
