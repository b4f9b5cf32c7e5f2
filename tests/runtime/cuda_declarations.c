/* cuda_declarations.c - compares runtime/gpu/cuda_api.h and cublas_api.h with the CUDA toolkit's headers, when this file is compiled and finds
 * them: every value, and the whole type of every function. */
#include "runtime/gpu/cublas_api.h"
#include "runtime/gpu/cuda_api.h"

#if __has_include(<cuda.h>) && __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#include <cuda.h>

#define X(name, theirs, value) _Static_assert((long long)(theirs) == (value), #theirs " has another value");
VPPS_CUDA_RESULTS(X)
VPPS_CUDA_CONSTANTS(X)
#undef X

#define X(symbol, parameters)                                                                                          \
    _Static_assert(__builtin_types_compatible_p(__typeof__(symbol), vpps_cu_result parameters),                        \
                   #symbol " is declared otherwise");
VPPS_CUDA_FUNCTIONS(X)
#undef X

#define AT(ours, theirs)                                                                                               \
    _Static_assert(offsetof(vpps_cu_copy_2d, ours) == offsetof(CUDA_MEMCPY2D, theirs), #theirs " is elsewhere");
AT(from_type, srcMemoryType)
AT(from, srcDevice)
AT(from_pitch, srcPitch)
AT(to_type, dstMemoryType)
AT(to, dstDevice)
AT(to_pitch, dstPitch)
AT(width_bytes, WidthInBytes)
AT(height, Height)
_Static_assert(sizeof(vpps_cu_copy_2d) == sizeof(CUDA_MEMCPY2D), "CUDA_MEMCPY2D has another size");

#define X(theirs, ours, value) _Static_assert((theirs) == (value), #theirs " has another value");
VPPS_CUBLAS_CONSTANTS(X)
#undef X

#define X(name, parameters)                                                                                            \
    _Static_assert(__builtin_types_compatible_p(__typeof__(name), unsigned parameters), #name " is declared "          \
                                                                                              "otherwise");
VPPS_CUBLAS_FUNCTIONS(X)
#undef X

const bool cuda_declarations_compared = true;
#else
const bool cuda_declarations_compared = false;
#endif
