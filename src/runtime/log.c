/* log.c - writes lines to the log function of a handle's options. */
#include "runtime/log.h"
#include "base/base.h"

#include <stdarg.h>

void vpps_log_line(const vpps_options *options, const char *format, ...) {
    char line[VPPS_MESSAGE_BYTES + 64];
    if (!options->log) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    options->log(options->log_context, line);
}
