/* kernel.h - a kernel loaded for software SIMT: load.c makes it, run.c runs it. */
#pragma once

#include "interp_templates/simt_cuda.h"
#include "runtime/simt/simt.h"

typedef struct vpps_simt_grid vpps_simt_grid;

struct vpps_simt_kernel {
    void *handle; /* result of dlopen */
    const vpps_simt_library *library;
    vpps_simt_grid *grid; /* fibers and shared memory of the latest run, kept for the next one */
};

void vpps_simt_grid_destroy(vpps_simt_grid *grid);
