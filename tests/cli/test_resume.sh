#!/bin/bash
# test_resume.sh - a run that is resumed goes on as it began: options that shape results come back, contradictions are told, numbers in
# checkpoints are whole, and its log stays readable. VPPS names the program (default: build/vpps).

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

train=("$vpps" train tree-lstm --examples 60 --hidden 24 --embed 16 --batch 10 --eval-every 0)
same() { holds "parts('$1')[::2] == parts('$2')[::2]"; } # the tensors' header and bytes

# ---------------------------------------------------------------- options of the engine

# with OPTION...: a run of two epochs with a break, resumed without these options, has the bits of one without a break; --json's
# fields are those of the first run.
with() {
    exits 0 "${train[@]}" "$@" --epochs 2 --force --save whole.ckpt --quiet && exits 0 "${train[@]}" "$@" --epochs 1 --force --save part.ckpt \
        --quiet && exits 0 "$vpps" train --resume part.ckpt --epochs 2 --log resumed.jsonl --force --json && same whole.ckpt part.ckpt ||
        return 1
    python3 - "$@" <<'PY'
import json, sys
options = next(o for o in map(json.loads, open('resumed.jsonl')) if o['event'] == 'start')['options']
arguments = sys.argv[1:]
while arguments:
    name = arguments.pop(0)[2:]
    value = arguments.pop(0) if arguments and not arguments[0].startswith('--') else True
    assert str(options[name]) == str(value), (name, options[name], value)
PY
    local rc=$?
    rm -f resumed.jsonl
    return $rc
}
check "--precision bf16" with --precision bf16 --vps 2
check "--precision bf16x3" with --precision bf16x3 --vps 2
check "--vps" with --vps 3
check "--groups" with --vps 4 --groups 2
check "--waves and --slices" with --vps 2 --waves 3 --slices 2
check "--portable" with --vps 2 --portable
check "--policy" with --vps 2 --policy ratio
check "--no-tuning" with --vps 1 --no-tuning
check "what only says how a run is watched is not kept" sh -c "! grep -q 'option.verify\|option.watchdog' part.ckpt"
contradicts() {
    exits 0 "${train[@]}" --vps 2 --precision bf16 --epochs 1 --force --save part.ckpt --quiet &&
        exits 0 "$vpps" train --resume part.ckpt --epochs 1 --precision fp32 --vps 1 --save /dev/null &&
        says err "part.ckpt was made with --vps 2, --precision bf16: it goes on with --vps 1, --precision fp32"
}
check "another choice is told" contradicts
quiet_about() { # the same again is not
    exits 0 "$vpps" train --resume part.ckpt --epochs 1 --precision bf16 --vps 2 --save /dev/null && ! grep -q "it goes on with" err
}
check "the same choice is not" quiet_about
check "what cannot change is refused" fails_with 1 "part.ckpt was made with --seed 1: training cannot resume with 2" "$vpps" train --resume part.ckpt --seed 2
measures() { # eval goes by the precision of the training, not by its number of VPs
    exits 0 "$vpps" eval --model part.ckpt --vps 1 --json && json out "o['precision'] == 'bf16' and o['vps'] == 1"
}
check "eval takes the precision" measures
check "unless another is given" tells "o['precision'] == 'fp32'" "$vpps" eval --model part.ckpt --precision fp32 --json
check "a new dev part" fails_with 1 "training cannot resume with" "$vpps" train --resume part.ckpt --epochs 2 --dev /dev/null

# ---------------------------------------------------------------- numbers of a checkpoint

not_whole="1.5|-1|1e3|0x1|| 1|99999999999999999999" no_number="nan|inf|-2|1.5x|"
while IFS=: read -r keys texts what; do
    for key in $keys; do
        check "$key" with_runs "
for text in sys.argv[2].split('|'):
    recast('part.ckpt', 'number.ckpt', 'm[a[0]] = a[1]', '$key', text)
    done = subprocess.run([sys.argv[1], 'train', '--resume', 'number.ckpt', '--epochs', '2'], capture_output=True, text=True)
    assert done.returncode == 1 and f'number.ckpt: \"$key\" is \"{text}\", not a $what that fits' in done.stderr, (text, done)" "$vpps" "$texts"
    done
done <<LIST
train.epoch train.trained:$not_whole:whole number
train.batch train.n_losses train.best_epoch train.best_since:1.5:whole number
train.loss_sum train.best_dev:$no_number:number
LIST

# ---------------------------------------------------------------- a log whose last line was cut

cut_log() {
    exits 0 "${train[@]}" --vps 1 --epochs 1 --save log.ckpt --log cut.jsonl --quiet && cp cut.jsonl whole.jsonl && truncate -s -9 cut.jsonl &&
        exits 0 "$vpps" train --resume log.ckpt --epochs 2 --log cut.jsonl && says err "cut.jsonl: its last line is cut" && python3 - <<'PY'
import json
before, lines = open('whole.jsonl').read().splitlines(), open('cut.jsonl').read().splitlines()
n = len(before)
assert lines[:n - 1] == before[:n - 1] and lines[n - 1] == before[-1][:-8], lines[n - 1]
events = [json.loads(l)['event'] for l in lines[n:]]
assert 'start' in events and events[-1] == 'end', events
PY
}
check "the next record has a line of its own" cut_log
whole_log() { # and no line is empty where the last one was whole
    exits 0 "${train[@]}" --vps 1 --epochs 1 --force --save log.ckpt --log whole.jsonl --quiet &&
        exits 0 "$vpps" train --resume log.ckpt --epochs 2 --log whole.jsonl && ! grep -q "is cut" err &&
        python3 -c "import json; [json.loads(l) for l in open('whole.jsonl')]"
}
check "a whole log is told nothing" whole_log
told_before() { # what is told before the run starts stands after its start, which has the options
    exits 0 "$vpps" train --resume log.ckpt --epochs 3 --lr 0.5 --log told.jsonl && head -n 1 told.jsonl | grep -q '"start"' &&
        sed -n 2p told.jsonl | grep -q '"engine"'
}
check "a log of an engine that had something to tell" told_before

# ---------------------------------------------------------------- damaged counters

counter() { # KEY VALUE: no number that the next ones would not fit after
    recast counted.ckpt damaged.ckpt "assert a[0] in m; m[a[0]] = a[1]" "$1" "$2" || return 1
    fails_with 1 "$1" "$vpps" train --resume damaged.ckpt --epochs 9 --save other.ckpt --force
}
check "a run to damage" exits 0 "$vpps" train tree-lstm --examples 20 --hidden 4 --embed 4 --batch 4 --vps 1 --epochs 1 --save counted.ckpt
for key in vpps.batches train.trained train.epoch train.n_losses train.lr_drops train.right train.labelled train.best_epoch train.best_since; do
    check "$key" counter $key 18446744073709551615
done
check "the most of 32 bits" counter train.epoch 4294967295

summary
