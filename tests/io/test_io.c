/* test_io.c - data readers and checkpoint files: the main program, and what the suites share. */
#include "io_tests.h"

static const char *find_data(const char *otherwise, const char *test, const char *name) {
    const char *path = test_data(name);
    if (!path) test_tell(otherwise, "%s: no %s (set VPPS_DATA to the folder of data sets)", test, name);
    return path;
}

const char *data_file(const char *test, const char *name) { return find_data("skipped", test, name); }
const char *data_file_as_well(const char *test, const char *name) { return find_data("left out", test, name); }

vpps_vocab *vocab_of(size_t n, const char *const *words) {
    uint32_t id;
    vpps_vocab *v = new_vocab();
    for (size_t i = 0; i < n; i++) TEST_OK(vpps_vocab_add(v, words[i], strlen(words[i]), &id));
    return v;
}
