/* writer.c - appends words and tasks to a script (a batch's program). */
#include "script/writer.h"

uint32_t vpps_write_room(vpps_writer *w, uint64_t n) {
    const uint64_t at = w->n;
    w->failed = w->failed || at + n >= UINT32_MAX || !VPPS_RESERVE(w->words, (size_t)(at + n));
    if (!w->failed) w->n = (size_t)(at + n);
    return (uint32_t)at;
}

void vpps_write_group(vpps_writer *w, uint32_t start) {
    const uint32_t odd = w->n % VPPS_TASK_ALIGNMENT, fill = odd ? VPPS_TASK_ALIGNMENT - odd : 0;
    const uint32_t at = vpps_write_room(w, fill);
    if (!w->failed) memset(w->words + at, 0, fill * sizeof *w->words);
    w->last = 0;
    w->wait = VPPS_NO_BARRIER;
    w->signals = 0;
    if (!w->failed) w->words[start] = (uint32_t)w->n;
}

void vpps_write_task(vpps_writer *w, vpps_task task) {
    const uint32_t at = vpps_write_room(w, VPPS_TASK_WORDS);
    if (w->failed) return;
    task.wait = w->wait;
    task.signals = w->signals;
    task.signal = VPPS_NO_BARRIER;
    task.address = at;
    memcpy(w->words + at, &task, sizeof task);
    w->last = at;
    w->wait = VPPS_NO_BARRIER;
    w->signals = 0;
    w->n_tasks++;
}

void vpps_write_pause(vpps_writer *w) {
    VPPS_WRITE_TASK(w, PAUSE, 0);
    w->last = 0;
}

void vpps_write_barrier(vpps_writer *w, uint32_t barrier, uint32_t signals) {
    if (!w->last || w->wait != VPPS_NO_BARRIER) VPPS_WRITE_TASK(w, NOTHING, 0);
    if (w->failed) return;
    vpps_task last;
    memcpy(&last, w->words + w->last, sizeof last);
    last.signal = barrier;
    memcpy(w->words + w->last, &last, sizeof last);
    w->wait = barrier;
    w->signals = signals;
}
