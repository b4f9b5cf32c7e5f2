/* encoding_tests.c - text as other editors and systems write it: a byte order mark, lines that end with CR LF, UTF-16. */
#include "forms.h"

#define MARK "\xef\xbb\xbf"

/* Returns the text with or without a byte order mark before each line (joined files have several), and with or without CR at line ends. */
static char *written_otherwise(const char *text, size_t n, bool mark, bool cr, size_t *out_n) {
    char *out = malloc(4 * n + sizeof MARK), *end = out;
    for (size_t i = 0; i < n; i++) {
        if (mark && (i == 0 || text[i - 1] == '\n')) end = (char *)memcpy(end, MARK, 3) + 3;
        if (cr && text[i] == '\n') *end++ = '\r';
        *end++ = text[i];
    }
    *out_n = (size_t)(end - out);
    return out;
}

static void check_written_otherwise(const form *f, const char *text, size_t n) {
    FREED char *wanted = form_text(f, NULL, text, n);
    for (int way = 1; way < 4; way++) {
        size_t n_other;
        FREED char *other = written_otherwise(text, n, way & 1, way & 2, &n_other);
        FREED char *shown = form_text(f, NULL, other, n_other);
        ck_assert_msg(strcmp(shown, wanted) == 0, "%s%s%s: other data", f->name, way & 1 ? " after a mark" : "",
                      way & 2 ? " with CR LF" : "");
    }
}

TEST_GROUP("encoding", .seconds = 60, .before_each = (SFun)folder_make);

TEST_EACH(marks_and_line_ends_change_nothing, 0, n_forms) {
    const form *f = &forms[_i];
    check_written_otherwise(f, f->small.text, strlen(f->small.text));
    if (!f->file) return;
    const char *path = data_file_as_well("marks_and_line_ends_change_nothing", f->file);
    if (!path) return;
    size_t n;
    FREED char *text = folder_load(path, &n);
    check_written_otherwise(f, text, n);
}

TEST_EACH(files_are_read, 0, n_forms) {
    const reading *small = &forms[_i].small;
    const char *path = folder_path("file"), *absent = folder_path("absent"), *folder = folder_path(".");
    FREED char *wanted = form_text(&forms[_i], NULL, small->text, 0), *shown, *nothing;
    uint32_t n_words;
    folder_store(path, small->text, strlen(small->text));
    FREED char *found = form_text(&forms[_i], path, NULL, 0);
    ck_assert_str_eq(found, wanted);
    reading r = {small->format, small->options, NULL, 0, absent, NULL};
    TEST_FAILS(form_try(&r, &shown, &n_words), VPPS_IO, "absent: cannot be opened: No such file or directory");
    r.path = folder;
    TEST_FAILS(form_try(&r, &nothing, &n_words), VPPS_IO, "cannot be read: Is a directory");
}

TEST_EACH(utf_16_is_named, 0, n_forms) {
    static const struct {
        const char *text;
        size_t n;
    } texts[] = {{"\xff\xfe(\0a\0", 6}, {"\xfe\xff\0(\0a", 6}, {"\xff\xfe", 2}};
    for (size_t i = 0; i < VPPS_COUNT(texts); i++) {
        const reading r = {forms[_i].small.format, forms[_i].small.options, texts[i].text, texts[i].n, NULL, NULL};
        form_refuses(&r, "t:1:1: expected UTF-8 text, found the byte order mark of UTF-16");
    }
}

TEST_EACH(nul_bytes_are_refused, 0, n_forms) {
    const reading *small = &forms[_i].small;
    char text[256];
    const size_t n = strlen(small->text);
    for (size_t at = 0; at < n; at++) {
        const reading r = {small->format, small->options, text, n, NULL, NULL};
        FREED char *shown;
        uint32_t n_words;
        memcpy(text, small->text, n);
        text[at] = '\0';
        CHECK_STATUS(form_try(&r, &shown, &n_words), VPPS_FORMAT);
    }
}

/* Columns are those that an editor shows. */
TEST(columns_are_counted_from_behind_the_mark) {
    OWNED(vpps_sentences) *s = new_sentences();
    form_refuses(&(reading){TREES, NULL, MARK "(x a)", 0, NULL, NULL},
                 "t:1:2: expected a label from -1 to 999, found 'x'");
    form_refuses(&(reading){TAGGED, NULL, MARK "a|O b", 0, NULL, NULL}, "t:1:5: expected word|TAG, found 'b'");
    form_refuses(&(reading){TAGGED, NULL, "a|O\n" MARK "b|O c", 0, NULL, NULL}, "t:2:5: expected word|TAG, found 'c'");
    form_takes(&(reading){TREES, NULL, MARK, 0, NULL, NULL}, "");
    TEST_OK(vpps_sentences_read_lines_text(s, "t", "a " MARK "\n", 6, NULL)); /* elsewhere the mark is a word */
    ck_assert_uint_eq(vpps_sentences_total_words(s), 2);
}

TEST(message_about_a_message) {
    vpps_fail(VPPS_FORMAT, "the first");
    TEST_FAILS(vpps_fail(VPPS_FORMAT, "%s; and %s", vpps_error_message(), vpps_error_message()), VPPS_FORMAT,
               "the first; and the first");
}

static ssize_t write_nothing(void *cookie, const char *bytes, size_t n) {
    (void)cookie;
    (void)bytes;
    (void)n;
    return 0;
}

/* A text that is cut, since there was no memory for its rest, is no text. */
TEST(text_without_memory) {
    size_t n;
    char *text = NULL;
    FILE *f = open_memstream(&text, &n);
    fputs("whole", f);
    TEST_OK(vpps_text_end(f, VPPS_OK, &text));
    ck_assert_str_eq(text, "whole");
    f = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_nothing});
    fputs("the rest", f);
    TEST_FAILS(vpps_text_end(f, VPPS_OK, &text), VPPS_MEMORY, "no memory for a text");
    ck_assert_ptr_null(text);
    TEST_FAILS(vpps_text_end(NULL, VPPS_OK, &text), VPPS_MEMORY, "no memory for a text");
    ck_assert_int_eq(vpps_text_end(open_memstream(&text, &n), VPPS_FORMAT, &text), VPPS_FORMAT);
    ck_assert_ptr_null(text);
}
