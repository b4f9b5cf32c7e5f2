/* hash.h - the library's one hash of bytes: it finds damage, and tells contents apart. It is the same on every machine and in every
 * release, since checksums of files are made with it. It is no cryptographic hash: two inputs with one hash can be constructed.
 *
 * Four lanes of 64 bits start as K[(i + 1) % 4] ^ seed. Each block of 64 bytes holds eight little-endian words; lane i takes two of them:
 *     lane[i] = rotate_left(lane[i], 29) + fold(lane[i] ^ word[2 * i], K[i] ^ word[2 * i + 1])
 * where fold is the low half of the 128-bit product, xor its high half. Zeros fill the last block up. A digest folds the number of bytes
 * and the lanes together (hash.c); there are two digests, for hashes of 128 bits. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct vpps_hash {
    uint64_t lanes[4], n_bytes;
    unsigned char rest[64]; /* the bytes after the last full block of 64; there are n_bytes % 64 */
} vpps_hash;

void vpps_hash_begin(vpps_hash *h, uint64_t seed);
/* Adds n bytes to a hash. The result does not depend on how the bytes are divided into calls. */
void vpps_hash_add(vpps_hash *h, const void *bytes, size_t n);
/* Returns a 64-bit hash of all bytes so far. Numbers 0 and 1 give two independent hashes, together 128 bits. */
uint64_t vpps_hash_digest(const vpps_hash *h, unsigned number);

/* Returns the hash of n bytes that vpps_hash_begin with this seed, vpps_hash_add and vpps_hash_digest(h, 0) give. */
uint64_t vpps_hash_bytes(const void *bytes, size_t n, uint64_t seed);
