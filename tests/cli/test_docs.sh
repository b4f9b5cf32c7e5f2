#!/bin/bash
# test_docs.sh - the commands of doc/tutorial.md and doc/script.md: each ```console block is run, one folder a file, and
# what it prints must be what stands there, but for numbers, which depend on the machine.

# shellcheck source=SCRIPTDIR/common.sh
repository=$(realpath "$(dirname "$0")/../..")
source "$(dirname "$0")/common.sh"

mkdir bin
ln -s "$vpps" bin/vpps
PATH=$PWD/bin:$PATH

runs() { python3 "$repository/tests/common/run_doc.py" "$1"; }
for doc in tutorial script; do
    mkdir -p "$work/$doc"
    cd "$work/$doc" || exit 1
    check "doc/$doc.md" runs "$repository/doc/$doc.md"
    check "doc/$doc.md is named in the README" grep -qF "doc/$doc.md" "$repository/README.md"
done
check "the picture is of that script" sh -c "'$repository/tools/script_svg.py' < script.txt | cmp - '$repository/doc/script.svg'"
check "links lead somewhere" python3 - "$repository" <<'PY'
import glob, os, re, sys
for path in glob.glob(sys.argv[1] + '/doc/*.md') + [sys.argv[1] + '/README.md']:
    for link in re.findall(r'\]\(([^)#:]+)\)', open(path, encoding='utf-8').read()):
        assert os.path.exists(os.path.join(os.path.dirname(path), link)), (path, link)
PY
cd "$work" || exit 1
summary
