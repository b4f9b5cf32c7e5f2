/* nvrtc.c - see nvrtc.h. The library stays open: it holds threads and memory that outlive a program. */
#include "codegen/nvrtc.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static const char *const names[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"};

/* What the first call found, for all that follow. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static vpps_nvrtc library;
static vpps_status found;
static char message[VPPS_MESSAGE_BYTES];
static atomic_int preferred; /* major version; 0: any */

/* ---------------------------------------------------------------- finding */

void vpps_nvrtc_prefer(int major) { atomic_store(&preferred, major); }

/* A library's major version; 0: it does not say. */
static int major_of(void *handle) {
    int (*version)(int *, int *);
    int major, minor;
    void *address = dlsym(handle, "nvrtcVersion");
    memcpy(&version, &address, sizeof version);
    return address && version(&major, &minor) == VPPS_NVRTC_SUCCESS ? major : 0;
}

/* How far from wanted a version is: a later one is worse than any earlier one. */
static int distance(int major, int wanted) { return major <= wanted ? wanted - major : 1000 + major; }

typedef struct best_library {
    void *handle; /* NULL: none yet */
    int distance; /* 0: it need not be looked further */
} best_library;

/* Tries all names in a folder; NULL: where the loader looks. */
static void look_in(const char *folder, int wanted, best_library *best) {
    for (size_t i = 0; i < VPPS_COUNT(names) && !(best->handle && best->distance == 0); i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s%s%s", folder ? folder : "", folder ? "/lib64/" : "", names[i]);
        void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); /* its initialisers have left memory */
        if (!handle) continue;
        const int far = wanted ? distance(major_of(handle), wanted) : 0;
        if (best->handle && far >= best->distance) {
            dlclose(handle); /* it has only been asked for its version */
            continue;
        }
        if (best->handle) dlclose(best->handle);
        *best = (best_library){handle, far};
    }
}

static vpps_status find_library(void **handle) {
    const char *own = getenv("VPPS_NVRTC");
    const char *const folders[] = {NULL, getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"};
    if (own && *own) {
        *handle = dlopen(own, RTLD_NOW | RTLD_LOCAL);
        if (*handle) return VPPS_OK;
        const char *why = dlerror();
        return vpps_fail(VPPS_DEVICE, "NVRTC: %.200s, which VPPS_NVRTC names, cannot be opened: %.200s", own,
                         why ? why : "");
    }
    best_library best = {NULL, 0};
    for (size_t i = 0; i < VPPS_COUNT(folders); i++) {
        if (i == 0 || (folders[i] && *folders[i])) look_in(folders[i], atomic_load(&preferred), &best);
    }
    *handle = best.handle;
    if (*handle) return VPPS_OK;
    return vpps_fail(VPPS_DEVICE,
                     "NVRTC: found no libnvrtc.so, libnvrtc.so.13 or libnvrtc.so.12 where the loader looks, in "
                     "$CUDA_HOME/lib64, $CUDA_PATH/lib64 or /usr/local/cuda/lib64; VPPS_NVRTC can name it");
}

/* ---------------------------------------------------------------- opening */

static vpps_status find_functions(void *handle) {
    void *address;
    /* POSIX has function pointers that fit into void *; ISO C has no conversion. */
#define X(result, name, parameters)                                                                                    \
    address = dlsym(handle, #name);                                                                                    \
    if (!address) return vpps_fail(VPPS_DEVICE, "NVRTC: its library has no function " #name);                          \
    memcpy(&library.name, &address, sizeof address);
    VPPS_NVRTC_TABLE(X)
#undef X
    return VPPS_OK;
}

static int compare_ints(const void *left, const void *right) {
    const int a = *(const int *)left, b = *(const int *)right;
    return (a > b) - (a < b);
}

static vpps_status ask(void) {
    int architectures[VPPS_COUNT(library.architectures)], n = 0;
    int result = library.nvrtcVersion(&library.major, &library.minor);
    if (result == VPPS_NVRTC_SUCCESS) result = library.nvrtcGetNumSupportedArchs(&n);
    if (result == VPPS_NVRTC_SUCCESS && (n < 1 || n > (int)VPPS_COUNT(architectures))) {
        return vpps_fail(VPPS_DEVICE, "NVRTC: says that it knows %d architectures", n);
    }
    if (result == VPPS_NVRTC_SUCCESS) result = library.nvrtcGetSupportedArchs(architectures);
    if (result != VPPS_NVRTC_SUCCESS) {
        return vpps_fail(VPPS_DEVICE, "NVRTC: does not say what it is: %s", library.nvrtcGetErrorString(result));
    }
    qsort(architectures, (size_t)n, sizeof *architectures, compare_ints);
    library.n_architectures = (uint32_t)n;
    for (int i = 0; i < n; i++) library.architectures[i] = (uint32_t)architectures[i];
    return VPPS_OK;
}

static void open_once(void) {
    void *handle = NULL;
    found = find_library(&handle);
    if (found == VPPS_OK) found = find_functions(handle);
    if (found == VPPS_OK) found = ask();
    if (found != VPPS_OK) snprintf(message, sizeof message, "%s", vpps_error_message());
}

vpps_status vpps_nvrtc_open(const vpps_nvrtc **out) {
    pthread_once(&once, open_once);
    *out = &library;
    if (found != VPPS_OK) vpps_restore_message(message);
    return found;
}
