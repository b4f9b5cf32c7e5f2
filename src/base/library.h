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

/* Sets the major version of the driver's CUDA; to be called before the first library is opened. Of several libraries, the one of this
 * version is opened, else the latest earlier one, else the earliest later one, since a driver runs code of its own and of earlier versions
 * (CUDA Compatibility, "Minor Version Compatibility"). Thread-safe. */
void vpps_library_prefer(int major);

/* Opens the library that the environment variable names, else one that the loader finds, or that lies in lib64 of $CUDA_HOME, $CUDA_PATH or
 * /usr/local/cuda. If there are several, vpps_library_prefer decides. The library stays open; later calls return the result of the
 * process's first call. Thread-safe. Fails with DEVICE (the message names the library), and as `take` does. */
vpps_status vpps_library_open(vpps_library *library);

/* Sets *function to the function of this name in an open library. Fails with DEVICE: it has none. `title`: the library, in messages. */
vpps_status vpps_library_find(const char *title, void *handle, const char *name, void *function);
