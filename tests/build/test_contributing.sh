#!/usr/bin/env bash
# doc/contributing.md: its operations, optimiser, policy and device, put where it says into a copy of the sources, and nowhere else, compile
# wherever their tables are used, in the sources and in the tests. And every folder that it names is there.
# shellcheck source=tests/build/stage.sh
. "$(dirname "$0")/stage.sh"

doc=$PWD/doc/contributing.md
cp -r include src models tests "$work"
mkdir -p "$work/python/vpps"
cp python/vpps/ops.py "$work/python/vpps"
cat > "$work/apply.py" <<'PY'
"""Puts what the document's blocks hold into the files that it names; each must be there once."""
import re, sys, textwrap
whole = open(sys.argv[1], encoding='utf-8').read()
text = re.sub(r'^ +', '', whole, flags=re.M)
blocks = [textwrap.dedent(b) for b in re.findall(r'^ *```(?:c|python)\n(.*?)^ *```$', whole, re.M | re.S)]

def line(start):
    found = re.findall(rf'^{re.escape(start)}.*$', text, re.M)
    assert len(found) == 1, (start, found)
    return found[0] + '\n'

def block(part):
    found = [b for b in blocks if part in b]
    assert len(found) == 1, (part, found)
    return found[0]

def put(path, anchor, new, after=True, instead=False):
    old = open(path, encoding='utf-8').read()
    assert old.count(anchor) == 1, (path, anchor)
    open(path, 'w', encoding='utf-8').write(old.replace(anchor, new if instead else anchor + new if after else new + anchor))

call = re.findall(r'`(VPPS_API .*?;)`', text)
assert len(call) == 1, call
put('include/vpps.h', 'VPPS_API vpps_node vpps_square(vpps_graph *g, vpps_node x);\n', call[0] + '\n')
put('src/graph/ops.def', 'OP(SQRT,', line('OP(CUBE'), after=False)
put('src/isa/isa.def', 'EW(SQRT,', line('EW(CUBE,') + line('EW(CUBE_B,'), after=False)
put('tests/common/meanings.def', 'MEANING(SQRT,', line('MEANING(CUBE'), after=False)
put('include/vpps.h', 'X(ADAMW, "adamw", 2, 0.002f)', ' ' + re.search(r'`(X\(RMSPROP.*?\))`', text)[1])
put('src/isa/steps.h', 'VPPS_OPTIMIZER_STEP(SGD)', block('VPPS_OPTIMIZER_STEP(RMSPROP)'), after=False)
put('src/script/header.h', 'X(clip)', ' ' + re.search(r'`(X\(rho\))`', text)[1])
put('include/vpps.h', 'epsilon, weight_decay, clip', ', rho')
put('tests/common/meaning.c', 'case VPPS_SGD:', block('case VPPS_RMSPROP:'), after=False)
put('python/vpps/ops.py', 'square = _unary(', block('_unary("cube"'), after=False)
put('include/vpps.h', 'VPPS_API vpps_node vpps_average(vpps_graph *g, uint32_t n, const vpps_node *xs);\n', line('VPPS_API vpps_node vpps_negated_sum'))
put('src/graph/ops.def', 'OP(MAX_OF,', line('OP(NEGATED_SUM'), after=False)
put('src/isa/isa.def', 'FOLD(WEIGHTED_SUM,', line('FOLD(NEGATED_SUM'), after=False)
put('tests/common/meanings.def', 'MEANING(MAX_OF,', line('MEANING(NEGATED_SUM'), after=False)
listed = line('OP(CENTRE, centre, LISTED')
put('src/graph/ops.def', listed.replace('LISTED', 'UNARY'), listed, instead=True)
put('include/vpps.h', 'VPPS_API vpps_node vpps_softmax_list(vpps_graph *recorder, vpps_node scores);\n', line('VPPS_API vpps_node vpps_centre_list'))
put('src/script/policies.c', 'const vpps_policy vpps_policies[] = {', block('most_ready'), after=False)
put('src/script/policies.c', '    {NULL, false, NULL},', line('{"greedy"'), after=False)
put('src/runtime/device.h', 'X(cuda)', ' ' + line('X(wafer)').strip())
PY
check "its rows and functions are there, once" sh -c "cd '$work' && python3 apply.py '$doc'"
compiles() {
    (cd "$work" && "$CC" -fsyntax-only -fopenmp-simd -std=c11 -Wall -Wextra -Wshadow -Werror -D_GNU_SOURCE -DVPPS_KERNELS_ISA=generic -Iinclude -Isrc \
        -Imodels -Itests "$1")
}
for file in $(grep -rlE '"(graph/ops|isa/isa)\.def"|"isa/steps\.h"|VPPS_OPTIMIZER_(TABLE|NUMBERS)\(|VPPS_OP_COUNT' src tests --include='*.c') src/script/policies.c src/runtime/devices.c; do
    check "$file compiles with them" compiles "$file"
done
check "the Python package compiles with it" python3 -m py_compile "$work/python/vpps/ops.py"
named_inside() { ! grep -rnE '"(cpu|cuda|simt|gpu)"' src/base src/cell src/cli src/graph src/io src/isa src/script; }
check "only a device's own folder names it" named_inside
names() {
    python3 - <<'PY'
import os, re
for document in ('doc/contributing.md', 'doc/testing.md'):
    for name in re.findall(r'`([a-z_]+(?:/[\w.]*)+)`', open(document, encoding='utf-8').read()):
        placeholder = re.search('[A-Z]{3}', name) or name.startswith('build/')
        assert placeholder or any(os.path.exists(base + name) for base in ('', 'src/runtime/', 'src/script/', 'src/cli/', 'python/')), name
PY
}
check "the files and folders that it names are there" names
summary
