/* test_cell.c - the compiler of cells. */
#include "cell_tests.h"
#include "common/testing.h"

int main(void) {
    Suite *suite = suite_create("cell");
    suite_add_tcase(suite, pass_tests());
    suite_add_tcase(suite, simplify_tests());
    suite_add_tcase(suite, split_tests());
    suite_add_tcase(suite, program_tests());
    suite_add_tcase(suite, layout_tests());
    suite_add_tcase(suite, print_tests());
    return test_main(suite);
}
