#!/bin/bash
# test_pictures.sh - every picture of the documents and results, and every one that the command and the tools draw, is rendered: none is
# broken, blank or cut off. And what tools/model_svg.py draws.

# shellcheck source=SCRIPTDIR/common.sh
repository=$(realpath "$(dirname "$0")/../..")
source "$(dirname "$0")/common.sh"

small=(--examples 40 --batch 4 --hidden 8 --embed 8 --vps 2)

# ---------------------------------------------------------------- compiled cells

draw=$repository/tools/model_svg.py
check "cell --json" exits 0 "$vpps" cell rvnn "${small[@]}" --json
cp out cell.json
check "its picture" sh -c "'$draw' < cell.json > cell.svg"
check "the same picture again" sh -c "'$draw' < cell.json | cmp - cell.svg"
has_every_operation() { # the picture has the stages and operations of the cells, in their order, and a line for each value that is kept
    python3 - <<'PY'
import json
from xml.dom import minidom
cells = json.load(open('cell.json'))['cells']
texts = [t.firstChild.data for t in minidom.parse('cell.svg').getElementsByTagName('text')]
expected = []
for cell in cells:
    assert any(t.startswith(f"{cell['name']}: {len(cell['stages'])} stage") for t in texts), (cell['name'], texts)
    for number, stage in enumerate(cell['stages']):
        expected.append(f"stage {number}: {stage['direction']} {stage['part']}, by {stage['split']}")
        expected += [f"{o['value']} = {o['is']}" for o in stage['operations']]
    expected += [g['is'] for g in cell['gradients']]
at = -1
for text in expected:
    at = next(i for i in range(at + 1, len(texts)) if texts[i].startswith(text[:61]))
assert len(expected) > 20, expected
lines = [p for p in minidom.parse('cell.svg').getElementsByTagName('path')]
names = {p.getElementsByTagName('title')[0].firstChild.data for p in lines}
kept = {v['value'] for cell in cells for v in cell['kept']['values']}
assert kept <= names | {o['value'] for c in cells for o in c['outputs']}, (kept, names)
for path in lines: # downwards
    x, y, to = path.getAttribute('d')[1:].replace('V', ' ').split()
    assert float(to) > float(y), path.toxml()
PY
}
check "it has every operation" has_every_operation
check "another input" fails_with 1 "expected what vpps cell --json or vpps plan --json prints" sh -c "echo '{}' | '$draw'"

# ---------------------------------------------------------------- rendered

whole() { python3 "$repository/tests/common/check_svg.py" "$@"; }
broken() { # broken MESSAGE SVG: such a picture is told from a whole one
    printf '%s' "$2" >broken.svg
    if whole broken.svg 2>message; then return 1; fi
    says message "$1"
}
drawn=(plan.svg cell.svg script.svg trace.svg curves.svg)
networks=(lattice-lstm lstm-nmt)
if ! command -v rsvg-convert >/dev/null; then
    skip "pictures are rendered" "there is no rsvg-convert (Debian's librsvg2-bin)" $((6 + ${#drawn[@]} + ${#networks[@]}))
    summary
    exit
fi
svg="<svg xmlns='http://www.w3.org/2000/svg' width='200' height='80' viewBox='0 0 200 80'>"
check "a picture cut short" broken "no element found" "$svg<rect width='50' height='50'/>"
check "a blank picture" broken blank "$svg<rect width='200' height='80' fill='white'/></svg>"
check "text that runs out" broken "outside its borders" "$svg<text x='20' y='40'>More words than there is room for, by far, whatever the font</text></svg>"
check "no size" broken width "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 9 9'/>"
check "the documents' pictures" whole "$repository"/doc/*.svg
if [ "${VPPS_TEST_SCALE:-}" = full ]; then
    check "the results' pictures" whole "$repository"/bench/results/*/*.svg
else
    skip "the results' pictures" "VPPS_TEST_SCALE=full: plot.c draws them like curves.svg"
fi

"$vpps" plan tree-lstm "${small[@]}" --json | "$draw" >plan.svg
"$vpps" script tree-lstm "${small[@]}" >script.txt && "$repository/tools/script_svg.py" <script.txt >script.svg
"$vpps" train tree-lstm "${small[@]}" --epochs 1 --quiet --plot curves.svg --trace trace.json &&
    "$repository/tools/trace_svg.py" trace.json >trace.svg
for picture in "${drawn[@]}"; do check "$picture" whole "$picture"; done
for network in "${networks[@]}"; do
    check "the cells of $network" sh -c "'$vpps' cell $network ${small[*]} --json | '$draw' > $network.svg &&
        python3 '$repository/tests/common/check_svg.py' $network.svg"
done
summary
