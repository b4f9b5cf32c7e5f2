#!/bin/bash
# test_docs.sh - the documents. The ```console blocks of doc/tutorial.md and doc/script.md are run, one folder a file, and must print
# what stands there, but for numbers, which depend on the machine. The ```c blocks of doc/library.md compile. Links lead somewhere, and
# the book names every chapter.

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
check "doc/library.md compiles" compiles "$repository/doc/library.md"
for doc in tutorial script; do
    mkdir -p "$work/$doc"
    cd "$work/$doc" || exit 1
    check "doc/$doc.md" runs "$repository/doc/$doc.md"
done
check "the picture is of that script" sh -c "'$repository/tools/script_svg.py' < script.txt | cmp - '$repository/doc/script.svg'"
in_summary() {
    for file in "$repository"/doc/*.md; do
        [ "${file##*/}" = SUMMARY.md ] || grep -qF "(${file##*/})" "$repository/doc/SUMMARY.md" || return 1
    done
}
check "the book has every chapter" in_summary
check "links lead somewhere" python3 - "$repository" <<'PY'
import glob, os, re, sys
for path in glob.glob(sys.argv[1] + '/doc/*.md') + [sys.argv[1] + '/README.md']:
    for link in re.findall(r'\]\(([^)#:]+)\)', open(path, encoding='utf-8').read()):
        assert os.path.exists(os.path.join(os.path.dirname(path), link)), (path, link)
PY
cd "$work" || exit 1
summary
