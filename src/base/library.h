/* library.h - CUDA's libraries, which are opened at run time, so that nothing needs them to build or to start. */
#pragma once

#include "base/base.h"

enum { VPPS_LIBRARY_NAMES = 3 };

typedef struct vpps_library {
    const char *title;                     /* in messages */
    const char *variable;                  /* of the environment: names the library instead of all below */
    const char *names[VPPS_LIBRARY_NAMES]; /* of its files, the one without a version first */
    int (*major)(void *handle);            /* version of an open one; 0: it does not say */
    /* Finds what is needed in it, once it is open. */
    vpps_status (*take)(const struct vpps_library *library, void *handle);
    /* What vpps_library_open found. */
    bool tried;
    vpps_status found;
    char message[VPPS_MESSAGE_BYTES];
} vpps_library;

/* To be called before the first library is opened: the driver is of this major version of CUDA. A driver loads what compilers of its own
 * major version and of earlier ones make (CUDA Compatibility, "Minor Version Compatibility"): so of several libraries the first of that
 * version is taken, else the latest before it, else the earliest after it. Thread-safe. */
void vpps_library_prefer(int major);

/* Opens the library that the variable names; else one where the loader finds it, in lib64 of $CUDA_HOME, of $CUDA_PATH, of
 * /usr/local/cuda: the first of them, or the one of the version that vpps_library_prefer has been told. It stays open, and the process's
 * first call decides for all. Thread-safe. Fails with DEVICE, where the message says which library was looked for, and as `take` does. */
vpps_status vpps_library_open(vpps_library *library);

/* In *function the function of that name. Fails with DEVICE: there is none. */
vpps_status vpps_library_find(const vpps_library *library, void *handle, const char *name, void *function);
