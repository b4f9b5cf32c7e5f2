/* test_networks.c - every network of the table, by its row: how many parameters it has and how they begin, its equations,
 * where its dropout is, where it classifies, what it reads, gradients, what it learns, that the devices agree, and that
 * targets can be made word by word. A new network is covered by its row, but for the formula of its parameters
 * (row_tests.c), what they begin with (initial_tests.c), and its equations (equations.c). */
#include "fixture.h"

#include "runtime/simt/fiber.h"

int main(void) {
    Suite *s = suite_create("networks");
    suite_add_tcase(s, row_tests());
    suite_add_tcase(s, initial_tests());
    suite_add_tcase(s, equation_tests());
    suite_add_tcase(s, dropout_tests());
    suite_add_tcase(s, position_tests());
    if (VPPS_SIMT_TSAN) {
        TEST_LEFT_OUT("gradients of the reference: one thread makes them");
    } else {
        suite_add_tcase(s, gradient_tests());
    }
    suite_add_tcase(s, context_tests());
    suite_add_tcase(s, decoding_tests());
    suite_add_tcase(s, learning_tests());
    suite_add_tcase(s, two_type_tests());
    return test_main(s);
}
