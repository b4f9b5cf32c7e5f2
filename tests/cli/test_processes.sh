#!/bin/bash
# test_processes.sh - training in several processes, with the MPI there is: the losses of one process, the same bits in every
# run, checkpoints that any number of processes goes on from, and one message when a process dies, hangs or disagrees.
# VPPS_TEST_SCALE=full: also networks of every kind, a first process that is stopped, and 50 kills at random instants, not 2.

folder=$(realpath "$(dirname "$0")")
# shellcheck source=SCRIPTDIR/common.sh
source "$folder/common.sh"
# shellcheck source=SCRIPTDIR/launch.sh
source "$folder/launch.sh" 9

small=("${net[@]}" --examples 150 --batch 16 --epochs 2 --vps 1)

# same_losses A B TOLERANCE: logs of two runs have as many batches, and the same losses, and the same results at the end.
same_losses() {
    with_runs "
a, b = (lines(f) for f in sys.argv[1:3])
assert [o['event'] for o in a + b].count('start') == 2 and len(losses(sys.argv[1])) > 5
assert near(losses(sys.argv[1]), losses(sys.argv[2]), float(sys.argv[3])), (losses(sys.argv[1]), losses(sys.argv[2]))
keys = 'dev', 'test', 'sentences', 'batches', 'epochs', 'model'
a, b = ([next(o for o in of if o['event'] == 'end')[k] for k in keys] for of in (a, b))
assert a == b, (a, b)" "$@"
}

check "one process trains" exits 0 "$vpps" train "${small[@]}" --quiet --log 1.jsonl --save 1.ckpt
for name in "${launchers[@]}"; do
    check "$name: three processes train" exits 0 launch "$name" 3 "$vpps" train "${small[@]}" --json --log "$name.jsonl" --save "$name.ckpt"
    check "$name: one of them prints" test "$(grep -c '^{"model"' out)" = 1
    check "$name: the imbalance is told" json out "o['processes'] == 3 and o['imbalance'] >= 0 and o['sent_bytes_per_batch'] > 0"
    check "$name: the losses of one process" same_losses "$name.jsonl" 1.jsonl 1e-5
done

if [ ${#launchers[@]} -gt 0 ]; then
    name=${launchers[0]}
    check "4 processes train" exits 0 launch "$name" 4 "$vpps" train "${small[@]}" --log 4.jsonl
    check "4: the losses of one process" same_losses 4.jsonl 1.jsonl 1e-5
    # A GPU's kernel, with all of its multiprocessors in each process.
    gpu=("${net[@]}" --generate listops --examples 24 --batch 4 --epochs 1 --eval-every 0 --device simt --rpw 1 --threads 64)
    VPPS_SIMT_SMS=3 check "one GPU trains" exits 0 "$vpps" train "${gpu[@]}" --log gpu1.jsonl
    VPPS_SIMT_SMS=3 check "two GPUs train" exits 0 launch "$name" 2 "$vpps" train "${gpu[@]}" --log gpu2.jsonl
    check "on all of their multiprocessors" grep -q 'kernel of .* 3 VPs of 64 threads' err
    check "two GPUs: the losses of one" same_losses gpu2.jsonl gpu1.jsonl 1e-5
    networks=() # of every kind of data
    if [ "${VPPS_TEST_SCALE:-}" = full ]; then
        networks=(bilstm-char-tagger bilstm-classifier lstm-lm lstm-nmt lattice-lstm lattice-gru mv-rnn td-lstm)
    fi
    for network in "${networks[@]}"; do
        kind=("$network" --hidden 16 --batch 8 --epochs 1 --max-batches 8 --eval-every 0 --vps 1 --quiet)
        check "$network trains" exits 0 "$vpps" train "${kind[@]}" --log kind1.jsonl
        check "$network in three processes" exits 0 launch "$name" 3 "$vpps" train "${kind[@]}" --log kind3.jsonl
        check "$network: the losses of one process" same_losses kind3.jsonl kind1.jsonl 1e-5
        check "$network with tables shared out" exits 0 launch "$name" 3 "$vpps" train "${kind[@]}" --shard-tables --log shards3.jsonl
        check "$network: the losses of whole tables" same_losses shards3.jsonl kind3.jsonl 1e-7
    done
    check "three processes train again" exits 0 launch "$name" 3 "$vpps" train "${small[@]}" --quiet --force --log again.jsonl --save again.ckpt
    check "to the same bits" same_losses again.jsonl "$name.jsonl" 0
    check "and the same parameters" same_tensors again.ckpt "$name.ckpt"

    # checkpoints: of three, gone on with by two, gone on with by one
    check "more epochs in two processes" shows err "epoch 3/3" launch "$name" 2 "$vpps" train --resume "$name.ckpt" --force --save two.ckpt --epochs 3
    check "and in one" shows err "epoch 4/4" "$vpps" train --resume two.ckpt --epochs 4
    check "a checkpoint of several is measured by one" exits 0 "$vpps" eval --model two.ckpt --split dev

    # lookup tables shared out by rows
    sharded=("${small[@]}" --shard-tables --quiet)
    check "tables shared out over three" exits 0 launch "$name" 3 "$vpps" train "${sharded[@]}" --force --log shards.jsonl --save shards.ckpt --save-best best.ckpt
    check "shards: the losses of one process" same_losses shards.jsonl 1.jsonl 1e-5
    check "again" exits 0 launch "$name" 3 "$vpps" train "${sharded[@]}" --force --log again.jsonl --save again.ckpt
    check "to the same bits, shared out, too" same_losses again.jsonl shards.jsonl 0
    check "in the same file" cmp <(tail -c 10000 again.ckpt) <(tail -c 10000 shards.ckpt)
    check "two processes go on from it" shows err "epoch 3/3" launch "$name" 2 "$vpps" train --resume shards.ckpt --force --save two.ckpt --epochs 3 --shard-tables
    check "and one, with whole tables" exits 0 "$vpps" train --resume two.ckpt --epochs 4
    check "the best of shards is measured by one" exits 0 "$vpps" eval --model best.ckpt --split dev
    matrices=(mv-rnn --hidden 8 --examples 60 --batch 8 --epochs 1 --vps 1 --quiet) # a table of matrices, which begin as the identity
    check "matrices of words in one process" exits 0 "$vpps" train "${matrices[@]}" --log matrices1.jsonl
    check "shared out" exits 0 launch "$name" 3 "$vpps" train "${matrices[@]}" --shard-tables --log matrices.jsonl
    check "they train alike" same_losses matrices.jsonl matrices1.jsonl 1e-5
    # with its rows: other data have the words in another order, and some that it lacks
    begins=("${small[@]}" --quiet --seed 9 --examples 80 --init shards.ckpt --max-batches 8)
    check "a checkpoint begins shards" exits 0 launch "$name" 3 "$vpps" train "${begins[@]}" --shard-tables --log begun3.jsonl
    check "and whole tables" exits 0 "$vpps" train "${begins[@]}" --log begun1.jsonl
    check "with the same rows" same_losses begun3.jsonl begun1.jsonl 1e-5

    # A table of 262 MB, and with adam's state three times that. One process has the model's copy beside the device's.
    printf '#!/bin/bash\nulimit -v 950000\nexport MALLOC_ARENA_MAX=1\nexec "$@"\n' > limited
    chmod +x limited
    if grep -qE '__(asan|tsan)_' <<< "$(nm -D "$vpps" 2> /dev/null)"; then
        skip "a table too large for one process" "the sanitizer's memory comes on top" 2
    else
        python3 -c 'for i in range(0, 8000, 4): print("(1 (0 (1 w%d) (2 w%d)) (2 (0 w%d) (1 w%d)))" % (i, i + 1, i + 2, i + 3))' > words.txt
        large=(train tree-lstm --train words.txt --min-count 1 --hidden 8 --embed 8192 --batch 32 --max-batches 3 --eval-every 0 --vps 1 --quiet)
        check "a table too large for one process" fails_with 1 "cpu: cannot map a pool" ./limited "$vpps" "${large[@]}" --pool-bytes 900M
        check "trains in two" exits 0 launch "$name" 2 ./limited "$vpps" "${large[@]}" --pool-bytes 64M --shard-tables
    fi

    # disagreement, before anything is trained
    check "other options" ends_with 'rank 1 on' launch "$name" 1 "$vpps" train "${small[@]}" : -n 1 "$vpps" train "${small[@]}" --batch 8
    check "are named" says err '--batch is 8 here, and 16 at rank 0'
    check "other data" ends_with 'is' launch "$name" 1 "$vpps" train "${small[@]}" : -n 1 "$vpps" train "${small[@]}" --resume 1.ckpt --epochs 2
    check "no data" ends_with '/nowhere: cannot be opened' launch "$name" 2 "$vpps" train tree-lstm --data /nowhere
    check "a loss that is not finite" ends_with 'parameters are as before this batch' \
        launch "$name" 3 "$vpps" train "${small[@]}" --lr 1e6 --weight-decay 1e6 --optimizer momentum --momentum 1 --clip 0 --eval-every 0
    check "no other processes" exits 0 launch "$name" 1 "$vpps" train "${small[@]}" --epochs 1 --quiet
    check "each alone, where it is asked for" exits 0 launch "$name" 2 "$vpps" train "${small[@]}" --epochs 1 --communicator none
    check "then both print" test "$(grep -c '^trained' out)" = 2

    if [ ${#launchers[@]} -eq 2 ]; then # MPICH's library cannot know Open MPI's launcher
        VPPS_MPI=libmpich.so.12 check "the library of another launcher" exits 1 launch openmpi 2 "$vpps" train "${small[@]}"
        check "is told" says err "2 processes were started together, but the library of MPI finds one"
    else
        skip "the library of another launcher" "there is only one" 2
    fi

    # processes that stop, die, or are asked to end

    # hit SIGNAL RANK FILE: and waits for the end of all; false if that takes more than 25 s.
    hit() {
        local since=$SECONDS pid
        pid=$(process "$2" "$3") || { echo "no process of rank $2"; cat long.err; return 1; }
        kill -s "$1" "$pid"
        wait "$job"
        code=$?
        [ $((SECONDS - since)) -le 25 ] || { echo "it took $((SECONDS - since)) s"; return 1; }
        eventually 60 ended "$pid" || { echo "rank $2 is still there"; return 1; } # its launcher has ended it, but does not wait for that
    }
    told() { grep -q "signal $1" long.out long.err || { echo "the launcher has not told signal $1"; cat long.out long.err; return 1; }; }
    silent() { ! grep '^vpps: ' long.err; }
    once() { [ "$(grep -c '^vpps: ' long.err)" = 1 ] || { cat long.err; return 1; }; }
    stopped=(2)
    if [ "${VPPS_TEST_SCALE:-}" = full ]; then stopped=(2 0); fi
    for rank in "${stopped[@]}"; do
        check "a run to stop rank $rank of" begin "stop$rank.ckpt"
        check "it ends soon" hit STOP "$rank" "stop$rank.ckpt"
        check "and says why" grep -qE "^vpps: .*nothing was heard of rank $rank on [^ ,]+ for" long.err
        check "once" once
        check "the checkpoint is whole" exits 0 "$vpps" eval --model "stop$rank.ckpt" --split dev
    done
    first=$name
    for name in "${launchers[@]}"; do
        check "$name: a run to kill a process of" begin kill.ckpt --watchdog-ms 30000 # so that no other notices first
        check "$name: it ends soon" hit KILL 1 kill.ckpt
        check "$name: and fails" test "$code" -ne 0
        check "$name: which the launcher tells" told 9
        check "$name: and the other processes nothing" silent
    done
    name=$first
    check "a run to abort a process of" begin abort.ckpt --watchdog-ms 30000
    check "it ends soon" hit ABRT 2 abort.ckpt
    check "which the launcher tells" told 6
    check "fewer processes go on" shows err "resumed from kill.ckpt after epoch" launch "$name" 2 "$vpps" train --resume kill.ckpt --max-batches 3 --save more.ckpt
    check "a run to end" begin term.ckpt --watchdog-ms 30000
    check "it ends soon" hit TERM 1 term.ckpt
    check "in good order" grep -q '^stopped' long.out

    # random_kills N: each ends all, and leaves a checkpoint that is whole. Launchers take turns, and tables are whole or shared out.
    random_kills() {
        local i killed=0 own=$name
        "$vpps" train "${long[@]}" --max-batches 2 --save random.ckpt > out 2> err || { cat err; return 1; }
        for i in $(seq "$1"); do
            local resume=(--resume random.ckpt --save-every 1 --watchdog-ms 30000) rank=$((RANDOM % 2))
            [ $((i % 3)) -ne 0 ] || resume+=(--shard-tables)
            own=${launchers[$((i % ${#launchers[@]}))]}
            launch "$own" 2 "$vpps" train "${resume[@]}" > long.out 2> long.err &
            job=$!
            sleep "$(printf '0.%03d' $((RANDOM % 700 + 200)))"
            local pid=
            pid=$(process $rank random.ckpt) || { # not begun yet: this is one of another process's instants
                until pid=$(process $rank random.ckpt) || ! kill -0 $job 2> /dev/null; do sleep 0.02; done
            }
            [ -z "$pid" ] || kill -KILL "$pid"
            wait "$job"
            if [ -n "$pid" ]; then
                told 9 || { echo "kill $i, of rank $rank by $own"; return 1; }
                killed=$((killed + 1))
            fi
            "$vpps" eval --model random.ckpt --split dev > out 2> err || { echo "after kill $i:"; cat err; return 1; }
        done
        [ "$killed" -eq "$1" ] || { echo "only $killed were killed"; return 1; }
    }
    kills=2
    if [ "${VPPS_TEST_SCALE:-}" = full ]; then kills=50; fi
    check "a checkpoint is whole after $kills kills" random_kills $kills
else
    skip "several processes" "there is no mpirun" 55
fi

check "a communicator that is none" fails_with 2 "--communicator" "$vpps" train "${small[@]}" --communicator pigeons
VPPS_MPI=/nowhere/libmpi.so check "an MPI that is not there" fails_with 1 "/nowhere/libmpi.so" \
    "$vpps" train "${small[@]}" --communicator mpi

summary
