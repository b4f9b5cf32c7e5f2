/* kernel.h - a kernel that software SIMT has loaded: between load.c, which makes it, and run.c, which runs it.
 */
#pragma once

#include "interp_templates/simt_cuda.h"
#include "runtime/simt/simt.h"

typedef struct vpps_simt_grid vpps_simt_grid;

struct vpps_simt_kernel {
    void *handle; /* dlopen's */
    const vpps_simt_library *library;
    vpps_simt_grid *grid; /* what the last run needed, for the next */
};

void vpps_simt_grid_destroy(vpps_simt_grid *grid);
