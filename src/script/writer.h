/* writer.h - appends words to a batch's program (script), which the device runs: data, and tasks with barriers. */
#pragma once

#include "script/task.h"

typedef struct vpps_writer {
    uint32_t *words;
    size_t n;
    bool failed; /* whether memory ran out or the batch's program exceeded 2^32 words; then nothing more is written */
    uint32_t n_tasks;
    /* From here on: the state of the group of threads or CTAs whose tasks are being written. */
    uint32_t last;          /* address of the latest task; 0: no task yet */
    uint32_t wait, signals; /* the next task waits for `signals` signals of barrier `wait`; VPPS_NO_BARRIER: for none */
} vpps_writer;

/* Appends n words, not yet set, and returns their address. Each call may reallocate w->words. */
uint32_t vpps_write_room(vpps_writer *w, uint64_t n);

/* Begins the list of tasks of one group of threads or CTAs: writes the address of its first task to w->words[start]. */
void vpps_write_group(vpps_writer *w, uint32_t start);

/* Appends a task, and sets the barriers that it waits for and signals. */
void vpps_write_task(vpps_writer *w, vpps_task task);
#define VPPS_WRITE_TASK(w, name, ...)                                                                                  \
    vpps_write_task((w), (vpps_task){.kind = VPPS_TASK_##name, .operands = {__VA_ARGS__}})

/* Appends a PAUSE task, at which the launch ends. It signals no barrier, since the tasks after it belong to another launch. */
void vpps_write_pause(vpps_writer *w);

/* Puts a barrier between the tasks of the group of threads or CTAs for which tasks are being written: the latest task
 * signals it, and the next task waits until it has been signalled `signals` times. */
void vpps_write_barrier(vpps_writer *w, uint32_t barrier, uint32_t signals);
