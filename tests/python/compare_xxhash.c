/* compare_xxhash.c - the stand-in for libxxhash beside libxxhash: all lengths up to some blocks, in pieces of many sizes. */
#include "compare_xxhash.h"

#include <stdio.h>
#include <xxhash.h>

enum { MOST = 5000 };

int main(void) {
    static unsigned char bytes[MOST];
    uint32_t x = 1;
    int checked = 0;
    for (int i = 0; i < MOST; i++) bytes[i] = (unsigned char)((x = x * 1664525u + 1013904223u) >> 24);
    for (size_t n = 0; n < MOST; n += n < 1300 ? 1 : 37) {
        const XXH128_hash_t h = XXH3_128bits(bytes, n);
        const uint64_t h64 = XXH3_64bits(bytes, n);
        for (size_t piece = 1; piece < MOST; piece = piece * 3 + 1, checked++) {
            uint64_t out[3];
            standin_in_pieces(bytes, n, piece, out);
            if (standin_64(bytes, n) == h64 && out[2] == h64 && out[0] == h.low64 && out[1] == h.high64) continue;
            printf("%zu bytes in pieces of %zu: another hash\n", n, piece);
            return 1;
        }
    }
    printf("%d compared\n", checked);
    return checked < 10000;
}
