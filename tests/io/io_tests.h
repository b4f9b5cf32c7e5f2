/* io_tests.h - the suites of tests/io, and what they share. */
#pragma once

#include "common/folder.h"

#define CHECK_STATUS(call, wanted) ck_assert_str_eq(vpps_status_name(call), vpps_status_name(wanted))

/* Checks that the last message has this text. */
#define CHECK_MESSAGE(text)                                                                                            \
    ck_assert_msg(strstr(vpps_error_message(), (text)) != NULL, "expected '%s' in '%s'", (text), vpps_error_message())

vpps_vocab *vocab_of(size_t n, const char *const *words);

/* Returns the path of a file of the data sets, in a static buffer. NULL if the file does not exist: then the test is skipped, or, if it has checked
 * something already, this part is left out. */
const char *data_file(const char *test, const char *name);
const char *data_file_as_well(const char *test, const char *name);
