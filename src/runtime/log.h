/* log.h - lines of a handle for the log function of its options. */
#pragma once

#include "vpps.h"

/* A line to the options' log, if there is one. */
void vpps_log_line(const vpps_options *options, const char *format, ...) __attribute__((format(printf, 2, 3)));
