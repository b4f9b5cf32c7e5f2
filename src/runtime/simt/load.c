/* load.c - makes a kernel's source a library of this process: by the compiler or from the disk cache, then by dlopen. */
#include "codegen/cache.h"
#include "runtime/simt/compiler.h"
#include "runtime/simt/fiber.h"
#include "runtime/simt/kernel.h"

#include <dlfcn.h>

extern const char vpps_template_simt_cuda[]; /* text of interp_templates/simt_cuda.h */

/* Makes the text to compile: CUDA's built-ins, the source, the exported symbol. The source is in an unnamed namespace: else inline
 * functions' __shared__ variables would get other sections, and all __shared__ variables must be in one section. *text is malloc'd. */
static vpps_status make_text(const char *source, char **text, size_t *bytes) {
    static const char before[] = "namespace {\n#line 1 \"kernel\"\n", after[] = "\n}\nVPPS_SIMT_EXPORT(vpps_kernel)\n";
    const size_t room = strlen(vpps_template_simt_cuda) + strlen(before) + strlen(source) + strlen(after) + 1;
    *text = malloc(room);
    if (!*text) return vpps_fail(VPPS_MEMORY, "software SIMT: out of memory");
    *bytes = (size_t)snprintf(*text, room, "%s%s%s%s", vpps_template_simt_cuda, before, source, after);
    return VPPS_OK;
}

static vpps_status open_file(const char *path, void *context) {
    vpps_simt_kernel *kernel = context;
    kernel->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!kernel->handle) return vpps_fail(VPPS_DEVICE, "software SIMT: %s", dlerror());
    kernel->library = dlsym(kernel->handle, "vpps_simt_exported");
    return kernel->library ? VPPS_OK : vpps_fail(VPPS_DEVICE, "software SIMT: %s", dlerror());
}

/* Gets the compiled library (malloc'd): from the disk cache if *cached is true and the cache has it, else by compiling. *cached then tells
 * whether the library came from the cache. A failure to write to the cache is ignored. */
static vpps_status make_library(const vpps_cache_key *key, void **library, size_t *size, bool *cached,
                                double *seconds) {
    *library = NULL;
    *seconds = 0;
    *cached = *cached && vpps_cache_read(key, library, size) == VPPS_OK && *library;
    if (*cached) return VPPS_OK;
    const uint64_t start = vpps_now_ns();
    VPPS_TRY(vpps_simt_compile(key->source, key->source_bytes, library, size));
    *seconds = (double)(vpps_now_ns() - start) * 1e-9;
    (void)vpps_cache_write(key, *library, *size);
    return VPPS_OK;
}

static vpps_status load(vpps_simt_kernel *kernel, const vpps_cache_key *key, bool *cached, double *seconds) {
    VPPS_FREED void *library = NULL;
    size_t size;
    VPPS_TRY(make_library(key, &library, &size, cached, seconds));
    return vpps_simt_with_file("kernel.so", library, size, open_file, kernel);
}

vpps_status vpps_simt_check(void) {
    return VPPS_SIMT_TSAN ? vpps_fail(VPPS_DEVICE, "software SIMT cannot run under ThreadSanitizer") : VPPS_OK;
}

vpps_status vpps_simt_load(vpps_simt_kernel **out, const char *source, const char *description, double *seconds) {
    VPPS_TRY(vpps_simt_check());
    char *text = NULL, toolchain[2048];
    vpps_cache_key key = {.kind = "simt", .description = description, .toolchain = toolchain};
    vpps_simt_kernel *kernel = calloc(1, sizeof *kernel);
    vpps_status status = kernel ? VPPS_OK : vpps_fail(VPPS_MEMORY, "software SIMT: out of memory");
    if (status == VPPS_OK) status = make_text(source, &text, &key.source_bytes);
    if (status == VPPS_OK) status = vpps_simt_toolchain(toolchain, sizeof toolchain);
    if (status == VPPS_OK) {
        key.source = text;
        bool cached = true;
        status = load(kernel, &key, &cached, seconds);
        if (status != VPPS_OK && cached) { /* The cached kernel may need another C library: compile again. */
            cached = false;
            status = load(kernel, &key, &cached, seconds);
        }
    }
    free(text);
    if (status == VPPS_OK) {
        *out = kernel;
    } else {
        vpps_simt_unload(kernel);
    }
    return status;
}

void vpps_simt_unload(vpps_simt_kernel *kernel) {
    if (!kernel) return;
    vpps_simt_grid_destroy(kernel->grid);
    if (kernel->handle) dlclose(kernel->handle);
    free(kernel);
}
