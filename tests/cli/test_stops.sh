#!/bin/bash
# test_stops.sh - a run that is killed or interrupted, wherever, and goes on, is as one that nothing stopped; one that ends and goes on
# is as one that was longer. VPPS names the program (default: build/vpps). VPPS_TEST_SCALE=full: many stops.

folder=$(realpath "$(dirname "$0")")
# shellcheck source=SCRIPTDIR/common.sh
source "$folder/common.sh"

stops=2 draws=4
if [ "${VPPS_TEST_SCALE:-}" = full ]; then stops=40 draws=200; fi
small=(--examples 60 --hidden 8 --embed 8 --batch 8 --vps 1)

# ---------------------------------------------------------------- wherever it stops

stopped() { # NETWORK OPTION...
    rm -f whole* part* before*
    python3 "$folder/stops.py" "$vpps" 1 $stops "$1" "${small[@]}" "${@:2}"
}
check "plateau, and a checkpoint every three batches" stopped lstm-lm --epochs 5 --lr 0.1 --lr-schedule plateau --save-every 3
check "measured every second epoch, trained in parts, with accuracy" stopped tree-lstm --epochs 5 --lr 0.1 --eval-every 2 --patience 9 \
    --accumulate 2 --train-accuracy
check "with states that carry on" stopped lstm-lm-fixed --epochs 3 --steps 7 --carry --dropout 0.2 --save-every 2

# ---------------------------------------------------------------- options at once, with a stop

for seed in $(seq $draws); do # two or three options do what each does alone
    check "options at once, seed $seed" env PYTHONDONTWRITEBYTECODE=1 "$python" -S "$folder/pairs.py" "$vpps" "$seed" 1
done

# ---------------------------------------------------------------- beyond the end

# longer END OPTION...: after an end that is measured though --eval-every says nothing of it
longer() {
    rm -f whole* part*
    local end=$1 run=("$vpps" train lstm-lm "${small[@]}" --lr 0.1 --eval-every 2 --quiet "${@:2}")
    # shellcheck disable=SC2086 # an option and its value
    exits 0 "${run[@]}" --epochs 6 --save whole.ckpt && exits 0 "${run[@]}" $end --save part.ckpt &&
        exits 0 "$vpps" train --resume part.ckpt --epochs 6 --quiet && same_tensors whole.ckpt part.ckpt
}
check "plateau" longer "--epochs 3" --lr-schedule plateau
check "plateau, and a file of the best" longer "--epochs 3" --lr-schedule plateau --save-best best.ckpt --force
check "plateau, after a measurement that was no better" longer "--epochs 5" --lr-schedule plateau --lr 0.5
check "patience" longer "--epochs 3" --patience 1 --lr 3
check "a run that stops within an epoch" longer "--max-batches 19" --lr-schedule plateau

# ---------------------------------------------------------------- the log of a run that is killed

flushed() { # it holds the batches so far, each in a whole line
    "$vpps" train lstm-lm "${small[@]}" --epochs 100000 --eval-every 0 --quiet --log killed.jsonl &
    local pid=$!
    eventually 120 batches killed.jsonl
    kill -STOP $pid
    cp killed.jsonl stopped.jsonl
    kill -KILL $pid
    wait $pid
    python3 -c "
import json
text = open('stopped.jsonl').read()
assert text.endswith('\n'), text[-80:]
assert [o['batch'] for o in map(json.loads, text.splitlines()) if o['event'] == 'batch'][:3] == [1, 2, 3]"
}
check "every batch is in the log of a killed run" flushed

# ---------------------------------------------------------------- before there is anything to save

reads() { find "/proc/$1/fd" -lname "*$2" ! -name 3 2>/dev/null | grep -q .; }
while_reading() { # from a pipe that nobody writes to
    mkfifo "data.$1"
    "$vpps" train lstm-lm --train "data.$1" --save none.ckpt 3<>"data.$1" 2>err &
    local pid=$!
    eventually 120 reads $pid "data.$1"
    kill "-$1" $pid
    eventually 120 ended $pid
    kill -KILL $pid 2>/dev/null
    wait $pid
    local rc=$?
    [ $rc -eq $((128 + $(kill -l "$1"))) ] && [ ! -e none.ckpt ]
}
set -m
check "SIGTERM while data are read" while_reading TERM
check "SIGINT while data are read" while_reading INT
set +m

# ---------------------------------------------------------------- translations without a BLEU

pairs() { # WORDS: of translations, which do not have four unless asked for
    python3 - "$1" <<'PYTHON'
import random, sys
draw = random.Random(1)
for part, n in (("train", 60), ("dev", 12)):
    with open(f"{part}.de", "w") as source, open(f"{part}.en", "w") as target:
        for _ in range(n):
            words = [draw.randrange(6) for _ in range(int(sys.argv[1]))]
            print(*(f"d{w}" for w in words), file=source)
            print(*(f"e{w}" for w in words), file=target)
PYTHON
}
nmt=("$vpps" train lstm-nmt --data . --source de --target en --min-count 1 --hidden 16 --embed 8 --batch 8 --vps 1 --lr 0.01 --force)
by_perplexity() { # epochs are better and better, and only the last ones are kept
    rm -f best.ckpt && exits 0 "${nmt[@]}" --epochs 6 --patience 2 --save-best best.ckpt --json --log nmt.jsonl &&
        json out "o['epochs'] == 6 and o['best_dev_epoch'] == 6 and $1" &&
        holds "(dev := [o['dev']['perplexity'] for o in lines('nmt.jsonl', 'epoch')]) == sorted(dev, reverse=True)"
}
check "translations of two words" pairs 2
check "go by perplexity" by_perplexity "o['dev']['bleu'] is None and o['best_dev'] == o['dev']['perplexity']"
check "and it is told" says err "dev: no target has four words, without which BLEU is 0 by definition: it goes by perplexity alone"
check "eval tells it, too" shows err "dev: no target has four words" "$vpps" eval --model best.ckpt --split dev
check "which it prints" sh -c "grep -q '^dev        perplexity' out && ! grep -q 'BLEU ' out"
check "translations of five words" pairs 5
check "go by perplexity while BLEU is 0" by_perplexity "o['dev']['bleu'] == 0 == o['best_dev']"
check "of which nothing is told" sh -c "! grep -q 'no target' err"

summary
