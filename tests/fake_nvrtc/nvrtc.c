/* nvrtc.c - an NVRTC for tests of which library is taken, of options that one does not know, and of how often something is compiled.
 * Its major version is the number at the end of the name that it was loaded by, libnvrtc.so.12; 12 does not know --jump-table-density.
 * Whatever it compiles becomes the options' number, as PTX, or a CUBIN with the name vpps_kernel, of 128 registers; the file that
 * $VPPS_FAKE_NVRTC_LOG names gets a line. */
#include "codegen/nvrtc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define X(result, name, parameters) VPPS_API result name parameters;
VPPS_NVRTC_TABLE(X)
#undef X

enum { REFUSED = 1 };

/* A program; there is one for each thread that compiles. */
struct vpps_nvrtc_program {
    char compiled[16]; /* how many options */
};

const char *nvrtcGetErrorString(int result) {
    return result == VPPS_NVRTC_SUCCESS ? "no error" : result == REFUSED ? "the fake refuses" : "an option";
}

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

int nvrtcCreateProgram(vpps_nvrtc_program *out, const char *source, const char *name, int n_headers,
                       const char *const *headers, const char *const *include_names) {
    (void)source, (void)name, (void)n_headers, (void)headers, (void)include_names;
    *out = calloc(1, sizeof **out);
    return *out ? VPPS_NVRTC_SUCCESS : REFUSED;
}

int nvrtcDestroyProgram(vpps_nvrtc_program *p) {
    free(*p);
    *p = NULL;
    return VPPS_NVRTC_SUCCESS;
}

int nvrtcCompileProgram(vpps_nvrtc_program program, int n_options, const char *const *options) {
    int major, minor;
    nvrtcVersion(&major, &minor);
    for (int i = 0; i < n_options; i++)
        if (major < 13 && strstr(options[i], "--jump-table-density")) return VPPS_NVRTC_INVALID_OPTION;
    snprintf(program->compiled, sizeof program->compiled, "%d", n_options);
    const char *log = getenv("VPPS_FAKE_NVRTC_LOG");
    FILE *f = log ? fopen(log, "a") : NULL;
    if (f && (fputs("compiled\n", f) == EOF || fclose(f) != 0)) return REFUSED;
    return VPPS_NVRTC_SUCCESS;
}

int nvrtcGetPTXSize(vpps_nvrtc_program program, size_t *bytes) {
    *bytes = strlen(program->compiled) + 1;
    return VPPS_NVRTC_SUCCESS;
}

int nvrtcGetPTX(vpps_nvrtc_program program, char *ptx) {
    strcpy(ptx, program->compiled);
    return VPPS_NVRTC_SUCCESS;
}

/* An ELF header whose table of sections is empty (bytes 0x28 on: its offset), and a function's name. */
static const char cubin[80] = {[0] = 0x7f, 'E', 'L', 'F', 2,   [0x28] = 80, [65] = 'v', 'p', 'p',
                               's',        '_', 'k', 'e', 'r', 'n',         'e',        'l'};
static const char log_text[] = "ptxas info    : Compiling entry function 'vpps_kernel' for 'sm_90'\n"
                               "ptxas info    : Used 128 registers, used 0 barriers\n";

#define TEXT(size, get, text, bytes)                                                                                   \
    int size(vpps_nvrtc_program program, size_t *n) {                                                                  \
        (void)program;                                                                                                 \
        *n = bytes;                                                                                                    \
        return VPPS_NVRTC_SUCCESS;                                                                                     \
    }                                                                                                                  \
    int get(vpps_nvrtc_program program, char *to) {                                                                    \
        (void)program;                                                                                                 \
        memcpy(to, text, bytes);                                                                                       \
        return VPPS_NVRTC_SUCCESS;                                                                                     \
    }
TEXT(nvrtcGetCUBINSize, nvrtcGetCUBIN, cubin, sizeof cubin)
TEXT(nvrtcGetProgramLogSize, nvrtcGetProgramLog, log_text, sizeof log_text)
