/* driver_cuda_kernels.c - kernels on a GPU: compiles source to CUBIN, or to PTX for the driver's compiler; loads and launches them. */
#include "runtime/gpu/driver_cuda.h"

#include "codegen/nvrtc.h"

#include <stdio.h>

/* Chooses the newest architectures to compile for, among those that NVRTC knows; 0: none. *binary: for binary code, which runs on the same
 * and later architectures of the same major version (CUDA C++ Programming Guide, "Binary Compatibility"). *virtual_arch: for PTX, which
 * runs on the same and all later architectures ("PTX Compatibility"). */
static vpps_status choose_arch(const cuda_driver *d, uint32_t *binary, uint32_t *virtual_arch) {
    const vpps_nvrtc *nvrtc;
    VPPS_TRY(vpps_nvrtc_open(&nvrtc));
    const uint32_t *known = nvrtc->architectures, n = nvrtc->n_architectures;
    *binary = *virtual_arch = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (known[i] > d->arch) continue;
        *virtual_arch = vpps_max_u32(*virtual_arch, known[i]);
        if (known[i] / 10 == d->arch / 10) *binary = vpps_max_u32(*binary, known[i]);
    }
    if (*virtual_arch) return VPPS_OK;
    return vpps_fail(VPPS_DEVICE,
                     "cuda: the GPU is sm_%u; NVRTC %d.%d makes code for sm_%u to sm_%u, none that runs on it", d->arch,
                     nvrtc->major, nvrtc->minor, n ? known[0] : 0, n ? known[n - 1] : 0);
}

/* Checks that all CTAs fit on the GPU at once, as a cooperative launch requires. The driver's own error message would lack the numbers. */
static vpps_status check_shape(cuda_driver *d, vpps_kernel *k, const vpps_launch_shape *shape) {
    int ctas = 0;
    const uint32_t shared = shape->dynamic_shared_bytes;
    if (shared > 0)
        CUDA_TRY(d, "the kernel's dynamic shared memory",
                 cuFuncSetAttribute(k->function, VPPS_CU_FUNCTION_DYNAMIC_SHARED_BYTES, (int)shared));
    CUDA_TRY(d, "the kernel's occupancy",
             cuOccupancyMaxActiveBlocksPerMultiprocessor(&ctas, k->function, (int)shape->threads, shared));
    if (shape->ctas > (uint32_t)ctas * d->sms)
        return vpps_fail(
            VPPS_DEVICE,
            "cuda: %u CTAs of %u threads and %u bytes of dynamic shared memory are not resident at once: %d "
            "fit on each of %u SMs",
            shape->ctas, shape->threads, shared, ctas, d->sms);
    k->shape = *shape;
    return VPPS_OK;
}

/* Loads a kernel from a CUBIN, or from PTX, which the driver then compiles. *code: the driver's result code. */
static vpps_status load_image(cuda_driver *d, const void *image, const vpps_launch_shape *shape, vpps_kernel **out,
                              vpps_cu_result *code) {
    vpps_kernel *k = calloc(1, sizeof *k);
    if (!k) return vpps_fail(VPPS_MEMORY, "cuda: no memory for a kernel");
    vpps_status status = VPPS_OK;
    *code = d->cuda.cuModuleLoadData(&k->module, image);
    if (*code != VPPS_CU_SUCCESS) {
        status = vpps_cuda_failed(&d->cuda, "loading the kernel", *code);
    } else {
        const vpps_cu_result found = d->cuda.cuModuleGetFunction(&k->function, k->module, "vpps_kernel");
        status = found == VPPS_CU_SUCCESS ? check_shape(d, k, shape)
                                          : vpps_cuda_failed(&d->cuda, "the function vpps_kernel", found);
        if (status != VPPS_OK) d->cuda.cuModuleUnload(k->module);
    }
    if (status == VPPS_OK)
        *out = k;
    else
        free(k);
    return status;
}

/* Fills in the report (registers, stack frame, shared memory) of a kernel that the driver compiled from PTX. */
static vpps_status report_function(cuda_driver *d, vpps_cu_function function, vpps_cubin_report *report) {
    const struct {
        unsigned attribute;
        uint32_t *value;
    } asked[] = {
        {VPPS_CU_FUNCTION_REGISTERS, &report->registers},
        {VPPS_CU_FUNCTION_LOCAL_BYTES, &report->frame_bytes},
        {VPPS_CU_FUNCTION_STATIC_SHARED_BYTES, &report->shared_bytes},
    };
    for (size_t i = 0; i < VPPS_COUNT(asked); i++) {
        int value = 0;
        CUDA_TRY(d, "an attribute of the kernel", cuFuncGetAttribute(&value, asked[i].attribute, function));
        *asked[i].value = (uint32_t)value;
    }
    return VPPS_OK;
}

static vpps_status load_ptx(cuda_driver *d, const char *source, uint32_t arch, const vpps_launch_shape *shape,
                            vpps_kernel **out, vpps_cubin_report *report) {
    char *ptx;
    vpps_cu_result code = VPPS_CU_SUCCESS;
    VPPS_TRY(vpps_compile_ptx(source, arch, &ptx, report));
    const uint64_t start = vpps_now_ns();
    vpps_status status = load_image(d, ptx, shape, out, &code);
    report->seconds += (double)(vpps_now_ns() - start) * 1e-9;
    free(ptx);
    if (status == VPPS_OK) {
        status = report_function(d, (*out)->function, report);
        if (status != VPPS_OK) vpps_cuda_unload(&d->base, *out);
    }
    if (code == VPPS_CU_SUCCESS) return status;
    return vpps_fail(status, "%s; the driver is CUDA %d.%d's, and VPPS_NVRTC can name an NVRTC of the same version",
                     vpps_error_message(), d->version / 1000, d->version % 1000 / 10);
}

vpps_status vpps_cuda_load(vpps_driver *base, const char *source, const char *description,
                           const vpps_launch_shape *shape, vpps_kernel **out, vpps_cubin_report *report) {
    CUDA_ENTER(d, base);
    uint32_t binary, virtual_arch;
    void *cubin;
    size_t bytes;
    vpps_cu_result code = VPPS_CU_SUCCESS;
    VPPS_TRY(choose_arch(d, &binary, &virtual_arch));
    if (!binary) return load_ptx(d, source, virtual_arch, shape, out, report);
    VPPS_TRY(vpps_compile(source, "vpps_kernel", binary, description, true, &cubin, &bytes, report));
    const vpps_status status = load_image(d, cubin, shape, out, &code);
    free(cubin);
    const bool too_new = code == VPPS_CU_INVALID_IMAGE || code == VPPS_CU_NO_BINARY_FOR_GPU; /* than the driver */
    return too_new ? load_ptx(d, source, virtual_arch, shape, out, report) : status;
}

/* Compiles the source to a CUBIN in the disk cache. Does nothing if the GPU needs PTX, which the driver compiles only while loading it. */
vpps_status vpps_cuda_prepare(vpps_driver *base, const char *source, const char *description,
                              vpps_cubin_report *report) {
    const cuda_driver *d = (const cuda_driver *)base;
    uint32_t binary, virtual_arch;
    void *cubin;
    size_t bytes;
    *report = (vpps_cubin_report){0};
    VPPS_TRY(choose_arch(d, &binary, &virtual_arch));
    if (!binary) return VPPS_OK;
    VPPS_TRY(vpps_compile(source, "vpps_kernel", binary, description, true, &cubin, &bytes, report));
    free(cubin);
    return VPPS_OK;
}

void vpps_cuda_unload(vpps_driver *base, vpps_kernel *kernel) {
    CUDA_DRIVER(d);
    if (!kernel) return;
    if (vpps_cuda_enter(base, &d) == VPPS_OK) d->cuda.cuModuleUnload(kernel->module);
    free(kernel);
}

/* Launches a kernel. The driver copies the kernel's parameter before the call returns, and knows its size from the kernel. */
vpps_status vpps_cuda_launch(vpps_driver *base, vpps_kernel *kernel, const vpps_launch_shape *shape,
                             const void *arguments, size_t bytes) {
    CUDA_ENTER(d, base);
    void *parameters[] = {(void *)(uintptr_t)arguments};
    (void)bytes;
    if (shape->ctas != kernel->shape.ctas || shape->threads != kernel->shape.threads ||
        shape->dynamic_shared_bytes != kernel->shape.dynamic_shared_bytes)
        VPPS_TRY(check_shape(d, kernel, shape));
    CUDA_TRY(d, "the launch",
             cuLaunchCooperativeKernel(kernel->function, shape->ctas, 1, 1, shape->threads, 1, 1,
                                       shape->dynamic_shared_bytes, d->stream, parameters));
    return VPPS_OK;
}
