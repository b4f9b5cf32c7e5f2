/* test_cell.c - the compiler of cells. */
#include "common/testing.h"
