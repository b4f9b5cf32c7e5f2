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
    pthread_mutex_lock(&lock);
    const size_t n = strlen(calls);
    vsnprintf(calls + n, sizeof calls - n, format, arguments);
    pthread_mutex_unlock(&lock);
    va_end(arguments);
}

const char *fake_take_calls(void) {
    pthread_mutex_lock(&lock);
    memcpy(taken, calls, sizeof calls);
    *calls = 0;
    pthread_mutex_unlock(&lock);
    return taken;
}

void fake_count(size_t offset, int change) {
    pthread_mutex_lock(&lock);
    *(uint32_t *)(void *)((char *)&counts + offset) += (uint32_t)change;
    pthread_mutex_unlock(&lock);
}

fake_cuda_counts fake_counts(void) {
    pthread_mutex_lock(&lock);
    const fake_cuda_counts now = counts;
    pthread_mutex_unlock(&lock);
    return now;
}

void fake_break_call(const char *function, uint32_t nth, vpps_cu_result code) {
    pthread_mutex_lock(&lock);
    size_t i = 0;
    while (i + 1 < VPPS_COUNT(faults) && faults[i].calls_left > 0) i++;
    faults[i].function = function;
    faults[i].calls_left = nth;
    faults[i].code = code;
    pthread_mutex_unlock(&lock);
}

vpps_cu_result fake_fault(const char *function) {
    vpps_cu_result code = VPPS_CU_SUCCESS;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < VPPS_COUNT(faults); i++)
        if (faults[i].calls_left > 0 && strcmp(faults[i].function, function) == 0 && --faults[i].calls_left == 0)
            code = faults[i].code;
    pthread_mutex_unlock(&lock);
    return code;
}
