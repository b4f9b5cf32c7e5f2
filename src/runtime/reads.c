/* reads.c - reads several values of the pool in few copies. */
#include "runtime/reads.h"

/* Largest gap, in words, between two values that one copy reads together. A link to a GPU transfers so many words in the time that another
 * copy takes to start. */
enum { MOST_BETWEEN = 1 << 15 };

static int by_offset(const void *a, const void *b) {
    const vpps_pool_read *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static uint32_t end_of(const vpps_pool_read *r) { return r->offset + r->words; }

/* Reads n values that lie close together, in `words` words of the pool, by one copy; or one by one if there is no memory for the copy. */
static vpps_status read_run(vpps_device *d, uint32_t n, const vpps_pool_read *reads, uint32_t words) {
    float *copy = n > 1 ? malloc(words * sizeof *copy) : NULL;
    vpps_status status = VPPS_OK;
    if (!copy) {
        for (uint32_t i = 0; i < n && status == VPPS_OK; i++)
            status = d->table->read(d, reads[i].offset, reads[i].words, reads[i].out);
        return status;
    }
    status = d->table->read(d, reads->offset, words, copy);
    for (uint32_t i = 0; i < n && status == VPPS_OK; i++)
        memcpy(reads[i].out, copy + (reads[i].offset - reads->offset), reads[i].words * sizeof *copy);
    free(copy);
    return status;
}

vpps_status vpps_read_pool(vpps_device *d, uint32_t n, vpps_pool_read *reads) {
    const bool host = d->table->host_vps; /* the pool is in host memory, where a copy has no fixed cost */
    if (n && !host) qsort(reads, n, sizeof *reads, by_offset);
    for (uint32_t i = 0, next; i < n; i = next) {
        next = i + 1;
        if (reads[i].offset == VPPS_NONE) {
            memset(reads[i].out, 0, reads[i].words * sizeof *reads[i].out);
            continue;
        }
        uint32_t end = end_of(&reads[i]);
        for (;
             next < n && !host && reads[next].offset != VPPS_NONE && reads[next].offset <= (uint64_t)end + MOST_BETWEEN;
             next++)
            end = vpps_max_u32(end, end_of(&reads[next]));
        VPPS_TRY(read_run(d, next - i, reads + i, end - reads[i].offset));
    }
    return VPPS_OK;
}
