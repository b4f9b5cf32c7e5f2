/* arrange.h - the copies that a compiled cell would need so that equal operations could run as one (ED-Batch, section 3). */
#pragma once

#include "cell/cell.h"
#include "cell/pq_layout.h"

/* Copies of operands that are needed for one vertex (application of the cell), in forward and in backward. */
typedef struct vpps_cell_copies {
    vpps_layout_copies forward, backward;
} vpps_cell_copies;

typedef struct vpps_cell_layout {
    vpps_cell_copies as_made; /* the copies if values lie in order of creation */
    /* the copies if values lie in the order that a PQ tree finds, or in order of creation if that needs fewer */
    vpps_cell_copies arranged;
    uint64_t ns; /* nanoseconds that finding the order took */
} vpps_cell_layout;

/* Counts the copies that a compiled cell would need. Fails with MEMORY. */
vpps_status vpps_arrange_cell(const vpps_compiled_cell *c, vpps_cell_layout *out);

/* Returns the number of words that are copied for a vertex, in forward and backward together. */
static inline uint64_t vpps_copied_words(const vpps_cell_copies *x) {
    return x->forward.gathered + x->forward.scattered + x->backward.gathered + x->backward.scattered;
}
