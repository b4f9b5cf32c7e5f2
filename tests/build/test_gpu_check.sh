#!/bin/bash
# test_gpu_check.sh - tools/gpu_check.sh with substitutes for the programs, compute-sanitizer and make: when it runs them,
# what it writes, and that it writes nothing without a GPU. No GPU is involved.
# shellcheck disable=SC2016 # substitutes expand what is in single quotes

# shellcheck source=SCRIPTDIR/../common/checks.sh
source "$(dirname "$0")/../common/checks.sh"
root=$(realpath "$(dirname "$0")/../..")

# A tree with sources of a line; DOCTOR is what the command's doctor says of cuda, AGREEMENT the suite's exit status.
mkdir -p "$work"/tree/{tools,include,src,models,tests,bench} "$work/bin" "$work/programs"/{tests,bench}
cd "$work/tree" || exit 1
# A toolkit of this machine is not to be found.
sed "s|/usr/local/cuda|$work/nowhere|" "$root/tools/gpu_check.sh" > tools/gpu_check.sh
chmod +x tools/gpu_check.sh
echo 'all:' > Makefile
echo 'int x;' > src/x.c
# program PATH LINE...: a script of these lines.
program() { printf '%s\n' '#!/bin/bash' "${@:2}" > "$1" && chmod +x "$1"; }
cat > "$work/programs/vpps" << 'SH'
#!/bin/bash
case $* in
"doctor --json") echo "{\"devices\":[{\"name\":\"cuda\",$DOCTOR_JSON\"state\":\"$DOCTOR\"}]}" ;;
doctor) printf 'devices\n    cpu   ready\n    cuda  %s\n' "$DOCTOR" ;;
*) echo "$*"; [ "$VPPS_TEST_DEVICE" = cuda ] && exit "${TRAINING:-0}" ;;
esac
SH
cat > "$work/programs/tests/gpu_test_gpu_agreement" << 'SH'
#!/bin/bash
printf 'a "quoted" line\\ of\ttext, ä\n%s\n' "$VPPS_TEST_DEVICE $VPPS_TEST_SCALE $CK_RUN_CASE $VPPS_TEST_PART" >&2
echo "100%: Checks: ${CHECKS:-5}, Failures: 0, Errors: 0"
sleep "${SLEEP:-0}"
exit "${AGREEMENT:-0}"
SH
program "$work/programs/tests/gpu_test_gpu_handle" '[ "$VPPS_TEST_DEVICE" = cuda ] && echo "libraries: $LD_LIBRARY_PATH"'
program "$work/programs/tests/models_test_networks" '[ "$VPPS_TEST_DEVICE" = cuda ]'
for name in gpu_test_gpu_precision gpu_test_gpu_cublas runtime_test_handle runtime_test_pointers graph_test_conditions; do cp "$work/programs/tests/models_test_networks" "$work/programs/tests/$name"; done
cat > "$work/programs/bench/bench_gpu" << 'SH'
#!/bin/bash
echo "a heading"
echo "{\"n\": \"$*\", \"data\": \"$VPPS_DATA\", \"kernels\": [$(cd "$VPPS_CACHE_DIR" 2> /dev/null && printf '"%s"' *)]}"
echo "{\"n\": 2}"
SH
program "$work/programs/bench/bench_train" 'exit 3'
cat > bench/train.py << 'PY'
import json, os, sys
open(sys.argv[sys.argv.index("--json") + 1], "w").write(json.dumps({"speed": " ".join(sys.argv[1:-2]), "build": os.environ["BUILD"]}) + "\n")
PY
program "$work/bin/ncu" 'until [ "$1" = details ]; do shift; done' 'shift' 'exec "$@"'
program "$work/bin/taskset" 'echo "$2" >> ../cores' 'shift 2' 'exec "$@"'
program "$work/bin/nproc" 'echo 6'
program "$work/bin/compute-sanitizer" 'echo "sanitizer $*"' 'while [ "$1" != 99 ]; do shift; done' 'shift' 'exec "$@"'
program "$work/bin/nvidia-smi" 'echo "$*" >> ../asked' '[[ $* == *-lms* ]] || exit 0' 'echo $$ > ../smi' 'while echo "1980 MHz"; do sleep 0.1; done'
program "$work/bin/ldconfig"
program "$work/bin/mpirun" 'shift 2' 'exec "$@"'
cat > "$work/bin/make" << 'SH'
#!/bin/bash
echo "$@" >> ../made
[ -n "$BUILDS" ] || { echo "no compiler"; exit 2; }
[[ $* =~ BUILD=([a-z-]+) ]]
mkdir -p "${BASH_REMATCH[1]}" && cp -r ../programs/. "${BASH_REMATCH[1]}/"
SH
program "$work/bin/strip" 'cp "$3" "$2"'
mkdir bench/twins bench/recipes
touch bench/peers.py bench/peers_torch.py bench/recipes/{tree_graphs,lattice_text}.py bench/twins/{parts,trees,taggers,text,graphs,lattices,buckets}.py
chmod +x "$work"/bin/* "$work"/programs/vpps "$work"/programs/*/*
export PATH=$work/bin:$PATH MAKE=make BUILDS=1
unset BUILD OUT BUDGET VPPS_DATA LD_LIBRARY_PATH CUDA_HOME CUDA_PATH
none='not ready: no GPU driver: libcuda.so.1: cannot open shared object file'
gpu='"gpu":"NVIDIA H200 (1)",'

run() { # STATUS VARIABLE=VALUE...; STEPS: those, not all
    local want=$1 status
    shift
    env "$@" bash -c 'exec tools/gpu_check.sh $STEPS' > "$work/out" 2>&1
    status=$?
    [ "$status" -eq "$want" ] || { echo "exit status $status instead of $want"; cat "$work/out"; return 1; }
}
json() { python3 -c "import json; o = json.load(open('$1')); s = {x['step']: x for x in o['steps']}; assert $2, o"; }

check "no GPU" run 0 DOCTOR="$none"
check "no GPU: one line" test "$(cat "$work/out")" = "No GPU here ($none); nothing was checked."
check "no GPU: nothing is written" test ! -e bench/results
check "no GPU: only the command is built" test "$(grep -c bench_gpu "$work/made")" -eq 0
check "a GPU without NVRTC fails" run 1 DOCTOR="not ready: X, but no NVRTC" DOCTOR_JSON="$gpu"
check "nothing to run fails" run 1 BUILDS=
check "and says what to do" grep -q 'gpu_check.sh prepare' "$work/out"

check "a GPU" run 0 DOCTOR="ready: NVIDIA H200" DOCTOR_JSON="$gpu"
file=bench/results/nvidia-h200-1/check.json
check "its file" json $file "o['gpu'] == 'NVIDIA H200 (1)' and o['machine']['devices'][0]['name'] == 'cuda'"
check "its steps" json $file "list(s) == ['doctor', 'train', *('agreement-' + x for x in [*(f'random-{i}' for i in range(1, 7)), *(f'shapes-{i}' for i in range(1, 5)), \
    'levels-1', 'levels-2', 'long', *(f'optimizers-{i}' for i in range(1, 6)), 'lists', 'trees-1', 'trees-2', 'same-bits-1', 'same-bits-2', 'same-bits-3']), \
    'precision', 'cublas-1', 'cublas-2', 'cublas-3', 'networks', 'handle', 'calls', 'arrays', 'loops', 'training', 'bench', 'profile-1', 'profile-16', 'profile-128', 'processes', 'hidden-1024', \
    'hidden-2048', 'memcheck', 'racecheck', 'synccheck', 'initcheck', 'full', 'peers', 'large-512', 'large-1024', 'large-2048'] \
    and all(x['exit_status'] == 0 and x['seconds'] >= 0 for x in o['steps'])"
check "its benchmarks" json $file "[x.get('n') for x in o['bench']] == [None, '', 2, *4 * [None]] and o['bench'][0]['build'] == 'build' \
    and o['bench'][0]['speed'].startswith('--device cuda --networks tree-lstm')"
check "its text" json $file "'a \"quoted\" line\\\\ of\\ttext, ??\\ncuda small same bits 2/3' in s['agreement-same-bits-2']['last_lines']"
check "tests have two cores each, three at a time" test "$(sort -u ../cores | tr '\n' ' ')" = '0,1 2,3 4,5 '
check "sanitizers" json $file "all('--tool ' + t in s[t]['command'] and '--examples 12' in s[t]['last_lines'] for t in ('memcheck', 'racecheck', 'synccheck', 'initcheck'))"
check "profiles" json $file "'--batch 1 ' in s['profile-1']['last_lines'] and 'fp32' in s['profile-16']['command'] and 'bf16x3' in s['profile-128']['command']"
check "three files" test "$(find bench/results/nvidia-h200-1 -type f -printf '%f\n' | sort | tr '\n' ' ')" = 'check.json clocks.csv steps.txt '
check "two processes" json $file "'mpirun -n 2' in s['processes']['command'] and '--device cuda' in s['processes']['last_lines']"
check "large models" json $file "'--hidden 2048' in s['hidden-2048']['command']"
says() { sed -n "\\|^==> steps/$2 <==$|,/^==> /p" "$1/steps.txt" | grep "$3" > "$work/line"; }
check "what steps printed" says bench/results/nvidia-h200-1 bench.out '^{"n": 2}$'
check "clocks" grep -q '^1980 MHz$' bench/results/nvidia-h200-1/clocks.csv
check "nothing is left running" bash -c "! kill -0 $(cat "$work/smi")"
check "no setting is changed" bash -c "! grep -v -e '^--query-gpu=' '$work/asked'"

check "a failing step" run 1 DOCTOR="ready: X" DOCTOR_JSON="$gpu" STEPS="agreement-trees train bench memcheck" AGREEMENT=3 OUT="$work/elsewhere"
check "is recorded, and the others run" json "$work/elsewhere/check.json" "s['agreement-trees-1']['exit_status'] == 3 \
    and s['train']['exit_status'] == 0 and s['bench']['exit_status'] == 0"
check "a sanitizer that finds something" run 1 DOCTOR="ready: X" DOCTOR_JSON="$gpu" STEPS="memcheck racecheck" TRAINING=3 OUT="$work/found"
check "is a failure, too" json "$work/found/check.json" "s['memcheck']['exit_status'] == 3 and s['racecheck']['exit_status'] == 3"
# What the check takes along: every test that it runs, and every module of ours that a script imports.
carried() { sed -n "/^$1=(/,/)$/p" "$root/tools/gpu_check.sh" | sed "s/^$1=//" | tr -s '() \n' '\n'; }
runs=$(grep -oE 'from/tests/[a-z_]+' "$root/tools/gpu_check.sh" | sort -u | cut -d/ -f2-)
imports=$(cd "$root" && carried scripts | grep '\.py$' | xargs sed -nE 's/^from (twins)?\.([a-z_]+) .*/bench\/twins\/\2.py/p; s/^(from|import) ([a-z_]+).*/bench\/\2.py/p' | sort -u)
check "tests that run are built" test -z "$(comm -23 <(echo "$runs") <(carried programs | sort))"
check "modules come along" test "$(comm -12 <(echo "$imports") <(carried scripts | sort))" = \
    "$(cd "$root" && comm -12 <(echo "$imports") <(printf '%s\n' bench/*.py bench/twins/*.py | sort))"
check "every kind of agreement is a step" test "$(sed -n 's/^cases=(\(.*\))$/\1/p' "$root/tools/gpu_check.sh" | tr -d '"=0-9')" = \
    "$(sed -nE 's/^TEST_GROUP\("([a-z ]+)".*/\1/p' "$root/tests/gpu/test_gpu_agreement.c" | paste -sd ' ')"
check "a case that is not there" run 1 DOCTOR="ready: X" DOCTOR_JSON="$gpu" STEPS=agreement-long CHECKS=0 OUT="$work/none"
check "is a failure" json "$work/none/check.json" "'nothing was checked' in s['agreement-long']['last_lines']"

# steps WANTED STEP...: those that are named, in the order of all.
steps() {
    env DOCTOR="ready: X" DOCTOR_JSON="$gpu" OUT="$work/some" tools/gpu_check.sh "${@:2}" > "$work/out" 2>&1 &&
        json "$work/some/check.json" "list(s) == $1"
}
check "steps by name" steps "['train', 'bench']" bench train
check "their objects" json "$work/some/check.json" "len(o['bench']) == 2"
check "a name of several" steps "['hidden-1024', 'hidden-2048']" hidden
check "one of them" steps "['agreement-lists']" agreement-lists
check "other steps" steps "['doctor']" doctor
check "leave no others' objects" json "$work/some/check.json" "o['bench'] == []"
check "no such step" bash -c '! tools/gpu_check.sh doktor > ../out 2>&1 && grep -q "unknown step .doktor." ../out'

check "a budget" run 1 DOCTOR="ready: X" DOCTOR_JSON="$gpu" SLEEP=100 STEPS="doctor agreement-random train full" BUDGET=10 OUT="$work/short"
check "ends a step" json "$work/short/check.json" "s['agreement-random-1']['exit_status'] in (124, 137) and o['budget_s'] == 10"
check "and skips what is after it" json "$work/short/check.json" "s['doctor']['exit_status'] == 0 \
    and s['agreement-random-6']['exit_status'] is None and 's are over' in s['full']['last_lines']"

check "a step's limit" run 1 DOCTOR="ready: X" DOCTOR_JSON="$gpu" SLEEP=100 STEPS="agreement-random handle full" STEP_LIMIT=5 OUT="$work/limited"
check "ends the step, and no other" json "$work/limited/check.json" "[s[x]['exit_status'] for x in ('agreement-random-6', 'handle', 'full')] == [124, 0, 124]"

# Ended in the middle, it leaves what it had found.
mkdir "$work/tmp"
DOCTOR="ready: X" DOCTOR_JSON="$gpu" SLEEP=20 OUT="$work/cut" TMPDIR="$work/tmp" timeout 900 tools/gpu_check.sh doctor agreement > "$work/out" 2>&1 &
cut=$!
until grep -qs 'Checks: 5' "$work"/tmp/*/steps/agreement-random-1.out || ! kill -0 "$cut" 2> /dev/null; do sleep 0.1; done
kill "$cut"
wait "$cut" 2> /dev/null
check "a check that is cut off" json "$work/cut/check.json" "list(s) == ['doctor']"
check "leaves what the step had printed" says "$work/cut" agreement-random-1.out 'Checks: 5'

# NVIDIA's wheels, where nothing else has NVRTC.
mkdir -p "$work"/python/nvidia/cuda_nvrtc/lib
touch "$work/python/nvidia/cuda_nvrtc/lib/libnvrtc.so.12"
check "Python's NVRTC" run 0 DOCTOR="ready: X" DOCTOR_JSON="$gpu" STEPS=handle OUT="$work/wheels" PYTHONPATH="$work/python"
check "is found" json "$work/wheels/check.json" "'libraries: $work/python/nvidia/cuda_nvrtc/lib' in s['handle']['last_lines']"
printf '#!/bin/bash\nprintf "\\tlibnvrtc.so.13 => x\\n"\n' > "$work/bin/ldconfig"
check "unless there is another" run 0 DOCTOR="ready: X" DOCTOR_JSON="$gpu" STEPS=handle OUT="$work/own" PYTHONPATH="$work/python"
check "which comes first" json "$work/own/check.json" "s['handle']['last_lines'].endswith('libraries: ')"

rm "$work/bin/compute-sanitizer" "$work/bin/nvidia-smi"
check "no compute-sanitizer" run 0 DOCTOR="ready: X" DOCTOR_JSON="$gpu" STEPS="memcheck racecheck" OUT="$work/less" CUDA_HOME=/nowhere
check "is recorded" json "$work/less/check.json" "s['memcheck']['exit_status'] is None \
    and 'not installed' in s['racecheck']['last_lines']"

# Prepared programs are used when they are of these sources, and then nothing is built.
mkdir -p "$work/data/sst" && echo tree > "$work/data/sst/train.txt"
mkdir "$work/kernels" && echo cubin > "$work/kernels/a.vpps"
check "prepare" env VPPS_DATA="$work/data" KERNELS="$work/kernels" tools/gpu_check.sh prepare
check "with the data that there are" test "$(find build-gpu/data -type f)" = build-gpu/data/sst/train.txt
echo abc > build-gpu/commit
check "links other libraries in" grep -q -e '-l:libjansson.a' "$work/made"
check "prepared programs" run 0 BUILDS= DOCTOR="ready: X" DOCTOR_JSON="$gpu" STEPS=bench OUT="$work/prepared" CUDA_HOME=/nowhere
check "their data" json "$work/prepared/check.json" "o['bench'][0]['data'].endswith('/build-gpu/data')"
check "their commit" json "$work/prepared/check.json" "o['commit'] == 'abc' and 'build-gpu/' in s['bench']['command']"
check "build-gpu/ alone" cp -r build-gpu "$work/alone"
run_alone() { env -C "$work" DOCTOR="ready: X" DOCTOR_JSON="$gpu" MAKE=false bash alone/tools/gpu_check.sh bench > "$work/out" 2>&1; }
check "is enough" run_alone
check "it has the data, the commit and the kernels" json "$work/alone/$file" \
    "o['bench'][0]['data'].endswith('/alone/./data') and o['commit'] == 'abc' and o['bench'][0]['kernels'] == ['a.vpps']"
echo 'int y;' > src/x.c
check "programs of other sources are not used" run 1 BUILDS= DOCTOR="ready: X"

summary
