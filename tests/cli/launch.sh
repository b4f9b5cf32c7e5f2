# shellcheck shell=bash
# launch.sh - what the tests of training in several processes share. To be sourced after common.sh, with the number of checks that are
# skipped for each launcher which is not installed.

# shellcheck disable=SC2034,SC2154 # used by who sources this; set there

# A library that is loaded at run time keeps memory for ever.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

# The implementation's mpirun: under its own name where both are installed.
program_of() {
    local mark=HYDRA
    [ "$1" = mpich ] || mark='Open MPI'
    if command -v "mpirun.$1"; then return; fi
    grep -q "$mark" <<< "$(mpirun --version 2> /dev/null)" && command -v mpirun
}

launchers=()
declare -A mpirun
for name in openmpi mpich; do
    if mpirun[$name]=$(program_of $name); then
        launchers+=("$name")
    else
        skip "training by the mpirun of $name" "it is not installed" "${1:-1}"
    fi
done

# launch NAME PROCESSES COMMAND...: in at most ten minutes.
launch() {
    local name=$1 n=$2
    local options=()
    shift 2
    if [ "$name" = openmpi ]; then
        options=(--oversubscribe --bind-to none)
        [ "$(id -u)" -ne 0 ] || options+=(--allow-run-as-root)
    fi
    timeout --kill-after=5 600 "${mpirun[$name]}" "${options[@]}" -n "$n" "$@" < /dev/null
}

net=(tree-lstm --hidden 24 --embed 12)
long=("${net[@]}" --examples 2000 --batch 16 --epochs 1000 --eval-every 0 --vps 1 --save-every 2 --watchdog-ms 2000)

# ends_with TEXT COMMAND...: fails, with one message of ours, which has the text.
ends_with() {
    local text=$1
    shift
    if "$@" > out 2> err; then echo "it did not fail: $*"; return 1; fi
    says err "$text" && test "$(grep -c '^vpps: ' err)" = 1
}

# begin FILE [OPTION...]: starts three processes, and waits until there is a checkpoint.
begin() {
    rm -f "$1"
    launch "$name" 3 "$vpps" train "${long[@]}" --save "$@" > long.out 2> long.err &
    job=$!
    eventually 120 test -s "$1" || { echo "no checkpoint"; cat long.err; return 1; }
}
# process RANK FILE: the process of that rank of the run that saves to FILE, in this folder and not that of another run of the test. False:
# it is not there.
process() {
    local p
    for p in /proc/[0-9]*; do
        if grep -qzFx -e "$2" "$p/cmdline" 2> /dev/null && [ "$p/cwd" -ef . ] && grep -qzFx -e train "$p/cmdline" 2> /dev/null &&
            grep -qzxE "(OMPI_COMM_WORLD_RANK|PMI_RANK)=$1" "$p/environ" 2> /dev/null; then
            echo "${p#/proc/}"
            return
        fi
    done
    return 1
}
