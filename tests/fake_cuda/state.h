/* state.h - what the parts of the fake driver share. */
#pragma once

#include "fake_cuda/fake_cuda.h"

#include <pthread.h>

/* Holds a lock to the end of the block. */
#define LOCKED(mutex) VPPS_CLOSED_BY(fake_unlock) pthread_mutex_t *locked_ __attribute__((unused)) = fake_lock(mutex)
static inline pthread_mutex_t *fake_lock(pthread_mutex_t *mutex) { return pthread_mutex_lock(mutex), mutex; }
static inline void fake_unlock(pthread_mutex_t **mutex) { pthread_mutex_unlock(*mutex); }

/* Result codes that only the fake driver returns. */
enum {
    CODE_NOT_INITIALIZED = 3,
    CODE_INVALID_DEVICE = 101,
    CODE_INVALID_CONTEXT = 201,
    CODE_UNSUPPORTED_PTX = 222,
    CODE_NOT_FOUND = 500,
    CODE_ILLEGAL_ADDRESS = 700,
    CODE_LAUNCH_TOO_LARGE = 720,
};

#define X(symbol, parameters) VPPS_API vpps_cu_result symbol parameters;
VPPS_CUDA_FUNCTIONS(X)
#undef X

extern fake_cuda_device fake_device;

/* faults.c: the counts, protected by a lock, and the requested failures. */
void fake_count(size_t offset, int change); /* a member's offset in fake_cuda_counts */
#define COUNT(member, change) fake_count(offsetof(fake_cuda_counts, member), change)
fake_cuda_counts fake_counts(void);
void fake_break_call(const char *function, uint32_t nth, vpps_cu_result code);
void fake_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *fake_take_calls(void);
vpps_cu_result fake_fault(const char *function); /* notes a call; returns the code that the test requested, or 0 */

/* context.c: checks that the driver is initialised, and that a context is current in this thread; also returns a kernel's error, which stays. */
vpps_cu_result fake_check(bool context);

/* The first lines of every function of the driver. */
#define ENTER(function, context)                                                                                       \
    do {                                                                                                               \
        vpps_cu_result code_ = fake_fault(#function);                                                                  \
        if (code_ == VPPS_CU_SUCCESS) code_ = fake_check(context);                                                     \
        if (code_ != VPPS_CU_SUCCESS) return code_;                                                                    \
    } while (0)

/* The same for functions that release something, also in a failed context: the caller may ignore the code. */
vpps_cu_result fake_check_release(void);
#define ENTER_RELEASE(function)                                                                                        \
    do {                                                                                                               \
        vpps_cu_result code_ = fake_fault(#function);                                                                  \
        if (code_ == VPPS_CU_SUCCESS) code_ = fake_check_release();                                                    \
        if (code_ != VPPS_CU_SUCCESS) return code_;                                                                    \
        fake_drain(); /* for work that may use it */                                                                   \
    } while (0)

/* queue.c: does work in order, later. A code other than 0 becomes the context's error, and no more work is done. */
typedef vpps_cu_result (*fake_work)(void *payload);
void fake_enqueue(fake_work work, const void *payload, size_t bytes); /* copies the payload */
void fake_drain(void);
bool fake_busy(void); /* returns whether work is not done yet */
void fake_hold(bool held);
vpps_cu_result fake_error(void);
void fake_stop(void); /* drains the queue, ends the worker, forgets the error */

/* context.c */
unsigned fake_stream_number(vpps_cu_stream stream);

/* memory.c */
void fake_move(uint64_t address, int gpu);
void *fake_host(uint64_t address, size_t bytes);
bool fake_is_pinned(const void *memory);                  /* returns whether it begins in a pinned block */
bool fake_pinned_range(const void *memory, size_t bytes); /* returns whether one block contains it all */

/* module.c */
void fake_set_kernel(fake_cuda_kernel kernel, size_t argument_bytes);
