/* nccl_declarations.c - compares runtime/comm/nccl_api.h with NCCL's header, when this file is compiled and finds it (and the
 * CUDA toolkit's, which it includes). */
#include "runtime/comm/nccl_api.h"

#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <nccl.h>

#define X(theirs, ours, value) _Static_assert((theirs) == (value), #theirs " has another value");
VPPS_NCCL_CONSTANTS(X)
#undef X
_Static_assert(sizeof(ncclUniqueId) == sizeof(vpps_nccl_id), "ncclUniqueId has another size");

/* The identifier's type has no name to compare it by. */
#define vpps_nccl_id ncclUniqueId
#define X(name, parameters)                                                                                            \
    _Static_assert(__builtin_types_compatible_p(__typeof__(name), unsigned parameters), #name " is declared "          \
                                                                                              "otherwise");
VPPS_NCCL_FUNCTIONS(X)
#undef X
#undef vpps_nccl_id

const bool nccl_declarations_compared = true;
#else
const bool nccl_declarations_compared = false;
#endif
