/* groups.c - the number of groups of virtual processors (threads) with which a batch costs least. */
#include "runtime/cpu/cpu.h"

/* Returns a group's number of threads divided by the number of those that own (store) rows of matrices. */
static double vps_for_one_with_rows(const vpps_batch_extent *e, uint32_t group_size) {
    const double units = e->rows / VPPS_ROW_UNIT;
    return e->rows >= VPPS_ENOUGH_ROWS && group_size > units ? group_size / units : 1;
}

/* Returns the estimated cost of a batch, in operations, with groups of `group_size` virtual processors (VPs: threads):
 * products and barriers. A product is slower the fewer vectors use a matrix that was fetched, and slower still if a
 * VP's part of the matrices exceeds its cache. On two cores, products reach half of their full rate with 1.3 vectors if
 * matrices are in L2, else with 5.6. A barrier takes as long as 1.5 million operations. */
static double cost_of_batch(const vpps_batch_extent *e, uint32_t group_size) {
    const double cache_elems = 1 << 19, in_cache = 1.3, beyond = 5.6, barrier = 1.5e6;
    const double groups = (double)e->n_vps / group_size, excess = e->elems / group_size / cache_elems - 1;
    const double half = in_cache + (beyond - in_cache) * (excess < 0 ? 0 : excess > 1 ? 1 : excess);
    const double flops = e->flops * vps_for_one_with_rows(e, group_size);
    return flops * (1 + half * groups / e->vectors) + (group_size > 1 ? e->levels * barrier : 0);
}

/* Returns the cheapest number of groups (of threads that together hold the model), at most `most`; or 1 if a number above `most` is
 * cheapest. Numbers above `most` are not tried if a single group of all threads would have threads that own no rows of matrices. */
uint32_t vpps_cpu_groups(const vpps_batch_extent *e, uint32_t most) {
    const uint32_t end = vps_for_one_with_rows(e, e->n_vps) > 1 ? most : e->n_vps;
    uint32_t best = 1;
    for (uint32_t groups = 2; groups <= end; groups++)
        if (e->n_vps % groups == 0 && cost_of_batch(e, e->n_vps / groups) < cost_of_batch(e, e->n_vps / best))
            best = groups;
    return best <= most ? best : 1;
}
