/* comm.c - sums over communicating processes, agreement on whether any process failed, messages of failures. */
#include "runtime/comm/comm.h"

vpps_status vpps_communicator_open(vpps_communicator **out, const char *kind, const void *comm, uint32_t watchdog_ms) {
    VPPS_NEED(out);
    *out = NULL;
    VPPS_NEED(kind);
    if (strcmp(kind, "mpi") == 0) return vpps_mpi_open(out, comm, watchdog_ms);
    return vpps_fail(VPPS_ARGUMENT, "communicator %.40s: unknown; there is: mpi", kind);
}

void vpps_communicator_close(vpps_communicator *c) {
    if (c) c->table->close(c);
}

uint32_t vpps_communicator_rank(const vpps_communicator *c) { return c ? c->rank : 0; }
uint32_t vpps_communicator_size(const vpps_communicator *c) { return c ? c->size : 1; }

vpps_status vpps_comm_init(vpps_communicator *c, const vpps_comm_table *table, uint32_t rank, uint32_t size,
                           uint32_t watchdog_ms) {
    c->table = table;
    c->rank = rank;
    c->size = size;
    c->watchdog_ns = (uint64_t)(watchdog_ms ? watchdog_ms : 10000) * 1000000;
    c->hosts = calloc(size, sizeof *c->hosts);
    c->out = calloc(2 * (size_t)size, sizeof *c->out);
    c->in = c->out ? c->out + size : NULL;
    if (c->hosts && c->out) return VPPS_OK;
    return vpps_fail(VPPS_MEMORY, "communicator: out of memory for %u processes", size);
}

void vpps_comm_free(vpps_communicator *c) {
    VPPS_FREE_ARRAYS(c->scratch);
    VPPS_FREE(c->hosts, c->out);
}

vpps_status vpps_comm_share_hosts(vpps_communicator *c, const char *host) {
    char own[VPPS_HOST_BYTES] = "";
    snprintf(own, sizeof own, "%s", host);
    return vpps_comm_gather(c, own, c->hosts, sizeof own);
}

enum { AT_A_TIME = 1 << 22 }; /* most elements that are summed at a time, which bounds the memory for receiving */

/* Returns the first of n elements that process p sums: the elements are divided into consecutive parts, one for each process. */
static size_t part_of(const vpps_communicator *c, size_t n, uint32_t p) { return (size_t)((uint64_t)n * p / c->size); }

static vpps_status allreduce_some(vpps_communicator *c, float *data, size_t n) {
    const uint32_t rank = c->rank;
    const size_t first = part_of(c, n, rank), own = part_of(c, n, rank + 1) - first;
    if (!VPPS_RESERVE(c->scratch, (size_t)c->size * own + 1))
        return vpps_fail(VPPS_MEMORY, "communicator: out of memory for a sum of %zu elements", n);
    for (uint32_t p = 0; p < c->size; p++) {
        const size_t at = part_of(c, n, p);
        c->out[p] = (vpps_parcel){data + at, (part_of(c, n, p + 1) - at) * sizeof *data};
        c->in[p] = (vpps_parcel){c->scratch + p * own, own * sizeof *data};
    }
    VPPS_TRY(c->table->exchange(c));
    memcpy(c->scratch + rank * own, data + first, own * sizeof *data);
    float *restrict sum = data + first;
    memcpy(sum, c->scratch, own * sizeof *data);
    for (uint32_t p = 1; p < c->size; p++) {
        const float *restrict more = c->scratch + p * own;
        for (size_t i = 0; i < own; i++) sum[i] += more[i];
    }
    for (uint32_t p = 0; p < c->size; p++) {
        c->in[p] = c->out[p];
        c->out[p] = (vpps_parcel){sum, own * sizeof *data};
    }
    return c->table->exchange(c);
}

vpps_status vpps_comm_allreduce(vpps_communicator *c, float *data, size_t n) {
    for (size_t at = 0, count; at < n; at += count) {
        count = n - at < AT_A_TIME ? n - at : AT_A_TIME;
        VPPS_TRY(allreduce_some(c, data + at, count));
    }
    return VPPS_OK;
}

vpps_status vpps_comm_gather(vpps_communicator *c, const void *own, void *all, size_t bytes) {
    char *to = all;
    memcpy(to + c->rank * bytes, own, bytes);
    for (uint32_t p = 0; p < c->size; p++) {
        c->out[p] = (vpps_parcel){to + c->rank * bytes, bytes};
        c->in[p] = (vpps_parcel){to + p * bytes, bytes};
    }
    return c->table->exchange(c);
}

vpps_status vpps_comm_broadcast(vpps_communicator *c, void *data, size_t bytes, uint32_t root) {
    for (uint32_t p = 0; p < c->size; p++) {
        c->out[p] = (vpps_parcel){data, c->rank == root ? bytes : 0};
        c->in[p] = (vpps_parcel){data, p == root ? bytes : 0};
    }
    return c->table->exchange(c);
}

vpps_status vpps_comm_sum(vpps_communicator *c, double *values, uint32_t n) {
    double *all = malloc((size_t)c->size * VPPS_COMM_SUMS * sizeof *all);
    if (!all) return vpps_fail(VPPS_MEMORY, "communicator: out of memory for %u sums", n);
    const vpps_status status = vpps_comm_gather(c, values, all, n * sizeof *values);
    for (uint32_t i = 0; i < n && status == VPPS_OK; i++) {
        values[i] = 0;
        for (uint32_t p = 0; p < c->size; p++) values[i] += all[(size_t)p * n + i];
    }
    free(all);
    return status;
}

typedef struct verdict {
    uint32_t status;
    char message[VPPS_MESSAGE_BYTES];
} verdict;

vpps_status vpps_comm_agree(vpps_communicator *c, vpps_status status) {
    verdict own = {.status = (uint32_t)status}, *all = calloc(c->size, sizeof *all);
    if (!all) return vpps_fail(VPPS_MEMORY, "communicator: out of memory");
    if (status != VPPS_OK) snprintf(own.message, sizeof own.message, "%s", vpps_error_message());
    vpps_status found = vpps_comm_gather(c, &own, all, sizeof own);
    for (uint32_t p = 0; p < c->size && found == VPPS_OK; p++) {
        if (all[p].status == VPPS_OK) continue;
        found = vpps_fail((vpps_status)all[p].status, "rank %u on %s: %.400s", p, c->hosts[p], all[p].message);
    }
    free(all);
    return found;
}

/* Returns the first line of `a` that `b` does not have in the same place, or NULL. */
static const char *difference(const char *a, const char *b) {
    while (*a || *b) {
        const size_t la = strcspn(a, "\n"), lb = strcspn(b, "\n");
        if (la != lb || memcmp(a, b, la) != 0) return a;
        a += la + (a[la] == '\n');
        b += lb + (b[lb] == '\n');
    }
    return NULL;
}

/* Returns the value in the line of `lines` that has the same name as `line`. */
static const char *value_in(const char *lines, const char *line, int *len) {
    const size_t name = strcspn(line, " \n");
    for (; *lines; lines += strcspn(lines, "\n"), lines += *lines == '\n') {
        if (strncmp(lines, line, name) != 0 || lines[name] != ' ') continue;
        *len = (int)strcspn(lines + name + 1, "\n");
        return lines + name + 1;
    }
    *len = 6;
    return "absent";
}

static vpps_status compare_with(const char *first, const char *lines) {
    const char *line = difference(lines, first);
    if (!line) return VPPS_OK;
    if (!*line) line = first + strlen(lines); /* this process has fewer lines than rank 0: reports rank 0's next line */
    int here_len, there_len;
    const char *here = value_in(lines, line, &here_len), *there = value_in(first, line, &there_len);
    return vpps_fail(VPPS_ARGUMENT, "%.*s is %.*s here, and %.*s at rank 0", (int)strcspn(line, " \n"), line,
                     here_len < 100 ? here_len : 100, here, there_len < 100 ? there_len : 100, there);
}

vpps_status vpps_comm_compare(vpps_communicator *c, const char *lines) {
    uint64_t bytes = strlen(lines) + 1;
    VPPS_TRY(vpps_comm_broadcast(c, &bytes, sizeof bytes, 0));
    char *first = calloc(bytes, 1);
    if (!first) return vpps_fail(VPPS_MEMORY, "communicator: out of memory");
    if (c->rank == 0) memcpy(first, lines, bytes);
    vpps_status status = vpps_comm_broadcast(c, first, bytes, 0);
    if (status == VPPS_OK) status = vpps_comm_agree(c, compare_with(first, lines));
    free(first);
    return status;
}
