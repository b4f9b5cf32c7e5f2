/* faults.c - the fake driver's controls: its device, its counts, and the failures that a test requests. */
#include "fake_cuda/state.h"

#include <stdarg.h>

fake_cuda_device fake_device = {
    .name = "Fake GPU",
    .count = 1,
    .arch_major = 9,
    .arch_minor = 0,
    .sms = 132,
    .sm_registers = 65536,
    .sm_shared_bytes = 233472,
    .cta_shared_bytes = 232448,
    .l2_bytes = 50 << 20,
    .cooperative = 1,
    .kernel_registers = 128,
    .memory_bytes = (size_t)1 << 30,
};

VPPS_API extern const fake_cuda_controls fake_cuda;
const fake_cuda_controls fake_cuda = {&fake_device, fake_counts, fake_set_kernel, fake_break_call,
                                      fake_hold,    fake_host,   fake_move,       fake_take_calls};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static fake_cuda_counts counts;
static struct {
    const char *function;
    uint32_t calls_left;
    vpps_cu_result code;
} faults[4];

static char calls[4096], taken[sizeof calls]; /* the noted calls, and those that fake_take_calls returned last */

void fake_note(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    LOCKED(&lock);
    const size_t n = strlen(calls);
    vsnprintf(calls + n, sizeof calls - n, format, arguments);
    va_end(arguments);
}

const char *fake_take_calls(void) {
    LOCKED(&lock);
    memcpy(taken, calls, sizeof calls);
    *calls = 0;
    return taken;
}

void fake_count(size_t offset, int change) {
    LOCKED(&lock);
    *(uint32_t *)(void *)((char *)&counts + offset) += (uint32_t)change;
}

fake_cuda_counts fake_counts(void) {
    LOCKED(&lock);
    return counts;
}

void fake_break_call(const char *function, uint32_t nth, vpps_cu_result code) {
    LOCKED(&lock);
    size_t i = 0;
    while (i + 1 < VPPS_COUNT(faults) && faults[i].calls_left > 0) i++;
    faults[i].function = function;
    faults[i].calls_left = nth;
    faults[i].code = code;
}

vpps_cu_result fake_fault(const char *function) {
    vpps_cu_result code = VPPS_CU_SUCCESS;
    LOCKED(&lock);
    for (size_t i = 0; i < VPPS_COUNT(faults); i++)
        if (faults[i].calls_left > 0 && strcmp(faults[i].function, function) == 0 && --faults[i].calls_left == 0)
            code = faults[i].code;
    return code;
}
