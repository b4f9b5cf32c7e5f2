#!/usr/bin/env bash
# A network on trees, on the constituents of the GUM corpus, binarised: every node's phrase or part of speech is to be told
# from the words below it. VPPS_DATA: folder with treebank/ (default ../shared/data).
#
#     bench/recipes/treebank.sh [NETWORK] [OPTION...]      NETWORK: tree-gru (the default), tree-lstm, tree-lstm-2type, rvnn
set -euo pipefail
network=tree-gru
if [ $# -gt 0 ] && [[ $1 != -* ]]; then
    network=$1
    shift
fi
case $network in
tree-lstm | tree-gru | tree-lstm-2type | rvnn) ;;
*) echo "treebank: no recipe for '$network'" >&2; exit 2 ;;
esac
exec "${VPPS:-build/vpps}" train "$network" --data "${VPPS_DATA:-../shared/data}/treebank" \
    --optimizer adam --lr 0.002 --lr-decay 0.8 --batch 32 --hidden 128 --embed 128 --dropout 0.3 --epochs 6 --seed 1 "$@"
