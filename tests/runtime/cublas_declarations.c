/* cublas_declarations.c - compares runtime/gpu/cublas_api.h with cuBLAS's header, when this file is compiled and finds it: every value, and
 * the whole type of every function. */
#include "cuda_declarations.h"

#include "runtime/gpu/cublas_api.h"

#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>

#define X(theirs, ours, value) _Static_assert((theirs) == (value), #theirs " has another value");
VPPS_CUBLAS_CONSTANTS(X)
#undef X

#define X(name, parameters)                                                                                            \
    _Static_assert(__builtin_types_compatible_p(__typeof__(name), unsigned parameters), #name " is declared "          \
                                                                                              "otherwise");
VPPS_CUBLAS_FUNCTIONS(X)
#undef X

const bool cublas_declarations_compared = true;
#else
const bool cublas_declarations_compared = false;
#endif
