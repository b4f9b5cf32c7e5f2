/* failure.h - reports failures, and maps them to exit codes. */
#pragma once

#include "vpps.h"

/* The exit codes of every command. */
enum { EXIT_RUNTIME = 1, EXIT_USAGE = 2, EXIT_INTERRUPTED = 130 };

/* Prints `vpps: MESSAGE` to standard error: the latest error's message or, if it is empty, the name of the status. */
void report_failure(vpps_status status);

/* Returns the exit code for a status, and prints the message of a failure. */
int exit_code(vpps_status status);

/* Prints `vpps COMMAND: MESSAGE`, or `vpps: MESSAGE` if command is NULL, and a hint at --help to standard error. Returns EXIT_USAGE. */
int report_usage(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Flushes stdout. Fails with IO. */
vpps_status flush_stdout(void);
