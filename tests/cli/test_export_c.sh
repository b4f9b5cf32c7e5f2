#!/bin/bash
# test_export_c.sh - `vpps export --c`: programs that answer as predict does, and what is refused. VPPS names the program (default:
# build/vpps). VPPS_EXPORT_BUILDS says how programs are built and run, as for build/tests/export_test_export: a network of each kind in
# every way, every other network in one of them by turns.

data=$(realpath -q "${VPPS_DATA:-../shared/data}")
# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

strict=(-std=c99 -Wall -Wextra -Wpedantic -Werror)
checked=(cc "-fsanitize=address,undefined" -fno-sanitize-recover=all "${strict[@]}")
IFS=';' read -r -a builds <<<"${VPPS_EXPORT_BUILDS:-cc -O1|}"

printf '(1 (0 never) (1 (0 a) (1 dull)))\n\n(0 (1 so) (0 bad))\n(3 word)\n(1 (0 (1 3) (2 4)) (1 (0 7) (1 MAX)))\n' >trees.txt
printf 'the dog barks loudly\n\na  Zürich\tcafé opens\n日本 so bad\n' >words.txt
printf 'the|O dog|B-X barks|O\na|O Zürich|B-X café|I-X opens|O\n\nso|O|x bad|B-X\n' >tagged.txt
for _ in 1 2 3 4; do cat tagged.txt; printf 'never|O bad|B-X\nthe|O bad|B-X dog|I-X\n'; done >tags.txt
: >empty.txt
cat >trees.jsonl <<'END'
{"tree": "(1 (0 never) (1 dull))", "label": 3, "id": [1.50, {"a": null}]}

{"text": " (1 2)\t"}
{"x": "(1\n(1 a)(2 so))"}
{"tree": "", "label": 3, "nodes": 7}
END
printf '\357\273\277(1 never)\r\n(1 (0 a) (0 b))' >marked.txt
printf '(S (NP (D the) (N dog) (N film)) (VP (V barks)))\n(S (NP we) (VP run))\n( (S (-NONE- 0) (NP (-NONE- *T*-1)) (A b)))\n(1 (2 a) (3 b))\n(S (-NONE- *))\n' \
    >names.txt
printf '{"tree": "(S (NP the) (VP (V barks) (X so)))"}\n' >names.jsonl
printf 'the\tO\ndog\tB-X\n\nnever\t_\r\nZürich\tO\n' >columns.txt
printf -- '-DOCSTART- -X- O\n\nthe D O\nbad N B-X\n\n  \n#a N I-X\nso # A O\n# a comment\n' >blanks.txt
{
    printf '# text\n1\tthe\tthe\tDET\t_\t_\t2\tdet\t_\t_\n2-3\tab\t_\t_\t_\t_\t_\t_\t_\t_\n2\tdog\tdog\tNOUN\t_\t_\t0\troot\t_\t_\n\n'
    printf '1\tso\tso\tB-X\t_\t_\t0\troot\t_\t_\n'
} >words.conllu
printf 'the|D|O dog|N|B-X\nso|x|A|O\n' >barred.txt
cat >tags.jsonl <<'END'
{"text": "the do\u0067\u00e9 \ud83d\ude00 \"bad\\ dog", "tags": 1, "n": 1.0e5}

{"tokens": ["never", "b c", " bad "]}
{"text": ""}
{"words": [], "tags": ["x"], "spans": 0}
END
cat >labels.jsonl <<'END'
{"text": "a good film"}
{"sentence": ["bad", "good"], "label": "x", "score": 2}
{"text": " ", "label": "pos"}
END
printf "A good, film... it's 3.14 (x) \"y\" e-mail #tag -3 «z»!!\n\npos good\n" >unsplit.txt
printf 'pos\ta good-film,x\nneg\tbad!\n' >unsplit_labels.txt
echo '{"text": "A good, film... don\u2019t"}' >unsplit.jsonl
printf 'pos\ta good film\nneg\ta bad film\npos\tgood good\n\nneg\tdull\n' >labels.txt
# Tables: quotes, fields over lines, lists, a blank line, fields of the answer's names, several or no names, a mark, CR LF.
printf 'id,text,label,score\n1,"a ""good"", film",x,7\n"2\n3", ,pos,\n\n4,"[\047bad\047, \047go\\u006fd\047]",,"a\nb"\n' >named.csv
printf '\357\273\277"sentence"\r\na bad film\r\n\r\n"good, good"' >one.csv
printf 'text\tgold\n"a\tgood ""film"""\t5" screen\n\tx\n' >named.tsv
printf 'a,,\nb,bad film,\n' >numbers.csv
printf 'words,tokens,tags,,\n1,"(\047the\047 \047big dog\047)",x,y,z\n2,so bad,,,"q""r"\n3,,O,,\n' >words.csv
printf 'review\ttags\nthe dog barks\tO B-X O\n' >reviews.tsv
printf 'the\tO\nbad\tO\n' >columns.tsv
printf 'tree,label,words\n"(1 (0 never)\n(1 dull))",4,two\n,5,none\n"(1 2)",,\n' >trees.csv
printf 'tree\tid\n(S (NP the) (VP (V barks) (X so)))\t(1)\n' >names.tsv
printf '# global.columns = FORM ID NE:X UPOS\nthe\t1\tO\tB-X\n# c\nab\t1-2\t_\t_\n\n-DOCSTART- x\nbad 1 B-X O\n' >plus.conllup
printf 'so\n-DOCSTART-\n#bad\n\nthe' >alone.conll
printf '# license\n\nthe\tO\n\n# c\n\nbad\tB-X' >comments.txt
printf '5.30 is the time when the train to London leaves\n' >number.txt
printf '1-2\tAda.\t_\t_\t_\t_\t_\t_\t_\t_\n1\tthe\ta\tX\tNN\t_\t2\tx\t_\t_\n' >range.conllu
trees_with=(--generate listops --examples 100) tags_with=(--train tags.txt --min-count 1) labels_with=(--train labels.txt --min-count 1)
trees=(empty.txt trees.txt marked.txt trees.jsonl) tags=(empty.txt words.txt tagged.txt columns.txt blanks.txt words.conllu barred.txt tags.jsonl)
labels=(empty.txt words.txt labels.txt labels.jsonl)

# Real data: networks learn the first lines of the dev parts of SST and WikiNER. Programs of the first way to build answer the whole parts,
# the others their first lines.
if [ -r "$data/sst/dev.txt" ] && [ -r "$data/wikiner/dev.txt" ]; then
    cp "$data/sst/dev.txt" trees_dev.txt
    sed 's/^(\([0-9]\) */\1\t/; s/([0-9] *//g; s/)//g' trees_dev.txt >labels_dev.txt
    # Tags as IOB2: a span begins with B.
    awk '{
        last = ""
        for (i = 1; i <= NF; i++) {
            at = match($i, /\|[BI]-[^|]*$/)
            type = at ? substr($i, at + 3) : ""
            if (type != last && at) $i = substr($i, 1, at) "B-" type
            last = type
        }
        print
    }' "$data/wikiner/dev.txt" >tags_dev.txt
    for part in trees tags labels; do head -n 60 ${part}_dev.txt >${part}_first.txt; done
    trees+=(trees_dev.txt) tags+=(tags_dev.txt) labels=(empty.txt words.txt labels.jsonl labels_dev.txt)
    trees_with=(--train trees_first.txt --dev trees_first.txt) tags_with=(--train tags_first.txt) labels_with=(--train labels_first.txt)
else
    skip "whole dev parts" "no data"
fi

head -n 30 "${labels_with[1]}" >lines.tsv

# Are two files the same, but for the last digits of numbers in objects?
same() {
    python3 - "$1" "$2" <<'END'
import re, sys
a, b = (open(path, encoding="utf-8", newline="").read() for path in sys.argv[1:])
number = re.compile(r"(?<=\":)-?\d[-+.e\d]*")
x, y = (list(map(float, number.findall(text))) for text in (a, b))
if number.sub("", a) != number.sub("", b) or any(abs(p - q) > 1e-5 * abs(p) for p, q in zip(x, y)):
    sys.exit(f"{a[:800]}\nis not\n{b[:800]}")
END
}

# answers NETWORK WAYS INPUT...: the program that is exported, built in these ways, by number, answers each input as predict does.
answers() {
    local network=$1 ways=$2 input way lines=10000
    [[ " $ways " = *" 0 "* ]] || lines=40
    for input in "${@:3}"; do
        "$vpps" predict --model "$network.ckpt" --vps 1 < <(head -n "$lines" "$input") >"want-$input" 2>err || return 1
    done
    exits 0 "$vpps" export --model "$network.ckpt" --c "$network.c" --main --force || return 1
    for way in $ways; do
        read -r -a cc <<<"${builds[way]%%|*}"
        read -r -a runner <<<"${builds[way]#*|}"
        lines=10000
        [ "$way" -eq 0 ] || lines=40
        exits 0 "${cc[@]}" "${strict[@]}" -o program "$network.c" -lm || return 1
        for input in "${@:3}"; do
            "${runner[@]}" ./program < <(head -n "$lines" "$input") >got && head -n "$lines" "want-$input" >want && same want got || return 1
        done
    done
}

# reads NETWORK INPUT...: the latest program answers files, "OPTION... FILE", as predict does.
reads() {
    local input arguments
    for input in "${@:2}"; do
        read -r -a arguments <<<"$input"
        "$vpps" predict --model "$1.ckpt" --vps 1 "${arguments[@]}" >want 2>err || { cat err; return 1; }
        if ! exits 0 "${runner[@]}" ./program "${arguments[@]}" || ! same want out; then
            echo "$input"
            return 1
        fi
    done
}
program_refuses() { # INPUT TEXT
    # shellcheck disable=SC2059
    printf "$1" | "${runner[@]}" ./program >got 2>err && return 1
    says err "$2"
}
turn=0
by_turns() { answers "$1" $((turn++ % ${#builds[@]})) "${@:2}"; }
every="${!builds[*]}"

# trained NETWORK OPTION...: with sizes that are no multiple of a block.
trained() { exits 0 "$vpps" train "$1" --vps 1 --quiet --epochs 1 --hidden 21 --save "$1.ckpt" --force "${@:2}"; }

check "train tree-lstm" trained tree-lstm --embed 18 "${trees_with[@]}"
check "a program for trees" answers tree-lstm "$every" "${trees[@]}"
check "its tables" reads tree-lstm trees.csv "--text-field tree trees.csv trees.csv" trees.txt "--input-format jsonl trees.jsonl"
check "train bilstm-char-tagger" trained bilstm-char-tagger --embed 7 --character-embed 9 --layers 2 --crf "${tags_with[@]}"
check "a program for taggers" answers bilstm-char-tagger "$every" "${tags[@]}"
check "its tables and options" reads bilstm-char-tagger words.csv "--text-field tokens words.csv" "--text-field=3 words.csv" columns.tsv \
    "--text-field review reviews.tsv" plus.conllup "--tag-column NE:X plus.conllup" "--tag-column 3 words.conllu" \
    "--word-column 2 --tag-column 1 barred.txt" "--tag-column 2 --input-format columns columns.txt" alone.conll "--input-format text columns.txt" \
    "--input-format tagged tagged.txt" number.txt range.conllu comments.txt "words.csv words.csv"
check "train act" trained act --embed 7 --turns 4 "${labels_with[@]}"
check "a program for sentences" answers act "$every" "${labels[@]}"
check "its tables" reads act named.csv one.csv named.tsv lines.tsv "--text-field 2 numbers.csv" "--input-format labelled labels.txt" \
    "--input-format text labels.txt" "--text-field id named.csv" "--label-field score named.tsv" "one.csv one.csv"
check "a label that the network lacks" program_refuses 'five\tada\npos\tada\n' "stdin:1: expected a label of the network before the tab"
check "train td-rnn" trained td-rnn --train names.txt --min-count 1
check "a program for trees with names" answers td-rnn 0 names.txt names.jsonl
check "its tables" reads td-rnn names.tsv
check "train act on text" trained act --turns 4 --train labels.txt --min-count 1 --tokenizer simple
check "a program that splits text" answers act 0 unsplit.txt unsplit_labels.txt unsplit.jsonl
if [ -n "${VPPS_EXPORT_BUILDS:-}" ]; then
    check "train rvnn on names" trained rvnn --train names.txt --min-count 1
    check "a program of all nodes' names" answers rvnn "$every" names.txt names.jsonl
    for network in tree-lstm-2type tree-gru rvnn mv-rnn td-rnn td-lstm tree-fc; do
        check "train $network" trained "$network" "${trees_with[@]}"
        check "a program of $network" by_turns "$network" "${trees[@]}"
    done
    for options in "--layers 1" "--layers 2 --crf" "--layers 1 --scheme iob2"; do
        for network in bilstm-tagger bilstm-char-tagger transformer-tagger; do
            # shellcheck disable=SC2086
            check "train $network $options" trained "$network" $options "${tags_with[@]}"
            check "a program of $network $options" by_turns "$network" "${tags[@]}"
        done
    done
    check "train bilstm-classifier" trained bilstm-classifier --layers 2 "${labels_with[@]}"
    check "a program of bilstm-classifier" by_turns bilstm-classifier "${labels[@]}"
fi

# ---------------------------------------------------------------- a program's input

exits 0 "$vpps" export --model tree-lstm.ckpt --c tree-lstm.c --main --force && "${checked[@]}" -o program tree-lstm.c -lm
runner=()
check "a label that is none" program_refuses '(1 a)\n(1 (0 a) (1000 b))\n' 'stdin:2: expected a label from -1 to 999'
check "the tree before it" test "$(grep -c a got)" = 1
check "a tree that ends early" program_refuses '(1 a)\n(1 (0 a)\n' "stdin:2: expected '('"
check "the first tree" program_refuses '(1 (0 a) (1 b)\n' "stdin:1: expected ')'"
check "a CR alone" program_refuses '(1 a)\n(1 b)\r' 'stdin:2: expected LF after CR, found CR alone'
check "two trees in a line" program_refuses '(1 a) (1 b)\n' 'stdin:1: expected one tree'
check "an array" program_refuses '\n[ {"tree": "(1 a)"}]\n' 'stdin: expected objects, one a line, found an array'
check "no JSON" program_refuses '{"tree": "(1 a)"}\n{"tree"}\n' "stdin:2: expected ':' after the key"
check "no text" program_refuses '{"a": "(1 a)", "b": 1}\n' "stdin:1: expected a field 'tree'"
check "two texts" program_refuses '{"tree": "(1 a)", "tree": "(1 b)"}\n' "stdin:1: expected one field"

exits 0 "$vpps" export --model bilstm-char-tagger.ckpt --c tagger.c --main --force && "${checked[@]}" -o program tagger.c -lm
check "words with spaces" program_refuses '{"text": ["a b", 3]}\n' 'expected a text, or a list of words'
check "a word without a tag" program_refuses 'a|O b|O c|O d|O e|O f|O g|O h|O i|O j\n' 'stdin:1: expected word|TAG'
check "CoNLL-U Plus without tags" program_refuses '# global.columns = ID FORM\n1\ta\n' 'stdin:1: expected columns of the names that are asked for'
check "UTF-16" program_refuses '\377\376a' 'stdin: expected UTF-8, found UTF-16'
table_refuses() { # TABLE TEXT [OPTION...]
    # shellcheck disable=SC2059
    printf "$1" >table.csv
    fails_with 1 "$2" ./program table.csv "${@:3}"
}
check "no such file" fails_with 1 "none.csv: expected a file that can be opened" ./program none.csv
check "an option that is none" exits 2 ./program --texts words
check "a table without a text" table_refuses 'a,b\n1,2\n' "table.csv:2: expected a field 'text'"
check "no field of that number" table_refuses 'a,b\n' "table.csv:1: expected a field '3'" --text-field 3
check "a short row" table_refuses 'words,b\n"x\ny"\n' "table.csv:2: expected 2 fields, as there are names, found 1"
check "an open quote" table_refuses 'words\n"x\n' "table.csv:2: field 1: expected a closing quote"
check "text after a quote" table_refuses 'words\n"x"y\n' "table.csv:2: field 1: expected a comma"
check "two fields of a name" table_refuses 'words,a,a\n' "table.csv:1: two fields have the name 'a'"
check "semicolons" table_refuses 'words;a\n' "table.csv:1: expected commas between fields"
check "spans" table_refuses 'words,spans\n' "table.csv:1: expected no field 'spans'"
check "no UTF-8" table_refuses 'words\n\377\n' "table.csv:2: field 1: expected text in UTF-8"
check "a cut list" table_refuses "words\n['a' ... 'b']\n" "table.csv:2: expected a list, found one with"
check "a form of another network" fails_with 1 "does not read labelled" ./program --input-format labelled tagged.txt
check "a word's number" program_refuses '1\ta\t_\tX\t_\t_\t0\t_\t_\t_\n_2\ta\t_\tX\t_\t_\t0\t_\t_\t_\n' "stdin:2: expected a word's number"
check "CoNLL-U of nine columns" program_refuses '1\ta\t_\tX\t_\t_\t0\t_\t_\t_\n2\ta\t_\tX\t_\t_\t0\t_\t_\n' 'stdin:2: expected the 10 columns'

# ---------------------------------------------------------------- examples

embedded=$(dirname "$cli")/../examples/embedded
labels_trees() { # COMMAND...: prints the labels that predict does
    "$vpps" predict --model tree-lstm.ckpt --vps 1 --output label <trees.txt 2>err | grep . >want
    local lines
    mapfile -t lines < <(grep . trees.txt)
    "$@" "${lines[@]}" >got && diff want got
}
exits 0 "$vpps" export --model tree-lstm.ckpt --c net.c --header net.h --force
check "examples/embedded/tree_lstm.c" exits 0 cc "${strict[@]}" -I. -o tree_lstm "$embedded/tree_lstm.c" net.c -lm
check "its labels" labels_trees ./tree_lstm
if command -v node wasm-ld >/dev/null && clang --print-targets 2>/dev/null | grep -q wasm32; then
    check "the same in WebAssembly" exits 0 clang --target=wasm32 -O2 -mbulk-memory -nostdlib -I"$embedded/wasm" -I. \
        -Wl,--no-entry,--export=label_of,--export=__heap_base -o net.wasm "$embedded/tree_lstm.c" net.c
    check "its labels" labels_trees node "$embedded/wasm/run.mjs" net.wasm
else
    skip "WebAssembly" "there is no clang for it, or no node" 2
fi
tags_words() {
    exits 0 cc "${strict[@]}" -I. -o tagger "$embedded/tagger.c" net.c -lm && ./tagger the dog barks >got &&
        echo the dog barks | "$vpps" predict --model bilstm-tagger.ckpt --vps 1 2>err | diff - got
}
check "train bilstm-tagger" trained bilstm-tagger --embed 6 --layers 1 --mlp 0 "${tags_with[@]}"
check "export it" exits 0 "$vpps" export --model bilstm-tagger.ckpt --c net.c --header net.h --force
check "examples/embedded/tagger.c" tags_words
rm -f net.c net.h

# ---------------------------------------------------------------- files

parts_and_error() {
    "$vpps" export --model tree-lstm.ckpt --c parts.c --header parts.h --weights parts.bin --prefix Tree_ --precision int8 2>err &&
        grep -qE "^parts.c: on dev root .* by int8, root .* by fp32" err
}
check "a prefix, a header, weights beside, and what rounding costs" parts_and_error
uses_parts() {
    cat >use.c <<'END'
#include "parts.h"
#include <stdio.h>
#include <string.h>
static _Alignas(64) unsigned char bytes[1 << 20];
int main(void) {
    FILE *f = fopen("parts.bin", "rb");
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    float out[TREE__LEAF_OUT], pushed[TREE__LEAF_PUSHED];
    const char *word = Tree__word_text(3);
    fclose(f);
    if (!Tree__weights_fit(bytes, n) || Tree__weights_fit(bytes, n - 1)) return 1;
    if (Tree__leaf(bytes, Tree__word_number(word, strlen(word)), out, pushed) != TREE__OK || Tree__leaf(bytes, UINT32_MAX, out, pushed) != TREE__INDEX) return 2;
    bytes[n - 1]++;
    return Tree__weights_fit(bytes, n);
}
END
    exits 0 cc -std=c11 -Wall -Werror -o use use.c parts.c -lm && exits 0 ./use
}
check "they are used together" uses_parts
check "weights beside that a cell does not read" exits 0 "$vpps" export --model bilstm-char-tagger.ckpt --c none.c --weights none.bin
check "its code" exits 0 cc "${strict[@]}" -c -o none.o none.c
check "again" exits 0 "$vpps" export --model tree-lstm.ckpt --c parts.c --header parts.h --weights parts.bin
echo 'int main(void) { return 0; }' >mine.c
check "a file of another program" fails_with 1 "--c mine.c: the file exists already, and --c has not made it" "$vpps" export --model tree-lstm.ckpt --c mine.c
check "one file for both" fails_with 1 "are the same file" "$vpps" export --model tree-lstm.ckpt --c net.c --header ./net.c
check "a header alone" fails_with 2 "--header goes with --c FILE.c" "$vpps" export --model tree-lstm.ckpt --save x --header x.h
check "a prefix that is none" fails_with 1 "prefix '2net'; expected a C identifier" "$vpps" export --model tree-lstm.ckpt --c net.c --prefix 2net
check "a program without weights" fails_with 1 "expected no --weights" "$vpps" export --model tree-lstm.ckpt --c net.c --main --weights net.bin
check "nothing is left of what failed" test ! -e net.c

summary
