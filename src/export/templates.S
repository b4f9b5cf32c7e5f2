/* templates.S - embeds the C text that is the same in every exported file, as zero-terminated strings vpps_c_NAME. */
    .macro template name, path
    .globl vpps_c_\name
    .hidden vpps_c_\name
vpps_c_\name:
    .incbin "\path"
    .byte 0
    .endm

    .section .rodata
    template math, "src/runtime/cpu/math.h"
    template functions, "src/isa/functions.h"
    template products, "src/export/products.h"
    template fp32, "src/export/weights_fp32.h"
    template bf16, "src/export/weights_bf16.h"
    template int8, "src/export/weights_int8.h"
    template file, "src/export/weights_file.h"
    .section .note.GNU-stack, "", %progbits
