/* cache_entry.h - the file format of the kernel cache.
 *
 * An entry consists of lines of text, "WORD VALUE", in this order, followed by the payload up to the file's end:
 *
 *     vpps-cache 2
 *     kind cubin
 *     description tree-lstm, ...
 *     toolchain NVRTC 13.0 --gpu-architecture=sm_90 ...
 *     key 32 hexadecimal digits
 *     source-bytes 61234
 *     payload-bytes 51712
 *     checksum 32 hexadecimal digits
 *
 * The key is the 128-bit hash (base/hash.h) of all members of vpps_cache_key, each after its length. The checksum is the same
 * hash of the file without its line "checksum", so a change of any byte is noticed. The file's name is the key and
 * ".vpps"; while the file is being written, KEY.vpps.tmp-PROCESS-NUMBER (io/output.h). */
#pragma once

#include "codegen/cache_key.h"

enum { VPPS_ENTRY_DIGITS = 32, VPPS_ENTRY_NAME_BYTES = VPPS_ENTRY_DIGITS + sizeof ".vpps" };

/* An entry in memory. All pointers point into the file's bytes. */
typedef struct vpps_entry {
    const char *kind, *description, *toolchain, *key;
    const void *payload;
    size_t payload_bytes;
} vpps_entry;

/* Writes the key's hash as hexadecimal digits. */
void vpps_entry_hash_key(const vpps_cache_key *key, char digits[VPPS_ENTRY_DIGITS + 1]);

/* Makes the lines of text that precede an entry's payload (malloc'd, owned by the caller). Line breaks in the key's
 * text become spaces. Fails with MEMORY. */
vpps_status vpps_entry_encode(const vpps_cache_key *key, const char *digits, const void *payload, size_t payload_bytes,
                              char **header, size_t *header_bytes);

/* Parses a file of n bytes, and replaces line breaks of its text by zeros. False: the file is damaged, or not an entry of this version. */
bool vpps_entry_decode(char *file, size_t n, vpps_entry *out);

/* Returns whether a file of this name is a cache entry. */
bool vpps_entry_is_name(const char *name);
/* Returns whether a file of this name is a cache entry that is still being written. */
bool vpps_entry_is_temporary_name(const char *name);
