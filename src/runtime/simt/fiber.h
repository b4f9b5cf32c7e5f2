/* fiber.h - fibers: stacks that take turns on one thread, for software SIMT. A switch takes a dozen instructions of x86-64; on other
 * processors, or with -DVPPS_SIMT_UCONTEXT=1, it is POSIX's swapcontext, which is ten times slower. Floating-point modes and signal masks
 * are not switched, since kernels change neither. */
#pragma once

#include "base/base.h"

#if !defined(VPPS_SIMT_UCONTEXT) && !(defined(__x86_64__) && defined(__LP64__))
#define VPPS_SIMT_UCONTEXT 1
#elif !defined(VPPS_SIMT_UCONTEXT)
#define VPPS_SIMT_UCONTEXT 0
#endif

#if VPPS_SIMT_UCONTEXT
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#define VPPS_SIMT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define VPPS_SIMT_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define VPPS_SIMT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define VPPS_SIMT_TSAN 1
#endif
#endif
#ifndef VPPS_SIMT_ASAN
#define VPPS_SIMT_ASAN 0
#endif
#ifndef VPPS_SIMT_TSAN
#define VPPS_SIMT_TSAN 0
#endif

typedef struct vpps_fiber {
#if VPPS_SIMT_UCONTEXT
    ucontext_t context;
#else
    void *stack; /* value of the stack pointer while another fiber runs */
#endif
#if VPPS_SIMT_ASAN
    const void *bottom; /* description of the fiber's stack, for AddressSanitizer */
    size_t bytes;
    void *fake_stack;
#endif
} vpps_fiber;

/* Stacks of many fibers in one mapping; pages take memory only once touched. */
typedef struct vpps_fiber_stacks {
    char *memory;
    size_t n, bytes; /* n: number of stacks; bytes: size of all stacks together */
} vpps_fiber_stacks;

vpps_status vpps_fiber_stacks_create(vpps_fiber_stacks *out, size_t n);
void vpps_fiber_stacks_destroy(vpps_fiber_stacks *stacks);

/* Prepares a fiber that will call start(argument) on stack number `i`, whose content is lost. start() must end by vpps_fiber_leave. */
void vpps_fiber_prepare(vpps_fiber *fiber, const vpps_fiber_stacks *stacks, size_t i, void (*start)(void *),
                        void *argument);

/* Switches to fiber `to`. Returns when some fiber switches back to `from`. The thread's own stack needs no preparation to be `from`. */
void vpps_fiber_switch(vpps_fiber *from, vpps_fiber *to);

/* Switches to fiber `to` for good: nobody may switch back to `from`. */
_Noreturn void vpps_fiber_leave(vpps_fiber *from, vpps_fiber *to);
