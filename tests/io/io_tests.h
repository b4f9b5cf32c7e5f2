/* io_tests.h - the suites of tests/io and what they share. */
#ifndef IO_TESTS_H
#define IO_TESTS_H

#include "base/base.h"
#include "common/testing.h"
#include "vpps_data.h"

TCase *encoding_tests(void);
TCase *compressed_tests(void);
TCase *treebank_tests(void);
TCase *vocab_tests(void);
TCase *listops_tests(void);
TCase *complete_trees_tests(void);
TCase *sentences_tests(void);
TCase *sentences_data_tests(void);
TCase *words_tests(void);
TCase *language_tests(void);
TCase *language_meaning_tests(void);
TCase *lattices_tests(void);
TCase *constituents_tests(void);
TCase *dependencies_tests(void);
TCase *edge_lists_tests(void);
TCase *vectors_tests(void);
TCase *f1_tests(void);
TCase *bleu_tests(void);
TCase *safetensors_tests(void);
TCase *hostile_tests(void);
TCase *atomic_tests(void);
TCase *json_tests(void);

/* The call succeeds; if not, its message is shown. */
#define CHECK_OK(call)                                                                                                 \
    do {                                                                                                               \
        vpps_status check_ok_ = (call);                                                                                \
        ck_assert_msg(check_ok_ == VPPS_OK, "%s: %s", vpps_status_name(check_ok_), vpps_error_message());              \
    } while (0)

#define CHECK_STATUS(call, wanted) ck_assert_str_eq(vpps_status_name(call), vpps_status_name(wanted))

/* The last message holds this text. */
#define CHECK_MESSAGE(text)                                                                                            \
    ck_assert_msg(strstr(vpps_error_message(), (text)) != NULL, "expected '%s' in '%s'", (text), vpps_error_message())

/* 1, or with VPPS_TEST_SCALE=small (slow, instrumented builds) 10: what repeats are divided by. */
int test_divisor(void);

/* A fresh folder that cleanup_folder removes, with all files in it. */
const char *make_folder(void);
void cleanup_folder(void);

/* FOLDER/NAME in a static buffer; four calls may be in use. */
const char *in_folder(const char *name);

void write_file(const char *path, const void *bytes, size_t n);

/* The path of a file of the data sets, in a static buffer. NULL when it is not there: then the test is skipped, or, where
 * it has checked something already, this is left out. */
const char *data_file(const char *test, const char *name);
const char *data_file_as_well(const char *test, const char *name);

/* All trees as text, freed by the caller. */
char *treebank_text(const vpps_treebank *tb, size_t *n);

#endif
