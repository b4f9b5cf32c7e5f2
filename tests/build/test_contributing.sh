#!/usr/bin/env bash
# doc/contributing.md: its operation, optimiser and policy, put where it says into a copy of the sources, compile wherever their tables are
# used. And every folder that it names is there.
# shellcheck source=tests/build/stage.sh
. "$(dirname "$0")/stage.sh"

doc=$PWD/doc/contributing.md
cp -r include src models "$work"
mkdir "$work/tests"
cp -r tests/common "$work/tests"
cat > "$work/apply.py" <<'PY'
"""Puts what the document's blocks hold into the files that it names; each must be there once."""
import re, sys
text = re.sub(r'^ +', '', open(sys.argv[1], encoding='utf-8').read(), flags=re.M)
blocks = re.findall(r'^```c\n(.*?)^```$', text, re.M | re.S)

def line(start):
    found = re.findall(rf'^{re.escape(start)}.*$', text, re.M)
    assert len(found) == 1, (start, found)
    return found[0] + '\n'

def block(part):
    found = [b for b in blocks if part in b]
    assert len(found) == 1, (part, found)
    return found[0]

def put(path, anchor, new, after=True):
    old = open(path, encoding='utf-8').read()
    assert old.count(anchor) == 1, (path, anchor)
    open(path, 'w', encoding='utf-8').write(old.replace(anchor, anchor + new if after else new + anchor))

call = re.findall(r'`(VPPS_API .*?;)`', text)
assert len(call) == 1, call
put('include/vpps.h', 'VPPS_API vpps_node vpps_square(vpps_graph *g, vpps_node x);\n', call[0] + '\n')
put('src/graph/ops.def', 'OP(SQRT,', line('OP(CUBE'), after=False)
put('src/isa/isa.def', 'EW(SQRT,', line('EW(CUBE,') + line('EW(CUBE_B,'), after=False)
put('tests/common/meanings.def', 'MEANING(SQRT,', line('MEANING(CUBE'), after=False)
put('include/vpps.h', 'X(ADAMW, "adamw", 2)', ' ' + re.search(r'`(X\(RMSPROP.*?\))`', text)[1])
put('src/isa/steps.h', 'VPPS_OPTIMIZER_STEP(SGD)', block('VPPS_OPTIMIZER_STEP(RMSPROP)'), after=False)
put('src/script/policies.c', '/* ---------------------------------------------------------------- the table */', block('choose_greedy'), after=False)
put('src/script/policies.c', '    {NULL, NULL, false, NULL},', line('{"greedy"'), after=False)
PY
check "its rows and functions are there, once" sh -c "cd '$work' && python3 apply.py '$doc'"
compiles() {
    (cd "$work" && "$CC" -fsyntax-only -fopenmp-simd -std=c11 -Wall -Wextra -Wshadow -Werror -D_GNU_SOURCE -DVPPS_KERNELS_ISA=generic -Iinclude -Isrc \
        -Imodels -Itests "$1")
}
for file in src/graph/build.c src/isa/isa.c src/cell/differentiate.c src/runtime/cpu/kernels.c src/runtime/layout.c src/script/policies.c \
    src/cli/option_table.c; do
    check "$file compiles with them" compiles "$file"
done
check "a test's formula is a row of meanings.def" sh -c "cd '$work' && '$CC' -fsyntax-only -std=c11 -D_GNU_SOURCE -Iinclude -Isrc -Itests \
tests/common/meaning.c"
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
finish
