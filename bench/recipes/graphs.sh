#!/usr/bin/env bash
# The Stanford Sentiment Treebank as graphs: a node for each constituent with its label, leaves with their words, and an edge from
# each to its parent, of type left or right. VPPS_DATA: folder with sst/ (default ../shared/data), which has train.txt, dev.txt and
# test.txt, a tree a line.
#
#     bench/recipes/graphs.sh [OPTION...]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for part in train dev test; do
    python3 - "${VPPS_DATA:-../shared/data}/sst/$part.txt" >"$folder/$part.txt" <<'PY'
import re
import sys


def add(tokens, lines):
    """The next subtree of the tokens as lines; the number of its root."""
    label, children, word = next(tokens), [], "*"
    while (token := next(tokens)) != ")":
        if token == "(":
            children.append(add(tokens, lines))
        else:
            word = token
    lines["node"].append(f"node {word} {label}")
    number = len(lines["node"])
    lines["edge"] += (f"edge {child} {number} {side}" for child, side in zip(children, ("left", "right")))
    return number


for line in open(sys.argv[1], encoding="utf-8"):
    tokens = iter(re.findall(r"[()]|[^\s()]+", line))
    if next(tokens, None) == "(":
        lines = {"node": [], "edge": []}
        add(tokens, lines)
        print("graph", *lines["node"], *lines["edge"], sep="\n")
PY
done
"${VPPS:-build/vpps}" train gat --data "$folder" --rounds 4 --dropout 0.3 --batch 16 --epochs 3 --seed 1 "$@"
