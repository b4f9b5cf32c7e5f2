/* standin.h - functions of a shared library that is opened at the first call of one of them. */
#ifndef VPPS_STANDIN_H
#define VPPS_STANDIN_H

#include <dlfcn.h>
#include <stddef.h>

/* Defines a function that calls the library's function of that name, or, without the library, returns `missing`. */
#define STANDIN(library, result, name, parameters, arguments, missing)                                                 \
    static inline result name parameters {                                                                             \
        static result(*call) parameters;                                                                               \
        void *opened = call ? NULL : dlopen(library, RTLD_NOW | RTLD_LOCAL);                                           \
        if (opened) *(void **)&call = dlsym(opened, #name);                                                            \
        return call ? call arguments : (missing);                                                                      \
    }

#endif
