/* templates.S - embeds the C text that is the same in every exported file, as zero-terminated strings vpps_c_NAME. */
#include "../base/template.S"
    template vpps_c_math, "src/runtime/cpu/math.h"
    template vpps_c_functions, "src/isa/functions.h"
    template vpps_c_products, "src/export/products.h"
    template vpps_c_fp32, "src/export/weights_fp32.h"
    template vpps_c_bf16, "src/export/weights_bf16.h"
    template vpps_c_int8, "src/export/weights_int8.h"
    template vpps_c_file, "src/export/weights_file.h"
    .section .note.GNU-stack, "", %progbits
