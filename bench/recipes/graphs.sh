#!/usr/bin/env bash
# The Stanford Sentiment Treebank as graphs (tree_graphs.py). VPPS_DATA: folder with sst/ (default ../shared/data), which has train.txt,
# dev.txt and test.txt, a tree a line.
#
#     bench/recipes/graphs.sh [OPTION...]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for part in train dev test; do
    "${BASH_SOURCE%/*}/tree_graphs.py" "${VPPS_DATA:-../shared/data}/sst/$part.txt" >"$folder/$part.txt"
done
"${VPPS:-build/vpps}" train gat --data "$folder" --rounds 4 --dropout 0.3 --batch 16 --epochs 3 --seed 1 "$@"
