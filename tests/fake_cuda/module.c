/* module.c - the fake driver's modules and launches: a CUBIN is only inspected, and a hook runs in place of the kernel. */
#include "fake_cuda/state.h"

enum { ARGUMENT_BYTES = 4096, DEFAULT_SHARED_BYTES = 48 << 10, SM_THREADS = 2048, CTA_THREADS = 1024 };

struct CUmod_st {
    char *image;
    size_t bytes;
    int dynamic_shared_bytes; /* allowed */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static fake_cuda_kernel kernel;
static size_t argument_bytes;

void fake_set_kernel(fake_cuda_kernel hook, size_t bytes) {
    LOCKED(&lock);
    kernel = hook;
    argument_bytes = bytes < ARGUMENT_BYTES ? bytes : ARGUMENT_BYTES;
}

/* Returns an ELF file's length up to the end of its section table; 0: no 64-bit ELF (System V ABI, "ELF Header"). */
static size_t elf_bytes(const char *image) {
    static const char magic[] = {0x7f, 'E', 'L', 'F', 2};
    uint64_t sections;
    uint16_t section_bytes, n;
    if (memcmp(image, magic, sizeof magic) != 0) return 0;
    memcpy(&sections, image + 0x28, sizeof sections);
    memcpy(&section_bytes, image + 0x3a, sizeof section_bytes);
    memcpy(&n, image + 0x3c, sizeof n);
    return sections + (size_t)section_bytes * n;
}

/* PTX is text that begins with a comment (as NVRTC writes it) and names its version (PTX ISA, "Directives"). */
static bool is_ptx(const char *image) { return strncmp(image, "//", 2) == 0 && strstr(image, ".version"); }

/* Returns whether code of the image's architecture runs on the device. NVIDIA does not document where an image states it; this is what CUDA 13 writes
 * (ABI version 8 of its ELF files), and other versions count as running. */
static bool runs_here(const char *image) {
    uint32_t flags;
    memcpy(&flags, image + 0x30, sizeof flags);
    const int arch = (int)(flags >> 8 & 0xff);
    return image[8] != 8 || (arch / 10 == fake_device.arch_major && arch % 10 <= fake_device.arch_minor);
}

vpps_cu_result cuModuleLoadData(vpps_cu_module *module, const void *image) {
    ENTER(cuModuleLoadData, true);
    const size_t bytes = is_ptx(image) ? strlen(image) : elf_bytes(image);
    if (bytes == 0) return VPPS_CU_INVALID_IMAGE;
    if (!is_ptx(image) && !runs_here(image)) return VPPS_CU_NO_BINARY_FOR_GPU;
    vpps_cu_module m = malloc(sizeof *m);
    char *own = malloc(bytes + 1);
    if (!m || !own) abort();
    memcpy(own, image, bytes);
    own[bytes] = '\0';
    *m = (struct CUmod_st){own, bytes, DEFAULT_SHARED_BYTES};
    COUNT(modules, 1);
    *module = m;
    return VPPS_CU_SUCCESS;
}

vpps_cu_result cuModuleUnload(vpps_cu_module module) {
    ENTER_RELEASE(cuModuleUnload);
    free(module->image);
    free(module);
    COUNT(modules, -1);
    return fake_error();
}

/* A function is represented by its module; in a CUBIN names are texts between zeros, in PTX they follow ".entry ". */
vpps_cu_result cuModuleGetFunction(vpps_cu_function *function, vpps_cu_module module, const char *name) {
    ENTER(cuModuleGetFunction, true);
    static const char entry[] = ".entry ";
    char text[128] = {0};
    const bool ptx = is_ptx(module->image);
    const size_t before = ptx ? strlen(entry) : 1, length = strlen(name), bytes = before + length + !ptx;
    if (bytes > sizeof text) return VPPS_CU_INVALID_VALUE;
    if (ptx) memcpy(text, entry, before);
    memcpy(text + before, name, length);
    if (!memmem(module->image, module->bytes, text, bytes)) return CODE_NOT_FOUND;
    *function = (vpps_cu_function)(void *)module;
    return VPPS_CU_SUCCESS;
}

vpps_cu_result cuFuncGetAttribute(int *value, unsigned attribute, vpps_cu_function function) {
    (void)function;
    ENTER(cuFuncGetAttribute, true);
    switch (attribute) {
    case VPPS_CU_FUNCTION_REGISTERS: *value = fake_device.kernel_registers; break;
    case VPPS_CU_FUNCTION_LOCAL_BYTES:
    case VPPS_CU_FUNCTION_STATIC_SHARED_BYTES: *value = 0; break;
    default: return VPPS_CU_INVALID_VALUE;
    }
    return VPPS_CU_SUCCESS;
}

vpps_cu_result cuFuncSetAttribute(vpps_cu_function function, unsigned attribute, int value) {
    ENTER(cuFuncSetAttribute, true);
    if (attribute != VPPS_CU_FUNCTION_DYNAMIC_SHARED_BYTES || value < 0 || value > fake_device.cta_shared_bytes)
        return VPPS_CU_INVALID_VALUE;
    ((vpps_cu_module)(void *)function)->dynamic_shared_bytes = value;
    return VPPS_CU_SUCCESS;
}

static int occupancy(int threads, size_t dynamic_shared_bytes) {
    int ctas = SM_THREADS / threads;
    const int by_registers = fake_device.sm_registers / (threads * fake_device.kernel_registers);
    const int by_shared = (int)((size_t)fake_device.sm_shared_bytes / (dynamic_shared_bytes + 1024));
    if (ctas > by_registers) ctas = by_registers;
    return ctas < by_shared ? ctas : by_shared;
}

vpps_cu_result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *ctas, vpps_cu_function function, int threads,
                                                           size_t dynamic_shared_bytes) {
    ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor, true);
    const struct CUmod_st *m = (vpps_cu_module)(void *)function;
    if (threads < 1) return VPPS_CU_INVALID_VALUE;
    *ctas = dynamic_shared_bytes > (size_t)m->dynamic_shared_bytes ? 0 : occupancy(threads, dynamic_shared_bytes);
    return VPPS_CU_SUCCESS;
}

typedef struct launch_work {
    fake_cuda_kernel kernel;
    unsigned ctas, threads, dynamic_shared_bytes;
    max_align_t arguments[ARGUMENT_BYTES / sizeof(max_align_t)];
} launch_work;

static vpps_cu_result run(void *payload) {
    const launch_work *l = payload;
    return l->kernel ? l->kernel(l->arguments, l->ctas, l->threads, l->dynamic_shared_bytes) : VPPS_CU_SUCCESS;
}

vpps_cu_result cuLaunchCooperativeKernel(vpps_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                         unsigned block_x, unsigned block_y, unsigned block_z,
                                         unsigned dynamic_shared_bytes, vpps_cu_stream stream, void **parameters) {
    ENTER(cuLaunchCooperativeKernel, true);
    const struct CUmod_st *m = (vpps_cu_module)(void *)function;
    const unsigned ctas = grid_x * grid_y * grid_z, threads = block_x * block_y * block_z;
    if (!stream || ctas == 0 || threads == 0 || threads > CTA_THREADS) return VPPS_CU_INVALID_VALUE;
    if (dynamic_shared_bytes > (unsigned)m->dynamic_shared_bytes) return VPPS_CU_INVALID_VALUE;
    if (ctas > (unsigned)(occupancy((int)threads, dynamic_shared_bytes) * fake_device.sms))
        return CODE_LAUNCH_TOO_LARGE;
    launch_work l = {.ctas = ctas, .threads = threads, .dynamic_shared_bytes = dynamic_shared_bytes};
    LOCKED(&lock);
    l.kernel = kernel;
    if (kernel) memcpy(l.arguments, parameters[0], argument_bytes);
    COUNT(launches, 1);
    fake_enqueue(run, &l, sizeof l);
    return VPPS_CU_SUCCESS;
}
