/* failure.c - how a batch that cannot go on ends. */
#include "runtime/cpu/cpu.h"

#include <stdarg.h>

void vpps_vp_fail(vpps_vp *vp, vpps_status status, uint32_t address, const char *format, ...) {
    vpps_cpu *cpu = vp->cpu;
    pthread_mutex_lock(&cpu->failure_lock);
    if (!atomic_load_explicit(&cpu->failed, memory_order_relaxed)) {
        char reason[VPPS_MESSAGE_BYTES / 2];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(reason, sizeof reason, format, arguments);
        va_end(arguments);
        cpu->outcome.status = status;
        snprintf(cpu->outcome.message, sizeof cpu->outcome.message, "VP %u, instruction at word %u: %s", vp->index,
                 address, reason);
        atomic_store_explicit(&cpu->failed, true, memory_order_release);
    }
    pthread_mutex_unlock(&cpu->failure_lock);
    for (uint32_t b = 0; b < cpu->task_header.n_barriers; b++) vpps_wake(cpu, &cpu->counters[b].value);
}
