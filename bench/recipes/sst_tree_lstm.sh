#!/usr/bin/env bash
# The Tree-LSTM on the Stanford Sentiment Treebank, five classes, no pretrained vectors: the recipe of the README's
# accuracy figures. About half a minute on two cores. VPPS_DATA: folder with sst/ (default ../shared/data).
set -euo pipefail
exec "${VPPS:-build/vpps}" train tree-lstm --data "${VPPS_DATA:-../shared/data}/sst" --hidden 128 --embed 128 \
    --optimizer adagrad --lr 0.03 --batch 25 --weight-decay 1e-4 --dropout 0.4 --epochs 6 --seed 1 "$@"
