/* testing.c - see testing.h. */
#include "common/testing.h"

#include <unistd.h>

static test_item *items;
static int n_items;

void test_add(test_item *item) {
    item->next = items;
    items = item;
    n_items++;
}

static int by_line(const void *a, const void *b) {
    const test_item *const *x = a, *const *y = b;
    const int files = strcmp((*x)->file, (*y)->file);
    return files ? files : (*x)->line - (*y)->line;
}

/* This process runs part number so many of each check's range. */
static int number = 1, parts = 1;

void test_in_parts(void) {
    const char *text = getenv("VPPS_TEST_PART");
    if (!text || (sscanf(text, "%d/%d", &number, &parts) == 2 && number >= 1 && number <= parts)) return;
    fprintf(stderr, "VPPS_TEST_PART is %s; expected NUMBER/PARTS\n", text);
    exit(2);
}

static TCase *add_group(Suite *suite, const test_group *group) {
    if (group->left_out) {
        TEST_LEFT_OUT("%s: %s", group->name, group->left_out);
        return NULL;
    }
    TCase *tests = tcase_create(group->name);
    if (group->seconds > 0) tcase_set_timeout(tests, group->seconds);
    if (group->before_each || group->after_each)
        tcase_add_checked_fixture(tests, group->before_each, group->after_each);
    if (group->before || group->after) tcase_add_unchecked_fixture(tests, group->before, group->after);
    suite_add_tcase(suite, tests);
    return tests;
}

int test_run(Suite *suite) {
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int test_main(const char *name) {
    int n = 0;
    test_item **sorted = calloc((size_t)n_items, sizeof(*sorted));
    if (!sorted) return EXIT_FAILURE;
    for (test_item *item = items; item; item = item->next) sorted[n++] = item;
    qsort(sorted, (size_t)n, sizeof(*sorted), by_line);

    Suite *suite = suite_create(name);
    TCase *tests = NULL;
    bool left_out = false;
    for (int k = 0; k < n; k++) {
        const test_item *item = sorted[k];
        if (k && strcmp(item->file, sorted[k - 1]->file)) tests = NULL, left_out = false;
        if (item->group) {
            const test_group group = item->group();
            tests = add_group(suite, &group);
            left_out = !tests;
        } else if (!left_out) {
            int from, to;
            item->range(&from, &to);
            if (test_kernels("networks") && from == 0) continue;
            if (!tests) tests = add_group(suite, &(test_group){.name = name});
            for (int i = from + number - 1; i < to; i += parts) tcase_add_loop_test(tests, item->test, i, i + 1);
        }
    }
    free(sorted);
    return test_run(suite);
}

const char *test_data(const char *name) {
    static char path[1024];
    const char *data = getenv("VPPS_DATA");
    snprintf(path, sizeof path, "%s/%s", data && *data ? data : "../shared/data", name);
    return access(path, R_OK) == 0 ? path : NULL;
}
