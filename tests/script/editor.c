/* editor.c - see mutate.h. Streams come last in a script, so that they can grow and shrink. */
#include "mutate.h"

static bool find_sites(editor *e) {
    const vpps_task_header *h = editor_header(e);
    const uint32_t *starts = e->script + VPPS_TASK_HEADER_WORDS;
    e->n_sites = 0;
    for (uint32_t g = 0; g < h->n_groups; g++) {
        for (uint32_t at = starts[g]; at < starts[g + 1]; at += 1 + vpps_tasks[e->script[at]].words) {
            if (!VPPS_RESERVE(e->sites, e->sites_capacity, e->n_sites + 1)) return false;
            e->sites[e->n_sites++] = (site){at, 1 + vpps_tasks[e->script[at]].words, g};
        }
    }
    return true;
}

bool editor_open(editor *e, const subject *of, uint64_t seed) {
    *e = (editor){.of = of, .random = seed};
    if (!VPPS_RESERVE(e->script, e->capacity, of->words + 64)) return false;
    memcpy(e->script, of->script, of->words * sizeof *e->script);
    e->words = of->words;
    return find_sites(e);
}

void editor_close(editor *e) {
    free(e->script);
    free(e->sites);
}

bool editor_splice(editor *e, uint32_t at, uint32_t removed, const uint32_t *words, uint32_t n) {
    if (!VPPS_RESERVE(e->script, e->capacity, e->words + n)) return false;
    memmove(e->script + at + n, e->script + at + removed, (e->words - at - removed) * sizeof *e->script);
    if (n) memcpy(e->script + at, words, n * sizeof *words);
    e->words = e->words + n - removed;
    vpps_task_header *h = editor_header(e);
    uint32_t *starts = e->script + VPPS_TASK_HEADER_WORDS;
    for (uint32_t g = 0; g <= h->n_groups; g++)
        if (starts[g] > at) starts[g] += n - removed;
    h->words = (uint32_t)e->words;
    return find_sites(e);
}
