/* testing.c - see testing.h. */
#include "common/testing.h"

#include <sys/resource.h>
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

/* This process runs part `number` of `parts` of each check's range. */
static int number = 1, parts = 1;

void test_in_parts(void) {
    const char *text = getenv("VPPS_TEST_PART");
    if (!text || (sscanf(text, "%d/%d", &number, &parts) == 2 && number >= 1 && number <= parts)) return;
    fprintf(stderr, "VPPS_TEST_PART is %s; expected NUMBER/PARTS\n", text);
    exit(2);
}

/* ---------------------------------------------------------------- time
 *
 * A check may use its seconds of each processor: time in which it waits for one, on a busy machine, does not count. Check's own limit is
 * one of time that passes: it is for a check that waits for ever, and no longer where a sanitizer makes the first limit longer. */
enum { USUAL_SECONDS = 60, PATIENCE = 20 };

/* Returns how many times longer than usual the time limits are, by Check's variable. */
static double factor_of_limits(void) {
    const char *factor = getenv("CK_TIMEOUT_MULTIPLIER");
    return factor ? atof(factor) : 1;
}

static double seconds_of(const test_group *group) {
    const char *usual = getenv("CK_DEFAULT_TIMEOUT");
    return group->seconds > 0 ? group->seconds : usual ? atof(usual) : USUAL_SECONDS;
}

/* Limits the processor time of the checks' processes, which inherit the limit; not of a program that runs its checks in one process. */
static void limit_processors(double seconds) {
    const char *fork = getenv("CK_FORK");
    struct rlimit limit;
    if ((fork && strcmp(fork, "no") == 0) || getrlimit(RLIMIT_CPU, &limit) != 0) return;
    const double all = seconds * factor_of_limits() * (double)sysconf(_SC_NPROCESSORS_ONLN);
    if (limit.rlim_max == RLIM_INFINITY || all < (double)limit.rlim_max) limit.rlim_cur = (rlim_t)all + 1;
    setrlimit(RLIMIT_CPU, &limit);
}

static TCase *add_group(Suite *suite, const test_group *group) {
    if (group->left_out) {
        TEST_LEFT_OUT("%s: %s", group->name, group->left_out);
        return NULL;
    }
    TCase *tests = tcase_create(group->name);
    tcase_set_timeout(tests, PATIENCE * seconds_of(group) / factor_of_limits());
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
    bool left_out = false, any = false;
    double most = seconds_of(&(test_group){.name = name});
    for (int k = 0; k < n; k++) {
        const test_item *item = sorted[k];
        if (k && strcmp(item->file, sorted[k - 1]->file)) tests = NULL, left_out = false;
        if (item->group) {
            const test_group group = item->group();
            tests = add_group(suite, &group);
            left_out = !tests;
            if (seconds_of(&group) > most) most = seconds_of(&group);
        } else if (!left_out) {
            int from, to;
            item->range(&from, &to);
            if (test_kernels("networks") && from == 0) continue;
            if (!tests) tests = add_group(suite, &(test_group){.name = name});
            for (int i = from + number - 1; i < to; i += parts, any = true)
                tcase_add_loop_test(tests, item->test, i, i + 1);
        }
    }
    free(sorted);
    if (!any && parts > 1) TEST_LEFT_OUT("part %d of %d: it has no check", number, parts);
    limit_processors(most);
    return test_run(suite);
}

/* A program FOLDER_test_NAME_OF_IT runs the suite "name of it". */
__attribute__((weak)) int main(int argc, char **argv) {
    const char *own = argc ? strstr(argv[0], "_test_") : NULL;
    char name[64];
    snprintf(name, sizeof name, "%s", own ? own + strlen("_test_") : "tests");
    for (char *c = name; *c; c++)
        if (*c == '_') *c = ' ';
    return test_main(name);
}

const char *test_data(const char *name) {
    static char path[1024];
    const char *data = getenv("VPPS_DATA");
    snprintf(path, sizeof path, "%s/%s", data && *data ? data : "../shared/data", name);
    return access(path, R_OK) == 0 ? path : NULL;
}

const char *test_beside(const char *name) {
    static char paths[4][4096];
    static unsigned turn;
    char *path = paths[++turn % VPPS_COUNT(paths)];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof *paths - 1);
    path[n > 0 ? n : 0] = '\0';
    char *own = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    snprintf(own, sizeof *paths - (size_t)(own - path), "%s", name);
    return path;
}
