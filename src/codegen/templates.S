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
    template arguments, "src/interp_templates/arguments.cuh"
    template header, "src/nodes/header.h"
    template common, "src/interp_templates/common.cuh"
    template math, "src/interp_templates/math.cuh"
    template functions, "src/isa/functions.h"
    template steps, "src/isa/steps.h"
    template ops_traits, "src/interp_templates/ops_traits.cuh"
    template ops_ew, "src/interp_templates/ops_ew.cuh"
    template ops_list, "src/interp_templates/ops_list.cuh"
    template ops_whole, "src/interp_templates/ops_whole.cuh"
    template ops, "src/interp_templates/ops.cuh"
    template products, "src/interp_templates/products.cuh"
    template update, "src/interp_templates/update.cuh"
    template kernel, "src/interp_templates/kernel.cuh"
    template task_header, "src/script/header.h"
    template machine_arguments, "src/interp_templates/machine_arguments.cuh"
    template machine_common, "src/interp_templates/machine_common.cuh"
    template machine_parameters, "src/interp_templates/machine_parameters.cuh"
    template machine_loop, "src/interp_templates/machine_loop.cuh"
    template simt_cuda, "src/interp_templates/simt_cuda.h"
    .section .note.GNU-stack, "", %progbits
