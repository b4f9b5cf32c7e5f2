/* refusing.h - allocations of the calling thread that are refused on purpose. For one source of a program, which gets
 * malloc, calloc and realloc of its own by it, as glibc allows; a sanitizer has its own, and then nothing is refused. */
#ifndef VPPS_TESTS_REFUSING_H
#define VPPS_TESTS_REFUSING_H

#include "common/testing.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CAN_REFUSE 1
#else
#define CAN_REFUSE 0
#endif

static _Thread_local uint32_t left; /* allocations until one is refused, that one counted; 0: none will be */

#if CAN_REFUSE
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

static bool refused(void) { return left > 0 && --left == 0; }

void *malloc(size_t bytes) { return refused() ? NULL : __libc_malloc(bytes); }
void *calloc(size_t n, size_t bytes) { return refused() ? NULL : __libc_calloc(n, bytes); }
void *realloc(void *old, size_t bytes) { return refused() ? NULL : __libc_realloc(old, bytes); }
#endif

/* Makes the call with allocation number k refused; false: it made fewer. A call that was refused one says MEMORY. */
#define REFUSING(k, call)                                                                                              \
    (left = (k), refusing_status = (call), refusing_came = left == 0, left = 0, check_refused(k, #call))
static vpps_status refusing_status;
static bool refusing_came;

static bool check_refused(uint32_t k, const char *call) {
    const vpps_status expected = refusing_came ? VPPS_MEMORY : VPPS_OK;
    ck_assert_msg(refusing_status == expected, "%s, allocation %u %s: %s: %s", call, k,
                  refusing_came ? "refused" : "not reached", vpps_status_name(refusing_status), vpps_error_message());
    return refusing_came;
}

/* For main, where CAN_REFUSE is 0. */
#define REFUSING_LEFT_OUT()                                                                                            \
    TEST_LEFT_OUT("refused allocations: this C library or sanitizer does not let them be replaced")

#endif
