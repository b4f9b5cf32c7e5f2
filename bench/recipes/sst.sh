#!/usr/bin/env bash
# Networks on the Stanford Sentiment Treebank, five classes, no pretrained vectors: the recipes of the README's accuracy
# figures. Each takes 5 to 30 s on two quiet cores, td-lstm some minutes. VPPS_DATA: folder with sst/ (default ../shared/data).
#
#     bench/recipes/sst.sh [NETWORK] [OPTION...]      NETWORK: tree-lstm (the default), tree-gru, tree-lstm-2type, rvnn, mv-rnn,
#                                                    td-rnn, td-lstm
set -euo pipefail
network=tree-lstm
if [ $# -gt 0 ] && [[ $1 != -* ]]; then
    network=$1
    shift
fi
common=(--optimizer adagrad --batch 25 --weight-decay 1e-4 --seed 1)
case $network in
tree-lstm) recipe=(--hidden 128 --embed 128 --lr 0.03 --dropout 0.4 --epochs 6) ;;
tree-gru | tree-lstm-2type | rvnn) recipe=(--hidden 150 --embed 150 --lr 0.05 --dropout 0.3 --epochs 4) ;;
td-rnn) recipe=(--hidden 150 --lr 0.02 --dropout 0.4 --epochs 6) ;;
td-lstm) recipe=(--hidden 100 --embed 100 --lr 0.03 --dropout 0.4 --epochs 5) ;;
mv-rnn) recipe=(--hidden 25 --lr 0.05 --dropout 0.3 --epochs 4) ;;
*) echo "sst: no recipe for '$network'" >&2; exit 2 ;;
esac
exec "${VPPS:-build/vpps}" train "$network" --data "${VPPS_DATA:-../shared/data}/sst" "${common[@]}" "${recipe[@]}" "$@"
