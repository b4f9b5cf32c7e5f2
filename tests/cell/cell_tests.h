/* cell_tests.h - the cases of test_cell. */
#ifndef VPPS_TESTS_CELL_TESTS_H
#define VPPS_TESTS_CELL_TESTS_H

#include "common/testing.h"

TCase *pass_tests(void);     /* every pass keeps values */
TCase *simplify_tests(void); /* what simplify leaves out */
TCase *split_tests(void);    /* parts, stages, what is kept */
TCase *program_tests(void);  /* where programs and records hold values */
TCase *layout_tests(void);   /* where values lie */
TCase *print_tests(void);    /* cells as text */

#endif
