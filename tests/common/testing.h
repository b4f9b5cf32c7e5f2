/* testing.h - what the Check suites share: statuses with messages, checks that cannot run, size and seed from the environment. */
#pragma once

#include "base/base.h"
#include "vpps_data.h"

#include <check.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Check sends its parent a message for every assertion that holds, to tell after which one a check died. In loops these messages would take most of
 * some suites' time, and of the leak checker's, which searches in every child all that the parent has made of the messages. */
#define _mark_point(file, line) ((void)0)

/* ---- the checks of a program: test_main runs all of them, file by file and in the order of their lines
 *
 *   TEST(name) { ... }                   a check
 *   TEST_EACH(name, from, to) { ... }    one for each _i = from, ..., to - 1; none where from == to
 *   TEST_AGAIN(name, from, to);          further ones of the same body, in another group
 *   TEST_GROUP("name", .seconds = 60);   the group of the checks that follow in the file: a case of the suite, with fields of test_group.
 *                                        Checks in front of the first one are a case named as the suite
 *
 * main evaluates from, to and the fields, after what it has done before test_main. */
typedef struct test_group {
    const char *name;
    double seconds; /* processor seconds of each check; 0: CK_DEFAULT_TIMEOUT, else 60 */
    void (*before_each)(void), (*after_each)(void); /* run in the check's own process */
    void (*before)(void), (*after)(void);           /* run in the program, once */
    const char *left_out;                           /* why the group does not run here; NULL: it runs */
} test_group;

typedef struct test_item {
    const char *file;
    int line;
    test_group (*group)(void); /* begins a group; NULL: it is a check */
    const TTest *test;
    void (*range)(int *from, int *to);
    struct test_item *next;
} test_item;

void test_add(test_item *item);

#define TEST_JOIN_(a, b) a##b
#define TEST_JOIN(a, b) TEST_JOIN_(a, b)
#define TEST_ADD_(unique, ...)                                                                                         \
    __attribute__((constructor)) static void TEST_JOIN(unique, _add)(void) {                                           \
        static test_item item = {__FILE__, __LINE__, __VA_ARGS__, NULL};                                               \
        test_add(&item);                                                                                               \
    }
#define TEST_RANGE_(unique, from, to, test)                                                                            \
    static void TEST_JOIN(unique, _range)(int *first, int *end) { *first = (int)(from), *end = (int)(to); }            \
    TEST_ADD_(unique, NULL, test, TEST_JOIN(unique, _range))

#define TEST_EACH(name, from, to)                                                                                      \
    static void name##_fn(int);                                                                                        \
    static const TTest name##_ttest = {#name, name##_fn, __FILE__, __LINE__};                                          \
    TEST_RANGE_(name, from, to, &name##_ttest)                                                                         \
    static void name##_fn(int _i CK_ATTRIBUTE_UNUSED)
#define TEST(name) TEST_EACH(name, 0, 1)
#define TEST_AGAIN(name, from, to)                                                                                     \
    TEST_RANGE_(name##_again, from, to, &name##_ttest)                                                                 \
    struct test_item
#define TEST_GROUP(...)                                                                                                \
    static test_group TEST_JOIN(group_at_, __LINE__)(void) { return (test_group){.name = __VA_ARGS__}; }               \
    TEST_ADD_(TEST_JOIN(group_at_, __LINE__), TEST_JOIN(group_at_, __LINE__), NULL, NULL)                              \
    struct test_item

/* Runs all checks as a suite of this name; returns the program's exit status. A program without a main does this, named after itself. */
int test_main(const char *suite);
/* Call it before test_main if the program runs in parts. VPPS_TEST_PART=2/3: every third check of each TEST_EACH, from the second on. */
void test_in_parts(void);
int test_run(Suite *suite); /* another suite */

/* ---- what ends with the block that declares it, the last one first
 *
 *   FREED char *text = ...;                 free(text)
 *   AT_END(sn_close) small_network n = ...; sn_close(&n)
 *   OWNED(vpps_graph) *g = ...;             vpps_graph_destroy(g), as DESTROYED_BY says */
#define AT_END(function) VPPS_CLOSED_BY(function)
#define FREED VPPS_FREED
#define OWNED(type) AT_END(type##_owned) type
#define DESTROYED_BY(type, function)                                                                                   \
    static inline void type##_owned(type **owned) { function(*owned); }

DESTROYED_BY(vpps_model, vpps_model_destroy)
DESTROYED_BY(vpps_graph, vpps_graph_destroy)
DESTROYED_BY(vpps_handle, vpps_handle_destroy)
DESTROYED_BY(vpps_vocab, vpps_vocab_destroy)
DESTROYED_BY(vpps_treebank, vpps_treebank_destroy)
DESTROYED_BY(vpps_sentences, vpps_sentences_destroy)
DESTROYED_BY(vpps_lattices, vpps_lattices_destroy)
DESTROYED_BY(vpps_constituents, vpps_constituents_destroy)

/* Ends a test that gets no memory. */
static inline void *need(void *p) {
    if (!p) abort();
    return p;
}
static inline double *doubles(size_t n) { return need(calloc(n + 1, sizeof(double))); }

#define TEST_OK(call)                                                                                                  \
    do {                                                                                                               \
        const vpps_status test_status_ = (call);                                                                       \
        ck_assert_msg(test_status_ == VPPS_OK, "%s: %s: %s", #call, vpps_status_name(test_status_),                    \
                      vpps_error_message());                                                                           \
    } while (0)

/* Checks that the call fails with this status and that its message contains this text. */
#define TEST_FAILS(call, status, text)                                                                                 \
    do {                                                                                                               \
        const vpps_status test_status_ = (call);                                                                       \
        ck_assert_msg(test_status_ == (status), "%s: %s instead of %s: %s", #call, vpps_status_name(test_status_),     \
                      vpps_status_name(status), vpps_error_message());                                                 \
        ck_assert_msg(strstr(vpps_error_message(), text), "%s: the message \"%s\" lacks \"%s\"", #call,                \
                      vpps_error_message(), text);                                                                     \
    } while (0)

/* ---- how tests begin */
#define TEST_NEW_(type, name, parameters, ...)                                                                         \
    static inline type name parameters {                                                                               \
        type made;                                                                                                     \
        TEST_OK(__VA_ARGS__);                                                                                          \
        return made;                                                                                                   \
    }
TEST_NEW_(vpps_model *, new_model, (uint64_t seed), vpps_model_create(&made, seed))
TEST_NEW_(vpps_graph *, new_graph, (vpps_model * model), vpps_graph_create(&made, model))
TEST_NEW_(vpps_handle *, new_handle, (vpps_model * model, const vpps_options *o), vpps_handle_create(&made, model, o))
TEST_NEW_(vpps_param, add_matrix, (vpps_model * m, const char *name, uint32_t rows, uint32_t cols),
          vpps_add_matrix(m, &made, name, rows, cols, NULL))
TEST_NEW_(vpps_param, add_vector, (vpps_model * m, const char *name, uint32_t rows),
          vpps_add_vector(m, &made, name, rows, NULL))
TEST_NEW_(vpps_param, add_lookup, (vpps_model * m, const char *name, uint32_t count, uint32_t rows, uint32_t cols),
          vpps_add_lookup(m, &made, name, count, rows, cols, NULL))
TEST_NEW_(vpps_vocab *, new_vocab, (void), vpps_vocab_create(&made))
TEST_NEW_(vpps_treebank *, new_treebank, (void), vpps_treebank_create(&made))
TEST_NEW_(vpps_sentences *, new_sentences, (void), vpps_sentences_create(&made))
TEST_NEW_(vpps_lattices *, new_lattices, (void), vpps_lattices_create(&made))

/* APPLY(g, cell, CHILDREN(1, &v), PULLS(2, xs), INDICES(1, &word), ...) is a call of vpps_apply, with members of vpps_application. */
#define APPLY(g, ...) vpps_apply(g, VPPS_APPLICATION(.cell = __VA_ARGS__))
#define CHILDREN(n, ...) .n_children = n, .children = __VA_ARGS__
#define PULLS(n, ...) .n_pulls = n, .pulls = __VA_ARGS__
#define INDICES(n, ...) .n_indices = n, .indices = __VA_ARGS__

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

/* VPPS_TEST_SCALE=small, as under sanitizers: leaves out what sanitizers cannot find. */
static inline bool test_small(void) {
    const char *scale = getenv("VPPS_TEST_SCALE");
    return scale && strcmp(scale, "small") == 0;
}

/* Divides a number of cases by 10 with VPPS_TEST_SCALE=small. */
static inline uint32_t test_scaled(uint32_t n) { return test_small() ? (n + 9) / 10 : n; }

/* VPPS_TEST_SCALE=full: also runs what everyday tests leave out. */
static inline bool test_full(void) {
    const char *scale = getenv("VPPS_TEST_SCALE");
    return scale && strcmp(scale, "full") == 0;
}

/* VPPS_TEST_SEED draws other cases. */
static inline uint64_t test_seed(void) {
    const char *seed = getenv("VPPS_TEST_SEED");
    return seed ? strtoull(seed, NULL, 0) : 1;
}

/* VPPS_TEST_DEVICE: the device that runs the GPU's kernel, by default "simt". */
static inline const char *test_gpu_device(void) {
    const char *name = getenv("VPPS_TEST_DEVICE");
    return name && *name ? name : "simt";
}

/* VPPS_TEST_KERNELS=networks, as in make check-kernels: only what make test leaves out; all: both. */
static inline bool test_kernels(const char *which) {
    const char *kernels = getenv("VPPS_TEST_KERNELS");
    return kernels && strcmp(kernels, which) == 0;
}

/* Returns the path of a file in this program's folder, in one of four static buffers used in turn. */
const char *test_beside(const char *name);

/* Returns the path of a file of the data sets, in a static buffer; NULL: it does not exist. */
const char *test_data(const char *name);

/* Returns `to` for TEST_EACH: everyday tests run some of the checks, and tell that the others are left out. */
static inline int test_everyday(const char *what, int everyday, int all) {
    if (test_full()) return all;
    if (everyday < all && !test_kernels("networks"))
        TEST_LEFT_OUT("%d of %d %s: VPPS_TEST_SCALE=full has them", all - everyday, all, what);
    return everyday;
}
