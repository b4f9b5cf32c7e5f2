/* library.h - opens CUDA's libraries at run time, so that building and starting the program needs none of them. */
#pragma once

#include "base/base.h"

enum { VPPS_LIBRARY_NAMES = 3 };

typedef struct vpps_library {
    const char *title;                     /* the library's name in messages */
    const char *variable;                  /* environment variable that names the library file to use */
    const char *names[VPPS_LIBRARY_NAMES]; /* file names to try, the one without a version first */
    int (*major)(void *handle);            /* returns the version of an open library; 0: unknown */
    /* Finds the needed functions in the open library. */
    vpps_status (*take)(const struct vpps_library *library, void *handle);
    /* Result of the process's first vpps_library_open. */
    bool tried;
    vpps_status found;
    char message[VPPS_MESSAGE_BYTES];
} vpps_library;

/* Tells the major version of the driver's CUDA, before the first library is opened. A driver loads code of compilers of its own major
 * version and of earlier ones (CUDA Compatibility, "Minor Version Compatibility"): so of several libraries the one of that version is
 * taken, else the latest before it, else the earliest after it. Thread-safe. */
void vpps_library_prefer(int major);

/* Opens the library that the environment variable names, else one that the loader finds, or that lies in lib64 of $CUDA_HOME, $CUDA_PATH
 * or /usr/local/cuda: the first, or the one of the version that vpps_library_prefer prefers. The library stays open, and the process's
 * first call decides for all. Thread-safe. Fails with DEVICE (the message names the library), and as `take` does. */
vpps_status vpps_library_open(vpps_library *library);

/* Sets *function to the library's function of this name. Fails with DEVICE: the library has none. */
vpps_status vpps_library_find(const vpps_library *library, void *handle, const char *name, void *function);
