/* hash_tests.c - the library's hash: digests are those of every release, for any division into pieces; every bit counts. */
#include "base/hash.h"
#include "io_tests.h"

enum { MOST = 200 };

/* Draws MOST bytes. */
static void draw(unsigned char bytes[MOST]) {
    uint64_t random = 1;
    for (int i = 0; i < MOST; i++) bytes[i] = (unsigned char)vpps_random_below(&random, 256);
}

TEST_GROUP("hash");

/* Digests must not change, since files' checksums are made with them. */
TEST(digests_stay) {
    static const struct {
        size_t n;
        uint64_t seed, digests[2];
    } rows[] = {{0, 0, {0x2f8abf24d6bb7b6e, 0xd3e0a70975040a0b}},
                {1, 0, {0x816bfdbd05747b38, 0xc18bd92ea7f5958b}},
                {64, 0, {0x76a89d98e9572d92, 0x41526e7a449fa8b4}},
                {65, 7, {0x16dc41cb24d0b751, 0xc5712bbe9f6814f1}},
                {MOST, 0, {0x6235759de4144b15, 0x968cec627e9896f7}}};
    unsigned char bytes[MOST];
    draw(bytes);
    for (size_t i = 0; i < VPPS_COUNT(rows); i++) {
        vpps_hash h;
        vpps_hash_begin(&h, rows[i].seed);
        vpps_hash_add(&h, bytes, rows[i].n);
        for (unsigned k = 0; k < 2; k++) ck_assert_uint_eq(vpps_hash_digest(&h, k), rows[i].digests[k]);
        ck_assert_uint_eq(vpps_hash_bytes(bytes, rows[i].n, rows[i].seed), rows[i].digests[0]);
    }
}

TEST(pieces_do_not_count) {
    unsigned char bytes[MOST];
    draw(bytes);
    for (size_t n = 0; n <= MOST; n++) {
        for (size_t piece = 1; piece <= MOST; piece += 1 + piece / 3) {
            vpps_hash h;
            vpps_hash_begin(&h, 0);
            for (size_t at = 0; at < n; at += piece) vpps_hash_add(&h, bytes + at, n - at < piece ? n - at : piece);
            ck_assert_uint_eq(vpps_hash_digest(&h, 0), vpps_hash_bytes(bytes, n, 0));
        }
    }
}

static int compare(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Each bit, each length and each seed gives another digest, also if all bytes are zero; a flip changes a third of a digest's bits. */
TEST(every_bit_counts) {
    static uint64_t found[2 * MOST * 10 + 4 * MOST];
    unsigned char bytes[MOST];
    size_t n = 0;
    draw(bytes);
    for (int zeros = 0; zeros < 2; zeros++) {
        if (zeros) memset(bytes, 0, MOST);
        for (int i = 0; i < 8 * MOST; i++) {
            bytes[i / 8] ^= (unsigned char)(1 << i % 8);
            found[n++] = vpps_hash_bytes(bytes, MOST, 0);
            bytes[i / 8] ^= (unsigned char)(1 << i % 8);
            const int flipped = __builtin_popcountll(found[n - 1] ^ vpps_hash_bytes(bytes, MOST, 0));
            ck_assert(flipped > 10 && flipped < 54);
        }
        for (size_t i = 0; i < MOST; i++) found[n++] = vpps_hash_bytes(bytes, i, 0);
        for (uint64_t seed = 0; seed < MOST; seed++) found[n++] = vpps_hash_bytes(bytes, MOST, seed);
    }
    qsort(found, n, sizeof *found, compare);
    uint32_t equal = 0;
    for (size_t i = 1; i < n; i++) equal += found[i] == found[i - 1];
    ck_assert_uint_eq(equal, 1); /* no bytes, of either kind */
}
