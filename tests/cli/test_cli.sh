#!/bin/bash
# test_cli.sh - the `vpps` command from the outside. VPPS names the program (default: build/vpps).

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

tiny=(--examples 160 --hidden 12 --embed 8 --batch 16 --vps 2)
train=("$vpps" train tree-lstm "${tiny[@]}")
of_file=("$vpps" train tree-lstm "${tiny[@]:2}")

# ---------------------------------------------------------------- help and usage

want=
helps() { exits 0 "$vpps" "$@" --help && says out "$want" && empty err; }
for command in train eval predict script cell; do
    want="Usage: vpps $command tree-lstm [OPTION...]" check "vpps $command --help" helps $command tree-lstm
    want="Exit status:" check "vpps $command --help without a network" helps $command
done
check "--version" prints '^vpps [0-9]+\.[0-9]+' "$vpps" --version

check "no command" fails_with 2 "command is missing" "$vpps"
check "no network" fails_with 2 "network's name must follow" "$vpps" train
check "option in the network's place" fails_with 2 "network's name must follow" "$vpps" train --epochs 1
check "argument too many" fails_with 2 "too many arguments" "${train[@]}" more
check "eval without --model" fails_with 2 "--model FILE is missing" "$vpps" eval tree-lstm
check "predict without --model" fails_with 2 "--model FILE is missing" "$vpps" predict tree-lstm
check "--data and --generate" fails_with 2 "exclude each other" "${train[@]}" --data x --generate listops

while read -r option value; do
    check "--$option $value is refused" fails_with 2 "--$option: '$value' is not" "$vpps" train tree-lstm "--$option=$value"
done <<'LIST'
hidden 0
hidden 1e3
hidden -1
hidden 99999999999999999999999
embed 12x
batch 0
epochs -1
lr abc
lr nan
lr inf
lr -0.1
dropout 1
clip -1
momentum 1.5
optimizer sdg
generate list
loss root|nodes
gradients both
pool-bytes 5Q
pool-bytes 99999999999999999G
seed -3
LIST

# ---------------------------------------------------------------- failures found before training

check "unwritable --save" fails_with 1 "/none/x.ckpt: its folder cannot be opened" "${train[@]}" --save "$work/none/x.ckpt"
check "--save is a folder" fails_with 1 "it is a folder" "${train[@]}" --save "$work"
check "unwritable --plot" fails_with 1 "/none/x.svg: its folder cannot be opened" "${train[@]}" --plot "$work/none/x.svg"
check "unwritable --log" fails_with 1 "No such file" "${train[@]}" --log "$work/none/x.jsonl"
check "missing --data" fails_with 1 "No such file" "${of_file[@]}" --data "$work/none"
check "unknown device" fails_with 1 "abacus" "${train[@]}" --device abacus
check "missing --resume" fails_with 1 "none.ckpt" "${train[@]}" --resume none.ckpt
check "missing --model" fails_with 1 "none.ckpt" "$vpps" eval tree-lstm --model none.ckpt
printf '(1 (0 a) (1 b))\n(1 (0 a)\n' >broken.txt
check "malformed tree names its place" fails_with 1 "broken.txt:2:" "${of_file[@]}" --data broken.txt
printf '(-1 (-1 a) (-1 b))\n' >unlabelled.txt
check "no labels" fails_with 1 "class" "${of_file[@]}" --data unlabelled.txt
printf '(0 (-1 a) (-1 b))\n' >one.txt
check "one class" fails_with 1 "needs 2" "${of_file[@]}" --data one.txt

# ---------------------------------------------------------------- training, its files and its reports

check "train 2 epochs" exits 0 "${train[@]}" --epochs 2 --save whole.ckpt --log whole.jsonl --plot whole.svg --json
cp out whole.json
check "nothing but JSON on stdout" test "$(wc -l <whole.json)" = 1
keys="model device vps batch hidden embed sentences seconds sentences_per_s batches nodes loss metrics \
host_ms_per_batch device_ms_per_batch gap_ms_per_batch script_bytes_per_batch levels_per_batch instructions_per_batch pool_bytes gradients"
check "all keys" json whole.json "all(k in o for k in '$keys'.split())"
check "accuracies" json whole.json "0 <= o['metrics']['root'] <= 1 and 0 <= o['metrics']['nodes'] <= 1"
check "counts" json whole.json "o['sentences'] == 320 and o['batches'] == 20 and o['vps'] == 2 and o['hidden'] == 12"
check "measures" json whole.json "min(o[k] for k in ('seconds', 'nodes', 'loss', 'host_ms_per_batch', \
'device_ms_per_batch', 'gap_ms_per_batch', 'script_bytes_per_batch', 'levels_per_batch', 'instructions_per_batch', 'pool_bytes')) > 0"
check "plain lines on stderr" says err "epoch 2/2  loss"
whole_lines() { # COMMAND...: what it writes to stderr, it writes by whole lines
    python3 - "$@" <<'PY'
import socket, subprocess, sys
ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=its)
its.close()
writes = list(iter(lambda: ours.recv(1 << 16), b""))
process.wait()
assert len(writes) > 1 and all(w.endswith(b"\n") for w in writes), writes
PY
}
check "a line in a write" whole_lines "${train[@]}" --epochs 2
check "of help after an error, too" whole_lines "${train[@]}" --bogus
no_escapes() { ! grep -q $'[\r\033]' err; }
check "no control characters without a terminal" no_escapes
no_commands() { # names in data, checkpoints and options do nothing to a terminal, on standard error nor on a terminal's standard output
    python3 - "$vpps" <<'PY'
import os, pty, subprocess, sys, threading
bad = ['\x1b', '\x7f', '\x9b', '\a', '\b', '\r']
label = ''.join(bad).replace('\r', '') + '31m'
open('evil.txt', 'w').write(f'{label}\tgood film\n{label}0\tbad film\n' * 8)
open('evil.dev', 'w').write(f'{label}2\tgood film\n{label}\tbad film\n')
train = 'train bilstm-classifier --train evil.txt --dev evil.dev --test evil.txt --min-count 1 --hidden 8 --embed 4 --vps 1 --epochs 1'.split()
def run(arguments, code=0):
    ours, its = pty.openpty()
    got = []
    def read():
        try:
            while text := os.read(ours, 4096): got.append(text)
        except OSError: pass
    process = subprocess.Popen([sys.argv[1], *arguments], stdin=subprocess.DEVNULL, stdout=its, stderr=subprocess.PIPE)
    os.close(its)
    reader = threading.Thread(target=read)
    reader.start()
    err = process.stderr.read()
    assert process.wait() == code, err
    reader.join()
    for text in (err, b''.join(got).replace(b'\r\n', b'\n')):
        assert not [c for c in bad if c in text.decode()], text
    return err + b''.join(got)
assert b'^[^?^[^G^H31m' in run([*train, '--save', 'evil.ckpt'])
for more in (['evil.txt'], ['evil.txt', '--output-format', 'csv'], ['evil.txt', '--json']):
    assert b'31m' in run(['predict', '--model', 'evil.ckpt', *more])
assert b'^[^?^[^G^H31m' in run(['eval', '--model', 'evil.ckpt', '--test', 'evil.txt'])
run(['predict', '--model', 'evil.ckpt', label], 1)
plain = subprocess.run([sys.argv[1], 'predict', '--model', 'evil.ckpt', 'evil.txt'], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
assert label.encode() in plain.stdout # what is no terminal gets the bytes
PY
}
check "control characters of names" no_commands
check "checkpoint exists" test -s whole.ckpt
leftovers() { [ "$(find . -name 'whole.*' | wc -l)" = 4 ]; } # ckpt, jsonl, svg, json
check "no temporary files" leftovers

log_lines() {
    with_runs "
logged = [o for o in lines('whole.jsonl') if o['event'] != 'engine'] # what it measured, in the first run on a machine
assert [o['event'] for o in logged] == ['start', *(['batch'] * 10 + ['epoch']) * 2, 'end'], logged
assert [o['batch'] for o in logged if o['event'] == 'batch'] == list(range(1, 11)) * 2
assert all(loss > 0 for loss in losses('whole.jsonl')) and logged[0]['options']['hidden'] == 12"
}
check "log: a JSON object a line" log_lines
check "plot is well-formed, with its six curves" python3 -c "
import xml.dom.minidom as x
d = x.parse('whole.svg')
assert d.documentElement.tagName == 'svg'
assert len(d.getElementsByTagName('polyline')) == 6"

check "text summary" prints '^test +root +[0-9.]+ %' "${train[@]}" --epochs 1
quiet() { exits 0 "${train[@]}" --epochs 1 --quiet && empty out && empty err; }
check "--quiet is quiet" quiet
check "--quiet --json: the object" tells "o['batches'] == 10" "${train[@]}" --epochs 1 --quiet --json --optimizer sgd --loss root --dropout 0.2
check "--quiet --json: no stderr" empty err
few_bytes() { [ "$(wc -c <out)" -lt 2500 ] && json out "0 <= o['start_seconds'] <= o['seconds'] and o['sentences_per_s'] > 0"; }
check "--quiet --json: without the rates of products" few_bytes
overview() { exits 0 "$vpps" --help && ! sed -n '/^Networks/,/^$/p' out | grep -q '^   ' && ! grep -q '19[0-9][0-9]\|20[0-9][0-9]' out; }
check "a line a network in the overview" overview
check "a network's help tells its source" shows out "(Graves 2016)" "$vpps" train act --help
check "--eval-every 0" tells "o['metrics'] is None" "${train[@]}" --epochs 1 --eval-every 0 --json
check "--epochs 0 only measures" tells "o['batches'] == 0 and o['loss'] is None and o['metrics']['root'] >= 0" "${train[@]}" --epochs 0 --json

for option in "--optimizer momentum" "--optimizer adagrad" "--optimizer adamw --weight-decay 0.01" \
    "--gradients accumulate" "--portable" "--verify" "--caller free" "--caller works" "--clip 0" "--pool-bytes 64M"; do
    read -r -a words <<<"$option"
    check "train $option" exits 0 "${train[@]}" --max-batches 3 --eval-every 0 "${words[@]}"
done

# ---------------------------------------------------------------- resuming

check "resume with another shape" fails_with 1 "--hidden 12" "$vpps" train tree-lstm --resume whole.ckpt --hidden 13
check "resume with another batch" fails_with 1 "--batch 16" "$vpps" train tree-lstm --resume whole.ckpt --batch 8
check "resume with other data" fails_with 1 "--data" "$vpps" train tree-lstm --resume whole.ckpt --data broken.txt
check "resume a finished run" tells "o['batches'] == 0" "$vpps" train tree-lstm --vps 2 --resume whole.ckpt --save again.ckpt --json

# ---------------------------------------------------------------- eval, predict, script, doctor

check "eval" exits 0 "$vpps" eval tree-lstm --model whole.ckpt --vps 2 --json
check "eval agrees with training's end" holds "last('whole.json')['metrics'] == last('out')['metrics']"
check "eval --split dev prints dev" prints '^dev ' "$vpps" eval tree-lstm --model whole.ckpt --split dev
check "eval --data FILE" tells "o['sentences'] == 1" "$vpps" eval tree-lstm --model whole.ckpt --data one.txt --json
printf '(11 (-1 a) (-1 b))\n' >foreign.txt
check "eval with unknown labels" fails_with 1 "label 11" "$vpps" eval tree-lstm --model whole.ckpt --data foreign.txt

cat >trees.txt <<'TREES'
(-1 (-1 (-1 (-1 [MAX) (3 3)) (7 7)) (-1 ]))

(5 unseen)
(-1 (-1 [MIN) (-1 (2 2) (9 9)))
TREES
predict() { "$vpps" predict tree-lstm --model whole.ckpt --vps 2 "$@" >out 2>err; }
round_trip() { # same words and brackets, every label in 0 .. 9; reading the output again changes nothing
    predict <trees.txt || return 1
    diff <(sed 's/(-\?[0-9]* /(/g' trees.txt) <(sed 's/([0-9] /(/g' out) || return 1
    cp out once
    predict <once && cmp out once
}
check "predict round trip" round_trip
labels() { predict -o label <trees.txt && [ "$(grep -cE '^[0-9]$' out)" = 3 ] && [ "$(wc -l <out)" = 4 ] &&
    diff <(sed 's/^(\([0-9]\) .*/\1/' once) out; }
check "predict -o label" labels
nothing() { predict </dev/null && empty out && empty err; }
check "predict nothing" nothing
malformed() {
    printf '%b' "$1" | "$vpps" predict tree-lstm --model whole.ckpt >out 2>err
    [ $? -eq 1 ] && says err "$2" && empty out
}
check "malformed: no closing bracket" malformed '(1 a' "vpps: stdin:1:"
check "malformed: no label" malformed '(a b)\n' "stdin:1:2"
check "malformed: three children" malformed '(1 (2 a) (3 b) (4 c))\n' "stdin:1:"
check "malformed: text after" malformed '(1 a) x\n' "stdin:1:"
fails_full() {
    "$vpps" "$@" >/dev/full 2>err
    [ $? -eq 1 ] && says err "No space"
}
check "stdout is full" fails_full predict tree-lstm --model whole.ckpt trees.txt

# A network's own generator, and a network that classifies roots only.
complete=("$vpps" train tree-fc --leaves 20 --hidden 8 --vps 2)
check "complete trees" exits 0 "${complete[@]}" --examples 80 --epochs 1 --save complete.ckpt --json
check "complete trees: named, roots only" json out "o['data'] == 'complete trees' and o['sentences'] == 80 and o['test']['root'] >= 0 and o['test']['nodes'] is None"
check "complete trees: resumed" tells "o['data'] == 'complete trees' and o['sentences'] == 80" "$vpps" train tree-fc --resume complete.ckpt --epochs 2 --json
check "complete trees: other leaves" fails_with 1 "with --leaves 20" "${complete[@]}" --leaves 21 --resume complete.ckpt
check "complete trees: another generator" fails_with 1 "--generate complete" "$vpps" train tree-fc --resume complete.ckpt --generate listops
check "complete trees for another network" exits 0 "$vpps" train tree-lstm --generate complete --leaves 5 "${tiny[@]}" --epochs 1 --quiet
check "roots only" exits 0 "$vpps" train td-rnn --examples 160 --hidden 8 --vps 2 --epochs 1 --save roots.ckpt
check "roots only: no other accuracy" test -z "$(grep nodes out err)"
roots() { # the root has a class, no other node
    "$vpps" predict td-rnn --model roots.ckpt <trees.txt >out 2>err && [ "$(grep -cE '^\([0-9] ' out)" = 3 ] &&
        ! grep -qE ' \([0-9] ' out
}
check "roots only: predict" roots

head -c 3000 whole.ckpt >short.ckpt
check "truncated checkpoint: eval" fails_with 1 "short.ckpt" "$vpps" eval tree-lstm --model short.ckpt
check "truncated checkpoint: resume" fails_with 1 "short.ckpt" "$vpps" train tree-lstm --resume short.ckpt
echo "this is no checkpoint" >text.ckpt
check "no checkpoint at all" fails_with 1 "text.ckpt" "$vpps" predict tree-lstm --model text.ckpt

check "script" exits 0 "$vpps" script tree-lstm "${tiny[@]}"
check "script prints a script" test "$(wc -l <out)" -gt 10
check "script of a checkpoint's network" exits 0 "$vpps" script tree-lstm --model whole.ckpt --vps 2
check "cell" shows out "tree-lstm inner: " "$vpps" cell tree-lstm "${tiny[@]}"
check "cell prints stages" grep -qE '^  stage 1: forward lazy, by vertices, [0-9,]+ flops a vertex$' out
check "cell prints what passes between stages" says out "  while a vertex runs backward: 16 words"
check "cell --json" tells "o['model'] == 'tree-lstm' and o['vps'] == 2 and len(o['cells']) == 2" "$vpps" cell tree-lstm "${tiny[@]}" --json
inner="next(c for c in o['cells'] if c['name'] == 'tree-lstm inner')"
check "cell --json: stages" json out "[(s['direction'], s['part'], s['split']) for s in ${inner}['stages']] == \
[('forward', 'main', 'vertices'), ('forward', 'lazy', 'vertices'), ('backward', 'eager', 'vertices'), \
('backward', 'main', 'vertices')]"
check "cell --json: a stack" json out "${inner}['stages'][0]['products'][0]['rows'] == 60 and \
${inner}['stages'][0]['products'][0]['cols'] == 24 and len(${inner}['stages'][0]['products'][0]['values']) == 5"
check "cell --json: kept" json out "${inner}['kept']['bytes'] == 4 * ${inner}['kept']['words'] == 384 and ${inner}['kept']['backward_bytes'] == 64 and \
any(v['recomputed'] and not v['kept'] for s in ${inner}['stages'] for v in s['operations'])"
check "cell --json: gradients" json out "len(${inner}['gradients']) == 17"
check "cell of a checkpoint's network" exits 0 "$vpps" cell tree-lstm --model whole.ckpt --vps 2
# cells NETWORK: tells of its cells at the paper's size. arranged CELL AS_MADE BROADCASTS: memory kernels in forward, in the order of making and as
# arranged: of ED-Batch's static subgraphs (table 2) nothing but broadcasts is left, and less is copied than in the order of making.
cells() { exits 0 "$vpps" cell "$1" --hidden 64 --vps 1 --batch 4 --json "${@:2}"; }
arranged() {
    json out "[(f['gathers'] + f['scatters'], a['gathers'] + a['scatters'], a['bytes'], a['broadcasts']) \
for c in o['cells'] if c['name'] == '$1' for f, a in [(c['layout']['as_made']['forward'], c['layout']['arranged']['forward'])]] \
== [($2, 0, 0, $3)]"
}

check "tree-lstm" cells tree-lstm --embed 64
check "TreeLSTM-Internal" arranged "tree-lstm inner" 5 2
check "TreeLSTM-Leaf" arranged "tree-lstm leaf" 3 1
check "backward is no worse" json out "all(b['bytes'] <= m['bytes'] for c in o['cells'] \
for m, b in [(c['layout']['as_made']['backward'], c['layout']['arranged']['backward'])])"
check "bytes are those of what is left" json out "all(c['layout']['gathered_bytes'] == \
c['layout']['arranged']['forward']['bytes'] + c['layout']['arranged']['backward']['bytes'] for c in o['cells'])"
check "places do not overlap" json out "all(a + w <= b for c in o['cells'] for pass_ in (None, 'forward', 'backward') for p in \
[sorted({(v['at'], v['words']) for v in c['kept']['values'] if not v['member'] and v['pass'] == pass_})] for (a, w), (b, _) in zip(p, p[1:]))"
check "tree-gru" cells tree-gru --embed 64
check "TreeGRU-Internal" arranged "tree-gru inner" 5 3
check "TreeGRU-Leaf" arranged "tree-gru leaf" 1 1
check "lstm-lm" cells lstm-lm --embed 64
check "LSTMCell" arranged "lstm" 6 2
check "lattice-gru" cells lattice-gru --embed 64
check "GRUCell" arranged "lattice-gru step" 5 2
check "mv-rnn" cells mv-rnn
check "MVCell" arranged "mv-rnn inner" 2 0
check "as text" shows out "to run alike operations as one, forward: 0 gathers, 0 scatters, 0 bytes a vertex" "$vpps" cell tree-lstm --hidden 64 --vps 1 --batch 4
if not_instrumented; then
    check "cell as a GPU has it" tells "${inner}['stages'][0]['products'][0]['rows'] == 60" "$vpps" cell tree-lstm "${tiny[@]}" --device simt --json
else
    skip "cell as a GPU has it" "software SIMT cannot be followed by ThreadSanitizer"
fi
check "cell into a full disk" fails_full cell tree-lstm "${tiny[@]}"
# A disk that was full for a moment: stdio remembers the error, and the last flush succeeds. Reading is an error of stdout's, too.
printf '#include <stdio.h>\n__attribute__((constructor)) static void fail(void) { fgetc(stdout); }\n' >fail.c
failed_before() {
    LD_PRELOAD=$PWD/fail.so "$vpps" "$@" >out 2>err
    [ $? -eq 1 ] && says err ": Input/output error"
}
if ! grep -q '__[at]san' <<<"$(nm -D "$vpps")" && "${CC:-cc}" -shared -fPIC -o fail.so fail.c; then
    for shown in --help --version doctor "doctor --json" "cache path" "train --help" "cell tree-lstm" "kernel tree-lstm"; do
        # shellcheck disable=SC2086 # several words
        check "an earlier error: $shown" failed_before $shown
    done
else
    skip "an earlier error of stdout" "no C compiler, or sanitizers" 9
fi

# ---------------------------------------------------------------- on a terminal

if command -v script >/dev/null; then
    no_progress() { script -qec "${train[*]} --epochs 1 --quiet" typescript </dev/null && ! grep -q $'\033' typescript; }
    check "no progress with --quiet" no_progress
else
    skip "what is shown on a terminal" "no script, which makes one"
fi

# ---------------------------------------------------------------- plan, kernel, cache

export VPPS_CACHE_DIR=$work/cache
plan=("$vpps" plan tree-lstm --arch sm_90 --sms 132)
check "plan" shows out "132 SMs of 65536 registers" "${plan[@]}" --hidden 96
check "plan: 16 of 132 VPs" says out "... 116 more VPs"
check "plan: all VPs" exits 0 "${plan[@]}" --hidden 96 --vps-shown 0
check "plan: a line a VP" test "$(grep -cE '^ *[0-9]+ +[0-9]+ .* %$' out)" = 132
check "plan --json: hidden 512 fills registers, then shared memory" tells "len(o['plans']) == 1 and \
o['plans'][0]['sms'] == 132 == o['plans'][0]['vps'] and 0.5 <= o['plans'][0]['register_share'] <= 0.75 and \
[l for l in ('registers', 'shared', 'stream') if any(m['level'] == l for m in o['plans'][0]['matrices'])] == \
['registers', 'shared']" "${plan[@]}" --hidden 512 --embed 512 --json
groups() { # BATCH GROUPS VPS: of a plan, the VPs of a group
    exits 0 "${plan[@]}" --hidden 256 --embed 256 --batch "$1" --groups "$2" --json && json out "o['plans'][0]['group'] == $3"
}
check "plan: groups of VPs by the batch" eval "groups 7 0 132 && groups 8 0 66 && groups 16 0 33 && groups 16 2 66"
check "plan: groups divide the VPs" fails_with 1 "5 groups of 132 VPs; expected a divisor" "${plan[@]}" --groups 5
check "plan --all --json" tells "[(p['rpw'], p['threads']) for p in o['plans']] == [(3, 128)]" "${plan[@]}" --all --rpw 3 --threads 128 --json
check "plan --all" exits 0 "${plan[@]}" --all
check "plan --all: a line a choice" test "$(grep -cE '^ +[1248] .* % ' out)" = 6
check "plan of a checkpoint: its shape" tells "any(m['name'] == 'W_s' and m['rows'] == 10 and m['cols'] == 12 \
for m in o['plans'][0]['matrices'])" "${plan[@]}" --model whole.ckpt --json
printf '(4 (0 a) (1 b))\n' >five.txt
check "plan of data" tells "any(m['name'] == 'W_s' and m['rows'] == 5 for m in o['plans'][0]['matrices'])" "${plan[@]}" --data five.txt --json
check "plan: unknown architecture" fails_with 1 "sm_90" "$vpps" plan tree-lstm --arch sm_17
check "plan: half a warp" fails_with 1 "expected rpw up to 1024, a multiple of 32" "${plan[@]}" --threads 48
for wrong in "--rpw 1025" "--threads 2048" "--sms x"; do
    read -r -a words <<<"$wrong"
    check "plan $wrong is refused" fails_with 2 "${words[0]}: '${words[1]}' is not" "${plan[@]}" "${words[@]}"
done
check "plan: stdout is full" fails_full plan tree-lstm --arch sm_90 --sms 132

kernel=("$vpps" kernel tree-lstm --arch sm_90 --sms 132)
check "kernel" prints '\bvpps_kernel\(' "${kernel[@]}"
check "kernel: no headers" test "$(grep -cE '^ *# *include' out)" = 0
cp out kernel.cu
check "kernel again: the same source" cmp kernel.cu <("${kernel[@]}")
another_source() { exits 0 "${kernel[@]}" --optimizer sgd && ! cmp -s kernel.cu out; }
check "another optimizer: another source" another_source
check "kernel: unknown architecture" fails_with 1 "sm_90" "$vpps" kernel tree-lstm --arch sm_17
check "kernel --json without --report" fails_with 2 "--json goes with --report" "${kernel[@]}" --json
check "kernel --arch all without --report" fails_with 2 "--arch all is for --report" "$vpps" kernel tree-lstm --arch all

check "train takes the options for GPUs" exits 0 "${train[@]}" --max-batches 1 --eval-every 0 --rpw 2 --threads 256 --no-tuning

# tune on software SIMT (its times mean nothing, but all the steps are taken), and what train then says.
tune=(env VPPS_SIMT_SMS=2 "VPPS_CACHE_DIR=$PWD/tune-cache" "$vpps" tune rvnn --hidden 8 --embed 8 --examples 40 --batch 2 --device simt)
remembered() {
    exits 0 "${tune[@]}" --rpw 2 --json || return 1
    json out "o['done'] and [t['threads'] for t in o['trials'] if t['rpw']] == [256, 384, 512] and \
all(sum(t['state'] == 'current' and t['ns_per_node'] > 0 for t in o['trials'] if bool(t['rpw']) == kernel) == 1 for kernel in (0, 1)) and \
all(t['rpw'] == 2 or t.get('groups') and t['state'] != 'waiting' for t in o['trials'])" || return 1
    exits 0 "${tune[@]}" --rpw 2 || return 1
    says out "chosen by an earlier run" && says out "train with --groups"
}
if ! not_instrumented; then
    skip "tune finds a plan, and remembers it" "software SIMT cannot be followed by ThreadSanitizer"
elif command -v "${VPPS_CXX:-c++}" >/dev/null; then
    check "tune finds a plan, and remembers it" remembered
else
    skip "tune finds a plan, and remembers it" "no compiler for software SIMT"
    check "tune without a compiler: the reason" fails_with 1 "compiler" "${tune[@]}"
fi
check "tune without a GPU: the reason" fails_with 1 "/nowhere" env VPPS_LIBCUDA=/nowhere "$vpps" tune tree-lstm --examples 40 --device cuda
check "auto falls back" shows err "using the cpu: " env VPPS_LIBCUDA=/nowhere "${train[@]}" --max-batches 1 --eval-every 0 --device auto

# What reports say of a kernel that a stand-in for NVRTC "compiles"; codegen/test_kernels.sh has NVRTC compile kernels.
kernel=("$vpps" kernel rvnn --arch sm_90 --sms 132 --hidden 64 --embed 32)
report=("${kernel[@]}" --report --json)
mkdir fake && cp "$(dirname "$vpps")/tests/fake_nvrtc.so" fake/libnvrtc.so.13 || exit 1
export VPPS_NVRTC=$work/fake/libnvrtc.so.13
check "kernel --report without NVRTC" fails_with 1 "nvrtc" env VPPS_NVRTC=/nowhere/libnvrtc.so "${report[@]}"
check "kernel --report: no spills" tells "len(o['kernels']) == 1 and all(k['frame_bytes'] == 0 \
and k['sms'] == 132 and 0 < k['registers'] < k['kernel_registers'] == 128 and k['cubin_bytes'] > 0 and not k['cached'] and \
k['compile_seconds'] > 0 for k in o['kernels'])" "${report[@]}"
check "kernel --report again" tells "o['kernels'][0]['cached'] and o['kernels'][0]['compile_seconds'] == 0" "${report[@]}"
check "kernel --report as text" prints '^registers +[0-9]+ a thread, frame of 0 bytes' "${kernel[@]}" --report
check "cache list: the kernel" tells "[e['kind'] for e in o['entries']].count('cubin') == 1 and o['folder'] == '$VPPS_CACHE_DIR' and \
o['bytes'] > 0" "$vpps" cache list --json
n=$(python3 -c 'import json; print(len(json.load(open("out"))["entries"]))') # beside it what was measured of the processor
check "cache clear" prints "^removed $n entr(y|ies)," "$vpps" cache clear

check "cache path" test "$("$vpps" cache path)" = "$VPPS_CACHE_DIR"
check "cache list of nothing" shows out "0 entries" "$vpps" cache list
check "cache without an action" fails_with 2 "list, clear or path" "$vpps" cache
check "cache fly" fails_with 2 "found 'fly'" "$vpps" cache fly
check "cache clear --json" fails_with 2 "--json is for list" "$vpps" cache clear --json
check "cache list more" fails_with 2 "too many arguments" "$vpps" cache list more

summary
