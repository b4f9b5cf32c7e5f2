/* trace.c - records time spans of a run, and writes them as JSON, in the "Trace Event Format" of Chrome's about:tracing, which
 * ui.perfetto.dev opens: complete events (ph X) with times in microseconds. */
#include "runtime/trace.h"
#include "cell/print.h"
#include "io/json.h"

#include <errno.h>
#include <inttypes.h>

vpps_status vpps_trace_create(vpps_trace **out, uint64_t limit, uint32_t n_vps) {
    vpps_trace *t = *out = calloc(1, sizeof *t);
    void *tracks = NULL;
    if (!t || (n_vps && posix_memalign(&tracks, 64, n_vps * sizeof *t->tracks))) {
        free(t);
        *out = NULL;
        return vpps_fail(VPPS_MEMORY, "trace: out of memory");
    }
    if (n_vps) memset(tracks, 0, n_vps * sizeof *t->tracks);
    t->tracks = tracks;
    t->n_tracks = n_vps;
    t->limit = limit;
    t->begin_ns = vpps_now_ns();
    return VPPS_OK;
}

void vpps_trace_destroy(vpps_trace *t) {
    if (!t) return;
    for (uint32_t v = 0; v < t->n_tracks; v++) VPPS_FREE_ARRAYS(t->tracks[v].notes);
    VPPS_FREE_ARRAYS(t->launches, t->spans);
    VPPS_FREE(t->tracks, t);
}

static uint64_t count_events(const vpps_trace *t) {
    uint64_t n = t->n_launches + t->n_spans;
    for (uint32_t v = 0; v < t->n_tracks; v++) n += t->tracks[v].n;
    return n;
}

/* Returns whether the trace's limit allows a batch with this number of tasks; if so, reserves memory for their events. */
static bool has_room(vpps_trace *t, uint64_t tasks) {
    const uint64_t notes = 2 * tasks + 1; /* a task has two notes in the trace: the end of its wait, and its own end */
    const uint64_t events = 1 + notes * t->n_tracks;
    if (t->full || count_events(t) + events > t->limit) return false;
    bool room = VPPS_RESERVE(t->launches, t->n_launches + 1);
    for (uint32_t v = 0; v < t->n_tracks && room; v++) {
        vpps_track *k = &t->tracks[v];
        room = VPPS_RESERVE(k->notes, k->n + notes);
    }
    return room;
}

void vpps_trace_launch(vpps_trace *t, uint64_t batch, uint32_t vertices, uint64_t tasks) {
    const bool room = has_room(t, tasks);
    t->noting = room && tasks;
    t->full = !room;
    if (room) {
        t->launches[t->n_launches++] =
            (vpps_launch_note){.batch = batch, .begin_ns = vpps_now_ns(), .vertices = vertices};
    } else {
        t->left_out++;
    }
}

void vpps_trace_landed(vpps_trace *t, uint64_t device_ns) {
    if (t->full || !t->n_launches) return;
    t->launches[t->n_launches - 1].device_ns = device_ns;
}

void vpps_trace_span(vpps_trace *t, const char *name, uint64_t begin_ns) {
    if (!t || t->full) return;
    if (!VPPS_RESERVE(t->spans, t->n_spans + 1)) return;
    vpps_span_note *span = &t->spans[t->n_spans++];
    snprintf(span->name, sizeof span->name, "%s", name);
    span->begin_ns = begin_ns;
    span->end_ns = vpps_now_ns();
}

enum { CALLER = 1, DEVICE = 2, FIRST_VP = 10 }; /* numbers of the tracks in the written file */
enum { TASK_NAME_BYTES = 160 };

typedef struct writer {
    FILE *file;
    const vpps_trace *trace;
    const vpps_model *model;
    bool more; /* whether an event was written before, so that a comma is needed */
} writer;

static void put_track(writer *w, uint32_t track, const char *name) {
    fprintf(w->file,
            "%s{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"args\":{\"name\":\"%s\"}},\n"
            "{\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"args\":{\"sort_index\":%u}}",
            w->more ? ",\n" : "", track, name, track, track);
    w->more = true;
}

/* Writes the beginning of an event; the caller then writes its arguments as `"name":value` pairs, and "}}". */
static void put_event(writer *w, uint32_t track, const char *kind, const char *name, uint64_t begin_ns,
                      uint64_t end_ns) {
    const uint64_t ts = begin_ns - w->trace->begin_ns, dur = end_ns - begin_ns;
    fputs(w->more ? ",\n{\"name\":" : "{\"name\":", w->file);
    vpps_json_write_string(w->file, vpps_is_utf8(name) ? name : "(not UTF-8)");
    fprintf(w->file,
            ",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"ts\":%" PRIu64 ".%03u,\"dur\":%" PRIu64
            ".%03u,\"args\":{",
            kind, track, ts / 1000, (unsigned)(ts % 1000), dur / 1000, (unsigned)(dur % 1000));
    w->more = true;
}

static void batch_name(const vpps_launch_note *l, char *name, size_t n) {
    if (l->batch) {
        snprintf(name, n, "batch %" PRIu64, l->batch);
    } else {
        snprintf(name, n, "forward");
    }
}

/* Writes a task's name, such as "CELL, forward". A long `of` (CELL) is cut. */
static void name_task(char name[TASK_NAME_BYTES], const char *of, const char *what) {
    snprintf(name, TASK_NAME_BYTES - 32, "%s", of);
    vpps_drop_cut_character(name);
    const size_t n = strlen(name);
    snprintf(name + n, TASK_NAME_BYTES - n, ", %s", what);
}

static void put_task(writer *w, uint32_t track, const vpps_task_note *note, uint64_t begin_ns) {
    char name[TASK_NAME_BYTES];
    switch (note->kind) {
    case VPPS_TASK_STAGE: {
        const vpps_cell_stage *s = &note->cell->stages[note->stage];
        const char *pass = s->backward ? "backward" : "forward";
        name_task(name, note->cell->name, pass);
        put_event(w, track, "stage", name, begin_ns, note->end_ns);
        fprintf(w->file, "\"stage\":%u,\"part\":\"%s\",\"pass\":\"%s\",\"split\":\"%s\",\"vertices\":%u}}", note->stage,
                vpps_pass_name(s->pass), pass, vpps_split_name(s->split), note->number);
        break;
    }
    case VPPS_TASK_OUTER:
        name_task(name, note->cell->name, "gradients");
        put_event(w, track, "gradients", name, begin_ns, note->end_ns);
        fprintf(w->file, "\"vertices\":%u}}", note->number);
        break;
    case VPPS_TASK_ENTRIES:
        name_task(name, w->model->params[note->number].name, "gradients");
        put_event(w, track, "gradients", name, begin_ns, note->end_ns);
        fputs("}}", w->file);
        break;
    case VPPS_NOTE_WAIT:
        put_event(w, track, "wait", "wait", begin_ns, note->end_ns);
        fprintf(w->file, "\"barrier\":%u}}", note->number);
        break;
    default: {
        static const char *const names[VPPS_TASK_COUNT] = {[VPPS_TASK_CONSTANTS] = "constants",
                                                           [VPPS_TASK_LOSS] = "loss",
                                                           [VPPS_TASK_NORM] = "norm",
                                                           [VPPS_TASK_UPDATE] = "update"};
        put_event(w, track, "task", names[note->kind] ? names[note->kind] : "task", begin_ns, note->end_ns);
        fputs("}}", w->file);
    }
    }
}

/* Writes recorded tasks from index `at` to the next wait for a barrier, in a time span "phase N". Returns that wait's index or `end`. */
static size_t put_phase(writer *w, uint32_t track, const vpps_track *k, size_t at, size_t end, uint32_t phase) {
    size_t last = at;
    while (last < end && k->notes[last].kind != VPPS_NOTE_WAIT) last++;
    if (last > at) {
        char name[32];
        snprintf(name, sizeof name, "phase %u", phase);
        put_event(w, track, "phase", name, k->notes[at - 1].end_ns, k->notes[last - 1].end_ns);
        fputs("}}", w->file);
    }
    for (; at < last; at++) put_task(w, track, &k->notes[at], k->notes[at - 1].end_ns);
    return last;
}

static void put_vp(writer *w, uint32_t vp) {
    const vpps_track *k = &w->trace->tracks[vp];
    const uint32_t track = FIRST_VP + vp;
    char name[64];
    for (size_t at = 0, end; at < k->n; at = end) { /* one turn for each batch's notes (of tasks and waits) */
        for (end = at + 1; end < k->n && k->notes[end].kind != VPPS_NOTE_BEGIN;) end++;
        if (end == at + 1) continue;
        const vpps_launch_note *l = &w->trace->launches[k->notes[at].number];
        batch_name(l, name, sizeof name);
        put_event(w, track, "batch", name, k->notes[at].end_ns, k->notes[end - 1].end_ns);
        fprintf(w->file, "\"batch\":%" PRIu64 ",\"vertices\":%u}}", l->batch, l->vertices);
        uint32_t phase = 0;
        for (size_t next = at + 1; next < end; phase++) {
            next = put_phase(w, track, k, next, end, phase);
            if (next == end) break;
            put_task(w, track, &k->notes[next], k->notes[next - 1].end_ns); /* the wait at the barrier that follows */
            next++;
        }
    }
}

/* Compares spans by their begin; of two with the same begin, the inner one comes last. */
static int earlier(const void *a, const void *b) {
    const vpps_span_note *x = a, *y = b;
    if (x->begin_ns != y->begin_ns) return x->begin_ns < y->begin_ns ? -1 : 1;
    return x->end_ns == y->end_ns ? 0 : x->end_ns > y->end_ns ? -1 : 1;
}

vpps_status vpps_trace_print(vpps_trace *t, const vpps_model *model, const char *device, FILE *file) {
    writer w = {file, t, model, false};
    char name[64];
    fprintf(file,
            "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"vpps\":\"%s\",\"device\":\"%s\",\"batches\":%zu,"
            "\"batches_left_out\":%" PRIu64 "},\n\"traceEvents\":[\n",
            vpps_version(), device, t->n_launches, t->left_out);
    put_track(&w, CALLER, "host");
    snprintf(name, sizeof name, "device %s", device);
    put_track(&w, DEVICE, name);
    for (uint32_t v = 0; v < t->n_tracks; v++) {
        snprintf(name, sizeof name, "VP %u", v);
        put_track(&w, FIRST_VP + v, name);
    }
    if (t->n_spans) qsort(t->spans, t->n_spans, sizeof *t->spans, earlier);
    for (size_t i = 0; i < t->n_spans; i++) {
        put_event(&w, CALLER, "host", t->spans[i].name, t->spans[i].begin_ns, t->spans[i].end_ns);
        fputs("}}", file);
    }
    for (size_t i = 0; i < t->n_launches; i++) {
        const vpps_launch_note *l = &t->launches[i];
        batch_name(l, name, sizeof name);
        put_event(&w, DEVICE, "batch", name, l->begin_ns, l->begin_ns + l->device_ns);
        fprintf(file, "\"batch\":%" PRIu64 ",\"vertices\":%u}}", l->batch, l->vertices);
    }
    for (uint32_t v = 0; v < t->n_tracks; v++) put_vp(&w, v);
    fputs("\n]}\n", file);
    if (fflush(file) == 0 && !ferror(file)) return VPPS_OK;
    return vpps_fail(VPPS_IO, "trace: it cannot be written: %s", strerror(errno));
}
