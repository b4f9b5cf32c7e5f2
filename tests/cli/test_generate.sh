#!/bin/bash
# test_generate.sh - `vpps generate`: what is drawn has the model's probabilities. VPPS names the program.

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

# One word follows another, so that a small model knows how likely: b after a 3 times of 4, c 1 time of 4.
python3 -c "
for i in range(200): print(('a b', 'a b', 'a c', 'a b')[i % 4])" >text
check "a language model" exits 0 "$vpps" train lstm-lm --train text --hidden 8 --embed 6 --batch 8 --vps 1 --quiet --lr 0.03 \
    --lr-decay 0.7 --eval-every 0 --epochs 10 --layers 2 --save lm.ckpt
make() { exits 0 "$vpps" generate --vps 1 --model lm.ckpt "$@"; }

check "generate" make
check "generate: ten sentences" test "$(wc -l <out)" = 10
check "generate lstm-lm" exits 0 "$vpps" generate lstm-lm --model lm.ckpt -n 3
check "generate lstm-lm: three" test "$(wc -l <out)" = 3
likely() { make --count 400 --seed 5 && python3 - <<'PY'
lines = open('out').read().splitlines()
n = len(lines)
b, c = lines.count('a b') / n, lines.count('a c') / n
assert n == 400 and b + c > 0.9 and 0.15 < c / (b + c) < 0.35, (b, c)
PY
}
check "words are as likely as in the text" likely
same() { make --count 40 --seed 7 && cp out once && make --count 40 --seed 7 --batch 3 && cmp once out &&
    make --count 20 --seed 7 && cmp out <(head -n 20 once); }
check "a seed gives the same sentences, however many and in whatever batches" same
other() { make --count 40 --seed 8 && ! cmp -s once out; }
check "another seed gives others" other
only() { make "$@" && [ "$(sort -u out)" = "a b" ]; }
check "--temperature 0: the likeliest" only --temperature 0 --count 20
check "--temperature 0.05: nearly always" only --temperature 0.05 --count 20
check "--top-p 0.5: one word has it" only --top-p 0.5 --count 50
check "--top-p 0: the likeliest" only --top-p 0 --count 20
wide() { make --count 300 --temperature 100 && [ "$(grep -cx 'a b\|a c' out)" -lt 150 ]; }
check "--temperature 100: nearly anything" wide
nucleus() { make --count 300 --top-p 0.9 && [ "$(sort -u out)" = "$(printf 'a b\na c')" ]; }
check "--top-p 0.9: what is unlikely is left out" nucleus
no_unknown() { make --count 300 --temperature 100 --max-words 3 && ! grep -q 'unk' out && ! grep -qE '( .*){3}' out; }
check "never <unk>, and --max-words" no_unknown
prompt() { make --prompt 'a  c' --count 20 --temperature 0 && [ "$(sort -u out)" = "a c" ]; }
check "--prompt" prompt
check "--prompt: a word not known" fails_with 1 "does not know the word 'zebra'" "$vpps" generate --model lm.ckpt --prompt 'a zebra'
json_lines() { # CHECKPOINT: the probability that predict gives the same sentence
    exits 0 "$vpps" generate --vps 1 --model "$1" --json --count 5 && cp out lines && python3 -c "
import json
for l in open('lines'): print(json.loads(l)['text'])" >said && "$vpps" predict --vps 1 --model "$1" --json <said >scored &&
        holds "len(lines('lines')) == 5 and all(abs(x['log_probability'] - y['log_probability']) < 1e-3 for x, y in zip(lines('lines'), lines('scored')))"
}
check "--json: what predict says of it" json_lines lm.ckpt
check "the fixed one" exits 0 "$vpps" train lstm-lm-fixed --train text --steps 6 --hidden 8 --embed 6 --batch 8 --vps 1 --quiet --lr 0.03 --eval-every 0 \
    --epochs 8 --save fixed.ckpt
check "what predict says of one layer" json_lines fixed.ckpt
check "the fixed one generates" exits 0 "$vpps" generate lstm-lm-fixed --model fixed.ckpt --max-words 5
check "no language model" fails_with 2 "is no language model" "$vpps" generate bilstm-tagger --model lm.ckpt
check "no checkpoint" fails_with 2 "--model FILE is missing" "$vpps" generate lstm-lm
full() { "$vpps" generate --model lm.ckpt >/dev/full 2>err; [ $? -eq 1 ] && says err "No space"; }
check "stdout is full" full

summary
