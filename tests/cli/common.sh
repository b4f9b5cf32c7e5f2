# shellcheck shell=bash
# common.sh - what the tests of the `vpps` command share: a scratch folder, checks, and their sum. To be sourced.
# VPPS names the program (default: build/vpps). Prints a line for every failure.

# shellcheck disable=SC2034 # used by who sources this
vpps=$(realpath "${VPPS:-build/vpps}")
cli=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1

# Python, called by hundreds of checks: found once, and without packages of the site, whose start takes longer than a check.
python=$(command python3 -c 'import sys; print(sys.executable)')
python3() { "$python" -S "$@"; }

passed=0
failed=0
skipped=0

# check WHAT COMMAND...: the command must succeed.
check() {
    local what=$1
    shift
    if "$@" >check.out 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what"
        sed 's/^/    /' check.out | head -n 8
    fi
}

# skip WHAT WHY [NUMBER]: so many checks (1) that cannot be made here.
skip() {
    skipped=$((skipped + ${3:-1}))
    echo "skipped: $1: $2"
}

# exits CODE COMMAND...: the command ends with that code; its output goes to out and err.
exits() {
    local code=$1
    shift
    "$@" >out 2>err </dev/null
    local rc=$?
    [ $rc -eq "$code" ] || { echo "exit code $rc, expected $code: $*"; cat err; return 1; }
}

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

# json FILE EXPRESSION: the Python expression is true of o, the last line of FILE as JSON.
json() {
    python3 - "$1" "$2" <<'PY'
import json, sys
o = json.loads(open(sys.argv[1]).read().splitlines()[-1])
if not eval(sys.argv[2]):
    print("not true:", sys.argv[2], "of", o)
    sys.exit(1)
PY
}

# holds EXPRESSION: the Python expression is true, with what runs.py has. same_tensors A B: two checkpoints have the
# same ones, and some.
with_runs() { PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$cli python3 -c "from runs import *; import sys; $1" "${@:2}"; }
holds() { with_runs "sys.exit(0 if $1 else 'not true: ' + sys.argv[1])" "$1"; }
# recast FROM TO STATEMENTS [ARGUMENT...]: a copy of a checkpoint that Python statements change, as runs.py says.
recast() { with_runs "recast(*sys.argv[1:])" "$@"; }
same_tensors() { holds "load('$1') == load('$2') != {}"; }

# Is the command built without the thread sanitizer?
not_instrumented() { ! grep -q __tsan <<<"$(nm -D "$vpps" 2>/dev/null)"; }

# The last line of a test, and its exit status.
summary() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" -eq 0 ]
}
