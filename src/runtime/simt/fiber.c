/* fiber.c - fibers, which are stacks that take turns on one thread. */
#include "runtime/simt/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#if VPPS_SIMT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

/* Size of a fiber's stack. A kernel's frame holds its register arrays: a few KiB. Only touched pages cost memory. */
enum { STACK_BYTES = 64 * 1024 };

/* Number of stacks whose lowest page is protected (a guard). A guard splits the mapping, and Linux allows about 65,000 parts in total.
 * Since all fibers run the same code, a stack overflow happens already in the first CTAs. */
enum { GUARDED = 4096 };

vpps_status vpps_fiber_stacks_create(vpps_fiber_stacks *out, size_t n) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *memory =
        mmap(NULL, n * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return vpps_fail(VPPS_MEMORY, "software SIMT: no room for %zu stacks", n);
#ifdef MADV_NOHUGEPAGE
    madvise(memory, n * STACK_BYTES, MADV_NOHUGEPAGE); /* a huge page would hold 32 stacks, most of it unused */
#endif
    out->memory = memory;
    out->n = n;
    out->bytes = n * STACK_BYTES;
    for (size_t i = 0; i < n && i < GUARDED; i++) {
        if (mprotect(out->memory + i * STACK_BYTES, page, PROT_NONE)) break; /* all later stacks lack a guard page */
    }
    return VPPS_OK;
}

void vpps_fiber_stacks_destroy(vpps_fiber_stacks *stacks) {
    if (stacks->memory) munmap(stacks->memory, stacks->bytes);
    *stacks = (vpps_fiber_stacks){0};
}

/* Returns the address at which stack i begins; stacks grow down. Addresses differ modulo a page, else frames would share cache sets. */
static char *top_of(const vpps_fiber_stacks *stacks, size_t i) {
    return stacks->memory + (i + 1) * STACK_BYTES - i % 16 * 64;
}

#if VPPS_SIMT_ASAN
/* The fiber that ran before the current one. After a switch, AddressSanitizer stores the bounds of that fiber's stack in it. */
static _Thread_local vpps_fiber *left;

static void before_switch(vpps_fiber *from, const vpps_fiber *to, bool for_good) {
    left = from;
    __sanitizer_start_switch_fiber(for_good ? NULL : &from->fake_stack, to->bottom, to->bytes);
}
static void after_switch(vpps_fiber *now) {
    __sanitizer_finish_switch_fiber(now ? now->fake_stack : NULL, &left->bottom, &left->bytes);
}
static void describe_stack(vpps_fiber *fiber, const vpps_fiber_stacks *stacks, size_t i) {
    fiber->bottom = stacks->memory + i * STACK_BYTES;
    fiber->bytes = (size_t)(top_of(stacks, i) - stacks->memory) - i * STACK_BYTES;
    fiber->fake_stack = NULL;
    __asan_unpoison_memory_region(fiber->bottom, STACK_BYTES);
}
#else
static void before_switch(const vpps_fiber *from, const vpps_fiber *to, bool for_good) {
    (void)from, (void)to, (void)for_good;
}
static void after_switch(const vpps_fiber *now) { (void)now; }
static void describe_stack(const vpps_fiber *fiber, const vpps_fiber_stacks *stacks, size_t i) {
    (void)fiber, (void)stacks, (void)i;
}
#endif

#if VPPS_SIMT_UCONTEXT

static void begin(unsigned start_high, unsigned start_low, unsigned argument_high, unsigned argument_low) {
    void (*start)(void *) = (void (*)(void *))(uintptr_t)((uint64_t)start_high << 32 | start_low);
    after_switch(NULL);
    start((void *)(uintptr_t)((uint64_t)argument_high << 32 | argument_low));
    __builtin_unreachable();
}

void vpps_fiber_prepare(vpps_fiber *fiber, const vpps_fiber_stacks *stacks, size_t i, void (*start)(void *),
                        void *argument) {
    char *bottom = stacks->memory + i * STACK_BYTES;
    const uint64_t s = (uintptr_t)start, a = (uintptr_t)argument;
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = bottom;
    fiber->context.uc_stack.ss_size = (size_t)(top_of(stacks, i) - bottom);
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, (void (*)(void))(uintptr_t)begin, 4, (unsigned)(s >> 32), (unsigned)s,
                (unsigned)(a >> 32), (unsigned)a); /* makecontext passes ints */
    describe_stack(fiber, stacks, i);
}

static inline void switch_stacks(vpps_fiber *from, vpps_fiber *to) { swapcontext(&from->context, &to->context); }

#else

/* Switches stacks: pushes the registers that a callee must preserve (System V ABI), exchanges stack pointers, and pops. Fibers mostly
 * switch at the same depth of the same calls, so that `ret`, here and in callers, returns where the processor predicts; with a jump
 * instead, shuffles took twice as long. A new fiber's stack looks as if vpps_fiber_begin had called this function. */
void vpps_fiber_exchange(void **save, void *stack) __attribute__((visibility("hidden")));
void vpps_fiber_begin(void) __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".globl vpps_fiber_exchange\n"
        ".hidden vpps_fiber_exchange\n"
        ".type vpps_fiber_exchange, @function\n"
        "vpps_fiber_exchange:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size vpps_fiber_exchange, . - vpps_fiber_exchange\n"
        ".globl vpps_fiber_begin\n"
        ".hidden vpps_fiber_begin\n"
        ".type vpps_fiber_begin, @function\n"
        "vpps_fiber_begin:\n"
        "    movq %r12, %rdi\n"
        "    callq *%rbx\n"
        "    ud2\n"
        ".size vpps_fiber_begin, . - vpps_fiber_begin\n");

struct start {
    void (*function)(void *);
    void *argument;
};

static void begin(void *start) {
    const struct start s = *(struct start *)start;
    after_switch(NULL);
    s.function(s.argument);
}

void vpps_fiber_prepare(vpps_fiber *fiber, const vpps_fiber_stacks *stacks, size_t i, void (*start)(void *),
                        void *argument) {
    describe_stack(fiber, stacks, i);
    struct start *s = (struct start *)(void *)top_of(stacks, i) - 1; /* 16 bytes, so the stack stays aligned */
    *s = (struct start){start, argument};
    uintptr_t *stack = (uintptr_t *)s - 7;
    memset(stack, 0, 7 * sizeof *stack);
    stack[3] = (uintptr_t)s;     /* the fiber's first switch pops this word into register r12 */
    stack[4] = (uintptr_t)begin; /* the fiber's first switch pops this word into register rbx */
    /* the first switch returns to this function; the stack is then as after a call */
    stack[6] = (uintptr_t)vpps_fiber_begin;
    fiber->stack = stack;
}

static inline void switch_stacks(vpps_fiber *from, const vpps_fiber *to) {
    vpps_fiber_exchange(&from->stack, to->stack);
}

#endif

void vpps_fiber_switch(vpps_fiber *from, vpps_fiber *to) {
    before_switch(from, to, false);
    switch_stacks(from, to);
    after_switch(from);
}

void vpps_fiber_leave(vpps_fiber *from, vpps_fiber *to) {
    before_switch(from, to, true);
    switch_stacks(from, to);
    __builtin_unreachable();
}
