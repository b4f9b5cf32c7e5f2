/* editor.c - see mutate.h. Tasks come last in a script, so that they can become more and fewer. */
#include "mutate.h"

static bool find_sites(editor *e) {
    const uint32_t *starts = vpps_task_starts(e->script);
    e->n_sites = 0;
    for (uint32_t g = 0; g < editor_header(e)->n_groups; g++) {
        for (uint32_t at = starts[g]; at < starts[g + 1]; at += VPPS_TASK_WORDS) {
            if (!VPPS_RESERVE(e->sites, e->n_sites + 1)) return false;
            e->sites[e->n_sites++] = (site){at, g};
        }
    }
    return true;
}

bool editor_open(editor *e, const subject *of, uint64_t seed) {
    *e = (editor){.of = of, .random = seed};
    if (!VPPS_RESERVE(e->script, of->words + 64)) return false;
    memcpy(e->script, of->script, of->words * sizeof *e->script);
    e->words = of->words;
    return find_sites(e);
}

void editor_close(editor *e) {
    VPPS_FREE_ARRAYS(e->script);
    VPPS_FREE_ARRAYS(e->sites);
}

/* So many words more after address `at`. */
static bool finish(editor *e, uint32_t at, int32_t words) {
    uint32_t *starts = e->script + VPPS_TASK_HEADER_WORDS;
    e->words += (size_t)words;
    for (uint32_t g = 0; g <= editor_header(e)->n_groups; g++)
        if (starts[g] > at) starts[g] += (uint32_t)words;
    editor_header(e)->words = (uint32_t)e->words;
    return find_sites(e);
}

bool editor_insert(editor *e, uint32_t at, const vpps_task *task) {
    const vpps_task copy = *task; /* it may be one of the script */
    if (!VPPS_RESERVE(e->script, e->words + VPPS_TASK_WORDS)) return false;
    memmove(editor_task(e, at + VPPS_TASK_WORDS), editor_task(e, at), (e->words - at) * sizeof *e->script);
    *editor_task(e, at) = copy;
    return finish(e, at, VPPS_TASK_WORDS);
}

bool editor_remove(editor *e, uint32_t at) {
    const uint32_t next = at + VPPS_TASK_WORDS;
    memmove(editor_task(e, at), editor_task(e, next), (e->words - next) * sizeof *e->script);
    return finish(e, at, -VPPS_TASK_WORDS);
}
