#include "base.h"
#undef vpps_fail

#include <pthread.h>
#include <stdarg.h>

static _Thread_local char message[VPPS_MESSAGE_BYTES];

static const char *const status_names[] = {
#define X(id, text) #id,
    VPPS_STATUS_TABLE(X)
#undef X
};

const char *vpps_status_name(vpps_status status) {
    return (size_t)status < VPPS_COUNT(status_names) ? status_names[status] : "UNKNOWN";
}

const char *vpps_error_message(void) { return message; }

const char *vpps_version(void) { return VPPS_VERSION; }

vpps_status vpps_fail(vpps_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return status;
}

void vpps_restore_message(const char *text) {
    if (text != message) snprintf(message, sizeof message, "%s", text);
}

bool vpps_grow(void *array, size_t *capacity, size_t needed, size_t element_bytes) {
    size_t wanted = *capacity ? *capacity : 16;
    while (wanted < needed) wanted += wanted / 2 + 1;
    if (wanted > SIZE_MAX / element_bytes) return false;
    void *old, *grown;
    memcpy(&old, array, sizeof old);
    grown = realloc(old, wanted * element_bytes);
    if (!grown) return false;
    memcpy(array, &grown, sizeof grown);
    *capacity = wanted;
    return true;
}

/* ---------------------------------------------------------------- processes */

static uint32_t process_number;

static void count_process(void) { process_number++; }
static void watch_forks(void) { pthread_atfork(NULL, NULL, count_process); }

uint32_t vpps_process_number(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    return process_number;
}

void vpps_proc_value(const char *path, const char *key, char *value, size_t n) {
    snprintf(value, n, "unknown");
    FILE *f = fopen(path, "r");
    if (!f) return;
    char line[512];
    while (fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, key, strlen(key)) != 0) continue;
        colon += 1 + strspn(colon + 1, " \t");
        snprintf(value, n, "%.*s", (int)strcspn(colon, "\n"), colon);
        break;
    }
    fclose(f);
}
