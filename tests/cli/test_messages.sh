#!/bin/bash
# test_messages.sh - what a mistake on the command line, or in a small file that it names, is told as. VPPS names the program (default:
# build/vpps).

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

tree=("$vpps" train tree-lstm --examples 20 --hidden 8 --vps 1 --epochs 0)

# ---------------------------------------------------------------- values

for option in "train --resume" "train --config" "eval --model" "predict --model"; do
    read -r -a words <<<"$option"
    check "$option" fails_with 2 "${words[1]}: a value must follow" "$vpps" "${words[@]}"
done
check "--resume=" fails_with 2 "--resume: the value is empty; expected a checkpoint" "$vpps" train --resume=
check "an empty name" fails_with 2 "--save: the value is empty; expected a text of a character or more" "${tree[@]}" --save ''
check "an empty number" fails_with 2 "--lr: the value is empty; expected a number from 0 to 1e+06" "${tree[@]}" --lr ''
check "an empty word" fails_with 2 "--optimizer: the value is empty; expected one of sgd" "${tree[@]}" --optimizer ''
for name in x.png X.PDF a.b.jpeg; do
    check "--plot $name" fails_with 2 "--plot $name: the picture is SVG; expected a name that ends in .svg" "${tree[@]}" --plot $name
done
check "a picture without an ending" exits 0 "${tree[@]}" --plot curves
version() { exits 0 "$vpps" "$1" && grep -q "^vpps [0-9.]*$" out; }
check "vpps version" version version
check "vpps --version" version --version
more_vps() { exits 0 "${tree[@]}" --vps 63 && says err "cpu with 63 VPs on" && says err "cores: more VPs than cores are slower"; }
if [ "$(nproc)" -lt 63 ]; then check "more VPs than cores" more_vps; else skip "more VPs than cores" "there are as many"; fi

# ---------------------------------------------------------------- lists of parameters

check "blanks in a list" exits 0 "${tree[@]}" --lr-of ' embedding = 1,	W_i=2 ' --freeze 'embedding, W_i'
check "an item without a name" fails_with 1 "--freeze 'embedding,': an item has no name; expected names with commas between" "${tree[@]}" --freeze embedding,
check "and without a rate" fails_with 1 "--lr-of '=1': an item has no name" "${tree[@]}" --lr-of '=1'
thaws() { # a resumed run may train everything again, and all of it at one rate
    exits 0 "${tree[@]}" --epochs 1 --eval-every 0 --freeze embedding --lr-of W_i=0 --save frozen.ckpt &&
        exits 0 "$vpps" train --resume frozen.ckpt --freeze '' --lr-of '' --epochs 2 --save thawed.ckpt &&
        says err "frozen.ckpt was made with --epochs 1, --lr-of W_i=0, --freeze embedding: it goes on with --epochs 2, no --lr-of, no --freeze" &&
        holds "all(parameters('frozen.ckpt')[k] != parameters('thawed.ckpt')[k] for k in ('embedding', 'W_i'))" &&
        exits 0 "$vpps" train --resume thawed.ckpt --epochs 3 && holds "parameters('frozen.ckpt')['embedding'] != load('thawed.ckpt')['embedding']"
}
check "--freeze '' freezes nothing" thaws

# ---------------------------------------------------------------- files

printf '' >none.txt
printf '\n  \n' >blank.txt
printf '\xef\xbb\xbf1 2\n' >marked.txt
for file in none blank; do
    check "class weights: $file" fails_with 1 "$file.txt: expected lines of a label and its weight, found none" "${tree[@]}" --class-weights $file.txt
done
marked() { exits 0 "${tree[@]}" --class-weights marked.txt && says err "class weights: 0 1, 1 2, 2 1"; }
check "class weights after a byte order mark" marked
printf '{"text": "a b", "label": 1.0}\n' >real.jsonl
check "a label with a point" fails_with 1 "real.jsonl:1: label: expected a label, as text or a whole number, found 1.0" \
    "$vpps" train bilstm-classifier --train real.jsonl


# ---------------------------------------------------------------- fields without a name

printf 'text,label,,\na b,x,1,\na c,y,,2\n' >empty.csv
unnamed() { # two trailing commas, as of a spreadsheet's empty columns: they have their numbers, and keep what they hold
    exits 0 "$vpps" train bilstm-classifier --train empty.csv --min-count 1 --hidden 8 --embed 4 --epochs 1 --vps 1 --save empty.ckpt &&
        exits 0 "$vpps" predict --model empty.ckpt empty.csv && sed -E 's/[xy],([0-9]*),([0-9]*),0.*/L,\1,\2,S/' out >fields &&
        diff fields <(printf 'text,label,3,4,score\na b,L,1,,S\na c,L,,2,S\n')
}
check "two fields without a name" unnamed

summary
