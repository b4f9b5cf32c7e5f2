/* watch.h - records which threads use which word of memory, for software SIMT's watched kernels. An interval is what a CTA runs between two
 * of its barriers; a warp's interval is what a warp runs between two barriers of either kind. Each interval has its own number. */
#pragma once

#include "runtime/simt/simt.h"

/* The threads that last wrote and read a word of memory. Threads are numbered within their CTA. */
typedef struct vpps_simt_word {
    uint32_t write_interval, write_warp, read_interval, read_warp;
    /* `reader`: number of a thread, plus VPPS_SIMT_LANES if other lanes of its warp read the word, too; or VPPS_SIMT_MANY threads. */
    uint16_t writer, reader;
} vpps_simt_word;

enum { VPPS_SIMT_MANY = 0xffff, VPPS_SIMT_LANES = 0x8000 };

/* A thread that uses a word, and the numbers of the current intervals of its CTA and its warp. */
typedef struct vpps_simt_user {
    uint32_t thread, interval, warp;
} vpps_simt_user;

/* Records that a thread uses a word. False: thread *other has used it in the same interval, and one of the two writes. */
bool vpps_simt_use(vpps_simt_word *w, const vpps_simt_user *by, bool is_write, uint32_t *other);

/* Returns the record of the first word that these bytes of the kernel's memory cover; the next words' records follow. NULL: the bytes are
 * not all in one allocation. Creates an allocation's records if needed; *status tells if memory is short. */
vpps_simt_word *vpps_simt_words_at(vpps_simt_piece *const *memory, const char *at, size_t bytes, vpps_status *status);
