/* failure.c - stops a batch that has failed, and keeps the first failure's message. */
#include "runtime/cpu/cpu.h"

#include <stdarg.h>

void vpps_cpu_fail(vpps_cpu *cpu, vpps_status status, const char *message) {
    pthread_mutex_lock(&cpu->failure_lock);
    if (!atomic_load_explicit(&cpu->batch.failed, memory_order_relaxed)) {
        cpu->batch.outcome.status = status;
        snprintf(cpu->batch.outcome.message, sizeof cpu->batch.outcome.message, "%s", message);
        atomic_store_explicit(&cpu->batch.failed, true, memory_order_release);
    }
    pthread_mutex_unlock(&cpu->failure_lock);
    if (cpu->meetings.taken) vpps_meetings_wake(cpu);
    for (uint32_t b = 0; b < cpu->batch.header.n_barriers && !cpu->meetings.taken; b++) vpps_wake(&cpu->counters[b]);
    if (cpu->share) vpps_share_wake(cpu);
}

bool vpps_vp_fail(vpps_vp *vp, vpps_status status, uint32_t address, const char *format, ...) {
    char reason[VPPS_MESSAGE_BYTES / 2], message[VPPS_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    snprintf(message, sizeof message, "VP %u, task at word %u: %s", vp->index, address, reason);
    vpps_cpu_fail(vp->cpu, status, message);
    return false;
}
