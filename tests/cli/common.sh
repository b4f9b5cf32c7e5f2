# shellcheck shell=bash
# common.sh - what the tests of the `vpps` command share beside checks.sh: conditions of what it prints and writes. To be sourced.
# VPPS names the program (default: build/vpps). The test then works in its scratch folder.

# shellcheck source=SCRIPTDIR/../common/checks.sh
source "$(dirname "${BASH_SOURCE[0]}")/../common/checks.sh"
# shellcheck disable=SC2034 # used by who sources this
vpps=$(realpath "${VPPS:-build/vpps}")
cli=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
cd "$work" || exit 1

# One Python, without packages of the site, runs what hundreds of checks ask of it (runs.py serve); a start takes longer than a check.
python=$(command python3 -c 'import sys; print(sys.executable)')
coproc SERVER { PYTHONDONTWRITEBYTECODE=1 exec "$python" -S "$cli/runs.py"; }
disown "$SERVER_PID" # `wait` does not wait for it

# python3 - [ARGUMENT...]: runs the statements on standard input in that process, which has run others before (RUSAGE_CHILDREN counts theirs,
# too). A subshell has not the pipes: there, and for other arguments, a Python of its own is started.
python3() {
    if [ "$1" != - ] || [ "$BASH_SUBSHELL" -ne 0 ]; then "$python" -S "$@"; return; fi
    local code out err status
    IFS= read -r -d '' code
    printf '%s\0' "$PWD" $# "$code" "${@:2}" >&"${SERVER[1]}"
    IFS= read -r -d '' out <&"${SERVER[0]}"
    IFS= read -r -d '' err <&"${SERVER[0]}"
    IFS= read -r -d '' status <&"${SERVER[0]}"
    printf %s "$out"
    printf %s "$err" >&2
    return "$status"
}

# exits CODE COMMAND...: the command ends with that code; its output goes to out and err.
exits() {
    local code=$1
    shift
    "$@" >out 2>err </dev/null
    local rc=$?
    [ $rc -eq "$code" ] || { echo "exit code $rc, expected $code: $*"; cat err; return 1; }
}

# eventually SECONDS COMMAND...: the command succeeds at some time until then. batches FILE: a log has three. ended PID: there is no such process, or only
# its exit status.
eventually() {
    for _ in $(seq $(($1 * 20))); do
        if "${@:2}"; then return; fi
        sleep 0.05
    done
    false
}
batches() { [ "$(grep -c '"event":"batch"' "$1" 2>/dev/null)" -ge 3 ] 2>/dev/null; }
ended() { ! grep -q '^State:[[:space:]]*[^Z]' "/proc/$1/status" 2>/dev/null; }

# says FILE TEXT: FILE contains TEXT.
says() { grep -qF -e "$2" "$1" || { echo "no \"$2\" in $1:"; cat "$1"; return 1; }; }
empty() { [ ! -s "$1" ] || { echo "$1 is not empty:"; cat "$1"; return 1; }; }

# fails_with CODE TEXT COMMAND...: exit code, one message on stderr that contains TEXT, nothing on stdout.
fails_with() {
    local code=$1 text=$2
    shift 2
    exits "$code" "$@" && says err "$text" && empty out
}

# shows FILE TEXT COMMAND..., prints REGEX COMMAND..., tells EXPRESSION COMMAND...: the command succeeds; FILE (out or err) contains
# TEXT, a line of stdout matches REGEX, stdout's JSON is as `json` says.
shows() { exits 0 "${@:3}" && says "$1" "$2"; }
prints() { exits 0 "${@:2}" && { grep -qE -e "$1" out || { echo "no line like $1:"; cat out; return 1; }; }; }
tells() { exits 0 "${@:2}" && json out "$1"; }

# with_runs STATEMENTS [ARGUMENT...]: what runs.py has is at hand. json FILE EXPRESSION: the Python expression is true of o, the last line of
# FILE as JSON. holds EXPRESSION: the expression is true. recast FROM TO STATEMENTS [ARGUMENT...]: a copy of a checkpoint that statements
# change, as runs.py says. same_tensors A B: two checkpoints have the same ones, and some.
with_runs() { PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$cli python3 - "${@:2}" <<<"from runs import *; import sys; $1"; }
json() { with_runs "o = last(sys.argv[1]); eval(sys.argv[2]) or sys.exit(f'not true: {sys.argv[2]} of {o}')" "$@"; }
holds() { with_runs "sys.exit(0 if $1 else 'not true: ' + sys.argv[1])" "$1"; }
recast() { with_runs "recast(*sys.argv[1:])" "$@"; }
# broken BATCHES OPTION...: a run of the test's `net` that stops after so many batches, within an epoch, and goes on without the options has
# the bits of one without a break.
broken() {
    # shellcheck disable=SC2154 # the test sets it
    exits 0 "${net[@]}" --quiet "${@:2}" --save unbroken.ckpt && exits 0 "${net[@]}" --quiet "${@:2}" --max-batches "$1" --save broken.ckpt &&
        exits 0 "$vpps" train --resume broken.ckpt --quiet && same_tensors broken.ckpt unbroken.ckpt
}
same_tensors() { holds "load('$1') == load('$2') != {}"; }

# Is the command built without the thread sanitizer?
not_instrumented() { ! grep -q __tsan <<<"$(nm -D "$vpps" 2>/dev/null)"; }
