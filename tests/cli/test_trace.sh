#!/bin/bash
# test_trace.sh - --trace: what it holds, and the picture that tools/trace_svg.py makes of it.

# shellcheck source=SCRIPTDIR/common.sh
repository=$(realpath "$(dirname "$0")/../..")
source "$(dirname "$0")/common.sh"

tiny=(--examples 160 --hidden 12 --embed 8 --batch 16 --vps 2)
train=("$vpps" train tree-lstm "${tiny[@]}" --epochs 1 --quiet)

# trace FILE EXPRESSION: the Python expression is true of the trace: `t` is the object, `spans` its spans, `on` those of a
# track by its name.
trace() {
    with_runs "
t = json.load(open(sys.argv[1]))
spans = [e for e in t['traceEvents'] if e['ph'] == 'X']
names = {e['args']['name']: e['tid'] for e in t['traceEvents'] if e['name'] == 'thread_name'}
on = lambda name: [e for e in spans if e['tid'] == names[name]]
assert eval(sys.argv[2]), (t['otherData'], sorted({(e['tid'], e['cat'], e['name']) for e in spans})[:60])" "$@"
}

check "train --trace" exits 0 "${train[@]}" --save x.ckpt --trace t.json
check "a line for the host, the device and each VP" trace t.json "list(names) == ['host', 'device cpu', 'VP 0', 'VP 1']"
check "what the host did" trace t.json "{'build graph', 'schedule', 'launch', 'wait for device', 'evaluate', 'save'} <= {e['name'] for e in on('host')}"
check "ten batches of training" trace t.json "sum(e['args']['batch'] > 0 for e in on('device cpu')) == 10"
check "stages by their cells" trace t.json \
    "all({'tree-lstm inner, forward', 'tree-lstm inner, backward', 'embedding, gradients', 'update', 'wait', 'phase 0'} \
<= {e['name'] for e in on(vp)} for vp in ('VP 0', 'VP 1'))"
check "of how many vertices" trace t.json "all(e['args']['vertices'] > 0 for e in spans if e['cat'] == 'stage')"
check "nothing is left out" trace t.json "t['otherData']['batches_left_out'] == 0"

check "--trace-events" exits 0 "${train[@]}" --trace short.json --trace-events 2000
check "it is a limit" trace short.json "t['otherData']['batches_left_out'] > 0 and \
0 < sum(e['cat'] not in ('batch', 'phase') for e in spans) <= 2000"
check "eval --trace" exits 0 "$vpps" eval tree-lstm --model x.ckpt --vps 2 --quiet --trace e.json
check "eval's forward batches" trace e.json "{e['name'] for e in on('device cpu')} == {'forward'}"
predicts() { echo '(-1 (-1 3) (-1 4))' | "$vpps" predict tree-lstm --model x.ckpt --vps 2 --trace p.json; }
check "predict --trace" predicts
check "predict's forward batch" trace p.json "len(on('VP 1')) > 0"
check "unwritable --trace" fails_with 1 "none/t.json: its folder cannot be opened" "${train[@]}" --trace none/t.json
check "no trace without --trace" test ! -e none

if ! not_instrumented; then
    skip "a trace of software SIMT" "software SIMT cannot be followed by ThreadSanitizer" 3
elif command -v c++ > /dev/null && [ "$(uname -m)" = x86_64 ]; then
    check "software SIMT" exits 0 "$vpps" train tree-lstm --hidden 12 --embed 8 --examples 100 --batch 4 --max-batches 1 \
        --eval-every 0 --device simt --quiet --trace simt.json
    check "its launches only" trace simt.json "list(names) == ['host', 'device simt'] and len(on('device simt')) == 1 \
and on('device simt')[0]['dur'] > 0"
    check "their picture" "$repository/tools/trace_svg.py" simt.json
else
    skip "a trace of software SIMT" "no c++" 3
fi

svg=$repository/tools/trace_svg.py
draws() { "$svg" t.json --batch 3 >a.svg && "$svg" t.json --batch 3 >b.svg && cmp a.svg b.svg; }
check "a picture, the same each time" draws
well_formed() { python3 -c 'import sys, xml.dom.minidom as d; d.parse(sys.argv[1])' "$1"; }
check "well-formed" well_formed a.svg
for text in "batch 3" "VP 1" "host" "tree-lstm inner, forward" "gradients of parameters"; do
    check "with $text" says a.svg "$text"
done
check "of a batch that is not there" fails_with 1 "batches 1 to 10, not 11 to 11" "$svg" t.json --batch 11
check "the documents show one" says "$repository/doc/how-it-works.md" "trace.svg"
check "that is well-formed" well_formed "$repository/doc/trace.svg"
check "that names no machine's paths" sh -c "! grep -E '/(home|root|work|tmp|usr)/' '$repository/doc/trace.svg'"

summary
