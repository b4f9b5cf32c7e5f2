/* templates.S - embeds the C files that make up an exported network's program, as zero-terminated strings main_NAME. */
    .macro template name, path
    .globl main_\name
    .hidden main_\name
main_\name:
    .incbin "\path"
    .byte 0
    .endm

    .macro part name
    template \name, "src/cli/main/\name\().h"
    .endm

    .section .rodata
    part lines
    part forms
    part records
    part values
    part sentences
    part trees
    part tags
    part columns
    part tagger
    part labels
    part bilstm
    part transformer
    part act
    template json_types, "src/io/json.h"
    template json, "src/io/json.c"
    template csv_types, "src/cli/input/csv.h"
    template csv, "src/cli/input/csv.c"
    template lists, "src/cli/common/lists.c"
    template chunks, "src/io/chunks.h"
    template chain_types, "src/cli/session/chain_paths.h"
    template chain, "src/cli/session/chain_paths.c"
    template tokens, "src/cli/input/tokenize_simple.c"
    .section .note.GNU-stack, "", %progbits
