/* test_io.c - data readers and checkpoint files: the runner and what the suites share. */
#include "io_tests.h"

#include <unistd.h>

static const char *find_data(const char *otherwise, const char *test, const char *name) {
    static char path[1024];
    const char *data = getenv("VPPS_DATA");
    snprintf(path, sizeof path, "%s/%s", data && *data ? data : "../shared/data", name);
    if (access(path, R_OK) == 0) return path;
    test_tell(otherwise, "%s: no %s (set VPPS_DATA to the folder of data sets)", test, path);
    return NULL;
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

int main(void) { return test_main("io"); }
