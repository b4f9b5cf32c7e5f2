/* test_io.c - data readers and checkpoint files: the main program, and what the suites share. */
#include "io_tests.h"

static const char *find_data(const char *otherwise, const char *test, const char *name) {
    const char *path = test_data(name);
    if (!path) test_tell(otherwise, "%s: no %s (set VPPS_DATA to the folder of data sets)", test, name);
    return path;
}

const char *data_file(const char *test, const char *name) { return find_data("skipped", test, name); }
const char *data_file_as_well(const char *test, const char *name) { return find_data("left out", test, name); }

char *treebank_text(const vpps_treebank *tb, size_t *n) {
    char *text = NULL;
    FILE *file = open_memstream(&text, n);
    ck_assert(file != NULL);
    for (uint32_t i = 0; i < vpps_treebank_size(tb); i++) TEST_OK(vpps_treebank_write(tb, i, file));
    ck_assert_int_eq(fclose(file), 0);
    return text;
}
