#!/bin/bash
# test_export_c.sh - `vpps export --c`: programs that answer as predict does, and what is refused. VPPS names the program (default:
# build/vpps). VPPS_EXPORT_BUILDS says how programs are built and run, as for build/tests/export_test_export: a network of each kind in
# every way, every other network in one of them by turns.
# Prints a line for every failure; the last line is "N passed, N failed, N skipped".

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
    trees_with=(--train trees_first.txt) tags_with=(--train tags_first.txt) labels_with=(--train labels_first.txt)
else
    skip "whole dev parts" "no data"
fi

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
turn=0
by_turns() { answers "$1" $((turn++ % ${#builds[@]})) "${@:2}"; }
every="${!builds[*]}"

# trained NETWORK OPTION...: with sizes that are no multiple of a block.
trained() { exits 0 "$vpps" train "$1" --vps 1 --quiet --epochs 1 --hidden 21 --save "$1.ckpt" --force "${@:2}"; }

check "train tree-lstm" trained tree-lstm --embed 18 "${trees_with[@]}"
check "a program for trees" answers tree-lstm "$every" "${trees[@]}"
check "train bilstm-char-tagger" trained bilstm-char-tagger --embed 7 --character-embed 9 --layers 2 --crf "${tags_with[@]}"
check "a program for taggers" answers bilstm-char-tagger "$every" "${tags[@]}"
check "train act" trained act --embed 7 --turns 4 "${labels_with[@]}"
check "a program for sentences" answers act "$every" "${labels[@]}"
check "train td-rnn" trained td-rnn --train names.txt --min-count 1
check "a program for trees with names" answers td-rnn 0 names.txt names.jsonl
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

program_refuses() { # INPUT TEXT
    # shellcheck disable=SC2059
    printf "$1" | ./program >got 2>err && return 1
    says err "$2"
}
exits 0 "$vpps" export --model tree-lstm.ckpt --c tree-lstm.c --main --force && "${checked[@]}" -o program tree-lstm.c -lm
check "a label that is none" program_refuses '(1 a)\n(1 (0 a) (1000 b))\n' 'stdin:2: expected a label from -1 to 999'
check "the tree before it" test "$(grep -c a got)" = 1
check "a tree that ends early" program_refuses '(1 a)\n(1 (0 a)\n' "stdin:2: expected '('"
check "the first tree" program_refuses '(1 (0 a) (1 b)\n' "stdin:1: expected ')'"
check "a CR alone" program_refuses '(1 a)\n(1 b)\r' 'stdin:2: expected LF after CR, found CR alone'
check "two trees in a line" program_refuses '(1 a) (1 b)\n' 'stdin:1: expected one tree'
check "an array" program_refuses '\n[ {"tree": "(1 a)"}]\n' 'stdin:2: expected objects, one a line, found an array'
check "no JSON" program_refuses '{"tree": "(1 a)"}\n{"tree"}\n' "stdin:2: expected ':' after the key"
check "no text" program_refuses '{"a": "(1 a)", "b": 1}\n' "stdin:1: expected a field 'tree'"
check "two texts" program_refuses '{"tree": "(1 a)", "tree": "(1 b)"}\n' "stdin:1: expected one field"

exits 0 "$vpps" export --model act.ckpt --c act.c --main --force && cc "${strict[@]}" -o program act.c -lm
check "a label that the network lacks" program_refuses 'five\tada\npos\tada\n' "stdin:1: expected a label of the network before the tab"

exits 0 "$vpps" export --model bilstm-char-tagger.ckpt --c tagger.c --main --force && "${checked[@]}" -o program tagger.c -lm
check "words with spaces" program_refuses '{"text": ["a b", 3]}\n' 'expected a text, or a list of words'
check "a word without a tag" program_refuses 'a|O b|O c|O d|O e|O f|O g|O h|O i|O j\n' 'stdin:1: expected word|TAG'
check "CoNLL-U Plus" program_refuses '# global.columns = ID FORM\n' 'found CoNLL-U Plus'
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

check "a prefix, a header, weights beside" exits 0 "$vpps" export --model tree-lstm.ckpt --c parts.c --header parts.h --weights parts.bin --prefix Tree_ \
    --precision int8
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
check "again" exits 0 "$vpps" export --model tree-lstm.ckpt --c parts.c --header parts.h --weights parts.bin
echo 'int main(void) { return 0; }' >mine.c
check "a file of another program" fails_with 1 "--c mine.c: the file exists already, and --c has not made it" "$vpps" export \
    --model tree-lstm.ckpt --c mine.c
check "one file for both" fails_with 1 "are the same file" "$vpps" export --model tree-lstm.ckpt --c net.c --header ./net.c
check "a header alone" fails_with 2 "--header goes with --c FILE.c" "$vpps" export --model tree-lstm.ckpt --save x --header x.h
check "a prefix that is none" fails_with 1 "prefix '2net'; expected a C identifier" "$vpps" export --model tree-lstm.ckpt --c net.c --prefix 2net
check "a program without weights" fails_with 1 "expected no --weights" "$vpps" export --model tree-lstm.ckpt --c net.c --main --weights net.bin
check "nothing is left of what failed" test ! -e net.c

summary
