/* templates.S - the kernel's static parts as zero-terminated text: vpps_template_NAME. */
    .macro template name, path
    .globl vpps_template_\name
    .hidden vpps_template_\name
vpps_template_\name:
    .incbin "\path"
    .byte 0
    .endm

    .section .rodata
    template failure, "src/interp_templates/failure.cuh"
    template device, "src/interp_templates/device.cuh"
    template whole, "src/interp_templates/whole.cuh"
    template whole_rows, "src/isa/whole.def"
    template arguments, "src/interp_templates/arguments.cuh"
    template common, "src/interp_templates/common.cuh"
    template outer, "src/interp_templates/outer.cuh"
    template stage, "src/interp_templates/stage.cuh"
    template products, "src/interp_templates/products.cuh"
    template tiles, "src/interp_templates/tiles.cuh"
    template loads, "src/interp_templates/loads.cuh"
    template mma, "src/interp_templates/mma.cuh"
    template packing, "src/interp_templates/packing.cuh"
    template math, "src/interp_templates/math.cuh"
    template functions, "src/isa/functions.h"
    template steps, "src/isa/steps.h"
    template task_header, "src/script/header.h"
    template parameters, "src/interp_templates/parameters.cuh"
    template loop, "src/interp_templates/loop.cuh"
    template simt_cuda, "src/interp_templates/simt_cuda.h"
    .section .note.GNU-stack, "", %progbits
