/* vectors_tests.c - pretrained vectors: all formats give the same; and refusals. */
#include "io/text.h"
#include "io_tests.h"

#define NOTHING (-7.0f) /* initial value of all elements */

/* Reads bytes, as the file "t", into n vectors of `size`, whose elements were NOTHING. */
static vpps_status read_bytes(const void *bytes, size_t n_bytes, const vpps_vocab *words, uint32_t size, float *values,
                              vpps_vectors_found *found) {
    for (size_t i = 0; i < (size_t)vpps_vocab_size(words) * size; i++) values[i] = NOTHING;
    folder_store(folder_path("t"), bytes, n_bytes);
    return vpps_vectors_read(folder_path("t"), words, size, values, found);
}

/* ---------------------------------------------------------------- the forms, on the same vectors */

static const char *const asked[] = {"cat", "<unk>", "at home", "\xe4\xb8\xad", "dog", "2"};
enum { ASKED = 6, SIZE = 3, IN_FILE = 5 };

static const struct in_file {
    const char *word;
    float vector[SIZE];
} in_file[IN_FILE] = {{"dog", {1, -2.5f, 1e-5f}},
                      {"mouse", {0, 0, 0}},
                      {"2", {3, 4, 5}},
                      {"\xe4\xb8\xad", {-0.25f, 1e10f, 0.1f}},
                      {"dog", {9, 9, 9}}}; /* repeated: the first vector counts */

static void check_asked(const char *name, const float *values, vpps_vectors_found found) {
    ck_assert_msg(found.words == ASKED && found.found == 3, "%s: %u of %u", name, found.found, found.words);
    for (int w = 0; w < ASKED; w++) {
        const float *wanted = NULL;
        for (int i = IN_FILE; i-- > 0;)
            if (strcmp(in_file[i].word, asked[w]) == 0) wanted = in_file[i].vector;
        for (int k = 0; k < SIZE; k++) {
            const float want = wanted ? wanted[k] : NOTHING, got = values[w * SIZE + k];
            ck_assert_msg(got == want, "%s: %s[%d] is %g, not %g", name, asked[w], k, (double)got, (double)want);
        }
    }
}

/* How a file is written; with CR: its lines end with CR LF. */
enum {
    CR = 1,
    MARK = 2,
    TRAILING = 4,
    TABS = 8,
    WORD_TAB = 16,
    ALIGNED = 32,
    CAPITALS = 64,
    BLANK_END = 128,
    LINES = 256
};

static const struct way {
    const char *name;
    vpps_vectors_form form;
    int how;
} ways[] = {
    {"text", VPPS_VECTORS_TEXT, 0},
    {"text with spaces at line ends", VPPS_VECTORS_TEXT, TRAILING},
    {"text with CR LF", VPPS_VECTORS_TEXT, CR},
    {"text after a mark", VPPS_VECTORS_TEXT, MARK},
    {"text with tabs", VPPS_VECTORS_TEXT, TABS},
    {"text with aligned numbers", VPPS_VECTORS_TEXT, ALIGNED},
    {"text with capital E", VPPS_VECTORS_TEXT, CAPITALS},
    {"text with blank lines at its end", VPPS_VECTORS_TEXT, BLANK_END},
    {"GloVe", VPPS_VECTORS_GLOVE, 0},
    {"GloVe with CR LF", VPPS_VECTORS_GLOVE, CR},
    {"GloVe with tabs", VPPS_VECTORS_GLOVE, TABS},
    {"GloVe with a tab after the word", VPPS_VECTORS_GLOVE, WORD_TAB},
    {"GloVe with aligned numbers", VPPS_VECTORS_GLOVE, ALIGNED},
    {"GloVe with blank lines at its end", VPPS_VECTORS_GLOVE, BLANK_END},
    {"word2vec", VPPS_VECTORS_WORD2VEC, 0},
    {"word2vec with line ends", VPPS_VECTORS_WORD2VEC, LINES},
};

static char *written(const struct way *way, size_t *n) {
    char *bytes;
    FILE *file = open_memstream(&bytes, n);
    const bool binary = way->form == VPPS_VECTORS_WORD2VEC;
    const char *line_end = way->how & CR ? "\r\n" : "\n";
    if (way->how & MARK) fputs("\xef\xbb\xbf", file);
    if (way->form != VPPS_VECTORS_GLOVE) fprintf(file, "%d %d%s", IN_FILE, SIZE, line_end);
    for (int i = 0; i < IN_FILE; i++) {
        fputs(in_file[i].word, file);
        if (binary) {
            fputc(' ', file);
            fwrite(in_file[i].vector, sizeof(float), SIZE, file);
        }
        for (int k = 0; k < SIZE && !binary; k++) {
            fputc(way->how & TABS || (way->how & WORD_TAB && k == 0) ? '\t' : ' ', file);
            fprintf(file,
                    way->how & ALIGNED    ? "% .9g "
                    : way->how & CAPITALS ? "%.9E"
                                          : "%.9g",
                    (double)in_file[i].vector[k]);
        }
        if (way->how & TRAILING) fputc(' ', file);
        if (!binary || way->how & LINES) fputs(line_end, file);
    }
    if (way->how & BLANK_END) fputs("\n \t\r\n\n", file);
    ck_assert_int_eq(fclose(file), 0);
    return bytes;
}

TEST_GROUP("vectors", .before_each = (SFun)folder_make);

TEST_EACH(all_forms_give_the_same, 0, VPPS_COUNT(ways)) {
    OWNED(vpps_vocab) *words = vocab_of(ASKED, asked);
    vpps_vectors_found found = {0};
    vpps_vectors_info info;
    float values[ASKED * SIZE];
    size_t n;
    FREED char *bytes = written(&ways[_i], &n);
    TEST_OK(read_bytes(bytes, n, words, SIZE, values, &found));
    check_asked(ways[_i].name, values, found);
    TEST_OK(vpps_vectors_describe(folder_path("t"), &info));
    ck_assert_int_eq(info.form, ways[_i].form);
    ck_assert_uint_eq(info.size, SIZE);
    ck_assert_uint_eq(info.words, info.form == VPPS_VECTORS_GLOVE ? 0 : IN_FILE);
    TEST_FAILS(read_bytes(bytes, n, words, SIZE - 1, values, NULL), VPPS_ARGUMENT,
               "/t: expected vectors of 2 elements, found some of 3");
}

/* Some of GloVe's words hold spaces, even the first one. */
TEST(words_with_spaces) {
    static const char text[] = "the end 0.5 -1\nat home 2 3\n. . . 4 5\nx 1e3 +.25\n12 1 1\n";
    static const char *const words[] = {"at home", ". .", ". . .", "x", "at", "."};
    OWNED(vpps_vocab) *v = vocab_of(VPPS_COUNT(words), words);
    float values[VPPS_COUNT(words) * 2];
    vpps_vectors_found found;
    TEST_OK(read_bytes(text, sizeof text - 1, v, 2, values, &found));
    ck_assert_uint_eq(found.found, 3);
    static const float wanted[] = {2, 3, NOTHING, NOTHING, 4, 5, 1000, 0.25f, NOTHING, NOTHING, NOTHING, NOTHING};
    ck_assert_mem_eq(values, wanted, sizeof wanted);
}

TEST(numbers_are_those_of_c) {
    /* clang-format off */
    static const char *const good[] = {"0", "-0", "1", "+1.5", ".5", "5.", "1e5", "1E-5", "-1.e+2", "00012", "0.1", "0e999", "3.4e38",
                                       "1e-60", "1.17549435e-38", "123456789012345678901234567890", "0.000000000000000000000000012345"};
    /* clang-format on */
    static const char *const bad[] = {"",    "-",   ".",   "e5",   "1e",  "1e+", "1.5.5", "1,5",
                                      "nan", "inf", "0x1", "1e39", "--1", " 1",  "1 ",    "1e99999999999999999"};
    uint64_t random = 11;
    float value;
    for (size_t i = 0; i < VPPS_COUNT(good); i++) {
        ck_assert_msg(vpps_text_number(good[i], good[i] + strlen(good[i]), &value), "%s", good[i]);
        ck_assert_msg(value == strtof(good[i], NULL), "%s: %.9g", good[i], (double)value);
    }
    for (size_t i = 0; i < VPPS_COUNT(bad); i++)
        ck_assert_msg(!vpps_text_number(bad[i], bad[i] + strlen(bad[i]), &value), "%s", bad[i]);
    for (int i = 0; i < (int)test_scaled(100000); i++) { /* written with 9 digits, floats come back equal */
        char text[64];
        const uint32_t bits = (uint32_t)vpps_random(&random);
        float x;
        memcpy(&x, &bits, sizeof x);
        if (!isnormal(x)) continue;
        const int len = snprintf(text, sizeof text, "%.9g", (double)x);
        ck_assert(vpps_text_number(text, text + len, &value));
        ck_assert_msg(value == x, "%s: %.9g", text, (double)value);
    }
}

/* ---------------------------------------------------------------- what is refused */

static const struct bad_vectors {
    const char *text, *message;
    size_t n; /* 0: up to the NUL */
} bad_vectors[] = {
    {"", "t:1:1: expected vectors: how many there are and their size, or a word and its numbers, found end of file", 0},
    {"cat\n", "t:1:1: expected vectors: how many there are and their size, or a word and its numbers, found 'cat'", 0},
    {"(3 (2 It) (1 is))\n",
     "t:1:1: expected vectors: how many there are and their size, or a word and its numbers, found '(3'", 0},
    {"1 0\ncat\n", "t:1:1: expected vectors of 1 to 65536 elements, found 0", 0},
    {"1 65537\ncat\n", "t:1:1: expected vectors of 1 to 65536 elements, found 65537", 0},
    {"dog 1 2\ncat 1 x\n", "t:2:7: expected a number, found 'x'", 0},
    {"dog 1 2\ncat 1\n", "t:2:1: expected a word and 2 numbers, found 1 number", 0},
    {"dog 1 2\n\ncat 1 2\n", "t:2:1: expected a word and its numbers, found an empty line", 0},
    {"dog 1 2\ncat 1 nan\n", "t:2:7: expected a number, found 'nan'", 0},
    {"dog 1 2\n 1 2\n", "t:2:1: expected a word and 2 numbers, found 2 numbers", 0},
    {"dog 1 2\nmouse 1 2 3\ncat 1 2\n", "t:2:1: expected a word and 2 numbers, found 3 numbers", 0},
    {"2 2\ndog 1 2\nroute 66 1 2\n", "t:3:1: expected a word and 2 numbers, found 3 numbers", 0},
    {"dog 1 2\nmouse 1 2,5\n", "t:2:9: expected a number, found '2,5'", 0}, /* a word that is not wanted */
    {"dog\t1\t2\nmouse\t1\n", "t:2:1: expected a word and 2 numbers, found 1 number", 0},
    {"1 2\ncat 1 2 3\n", "t:2:1: expected a word and 2 numbers, found 3 numbers", 0}, /* the header does not fit */
    {"dog 1 2\ncat 1 2\n\n \nmouse 1 2\n", "t:3:1: expected a word and its numbers, found an empty line", 0},
    {"2 2\ncat 1E\xff 2\ndog 1 2\n", "t:2:5: expected a number, found '1E'", 0},
    {"2 2\r\ncat 1 2\n", "t:1:1: expected as many words as follow, 1, found 2", 0},
    {"1 2\ncat 1 2\ndog 1 2\n", "t:3:1: expected as many words as line 1 says, found more", 0},
    {"2 2\ncat \0\0\x80?\0\0\x80?dog \0\0\x80?\0\0\x80", "t: word 2: expected all of its vector, found end of file",
     27},
    {"2 2\ncat \0\0\x80?\0\0\x80?", "t: word 2: expected a word and its vector, found end of file", 16},
    {"2 2\ncat \0\0\x80?\0\0\x80?\n", "t: word 2: expected a word and its vector, found end of file", 17},
    {"2 2\ncat \0\0\x80?\0\0\x80?dog", "t: word 2: expected a space after the word, found none", 19},
    {"2 2\ncat \0\0\x80?\0\0\x80? x", "t: word 2: expected a word, found a space", 18},
    {"1 2\ncat \0\0\x80?\0\0\x80\x7f", "t: word 1: expected finite numbers, found others", 16},
    {"1 2\ncat \0\0\x80?\0\0\x80?\ndog", "t: word 2: expected no more words than the first line says, found more", 20},
    {"\xba\x16\x4f\x2f\x0c\0\0\0", "t: fastText's binary models are not read; use the .vec file", 8},
};

TEST_EACH(bad_vectors_are_refused, 0, VPPS_COUNT(bad_vectors)) {
    const struct bad_vectors *b = &bad_vectors[_i];
    static const char *const words[] = {"cat"};
    OWNED(vpps_vocab) *v = vocab_of(1, words);
    float values[2];
    CHECK_STATUS(read_bytes(b->text, b->n ? b->n : strlen(b->text), v, 2, values, NULL), VPPS_FORMAT);
    ck_assert_str_eq(strrchr(vpps_error_message(), '/') + 1, b->message);
}

/* The first line determines how many numbers a vector has. */
TEST(a_short_first_line_is_refused) {
    OWNED(vpps_vocab) *v = vocab_of(0, NULL);
    float values[2];
    TEST_FAILS(read_bytes("cat 1\ndog 1 2\n", 14, v, 2, values, NULL), VPPS_ARGUMENT,
               "/t: expected vectors of 2 elements, found some of 1");
}

TEST(missing_files_are_named) {
    vpps_vectors_info info;
    OWNED(vpps_vocab) *v = vocab_of(0, NULL);
    TEST_FAILS(vpps_vectors_describe("no/such/file", &info), VPPS_IO, "no/such/file: cannot be opened");
    float values[2];
    CHECK_STATUS(vpps_vectors_read("no/such/file", v, 2, values, NULL), VPPS_IO);
}

static const struct form_case {
    const char *name, *text;
    size_t n; /* 0: up to the NUL */
    vpps_vectors_form form;
    uint32_t size;
} form_cases[] = {
    /* 0.01f is 0A D7 23 3C: a line feed after the first word */
    {"a float that holds a line feed",
     "2 1\ncat \x0a\xd7\x23\x3c"
     "dog \x0a\xd7\x23\x3c",
     20, VPPS_VECTORS_WORD2VEC, 1},
    {"with a line feed after it", "1 2\ncat \x0a\xd7\x23\x3c\0\0\x80?\n", 17, VPPS_VECTORS_WORD2VEC, 2},
    {"a header, then numbers in any form", "1 2\ncat 1.5E-2  -.5\n", 0, VPPS_VECTORS_TEXT, 2},
    {"a header with tabs", "1\t2 \ncat\t1\t2\n", 0, VPPS_VECTORS_TEXT, 2},
    {"a header alone", "0 2\n", 0, VPPS_VECTORS_TEXT, 2},
    {"a word that is a number", "66 1 2\ncat 1 2\n", 0, VPPS_VECTORS_GLOVE, 2},
    {"a line feed and a word in a float",
     "1 2\ncat \0\0\x80?\x0a"
     "d\x80?\n",
     17, VPPS_VECTORS_WORD2VEC, 2},
    {"bytes that are no UTF-8 in text", "1 2\ncaf\xe9 1 2\n", 0, VPPS_VECTORS_TEXT, 2},
    {"a header that does not fit", "7 5\n8 6\n9 1.5\n", 0, VPPS_VECTORS_TEXT, 5},
};

TEST_EACH(the_first_lines_decide_the_form, 0, VPPS_COUNT(form_cases)) {
    const struct form_case *c = &form_cases[_i];
    vpps_vectors_info info;
    folder_store(folder_path("t"), c->text, c->n ? c->n : strlen(c->text));
    TEST_OK(vpps_vectors_describe(folder_path("t"), &info));
    ck_assert_msg(info.form == c->form && info.size == c->size, "%s: form %d of size %u", c->name, (int)info.form,
                  info.size);
}

/* More bytes than a stream's buffers hold, in both formats. */
TEST_EACH(many_vectors, 0, 2) {
    enum { MANY = 5000, WIDE = 60 };
    uint64_t random = 5;
    size_t n;
    FREED char *bytes;
    FREED float *wanted = malloc(MANY * WIDE * sizeof *wanted), *values = malloc(MANY * WIDE * sizeof *values);
    OWNED(vpps_vocab) *words = new_vocab();
    FILE *file = open_memstream(&bytes, &n);
    fprintf(file, "%d %d\n", MANY, WIDE);
    for (int i = 0; i < MANY; i++) {
        float *vector = wanted + (size_t)i * WIDE;
        uint32_t id;
        char word[16];
        const int len = snprintf(word, sizeof word, "w%d", i);
        TEST_OK(vpps_vocab_add(words, word, (size_t)len, &id));
        for (int k = 0; k < WIDE; k++) vector[k] = vpps_random_unit(&random) - 0.5f;
        fputs(word, file);
        if (_i) fputc(' ', file);
        if (_i) fwrite(vector, sizeof *vector, WIDE, file);
        for (int k = 0; k < WIDE && !_i; k++) fprintf(file, " %.9g", (double)vector[k]);
        fputc('\n', file);
    }
    ck_assert_int_eq(fclose(file), 0);
    vpps_vectors_found found;
    TEST_OK(read_bytes(bytes, n, words, WIDE, values, &found));
    ck_assert_uint_eq(found.found, MANY);
    ck_assert(memcmp(values, wanted, MANY * WIDE * sizeof *values) == 0);
}
