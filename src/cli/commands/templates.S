/* templates.S - embeds files as zero-terminated strings: the C files that make up an exported network's program as main_NAME, and the shells'
 * completion scripts as completion_SHELL. */
    .macro text name, path
    .globl \name
    .hidden \name
\name:
    .incbin "\path"
    .byte 0
    .endm

    .macro template name, path
    text main_\name, "\path"
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
    text completion_bash, "src/cli/commands/completion.bash"
    text completion_zsh, "src/cli/commands/completion.zsh"
    .section .note.GNU-stack, "", %progbits
