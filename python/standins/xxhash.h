/* xxhash.h - XXH3 with 64 and 128 bits, without a seed, after its specification (xxHash, doc/xxhash_spec.md): the calls of libxxhash that
 * the library makes. The Python package is built with this, so that it needs no header that pip does not bring; whoever builds with
 * make gets libxxhash. A test compares the two. */
#ifndef VPPS_STANDIN_XXHASH_H
#define VPPS_STANDIN_XXHASH_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t XXH64_hash_t;
typedef struct {
    uint64_t low64, high64;
} XXH128_hash_t;
typedef struct {
    unsigned char digest[16];
} XXH128_canonical_t;

enum { XXH_STRIPE = 64, XXH_SECRET = 192, XXH_BLOCK_STRIPES = (XXH_SECRET - XXH_STRIPE) / 8 };
static const uint64_t xxh_secret[XXH_SECRET / 8] = {
    0xbe4ba423396cfeb8u, 0x1cad21f72c81017cu, 0xdb979083e96dd4deu, 0x1f67b3b7a4a44072u, 0x78e5c0cc4ee679cbu,
    0x2172ffcc7dd05a82u, 0x8e2443f7744608b8u, 0x4c263a81e69035e0u, 0xcb00c391bb52283cu, 0xa32e531b8b65d088u,
    0x4ef90da297486471u, 0xd8acdea946ef1938u, 0x3f349ce33f76faa8u, 0x1d4f0bc7c7bbdcf9u, 0x3159b4cd4be0518au,
    0x647378d9c97e9fc8u, 0xc3ebd33483acc5eau, 0xeb6313faffa081c5u, 0x49daf0b751dd0d17u, 0x9e68d429265516d3u,
    0xfca1477d58be162bu, 0xce31d07ad1b8f88fu, 0x280416958f3acb45u, 0x7e404bbbcafbd7afu,
};
static const uint64_t xxh_p32[3] = {0x9e3779b1u, 0x85ebca77u, 0xc2b2ae3du};
static const uint64_t xxh_p64[5] = {0x9e3779b185ebca87u, 0xc2b2ae3d27d4eb4fu, 0x165667b19e3779f9u, 0x85ebca77c2b2ae63u,
                                    0x27d4eb2f165667c5u};

static inline uint64_t xxh_read64(const void *p) {
    uint64_t x;
    memcpy(&x, p, 8);
    return x;
}
static inline uint32_t xxh_read32(const void *p) {
    uint32_t x;
    memcpy(&x, p, 4);
    return x;
}
/* 8 bytes of the secret, at any byte. */
static inline uint64_t xxh_key(size_t at) { return xxh_read64((const unsigned char *)xxh_secret + at); }
static inline uint64_t xxh_rotl(uint64_t x, int n) { return x << n | x >> (64 - n); }

static inline uint64_t xxh_fold(uint64_t a, uint64_t b) {
    const unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}
static inline uint64_t xxh_avalanche64(uint64_t h) { /* XXH64's */
    h = (h ^ h >> 33) * xxh_p64[1];
    h = (h ^ h >> 29) * xxh_p64[2];
    return h ^ h >> 32;
}
static inline uint64_t xxh_avalanche(uint64_t h) { /* XXH3's */
    h = (h ^ h >> 37) * 0x165667919e3779f9u;
    return h ^ h >> 32;
}
static inline uint64_t xxh_mix(const unsigned char *p, size_t key) {
    return xxh_fold(xxh_read64(p) ^ xxh_key(key), xxh_read64(p + 8) ^ xxh_key(key + 8));
}

/* ---------------------------------------------------------------- up to 240 bytes, 64 bits */

static inline uint64_t xxh_64_to_16(const unsigned char *p, size_t n) {
    if (n > 8) {
        const uint64_t low = xxh_read64(p) ^ (xxh_key(24) ^ xxh_key(32));
        const uint64_t high = xxh_read64(p + n - 8) ^ (xxh_key(40) ^ xxh_key(48));
        return xxh_avalanche(n + __builtin_bswap64(low) + high + xxh_fold(low, high));
    }
    if (n >= 4) {
        uint64_t h = (xxh_read32(p + n - 4) + ((uint64_t)xxh_read32(p) << 32)) ^ (xxh_key(8) ^ xxh_key(16));
        h = (h ^ xxh_rotl(h, 49) ^ xxh_rotl(h, 24)) * 0x9fb21c651e98df25u;
        h = (h ^ ((h >> 35) + n)) * 0x9fb21c651e98df25u;
        return h ^ h >> 28;
    }
    if (n) {
        const uint32_t c = (uint32_t)p[0] << 16 | (uint32_t)p[n >> 1] << 24 | p[n - 1] | (uint32_t)n << 8;
        return xxh_avalanche64(c ^ (uint64_t)((uint32_t)xxh_key(0) ^ (uint32_t)xxh_key(4)));
    }
    return xxh_avalanche64(xxh_key(56) ^ xxh_key(64));
}

static inline uint64_t xxh_64_to_240(const unsigned char *p, size_t n) {
    uint64_t h = n * xxh_p64[0];
    if (n <= 128) {
        for (size_t i = (n - 1) / 32 + 1; i-- > 0;)
            h += xxh_mix(p + 16 * i, 32 * i) + xxh_mix(p + n - 16 * (i + 1), 32 * i + 16);
        return xxh_avalanche(h);
    }
    for (size_t i = 0; i < 8; i++) h += xxh_mix(p + 16 * i, 16 * i);
    h = xxh_avalanche(h);
    for (size_t i = 8; i < n / 16; i++) h += xxh_mix(p + 16 * i, 16 * (i - 8) + 3);
    return xxh_avalanche(h + xxh_mix(p + n - 16, 136 - 17));
}

/* ---------------------------------------------------------------- up to 240 bytes, 128 bits */

static inline XXH128_hash_t xxh_128_to_3(const unsigned char *p, size_t n) {
    const uint32_t low = (uint32_t)p[0] << 16 | (uint32_t)p[n >> 1] << 24 | p[n - 1] | (uint32_t)n << 8;
    const uint32_t swapped = __builtin_bswap32(low), high = swapped << 13 | swapped >> 19;
    const uint64_t key_low = (uint32_t)xxh_key(0) ^ (uint32_t)xxh_key(4),
                   key_high = (uint32_t)xxh_key(8) ^ (uint32_t)xxh_key(12);
    return (XXH128_hash_t){xxh_avalanche64(low ^ key_low), xxh_avalanche64(high ^ key_high)};
}

static inline XXH128_hash_t xxh_128_to_8(const unsigned char *p, size_t n) {
    const uint64_t keyed = (xxh_read32(p) + ((uint64_t)xxh_read32(p + n - 4) << 32)) ^ (xxh_key(16) ^ xxh_key(24));
    const unsigned __int128 product = (unsigned __int128)keyed * (xxh_p64[0] + (n << 2));
    uint64_t low = (uint64_t)product, high = (uint64_t)(product >> 64);
    high += low << 1;
    low ^= high >> 3;
    low = (low ^ low >> 35) * 0x9fb21c651e98df25u;
    return (XXH128_hash_t){low ^ low >> 28, xxh_avalanche(high)};
}

static inline XXH128_hash_t xxh_128_to_16(const unsigned char *p, size_t n) {
    const uint64_t key_low = xxh_key(32) ^ xxh_key(40), key_high = xxh_key(48) ^ xxh_key(56);
    const uint64_t in_low = xxh_read64(p), in_high = xxh_read64(p + n - 8) ^ key_high;
    const unsigned __int128 product = (unsigned __int128)(in_low ^ (in_high ^ key_high) ^ key_low) * xxh_p64[0];
    uint64_t low = (uint64_t)product + ((uint64_t)(n - 1) << 54), high = (uint64_t)(product >> 64);
    high += in_high + (uint64_t)(uint32_t)in_high * (xxh_p32[1] - 1);
    low ^= __builtin_bswap64(high);
    const unsigned __int128 last = (unsigned __int128)low * xxh_p64[1];
    return (XXH128_hash_t){xxh_avalanche((uint64_t)last), xxh_avalanche((uint64_t)(last >> 64) + high * xxh_p64[1])};
}

static inline void xxh_mix32(uint64_t h[2], const unsigned char *a, const unsigned char *b, size_t key) {
    h[0] = (h[0] + xxh_mix(a, key)) ^ (xxh_read64(b) + xxh_read64(b + 8));
    h[1] = (h[1] + xxh_mix(b, key + 16)) ^ (xxh_read64(a) + xxh_read64(a + 8));
}

static inline XXH128_hash_t xxh_128_to_240(const unsigned char *p, size_t n) {
    uint64_t h[2] = {n * xxh_p64[0], 0};
    if (n <= 128) {
        for (size_t i = (n - 1) / 32 + 1; i-- > 0;) xxh_mix32(h, p + 16 * i, p + n - 16 * (i + 1), 32 * i);
    } else {
        for (size_t i = 0; i < 4; i++) xxh_mix32(h, p + 32 * i, p + 32 * i + 16, 32 * i);
        h[0] = xxh_avalanche(h[0]);
        h[1] = xxh_avalanche(h[1]);
        for (size_t i = 4; i < n / 32; i++) xxh_mix32(h, p + 32 * i, p + 32 * i + 16, 3 + 32 * (i - 4));
        xxh_mix32(h, p + n - 16, p + n - 32, 136 - 17 - 16);
    }
    const uint64_t low = h[0] + h[1], high = h[0] * xxh_p64[0] + h[1] * xxh_p64[3] + n * xxh_p64[1];
    return (XXH128_hash_t){xxh_avalanche(low), (uint64_t)0 - xxh_avalanche(high)};
}

/* ---------------------------------------------------------------- more: stripes of 64 bytes, into 8 sums */

typedef struct XXH3_state_s {
    uint64_t sums[8], total;
    size_t n, stripes;              /* bytes in the buffer; stripes of the block so far */
    unsigned char buffer[256];      /* what is not summed yet, at least the last byte of all */
    unsigned char last[XXH_STRIPE]; /* the stripe summed last */
} XXH3_state_t;

static inline void xxh_accumulate(uint64_t *sums, const unsigned char *p, size_t key) {
    for (int i = 0; i < 8; i++) {
        const uint64_t v = xxh_read64(p + 8 * i), k = v ^ xxh_key(key + 8 * (size_t)i);
        sums[i ^ 1] += v;
        sums[i] += (k & 0xffffffffu) * (k >> 32);
    }
}

static inline void xxh_stripe(XXH3_state_t *s, const unsigned char *p) {
    xxh_accumulate(s->sums, p, 8 * s->stripes);
    if (++s->stripes < XXH_BLOCK_STRIPES) return;
    for (size_t i = 0; i < 8; i++)
        s->sums[i] = (s->sums[i] ^ s->sums[i] >> 47 ^ xxh_key(XXH_SECRET - XXH_STRIPE + 8 * i)) * xxh_p32[0];
    s->stripes = 0;
}

static inline int XXH3_64bits_reset(XXH3_state_t *s) {
    memset(s, 0, sizeof *s);
    const uint64_t first[8] = {xxh_p32[2], xxh_p64[0], xxh_p64[1], xxh_p64[2],
                               xxh_p64[3], xxh_p32[1], xxh_p64[4], xxh_p32[0]};
    memcpy(s->sums, first, sizeof first);
    return 0;
}

/* A stripe is summed when more bytes follow it: the last ones count otherwise. The first 240 stay whole until there are more. */
static inline int XXH3_64bits_update(XXH3_state_t *s, const void *bytes, size_t n) {
    const unsigned char *p = bytes;
    s->total += n;
    while (n) {
        const size_t room = sizeof s->buffer - s->n, taken = n < room ? n : room;
        memcpy(s->buffer + s->n, p, taken);
        s->n += taken;
        p += taken;
        n -= taken;
        if (!n) break;
        for (size_t i = 0; i < sizeof s->buffer; i += XXH_STRIPE) xxh_stripe(s, s->buffer + i);
        memcpy(s->last, s->buffer + sizeof s->buffer - XXH_STRIPE, XXH_STRIPE);
        s->n = 0;
    }
    return 0;
}

static inline uint64_t xxh_merge(const uint64_t *sums, size_t key, uint64_t h) {
    for (size_t i = 0; i < 4; i++)
        h += xxh_fold(sums[2 * i] ^ xxh_key(key + 16 * i), sums[2 * i + 1] ^ xxh_key(key + 16 * i + 8));
    return xxh_avalanche(h);
}

/* The sums of all, more than 240 bytes. */
static inline void xxh_finish(const XXH3_state_t *state, uint64_t *sums) {
    XXH3_state_t s = *state;
    unsigned char end[XXH_STRIPE];
    size_t at = 0;
    for (; s.n - at > XXH_STRIPE; at += XXH_STRIPE) { xxh_stripe(&s, s.buffer + at); }
    if (s.n >= XXH_STRIPE) {
        memcpy(end, s.buffer + s.n - XXH_STRIPE, XXH_STRIPE);
    } else { /* it reaches back into what was summed */
        memcpy(end, s.last + s.n, XXH_STRIPE - s.n);
        memcpy(end + XXH_STRIPE - s.n, s.buffer, s.n);
    }
    xxh_accumulate(s.sums, end, XXH_SECRET - XXH_STRIPE - 7);
    memcpy(sums, s.sums, sizeof s.sums);
}

static inline XXH64_hash_t XXH3_64bits_digest(const XXH3_state_t *s) {
    uint64_t sums[8];
    if (s->total <= 16) return xxh_64_to_16(s->buffer, (size_t)s->total);
    if (s->total <= 240) return xxh_64_to_240(s->buffer, (size_t)s->total);
    xxh_finish(s, sums);
    return xxh_merge(sums, 11, s->total * xxh_p64[0]);
}

static inline XXH128_hash_t XXH3_128bits_digest(const XXH3_state_t *s) {
    uint64_t sums[8];
    const size_t n = (size_t)s->total;
    if (!n)
        return (XXH128_hash_t){xxh_avalanche64(xxh_key(64) ^ xxh_key(72)), xxh_avalanche64(xxh_key(80) ^ xxh_key(88))};
    if (n <= 3) return xxh_128_to_3(s->buffer, n);
    if (n <= 8) return xxh_128_to_8(s->buffer, n);
    if (n <= 16) return xxh_128_to_16(s->buffer, n);
    if (n <= 240) return xxh_128_to_240(s->buffer, n);
    xxh_finish(s, sums);
    return (XXH128_hash_t){xxh_merge(sums, 11, s->total * xxh_p64[0]),
                           xxh_merge(sums, XXH_SECRET - XXH_STRIPE - 11, ~(s->total * xxh_p64[1]))};
}

static inline XXH3_state_t *XXH3_createState(void) { return malloc(sizeof(XXH3_state_t)); }
static inline int XXH3_freeState(XXH3_state_t *s) { return free(s), 0; }
static inline int XXH3_128bits_reset(XXH3_state_t *s) { return XXH3_64bits_reset(s); }
static inline int XXH3_128bits_update(XXH3_state_t *s, const void *p, size_t n) { return XXH3_64bits_update(s, p, n); }

static inline XXH64_hash_t XXH3_64bits(const void *p, size_t n) {
    XXH3_state_t s;
    XXH3_64bits_reset(&s);
    XXH3_64bits_update(&s, p, n);
    return XXH3_64bits_digest(&s);
}

static inline void XXH128_canonicalFromHash(XXH128_canonical_t *out, XXH128_hash_t h) {
    const uint64_t high = __builtin_bswap64(h.high64), low = __builtin_bswap64(h.low64);
    memcpy(out->digest, &high, 8);
    memcpy(out->digest + 8, &low, 8);
}

#endif
