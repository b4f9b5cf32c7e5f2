#!/bin/bash
# test_init.sh - `vpps train --init`: whole parameters of the same words, sizes come from the file, and what does not fit is told. VPPS names the
# program (default: build/vpps).

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

small=(--hidden 6 --embed 5 --batch 4 --vps 1 --json)
fresh=(--eval-every 0 --epochs 0 --seed 9)

# ---------------------------------------------------------------- parameters of the same words

printf '%s\n' 'the cat sat' 'the dog ran' 'a cat ran' 'a dog sat' >text.txt
printf '%s\n' 'sat dog new' 'ran a cat' 'new the cat' >other.txt
text() { # a language model: not the table of words, nor the classifier's rows and bias
    exits 0 "$vpps" train lstm-lm --train text.txt --min-count 1 "${small[@]}" --eval-every 0 --epochs 3 --save lm.ckpt --force &&
        exits 0 "$vpps" train lstm-lm --train "$1" --min-count 1 "${small[@]}" "${fresh[@]}" --init lm.ckpt --save lm2.ckpt --force &&
        says err "took 12 of 15 parameters, but not embedding (of $2), W_s (of $2), b_s (of $2)" && json out "o['init'] == {'parameters': 15, 'whole': 12}"
}
check "a language model of other words" text other.txt "another shape"
sed 's/cat/cow/' text.txt >as_many.txt
check "of other words, as many" text as_many.txt "other words"
printf '%s\n' 'cat N' 'sat V' '' 'dog N' 'red A' '' 'the D' 'dog N' '' >tags.txt
printf '%s\n' 'red A' 'dog N' '' 'new X' 'sat V' '' >tags2.txt
tags() { # words, characters, classes: each alone
    exits 0 "$vpps" train bilstm-char-tagger --train "$2" --min-count 1 "${small[@]}" "${fresh[@]}" --init tag.ckpt && says err "$1"
}
check "a tagger" exits 0 "$vpps" train bilstm-char-tagger --train tags.txt --min-count 1 "${small[@]}" --eval-every 0 --epochs 3 --save tag.ckpt
check "of the same words, characters and classes" tags "took 54 of 54 parameters" tags.txt
sed 's/A$/B/' tags.txt >classes.txt
check "of other classes, as many" tags "but not W_s (of other words), b_s (of other words)" classes.txt
sed 's/^cat/act/' tags.txt >words.txt
check "of other words" tags "but not embedding (of other words)" words.txt

# ---------------------------------------------------------------- sizes

sizes() { # from the file, unless given
    exits 0 "$vpps" train lstm-lm --train other.txt --min-count 1 --batch 4 --vps 1 --quiet --json "${fresh[@]}" --init lm.ckpt &&
        json out "o['hidden'] == 6 and o['embed'] == 5 and o['init']['whole'] == 12"
}
check "sizes are the file's" sizes
lookup_alone() { # --embed fits, --hidden does not: next to nothing is left
    fails_with 1 "lm.ckpt: has no matrix that fits lstm-lm; it was made with --hidden 6, --embed 5" "$vpps" train lstm-lm --train \
        text.txt --min-count 1 --batch 4 --vps 1 --quiet "${fresh[@]}" --init lm.ckpt --hidden 7 --embed 5
}
check "nothing but a lookup fits" lookup_alone
whole_line() { # what was not taken is told to its end
    exits 0 "$vpps" train bilstm-char-tagger --train tags.txt --min-count 1 "${small[@]}" "${fresh[@]}" --epochs 1 --save one.ckpt &&
        exits 0 "$vpps" train bilstm-char-tagger --train tags2.txt --min-count 1 --batch 4 --vps 1 "${fresh[@]}" --hidden 6 --embed 9 \
            --init one.ckpt && python3 - <<'PY'
line = next(l for l in open('err') if 'took' in l).rstrip()
n, of = (int(w) for w in line.split('took ')[1].split(' parameters')[0].split(' of '))
missing = line.split('but not ')[1].split(', ')
assert n + len(missing) == of and 'embedding (of another shape)' in missing and 'W_s (of other words)' in missing, line
PY
}
check "what was not taken is told whole" whole_line

# ---------------------------------------------------------------- what is given wins over the file; other values

bad_size() {
    recast lm.ckpt bad.ckpt "m['option.hidden'] = '6.5'"
    fails_with 1 'bad.ckpt: "option.hidden" is "6.5", not a whole number' "$vpps" train lstm-lm --train text.txt --quiet --init bad.ckpt
}
check "a size that is none" bad_size

summary
