/* watch.c - records which threads use which word of memory, for software SIMT. */
#include "runtime/simt/watch.h"

enum { LANES = 32 };

static bool same_warp(uint32_t a, uint32_t b) { return a / LANES == b / LANES; }

bool vpps_simt_use(vpps_simt_word *w, const vpps_simt_user *by, bool is_write, uint32_t *other) {
    const uint32_t reader = w->reader & ~(uint32_t)VPPS_SIMT_LANES;
    const bool read = w->read_interval == by->interval, many = w->reader == VPPS_SIMT_MANY;
    const bool near = read && !many && same_warp(reader, by->thread), lately = near && w->read_warp == by->warp;
    const bool written = w->write_interval == by->interval && w->writer != by->thread &&
                         (!same_warp(w->writer, by->thread) || w->write_warp == by->warp);
    /* whether no other thread has read the word since the last barrier */
    const bool alone = !read || (near && (!lately || w->reader == by->thread));
    *other = written ? w->writer : many ? UINT32_MAX : reader;
    if (written || (is_write && !alone)) return false;
    if (is_write) {
        w->writer = (uint16_t)by->thread;
        w->write_interval = by->interval;
        w->write_warp = by->warp;
    } else {
        w->reader = (uint16_t)(alone ? by->thread : lately ? w->reader | VPPS_SIMT_LANES : VPPS_SIMT_MANY);
        w->read_interval = by->interval;
        w->read_warp = by->warp;
    }
    return true;
}

vpps_simt_word *vpps_simt_words_at(vpps_simt_piece *const *memory, const char *at, size_t bytes, vpps_status *status) {
    *status = VPPS_OK;
    for (size_t i = 0; memory && i < VPPS_SIMT_MEMORIES; i++) {
        for (vpps_simt_piece *p = memory[i]; p; p = p->next) {
            if (at < p->memory || at + bytes > p->memory + p->bytes) continue;
            if (!p->words) p->words = calloc(p->bytes / 4 + 1, sizeof *p->words);
            if (!p->words) *status = vpps_fail(VPPS_MEMORY, "software SIMT: out of memory to watch memory");
            return p->words ? p->words + (size_t)(at - p->memory) / 4 : NULL;
        }
    }
    return NULL;
}
