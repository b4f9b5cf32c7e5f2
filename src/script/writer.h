/* writer.h - the words of a script as they are written, one after the other, and its tasks with barriers between them. */
#pragma once

#include "script/task.h"

typedef struct vpps_writer {
    uint32_t *words;
    size_t n;
    bool failed; /* out of memory, or more than 2^32 words: then nothing is written any more */
    uint32_t n_tasks;
    /* of the group at hand */
    uint32_t last;          /* address of the last task; 0: there is none yet */
    uint32_t wait, signals; /* what the next one waits for; VPPS_NO_BARRIER: nothing */
} vpps_writer;

/* Appends n words and returns their address. Each call may move the words in memory. */
uint32_t vpps_write_room(vpps_writer *w, uint64_t n);

/* Begins the list of a group's tasks, and returns the address of the first. */
uint32_t vpps_write_group(vpps_writer *w);

/* Appends a task, whose barriers are set here. */
void vpps_write_task(vpps_writer *w, vpps_task task);
#define VPPS_WRITE_TASK(w, name, ...)                                                                                  \
    vpps_write_task((w), (vpps_task){.kind = VPPS_TASK_##name, .operands = {__VA_ARGS__}})

/* Appends a PAUSE. It signals nothing: what follows is another launch's. */
void vpps_write_pause(vpps_writer *w);

/* The group's last task signals a barrier, and the next one waits until the barrier has been signalled `signals` times. */
void vpps_write_barrier(vpps_writer *w, uint32_t barrier, uint32_t signals);
