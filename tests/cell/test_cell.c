/* test_cell.c - the compiler of cells. */
#include "common/testing.h"

int main(void) { return test_main("cell"); }
