/* cuda_api.c - opens the CUDA driver at run time. */
#include "runtime/gpu/cuda_api.h"
#include "base/library.h"

#include <dlfcn.h>

vpps_status vpps_cuda_open(vpps_cuda *out) {
    const char *own = getenv("VPPS_LIBCUDA"), *name = own && *own ? own : "libcuda.so.1";
    *out = (vpps_cuda){.library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)};
    if (!out->library) {
        const char *why = dlerror();
        return vpps_fail(VPPS_DEVICE, "cuda: no GPU driver: %s", why ? why : name);
    }
#define X(symbol, parameters) VPPS_TRY(vpps_library_find("cuda", out->library, #symbol, &out->symbol));
    VPPS_CUDA_FUNCTIONS(X)
#undef X
    return VPPS_OK;
}

void vpps_cuda_close(vpps_cuda *api) {
    if (api->library) dlclose(api->library);
    memset(api, 0, sizeof *api);
}

vpps_status vpps_cuda_failed(const vpps_cuda *api, const char *what, vpps_cu_result code) {
    const char *name = NULL, *text = NULL;
    if (api->cuGetErrorName(code, &name) != VPPS_CU_SUCCESS || !name) name = "a code without a name";
    if (api->cuGetErrorString(code, &text) != VPPS_CU_SUCCESS || !text) text = "of which the driver says nothing";
    return vpps_fail(VPPS_DEVICE, "cuda: %s: %s (%u, %s)", what, name, code, text);
}
