#!/bin/bash
# test_best.sh - which network a run keeps: the best on dev by one measure, what is not finite, --patience, and the files of a run
# that has nothing to train. VPPS names the program (default: build/vpps).

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

small=(--examples 60 --hidden 8 --embed 8 --batch 8 --vps 1 --quiet --json)
lm=("$vpps" train lstm-lm "${small[@]}" --lr 0.01)
tree=("$vpps" train tree-lstm "${small[@]}" --lr 0.01)
resume=("$vpps" train --quiet --json --resume)
dev() { # dev LOG EXPRESSION: true of `dev`, the values of dev's first measure in a log, null where there is none
    with_runs "dev = [d and next(iter(d.values())) for d in (o['dev'] for o in lines('$1', 'epoch'))]; eval(sys.argv[1]) or sys.exit(f'{dev}')" "$2"
}

# ---------------------------------------------------------------- values that are not finite

check "a run to go on from" exits 0 "${lm[@]}" --epochs 2 --save a.ckpt --save-best best.ckpt
cp best.ckpt kept.ckpt
diverges() { # OPTION...: dev becomes infinite; the best file and the best value stay
    rm -f d.jsonl
    exits 0 "${resume[@]}" a.ckpt --save worse.ckpt --save-best best.ckpt --epochs 4 --lr 1000 --clip 0 --force --log d.jsonl "$@" &&
        cmp best.ckpt kept.ckpt && dev d.jsonl 'len(dev) == 2 and dev == [None, None]' &&
        json out "o['dev']['perplexity'] is None and o['best_dev'] > 0 and o['best_dev_epoch'] == 2 and o['save_best'] is None"
}
check "a diverged network is never the best" diverges
check "nor with --nonfinite skip" diverges --nonfinite skip
nan_scores() {
    exits 0 "${resume[@]}" a.ckpt --save nan.ckpt --save-best best.ckpt --epochs 3 --optimizer sgd --lr 1e4 --weight-decay 1e3 --clip 0 --nonfinite ignore \
        --force && cmp best.ckpt kept.ckpt && json out "o['best_dev_epoch'] == 2" &&
        fails_with 1 "holds values that are not finite: the network diverged" "$vpps" eval --model nan.ckpt
}
check "nor one whose parameters are NaN" nan_scores
recovers() { # infinite after epoch 1; then the weights fall to almost 0
    exits 0 "${lm[@]}" --optimizer sgd --clip 0 --lr 1e5 --epochs 1 --save inf.ckpt --save-best first.ckpt && [ ! -e first.ckpt ] &&
        json out "o['dev']['perplexity'] is None and o['best_dev'] is None and o['best_dev_epoch'] is None" &&
        exits 0 "${resume[@]}" inf.ckpt --epochs 3 --lr 0.1 --weight-decay 9.5 --save-best first.ckpt --log r.jsonl && [ -s first.ckpt ] &&
        dev r.jsonl 'min(dev) < 200' && json out "o['best_dev_epoch'] >= 2 and o['best_dev'] < 200"
}
check "every finite value beats a first that was not" recovers
told() { # people read it, too
    exits 0 "$vpps" train --resume a.ckpt --save worse.ckpt --force --epochs 3 --lr 1000 --clip 0 && says out "dev        perplexity inf" &&
        says err "dev perplexity inf" && says out "best dev   perplexity" && says out "after epoch 2"
}
check "and it is printed" told
large() { # numbers above a million have four digits, as 2.414e+08
    exits 0 "$vpps" train --resume a.ckpt --save worse.ckpt --force --epochs 3 --lr 1e6 --clip 0 && python3 - <<'PY'
import re
for text, name in ((open('out').read(), r'^loss +(\S+)'), (open('err').read(), r'epoch 3/3 +loss (\S+)')):
    shown = re.search(name, text, re.M).group(1)
    assert re.fullmatch(r'\d(\.\d{1,3})?e\+\d+', shown), shown
PY
}
check "large numbers have four digits" large

# ---------------------------------------------------------------- measurements, not epochs

patience() { # lr 0: the first measurement stays the best
    exits 0 "${tree[@]}" --lr 0 --epochs 50 --eval-every 3 --patience 2 --save p.ckpt --log p.jsonl &&
        json out "o['out_of_patience'] and o['epochs'] == 9 and o['best_dev_epoch'] == 3" &&
        dev p.jsonl '[i + 1 for i, d in enumerate(dev) if d] == [3, 6, 9]'
}
check "--patience counts measurements" patience
check "--patience 0: resumed, it goes on" tells "o['epochs'] == 11 and not o['out_of_patience']" "${resume[@]}" p.ckpt --save p0.ckpt --patience 0 --epochs 11
check "resumed, it goes on counting" tells "o['out_of_patience'] and o['epochs'] == 12" "${resume[@]}" p.ckpt --patience 3 --epochs 50
at_the_end() { # the last epoch is measured whatever --eval-every says, and may be the best
    exits 0 "${lm[@]}" --epochs 4 --eval-every 3 --save-best end.ckpt &&
        json out "o['best_dev_epoch'] == o['save_best_epoch'] == 4 and o['best_dev'] == o['dev']['perplexity']" &&
        exits 0 "$vpps" eval --model end.ckpt --split dev --json && cp out eval.json &&
        exits 0 "${lm[@]}" --epochs 4 --eval-every 3 &&
        holds "last('eval.json')['metrics']['perplexity'] == last('out')['best_dev']"
}
check "the measurement at the end counts for the best" at_the_end
within() { # so does that of a run that ends within an epoch
    exits 0 "${lm[@]}" --epochs 9 --max-batches 11 --eval-every 5 --save-best within.ckpt &&
        json out "o['epochs'] == 1 and o['save_best_epoch'] == 1 and o['best_dev'] == o['dev']['perplexity']"
}
check "and that of a run which ends within an epoch" within
one_measure() { # two measures that would choose different epochs: the first one counts, all the time
    exits 0 "$vpps" train tree-lstm "${small[@]}" --lr 0.03 --epochs 6 --save-best root.ckpt --log m.jsonl && cp out m.json &&
        dev m.jsonl "last('m.json')['best_dev'] == max(dev) and last('m.json')['best_dev_epoch'] == dev.index(max(dev)) + 1"
}
its_network() { # the best epoch is not the last one
    exits 0 "$vpps" eval --model root.ckpt --split dev --json &&
        holds "last('m.json')['best_dev_epoch'] < 6 and last('out')['metrics']['root'] == last('m.json')['best_dev']"
}
check "the best goes by the first measure" one_measure
check "--save-best has the network of the best epoch" its_network

# ---------------------------------------------------------------- a run with nothing to train

untrained() {
    exits 0 "$vpps" train tree-lstm "${small[@]:0:10}" --epochs 0 --save zero.ckpt --save-best zero-best.ckpt &&
        says err "nothing is trained: --epochs is 0" && says out "zero.ckpt   after epoch 0" &&
        exits 0 "$vpps" eval --model zero.ckpt && exits 0 "$vpps" eval --model zero-best.ckpt
}
check "--epochs 0 writes the network as it begins" untrained
nothing_left() {
    exits 0 "${tree[@]}" --epochs 1 --save one.ckpt && exits 0 "$vpps" train --resume one.ckpt --save left.ckpt &&
        says err "nothing is left to train: one.ckpt has 1 epoch, and --epochs is 1" && exits 0 "$vpps" eval --model left.ckpt &&
        exits 0 "$vpps" train --resume p.ckpt --patience 2 && says err "nothing is left to train: dev has been no better for"
}
check "a resumed run with nothing left says so, and writes its file" nothing_left

# ---------------------------------------------------------------- files of other runs

check "a run" exits 0 "${tree[@]}" --epochs 1 --save own.ckpt --save-best own-best.ckpt --log own.jsonl
sha256sum own* >own.sums
for option in "--save own.ckpt" "--save-best own-best.ckpt" "--log own.jsonl"; do
    # shellcheck disable=SC2086 # an option and its file
    check "another run: $option" fails_with 1 "$option: the file exists already" "${tree[@]}" --epochs 1 $option
done
check "a resumed run of another one's file" fails_with 1 "own.ckpt: the file is not of the run of a.ckpt" "${resume[@]}" a.ckpt --save own.ckpt
check "its files are as they were" sha256sum --quiet -c own.sums
check "a resumed run replaces its own" exits 0 "${resume[@]}" own.ckpt --epochs 2 --save-best own-best.ckpt --log own.jsonl
check "--force replaces another's" exits 0 "${tree[@]}" --epochs 1 --save own.ckpt --save-best own-best.ckpt --log own.jsonl --force
check "an empty file is no loss" sh -c ': >empty.ckpt'
check "and written" exits 0 "${tree[@]}" --epochs 1 --save empty.ckpt

# ---------------------------------------------------------------- networks that diverged have no answers

recast one.ckpt sick.ckpt "del m['vpps.checksum']; at = h['embedding']['data_offsets'][0]; data[at:at + 4] = b'\0\0\xc0\x7f'"
sick="parameter embedding holds values that are not finite"
check "eval of NaN" fails_with 1 "$sick" "$vpps" eval --model sick.ckpt
check "predict with NaN" fails_with 1 "$sick" "$vpps" predict --model sick.ckpt
check "--resume of NaN" fails_with 1 "$sick" "${resume[@]}" sick.ckpt --epochs 2
check "--init of NaN" fails_with 1 "$sick" "${tree[@]}" --init sick.ckpt

summary
