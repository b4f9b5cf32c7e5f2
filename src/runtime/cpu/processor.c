/* processor.c - finds the name of this machine's processor. Linux describes the processor in /proc/cpuinfo, with other keys on ARM. */
#include "runtime/cpu/processor.h"

static void value_of(const char *key, char *value, size_t bytes) {
    vpps_proc_value("/proc/cpuinfo", key, value, bytes);
}

static bool is_known(const char *value) { return strcmp(value, "unknown") != 0; }

void vpps_processor_name(char *text, size_t bytes) {
    char implementer[16], part[16];
    value_of("model name", text, bytes);
    if (is_known(text)) return;
    value_of("CPU implementer", implementer, sizeof implementer);
    value_of("CPU part", part, sizeof part);
    if (is_known(implementer) && is_known(part)) snprintf(text, bytes, "ARM implementer %s part %s", implementer, part);
}

void vpps_processor_identity(char *text, size_t bytes) {
    /* the key "model" is also the beginning of "model name", but comes first in the file */
    static const char *const keys[] = {"cpu family", "model", "stepping", "microcode", "CPU variant", "CPU revision"};
    vpps_processor_name(text, bytes);
    for (size_t i = 0; i < VPPS_COUNT(keys); i++) {
        char value[32];
        const size_t used = strlen(text);
        value_of(keys[i], value, sizeof value);
        if (is_known(value)) snprintf(text + used, bytes - used, ", %s %s", keys[i], value);
    }
}
