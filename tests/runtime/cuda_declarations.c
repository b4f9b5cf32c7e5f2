/* cuda_declarations.c - compares runtime/gpu/cuda_api.h with the CUDA toolkit's headers, when this file is compiled and finds
 * them: every value, and the whole type of every function.
 */
#include "cuda_declarations.h"

#include "runtime/gpu/cuda_api.h"

#if __has_include(<cuda.h>)
#include <cuda.h>

#define X(name, theirs, value) _Static_assert((long long)(theirs) == (value), #theirs " has another value");
VPPS_CUDA_RESULTS(X)
VPPS_CUDA_CONSTANTS(X)
#undef X

#define X(symbol, parameters)                                                                                          \
    _Static_assert(__builtin_types_compatible_p(__typeof__(symbol), vpps_cu_result parameters),                        \
                   #symbol " is declared otherwise");
VPPS_CUDA_FUNCTIONS(X)
VPPS_CUDA_OPTIONAL_FUNCTIONS(X)
#undef X

const bool cuda_declarations_compared = true;
#else
const bool cuda_declarations_compared = false;
#endif
