/* test_networks.c - every network of the table, by its row: how many parameters it has and how they begin, its equations,
 * where its dropout is, where it classifies, what it learns, that the devices agree, and that targets can be made word
 * by word. A new network is covered by its row, but for the formula of its parameters (row_tests.c), what they begin with
 * (initial_tests.c), and its equations (equations.c). */
#include "fixture.h"
