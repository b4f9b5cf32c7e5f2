/* threads.c - waiting for another thread's signal.
 *
 * A signal between two free cores takes 0.1 us. Waking a sleeping thread takes some 10 us, and most signals for which a
 * virtual processor (VP, run by a thread) waits, and the next small batch, come within this time. So a waiter spins,
 * but briefly: on a busy machine the signalling thread may need this core, and gets it when the waiter sleeps
 * (futex(2)). With more VPs than cores, a waiter sleeps at once. A thread whose last wait was long sleeps almost at
 * once: waking is a small part of such waits, or the machine is busy. */
#include "runtime/cpu/cpu.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define CPU_PAUSE() _mm_pause()
#elif defined(__aarch64__)
#define CPU_PAUSE() __asm__ volatile("yield")
#else
#define CPU_PAUSE() ((void)0)
#endif

enum { SPINS = 64, LONG_NS = 50 * 1000, SLEEP_NS = 50 * 1000 * 1000, LONGEST_NS = 4 * SLEEP_NS };

/* Calls futex(2), whose first argument, a word's address, is passed as an integer. */
static long futex(atomic_uint *word, int operation, uint32_t value, const struct timespec *most) {
    return syscall(SYS_futex, (uintptr_t)word, operation, value, most, NULL, 0);
}

static void sleep_on(atomic_uint *word, uint32_t seen, uint64_t limit_ns) {
    const struct timespec most = {.tv_nsec = limit_ns && limit_ns < SLEEP_NS ? (long)limit_ns : SLEEP_NS};
    futex(word, FUTEX_WAIT_PRIVATE, seen, &most);
}

void vpps_wake(vpps_counter *counter) {
    /* This read is sequentially consistent with a thread that goes to sleep: that thread sees the changed value, or is counted here. */
    if (!atomic_load(&counter->sleepers)) return;
    futex(&counter->value, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL);
}

static bool reached(atomic_uint *word, uint32_t least) {
    return (int32_t)(atomic_load_explicit(word, memory_order_acquire) - least) >= 0;
}

vpps_wait_end vpps_wait_for(vpps_cpu *cpu, vpps_counter *counter, uint32_t least, uint64_t limit_ns,
                            bool until_failure) {
    atomic_uint *word = &counter->value;
    if (reached(word, least)) return VPPS_WAIT_REACHED;
    if (limit_ns == VPPS_ONLY_LOOK) return VPPS_WAIT_TIMEOUT;
    static _Thread_local bool patient; /* whether this thread's preceding wait was long */
    const uint64_t start = vpps_now_ns(), spin_ns = patient ? cpu->spin_ns / 32 : cpu->spin_ns;
    uint64_t waited = 0, last = start;
    patient = false;
    for (; last - start < spin_ns; last = vpps_now_ns()) {
        for (uint32_t i = 0; i < SPINS; i++) {
            if (reached(word, least)) return VPPS_WAIT_REACHED;
            CPU_PAUSE();
        }
    }
    for (;;) {
        atomic_fetch_add(&counter->sleepers, 1);
        const uint32_t seen = atomic_load(word);
        const bool done = (int32_t)(seen - least) >= 0;
        if (!done && !(until_failure && atomic_load(&cpu->batch.failed))) sleep_on(word, seen, limit_ns);
        atomic_fetch_sub(&counter->sleepers, 1);
        if (done || reached(word, least)) {
            patient = vpps_now_ns() - start > LONG_NS;
            return VPPS_WAIT_REACHED;
        }
        if (until_failure && atomic_load(&cpu->batch.failed)) return VPPS_WAIT_FAILED;
        const uint64_t now = vpps_now_ns(), passed = now - last;
        last = now;
        waited += passed < LONGEST_NS ? passed : LONGEST_NS; /* a longer gap means that the process was stopped */
        if (limit_ns && waited > limit_ns) return patient = true, VPPS_WAIT_TIMEOUT;
    }
}
