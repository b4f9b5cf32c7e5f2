/* failure.c - prints error messages, maps statuses to exit codes, and writes lines of JSON (failure.h). */
#include "cli/common/failure.h"
#include "base/base.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>

void report_failure(vpps_status status) {
    const char *message = vpps_error_message();
    fprintf(stderr, "vpps: %s\n", *message ? message : vpps_status_name(status));
}

int exit_code(vpps_status status) {
    if (status == VPPS_OK) return 0;
    report_failure(status);
    return EXIT_RUNTIME;
}

int report_usage(const char *command, const char *format, ...) {
    va_list arguments;
    const char *space = command ? " " : "";
    if (!command) command = "";
    fprintf(stderr, "vpps%s%s: ", space, command);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nTry `vpps%s%s --help'.\n", space, command);
    return EXIT_USAGE;
}

vpps_status flush_stdout(void) {
    errno = EIO; /* if an earlier flush failed, its reason is lost */
    if (fflush(stdout) == 0 && !ferror(stdout)) return VPPS_OK;
    return vpps_fail(VPPS_IO, "stdout: %s", strerror(errno));
}

json_t *report_number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

vpps_status report_json_line(json_t *object, FILE *file) {
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(object);
    if (!text) return vpps_fail(VPPS_MEMORY, "no memory for a line of JSON");
    errno = EIO; /* if an earlier flush failed, its reason is lost */
    const bool written = fprintf(file, "%s\n", text) > 0 && fflush(file) == 0 && !ferror(file);
    free(text);
    return written ? VPPS_OK : vpps_fail(VPPS_IO, "cannot write a line of JSON: %s", strerror(errno));
}
