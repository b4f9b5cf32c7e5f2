#!/usr/bin/env bash
# Training speed in each precision, by each of the processor's instructions for it, in turns, as bench_train measures it: a Markdown
# table of sentences a second, median (lowest - highest) of the rounds.
#
#   ROUNDS      (default 3); BATCHES (default "1 16 128"); WIDTH of embeddings and hidden states (default 256)
#   VPPS_DATA   folder with sst/train.txt (default ../shared/data); without it, generated ListOps
set -euo pipefail
build=${BUILD:-build}
trees=${VPPS_DATA:-../shared/data}/sst/train.txt
[ -r "$trees" ] || trees=
for ((round = 0; round < ${ROUNDS:-3}; round++)); do
    for batch in ${BATCHES:-1 16 128}; do
        for way in fp32: bf16x3: bf16: bf16x3:avx512bf16 bf16:avx512bf16; do
            VPPS_ISA=${way#*:} "$build/bench/bench_train" --rounds 1 --batch "$batch" --precision "${way%:*}" \
                --hidden "${WIDTH:-256}" --embed "${WIDTH:-256}" ${trees:+"$trees"} |
                sed -n "s/.*, \(fp32\|bf16x3\|bf16\) (\([a-z0-9]*\)),.*/way $way \1 \2/p; s/^| \([0-9]*\) | \([0-9]*\) .*/rate $way \1 \2/p"
        done
    done
done | python3 -c '
import statistics, sys
names, rates = {}, {}
for line in sys.stdin:
    kind, way, a, b = line.split()
    if kind == "way":
        name = f"{a} ({b})"
        if way.endswith(":") or name not in names.values(): # what is not to be had is the same as without
            names[way] = name
    elif way in names:
        rates.setdefault(int(a), {}).setdefault(way, []).append(int(b))
print("| batch |", " | ".join(names.values()), "|")
print("| ---: |" + " ---: |" * len(names))
for batch in sorted(rates):
    print(f"| {batch} |", " | ".join(f"{statistics.median(r):,.0f} ({min(r):,} - {max(r):,})" for r in
                                     (rates[batch][w] for w in names)), "|")
'
