/* failure.h - how a command that fails ends. */
#pragma once

#include "vpps.h"

/* Exit codes of every command. */
enum { EXIT_RUNTIME = 1, EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

/* `vpps: MESSAGE` on stderr. */
void report_failure(vpps_status status);

/* The exit code of a command that ends so; a failure is reported. */
int exit_code(vpps_status status);

/* `vpps COMMAND: MESSAGE` and where help is, on stderr; EXIT_USAGE. NULL command: vpps itself. */
int report_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Flushes stdout. Fails with IO. */
vpps_status flush_stdout(void);
