/* threads.c - see threads.h. The receiver copies what another thread sends, between two meetings of all. */
#include "comm/threads.h"

#include "common/testing.h"

#include <pthread.h>

enum { MOST = 8 };

typedef struct meeting {
    pthread_barrier_t barrier;
    const vpps_parcel *out[MOST];
    uint32_t size;
    void (*work)(vpps_communicator *c, void *argument);
    void *argument;
} meeting;

typedef struct thread_row {
    vpps_communicator c;
    meeting *all;
    uint32_t rank;
} thread_row;

static vpps_status thread_exchange(vpps_communicator *c) {
    meeting *all = ((thread_row *)c)->all;
    all->out[c->rank] = c->out;
    pthread_barrier_wait(&all->barrier);
    for (uint32_t p = 0; p < c->size; p++) {
        if (p == c->rank) continue;
        const vpps_parcel *sent = &all->out[p][c->rank];
        ck_assert_uint_eq(sent->bytes, c->in[p].bytes);
        if (sent->bytes) memcpy(c->in[p].data, sent->data, sent->bytes);
        c->sent_bytes += c->out[p].bytes;
    }
    pthread_barrier_wait(&all->barrier);
    return VPPS_OK;
}

static const vpps_comm_table table = {.exchange = thread_exchange};

static void *run(void *argument) {
    thread_row *row = argument;
    char host[16];
    ck_assert_int_eq(vpps_comm_init(&row->c, &table, row->rank, row->all->size, 0), VPPS_OK);
    snprintf(host, sizeof host, "host%u", row->rank);
    ck_assert_int_eq(vpps_comm_share_hosts(&row->c, host), VPPS_OK);
    row->all->work(&row->c, row->all->argument);
    vpps_comm_free(&row->c);
    return NULL;
}

void threads_run(uint32_t size, void (*work)(vpps_communicator *c, void *argument), void *argument) {
    meeting all = {.size = size, .work = work, .argument = argument};
    pthread_t threads[MOST];
    thread_row rows[MOST];
    ck_assert_uint_le(size, MOST);
    pthread_barrier_init(&all.barrier, NULL, size);
    for (uint32_t p = 0; p < size; p++) {
        rows[p] = (thread_row){.all = &all, .rank = p};
        ck_assert_int_eq(pthread_create(&threads[p], NULL, run, &rows[p]), 0);
    }
    for (uint32_t p = 0; p < size; p++) pthread_join(threads[p], NULL);
    pthread_barrier_destroy(&all.barrier);
}
