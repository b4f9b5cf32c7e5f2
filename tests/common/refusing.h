/* refusing.h - refuses allocations of the calling thread on purpose. One source of a program includes this file, which gives the program its own
 * malloc, calloc and realloc, as glibc allows; sanitizers have their own, so nothing is refused under them. Everyday tests refuse one allocation of
 * each chain of callers, VPPS_TEST_SCALE=full every allocation. */
#pragma once

#include "common/testing.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CAN_REFUSE 1
#else
#define CAN_REFUSE 0
#endif

static _Thread_local uint32_t left; /* allocations up to the one that is refused, which counts; 0: none is refused */

#if CAN_REFUSE
#include <execinfo.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

enum { REFUSING_CALLERS = 32, REFUSING_MOST = 4096 };
static _Thread_local struct {
    uint32_t n;
    uint64_t chains[REFUSING_MOST]; /* hashes of the chains of callers that were refused an allocation */
} refused_to;

/* Notes the chain of callers; false: it was refused one before. */
static bool note_callers(void) {
    void *callers[REFUSING_CALLERS];
    const int n = backtrace(callers, REFUSING_CALLERS);
    uint64_t chain = 0;
    for (int i = 0; i < n; i++) chain = (chain ^ (uintptr_t)callers[i]) * 0x9e3779b97f4a7c15 >> 1;
    for (uint32_t i = 0; i < refused_to.n; i++)
        if (refused_to.chains[i] == chain) return false;
    ck_assert_uint_lt(refused_to.n, REFUSING_MOST);
    refused_to.chains[refused_to.n++] = chain;
    return true;
}

static bool refused(void) {
    const uint32_t n = left;
    if (!n) return false;
    left = 0; /* backtrace allocates, too */
    const bool refuse = test_full() ? n == 1 : note_callers();
    if (!refuse) left = test_full() ? n - 1 : n;
    return refuse;
}

void *malloc(size_t bytes) { return refused() ? NULL : __libc_malloc(bytes); }
void *calloc(size_t n, size_t bytes) { return refused() ? NULL : __libc_calloc(n, bytes); }
void *realloc(void *old, size_t bytes) { return refused() ? NULL : __libc_realloc(old, bytes); }
#endif

/* Makes the call with allocation number k refused; in everyday tests, with the first allocation of each chain of callers; false: there is none. A
 * call that was refused an allocation fails with MEMORY. */
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

/* Why a group of tests that refuse allocations is left out; NULL: it is not. */
#define REFUSING_LEFT_OUT (CAN_REFUSE ? NULL : "this C library or sanitizer does not let allocations be replaced")
