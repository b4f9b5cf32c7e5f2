/* compile_elf.h - makes a CUBIN by hand, with the few sections that vpps_cubin_inspect reads: for machines without NVRTC, and for files that no
 * compiler writes. */
#pragma once

#include "base/base.h"

typedef struct compile_elf {
    const char *function;
    uint32_t registers, frame_bytes, stack_bytes; /* UINT32_MAX: leave the record out */
    uint32_t code_bytes;
    uint32_t shared_bytes; /* UINT32_MAX: no such section */
    bool reserved;         /* whether there is a section for the system's shared memory */
    uint32_t info_cut;     /* bytes cut off the end of .nv.info */
    bool names_last;       /* the table of section names is cut off by the file's end */
} compile_elf;

enum { COMPILE_ELF_BYTES = 4096 };

/* Writes the file; returns its size. */
size_t compile_elf_write(const compile_elf *e, unsigned char bytes[COMPILE_ELF_BYTES]);
