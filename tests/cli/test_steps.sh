#!/bin/bash
# test_steps.sh - what an update takes: gradients that add up, and learning rates by parameter. VPPS names the program
# (default: build/vpps).

folder=$(realpath "$(dirname "$0")")
# shellcheck source=SCRIPTDIR/common.sh
source "$folder/common.sh"
# shellcheck source=SCRIPTDIR/launch.sh
source "$folder/launch.sh" 4

# 70 examples: batches of 32, 32 and 6
net=("$vpps" train tree-lstm --examples 70 --hidden 12 --embed 8 --vps 2 --eval-every 0 --quiet --force)
update=(--optimizer momentum --lr 0.05 --clip 1 --weight-decay 0.01)

# ---------------------------------------------------------------- accumulation

adds_up() { # in parts as in one: losses and parameters to 1e-5, in as many batches; the last is shorter
    exits 0 "${net[@]}" "${update[@]}" --batch 32 --epochs 2 --log one.jsonl --save one.ckpt &&
        exits 0 "${net[@]}" "${update[@]}" --batch 8 --accumulate 4 --epochs 2 --log parts.jsonl --save parts.ckpt --verify &&
        holds "len(losses('one.jsonl')) == 6 and near(losses('parts.jsonl'), losses('one.jsonl')) and 0 < apart('parts.ckpt', 'one.ckpt') <= 1e-5"
}
check "8 examples, four times, are one batch of 32" adds_up
check "an update takes more than one graph's" holds "not near(losses('parts.jsonl')[1:], losses('parts.jsonl')[:-1]) and apart('parts.ckpt', 'one.ckpt') <= 1e-5"
whole_epoch() { # more than there are: an update an epoch
    exits 0 "${net[@]}" "${update[@]}" --batch 8 --accumulate 4095 --epochs 2 --log all.jsonl --save all.ckpt &&
        exits 0 "${net[@]}" "${update[@]}" --batch 70 --epochs 2 --log whole.jsonl --save whole.ckpt &&
        holds "len(losses('all.jsonl')) == 2 and near(losses('all.jsonl'), losses('whole.jsonl')) and apart('all.ckpt', 'whole.ckpt') <= 1e-5"
}
check "an update an epoch" whole_epoch
check "a break between updates" broken 2 --batch 8 --epochs 2 --accumulate 4 --dropout 0.3 --lr-schedule cosine
check "a break, accumulated at every level, in two groups" broken 2 --batch 8 --epochs 2 --accumulate 2 --gradients accumulate --vps 4 --groups 2
check "another number" fails_with 1 "broken.ckpt was made with --accumulate 2: training cannot resume with 4" "$vpps" train --resume broken.ckpt \
    --accumulate 4 --epochs 3
counts() { # updates are what is counted: a summary, --max-batches, --save-every, --warmup
    exits 0 "${net[@]}" --batch 8 --accumulate 2 --warmup 4 --lr 0.4 --epochs 1 --max-batches 3 --save-every 2 --save 'every.ckpt' --log counted.jsonl --json &&
        json out "o['batches'] == 3 and o['sentences'] == 48 and o['save_batch'] == 3" &&
        holds "[round(o['lr'], 6) for o in lines('counted.jsonl', 'batch')] == [0.1, 0.2, 0.3]"
}
check "batches are updates wherever they are counted" counts
older() { # a checkpoint of before there was the option was made with 1
    exits 0 "${net[@]}" --batch 8 --epochs 1 --save older.ckpt && recast older.ckpt older.ckpt "del m['option.accumulate']" &&
        exits 0 "$vpps" train --resume older.ckpt --accumulate 1 --epochs 2 --quiet --save newer.ckpt --force &&
        fails_with 1 "older.ckpt was made with --accumulate 1: training cannot resume with 2" "$vpps" train --resume older.ckpt --accumulate 2
}
check "a checkpoint without the option" older
check "a loss that is not finite" fails_with 1 "parameters are as before this batch" "${net[@]}" --batch 8 --accumulate 3 \
    --epochs 9 --lr 1e6 --weight-decay 1e6 --optimizer momentum --momentum 1 --clip 0
check "under software SIMT" exits 0 "${net[@]}" "${update[@]}" --batch 8 --accumulate 4 --epochs 1 --device simt --examples 40 --hidden 8 --log simt.jsonl
check "and on the CPU" exits 0 "${net[@]}" "${update[@]}" --batch 32 --epochs 1 --examples 40 --hidden 8 --log cpu.jsonl
check "the same" holds "all(abs(a - b) <= 1e-4 * b for a, b in zip(losses('simt.jsonl'), losses('cpu.jsonl'))) and len(losses('simt.jsonl')) == 2"
for name in "${launchers[@]:0:1}"; do
    check "two processes" exits 0 launch "$name" 2 "${net[@]}" "${update[@]}" --vps 1 --batch 8 --accumulate 4 --epochs 2 --log two.jsonl --save two.ckpt
    check "have the losses of one" holds "near(losses('two.jsonl'), losses('one.jsonl')) and apart('two.ckpt', 'one.ckpt') <= 1e-5"
    check "with parts of one example" exits 0 launch "$name" 2 "${net[@]}" "${update[@]}" --vps 1 --batch 1 --accumulate 32 --epochs 2 --log ones.jsonl --save ones.ckpt
    check "the same, though one process has none" holds "near(losses('ones.jsonl'), losses('one.jsonl')) and apart('ones.ckpt', 'one.ckpt') <= 1e-5"
done

# ---------------------------------------------------------------- learning rates by parameter

sgd=("${net[@]}" --batch 32 --optimizer sgd --epochs 1 --clip 0)
own_rates() { # one step: each parameter has moved as in a run of which that is --lr, scaled by the schedule
    exits 0 "${sgd[@]}" --warmup 2 --max-batches 1 --lr 0.5 --save fast.ckpt && exits 0 "${sgd[@]}" --warmup 2 --max-batches 1 --lr 0.125 --save slow.ckpt &&
        exits 0 "${sgd[@]}" --warmup 2 --max-batches 1 --lr 0.5 --lr-of W_s=0.125,embedding=0 --save both.ckpt && with_runs "
fast, slow, both = (load(f + '.ckpt') for f in ('fast', 'slow', 'both'))
assert both['W_s'] == slow['W_s'] != fast['W_s']
assert both['embedding'] != fast['embedding'] and both['b_s'] == fast['b_s'] != slow['b_s'] and both['W_i'] == fast['W_i']"
}
check "--lr-of" own_rates
still() { # 0 is a rate, too
    exits 0 "${sgd[@]}" --epochs 0 --save begin.ckpt && holds "load('both.ckpt')['embedding'] == load('begin.ckpt')['embedding'] != load('fast.ckpt')['embedding']"
}
check "--lr-of 0" still
repeated() {
    exits 0 "${sgd[@]}" --warmup 2 --max-batches 1 --lr 0.5 --lr-of W_s=0.125 --lr-of embedding=0 --save again.ckpt && same_tensors again.ckpt both.ckpt &&
        exits 0 "${sgd[@]}" --lr 0.5 --freeze W_s --freeze embedding --lr-of W_s=3 --save frozen.ckpt &&
        holds "all((load('frozen.ckpt')[k] == load('begin.ckpt')[k]) == (k in ('W_s', 'embedding')) for k in load('begin.ckpt') if '/' not in k)"
}
check "--lr-of and --freeze more than once" repeated
check "--lr-of with a break" broken 2 --batch 8 --epochs 2 --lr-of U_u_l=0.01,embedding=0.0001 --lr-schedule linear --lr-decay 0.9
check "--lr-of and accumulation with a break" broken 2 --batch 8 --epochs 2 --lr-of U_u_l=0.01 --accumulate 2 --warmup 3
told() {
    exits 0 "$vpps" train --resume broken.ckpt --epochs 2 --lr-of W_s=0.01 --save /dev/null &&
        says err "broken.ckpt was made with --lr-of U_u_l=0.01: it goes on with --lr-of W_s=0.01" &&
        exits 0 "$vpps" train --resume one.ckpt --epochs 2 --lr-of W_s=0.01 --freeze b_s --save /dev/null &&
        says err "one.ckpt was made with no --lr-of, no --freeze: it goes on with --lr-of W_s=0.01, --freeze b_s"
}
check "another choice in a resumed run is told" told
check "of none" fails_with 1 "--lr-of embeding: tree-lstm has no such parameter; did you mean embedding" "${net[@]}" --lr-of embeding=1
check "no rate" fails_with 1 "--lr-of W_s: expected a learning rate from 0 to 1e+06, as W_s=0.001" "${net[@]}" --lr-of W_s
for wrong in "" x -1 nan 1e9 0.1x; do
    check "the rate '$wrong'" fails_with 1 "--lr-of W_s=$wrong: expected a learning rate" "${net[@]}" --lr-of "W_s=$wrong"
done
check "twice" fails_with 1 "--lr-of names W_s more than once" "${net[@]}" --lr-of W_s=1,W_s=2
check "an empty list: none" exits 0 "${net[@]}" --epochs 1 --lr-of ''
check "a value for --freeze" fails_with 1 "--freeze W_s=1: expected the name of a parameter alone" "${net[@]}" --freeze W_s=1

summary
