#!/bin/bash
# test_files.sh - what `vpps train` reads and writes: nothing is lost. VPPS names the program (default: build/vpps).

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

small=(--hidden 8 --embed 6 --batch 4 --vps 1)
mkdir data
with_runs "
for seed, (part, n) in enumerate((('train', 40), ('dev', 12), ('test', 12)), 1): write_trees(f'data/{part}.txt', n, seed)"
train=("$vpps" train tree-lstm --data data "${small[@]}")

# ---------------------------------------------------------------- outputs onto inputs, and onto each other

cp -r data kept
same_data() { diff -r data kept; }
clash() { fails_with 1 "$1" "${@:2}" && same_data; }
ln -s data/train.txt link.txt
ln data/dev.txt hard.txt
ln -s . here
ln -s new.ckpt dangling
check "--log onto the training file" clash "--log data/train.txt and --data data/train.txt are the same file" "${train[@]}" --log data/train.txt
check "--log onto it through a link" clash "are the same file" "${train[@]}" --log link.txt
check "--plot onto dev, another name of the file" clash "--plot hard.txt and --data" "${train[@]}" --plot hard.txt
check "--save onto test, another spelling" clash "--save here/data/../data/test.txt and" "${train[@]}" --save here/data/../data/test.txt
check "--save-best onto the training file" clash "--save-best" "${train[@]}" --save-best data/train.txt
check "--save and --log" clash "--save x and --log ./x are the same file" "${train[@]}" --save x --log ./x
check "a new file, spelled in two ways" clash "--save new.ckpt and --save-best here/here/new.ckpt are the same" \
    "${train[@]}" --save new.ckpt --save-best here/here/new.ckpt
check "a new file, by a link that points to it" clash "--save dangling and --plot" "${train[@]}" --save dangling --plot new.ckpt
nothing_new() { [ ! -e x ] && [ ! -e new.ckpt ]; }
check "refused before anything was opened" nothing_new
in_part() { # all files of a folder are read: an output there would be an input
    mkdir -p parts/train/deep && cp data/train.txt parts/train/a.txt &&
        fails_with 1 "all files in that folder are read" "$vpps" train tree-lstm --data parts "${small[@]}" \
            --log parts/train/deep/new.jsonl && [ ! -e parts/train/deep/new.jsonl ]
}
check "an output inside a part that is a folder" in_part
on_stdout() { # standard output that is the log's file
    # shellcheck disable=SC2094 # that is what is refused
    "${train[@]}" --epochs 1 --log both.txt >both.txt 2>err </dev/null
    [ $? -eq 1 ] && says err "standard output are the same file"
}
check "--log and standard output" on_stdout
printf 'a b\n' >lexicon
check "--save onto the lexicon" fails_with 1 "--lexicon lexicon are the same" "$vpps" train lattice-lstm --train data/train.txt --lexicon lexicon --save lexicon
check "the lexicon is whole" cmp lexicon <(printf 'a b\n')
pair() {
    printf 'a\n' >p.de && printf 'b\n' >p.en &&
        fails_with 1 "--train p.en are the same" "$vpps" train lstm-nmt --train p --source de --target en --log p.en &&
        cmp p.en <(printf 'b\n')
}
check "--log onto a translation" pair

# ---------------------------------------------------------------- links, devices and streams

through_link() {
    mkdir store && ln -s store/real.ckpt linked.ckpt && exits 0 "${train[@]}" --epochs 1 --save linked.ckpt &&
        [ -L linked.ckpt ] && [ -s store/real.ckpt ] && exits 0 "$vpps" eval tree-lstm --model linked.ckpt
}
check "--save through a link" through_link
check "--save /dev/null, --plot /dev/null" exits 0 "${train[@]}" --epochs 1 --save /dev/null --plot /dev/null
check "/dev/null is what it was" test -c /dev/null
plot_out() { exits 0 "${train[@]}" --epochs 1 --quiet --plot /dev/stdout && says out "<svg" && says out "</svg>"; }
check "--plot /dev/stdout" plot_out
log_out() {
    exits 0 "${train[@]}" --epochs 1 --log /dev/stdout && [ "$(grep -c '"event":"batch"' out)" = 10 ] &&
        grep -q '^trained' out
}
check "--log /dev/stdout: neither overwrites the other" log_out
taken() {
    echo of another run >taken.jsonl
    flock taken.jsonl "${train[@]}" --force --log taken.jsonl >out 2>err
    [ $? -eq 1 ] && grep -q "taken.jsonl: another run writes to it" err && [ "$(cat taken.jsonl)" = "of another run" ]
}
check "a log takes one run at a time" taken
ended() { # SIGTERM while a file is written; in the end the old one is there, and no other
    python3 - "$vpps" <<'PY'
import glob, os, signal, subprocess, sys, time
train = [sys.argv[1], 'train', 'rvnn', '--examples', '20', '--hidden', '2000', '--epochs', '0', '--eval-every', '0', '--vps', '1', '--quiet', '--save', 'big.ckpt']
subprocess.run(train, check=True)
export = [sys.argv[1], 'export', '--model', 'big.ckpt', '--save', 'big.out']
subprocess.run(export, check=True)
for tried in range(40):
    before = os.stat('big.out').st_ino
    with subprocess.Popen(export) as run:
        while not glob.glob('big.out.tmp-*') and run.poll() is None: time.sleep(0.0005)
        run.send_signal(signal.SIGSTOP)
        caught = glob.glob('big.out.tmp-*')
        run.send_signal(signal.SIGTERM)
        run.send_signal(signal.SIGCONT)
    assert not glob.glob('big.out.tmp-*'), run.returncode
    if caught and run.returncode == -signal.SIGTERM: break
else: raise AssertionError('no file was caught while it was written')
assert os.stat('big.out').st_ino == before and os.path.getsize('big.out') > 1e6
PY
}
check "an ended run's temporary file goes" ended
too_large() { # the system ends nobody who is told that a file may not grow
    (ulimit -f 8 && exec "${train[@]}" --epochs 1 --hidden 64 --save large.ckpt) >large.out 2>&1
    [ $? -eq 1 ] && says large.out "large.ckpt: cannot be written: File too large" && [ "$(echo large.*)" = large.out ]
}
check "a limit of files' sizes" too_large

mkdir all && chmod 1777 all && printf 'mine' >mine
planted() { # OPTION COMMAND...: a stranger's link in a folder where everybody may write
    ln -sf "$PWD/mine" all/link && chown -h 54321 all/link && fails_with 1 "all/link: is another user's link" "${@:2}" "--$1" all/link &&
        [ "$(cat mine)" = mine ]
}
if [ "$(id -u)" = 0 ]; then
    for option in save save-best log plot trace; do check "a planted link: --$option" planted $option "${train[@]}" --epochs 1; done
    check "a planted link: export" planted save "$vpps" export --model linked.ckpt
    check "--force, too" planted save "${train[@]}" --epochs 1 --force
else
    skip "planted links" "this user cannot give files to others" 7
fi
mode_stays() {
    exits 0 "${train[@]}" --epochs 1 --save kept.ckpt --plot kept.svg && chmod 600 kept.ckpt && chmod 640 kept.svg &&
        exits 0 "$vpps" train --resume kept.ckpt --epochs 2 --plot kept.svg && exits 0 "$vpps" export --model kept.ckpt --save kept.out &&
        chmod 604 kept.out && exits 0 "$vpps" export --model kept.ckpt --save kept.out &&
        [ "$(stat -c %a kept.ckpt kept.svg kept.out | xargs)" = "600 640 604" ]
}
check "a file that is replaced keeps its mode" mode_stays
no_folder() { [ -z "$(ls temporary)" ]; }
killed_compiling() { # the compiler is still at it, and its folder is gone
    mkdir -p temporary
    # shellcheck disable=SC2016 # the compiler expands them
    printf '#!/bin/sh\n[ "$1" = --version ] && exec echo slow\necho $$ >compiler.pid.new && mv compiler.pid.new compiler.pid\nexec sleep 600\n' >slow_compiler
    chmod +x slow_compiler
    TMPDIR=$PWD/temporary VPPS_CXX=$PWD/slow_compiler VPPS_CACHE_DIR=$PWD/none "${train[@]}" --epochs 1 --device simt >/dev/null 2>&1 &
    local run=$!
    eventually 60 test -s compiler.pid && ls temporary/*/kernel.cc && kill -KILL $run && eventually 60 no_folder
    local rc=$?
    kill "$(cat compiler.pid)"
    return $rc
}
if not_instrumented; then check "killed while it compiles" killed_compiling; else skip "killed while it compiles" "software SIMT cannot run"; fi
together() { # the first one waits for who reads its log, which is longer than a pipe holds
    mkfifo slow
    "${train[@]}" --epochs 100 --save both.ckpt --log slow >/dev/null 2>first.err &
    exec 9<slow # opened by both: the run has its files
    exits 0 "${train[@]}" --epochs 1 --save both.ckpt --force && exits 0 "$vpps" eval --model both.ckpt && cat <&9 >/dev/null && wait $! &&
        exits 0 "$vpps" train --resume both.ckpt --epochs 101 && [ "$(echo both.ckpt*)" = both.ckpt ]
}
check "two runs with one --save write it whole, one after the other" together

# ---------------------------------------------------------------- the best epoch, patience

tells_epochs() {
    exits 0 "${train[@]}" --epochs 2 --max-batches 13 --save a.ckpt --save-best b.ckpt &&
        says out "a.ckpt   after epoch 1 and batch 3 of the next" && says out "b.ckpt   after epoch 1" &&
        exits 0 "${train[@]}" --epochs 2 --max-batches 13 --save a.ckpt --save-best b.ckpt --force --json &&
        json out "(o['save'], o['save_epoch'], o['save_batch'], o['save_best'], o['save_best_epoch']) == ('a.ckpt', 1, 3, 'b.ckpt', 1)"
}
check "the summary says which epoch a file holds" tells_epochs
not_better() { # a resumed run that never gets better leaves the file alone
    exits 0 "${train[@]}" --epochs 3 --lr 0 --save flat.ckpt --save-best flat-best.ckpt && rm flat-best.ckpt &&
        exits 0 "$vpps" train --resume flat.ckpt --epochs 4 --save-best flat-best.ckpt &&
        says out "flat-best.ckpt was not written" && [ ! -e flat-best.ckpt ]
}
check "--save-best: no epoch of the run was the best" not_better
only=("$vpps" train tree-lstm --train data/train.txt "${small[@]}")
check "--save-best without dev" fails_with 1 "--save-best needs a dev part" "${only[@]}" --save-best x.ckpt
check "--patience without dev" fails_with 1 "--patience needs a dev part" "${only[@]}" --patience 2
check "--patience without measuring" fails_with 1 "--eval-every" "${train[@]}" --patience 2 --eval-every 0

# ---------------------------------------------------------------- signals

hang_up() { # SIGNAL [nohup]: a run that gets this signal; its exit status
    rm -f hang.ckpt hang.jsonl
    "${@:2}" "$vpps" train tree-lstm --examples 4000 --hidden 32 --embed 16 --batch 16 --vps 1 --max-batches 400 \
        --eval-every 0 --save hang.ckpt --log hang.jsonl --json >out 2>err </dev/null &
    local pid=$!
    eventually 120 batches hang.jsonl
    kill "-$1" $pid
    wait $pid
}
hung_up() {
    hang_up "$1"
    [ $? -eq 130 ] && json out "o['interrupted'] and o['save'] == 'hang.ckpt'" &&
        exits 0 "$vpps" eval tree-lstm --model hang.ckpt
}
no_hang_up() { hang_up HUP nohup && json out "not o['interrupted'] and o['batches'] == 400"; }
set -m
for signal in HUP TERM INT; do check "SIG$signal saves" hung_up $signal; done
check "SIGHUP under nohup is ignored" no_hang_up
set +m

# ---------------------------------------------------------------- the plot goes on

many() { # so many batches that points are joined
    exits 0 "$vpps" train tree-lstm --data data --hidden 2 --embed 2 --batch 1 --vps 1 --eval-every 0 --epochs 40 \
        --save many.ckpt --plot many.svg &&
        exits 0 "$vpps" train tree-lstm --data data --hidden 2 --embed 2 --batch 1 --vps 1 --eval-every 0 --epochs 40 \
            --max-batches 1463 --save part.ckpt &&
        exits 0 "$vpps" train tree-lstm --vps 1 --resume part.ckpt --plot part.svg && cmp many.svg part.svg &&
        cmp many.ckpt part.ckpt
}
check "--resume --plot: the curve of a run without a break" many

# ---------------------------------------------------------------- resuming elsewhere

first() { exits 0 "${train[@]}" --epochs 1 --force --save "$1" && exits 0 "${train[@]}" --epochs 2 --force --save two.ckpt; }
from_elsewhere() {
    first away.ckpt && mkdir -p elsewhere && (cd elsewhere && exits 0 "$vpps" train tree-lstm --vps 1 \
        --resume ../away.ckpt --epochs 2) && same_tensors two.ckpt away.ckpt
}
check "resume from another folder" from_elsewhere
check "eval from another folder" bash -c "cd elsewhere && '$vpps' eval tree-lstm --model ../two.ckpt"
moved() { # the same content under other names, compressed, and part by part
    first moved.ckpt && mkdir -p other && gzip -c data/train.txt >other/train.gz && cp data/dev.txt other/dev &&
        cp data/test.txt other/test && exits 0 "$vpps" train tree-lstm --vps 1 --resume moved.ckpt --epochs 2 \
        --data other && same_tensors two.ckpt moved.ckpt && first moved.ckpt &&
        exits 0 "$vpps" train tree-lstm --vps 1 --resume moved.ckpt --epochs 2 --train other/train.gz &&
        same_tensors two.ckpt moved.ckpt
}
check "resume with data that have moved" moved
lost() { # what says where data were
    first moved.ckpt && mv data gone && for command in "train --resume" "eval --model"; do
        # shellcheck disable=SC2086
        fails_with 1 "data: cannot be opened: No such file or directory; moved.ckpt was made with these data: if they have moved, --data names" \
            "$vpps" $command moved.ckpt || return 1
    done
    mv gone data
}
check "data that have moved, and are not named" lost
untested() { mv data/test.txt gone && fails_with 1 "data: no file has the word test in its name: the test part is missing" "$vpps" eval --model moved.ckpt && ! grep -q moved, err && mv gone data/test.txt; }
check "a part that is not there" untested
changed() {
    first changed.ckpt && cp -r data altered && sed -i '1s/(0/(1/;1s/(1 a/(0 a/' altered/"$1".txt &&
        ! cmp -s data/"$1".txt altered/"$1".txt &&
        fails_with 1 "with other data: training cannot resume with altered/$1.txt" "$vpps" train tree-lstm \
            --resume changed.ckpt --epochs 2 --data altered
    local rc=$?
    rm -rf altered
    return $rc
}
check "resume with a changed training file" changed train
check "resume with a changed dev file" changed dev
in_place() {
    cp -r data saved && first place.ckpt && echo '(1 (0 a) (1 h))' >>data/train.txt &&
        fails_with 1 "with other data" "$vpps" train tree-lstm --resume place.ckpt --epochs 2
    local rc=$?
    rm -r data && mv saved data
    return $rc
}
check "resume with a file that has changed in its place" in_place
fewer() {
    first fewer.ckpt && mkdir -p two && cp data/train.txt data/dev.txt two &&
        fails_with 1 "a part that is missing" "$vpps" train tree-lstm --resume fewer.ckpt --epochs 2 --data two
}
check "resume without one of the parts" fewer
rename_hash() { # what a release with another hash wrote: the name of its checksum is $2, its hashes of data have no name
    LC_ALL=C sed -E -i "s/(\"vpps.checksum\":\")vpps-64/\1$2/; s/(\"data\.[a-z]+\":\")vpps-64 [0-9a-f]{16}\"/\10123456789abcdef\"        /g" "$1"
}
other_hash() {
    first hash.ckpt && rename_hash hash.ckpt xxh3-64 && grep -qa 0123456789abcdef hash.ckpt && exits 0 "$vpps" eval --model hash.ckpt &&
        exits 0 "$vpps" train tree-lstm --vps 1 --resume hash.ckpt --epochs 2 && same_tensors two.ckpt hash.ckpt &&
        first hash.ckpt && rename_hash hash.ckpt what-64 && fails_with 1 "it was damaged" "$vpps" eval --model hash.ckpt
}
check "a checkpoint of another hash is read, an unknown one is not" other_hash

# ---------------------------------------------------------------- --init

begins() {
    exits 0 "${train[@]}" --epochs 3 --save base.ckpt &&
        exits 0 "${train[@]}" --epochs 0 --seed 9 --init base.ckpt --save again.ckpt --json &&
        says err "base.ckpt: took" && json out "o['init']['whole'] == o['init']['parameters'] > 5" &&
        exits 0 "$vpps" eval tree-lstm --model base.ckpt --json && cp out base.json &&
        exits 0 "${train[@]}" --epochs 0 --seed 9 --init base.ckpt --json && holds "last('base.json')['metrics'] == last('out')['test']"
}
check "--init: the same network, from the start" begins
check "--init: a new run" json out "o['epochs'] == 0 and o['batches'] == 0"
check "--init and --resume" fails_with 2 "not both" "$vpps" train tree-lstm --init base.ckpt --resume base.ckpt
check "--init is an input" fails_with 1 "--init base.ckpt are the same" "${train[@]}" --init base.ckpt --save base.ckpt

# ---------------------------------------------------------------- checksum

flipped() { # a bit in the last tensor
    recast base.ckpt flipped.ckpt 'data[-9] ^= 64'
    fails_with 1 "flipped.ckpt: its tensors have checksum" "$vpps" eval tree-lstm --model flipped.ckpt &&
        fails_with 1 "checksum" "$vpps" train tree-lstm --resume flipped.ckpt &&
        fails_with 1 "checksum" "${train[@]}" --init flipped.ckpt
}
check "a damaged tensor" flipped
without() { # files of before there were checksums, curves and hashes
    recast base.ckpt old.ckpt "for k in [k for k in m if k in ('vpps.checksum', 'train.curves', 'train.folder') or k.startswith('data.')]: del m[k]"
    exits 0 "$vpps" eval tree-lstm --model old.ckpt && exits 0 "$vpps" train tree-lstm --resume old.ckpt --epochs 4
}
check "a file without a checksum" without

# ---------------------------------------------------------------- export

exported() { # parameters, what they mean, and nothing else
    exits 0 "$vpps" export --model base.ckpt --save small.ckpt && with_runs "
m, n, before, after = parts('base.ckpt')[1], parts('small.ckpt')[1], load('base.ckpt'), load('small.ckpt')
assert after == {k: v for k, v in before.items() if not k.startswith('optimizer.')} and len(after) < len(before)
assert not [k for k in n if k.startswith(('train.', 'data.')) or k in ('option.data', 'vpps.optimizer', 'vpps.batches')]
assert all(n[k] == m[k] for k in ('network', 'vocabulary', 'classes', 'option.hidden')), n"
}
check "export" exported
same_answers() {
    "$vpps" predict --model base.ckpt <data/test.txt >before && "$vpps" predict --model small.ckpt <data/test.txt >after &&
        cmp before after && exits 0 "$vpps" eval --model small.ckpt --data data
}
check "an exported file predicts and is measured" same_answers
check "an exported file is a beginning" exits 0 "${train[@]}" --epochs 1 --init small.ckpt
check "an exported file is no run to resume" fails_with 1 'no "train.epoch" in its metadata' "$vpps" train --resume small.ckpt
check "export a damaged file" fails_with 1 "checksum" "$vpps" export --model flipped.ckpt --save x.ckpt
check "export onto the checkpoint" fails_with 1 "--save ./base.ckpt and --model base.ckpt are the same" "$vpps" export --model base.ckpt --save ./base.ckpt
cp base.ckpt other.ckpt
check "a log onto a checkpoint" fails_with 1 "--log other.ckpt: the file exists already, and --log has not made it" \
    "$vpps" train --resume base.ckpt --epochs 3 --log other.ckpt --save new.ckpt
check "which stays whole" cmp base.ckpt other.ckpt
check "export again" exits 0 "$vpps" export --model base.ckpt --save small.ckpt
cp base.ckpt run.ckpt && echo notes >notes.txt
check "export onto another run" fails_with 1 "--save run.ckpt: the file is a checkpoint that training can go on from: --force" \
    "$vpps" export --model base.ckpt --save run.ckpt
check "export onto something else" fails_with 1 "--save notes.txt: the file exists already, and export has not made it: --force" \
    "$vpps" export --model base.ckpt --save notes.txt
check "which is left" grep -q notes notes.txt
check "export onto it with --force" exits 0 "$vpps" export --model base.ckpt --save notes.txt --force
check "export without --save" fails_with 2 "--save FILE is missing" "$vpps" export --model base.ckpt
check "export another network's" fails_with 1 "holds the network tree-lstm" "$vpps" export lstm-lm --model base.ckpt --save x.ckpt

summary
