#!/bin/bash
# test_memory.sh - a batch takes hardly more of the pool than its tensors that are live at once; a limit is met by slices and waves,
# and who cannot meet it is told what would do.

data=$(realpath -q "${VPPS_DATA:-../shared/data}")
# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

# near NETWORK OPTION...: of 128 examples, what the batch takes is at most a tenth more than the largest live set.
near() {
    exits 0 "$vpps" script "$@" --batch 128 --vps 2 &&
        python3 - out <<'END'
import re, sys
head = re.search(r"of the pool's (\d+) words (\d+) are parameters', and of the others at most (\d+) are live", open(sys.argv[1]).readline())
pool, parameters, live = map(int, head.groups())
sys.exit(not live <= pool - parameters <= 1.1 * live)
END
}

check "trees" near tree-lstm
check "trees in waves" near tree-lstm --waves 3
check "trees in groups" near tree-lstm --groups 2
check "lattices" near lattice-lstm
check "deep trees" near tree-gru --generate complete --leaves 64 --examples 200
# near_on DATA NETWORK: the same on real data, where they are.
near_on() {
    if [ -r "$data/$1/train.txt" ]; then
        check "$2 on $1" near "$2" --data "$data/$1"
    else
        skip "$2 on $1" "no data"
    fi
}
near_on sst tree-lstm
near_on wikiner bilstm-tagger

# The pool is 16 GiB of address space, or half of what there is.
limited() { (ulimit -v 16845000 && exec "$@"); }
python3 -c "print(' '.join(f'w{i % 50}' for i in range(40000)))" >long.txt
if limited "$vpps" --version >/dev/null 2>&1; then
    check "address space is left to the rest" exits 0 limited "$vpps" train lstm-lm --train long.txt --min-count 1 --hidden 8 --embed 8 --epochs 1
else
    skip "address space is left to the rest" "this build does not start in so much"
fi
check "a limit" prints " waves ([2-9]|[1-9][0-9]+)," "$vpps" script tree-lstm --batch 64 --hidden 32 --embed 32 --pool-bytes 2M
"$vpps" script tree-lstm --batch 64 --hidden 32 --embed 32 --pool-bytes 64K 2>err
check "what is too little is told" grep -qE "^vpps: the batch needs [0-9]+ bytes of the pool, .* in 64 waves of .* pool_bytes is 65536" err
needed=$(sed -nE 's/.*needs ([0-9]+) bytes.*/\1/p' err)
check "and what would do does" exits 0 "$vpps" script tree-lstm --batch 64 --hidden 32 --embed 32 --pool-bytes "$needed"
check "one byte less does not" fails_with 1 "bytes of the pool" "$vpps" script tree-lstm --batch 64 --hidden 32 --embed 32 --pool-bytes $((needed - 1))

# sentences of 12 of 500 words
awk 'BEGIN { for (i = 0; i < 128; i++) { for (k = 0; k < 12; k++) printf "w%d ", (i * 12 + k * k) % 500; print "" } }' >text
check "a language model in slices" near lstm-lm --train text --hidden 16 --embed 16 --waves 1 --slices 5
one=("$vpps" script lstm-lm --train text --batch 128 --hidden 16 --embed 16 --waves 1) # in one wave
words=$("${one[@]}" | sed -nE '1s/.* of the pool.s ([0-9]+) words .*/\1/p')
check "half of what one wave takes" prints " waves 1, slices [0-9]*[02468]," "${one[@]}" --pool-bytes $((words * 2))
check "too little for a sentence" fails_with 1 "parameters included, even in 128 waves of 13 slices each; pool_bytes is 65536. Use" "${one[@]}" --pool-bytes 64K
check "waves leave nothing for the batch's end but a gradient an entry" exits 0 "$vpps" script tree-lstm --batch 2000 --hidden 32 --embed 32 --vps 2 --pool-bytes 1M
summary
