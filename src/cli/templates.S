/* templates.S - the parts of the program of an exported network, as zero-terminated text: main_NAME. */
    .macro template name
    .globl main_\name
    .hidden main_\name
main_\name:
    .incbin "src/cli/main/\name\().h"
    .byte 0
    .endm

    .section .rodata
    template lines
    template sentences
    template trees
    template tags
    template labels
    template bilstm
    template transformer
    template act
    .section .note.GNU-stack, "", %progbits
