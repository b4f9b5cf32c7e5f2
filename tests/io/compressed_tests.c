/* compressed_tests.c - files compressed by gzip or zstd give their contents; damaged ones are refused. */
#include "forms.h"
#include "io/stream.h"

#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>

enum { GZIP, ZSTD, N_CODECS };
static const char *const endings[] = {"gz", "zst"};

/* Returns compressed bytes, which the caller frees. */
static unsigned char *compressed(int codec, const char *text, size_t n, size_t *out_n) {
    size_t room = ZSTD_compressBound(n) + compressBound(n) + 64;
    unsigned char *out = malloc(room);
    if (codec == ZSTD) {
        ZSTD_CCtx *context = ZSTD_createCCtx();
        ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1); /* as the command zstd does */
        *out_n = ZSTD_compress2(context, out, room, text, n);
        ck_assert(!ZSTD_isError(*out_n));
        ZSTD_freeCCtx(context);
        return out;
    }
    z_stream z = {.next_in = (const Bytef *)text, .avail_in = (uInt)n, .next_out = out, .avail_out = (uInt)room};
    ck_assert_int_eq(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    *out_n = z.total_out;
    deflateEnd(&z);
    return out;
}

/* Compresses a text as two separate parts, one after the other. */
static unsigned char *compressed_parts(int codec, const char *text, size_t n, size_t *out_n) {
    size_t n_a, n_b;
    unsigned char *a = compressed(codec, text, n / 2, &n_a), *b = compressed(codec, text + n / 2, n - n / 2, &n_b);
    a = realloc(a, n_a + n_b);
    memcpy(a + n_a, b, n_b);
    free(b);
    *out_n = n_a + n_b;
    return a;
}

static void check_compressed(const form *f, const char *text, size_t n, bool whole_too) {
    FREED char *wanted = form_text(f, NULL, text, n);
    for (int codec = 0; codec < N_CODECS; codec++) {
        for (int parts = whole_too ? 0 : 1; parts < 2; parts++) {
            size_t packed_n;
            FREED unsigned char *packed = (parts ? compressed_parts : compressed)(codec, text, n, &packed_n);
            const char *path = folder_path(endings[codec]);
            folder_store(path, packed, packed_n);
            FREED char *shown = form_text(f, path, NULL, 0);
            ck_assert_msg(strcmp(shown, wanted) == 0, "%s, %s: other data", f->name, endings[codec]);
        }
    }
}

TEST_GROUP("compressed", .seconds = 60, .before_each = (SFun)folder_make);

TEST_EACH(every_form_is_decompressed, 0, n_forms) {
    const form *f = &forms[_i];
    check_compressed(f, f->small.text, strlen(f->small.text), true);
    if (!f->file) return;
    const char *path = data_file_as_well("every_form_is_decompressed", f->file);
    if (!path) return;
    size_t n;
    FREED char *text = folder_load(path, &n);
    check_compressed(f, text, n, false);
}

/* ---------------------------------------------------------------- streams */

/* Returns a text of lines without a pattern, which needs several pieces of a buffer. */
static char *long_text(size_t n) {
    uint64_t random = 3;
    char *text = malloc(n + 1);
    for (size_t i = 0; i < n; i++)
        text[i] = vpps_random_below(&random, 40) ? (char)(33 + vpps_random_below(&random, 90)) : '\n';
    text[n] = '\0';
    return text;
}

/* Reads all of it in random sizes, and compares. */
static void check_reads(vpps_stream *s, const char *text, size_t n, uint64_t seed) {
    size_t at = 0, got;
    FREED char *bytes = malloc(n + 1);
    do {
        const size_t wanted = 1 + vpps_random_below(&seed, 100000);
        const char *shown;
        if (vpps_random_below(&seed, 2)) {
            TEST_OK(vpps_stream_peek(s, wanted, &shown, &got));
            ck_assert_uint_eq(got < wanted, got < wanted && at + got == n);
            ck_assert_uint_le(at + got, n);
            ck_assert(memcmp(shown, text + at, got) == 0);
            got = got < wanted / 2 ? got : wanted / 2;
            vpps_stream_skip(s, got);
            at += got;
        }
        TEST_OK(vpps_stream_read(s, bytes, wanted < n ? wanted : n, &got));
        ck_assert_uint_le(at + got, n);
        ck_assert(memcmp(bytes, text + at, got) == 0);
        at += got;
    } while (got);
    ck_assert_uint_eq(at, n);
}

/* Opens a file "t" that holds these bytes. */
static vpps_status open_bytes(vpps_stream **s, const void *bytes, size_t n) {
    folder_store(folder_path("t"), bytes, n);
    return vpps_stream_open(s, folder_path("t"));
}

TEST_EACH(streams_give_every_byte, 0, 3) {
    const size_t n = 700000;
    FREED char *text = long_text(n);
    for (uint64_t seed = 0; seed < 8; seed++) {
        size_t packed_n = n;
        FREED unsigned char *packed = _i < 2 ? compressed_parts(_i, text, n, &packed_n) : NULL;
        const void *bytes = packed ? (const void *)packed : text;
        vpps_stream *s;
        TEST_OK(open_bytes(&s, bytes, packed_n));
        check_reads(s, text, n, seed);
        vpps_stream_close(s);
    }
}

TEST(streams_give_every_line) {
    static const char text[] = "a\n\nb\r\n\r\nc\rd\n\r\r\nend";
    static const char *const wanted[] = {"a", "", "b", "", "c\rd", "\r", "end"};
    const char *line;
    size_t len;
    vpps_stream *s;
    TEST_OK(open_bytes(&s, text, sizeof text - 1));
    for (size_t i = 0; i < VPPS_COUNT(wanted); i++) {
        TEST_OK(vpps_stream_line(s, &line, &len));
        ck_assert(line != NULL && len == strlen(wanted[i]) && memcmp(line, wanted[i], len) == 0);
    }
    TEST_OK(vpps_stream_line(s, &line, &len));
    ck_assert_ptr_null(line);
    vpps_stream_close(s);
    const size_t n = 300000;
    FREED char *many = long_text(n);
    many[150000] = '\n';
    for (size_t i = 150001; i < n; i++) many[i] = 'x'; /* a line that goes over several pieces */
    TEST_OK(open_bytes(&s, many, n));
    for (const char *at = many; at < many + n; at += len + 1) {
        TEST_OK(vpps_stream_line(s, &line, &len));
        const char *lf = memchr(at, '\n', (size_t)(many + n - at));
        ck_assert_uint_eq(len, (size_t)((lf ? lf : many + n) - at));
        ck_assert(memcmp(line, at, len) == 0);
    }
    vpps_stream_close(s);
}

/* ---------------------------------------------------------------- damage */

/* Returns the status of reading everything. */
static vpps_status read_through(const void *bytes, size_t n) {
    vpps_stream *s;
    char piece[1000];
    size_t got = 1;
    vpps_status status = open_bytes(&s, bytes, n);
    while (status == VPPS_OK && got) status = vpps_stream_read(s, piece, sizeof piece, &got);
    vpps_stream_close(s);
    return status;
}

TEST_EACH(cut_data_are_refused, 0, N_CODECS) {
    static const char text[] = "a text that is cut off somewhere; a text that is cut off somewhere else\n";
    char expected[80];
    size_t n;
    FREED unsigned char *packed = compressed(_i, text, sizeof text, &n);
    TEST_OK(read_through(packed, n));
    snprintf(expected, sizeof expected, "/t: expected the rest of its %s data, found end of file",
             _i == GZIP ? "gzip" : "zstd");
    for (size_t cut = 4; cut < n; cut++) { TEST_FAILS(read_through(packed, cut), VPPS_FORMAT, expected); }
}

TEST_EACH(damaged_data_are_refused, 0, N_CODECS) {
    const size_t text_n = 20000;
    FREED char *text = long_text(text_n);
    size_t n, refused = 0;
    FREED unsigned char *packed = compressed(_i, text, text_n, &n);
    for (size_t at = 10; at < n; at += 97) {
        packed[at] ^= 0x55;
        refused += read_through(packed, n) == VPPS_FORMAT;
        packed[at] ^= 0x55;
    }
    ck_assert_uint_eq(refused, (n - 10 + 96) / 97);
    packed[20] ^= 0xff;
    packed[21] ^= 0xff;
    folder_store(folder_path("damaged"), packed, n);
    char *bytes;
    TEST_FAILS(vpps_file_read_all(folder_path("damaged"), &bytes, &n), VPPS_FORMAT,
               _i == GZIP ? "damaged: expected whole gzip data, found damaged ones ("
                          : "damaged: expected whole zstd data, found damaged ones (");
    ck_assert_ptr_null(bytes);
    OWNED(vpps_sentences) *s = new_sentences();
    CHECK_STATUS(vpps_sentences_read_lines_file(s, folder_path("damaged"), NULL), VPPS_FORMAT);
    ck_assert_uint_eq(vpps_sentences_size(s), 0);
}

TEST(what_follows_compressed_data) {
    size_t n, n_zstd;
    unsigned char more[128] = {0};
    FREED unsigned char *gzip = compressed(GZIP, "a\n", 2, &n), *zstd = compressed(ZSTD, "a\n", 2, &n_zstd);
    memcpy(more, gzip, n);
    TEST_OK(read_through(more, n + 40)); /* zeros */
    more[n + 5] = 'x';
    TEST_FAILS(read_through(more, n + 40), VPPS_FORMAT,
               "t: expected whole gzip data, found damaged ones (incorrect header check)");
    memcpy(more, zstd, n_zstd);
    more[n_zstd] = 'x';
    TEST_FAILS(read_through(more, n_zstd + 8), VPPS_FORMAT, "t: expected whole zstd data");
}

/* If zstd worked in parallel, the data begin with a frame to be skipped. */
TEST(frames_are_skipped) {
    static const unsigned char skipped[] = {0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4};
    size_t n;
    unsigned char bytes[128];
    FREED unsigned char *packed = compressed(ZSTD, "a b\n", 4, &n);
    memcpy(bytes, skipped, sizeof skipped);
    memcpy(bytes + sizeof skipped, packed, n);
    folder_store(folder_path("skipped"), bytes, sizeof skipped + n);
    OWNED(vpps_sentences) *s = new_sentences();
    TEST_OK(vpps_sentences_read_lines_file(s, folder_path("skipped"), NULL));
    ck_assert_uint_eq(vpps_sentences_total_words(s), 2);
}

TEST(other_compressions_are_named) {
    static const struct {
        const char *bytes, *message;
        size_t n;
    } others[] = {{"\xfd"
                   "7zXZ\0\0\4",
                   "found an xz file", 8},
                  {"BZh91AY&SY...", "found a bzip2 file", 13},
                  {"PK\3\4\24\0", "found a zip archive", 6},
                  {"7z\xbc\xaf\x27\x1c\0\4", "found a 7z archive", 8}};
    for (size_t i = 0; i < VPPS_COUNT(others); i++) {
        char *bytes;
        size_t n;
        folder_store(folder_path("other"), others[i].bytes, others[i].n);
        TEST_FAILS(vpps_file_read_all(folder_path("other"), &bytes, &n), VPPS_FORMAT,
                   "other: expected data as they are, or compressed by gzip or zstd, ");
        CHECK_MESSAGE(others[i].message);
        TEST_OK(read_through(others[i].bytes, 2)); /* a text may begin so */
    }
}

TEST(nothing_compressed) {
    for (int codec = 0; codec < N_CODECS; codec++) {
        size_t n;
        FREED unsigned char *packed = compressed(codec, "", 0, &n);
        FREED char *bytes;
        folder_store(folder_path("nothing"), packed, n);
        TEST_OK(vpps_file_read_all(folder_path("nothing"), &bytes, &n));
        ck_assert_uint_eq(n, 0);
    }
}

/* Data of a pipe are decompressed, too. */
TEST_EACH(a_pipe_is_decompressed, 0, N_CODECS) {
    const size_t text_n = 300000;
    FREED char *text = long_text(text_n), *bytes;
    size_t n;
    FREED unsigned char *packed = compressed(_i, text, text_n, &n);
    int ends[2];
    char path[32];
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t writer = fork();
    if (writer == 0) {
        for (size_t at = 0; at < n;) {
            const ssize_t sent = write(ends[1], packed + at, n - at < 5000 ? n - at : 5000);
            if (sent <= 0) _exit(1);
            at += (size_t)sent;
        }
        _exit(0);
    }
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    TEST_OK(vpps_file_read_all(path, &bytes, &n));
    ck_assert_uint_eq(n, text_n);
    ck_assert(memcmp(bytes, text, n) == 0);
    close(ends[0]);
}
