/* nvrtc.h - NVIDIA's run-time compiler NVRTC, loaded when first needed. VPPS builds without NVRTC's header: the function types
 * are declared here as in NVRTC's documentation, chapter "User Interface". */
#pragma once

#include "base/base.h"

typedef struct vpps_nvrtc_program *vpps_nvrtc_program; /* nvrtcProgram */

/* Values of nvrtcResult; nvrtcGetErrorString explains all other values. */
enum { VPPS_NVRTC_SUCCESS = 0, VPPS_NVRTC_INVALID_OPTION = 5 };

/* NVRTC's functions as X(result, name, parameters). */
#define VPPS_NVRTC_TABLE(X)                                                                                            \
    X(const char *, nvrtcGetErrorString, (int result))                                                                 \
    X(int, nvrtcVersion, (int *major, int *minor))                                                                     \
    X(int, nvrtcGetNumSupportedArchs, (int *n))                                                                        \
    X(int, nvrtcGetSupportedArchs, (int *architectures))                                                               \
    X(int, nvrtcCreateProgram,                                                                                         \
      (vpps_nvrtc_program * program, const char *source, const char *name, int n_headers, const char *const *headers,  \
       const char *const *include_names))                                                                              \
    X(int, nvrtcDestroyProgram, (vpps_nvrtc_program * program))                                                        \
    X(int, nvrtcCompileProgram, (vpps_nvrtc_program program, int n_options, const char *const *options))               \
    X(int, nvrtcGetCUBINSize, (vpps_nvrtc_program program, size_t * bytes))                                            \
    X(int, nvrtcGetCUBIN, (vpps_nvrtc_program program, char *cubin))                                                   \
    X(int, nvrtcGetPTXSize, (vpps_nvrtc_program program, size_t * bytes))                                              \
    X(int, nvrtcGetPTX, (vpps_nvrtc_program program, char *ptx))                                                       \
    X(int, nvrtcGetProgramLogSize, (vpps_nvrtc_program program, size_t * bytes))                                       \
    X(int, nvrtcGetProgramLog, (vpps_nvrtc_program program, char *log))

typedef struct vpps_nvrtc {
#define X(result, name, parameters) result(*name) parameters;
    VPPS_NVRTC_TABLE(X)
#undef X
    int major, minor;
    uint32_t n_architectures;
    uint32_t architectures[64]; /* compute capabilities for which NVRTC compiles, ascending */
} vpps_nvrtc;

/* Returns the library, which the process's first call loads. $VPPS_NVRTC names it; otherwise libnvrtc.so, .so.13 or .so.12 is searched
 * where library.h looks. Thread-safe. Fails with DEVICE; the message names the library that was looked for. */
vpps_status vpps_nvrtc_open(const vpps_nvrtc **out);
