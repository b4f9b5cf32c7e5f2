/* standin.h - functions of a shared library that is opened at the first call of one of them. */
#ifndef VPPS_STANDIN_H
#define VPPS_STANDIN_H

#include <dlfcn.h>
#include <stddef.h>

/* Returns the function `name` of the library; NULL: the system has no such library, or the library no such function. */
static inline void *standin_find(const char *library, const char *name) {
    void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    return opened ? dlsym(opened, name) : NULL;
}

/* Defines a function that calls the library's function of that name, or, without the library, returns `missing`. */
#define STANDIN(library, result, name, parameters, arguments, missing)                                                 \
    static inline result name parameters {                                                                             \
        static result(*call) parameters;                                                                               \
        if (!call) *(void **)&call = standin_find(library, #name);                                                     \
        return call ? call arguments : (missing);                                                                      \
    }

#endif
