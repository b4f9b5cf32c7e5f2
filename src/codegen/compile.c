/* compile.c - compiles kernel source to a CUBIN, or takes the CUBIN from the disk cache. In the cache, the registers and bytes that the
 * kernel uses (usage) follow the CUBIN. */
#include "codegen/compile.h"

#include "codegen/cache.h"
#include "codegen/nvrtc.h"

#include <ctype.h>

/* The compiler's options besides the architecture, which is a real one (sm_, not compute_), since only that yields a CUBIN.
 * --jump-table-density=0 makes one jump table of a switch with any number of missing cases (nvcc's documentation), so that a task's code is
 * found in fewer steps; an NVRTC that does not know the option works without it. -v lets ptxas tell in the log what a kernel uses. -G and
 * --Ofast-compile must not be used: they put register arrays into local memory. */
static const char *const common_options[] = {"-std=c++17", "--fmad=true", "--ptxas-options=-v",
                                             "--jump-table-density=0"};
enum {
    N_COMMON = VPPS_COUNT(common_options),
    N_OPTIONS = N_COMMON + 1,
    N_KNOWN = N_OPTIONS - 1, /* number of leading options that all versions of NVRTC know */
    N_QUIET = N_KNOWN - 1    /* number of leading options before -v */
};

#define SOURCE_NAME "kernel.cu" /* the file name in compiler messages */

typedef struct compile_job {
    const vpps_nvrtc *nvrtc;
    const char *source, *entry;
    bool ptx;
    char arch_option[40];
    const char *options[N_OPTIONS];
    vpps_cache_key key;
    char toolchain[256];
} compile_job;

static vpps_status fail_nvrtc(const compile_job *job, const char *step, int result) {
    return vpps_fail(VPPS_DEVICE, "NVRTC: %s: %s", step, job->nvrtc->nvrtcGetErrorString(result));
}

/* Returns the compiler's log (malloc'd), or NULL if there is none, or no memory. */
static char *read_log(const vpps_nvrtc *nvrtc, vpps_nvrtc_program program) {
    size_t bytes;
    if (nvrtc->nvrtcGetProgramLogSize(program, &bytes) != VPPS_NVRTC_SUCCESS) return NULL;
    char *log = calloc(1, bytes + 1);
    if (log && nvrtc->nvrtcGetProgramLog(program, log) == VPPS_NVRTC_SUCCESS) return log;
    free(log);
    return NULL;
}

/* Returns where the log's first error begins, or NULL. Errors look like "kernel.cu(3): error: ...", "nvrtc: error: ...", "ptxas error   :
 * ...", "ptxas application ptx input, line 24; error   : ...", "ptxas fatal   : ...". */
static const char *find_error(const char *log) {
    static const char *const marks[] = {" error:", "ptxas error", "; error", "ptxas fatal"};
    const char *first = NULL;
    for (size_t i = 0; log && i < VPPS_COUNT(marks); i++) {
        const char *at = strstr(log, marks[i]);
        if (at && (!first || at < first)) first = at;
    }
    while (first && first > log && first[-1] != '\n') first--;
    return first;
}

static vpps_status fail_refused(const compile_job *job, const char *log, int result) {
    const char *error = find_error(log);
    if (!error) return fail_nvrtc(job, "the source was refused", result);
    return vpps_fail(VPPS_DEVICE, "NVRTC: the source was refused: %.*s", (int)strcspn(error, "\n"), error);
}

/* Fetches the compiled code from NVRTC: PTX (zero-terminated) if job->ptx is set, else the CUBIN. */
static vpps_status fetch_code(const compile_job *job, vpps_nvrtc_program program, void **code, size_t *bytes) {
    const vpps_nvrtc *nvrtc = job->nvrtc;
    const char *what = job->ptx ? "PTX" : "CUBIN";
    int result = (job->ptx ? nvrtc->nvrtcGetPTXSize : nvrtc->nvrtcGetCUBINSize)(program, bytes);
    if (result == VPPS_NVRTC_SUCCESS && *bytes == 0) return vpps_fail(VPPS_DEVICE, "NVRTC: made no %s", what);
    char *memory = result == VPPS_NVRTC_SUCCESS ? malloc(*bytes) : NULL;
    if (result == VPPS_NVRTC_SUCCESS && !memory)
        return vpps_fail(VPPS_MEMORY, "no memory for %zu bytes of %s", *bytes, what);
    if (memory) result = (job->ptx ? nvrtc->nvrtcGetPTX : nvrtc->nvrtcGetCUBIN)(program, memory);
    if (result != VPPS_NVRTC_SUCCESS) {
        free(memory);
        return fail_nvrtc(job, job->ptx ? "no PTX" : "no CUBIN", result);
    }
    *code = memory;
    return VPPS_OK;
}

/* Returns the number directly before `words` in the text; 0: there is none. */
static uint32_t number_before(const char *text, const char *words) {
    const char *end = strstr(text, words), *at = end;
    while (at && at > text && isdigit((unsigned char)at[-1])) at--;
    return at == end ? 0 : (uint32_t)strtoul(at, NULL, 10);
}

/* Reads from the log how many registers, bytes of stack and of shared memory the kernel `entry` uses. Cuts the log after the kernel's part. */
static vpps_status read_usage(char *log, const char *entry, vpps_cubin_report *report) {
    static const char begin[] = "Compiling entry function '";
    const size_t n = strlen(entry);
    char *part = log ? strstr(log, begin) : NULL;
    while (part && (strncmp(part + strlen(begin), entry, n) != 0 || part[strlen(begin) + n] != '\''))
        part = strstr(part + 1, begin);
    char *next = part ? strstr(part + 1, begin) : NULL;
    if (next) *next = '\0';
    report->registers = part ? number_before(part, " registers") : 0;
    if (!report->registers)
        return vpps_fail(VPPS_FORMAT, "NVRTC: does not tell the registers of a kernel '%.100s'", entry);
    report->frame_bytes =
        vpps_max_u32(number_before(part, " bytes stack frame"), number_before(part, " bytes cumulative stack size"));
    report->shared_bytes = number_before(part, " bytes smem");
    return VPPS_OK;
}

static vpps_status run_compiler(const compile_job *job, void **cubin, size_t *bytes, vpps_cubin_report *report) {
    const vpps_nvrtc *nvrtc = job->nvrtc;
    vpps_nvrtc_program program;
    const uint64_t start = vpps_now_ns();
    int result = nvrtc->nvrtcCreateProgram(&program, job->source, SOURCE_NAME, 0, NULL, NULL);
    if (result != VPPS_NVRTC_SUCCESS) return fail_nvrtc(job, "no program", result);
    result = nvrtc->nvrtcCompileProgram(program, N_OPTIONS, job->options);
    if (result == VPPS_NVRTC_INVALID_OPTION) result = nvrtc->nvrtcCompileProgram(program, N_KNOWN, job->options);
    char *log = read_log(nvrtc, program);
    if (result != VPPS_NVRTC_SUCCESS && !find_error(log)) { /* compiles without -v, with which ptxas omits errors */
        free(log);
        nvrtc->nvrtcCompileProgram(program, N_QUIET, job->options);
        log = read_log(nvrtc, program);
    }
    vpps_status status =
        result == VPPS_NVRTC_SUCCESS ? fetch_code(job, program, cubin, bytes) : fail_refused(job, log, result);
    if (status == VPPS_OK && !job->ptx) status = read_usage(log, job->entry, report);
    report->cubin_bytes = (uint32_t)*bytes;
    report->seconds = (double)(vpps_now_ns() - start) * 1e-9;
    free(log);
    nvrtc->nvrtcDestroyProgram(&program);
    return status;
}

/* Resource use of the kernel; follows the CUBIN in a cache entry. */
typedef struct usage {
    uint32_t registers, frame_bytes, shared_bytes;
} usage;

/* Takes the CUBIN from the cache; *cubin stays NULL if the cache has no valid one. */
static vpps_status take_from_cache(const compile_job *job, void **cubin, size_t *bytes, vpps_cubin_report *report) {
    usage u;
    VPPS_TRY(vpps_cache_read(&job->key, cubin, bytes));
    if (!*cubin) return VPPS_OK;
    if (*bytes <= sizeof u) {
        free(*cubin);
        *cubin = NULL;
        return VPPS_OK;
    }
    *bytes -= sizeof u;
    memcpy(&u, (const char *)*cubin + *bytes, sizeof u);
    *report = (vpps_cubin_report){u.registers, u.frame_bytes, u.shared_bytes, (uint32_t)*bytes, .cached = true};
    return VPPS_OK;
}

/* Ignores a failure: the kernel is then compiled again next time. */
static void put_into_cache(const compile_job *job, const void *cubin, size_t bytes, const vpps_cubin_report *r) {
    const usage u = {r->registers, r->frame_bytes, r->shared_bytes};
    char *both = malloc(bytes + sizeof u);
    if (!both) return;
    memcpy(both, cubin, bytes);
    memcpy(both + bytes, &u, sizeof u);
    vpps_cache_write(&job->key, both, bytes + sizeof u);
    free(both);
}

static vpps_status check_arch(const vpps_nvrtc *nvrtc, uint32_t arch) {
    char list[VPPS_COUNT(nvrtc->architectures) * 6] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < nvrtc->n_architectures; i++) {
        if (nvrtc->architectures[i] == arch) return VPPS_OK;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, " %u", nvrtc->architectures[i]);
    }
    return vpps_fail(VPPS_DEVICE, "NVRTC %d.%d does not compile for sm_%u; it knows%s", nvrtc->major, nvrtc->minor,
                     arch, list);
}

static void describe(compile_job *job, uint32_t arch, const char *description) {
    snprintf(job->arch_option, sizeof job->arch_option, "--gpu-architecture=%s_%u", job->ptx ? "compute" : "sm", arch);
    job->options[0] = job->arch_option;
    memcpy(job->options + 1, common_options, sizeof common_options);
    size_t used =
        (size_t)snprintf(job->toolchain, sizeof job->toolchain, "NVRTC %d.%d", job->nvrtc->major, job->nvrtc->minor);
    for (size_t i = 0; i < N_OPTIONS; i++)
        used += (size_t)snprintf(job->toolchain + used, sizeof job->toolchain - used, " %s", job->options[i]);
    job->key = (vpps_cache_key){.kind = "cubin",
                                .description = description,
                                .toolchain = job->toolchain,
                                .source = job->source,
                                .source_bytes = strlen(job->source)};
}

vpps_status vpps_compile(const char *source, const char *entry, uint32_t arch, const char *description, bool use_cache,
                         void **cubin, size_t *cubin_bytes, vpps_cubin_report *report) {
    compile_job job = {.source = source, .entry = entry};
    *cubin = NULL;
    *cubin_bytes = 0;
    *report = (vpps_cubin_report){0};
    VPPS_TRY(vpps_nvrtc_open(&job.nvrtc));
    VPPS_TRY(check_arch(job.nvrtc, arch));
    describe(&job, arch, description);
    if (use_cache) VPPS_TRY(take_from_cache(&job, cubin, cubin_bytes, report));
    if (*cubin) return VPPS_OK;
    const vpps_status status = run_compiler(&job, cubin, cubin_bytes, report);
    if (status == VPPS_OK && use_cache) put_into_cache(&job, *cubin, *cubin_bytes, report);
    if (status != VPPS_OK) {
        free(*cubin);
        *cubin = NULL;
        *cubin_bytes = 0;
    }
    return status;
}

vpps_status vpps_compile_ptx(const char *source, uint32_t arch, char **ptx, vpps_cubin_report *report) {
    compile_job job = {.source = source, .entry = "", .ptx = true};
    void *text = NULL;
    size_t bytes = 0;
    *ptx = NULL;
    *report = (vpps_cubin_report){0};
    VPPS_TRY(vpps_nvrtc_open(&job.nvrtc));
    VPPS_TRY(check_arch(job.nvrtc, arch));
    describe(&job, arch, "");
    VPPS_TRY(run_compiler(&job, &text, &bytes, report));
    *ptx = text;
    return VPPS_OK;
}
