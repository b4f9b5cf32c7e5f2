/* watch.h - records which threads use which word of memory, for kernels of software SIMT whose accesses are checked. An interval of a CTA
 * is the time between two of its barriers; an interval of a warp ends at barriers of its CTA and of the warp. Each interval has its own
 * number. */
#pragma once

#include "runtime/simt/simt.h"

/* The threads that last wrote and read a word of memory. Threads are numbered within their CTA. */
typedef struct vpps_simt_word {
    uint32_t write_interval, write_warp, read_interval, read_warp;
    /* reader: number of a thread, plus VPPS_SIMT_LANES if other lanes of its warp read, too; VPPS_SIMT_MANY: several warps read */
    uint16_t writer, reader;
} vpps_simt_word;

enum { VPPS_SIMT_MANY = 0xffff, VPPS_SIMT_LANES = 0x8000 };

/* A thread that uses a word of memory, and the numbers of the intervals (between two barriers) in which its CTA and its warp are. */
typedef struct vpps_simt_user {
    uint32_t thread, interval, warp;
} vpps_simt_user;

/* Records that a thread uses a word of memory. False: thread *other used the word since the last barrier, and one of the two writes. */
bool vpps_simt_use(vpps_simt_word *w, const vpps_simt_user *by, bool is_write, uint32_t *other);

/* Returns the record of the first word that these bytes of the kernel's memory cover; the next words' records follow. NULL: the bytes are
 * not all in one allocation. Creates an allocation's records if needed; *status tells if memory is short. */
vpps_simt_word *vpps_simt_words_at(vpps_simt_piece *const *memory, const char *at, size_t bytes, vpps_status *status);
