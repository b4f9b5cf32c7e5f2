/* standin_xxhash.c - the stand-in for libxxhash, under other names; for compare_xxhash.c. */
#include "standins/xxhash.h"

#include "compare_xxhash.h"

uint64_t standin_64(const void *bytes, size_t n) { return XXH3_64bits(bytes, n); }

void standin_in_pieces(const void *bytes, size_t n, size_t piece, uint64_t out[3]) {
    const char *at = bytes;
    XXH3_state_t *s = XXH3_createState();
    XXH3_128bits_reset(s);
    for (size_t i = 0; i < n; i += piece) XXH3_128bits_update(s, at + i, n - i < piece ? n - i : piece);
    const XXH128_hash_t h = XXH3_128bits_digest(s);
    out[0] = h.low64;
    out[1] = h.high64;
    out[2] = XXH3_64bits_digest(s);
    XXH3_freeState(s);
}
