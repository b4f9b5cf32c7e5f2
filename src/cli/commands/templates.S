/* templates.S - embeds files as zero-terminated strings: the C files that make up an exported network's program as main_NAME. */
#include "../../base/template.S"

    .macro part name
    template main_\name, "src/cli/main/\name\().h"
    .endm

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
    template main_json_types, "src/io/json.h"
    template main_json, "src/io/json.c"
    template main_csv_types, "src/cli/input/csv.h"
    template main_csv, "src/cli/input/csv.c"
    template main_lists, "src/cli/common/lists.c"
    template main_chunks, "src/io/chunks.h"
    template main_chain_types, "src/cli/session/chain_paths.h"
    template main_chain, "src/cli/session/chain_paths.c"
    template main_tokens, "src/cli/input/tokenize_simple.c"
    .section .note.GNU-stack, "", %progbits
