/* watch.h - who uses which word of memory, for software SIMT's watched kernels. An interval is what a CTA runs between two of its barriers;
 * a warp's interval, what a warp runs between two barriers of either kind. No two of a process have the same number. */
#pragma once

#include "runtime/simt/simt.h"

/* Who wrote a word last, and who read it. Thread numbers are those in the CTA. */
typedef struct vpps_simt_word {
    uint32_t write_interval, write_warp, read_interval, read_warp;
    uint16_t writer,
        reader; /* reader: VPPS_SIMT_MANY, or a thread, + VPPS_SIMT_LANES where other lanes of its warp read it, too */
} vpps_simt_word;

enum { VPPS_SIMT_MANY = 0xffff, VPPS_SIMT_LANES = 0x8000 };

/* A thread, and the intervals in which it is. */
typedef struct vpps_simt_user {
    uint32_t thread, interval, warp;
} vpps_simt_user;

/* Notes that the thread uses a word. False: another thread, whose number *other becomes, uses it in the same interval, and one of them
 * writes. */
bool vpps_simt_use(vpps_simt_word *w, const vpps_simt_user *by, bool is_write, uint32_t *other);

/* The first of the words at these bytes, of the kernel's memory; NULL: they are not all in one piece. Makes a piece's words when there are
 * none; out of memory, *status says so. */
vpps_simt_word *vpps_simt_words_at(vpps_simt_piece *const *memory, const char *at, size_t bytes, vpps_status *status);
