/* template.S - for assembly files, by #include (ccache does not see .incbin in what .include reads): template NAME, "PATH" embeds a file,
 * named from the root, as the zero-terminated string NAME. */
    .macro template name, path
    .globl \name
    .hidden \name
\name:
    .incbin "\path"
    .byte 0
    .endm

    .section .rodata
