/* hash.c - computes the library's hash of bytes (hash.h). */
#include "base/hash.h"
#include "base/base.h"

enum { BLOCK = sizeof((vpps_hash *)0)->rest, LANES = 4 };

/* Constants of the hash, one for each lane: the first binary digits of the fractional parts of the square roots of 2, 3, 5 and 7. */
static const uint64_t keys[LANES] = {0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu, 0x3c6ef372fe94f82bu,
                                     0xa54ff53a5f1d36f1u};

__extension__ typedef unsigned __int128 wide;

static inline uint64_t fold(uint64_t a, uint64_t b) {
    const wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static void add_blocks(uint64_t lanes[LANES], const unsigned char *at, size_t n) {
    uint64_t words[2 * LANES];
    for (; n--; at += BLOCK) {
        memcpy(words, at, sizeof words);
        for (int i = 0; i < LANES; i++)
            lanes[i] = (lanes[i] << 29 | lanes[i] >> 35) + fold(lanes[i] ^ words[2 * i], keys[i] ^ words[2 * i + 1]);
    }
}

void vpps_hash_begin(vpps_hash *h, uint64_t seed) {
    *h = (vpps_hash){.n_bytes = 0};
    for (int i = 0; i < LANES; i++) h->lanes[i] = keys[(i + 1) % LANES] ^ seed;
}

void vpps_hash_add(vpps_hash *h, const void *bytes, size_t n) {
    for (const unsigned char *at = bytes; n;) {
        const size_t filled = h->n_bytes % BLOCK;
        size_t taken = n - n % BLOCK;
        if (filled || n < BLOCK) {
            taken = n < BLOCK - filled ? n : BLOCK - filled;
            memcpy(h->rest + filled, at, taken);
            if (filled + taken == BLOCK) add_blocks(h->lanes, h->rest, 1);
        } else {
            add_blocks(h->lanes, at, taken / BLOCK);
        }
        h->n_bytes += taken;
        at += taken;
        n -= taken;
    }
}

uint64_t vpps_hash_digest(const vpps_hash *h, unsigned number) {
    uint64_t lanes[LANES], digest = h->n_bytes ^ keys[number];
    unsigned char last[BLOCK] = {0};
    memcpy(lanes, h->lanes, sizeof lanes);
    memcpy(last, h->rest, h->n_bytes % BLOCK);
    add_blocks(lanes, last, 1);
    for (int i = 0; i < LANES; i++) digest = vpps_mix64(digest + fold(lanes[i] ^ keys[number], digest ^ keys[i]));
    return digest;
}

uint64_t vpps_hash_bytes(const void *bytes, size_t n, uint64_t seed) {
    vpps_hash h;
    vpps_hash_begin(&h, seed);
    vpps_hash_add(&h, bytes, n);
    return vpps_hash_digest(&h, 0);
}
