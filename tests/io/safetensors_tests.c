/* safetensors_tests.c - checkpoint files: the bytes that are written, and what the reader does with damaged or hostile files. */
#include "io_tests.h"

#include "fuzz/walk.h"

/* A whole file made by hand from the format's definition: 136 bytes of header, 12 of data. */
static const char golden[] = "\x88\0\0\0\0\0\0\0"
                             "{\"__metadata__\":{\"k\":\"v\"},"
                             "\"a\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
                             "\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[8,12]}}  "
                             "\0\0\x80\x3f" /* 1 */
                             "\0\0\0\xc0"   /* -2 */
                             "\0\0\x40\x3f" /* 0.75 */;
#define GOLDEN_BYTES (sizeof golden - 1)

static const float golden_a[] = {1, -2}, golden_b[] = {0.75f};
static const vpps_safetensors_tensor golden_tensors[] = {{"a", 2, {1, 2}, golden_a}, {"b", 0, {0}, golden_b}};
static const vpps_metadata golden_metadata[] = {{"k", "v"}};

/* Opens a file that holds these bytes. */
static vpps_status open_bytes(vpps_safetensors **file, const char *name, const void *bytes, size_t n) {
    folder_store(folder_path(name), bytes, n);
    return vpps_safetensors_open(file, folder_path(name));
}

TEST_GROUP("safetensors", .seconds = 60, .before_each = (SFun)folder_make);

TEST(bytes_are_the_formats) {
    size_t n;
    TEST_OK(vpps_safetensors_write(folder_path("g"), golden_tensors, 2, golden_metadata, 1, NULL));
    FREED char *bytes = folder_load(folder_path("g"), &n);
    ck_assert_uint_eq(n, GOLDEN_BYTES);
    ck_assert_mem_eq(bytes, golden, GOLDEN_BYTES);
}

TEST(golden_bytes_are_read) {
    vpps_safetensors *file;
    float a[2], b;
    TEST_OK(open_bytes(&file, "g", golden, GOLDEN_BYTES));
    ck_assert_uint_eq(vpps_safetensors_count(file), 2);
    TEST_OK(vpps_safetensors_read_f32(file, "a", 2, (const uint64_t[]){1, 2}, a));
    TEST_OK(vpps_safetensors_read_f32(file, "b", 0, NULL, &b));
    ck_assert(a[0] == 1 && a[1] == -2 && b == 0.75f);
    ck_assert_str_eq(vpps_safetensors_metadata(file, "k"), "v");
    ck_assert_ptr_null(vpps_safetensors_metadata(file, "absent"));
    ck_assert_ptr_null(vpps_safetensors_find(file, "__metadata__"));
    ck_assert_ptr_null(vpps_safetensors_at(file, 2));
    TEST_FAILS(vpps_safetensors_read_f32(file, "c", 0, NULL, &b), VPPS_FORMAT, "/g: expected a tensor 'c', found none");
    TEST_FAILS(vpps_safetensors_read_f32(file, "a", 2, (const uint64_t[]){2, 1}, a), VPPS_FORMAT,
               "/g: tensor 'a': expected shape [2, 1], found [1, 2]");
    vpps_safetensors_close(file);
}

TEST(what_is_written_is_read) {
    static float big[3 * 5 * 7], odd[4] = {-0.0f, INFINITY, 1e-45f, 3.4e38f};
    for (size_t i = 0; i < VPPS_COUNT(big); i++) big[i] = (float)i * 0.1f;
    const vpps_safetensors_tensor tensors[] = {{"z", 3, {3, 5, 7}, big},
                                               {"optimizer.0/W \"q\" \\ \n \xc3\xa9 \xf0\x9f\x8c\xb2", 1, {4}, odd},
                                               {"empty", 2, {0, 9}, NULL},
                                               {"a", 1, {105}, big}};
    const vpps_metadata metadata[] = {
        {"vpps.seed", "18446744073709551615"}, {"text", "two\nlines \xe2\x82\xac"}, {"e", ""}};
    vpps_safetensors *file;
    float values[105];
    TEST_OK(vpps_safetensors_write(folder_path("f"), tensors, 4, metadata, 3, NULL));
    TEST_OK(vpps_safetensors_open(&file, folder_path("f")));
    ck_assert_uint_eq(vpps_safetensors_count(file), 4);
    for (size_t i = 0; i < 4; i++) {
        const vpps_safetensors_info *info = vpps_safetensors_find(file, tensors[i].name);
        ck_assert_ptr_nonnull(info);
        TEST_OK(vpps_safetensors_read_f32(file, tensors[i].name, tensors[i].n_dims, tensors[i].dims, values));
        if (info->n_bytes) ck_assert_mem_eq(values, tensors[i].data, info->n_bytes);
    }
    ck_assert_uint_eq(vpps_safetensors_metadata_count(file), 3);
    for (size_t i = 0; i < 3; i++) {
        char *value;
        ck_assert_str_eq(vpps_safetensors_metadata(file, metadata[i].key), metadata[i].value);
        TEST_OK(vpps_checkpoint_metadata(folder_path("f"), metadata[i].key, &value));
        ck_assert_str_eq(value, metadata[i].value);
        free(value);
    }
    char *value;
    TEST_OK(vpps_checkpoint_metadata(folder_path("f"), "absent", &value));
    ck_assert_ptr_null(value);
    ck_assert_uint_ne(walk(file), UINT64_MAX);
    vpps_safetensors_close(file);
}

TEST(bad_arguments_write_nothing) {
    static const float x[1];
    static const struct {
        vpps_safetensors_tensor first;
        vpps_metadata metadata;
        const char *message;
    } cases[] = {
        {{"", 0, {0}, x}, {"k", ""}, "expected a tensor name of one or more"},
        {{"b", 0, {0}, x}, {"k", ""}, "expected every tensor name once, found 'b' twice"},
        {{"\xed\xa0\x80", 0, {0}, x}, {"k", ""}, "expected a tensor name"},
        {{"__metadata__", 0, {0}, x}, {"k", ""}, "found '__metadata__' twice"},
        {{"a", 4, {0}, x}, {"k", ""}, "expected at most 3 dimensions, found 4"},
        {{"a", 2, {1ull << 32, 1ull << 32}, x}, {"k", ""}, "fewer than 2^63 bytes"},
        {{"a", 1, {2}, NULL}, {"k", ""}, "tensor 'a': expected data"},
        {{"a", 0, {0}, x}, {"l", ""}, "expected every metadata key once, found 'l' twice"},
        {{"a", 0, {0}, x}, {"k", "\xc0\xaf"}, "expected metadata 'k' to be UTF-8"},
        {{"a", 0, {0}, x}, {NULL, ""}, "expected a metadata key"},
    };
    for (size_t i = 0; i < VPPS_COUNT(cases); i++) {
        const vpps_safetensors_tensor tensors[] = {cases[i].first, {"b", 0, {0}, x}};
        const vpps_metadata metadata[] = {cases[i].metadata, {"l", ""}};
        TEST_FAILS(vpps_safetensors_write(folder_path("f"), tensors, 2, metadata, 2, NULL), VPPS_ARGUMENT,
                   cases[i].message);
        ck_assert_ptr_null(fopen(folder_path("f"), "rb"));
    }
}

TEST(every_truncation_fails) {
    vpps_safetensors *file;
    char *value;
    for (size_t n = 0; n < GOLDEN_BYTES; n++) {
        TEST_FAILS(open_bytes(&file, "f", golden, n), VPPS_FORMAT, "/f: not a valid safetensors file: ");
        ck_assert_ptr_null(file);
        CHECK_STATUS(vpps_checkpoint_metadata(folder_path("f"), "k", &value), VPPS_FORMAT);
    }
    char longer[GOLDEN_BYTES + 1] = {0};
    memcpy(longer, golden, GOLDEN_BYTES);
    TEST_FAILS(open_bytes(&file, "g", longer, sizeof longer), VPPS_FORMAT, "expected 12 bytes of data, found 13");
}

TEST(every_bit_flip_of_the_header_is_harmless) {
    int failed = 0, valid = 0;
    for (size_t bit = 0; bit < (GOLDEN_BYTES - 12) * 8; bit++) {
        vpps_safetensors *file;
        FREED char *flipped = malloc(GOLDEN_BYTES);
        memcpy(flipped, golden, GOLDEN_BYTES);
        flipped[bit / 8] = (char)(flipped[bit / 8] ^ (1 << bit % 8));
        vpps_status status = open_bytes(&file, "g", flipped, GOLDEN_BYTES);
        ck_assert(status == VPPS_OK || status == VPPS_FORMAT);
        if (status == VPPS_OK) ck_assert_uint_ne(walk(file), UINT64_MAX);
        *(status == VPPS_OK ? &valid : &failed) += 1;
        vpps_safetensors_close(file);
    }
    ck_assert_int_gt(failed, 8 * valid); /* some changes are valid: letters of names, F32 to a dtype as wide */
}

#define ENTRY(name, dtype, shape, offsets)                                                                             \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const struct hostile {
    const char *header;  /* header of a file with 8 bytes of data */
    const char *message; /* NULL: valid */
} hostile_headers[] = {
    {"{" ENTRY("a", "F32", "[2]", "[0,8]") "}", NULL},
    {"{" ENTRY("a", "F32", "[2]", "[0,8]") "}   ", NULL},
    {"{" ENTRY("a", "BF16", "[2,1,2]", "[0,8]") "}", NULL},
    {"{" ENTRY("a", "F4", "[16]", "[0,8]") "}", NULL},
    {"{" ENTRY("a", "F32", "[1]", "[4,8]") "," ENTRY("b", "I32", "[1]", "[0,4]") "}", NULL},
    {"{" ENTRY("a", "F64", "[]", "[0,8]") "," ENTRY("b", "F32", "[0]", "[8,8]") "," ENTRY("c", "F32", "[5,0]",
                                                                                          "[0,0]") "}",
     NULL},
    {"{" ENTRY("a", "F32", "[2,1,1,1,1,1,1,1]", "[0,8]") "}", NULL},
    {"{\"__metadata__\":{}," ENTRY("a", "F32", "[2]", "[0,8]") "}", NULL},
    {"", "expected the header to begin with '{'"},
    {" {}", "expected the header to begin with '{'"},
    {"[]", "expected the header to begin with '{'"},
    {"{", "expected a header in JSON"},
    {"{}x", "expected a header in JSON"},
    {"{}", "expected 0 bytes of data, found 8"},
    {"{\"a\":1}", "tensor 'a': expected a dtype string"},
    {"{\"a\":null}", "tensor 'a': expected a dtype string"},
    {"{\"a\":[]}", "tensor 'a': expected a dtype string"},
    {"{\"a\":{\"dtype\":7,\"shape\":[2],\"data_offsets\":[0,8]}}", "tensor 'a': expected a dtype string"},
    {"{" ENTRY("a", "f32", "[2]", "[0,8]") "}", "tensor 'a': expected a known dtype, found 'f32'"},
    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", "expected a shape of at most 8 dimensions"},
    {"{" ENTRY("a", "F32", "2", "[0,8]") "}", "expected a shape of at most 8 dimensions"},
    {"{" ENTRY("a", "F32", "[2,1,1,1,1,1,1,1,1]", "[0,8]") "}", "expected a shape of at most 8 dimensions"},
    {"{" ENTRY("a", "F32", "[-2]", "[0,8]") "}", "expected dimension 0 to be an integer of at least 0"},
    {"{" ENTRY("a", "F32", "[1,2.0]", "[0,8]") "}", "expected dimension 1 to be an integer of at least 0"},
    {"{" ENTRY("a", "F32", "[\"2\"]", "[0,8]") "}", "expected dimension 0 to be an integer of at least 0"},
    {"{" ENTRY("a", "F32", "[9223372036854775807,9223372036854775807]", "[0,8]") "}", "fewer than 2^64 elements"},
    {"{" ENTRY("a", "F32", "[4294967296,4294967296,0]", "[0,8]") "}", "fewer than 2^64 elements"},
    {"{" ENTRY("a", "F32", "[4611686018427387906]", "[0,8]") "}", "expected a whole number of bytes below 2^61"},
    {"{" ENTRY("a", "F4", "[15]", "[0,8]") "}", "expected a whole number of bytes"},
    {"{" ENTRY("a", "F32", "[99999999999999999999]", "[0,8]") "}", "expected a header in JSON"},
    {"{" ENTRY("a", "F32", "[3]", "[0,8]") "}", "tensor 'a': expected 12 bytes by its shape, found 8"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", "expected data_offsets of two integers"},
    {"{" ENTRY("a", "F32", "[2]", "[8]") "}", "expected data_offsets of two integers"},
    {"{" ENTRY("a", "F32", "[2]", "[0,8,8]") "}", "expected data_offsets of two integers"},
    {"{" ENTRY("a", "F32", "[2]", "[0,8.0]") "}", "expected data_offsets of two integers"},
    {"{" ENTRY("a", "F32", "[2]", "{\"0\":0}") "}", "expected data_offsets of two integers"},
    {"{" ENTRY("a", "F32", "[2]", "[-8,0]") "}", "expected data_offsets within 8 bytes, found [-8, 0]"},
    {"{" ENTRY("a", "F32", "[2]", "[8,0]") "}", "expected data_offsets within 8 bytes, found [8, 0]"},
    {"{" ENTRY("a", "F32", "[2]", "[1,9]") "}", "expected data_offsets within 8 bytes, found [1, 9]"},
    {"{" ENTRY("a", "F32", "[0]", "[9223372036854775807,9223372036854775807]") "}", "expected data_offsets within 8"},
    {"{" ENTRY("a", "F32", "[1]", "[4,8]") "}", "tensor 'a': expected its data to begin at 0, found 4"},
    {"{" ENTRY("a", "F32", "[1]", "[0,4]") "}", "expected 4 bytes of data, found 8"},
    {"{" ENTRY("a", "F32", "[2]", "[0,8]") "," ENTRY("b", "F32", "[1]", "[4,8]") "}",
     "tensor 'b': expected its data to begin at 8, found 4"},
    {"{" ENTRY("a", "F32", "[1]", "[0,4]") "," ENTRY("b", "F16", "[1]", "[6,8]") "}",
     "tensor 'b': expected its data to begin at 4, found 6"},
    {"{" ENTRY("a", "F32", "[1]", "[0,4]") "," ENTRY("a", "F32", "[1]", "[4,8]") "}", "every key of the object once"},
    {"{\"__metadata__\":{\"k\":\"\",\"k\":\"\"}," ENTRY("a", "F32", "[2]", "[0,8]") "}",
     "every key of the object once"},
    {"{\"__metadata__\":[]," ENTRY("a", "F32", "[2]", "[0,8]") "}", "expected __metadata__ to be an object"},
    {"{\"__metadata__\":null," ENTRY("a", "F32", "[2]", "[0,8]") "}", "expected __metadata__ to be an object"},
    {"{\"__metadata__\":{\"k\":1}," ENTRY("a", "F32", "[2]", "[0,8]") "}", "expected metadata 'k' to be a string"},
    {"{\"__metadata__\":{\"k\":\"\\u0000\"}," ENTRY("a", "F32", "[2]", "[0,8]") "}", "expected a header in JSON"},
    {"{" ENTRY("\xff", "F32", "[2]", "[0,8]") "}", "expected a header in JSON"},
    {"{" ENTRY("a\\u0000b", "F32", "[2]", "[0,8]") "}", "expected a header in JSON"},
    {"{'a':1}", "expected a header in JSON"},
};

/* Parses a file made of a header, whose length field may be wrong, and 8 bytes of data. */
static vpps_status parse_parts(vpps_safetensors **file, uint64_t length, const char *header, size_t header_bytes) {
    FREED char *bytes = malloc(8 + header_bytes + 8);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, header, header_bytes);
    memset(bytes + 8 + header_bytes, 0x3f, 8);
    vpps_status status = open_bytes(file, "h", bytes, 8 + header_bytes + 8);
    return status;
}

TEST_GROUP("hostile safetensors", .seconds = 60, .before_each = (SFun)folder_make);

TEST_EACH(hostile_header, 0, VPPS_COUNT(hostile_headers)) {
    const struct hostile *c = &hostile_headers[_i];
    vpps_safetensors *file;
    vpps_status status = parse_parts(&file, strlen(c->header), c->header, strlen(c->header));
    if (c->message) {
        TEST_FAILS(status, VPPS_FORMAT, "h: not a valid safetensors file: ");
        CHECK_MESSAGE(c->message);
        ck_assert_ptr_null(file);
    } else {
        TEST_OK(status);
        ck_assert_uint_ne(walk(file), UINT64_MAX);
    }
    vpps_safetensors_close(file);
}

TEST(hostile_length) {
    static const char header[] = "{" ENTRY("a", "F32", "[2]", "[0,8]") "}";
    static const struct {
        uint64_t length;
        const char *message;
    } cases[] = {{UINT64_MAX, "expected a header of at most 100000000 bytes, found a size of 18446744073709551615"},
                 {1ull << 63, "expected a header of at most 100000000 bytes"},
                 {100000001, "expected a header of at most 100000000 bytes, found a size of 100000001"},
                 {100000000, "expected a header of 100000000 bytes, found the end of the file after 62"},
                 {sizeof header - 1 + 9, "expected a header of 63 bytes, found the end of the file after 62"},
                 {sizeof header - 1 + 8, "expected a header in JSON"},
                 {sizeof header - 2, "expected a header in JSON"},
                 {0, "expected the header to begin with '{'"}};
    vpps_safetensors *file;
    for (size_t i = 0; i < VPPS_COUNT(cases); i++)
        TEST_FAILS(parse_parts(&file, cases[i].length, header, sizeof header - 1), VPPS_FORMAT, cases[i].message);
}

TEST(deep_json_is_refused) {
    enum { DEPTH = 1000000 };
    static const char *const openings[] = {"[", "{\"a\":"};
    for (size_t i = 0; i < VPPS_COUNT(openings); i++) {
        size_t len = strlen(openings[i]), n = 5;
        FREED char *header = malloc(5 + DEPTH * len);
        vpps_safetensors *file;
        memcpy(header, "{\"a\":", 5);
        for (int d = 0; d < DEPTH; d++, n += len) memcpy(header + n, openings[i], len);
        TEST_FAILS(parse_parts(&file, n, header, n), VPPS_FORMAT, "at most 2,048 levels");
    }
}

TEST_GROUP("safetensors", .seconds = 60, .before_each = (SFun)folder_make);

TEST(unreadable_files) {
    vpps_safetensors *file;
    char *value;
    const char *folder = folder_make();
    TEST_FAILS(vpps_safetensors_open(&file, folder_path("absent")), VPPS_IO,
               "absent: cannot be opened: No such file or directory");
    TEST_FAILS(vpps_safetensors_open(&file, folder), VPPS_IO, "cannot be read: not a regular file");
    TEST_FAILS(vpps_checkpoint_metadata("/dev/zero", "k", &value), VPPS_IO,
               "/dev/zero: cannot be read: not a regular file");
    ck_assert_ptr_null(value);
}
