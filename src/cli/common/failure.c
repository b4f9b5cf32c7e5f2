/* failure.c - prints error messages, and maps statuses to exit codes (failure.h). */
#include "cli/common/failure.h"
#include "base/base.h"

#include <errno.h>
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
    errno = EIO; /* stands for the reason of an earlier failed flush, which is unknown */
    if (fflush(stdout) == 0 && !ferror(stdout)) return VPPS_OK;
    return vpps_fail(VPPS_IO, "stdout: %s", strerror(errno));
}
