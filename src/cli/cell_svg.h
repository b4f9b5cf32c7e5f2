/* cell_svg.h - compiled cells as a picture. */
#pragma once

#include "cell/cell.h"

typedef struct cell_picture {
    const vpps_model *model;
    vpps_compiled_cell *const *cells;
    uint32_t n;
} cell_picture;

/* Prints a cell_picture as SVG, cell below cell. Fails with MEMORY. */
vpps_status cell_picture_print(const void *picture, FILE *f);
