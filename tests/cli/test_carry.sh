#!/bin/bash
# test_carry.sh - states that go from one piece of a text to the next. VPPS names the program (default: build/vpps).

folder=$(realpath "$(dirname "$0")")
# shellcheck source=SCRIPTDIR/common.sh
source "$folder/common.sh"
# shellcheck source=SCRIPTDIR/launch.sh
source "$folder/launch.sh" 1

net=("$vpps" train lstm-lm-fixed --examples 120 --steps 7 --hidden 12 --embed 8 --vps 2 --seed 3 --quiet --force)

# ---------------------------------------------------------------- the states are those of one long piece

perplexity() { # NAME OPTION...: of long.txt, by the parameters of one.ckpt, which a learning rate of 0 leaves as they are
    exits 0 "$vpps" train lstm-lm-fixed --train train.txt --test long.txt --init one.ckpt --hidden 12 --embed 8 --vps 2 --min-count 1 --epochs 1 \
        --optimizer sgd --lr 0 --quiet --json "${@:2}" && cp out "$1.json"
}
measures_alike() { # by one piece, and by pieces of any length whose states go on; but not by pieces that begin from zero
    exits 0 "${net[@]}" --epochs 2 --eval-every 0 --save any.ckpt || return
    for part in train long; do
        exits 0 "$vpps" generate lstm-lm-fixed --model any.ckpt --count 40 --seed ${#part} --max-words 12 || return
        grep . out >$part.txt
    done
    exits 0 "$vpps" train lstm-lm-fixed --train train.txt --hidden 12 --embed 8 --vps 2 --min-count 1 --epochs 3 --lr 0.03 --steps 20 --quiet --save one.ckpt &&
        perplexity whole --batch 1 --steps 65536 && perplexity carried --batch 1 --steps 5 --carry --verify &&
        perplexity ones --batch 1 --steps 1 --carry && perplexity forgotten --batch 1 --steps 5 &&
        perplexity streams --batch 3 --steps 5 --carry && with_runs "
p = {f: last(f + '.json')['test']['perplexity'] for f in ('whole', 'carried', 'ones', 'forgotten', 'streams')}
off = {f: abs(p[f] / p['whole'] - 1) for f in p}
assert off['carried'] < 1e-5 and off['ones'] < 1e-5 and off['forgotten'] > 1e-3 and 0 < off['streams'] < off['forgotten'], p"
}
check "pieces that carry on are one long piece" measures_alike
for layers in 1 3; do
    check "it learns more, $layers layers" exits 0 "${net[@]}" --layers $layers --epochs 3 --lr 0.02 --batch 8 --carry --json --verify
    cp out carried.json
    check "and without, $layers layers" exits 0 "${net[@]}" --layers $layers --epochs 3 --lr 0.02 --batch 8 --json
    check "perplexities, $layers layers" holds "json.load(open('carried.json'))['metrics']['perplexity'] != json.load(open('out'))['metrics']['perplexity']"
done

gives_back() { # the states that were carried on: 80 batches leave 1.3 MB, for which there is no room
    exits 0 "$vpps" train lstm-lm-fixed --examples 60 --steps 2 --hidden 64 --embed 4 --batch 32 --vps 1 --carry --epochs 10 --eval-every 0 --quiet \
        --pool-bytes 2M --json && json out "o['batches'] >= 80"
}
check "states are given back" gives_back

# ---------------------------------------------------------------- going on

check "a break within an epoch" broken 4 --carry --batch 8 --epochs 2 --dropout 0.3
check "a break, two layers" broken 4 --carry --batch 8 --epochs 2 --layers 2 --optimizer momentum
check "a break, accumulated" broken 4 --carry --batch 8 --epochs 2 --accumulate 2
adds_up() { # in parts as in one: each stream's states are its own
    exits 0 "${net[@]}" --carry --batch 12 --epochs 2 --clip 1 --optimizer momentum --log one.jsonl --save whole.ckpt &&
        exits 0 "${net[@]}" --carry --batch 4 --accumulate 3 --epochs 2 --clip 1 --optimizer momentum --log parts.jsonl --save parts.ckpt &&
        holds "near(losses('parts.jsonl'), losses('one.jsonl')) and 0 < apart('parts.ckpt', 'whole.ckpt') <= 1e-5"
}
check "4 pieces, three times, are one batch of 12" adds_up
exits 0 "${net[@]}" --carry --batch 8 --epochs 2 --max-batches 3 --save middle.ckpt
exits 0 "${net[@]}" --batch 8 --epochs 2 --max-batches 3 --save none.ckpt
check "no states" fails_with 1 "none.ckpt stands in the middle of an epoch, and has no states to carry on" "$vpps" train --resume none.ckpt --carry
exits 0 "${net[@]}" --batch 8 --epochs 1 --save end.ckpt
check "from an epoch's beginning it may carry on" exits 0 "$vpps" train --resume end.ckpt --carry --epochs 2 --quiet
spoilt() { # TEXT: such states are refused
    recast middle.ckpt spoilt.ckpt "m['train.carry'] = a[0]" "$1"
    fails_with 1 'spoilt.ckpt: "train.carry" are not the states' "$vpps" train --resume spoilt.ckpt
}
for text in '' '8' '8 2' '8 99 - - - - - - - -' '8 1 - - - - - - -' '8 1 - - - - - - - 2:3f80000' '8 1 - - - - - - - 1:3f800000x' \
    '8 1 - - - - - - - 0:' '8 1 - - - - - - - - -' '8 1 - - - - - - - 9999999:3f800000'; do
    check "states '$text'" spoilt "$text"
done

# ---------------------------------------------------------------- where it is refused

refused() { # by both processes, once; what a launcher says of itself does not count
    ! launch "$1" 2 "${net[@]}" --carry >out 2>err && [ "$(grep -c -e '--carry goes with one process; there are 2' err)" = 1 ]
}
for name in "${launchers[@]}"; do
    check "several processes, $name" refused "$name"
done
check "a network that has no pieces" fails_with 2 "carry" "$vpps" train lstm-lm --carry --examples 10

summary
