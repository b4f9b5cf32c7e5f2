#!/usr/bin/env bash
# Rehearses gpu-check without a GPU: makes build-gpu/, carries it into a root file system that holds nothing else but libc, bash, coreutils
# and a driver with NVRTC, and runs there the steps that a model of a GPU can take. The model (GPU_MODEL: its sources) is the driver. The
# root is entered in namespaces of its own, without a network.
#
#     tools/rehearse_gpu_check.sh        make check-gpu-model
#
# BUILD: where the model is built, in gpumodel/, and where the command is. What cannot be run here is skipped. Prints a line for every
# failure; the last line is "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/.." || exit

build=${BUILD:-build}
make=${MAKE:-make}
sources=${GPU_MODEL:-../shared/tools/gpumodel}
model=$(realpath -m "$build/gpumodel")
coreutils=(cat cut date dirname env mkdir mktemp mv nproc rm sha256sum sleep tail timeout tr)
carried_mib=64 files_back=8 # what a machine that is lent takes, and gives back
work=$(mktemp -d)
root=$work/root
trap 'kill $(jobs -p) 2> /dev/null; rm -rf "$work"' EXIT

skip_all() {
    echo "skipped: $1"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
}

passed=0 failed=0
check() { # WHAT COMMAND...
    if "${@:2}" > "$work/check" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $1"
        sed 's/^/    /' "$work/check"
    fi
}

# ---------------------------------------------------------------- the root file system

libraries() { ldd "$@" 2> /dev/null | sed -nE 's/^[^/:]*(\/[^ :]+) \(0x.*/\1/p' | sort -u; }

make_root() {
    local name path programs=()
    mkdir -p "$root"/{bin,dev,driver,proc,tmp,usr/local/cuda/lib64}
    for name in bash "${coreutils[@]}"; do
        path=$(type -P "$name") || return
        programs+=("$path")
        cp -L "$path" "$root/bin/$name" || return
    done
    ln -s bash "$root/bin/sh" # by which the model runs nvdisasm
    for path in $(libraries "${programs[@]}" "$model/libgpumodel.so" "$model/nvdisasm" "$nvrtc"); do cp -L --parents "$path" "$root" || return; done
    cp "$model"/{libgpudriver.so,libgpumodel.so,nvdisasm} "$root/driver/" && cp -r build-gpu "$root/build-gpu"
}

# Runs a command in there. NVRTC, which is large, is mounted. VPPS_LIBCUDA names the driver: where a libcuda.so.1 is to be found, NVRTC calls
# functions that the model lacks.
# shellcheck disable=SC2016
enter() {
    unshare --user --map-root-user --mount --net bash -c 'root=$1 nvrtc=$2
        shift 2
        mount --rbind /dev "$root/dev" && mount --rbind /proc "$root/proc" || exit 125
        for library in "${nvrtc%/*}"/libnvrtc*; do
            at=$root/usr/local/cuda/lib64/${library##*/}
            : >> "$at" && mount --bind "$library" "$at" || exit 125
        done
        exec chroot "$root" /bin/env -i PATH=/bin "$@"' enter "$root" "$nvrtc" \
        VPPS_LIBCUDA=/driver/libgpudriver.so GPUMODEL_SMS=4 SIZE=small "$@"
}

# NAME STATUS VARIABLE=VALUE... STEP...: gpu_check in there; NAME is what it writes and, with .out, what it prints.
gpu_check() {
    local name=$1 want=$2 status=0 settings=()
    shift 2
    while [[ ${1:-} == *=* ]]; do settings+=("$1"); shift; done
    enter OUT="/$name" "${settings[@]}" /bin/bash /build-gpu/tools/gpu_check.sh "$@" > "$work/$name.out" 2>&1 < /dev/null || status=$?
    [ "$status" -eq "$want" ] || echo "exit status $status instead of $want"
    [ "$status" -eq "$want" ]
}

# NAME LINE...: printed were these lines of steps, without their seconds and last lines.
printed() {
    diff <(printf '%s\n' "${@:2}") <(sed -nE '/^(ok|FAILED|skipped) /{s/ +[0-9]+ s( |$)/\1/; s/  +/ /g; s/ $//; p}' "$work/$1.out") ||
        { cat "$work/$1.out"; false; }
}

# NAME STEP=STATUS...: so says check.json.
noted() {
    python3 - "$root/$1/check.json" "${@:2}" << 'PY'
import json, sys
o = json.load(open(sys.argv[1]))
got = [f"{s['step']}={s['exit_status']}" for s in o["steps"]]
assert got == sys.argv[2:], got
assert "gpumodel" in o["gpu"] and len(o["commit"].rstrip("+")) == 40, o
PY
}

[ -f "$sources/Makefile" ] || skip_all "no GPU model: $sources is not there (GPU_MODEL can name it)"
"$make" --no-print-directory BUILD="$build" GPU_MODEL="$sources" gpu-model > "$work/make" 2>&1 || skip_all "the GPU model of $sources cannot be built here"
nvrtc=$(LD_DEBUG=libs VPPS_LIBCUDA=$model/libgpudriver.so "$build/vpps" doctor 2>&1 | sed -n 's/.*calling init: \(.*libnvrtc\.so.*\)$/\1/p' | tail -n 1)
[ -n "$nvrtc" ] || skip_all "NVRTC is not installed"
unshare --user --map-root-user --mount --net true 2> /dev/null || skip_all "no namespaces for users here"

# ---------------------------------------------------------------- the rehearsal

check "gpu-prepare" env MAKE="$make" tools/gpu_check.sh prepare
check "what is carried is small enough" test "$(du -sm build-gpu | cut -f 1)" -le "$carried_mib"
check "its programs need libc alone" test "$(libraries build-gpu/{vpps,tests/*,bench/bench_*} | grep -cvE '/(libc|libm|ld-linux[^/]*)\.so')" -eq 0
check "a bare root" make_root

# Stand-ins: a step that fails, and one that does not end. Most of this is waiting, beside the steps that compute.
printf '#!/bin/bash\nexit 3\n' > "$root/build-gpu/tests/gpu_test_gpu_handle"
printf '#!/bin/bash\nsleep 1000\n' > "$root/build-gpu/tests/models_test_networks"
gpu_check bad 1 STEP_LIMIT=30 doctor networks handle memcheck > "$work/bad.status" &
bad=$!

check "without a driver" gpu_check none 0 VPPS_LIBCUDA=/nowhere
check "nothing is checked" grep -q '^No GPU here (.*); nothing was checked\.$' "$work/none.out"
check "nothing is written" test ! -e "$root/none"

check "steps that a model can take" gpu_check good 0 STEP_LIMIT=900 BUDGET=3600 doctor train agreement-lists arrays loops training profile processes memcheck
check "their lines" printed good "ok doctor" "ok train" "ok agreement-lists" "ok arrays" "ok loops" "skipped training python3 is not installed" \
    "skipped profile-1 ncu is not installed" "skipped profile-16 ncu is not installed" "skipped profile-128 ncu is not installed" \
    "skipped processes mpirun is not installed" "skipped memcheck compute-sanitizer is not installed"
check "their statuses" noted good doctor=0 train=0 agreement-lists=0 arrays=0 loops=0 training=None profile-1=None profile-16=None \
    profile-128=None processes=None memcheck=None
check "what they printed" grep -q '^100%: Checks: [1-9]' "$root/good/steps.txt"
check "few files come back" test "$(find "$root/good" -type f | wc -l)" -le "$files_back"

check "a step that fails, and one that does not end, fail the whole" wait "$bad"
check "and no other step" printed bad "ok doctor" "FAILED networks exit status 124" "FAILED handle exit status 3" \
    "skipped memcheck compute-sanitizer is not installed"
check "their statuses" noted bad doctor=0 networks=124 handle=3 memcheck=None

echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
