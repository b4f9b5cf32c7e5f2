/* nvrtc.c - loads NVRTC, NVIDIA's run-time compiler, and finds its functions. The library is never closed, since its threads go on. */
#include "codegen/nvrtc.h"
#include "base/library.h"

#include <dlfcn.h>
#include <limits.h>

static vpps_nvrtc library;

static int major_of(void *handle) {
    int (*version)(int *, int *);
    int major, minor;
    void *address = dlsym(handle, "nvrtcVersion");
    memcpy(&version, &address, sizeof version);
    return address && version(&major, &minor) == VPPS_NVRTC_SUCCESS ? major : 0;
}

static vpps_status find_functions(const vpps_library *l, void *handle) {
#define X(result, name, parameters) VPPS_TRY(vpps_library_find(l->title, handle, #name, &library.name));
    VPPS_NVRTC_TABLE(X)
#undef X
    return VPPS_OK;
}

static vpps_status ask(void) {
    int architectures[VPPS_COUNT(library.architectures)], n = 0;
    int result = library.nvrtcVersion(&library.major, &library.minor);
    if (result == VPPS_NVRTC_SUCCESS) result = library.nvrtcGetNumSupportedArchs(&n);
    if (result == VPPS_NVRTC_SUCCESS && (n < 1 || n > (int)VPPS_COUNT(architectures)))
        return vpps_fail(VPPS_DEVICE, "NVRTC: says that it knows %d architectures", n);
    if (result == VPPS_NVRTC_SUCCESS) result = library.nvrtcGetSupportedArchs(architectures);
    if (result != VPPS_NVRTC_SUCCESS)
        return vpps_fail(VPPS_DEVICE, "NVRTC: does not say what it is: %s", library.nvrtcGetErrorString(result));
    qsort(architectures, (size_t)n, sizeof *architectures, vpps_by_word);
    library.n_architectures = (uint32_t)n;
    for (int i = 0; i < n; i++) library.architectures[i] = (uint32_t)architectures[i];
    return VPPS_OK;
}

/* Loads NVRTC's second library from the folder of the first. NVRTC would look for it by name where the loader looks, which may be another
 * folder; a library that is already loaded is found by its name. If this fails, NVRTC looks itself, and reports the failure. */
static void open_builtins(void) {
    Dl_info info;
    void *address;
    memcpy(&address, &library.nvrtcVersion, sizeof address);
    const char *end = dladdr(address, &info) ? strrchr(info.dli_fname, '/') : NULL;
    char path[PATH_MAX];
    if (!end) return;
    snprintf(path, sizeof path, "%.*s/libnvrtc-builtins.so.%d.%d", (int)(end - info.dli_fname), info.dli_fname,
             library.major, library.minor);
    dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static vpps_status take(const vpps_library *l, void *handle) {
    VPPS_TRY(find_functions(l, handle));
    VPPS_TRY(ask());
    open_builtins();
    return VPPS_OK;
}

vpps_status vpps_nvrtc_open(const vpps_nvrtc **out) {
    static vpps_library nvrtc = {.title = "NVRTC",
                                 .variable = "VPPS_NVRTC",
                                 .names = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"},
                                 .major = major_of,
                                 .take = take};
    *out = &library;
    return vpps_library_open(&nvrtc);
}
