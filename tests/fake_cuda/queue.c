/* queue.c - the fake driver's one queue of work, and the thread that does the work, late on purpose. */
#include "fake_cuda/state.h"

typedef struct work_item {
    struct work_item *next;
    fake_work work;
    max_align_t payload[];
} work_item;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static work_item *first, **last = &first; /* an item stays in the list while it is worked on */
static uint32_t waiting;                  /* threads that drain */
static bool held, stopping, running;
static vpps_cu_result error;
static pthread_t worker;

/* Waits a millisecond, unless somebody waits for the work; the lock must be held. */
static void be_late(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    while (waiting == 0 && pthread_cond_timedwait(&changed, &lock, &until) == 0) {}
}

static void *run_worker(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    while (!stopping || first) {
        if (!first || (held && waiting == 0)) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        if (waiting == 0) {
            be_late();
            if (held && waiting == 0) continue;
        }
        work_item *item = first;
        vpps_cu_result code = error;
        if (code == VPPS_CU_SUCCESS) {
            pthread_mutex_unlock(&lock);
            code = item->work(item->payload);
            pthread_mutex_lock(&lock);
        }
        error = code;
        first = item->next;
        if (!first) last = &first;
        free(item);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

void fake_enqueue(fake_work work, const void *payload, size_t bytes) {
    work_item *item = malloc(sizeof *item + bytes);
    if (!item) abort(); /* it is a test's process: there is nothing to save */
    item->next = NULL;
    item->work = work;
    memcpy(item->payload, payload, bytes);
    LOCKED(&lock);
    *last = item;
    last = &item->next;
    if (!running && pthread_create(&worker, NULL, run_worker, NULL) != 0) abort();
    running = true;
    pthread_cond_broadcast(&changed);
}

void fake_drain(void) {
    LOCKED(&lock);
    waiting++;
    pthread_cond_broadcast(&changed);
    while (first) pthread_cond_wait(&changed, &lock);
    waiting--;
}

bool fake_busy(void) {
    LOCKED(&lock);
    return first != NULL;
}

void fake_hold(bool on) {
    LOCKED(&lock);
    held = on;
    pthread_cond_broadcast(&changed);
}

vpps_cu_result fake_error(void) {
    LOCKED(&lock);
    return error;
}

void fake_stop(void) {
    fake_drain();
    pthread_mutex_lock(&lock);
    const bool join = running;
    stopping = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (join) pthread_join(worker, NULL);
    pthread_mutex_lock(&lock);
    stopping = running = false;
    error = VPPS_CU_SUCCESS;
    pthread_mutex_unlock(&lock);
}
