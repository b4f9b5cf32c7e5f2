#!/bin/bash
# test_policy.sh - `vpps policy`, and --policy: numbers of batches, what is learned and kept, training by each policy.

data=$(realpath -m "${VPPS_DATA:-../shared/data}")
# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"
export VPPS_CACHE_DIR=$work/cache

small=(--hidden 8 --embed 8)
# The policies as the help has them: a|b|c, and as a list of Python's.
policies=$("$vpps" train tree-lstm --help-engine | sed -n 's/.*--policy=default|\([a-z|]*\)|auto.*/\1/p')
check "the help has the policies" grep -qE '^depth\|.*fsm' <<<"$policies"
names="'$policies'.split('|')"
two=("$vpps" policy tree-lstm-2type "${small[@]}" --examples 100 --batch 40)

check "vpps policy" shows out "bound" "${two[@]}"
check "and the recurrence" says out "tree-lstm inner, kind 1 | tree-lstm inner, kind 2"
check "--json: its numbers" tells "list(o['batches']) == $names and \
o['bound'] <= o['batches']['fsm'] <= o['batches']['ratio'] <= o['batches']['depth'] and o['inputs'] == 40" "${two[@]}" --json
check "its table" json out "o['fsm']['states'] == len(o['fsm']['table']) and \
all(s['next'] in s['frontier'] and len(s['q']) == len(s['frontier']) for s in o['fsm']['table'])"
check "its recurrence" json out "[r['cells'] for r in o['recurrences']] == \
[['tree-lstm inner, kind 1', 'tree-lstm inner, kind 2']] and o['steps']['ratio'] < o['steps']['depth']"
cp out before
check "the same again" exits 0 "${two[@]}" --json
check "with the same numbers" cmp before out
check "what was learned is kept" shows out "policy" "$vpps" cache list
check "one cell in a recurrence: nothing to choose" exits 0 "$vpps" policy tree-lstm "${small[@]}" --examples 40 --json
check "and no recurrence of several" json out "o['recurrences'] == [] and len(set(o['steps'].values())) == 1"

if [ -r "$data/sst/train.txt" ]; then
    check "SST" exits 0 "$vpps" policy tree-lstm "${small[@]}" --data "$data/sst" --batch 128 --json
    check "its numbers of batches" json out "o['bound'] == 26 and o['batches'] == o['batches'] | {'depth': 50, 'share': 40, 'ratio': 26, 'fsm': 26}"
else
    skip "SST" "no $data/sst/train.txt" 2
fi

for policy in ${policies//|/ } auto; do
    check "train --policy $policy" exits 0 "$vpps" train lattice-lstm "${small[@]}" --examples 60 --batch 20 --epochs 2 --policy "$policy" --verify --json
    check "it learns" json out "o['loss'] > 0 and o['policy'] in $names"
    [ "$policy" = auto ] || check "by $policy" json out "o['policy'] == '$policy' and o['steps_per_batch'] > 3"
done
check "train on software SIMT" exits 0 "$vpps" train tree-lstm-2type "${small[@]}" --examples 10 --max-batches 1 --eval-every 0 --device simt --vps 2 --json
check "its default policy is depth" json out "o['policy'] == 'depth'"
check "another policy" fails_with 2 "$policies|auto" "$vpps" train tree-lstm --policy widest
tuned() {
    exits 0 "$vpps" tune lattice-lstm "${small[@]}" --examples 60 --batch 20 --device cpu --vps 1 --json || return 1
    json out "o['done'] and [t['policy'] for t in o['trials'] if 'policy' in t] == $names and \
all(t['batches'] == 9 for t in o['trials'] if 'policy' in t)" || return 1
    exits 0 "$vpps" tune lattice-lstm "${small[@]}" --examples 60 --batch 20 --device cpu --vps 2 && says out "train with --groups"
    says out " --policy "
}
check "tune on the cpu measures policies" tuned
summary
