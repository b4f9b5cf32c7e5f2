#!/usr/bin/env bash
# Runs all benchmarks and writes their tables to $BUILD/bench/results.md as well.
#
#   VPPS_DATA   folder with sst/train.txt (default ../shared/data); without it, generated ListOps
#   ROUNDS      of the training benchmark (default 7)
set -euo pipefail
build=${BUILD:-build}
trees=${VPPS_DATA:-../shared/data}/sst/train.txt
[ -r "$trees" ] || trees=
out=$build/bench/results.md
{
    echo "# Benchmarks, $(date -u +%Y-%m-%d)"
    echo
    echo "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1), $(nproc) cores;" \
        "$([ -n "$trees" ] && echo "Stanford Sentiment Treebank, training trees" || echo "generated ListOps")"
    echo
    "$build/bench/bench_kernels" limits | sed 's/^/    /'
    echo
    "$build/bench/bench_host" ${trees:+"$trees"}
    "$build/bench/bench_train" --rounds "${ROUNDS:-7}" ${trees:+"$trees"}
    echo
    "$build/bench/bench_busy"
    echo
    "$build/bench/bench_trace" ${trees:+"$trees"}
    echo
    if command -v mpirun > /dev/null; then
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -n 2 "$build/bench/bench_processes" \
            ${trees:+--data "$trees"}
    fi
    echo
    "$build/bench/bench_kernels" instructions products | sed 's/^/    /'
} | tee "$out"
echo "written to $out" >&2
