#!/usr/bin/env bash
# Training speed in each precision, in turns, as bench_train measures it: a Markdown table of sentences a second, median (lowest -
# highest) of the rounds.
#
#   ROUNDS      (default 3); BATCHES (default "1 16 128")
#   VPPS_DATA   folder with sst/train.txt (default ../shared/data); without it, generated ListOps
set -euo pipefail
build=${BUILD:-build}
trees=${VPPS_DATA:-../shared/data}/sst/train.txt
[ -r "$trees" ] || trees=
for ((round = 0; round < ${ROUNDS:-3}; round++)); do
    for precision in fp32 bf16x3 bf16; do
        for batch in ${BATCHES:-1 16 128}; do
            "$build/bench/bench_train" --rounds 1 --batch "$batch" --precision "$precision" ${trees:+"$trees"} |
                sed -n "s/^| \([0-9]*\) | \([0-9]*\) .*/$precision \1 \2/p; s/.*, \(fp32\|bf16x3\|bf16\) (\([a-z0-9]*\)),.*/unit \1 \2/p"
        done
    done
done | python3 -c '
import statistics, sys
rates, units = {}, {}
for line in sys.stdin:
    a, b, c = line.split()
    if a == "unit":
        units[b] = c
    else:
        rates.setdefault(int(b), {}).setdefault(a, []).append(int(c))
names = ["fp32", "bf16x3", "bf16"]
print("| batch |", " | ".join(f"{p} ({units[p]})" for p in names), "|")
print("| ---: |" + " ---: |" * len(names))
for batch in sorted(rates):
    print(f"| {batch} |", " | ".join(f"{statistics.median(r):,.0f} ({min(r):,} - {max(r):,})" for r in
                                     (rates[batch][p] for p in names)), "|")
'
