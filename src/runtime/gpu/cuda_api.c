/* cuda_api.c - opens the CUDA driver and cuBLAS at run time. */
#include "runtime/gpu/cuda_api.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>

enum { OPEN_FLAGS = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE };

static const char *const cublas_names[] = {"libcublas.so", "libcublas.so.13", "libcublas.so.12"};
static const char *const cuda_names[] = {"libcuda.so.1"};

typedef struct library_entry {
    const char *symbol;
    size_t at; /* of its pointer in the table */
} library_entry;

static const library_entry cuda_entries[] = {
#define X(symbol, parameters) {#symbol, offsetof(vpps_cuda, symbol)},
    VPPS_CUDA_FUNCTIONS(X)
#undef X
};
static const library_entry cublas_entries[] = {
#define X(symbol, parameters) {#symbol, offsetof(vpps_cublas, symbol)},
    VPPS_CUBLAS_FUNCTIONS(X)
#undef X
};

typedef struct library_kind {
    const char *variable; /* of the environment: another file */
    bool in_toolkit;
    const char *missing; /* what a machine without the library lacks */
    const char *const *names;
    size_t n_names;
    const library_entry *entries;
    size_t n_entries;
    size_t table_bytes;
} library_kind;

#define KIND(what, own_variable, toolkit, lacks)                                                                       \
    static const library_kind what##_kind = {                                                                          \
        .variable = (own_variable),                                                                                    \
        .in_toolkit = (toolkit),                                                                                       \
        .missing = (lacks),                                                                                            \
        .names = what##_names,                                                                                         \
        .n_names = VPPS_COUNT(what##_names),                                                                           \
        .entries = what##_entries,                                                                                     \
        .n_entries = VPPS_COUNT(what##_entries),                                                                       \
        .table_bytes = sizeof(vpps_##what),                                                                            \
    }
KIND(cuda, "VPPS_LIBCUDA", false, "no GPU driver");
KIND(cublas, "VPPS_LIBCUBLAS", true, "no cuBLAS");

/* Tries a library's names in a folder; NULL: where the loader looks. */
static void *open_in(const char *folder, const library_kind *kind) {
    void *library = NULL;
    for (size_t i = 0; i < kind->n_names && !library; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s%s%s", folder ? folder : "", folder ? "/lib64/" : "", kind->names[i]);
        library = dlopen(path, OPEN_FLAGS);
    }
    return library;
}

/* The driver is where the loader looks; the toolkit may be elsewhere. NULL: not found, and the message says so. */
static void *open_library(const library_kind *kind) {
    const char *own = getenv(kind->variable);
    const bool given = own && *own;
    const char *const folders[] = {NULL, getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"};
    void *library = given ? dlopen(own, OPEN_FLAGS) : NULL;
    for (size_t i = 0; i < (kind->in_toolkit ? VPPS_COUNT(folders) : 1) && !given && !library; i++)
        if (i == 0 || folders[i]) library = open_in(folders[i], kind);
    if (library) return library;
    if (kind->in_toolkit && !given) {
        vpps_fail(VPPS_DEVICE,
                  "cuda: %s: looked for %s where the loader does, in $CUDA_HOME/lib64, $CUDA_PATH/lib64 and "
                  "/usr/local/cuda/lib64; %s can name it",
                  kind->missing, kind->names[0], kind->variable);
    } else {
        const char *why = dlerror();
        vpps_fail(VPPS_DEVICE, "cuda: %s: %s", kind->missing, why ? why : kind->names[0]);
    }
    return NULL;
}

/* Fills in a table, which begins with the library's handle. */
static vpps_status open_table(void *table, const library_kind *kind) {
    memset(table, 0, kind->table_bytes);
    void *library = open_library(kind);
    if (!library) return VPPS_DEVICE;
    memcpy(table, &library, sizeof library);
    for (size_t i = 0; i < kind->n_entries; i++) {
        const library_entry *e = &kind->entries[i];
        void *symbol = dlsym(library, e->symbol);
        if (!symbol) {
            dlclose(library);
            memset(table, 0, kind->table_bytes);
            return vpps_fail(VPPS_DEVICE, "cuda: the library lacks %s: it is too old", e->symbol);
        }
        memcpy((char *)table + e->at, &symbol, sizeof symbol); /* POSIX: a function's address fits */
    }
    return VPPS_OK;
}

vpps_status vpps_cuda_installed(void) {
    void *library = open_library(&cuda_kind);
    if (!library) return VPPS_DEVICE;
    dlclose(library);
    return VPPS_OK;
}

vpps_status vpps_cuda_open(vpps_cuda *out) { return open_table(out, &cuda_kind); }
vpps_status vpps_cublas_open(vpps_cublas *out) { return open_table(out, &cublas_kind); }

void vpps_cuda_close(vpps_cuda *api) {
    if (api->library) dlclose(api->library);
    memset(api, 0, sizeof *api);
}

void vpps_cublas_close(vpps_cublas *api) {
    if (api->library) dlclose(api->library);
    memset(api, 0, sizeof *api);
}

vpps_status vpps_cuda_failed(const vpps_cuda *api, const char *what, vpps_cu_result code) {
    const char *name = NULL, *text = NULL;
    if (api->cuGetErrorName(code, &name) != VPPS_CU_SUCCESS || !name) name = "a code without a name";
    if (api->cuGetErrorString(code, &text) != VPPS_CU_SUCCESS || !text) text = "of which the driver says nothing";
    return vpps_fail(VPPS_DEVICE, "cuda: %s: %s (%u, %s)", what, name, code, text);
}
