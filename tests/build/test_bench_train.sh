#!/bin/bash
# test_bench_train.sh - bench/train.py: its table and JSON file, what it leaves out, and what it refuses. BUILD: the build folder.

# shellcheck source=SCRIPTDIR/../common/checks.sh
source "$(dirname "$0")/../common/checks.sh"
build=${BUILD:-build}

train() {
    BUILD=$build python3 bench/train.py --rounds 2 --seconds 0.01 --batches 2 --data "$work" "$@" > "$work/out" 2> "$work/err"
}
fails() { ! "$@"; }
lines() { [ "$(grep -cE "$2" "$3")" -eq "$1" ]; }

check "trains two networks" train --networks tree-fc,act --with="--vps 1" --details --json "$work/bench.json"
check "no data is missing where none is read" lines 0 missing "$work/err"
check "a row for each network" lines 2 '^\| (tree-fc|act) \| VPPS \| [0-9.,]+ \([0-9.,]+ - [0-9.,]+\), [0-9]+ % \|$' "$work/out"
check "a row for options, with the ratio" lines 2 '^\|  \| VPPS --vps 1 \| .* %, [0-9.]+ x \|$' "$work/out"
check "details" lines 4 '^\| (tree-fc|act) \| VPPS.* \| 2 \|( [0-9.,]+ \|){8}$' "$work/out"
check "which row is furthest from its bound" lines 1 '^Furthest from its bound is (tree-fc|act), batch 2 \([0-9]+ % of the peak\)\.$' "$work/out"
check_json() {
    python3 - "$work/bench.json" << 'PY'
import json, sys
o = json.load(open(sys.argv[1]))
assert all(o[k] for k in ("machine", "commit", "date", "command")), o
assert [(r["network"], r["way"], r["batch"]) for r in o["rows"]] == [
    (n, w, 2) for n in ("tree-fc", "act") for w in ("VPPS", "VPPS --vps 1")], o["rows"]
for r in o["rows"]:
    assert 0 < r["rate"]["q1"] <= r["rate"]["median"] <= r["rate"]["q3"], r
    assert r["share_of_peak"]["median"] > 0 and r["mflop_per_sentence"]["median"] > 0, r
    assert r["vps"] == 1 or not r["way"].endswith("1"), r
PY
}
check "the JSON file" check_json
check "trains on generated data where a folder is missing" train --networks lstm-nmt
check "which is told" grep -q "lstm-nmt: $work/multi30k is missing: generated data" "$work/err"
check "a limit ends it after the first round" train --networks tree-fc --rounds 100 --limit 0.001
check "the rounds are told" grep -q 'median (quartiles) of 1 rounds' "$work/out"
profiled() { echo '4 0.01' | env VPPS_CACHE_DIR="$work/policies" "$build/bench/bench_train" tree-lstm-2type --policy auto --hidden 8 --embed 8 --examples 100 > "$work/out" 2>&1; }
check "a profile of several batches comes first" profiled
check "an unknown network fails" fails train --networks nothing
check "and is named" grep -q -- "--networks: nothing is not one of" "$work/err"
check "a way that fails fails" fails train --networks tree-fc --with=--no-such-option
check "its message" grep -q "tree-fc, VPPS --no-such-option: left out: .*no-such-option" "$work/err"
check "the other way is measured" lines 1 '^\| tree-fc \| VPPS \| [0-9]' "$work/out"

worker() { echo "$1" | "$build/bench/bench_train" tree-fc > "$work/out" 2> "$work/err"; }
check "a batch of 0 fails" fails worker "0 1"
check "what was expected" grep -q "expected BATCH SECONDS" "$work/err"
check "an unknown network fails" fails "$build/bench/bench_train" nothing 2> /dev/null

# predict.py with a stand-in for the benchmark, whose device takes longer by pessimistic latencies, and does not end in bf16.
mkdir -p "$work/predict/bench"
cat > "$work/predict/bench/bench_train" << 'SH'
#!/bin/bash
read -r batch _ examples
echo "$*: $batch $examples" >> "$BUILD/calls"
[[ $* != *"--precision bf16 "* ]] || exec sleep 1000
echo "{\"device_ms\": 0.${GPUMODEL_L2:-270}, \"nodes\": 7, \"vps\": 132}"
SH
printf '#!/bin/bash\nprintf "Networks:\\n  rvnn  recursive\\n  act  adaptive\\n\\n"\n' > "$work/predict/vpps"
chmod +x "$work/predict/vpps" "$work/predict/bench/bench_train"
predict() {
    BUILD=$work/predict VPPS=$work/predict/vpps VPPS_LIBCUDA=none python3 bench/predict.py --log "$work/log.jsonl" --data "$work" "$@" > "$work/out" 2> "$work/err"
}
calls() { [ "$(wc -l < "$work/predict/calls")" -eq "$1" ]; }
check "predicts" predict --batches 1 --precisions fp32,bf16 --examples 2 --limit 1
check "a row for each network, precision and setting" calls 8
check "hidden 256" grep -q '^act .*--hidden 256 --embed 256: 1 2$' "$work/predict/calls"
check "a table" lines 2 '^\| (rvnn|act) \| fp32 \| 270\.0 \| 340\.0 \|$' "$work/out"
check "without what took too long" lines 0 '^\| act \| bf16 \|' "$work/out"
check "which the log says" lines 4 '"over": 1' "$work/log.jsonl"
check "again" predict --batches 1,16 --precisions fp32,bf16 --networks act --examples 2 --limit 0.9
check "makes what is not there" calls 12
check "and adds it to the table" lines 1 '^\| act \| fp32 \| 270\.0 \| 340\.0 \| 270\.0 \| 340\.0 \|$' "$work/out"
check "prints" predict --table --batches 1 --settings default
check "the table alone" lines 2 '^\| (rvnn|act) \| fp32 \| 270\.0 \|$' "$work/out"
check "and makes nothing" calls 12
check "with more options" predict --batches 1 --precisions fp32 --networks act --settings default --with "--hidden 512"
check "a row of its own" calls 13
check "which come last" grep -q '^act .*--hidden 256 --embed 256 --hidden 512: 1 8$' "$work/predict/calls"
check "which the log says" lines 1 '"with": "--hidden 512"' "$work/log.jsonl"
check "and whose table has no others" lines 1 '^\| act \| fp32 \|' "$work/out"
summary
