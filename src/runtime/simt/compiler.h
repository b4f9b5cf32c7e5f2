/* compiler.h - runs the host's C++ compiler as a process. */
#pragma once

#include "base/base.h"

/* Writes the compiler's version and options as a line. Fails with DEVICE if the compiler cannot run, ARGUMENT if an option is too long. */
vpps_status vpps_simt_toolchain(char *out, size_t room);

/* Compiles `text` to a shared library of *size bytes (malloc'd, owned by the caller). Fails with DEVICE if the compiler refuses the text
 * (the message has its first error line), and with IO if there can be no temporary files. */
vpps_status vpps_simt_compile(const char *text, size_t text_bytes, void **library, size_t *size);

/* Writes the bytes to a file in a new private folder, under $TMPDIR or else /tmp, and calls `use` with the path. File and folder are
 * removed afterwards, also if this process is killed. Fails as `use` does, and with IO. */
vpps_status vpps_simt_with_file(const char *name, const void *bytes, size_t size,
                                vpps_status (*use)(const char *path, void *context), void *context);
