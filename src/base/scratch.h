/* scratch.h - memory that is freed at the end of a scope. */
#pragma once

#include <stddef.h>

/* Returns zeroed memory for a variable marked VPPS_FREED; NULL: out of memory. Of malloc's memory clang's analyzer would report that it is
 * lost, since it ignores the mark. */
void *vpps_scratch(size_t bytes);
