#!/bin/bash
# test_init.sh - `vpps train --init`: rows go by their words, sizes come from the file, and what does not fit is told. VPPS names the
# program (default: build/vpps).

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

small=(--hidden 6 --embed 5 --batch 4 --vps 1 --quiet --json)
fresh=(--eval-every 0 --epochs 0 --seed 9)

# rows FILE FILE TENSOR VOCABULARY VOCABULARY: of the words that both files have, the tensor's rows are the same, and they stand at
# other places.
rows() {
    with_runs "
a, b = rows('$1', '$3', '$4'), rows('$2', '$3', '$5')
both = [w for w in b if w in a]
assert len(both) > 2 and list(a)[:len(b)] != list(b), (list(a), list(b))
assert [w for w in both if a[w] != b[w]] == [], [w for w in both if a[w] != b[w]]"
}

# ---------------------------------------------------------------- rows by their words

printf '%s\n' 'the cat sat' 'the dog ran' 'a cat ran' 'a dog sat' >text.txt
printf '%s\n' 'sat dog new' 'ran a cat' 'new the cat' >other.txt
text() { # a language model's table of words, and its classifier's rows and bias
    exits 0 "$vpps" train lstm-lm --train text.txt --min-count 1 "${small[@]}" --eval-every 0 --epochs 3 --save lm.ckpt &&
        exits 0 "$vpps" train lstm-lm --train other.txt --min-count 1 "${small[@]}" "${fresh[@]}" --init lm.ckpt --save lm2.ckpt &&
        json out "o['init']['whole'] + o['init']['partly'] == o['init']['parameters'] and o['init']['partly'] == 3" &&
        for tensor in embedding W_s b_s; do rows lm.ckpt lm2.ckpt $tensor vocabulary vocabulary || return 1; done
}
check "of a language model: table and output rows" text
printf '%s\n' 'cat N' 'sat V' '' 'dog N' 'red A' '' 'the D' 'dog N' '' >tags.txt
printf '%s\n' 'red A' 'dog N' '' 'new X' 'sat V' '' >tags2.txt
tags() { # words, characters, classes
    exits 0 "$vpps" train bilstm-char-tagger --train tags.txt --min-count 1 "${small[@]}" --eval-every 0 --epochs 3 --save tag.ckpt &&
        exits 0 "$vpps" train bilstm-char-tagger --train tags2.txt --min-count 1 "${small[@]}" "${fresh[@]}" --init tag.ckpt \
            --save tag2.ckpt && rows tag.ckpt tag2.ckpt embedding vocabulary vocabulary &&
        rows tag.ckpt tag2.ckpt characters characters characters && rows tag.ckpt tag2.ckpt W_s class_names class_names &&
        rows tag.ckpt tag2.ckpt b_s class_names class_names
}
check "of a tagger: words, characters and classes" tags

# ---------------------------------------------------------------- sizes

sizes() { # from the file, unless given
    exits 0 "$vpps" train lstm-lm --train other.txt --min-count 1 --batch 4 --vps 1 --quiet --json "${fresh[@]}" --init lm.ckpt &&
        json out "o['hidden'] == 6 and o['embed'] == 5 and o['init']['whole'] + o['init']['partly'] == o['init']['parameters']"
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
assert n + len([m for m in missing if 'rows' not in m]) == of and 'embedding (of another shape)' in missing and "1 of W_s's 4 rows" in missing, line
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
