#!/bin/bash
# test_docs.sh - the documents. ```console blocks are run, a folder for each chapter, and must print what stands there, but for numbers,
# which depend on the machine; own-network.md has a test of its own, and python.md is run by the Python package's. ```c blocks compile.
# README.md's commands run. Pictures are those that the commands draw. Links lead somewhere, and the book names every chapter.

# shellcheck source=SCRIPTDIR/common.sh
repository=$(realpath "$(dirname "$0")/../..")
source "$(dirname "$0")/common.sh"

mkdir bin
ln -s "$vpps" bin/vpps
PATH=$PWD/bin:$PATH

runs() { python3 "$repository/tests/common/run_doc.py" "$1"; }
compiles() {
    python3 "$repository/tests/common/compile_doc.py" "$1" -- "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -I"$repository/include"
}
# The first run on a machine measures its products, and says so: no document shows that.
check "a first run" exits 0 "$vpps" train tree-lstm --examples 8 --batch 4 --max-batches 1 --eval-every 0 --quiet
compiled_here=(library many-machines)
for doc in "${compiled_here[@]}"; do check "doc/$doc.md compiles" compiles "$repository/doc/$doc.md"; done
run_here=(tutorial data training gpu c-export script)
for doc in "${run_here[@]}"; do
    mkdir -p "$work/$doc"
    cd "$work/$doc" || exit 1
    check "doc/$doc.md" runs "$repository/doc/$doc.md"
done
drawn_by() { "$repository/tools/$1" <"$2" | cmp - "$repository/doc/$3"; } # TOOL TEXT PICTURE
check "the picture is of that plan" drawn_by model_svg.py ../gpu/plan.json plan.svg
check "the picture is of those cells" drawn_by model_svg.py cell.json cell.svg
check "the picture is of that script" drawn_by script_svg.py script.txt script.svg
# Of every chapter with blocks in a language: a test runs them.
all_blocks_run() {
    local language=$1
    shift
    diff <(printf '%s\n' "$@" | sort) <(cd "$repository/doc" && grep -lE "^ *\`\`\`$language\$" ./*.md | sed 's|^./||; s|\.md$||' | sort)
}
check "console blocks" all_blocks_run console "${run_here[@]}" own-network
check "C blocks" all_blocks_run c "${compiled_here[@]}" own-network contributing
check "Python blocks" all_blocks_run python contributing python
check "no other blocks" sh -c "! grep -nE '^ *\`\`\`[a-z]' '$repository'/doc/*.md | grep -vE ':(console|c|python)$|\`(console|c|python)$'"
# SUMMARY.md as mdBook reads it: a title, then a list of links, two blanks deeper for a part of a chapter. Every chapter is in it once.
in_summary() {
    python3 - "$repository/doc" <<'PY'
import os, re, sys
lines = open(sys.argv[1] + '/SUMMARY.md', encoding='utf-8').read().splitlines()
assert re.fullmatch('# .+', lines[0]) and lines[1] == '', lines[:2]
depth, chapters = 0, []
for line in lines[2:]:
    match = re.fullmatch(r'((?:  )*)- \[([^\]]+)\]\(([\w-]+\.md)\)', line)
    assert match and len(match[1]) // 2 <= depth + 1, line
    depth = len(match[1]) // 2
    chapters.append(match[3])
    head = open(os.path.join(sys.argv[1], match[3]), encoding='utf-8').readline()
    assert head == f'# {match[2]}\n', (line, head)
assert sorted(chapters) == sorted(f for f in os.listdir(sys.argv[1]) if f.endswith('.md') and f != 'SUMMARY.md'), chapters
PY
}
check "the book has every chapter, under its name" in_summary
if command -v mdbook >/dev/null; then
    check "mdbook makes it" mdbook build "$repository/doc" -d "$work/book"
else
    skip "mdbook makes the book" "there is no mdbook"
fi
check "links lead somewhere" python3 - "$repository" <<'PY'
import glob, os, re, sys

def text(path):
    return open(path, encoding='utf-8').read()

def anchors(path):
    return {re.sub(r'[^\w -]', '', h.lower()).replace(' ', '-') for h in re.findall(r'^#+ (.*)$', text(path), re.M)}

for path in glob.glob(sys.argv[1] + '/doc/*.md') + [sys.argv[1] + '/README.md']:
    for link, anchor in re.findall(r'\]\(([^)#:]*)#?([^):]*)\)', text(path)):
        to = os.path.join(os.path.dirname(path), link) if link else path
        assert os.path.exists(to), (path, link)
        assert not anchor or anchor in anchors(to), (path, link, anchor)
PY
# README.md's commands on data of one's own, with small networks on small data; DIR is a folder of trees, for a language model of text.
runs_readme() (
    mkdir readme readme/trees readme/text && cd readme || return 1
    for part in train dev test; do
        printf '(3 (2 a) (4 (2 fine) (2 film)))\n(1 (2 a) (0 (1 dull) (2 film)))\n' >trees/$part.txt
        printf 'a fine film\na dull film\n' >text/$part.txt
    done
    cp trees/test.txt trees.txt
    sed -n '/^    build/{s|build/||g; p; }' "$repository/README.md" | sed -E 's/  +#.*//; /lstm-lm/s/DIR/text/; s/DIR/trees/
        s/train [a-z][a-z-]+ /&--hidden 8 --embed 8 --min-count 1 --quiet /' >commands
    [ "$(wc -l <commands)" -ge 5 ] && cat commands && bash -ex commands
)
check "README.md's commands run" runs_readme
check "functions and options that are named are there" python3 - "$repository" <<'PY'
import glob, re, sys
root = sys.argv[1]
text = lambda *names: ''.join(open(f, encoding='utf-8').read() for name in names for f in glob.glob(f'{root}/{name}', recursive=True))
sources = set(re.findall(r'\bvpps_\w+', text('include/*.h', 'src/**/*.[chd]*', 'models/*.[ch]'))) | set(re.findall(r'vpps_node (vpps_\w+)\(', text('doc/contributing.md')))  # which it adds
options = set(re.findall(r'Fl -([a-z][\w-]*)', text('doc/vpps.1'))) | {'dynet-autobatch'}  # which is DyNet's
for path in glob.glob(root + '/doc/*.md') + [root + '/README.md']:
    chapter = open(path, encoding='utf-8').read()
    unknown = set(re.findall(r'\bvpps_[a-z]\w+', chapter)) - sources - {'vpps_data'}
    unknown |= {f'--{o}' for o in re.findall(r'`--([a-z][\w-]*)', chapter)} - {f'--{o}' for o in options}
    assert not unknown, (path, unknown)
PY
check "README.md's table of speed has the numbers of doc/performance.md" python3 - "$repository" <<'PY'
import re, sys
text = lambda name: open(f'{sys.argv[1]}/{name}', encoding='utf-8').read()
rows = re.findall(r'^\| (?:VPPS|PyTorch|DyNet).*', text('README.md'), re.M)
numbers = [n for row in rows for n in re.findall(r'(?<=[| ])[\d,]+(?= [|/])', row.split('|', 2)[2])]
measured = set(re.findall(r'(?<=\| )[\d,]+', text('doc/performance.md')))
assert len(rows) == 3 and len(numbers) > 12 and set(numbers) <= measured, (rows, numbers, set(numbers) - measured)
PY
check "README.md has at most 200 lines" test "$(wc -l < "$repository/README.md")" -le 200
cd "$work" || exit 1
summary
