/* compiler.h - the host's C++ compiler, as a process. */
#pragma once

#include "base/base.h"

/* Writes the compiler's version and the options it will be called with, one line. Fails with DEVICE: it cannot be run;
 * ARGUMENT: $VPPS_CXX or $VPPS_CXXFLAGS is too long. */
vpps_status vpps_simt_toolchain(char *out, size_t room);

/* Compiles `text` to a shared library of *size bytes, malloc'd, the caller's. Fails with DEVICE: the compiler refused it
 * (the message has its first error line); IO: no temporary files. */
vpps_status vpps_simt_compile(const char *text, size_t text_bytes, void **library, size_t *size);

/* A file of these bytes in a fresh folder of the user's alone, under $TMPDIR, else /tmp: `use` is called with its path,
 * then file and folder are removed, also if this process is killed. Fails with what `use` fails with, and with IO. */
vpps_status vpps_simt_with_file(const char *name, const void *bytes, size_t size,
                                vpps_status (*use)(const char *path, void *context), void *context);
