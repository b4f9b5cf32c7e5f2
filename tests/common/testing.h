/* testing.h - what the Check suites share: statuses with their messages, checks that cannot be made, size and seed from
 * the environment. */
#ifndef VPPS_TESTS_TESTING_H
#define VPPS_TESTS_TESTING_H

#include "vpps.h"

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Check sends the parent a message for every assertion that holds, to tell after which one a check died. Loops of them would be most
 * of some suites' time, and the leak checker's, which looks at all that the parent made of them anew in every child. */
#define _mark_point(file, line) ((void)0)

/* A check: TEST(name) { ... }, which tcase_add_test(tests, name) adds to a case. */
#define TEST(name) START_TEST(name)

#define TEST_OK(call)                                                                                                  \
    do {                                                                                                               \
        const vpps_status test_status_ = (call);                                                                       \
        ck_assert_msg(test_status_ == VPPS_OK, "%s: %s: %s", #call, vpps_status_name(test_status_),                    \
                      vpps_error_message());                                                                           \
    } while (0)

/* The call fails with this status, and its message holds this text. */
#define TEST_FAILS(call, status, text)                                                                                 \
    do {                                                                                                               \
        const vpps_status test_status_ = (call);                                                                       \
        ck_assert_msg(test_status_ == (status), "%s: %s instead of %s: %s", #call, vpps_status_name(test_status_),     \
                      vpps_status_name(status), vpps_error_message());                                                 \
        ck_assert_msg(strstr(vpps_error_message(), text), "%s: the message \"%s\" lacks \"%s\"", #call,                \
                      vpps_error_message(), text);                                                                     \
    } while (0)

/* ---- what cannot be checked here (no data, no compiler, another CPU): a line that tools/run_tests.sh counts
 *
 *   skipped: WHY     the whole check: it does not count as passed
 *   left out: WHY    a part of a check, or a check that no suite has here */

static inline __attribute__((format(printf, 2, 3))) void test_tell(const char *what, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("%s: ", what);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    fflush(stdout); /* before Check forks */
}

#define TEST_LEFT_OUT(...) test_tell("left out", __VA_ARGS__)
/* Ends the check. */
#define TEST_SKIP(...)                                                                                                 \
    do {                                                                                                               \
        test_tell("skipped", __VA_ARGS__);                                                                             \
        return;                                                                                                        \
    } while (0)

/* VPPS_TEST_SCALE=small, as under the sanitizers: leaves out what they see nothing of. */
static inline bool test_small(void) {
    const char *scale = getenv("VPPS_TEST_SCALE");
    return scale && strcmp(scale, "small") == 0;
}

/* It divides a number of cases by 10. */
static inline uint32_t test_scaled(uint32_t n) { return test_small() ? (n + 9) / 10 : n; }

/* VPPS_TEST_SCALE=full: also what everyday tests leave out. */
static inline bool test_full(void) {
    const char *scale = getenv("VPPS_TEST_SCALE");
    return scale && strcmp(scale, "full") == 0;
}

/* VPPS_TEST_SEED draws other cases. */
static inline uint64_t test_seed(void) {
    const char *seed = getenv("VPPS_TEST_SEED");
    return seed ? strtoull(seed, NULL, 0) : 1;
}

/* VPPS_TEST_DEVICE: the device that runs the GPU's kernel, "simt" unless said. */
static inline const char *test_gpu_device(void) {
    const char *name = getenv("VPPS_TEST_DEVICE");
    return name && *name ? name : "simt";
}

/* A case of the suite; seconds: that each of its tests may take, 0: as Check has it. */
static inline TCase *add_case(Suite *suite, const char *name, double seconds) {
    TCase *tests = tcase_create(name);
    if (seconds > 0) tcase_set_timeout(tests, seconds);
    suite_add_tcase(suite, tests);
    return tests;
}

static inline int test_main(Suite *suite) {
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
