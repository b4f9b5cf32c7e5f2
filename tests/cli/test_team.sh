#!/bin/bash
# test_team.sh - training in several processes: what each of them has of its own, and who ends with whom. VPPS names the program
# (default: build/vpps).

folder=$(realpath "$(dirname "$0")")
# shellcheck source=SCRIPTDIR/common.sh
source "$folder/common.sh"
# shellcheck source=SCRIPTDIR/launch.sh
source "$folder/launch.sh" 8

for name in "${launchers[@]:0:1}"; do
    check "a run with shared tables" exits 0 launch "$name" 2 "$vpps" train "${net[@]}" --examples 40 --epochs 1 --vps 1 --shard-tables --quiet --save shards.ckpt
    # a table that is written in several pieces, whose first entries are of different processes
    pieces=(tree-lstm --hidden 4 --embed 65536 --examples 8 --batch 4 --epochs 0 --eval-every 0 --vps 1 --quiet)
    check "a large table in one process" exits 0 "$vpps" train "${pieces[@]}" --save pieces1.ckpt
    check "a large table shared out over three" exits 0 launch "$name" 3 "$vpps" train "${pieces[@]}" --shard-tables --save pieces3.ckpt
    check "has each entry in its place" holds "parts('pieces1.ckpt')[2] == parts('pieces3.ckpt')[2]"
    recast shards.ckpt flipped.ckpt 'data[-9] ^= 64'
    check "a damaged checkpoint, and shared tables" ends_with 'flipped.ckpt: its tensors have checksum' launch "$name" 2 "$vpps" train --resume \
        flipped.ckpt --epochs 9 --shard-tables

    # Two processes with one of two examples that are the same: with masks of their own they differ, and so does the mean loss from that
    # of one of them alone, whose masks are the first process's.
    for n in 1 2; do yes '(1 (0 a) (1 (0 b) (1 c)))' | head -n $n > same$n.txt; done
    alone_and_two() { # LOG DROPOUT
        local options=(tree-lstm --hidden 24 --embed 12 --batch 2 --epochs 1 --vps 1 --min-count 1 --lr 0 --eval-every 0 --quiet --dropout "$2")
        exits 0 "$vpps" train "${options[@]}" --train same1.txt --log "$1-1.jsonl" &&
            exits 0 launch "$name" 2 "$vpps" train "${options[@]}" --train same2.txt --log "$1-2.jsonl"
    }
    alike() { holds "(a := losses('$1')[:1]) and near(a, losses('$2')[:1], 1e-4)"; }
    apart() { holds "(a := losses('$1')[:1]) and not near(a, losses('$2')[:1], 1e-4)"; }
    check "one example, and the same in each of two processes" alone_and_two plain 0
    check "have the same loss" alike plain-2.jsonl plain-1.jsonl
    check "the same with dropout" alone_and_two masks 0.5
    check "each process has masks of its own" apart masks-2.jsonl masks-1.jsonl
done

summary
