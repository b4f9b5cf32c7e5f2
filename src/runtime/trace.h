/* trace.h - the trace of a run: spans of time, noted where they happen and written at the end (vpps_trace_write).
 *
 * A VP notes the end of each of its tasks, which is where the next one begins, in memory that was made before the launch: a reading of the
 * clock and 32 bytes a task. The handle notes the caller's spans and how long the device ran. A batch is noted as a whole or not at all, so
 * that a run of any length leaves a bounded trace of whole batches.
 */
#pragma once

#include "graph/model.h"
#include "script/script.h"
#include "script/task.h"

typedef struct vpps_task_note {
    uint64_t end_ns;
    const vpps_compiled_cell *cell; /* of STAGE and OUTER */
    uint32_t kind;                  /* of the task; or one of those below */
    uint32_t stage;                 /* of STAGE */
    uint32_t number;                /* STAGE, OUTER: of vertices; ENTRIES: the parameter */
} vpps_task_note;

enum {
    VPPS_NOTE_BEGIN = VPPS_TASK_COUNT, /* the VP begins launch `number` */
    VPPS_NOTE_WAIT                     /* it has waited for barrier `number` */
};

typedef struct vpps_track {
    _Alignas(64) vpps_task_note *notes; /* a cache line each: VPs write to them */
    size_t n;
} vpps_track;

/* A batch on the device. */
typedef struct vpps_launch_note {
    uint64_t batch; /* 0: of vpps_forward */
    uint64_t begin_ns, device_ns;
    uint32_t vertices;
} vpps_launch_note;

/* Something that the caller's thread did. */
typedef struct vpps_span_note {
    char name[32];
    uint64_t begin_ns, end_ns;
} vpps_span_note;

enum { VPPS_OPEN_SPANS = 16 };

typedef struct vpps_trace {
    uint64_t begin_ns;
    uint64_t limit;    /* events */
    uint64_t left_out; /* launches that were not noted for lack of room */
    bool noting;       /* the VPs note the latest launch */
    bool full;
    vpps_track *tracks; /* of each VP */
    uint32_t n_tracks;
    vpps_launch_note *launches;
    size_t n_launches;
    vpps_span_note *spans;
    size_t n_spans;
    vpps_span_note open[VPPS_OPEN_SPANS]; /* begun and not ended */
    uint32_t n_open;
} vpps_trace;

/* A trace of at most `limit` events, of so many VPs (0: the device's are not followed). Fails with MEMORY. */
vpps_status vpps_trace_create(vpps_trace **out, uint64_t limit, uint32_t n_vps);
void vpps_trace_destroy(vpps_trace *t);

/* A launch begins, of so many tasks, none if the VPs are not followed; it is over after device_ns. */
void vpps_trace_launch(vpps_trace *t, uint64_t batch, uint32_t vertices, uint64_t tasks);
void vpps_trace_landed(vpps_trace *t, uint64_t device_ns);

/* The caller was busy from begin_ns until now. NULL: there is no trace. */
void vpps_trace_span(vpps_trace *t, const char *name, uint64_t begin_ns);

/* Writes the trace as JSON. Fails with IO. */
vpps_status vpps_trace_print(vpps_trace *t, const vpps_model *model, const char *device, FILE *file);

/* Where the VP notes the launch that is about to run; NULL: nowhere. */
static inline vpps_track *vpps_trace_track(vpps_trace *t, uint32_t vp) {
    return VPPS_UNLIKELY(t != NULL) && t->noting ? &t->tracks[vp] : NULL;
}

/* A note of what ends now. */
static inline void vpps_trace_note(vpps_track *k, vpps_task_note note) {
    if (k->n == vpps_capacity(k->notes)) return; /* there is room for all of a script's */
    note.end_ns = vpps_now_ns();
    k->notes[k->n++] = note;
}

static inline void vpps_trace_begin_track(const vpps_trace *t, vpps_track *k) {
    vpps_trace_note(k, (vpps_task_note){.kind = VPPS_NOTE_BEGIN, .number = (uint32_t)t->n_launches - 1});
}
