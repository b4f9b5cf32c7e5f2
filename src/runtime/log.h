/* log.h - writes lines to the log function of a handle's options. */
#pragma once

#include "vpps.h"

void vpps_log_line(const vpps_options *options, const char *format, ...) __attribute__((format(printf, 2, 3)));
