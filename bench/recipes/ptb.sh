#!/usr/bin/env bash
# LSTM language models on the Penn Treebank (10,000 words). A pass over the training text takes some minutes on two
# cores. VPPS_DATA: folder with ptb_lm/ (default ../shared/data).
#
#     bench/recipes/ptb.sh [NETWORK] [OPTION...]      NETWORK: lstm-lm (the default), lstm-lm-fixed
set -euo pipefail
network=lstm-lm
if [ $# -gt 0 ] && [[ $1 != -* ]]; then
    network=$1
    shift
fi
common=(--min-count 1 --optimizer adam --lr 0.003 --lr-decay 0.7 --clip 5 --seed 1 --hidden 200 --embed 200 --dropout 0.3
    --epochs 6)
case $network in
lstm-lm) recipe=(--batch 32) ;;
lstm-lm-fixed) recipe=(--batch 12) ;; # as many words a batch as 32 sentences have
*) echo "ptb: no recipe for '$network'" >&2; exit 2 ;;
esac
exec "${VPPS:-build/vpps}" train "$network" --data "${VPPS_DATA:-../shared/data}/ptb_lm" \
    "${common[@]}" "${recipe[@]}" "$@"
