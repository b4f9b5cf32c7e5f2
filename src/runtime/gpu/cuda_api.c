/* cuda_api.c - opens the CUDA driver at run time. */
#include "runtime/gpu/cuda_api.h"

#include <dlfcn.h>

static const struct {
    const char *symbol;
    size_t at; /* offset, in bytes, of the function's pointer in vpps_cuda */
} entries[] = {
#define X(symbol, parameters) {#symbol, offsetof(vpps_cuda, symbol)},
    VPPS_CUDA_FUNCTIONS(X)
#undef X
};

/* Opens the driver's library and returns dlopen's handle; NULL: it cannot be opened, and the error message is set. */
static void *open_library(void) {
    const char *own = getenv("VPPS_LIBCUDA"), *name = own && *own ? own : "libcuda.so.1";
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library) return library;
    const char *why = dlerror();
    vpps_fail(VPPS_DEVICE, "cuda: no GPU driver: %s", why ? why : name);
    return NULL;
}

vpps_status vpps_cuda_open(vpps_cuda *out) {
    *out = (vpps_cuda){0};
    void *library = open_library();
    if (!library) return VPPS_DEVICE;
    out->library = library;
    for (size_t i = 0; i < VPPS_COUNT(entries); i++) {
        void *symbol = dlsym(library, entries[i].symbol);
        if (!symbol) {
            vpps_cuda_close(out);
            return vpps_fail(VPPS_DEVICE, "cuda: the library lacks %s: it is too old", entries[i].symbol);
        }
        memcpy((char *)out + entries[i].at, &symbol, sizeof symbol); /* POSIX lets a function's address fit a void * */
    }
    return VPPS_OK;
}

vpps_status vpps_cuda_installed(void) {
    void *library = open_library();
    if (!library) return VPPS_DEVICE;
    dlclose(library);
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
