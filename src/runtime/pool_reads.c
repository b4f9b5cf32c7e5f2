/* pool_reads.c - reads several values from the device's memory pool, with one copy for values that lie close together. */
#include "runtime/pool_reads.h"

/* Most words between two values that one copy reads together. Starting another copy takes as long as transferring 2^15 words from a GPU. */
enum { MOST_BETWEEN = 1 << 15 };

static uint32_t end_of(const vpps_pool_copy *r) { return r->offset + r->words; }

/* Reads n values within `words` successive words of the pool by one copy to host memory; one by one if there is no memory for this copy. */
static vpps_status read_run(vpps_device *d, uint32_t n, const vpps_pool_copy *reads, uint32_t words) {
    float *copy = n > 1 ? malloc(words * sizeof *copy) : NULL;
    vpps_status status = VPPS_OK;
    if (!copy) {
        for (uint32_t i = 0; i < n && status == VPPS_OK; i++)
            status = d->table->read(d, reads[i].offset, reads[i].words, reads[i].array);
        return status;
    }
    status = d->table->read(d, reads->offset, words, copy);
    for (uint32_t i = 0; i < n && status == VPPS_OK; i++)
        memcpy(reads[i].array, copy + (reads[i].offset - reads->offset), reads[i].words * sizeof *copy);
    free(copy);
    return status;
}

vpps_status vpps_read_pool(vpps_device *d, const vpps_pointers *to, uint32_t n, vpps_pool_copy *reads) {
    if (to->on_device) return n ? d->table->trade(d, false, n, reads, to->stream) : VPPS_OK;
    const bool host = d->table->host_vps; /* copies within host memory need not be merged: starting one costs nothing */
    if (n && !host) qsort(reads, n, sizeof *reads, vpps_by_word);
    for (uint32_t i = 0, next; i < n; i = next) {
        next = i + 1;
        if (reads[i].offset == VPPS_NONE) {
            memset(reads[i].array, 0, reads[i].words * sizeof *reads[i].array);
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

vpps_status vpps_check_array(vpps_device *d, const vpps_pointers *pointers, const float *array, uint32_t words,
                             const char *what) {
    return pointers->on_device ? d->table->check_array(d, array, words * sizeof *array, what) : VPPS_OK;
}

vpps_status vpps_check_outs(vpps_device *d, const vpps_pointers *pointers, const vpps_graph *g, uint32_t n,
                            const vpps_node *nodes, float *const *arrays, const char *what) {
    for (uint32_t i = 0; i < n && pointers->on_device; i++) {
        char name[64];
        const vpps_signature *s = vpps_plain_signature(g, nodes[i]);
        snprintf(name, sizeof name, "%s[%u]", what, i);
        VPPS_TRY(vpps_check_array(d, pointers, arrays[i], s ? vpps_words(s) : 0, name));
    }
    return VPPS_OK;
}
