/* library.h - opens CUDA's libraries at run time, so that the program can be built and started without them. */
#pragma once

#include "base/base.h"

enum { VPPS_LIBRARY_NAMES = 3 };

typedef struct vpps_library {
    const char *title;                     /* the library's name in messages */
    const char *variable;                  /* environment variable that names the library file to use */
    const char *names[VPPS_LIBRARY_NAMES]; /* file names to try; the first has no version */
    int (*major)(void *handle);            /* function that returns the major version of an open library; 0: unknown */
    /* Function that looks up all needed functions in the open library. */
    vpps_status (*take)(const struct vpps_library *library, void *handle);
    /* whether vpps_library_open was called before; if so, `found` and `message` are its result */
    bool tried;
    vpps_status found;
    char message[VPPS_MESSAGE_BYTES];
} vpps_library;

/* Sets the major CUDA version of the GPU's driver; call it before the first library is opened. If several versions of a library are
 * installed, the driver's version is opened, else the latest earlier version, else the earliest later version: a driver runs code for its
 * own version and for earlier ones (CUDA Compatibility, "Minor Version Compatibility"). Thread-safe. */
void vpps_library_prefer(int major);

/* Opens one of CUDA's libraries and calls library->take, which looks up its functions. Opens the file that the
 * environment variable library->variable names, else a file that the dynamic loader finds, or one in lib64 of
 * $CUDA_HOME, $CUDA_PATH or /usr/local/cuda. Later calls return the first call's result. Thread-safe. Fails with DEVICE
 * (the message names the library), or with the status of library->take. */
vpps_status vpps_library_open(vpps_library *library);

/* Sets *function to the function `name` of an open library. Fails with DEVICE if it is missing. `title`: the library's name in messages. */
vpps_status vpps_library_find(const char *title, void *handle, const char *name, void *function);
