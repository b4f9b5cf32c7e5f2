/* cache_entry.h - the file format of the kernel cache.
 *
 * An entry is lines of text, "WORD VALUE", in this order, and then the payload, up to the file's end:
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
 * hash of the file without its line "checksum": no byte of an entry can change unnoticed. The file's name is the key
 * and ".vpps"; while it is written, ".KEY.PROCESS-NUMBER.tmp". */
#pragma once

#include "codegen/cache_key.h"

enum { VPPS_ENTRY_DIGITS = 32, VPPS_ENTRY_NAME_BYTES = VPPS_ENTRY_DIGITS + sizeof ".vpps" };

/* An entry in memory; everything points into the file's bytes. */
typedef struct vpps_entry {
    const char *kind, *description, *toolchain, *key;
    const void *payload;
    size_t payload_bytes;
} vpps_entry;

/* The key's digits. */
void vpps_entry_hash_key(const vpps_cache_key *key, char digits[VPPS_ENTRY_DIGITS + 1]);

/* The lines for an entry, malloc'd, the caller's: the file is these, then the payload. Line breaks in the key's text
 * become spaces. Fails with MEMORY. */
vpps_status vpps_entry_encode(const vpps_cache_key *key, const char *digits, const void *payload, size_t payload_bytes,
                              char **header, size_t *header_bytes);

/* Reads a whole file of n bytes, and ends its lines with zeros. Sets *damage to what is wrong with it, or to NULL. */
void vpps_entry_decode(char *file, size_t n, vpps_entry *out, const char **damage);

/* Is that the name of an entry, of a file that is being written? */
bool vpps_entry_is_name(const char *name);
bool vpps_entry_is_temporary_name(const char *name);
