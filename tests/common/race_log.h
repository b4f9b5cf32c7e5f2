/* race_log.h - a log of all accesses to all places, to find two that no barrier orders. */
#ifndef VPPS_TESTS_RACE_LOG_H
#define VPPS_TESTS_RACE_LOG_H

#include <stdbool.h>
#include <stdint.h>

typedef struct race_log race_log;

race_log *race_log_create(uint32_t n_vps, uint32_t n_barriers);
void race_log_destroy(race_log *log);

/* Before anything runs: a barrier gets so many signals more, in all. What there is no barrier for is left out. */
void race_log_expect(race_log *log, uint32_t barrier, uint32_t signals);

/* What a VP does, in the order in which all of them do. Who waits for all of a barrier's signals comes after them; who waits
 * for fewer may come before any. */
void race_log_access(race_log *log, uint32_t vp, const uint64_t *at, bool write);
void race_log_signal(race_log *log, uint32_t vp, uint32_t barrier);
void race_log_wait(race_log *log, uint32_t vp, uint32_t barrier, uint32_t signals);

/* Did two VPs touch one place, one of them writing, with nothing between them? */
bool race_log_found(const race_log *log);

#endif
