/* nvrtc.c - an NVRTC that compiles nothing: for tests of which library is taken. Its major version is the number at the end
 * of the name that it was loaded by, libnvrtc.so.12. */
#include "codegen/nvrtc.h"

#include <dlfcn.h>

#define X(result, name, parameters) VPPS_API result name parameters;
VPPS_NVRTC_TABLE(X)
#undef X

enum { REFUSED = 1 };

const char *nvrtcGetErrorString(int result) { return result == REFUSED ? "the fake compiles nothing" : "no error"; }

int nvrtcVersion(int *major, int *minor) {
    Dl_info info;
    const char *dot = dladdr((void *)(uintptr_t)nvrtcVersion, &info) ? strrchr(info.dli_fname, '.') : NULL;
    *major = dot ? (int)strtol(dot + 1, NULL, 10) : 0;
    *minor = 99;
    return VPPS_NVRTC_SUCCESS;
}

int nvrtcGetNumSupportedArchs(int *n) {
    *n = 1;
    return VPPS_NVRTC_SUCCESS;
}

int nvrtcGetSupportedArchs(int *architectures) {
    *architectures = 90;
    return VPPS_NVRTC_SUCCESS;
}

int nvrtcCreateProgram(vpps_nvrtc_program *program, const char *source, const char *name, int n_headers,
                       const char *const *headers, const char *const *include_names) {
    (void)source, (void)name, (void)n_headers, (void)headers, (void)include_names;
    *program = NULL;
    return REFUSED;
}

int nvrtcDestroyProgram(vpps_nvrtc_program *program) { return *program ? REFUSED : VPPS_NVRTC_SUCCESS; }

int nvrtcCompileProgram(vpps_nvrtc_program program, int n_options, const char *const *options) {
    (void)program, (void)n_options, (void)options;
    return REFUSED;
}

#define NOTHING(function, type)                                                                                        \
    int function(vpps_nvrtc_program program, type *out) {                                                              \
        (void)program, (void)out;                                                                                      \
        return REFUSED;                                                                                                \
    }
NOTHING(nvrtcGetCUBINSize, size_t)
NOTHING(nvrtcGetCUBIN, char)
NOTHING(nvrtcGetPTXSize, size_t)
NOTHING(nvrtcGetPTX, char)
NOTHING(nvrtcGetProgramLogSize, size_t)
NOTHING(nvrtcGetProgramLog, char)
