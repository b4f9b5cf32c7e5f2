/* trace.h - records time spans of a run, which vpps_trace_write writes at the end.
 *
 * A VP (CTA or thread) records only the end of each task, since its next begins then: one clock reading and 32 bytes
 * per task, in memory allocated before the launch. The handle records the caller's spans and the device's times. A
 * batch is recorded as a whole or not at all, so the trace of a long run is bounded. */
#pragma once

#include "graph/model.h"
#include "script/script.h"
#include "script/task.h"

typedef struct vpps_task_note {
    uint64_t end_ns;
    const vpps_compiled_cell *cell; /* tasks STAGE (part of a cell), OUTER (gradients): the cell */
    uint32_t kind;                  /* kind of the task; VPPS_NOTE_BEGIN: launch began; VPPS_NOTE_WAIT: wait ended */
    uint32_t stage;                 /* number of the stage (part of the cell), if the task is a STAGE */
    /* If the task is part of a cell (STAGE) or of matrices' gradients (OUTER): how many vertices it runs for. If it adds up gradients of rows of a
     * lookup table (ENTRIES): the table's parameter number. */
    uint32_t number;
} vpps_task_note;

enum {
    VPPS_NOTE_BEGIN = VPPS_TASK_COUNT, /* the virtual processor (thread) begins launch number `number` */
    VPPS_NOTE_WAIT                     /* the CTA or thread has waited for barrier number `number` */
};

typedef struct vpps_track {
    _Alignas(64) vpps_task_note *notes; /* aligned, so that different threads' tracks share no cache line */
    size_t n;
} vpps_track;

typedef struct vpps_launch_note {
    uint64_t batch; /* number of the batch; 0: a call of vpps_forward */
    uint64_t begin_ns, device_ns;
    uint32_t vertices;
} vpps_launch_note;

/* A named time span in which the caller's thread was busy. */
typedef struct vpps_span_note {
    char name[32];
    uint64_t begin_ns, end_ns;
} vpps_span_note;

enum { VPPS_OPEN_SPANS = 16 };

typedef struct vpps_trace {
    uint64_t begin_ns;
    uint64_t limit;    /* maximum number of recorded events */
    uint64_t left_out; /* number of launches that were not recorded for lack of room */
    bool noting;       /* whether worker threads (virtual processors) record the tasks they run in the current launch */
    bool full;
    vpps_track *tracks; /* indexed by virtual processor (thread): the list of its recorded tasks */
    uint32_t n_tracks;
    vpps_launch_note *launches;
    size_t n_launches;
    vpps_span_note *spans;
    size_t n_spans;
    vpps_span_note open[VPPS_OPEN_SPANS]; /* spans of the caller that have begun and not ended */
    uint32_t n_open;
} vpps_trace;

/* Creates a trace of at most `limit` events for n_vps virtual processors (threads; 0: their tasks are not recorded). Fails with MEMORY. */
vpps_status vpps_trace_create(vpps_trace **out, uint64_t limit, uint32_t n_vps);
void vpps_trace_destroy(vpps_trace *t);

/* Records the begin of a batch's launch, and its numbers of vertices and tasks (0 if tasks are not recorded). */
void vpps_trace_launch(vpps_trace *t, uint64_t batch, uint32_t vertices, uint64_t tasks);
/* Records that the latest launch has ended and took device_ns. */
void vpps_trace_landed(vpps_trace *t, uint64_t device_ns);

/* Records that the caller was busy from begin_ns until now. `t` may be NULL. */
void vpps_trace_span(vpps_trace *t, const char *name, uint64_t begin_ns);

/* Writes the trace as JSON. Fails with IO. */
vpps_status vpps_trace_print(vpps_trace *t, const vpps_model *model, const char *device, FILE *file);

/* Returns the track (list) in which virtual processor (thread) `vp` records its tasks of the coming launch; NULL: it records none. */
static inline vpps_track *vpps_trace_track(vpps_trace *t, uint32_t vp) {
    return VPPS_UNLIKELY(t != NULL) && t->noting ? &t->tracks[vp] : NULL;
}

/* Appends an event, such as a task, to a virtual processor's (thread's) list, the track; the event's end is now. */
static inline void vpps_trace_note(vpps_track *k, vpps_task_note note) {
    if (k->n == vpps_capacity(k->notes)) return; /* cannot happen: there is room for all tasks of a batch */
    note.end_ns = vpps_now_ns();
    k->notes[k->n++] = note;
}

static inline void vpps_trace_begin_track(const vpps_trace *t, vpps_track *k) {
    vpps_trace_note(k, (vpps_task_note){.kind = VPPS_NOTE_BEGIN, .number = (uint32_t)t->n_launches - 1});
}
