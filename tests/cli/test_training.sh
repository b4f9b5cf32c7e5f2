#!/bin/bash
# test_training.sh - what an epoch is: its order, its learning rate, its mean loss, dropout and the seed, and what dev is measured on.
# VPPS names the program (default: build/vpps).

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

with_runs "write_trees('train', 24, 4); write_trees('dev', 9, 5)"
# every label of `other` is wrong to a network that has learned `train`
sed 's/(0 /(x /g; s/(1 /(0 /g; s/(x /(1 /g' train >other
net=("$vpps" train tree-lstm --train train --hidden 8 --embed 6 --vps 1 --min-count 1 --quiet --json --force)
check "a network to begin with" exits 0 "${net[@]}" --batch 4 --epochs 2 --eval-every 0 --save begin.ckpt
still=("${net[@]}" --init begin.ckpt --lr 0 --eval-every 0)
# losses LOG EXPRESSION: true of `l`, the losses of the batches, and `e`, those of the epochs
losses() {
    with_runs "l, e = ([o['loss'] for o in lines(sys.argv[1], event)] for event in ('batch', 'epoch')); assert eval(sys.argv[2]), (l, e)" "$@"
}
# apart A B: the first losses of two logs differ by more than rounding does
apart() {
    holds "abs(losses('$1')[0] - (b := losses('$2')[0])) > 1e-4 * abs(b)"
}
alike() { ! apart "$@"; }

# ---------------------------------------------------------------- order and mean

order() { # the same network over the same examples: another order in each epoch
    exits 0 "${still[@]}" --batch 4 --epochs 2 --log order.jsonl && losses order.jsonl 'len(l) == 12 and sorted(l[:6]) != sorted(l[6:])' &&
        losses order.jsonl 'abs(sum(l[:6]) - sum(l[6:])) < 1e-4 * sum(l[:6])' && losses order.jsonl 'len(set(l)) > 6'
}
check "each epoch has an order of its own" order
check "an epoch's loss is the mean of its batches" losses order.jsonl 'all(abs(e[i] - sum(l[6 * i:6 * i + 6]) / 6) < 1e-5 * e[i] for i in (0, 1))'
by_seed() {
    exits 0 "${still[@]}" --batch 4 --epochs 1 --seed 2 --log seed2.jsonl && apart seed2.jsonl order.jsonl
}
check "which follows from the seed" by_seed
resumed_mean() { # over the whole epoch, where a run stopped within it
    exits 0 "${still[@]}" --batch 4 --epochs 1 --max-batches 4 --save stopped.ckpt --log mean.jsonl &&
        exits 0 "$vpps" train --quiet --resume stopped.ckpt --log mean.jsonl && losses mean.jsonl 'len(l) == 6 and abs(e[-1] - sum(l) / 6) < 1e-5 * e[-1]'
}
check "of an epoch that was broken off, too" resumed_mean

# ---------------------------------------------------------------- learning rate

rates() { # the first epoch has --lr itself, the second one that times --lr-decay
    local run=("${net[@]}" --init begin.ckpt --batch 4 --optimizer sgd --eval-every 0)
    exits 0 "${run[@]}" --lr 0.5 --lr-decay 0.25 --epochs 2 --save decayed.ckpt && exits 0 "${run[@]}" --lr 0.5 --epochs 1 --save first.ckpt &&
        exits 0 "$vpps" train --quiet --resume first.ckpt --lr 0.125 --epochs 2 --save second.ckpt --force &&
        holds "parts('decayed.ckpt')[2] == parts('second.ckpt')[2] != parts('first.ckpt')[2]"
}
check "--lr-decay begins with the second epoch" rates

# rates_are LOG EXPRESSION: true of `r`, the learning rates of the batches
rates_are() {
    with_runs "
import math
r = [o['lr'] for o in lines(sys.argv[1], 'batch')]
near = lambda wanted: len(r) == len(wanted) and all(abs(a - b) <= 1e-6 * 0.5 for a, b in zip(r, wanted))
assert eval(sys.argv[2]), r" "$@"
}
scheduled=("${net[@]}" --init begin.ckpt --batch 4 --optimizer sgd --lr 0.5 --eval-every 0) # of six batches an epoch
# schedule EXPRESSION OPTION...: the rates of a run, of two epochs unless said; and a run with a break within an epoch has its bits
schedule() {
    local expression=$1
    shift
    rm -f whole.jsonl part.jsonl
    exits 0 "${scheduled[@]}" --epochs 2 "$@" --log whole.jsonl --save whole.ckpt && rates_are whole.jsonl "$expression" &&
        exits 0 "${scheduled[@]}" --epochs 2 "$@" --max-batches 4 --log part.jsonl --save part.ckpt &&
        exits 0 "$vpps" train --quiet --resume part.ckpt --log part.jsonl && rates_are part.jsonl "$expression" &&
        cmp <(tail -c 2000 part.ckpt) <(tail -c 2000 whole.ckpt)
}
check "the rate is constant" schedule 'near([0.5] * 12)'
check "--lr-decay" schedule 'near([0.5] * 6 + [0.2] * 6)' --lr-decay 0.4
check "linear" schedule 'near([0.5 * (1 - k / 12) for k in range(12)])' --lr-schedule linear
check "cosine" schedule 'near([0.25 * (1 + math.cos(math.pi * k / 12)) for k in range(12)])' --lr-schedule cosine
check "step" schedule 'near([0.5] * 12 + [0.05] * 12 + [0.005] * 6)' --lr-schedule step --lr-every 2 --epochs 5
check "step by another factor" schedule 'near([0.5] * 6 + [0.25] * 6)' --lr-schedule step --lr-decay 0.5
check "--warmup" schedule 'near([0.125, 0.25, 0.375, 0.5] + [0.5] * 8)' --warmup 4
check "--warmup over the break, then linear" schedule 'near([0.1, 0.2, 0.3, 0.4, 0.5] + [0.5 * (1 - k / 7) for k in range(7)])' --warmup 5 --lr-schedule linear
check "--warmup longer than the run" schedule 'near([0.5 * (k + 1) / 24 for k in range(12)])' --warmup 24 --lr-schedule cosine
plateau() { # lr 0: dev is never better than after epoch 1; it is measured after every epoch
    rm -f p.jsonl
    local run=("${net[@]}" --init begin.ckpt --batch 24 --dev dev --lr-schedule plateau --lr-every 2 --lr-decay 0.5 --lr 1e-30 --epochs)
    exits 0 "${run[@]}" 6 --save p.ckpt --log p.jsonl && rates_are p.jsonl '[round(x / 1e-30, 3) for x in r] == [1, 1, 1, .5, .5, .25]' &&
        exits 0 "$vpps" train --quiet --resume p.ckpt --epochs 8 --log p.jsonl &&
        rates_are p.jsonl '[round(x / 1e-30, 4) for x in r] == [1, 1, 1, .5, .5, .25, .25, .125]'
}
check "plateau" plateau
check "plateau without dev" fails_with 1 "--lr-schedule plateau needs a dev part" "${net[@]}" --lr-schedule plateau
check "steps without a schedule" fails_with 1 "--lr-every goes with --lr-schedule step or plateau" "${net[@]}" --lr-decay 0.5 --lr-every 2
check "momentum of another optimizer" fails_with 1 "--momentum goes with --optimizer momentum" "${net[@]}" --optimizer sgd --momentum 0.5
check "plateau without measuring" fails_with 1 "goes with --eval-every of 1 or more" "${net[@]}" --dev dev --lr-schedule plateau --eval-every 0

# ---------------------------------------------------------------- frozen parameters

# frozen NAME...: which tensors of frozen.ckpt are those of begin.ckpt is exactly these
frozen() {
    holds "sorted(k for k, v in parameters('begin.ckpt').items() if parameters('frozen.ckpt')[k] == v) == sorted('$*'.split())"
}
frozen_run=("${net[@]}" --init begin.ckpt --batch 4 --epochs 1 --eval-every 0 --save frozen.ckpt)
freezes() {
    exits 0 "${frozen_run[@]}" && frozen && exits 0 "${frozen_run[@]}" --freeze embedding && frozen embedding &&
        exits 0 "${frozen_run[@]}" --freeze embedding,W_s && frozen W_s embedding &&
        exits 0 "$vpps" train --quiet --resume frozen.ckpt --epochs 2 && frozen W_s embedding &&
        exits 0 "$vpps" train --quiet --resume frozen.ckpt --epochs 3 --freeze W_s && frozen W_s
}
check "--freeze keeps them, also in a resumed run" freezes
check "--freeze of none" fails_with 1 "--freeze embeding: tree-lstm has no such parameter; did you mean embedding" "${frozen_run[@]}" --freeze embeding

# ---------------------------------------------------------------- dropout

check "no dropout" exits 0 "${still[@]}" --batch 24 --epochs 1 --log none.jsonl
check "another seed without" exits 0 "${still[@]}" --batch 24 --epochs 1 --seed 2 --log none2.jsonl
check "one batch has the loss of any order" alike none.jsonl none2.jsonl
for dropout in 0.01 0.05 0.5; do
    check "--dropout $dropout" exits 0 "${still[@]}" --batch 24 --epochs 1 --dropout $dropout --log drop.jsonl
    check "--dropout $dropout drops something" apart drop.jsonl none.jsonl
done
grep -m 1 -E '\(0 .*\(1 |\(1 .*\(0 ' train >one # of which the order says nothing
for seed in 1 2; do
    check "one example, of seed $seed" exits 0 "${still[@]}" --train one --batch 1 --epochs 1 --dropout 0.5 --seed $seed --log one$seed.jsonl
done
check "another seed has other masks" apart one2.jsonl one1.jsonl
check "--dropout 0.5 for two epochs" exits 0 "${still[@]}" --batch 24 --epochs 2 --dropout 0.5 --log drop2.jsonl
check "each batch has masks of its own" losses drop2.jsonl 'abs(l[0] - l[1]) > 1e-4 * l[0]'

# ---------------------------------------------------------------- dev

dev() { # dev is what is measured, not train: all is right there, and wrong here
    exits 0 "${net[@]}" --dev train --test other --batch 4 --epochs 12 --lr 0.05 --save dev.ckpt --save-best dev-best.ckpt &&
        json out "o['dev']['nodes'] > 0.9 and o['test']['nodes'] < 0.1 and o['best_dev'] > 0.9" &&
        exits 0 "$vpps" eval --model dev-best.ckpt --split dev --json && json out "o['metrics']['root'] > 0.9" &&
        exits 0 "${net[@]}" --dev other --batch 4 --epochs 12 --lr 0.05 && json out "o['dev']['nodes'] < 0.1"
}
check "dev and test are measured on their own data" dev
first() { # from the first epoch on there is a best one
    exits 0 "${net[@]}" --dev dev --batch 4 --epochs 1 --lr 0 --save-best first-best.ckpt && json out "o['best_dev_epoch'] == 1" &&
        exits 0 "${net[@]}" --dev other --batch 4 --epochs 1 --lr 0.05 --save-best first-best.ckpt && json out "o['best_dev_epoch'] == 1"
}
check "the first measurement is the best so far, whatever it is" first
new_dev() { # neither another dev part nor one where there was none: values of two parts cannot be compared
    exits 0 "${net[@]}" --dev dev --batch 4 --epochs 1 --save with-dev.ckpt && fails_with 1 "training cannot resume with other" "$vpps" train \
        --resume with-dev.ckpt --epochs 2 --dev other && exits 0 "${net[@]}" --batch 4 --epochs 1 --eval-every 0 --save without.ckpt &&
        fails_with 1 "made without a part that is here" "$vpps" train --resume without.ckpt --epochs 2 --dev dev
}
check "a resumed run keeps its dev part" new_dev

summary
