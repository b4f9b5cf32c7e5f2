/* standin.h - calls functions of a shared library that is opened at run time, when one of them is first called. */
#ifndef VPPS_STANDIN_H
#define VPPS_STANDIN_H

#include <dlfcn.h>
#include <stddef.h>

/* Defines a function that calls the function of this name in `library`; it returns `missing` if the library cannot be opened. */
#define STANDIN(library, result, name, parameters, arguments, missing)                                                 \
    static inline result name parameters {                                                                             \
        static result(*call) parameters;                                                                               \
        void *opened = call ? NULL : dlopen(library, RTLD_NOW | RTLD_LOCAL);                                           \
        if (opened) *(void **)&call = dlsym(opened, #name);                                                            \
        return call ? call arguments : (missing);                                                                      \
    }

#endif
