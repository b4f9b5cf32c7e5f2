/* library.c - opens CUDA's shared libraries at run time (library.h). */
#include "base/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int preferred; /* major version of CUDA to prefer; 0: any */

void vpps_library_prefer(int major) { atomic_store(&preferred, major); }

/* Returns how far CUDA version `major` is from the wanted one; any later version is farther than all earlier versions. */
static int distance(int major, int wanted) { return major <= wanted ? wanted - major : 1000 + major; }

typedef struct best_library {
    void *handle; /* handle of the best library found so far; NULL: none was found */
    int distance; /* difference of the best library's version from the wanted one; 0 (the same version) ends the search */
} best_library;

/* Tries all file names of a library in a folder; folder NULL: where the dynamic loader looks. */
static void look_in(const vpps_library *library, const char *folder, int wanted, best_library *best) {
    for (size_t i = 0; i < VPPS_LIBRARY_NAMES && !(best->handle && best->distance == 0); i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s%s%s", folder ? folder : "", folder ? "/lib64/" : "", library->names[i]);
        /* RTLD_NODELETE, since unloading would leak the memory of the library's initialisers */
        void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!handle) continue;
        const int far = wanted ? distance(library->major(handle), wanted) : 0;
        if (best->handle && far >= best->distance) {
            dlclose(handle); /* this library is not the best one; it was opened only to learn its version */
            continue;
        }
        if (best->handle) dlclose(best->handle);
        *best = (best_library){handle, far};
    }
}

static vpps_status find(const vpps_library *library, void **handle) {
    const char *own = getenv(library->variable);
    const char *const folders[] = {NULL, getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda"};
    if (own && *own) {
        *handle = dlopen(own, RTLD_NOW | RTLD_LOCAL);
        if (*handle) return VPPS_OK;
        const char *why = dlerror();
        return vpps_fail(VPPS_DEVICE, "%s: %.200s, which %s names, cannot be opened: %.200s", library->title, own,
                         library->variable, why ? why : "");
    }
    best_library best = {NULL, 0};
    for (size_t i = 0; i < VPPS_COUNT(folders); i++)
        if (i == 0 || (folders[i] && *folders[i])) look_in(library, folders[i], atomic_load(&preferred), &best);
    *handle = best.handle;
    if (*handle) return VPPS_OK;
    return vpps_fail(VPPS_DEVICE,
                     "%s: found no %s, %s or %s where the loader looks, in $CUDA_HOME/lib64, $CUDA_PATH/lib64 or "
                     "/usr/local/cuda/lib64; %s can name it",
                     library->title, library->names[0], library->names[1], library->names[2], library->variable);
}

vpps_status vpps_library_open(vpps_library *library) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!library->tried) {
        void *handle = NULL;
        library->found = find(library, &handle);
        if (library->found == VPPS_OK) library->found = library->take(library, handle);
        if (library->found != VPPS_OK) snprintf(library->message, sizeof library->message, "%s", vpps_error_message());
        library->tried = true;
    }
    pthread_mutex_unlock(&lock);
    if (library->found != VPPS_OK) vpps_restore_message(library->message);
    return library->found;
}

/* The address is copied by memcpy, since ISO C cannot convert a void * to a function pointer; POSIX allows it. */
vpps_status vpps_library_find(const char *title, void *handle, const char *name, void *function) {
    void *address = dlsym(handle, name);
    if (!address)
        return vpps_fail(VPPS_DEVICE, "%s: its library has no function %s; it is another library, or too old", title,
                         name);
    memcpy(function, &address, sizeof address);
    return VPPS_OK;
}
