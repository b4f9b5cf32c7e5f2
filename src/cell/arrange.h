/* arrange.h - what a compiled cell would copy so that its alike operations could run as one (ED-Batch, section 3). */
#pragma once

#include "cell/cell.h"
#include "cell/pq_layout.h"

/* The copies of one vertex, in each pass. */
typedef struct vpps_cell_copies {
    vpps_layout_copies forward, backward;
} vpps_cell_copies;

typedef struct vpps_cell_layout {
    vpps_cell_copies as_made;  /* with values in the order of their making */
    vpps_cell_copies arranged; /* in the order that a PQ tree finds, or as made where that copies less */
    uint64_t ns;               /* time that finding the order took */
} vpps_cell_layout;

/* Fails with MEMORY. */
vpps_status vpps_arrange_cell(const vpps_compiled_cell *c, vpps_cell_layout *out);

/* The words of a vertex that are copied, in both passes. */
static inline uint64_t vpps_copied_words(const vpps_cell_copies *x) {
    return x->forward.gathered + x->forward.scattered + x->backward.gathered + x->backward.scattered;
}
