#!/usr/bin/env bash
# Taggers on WikiNER (10,000 sentences of Wikipedia, tagged with names; dev is Wikigold), no pretrained vectors. VPPS_DATA:
# folder with wikiner/ (default ../shared/data), where train.txt and dev.txt have a sentence a line, each word as word|TAG.
#
#     bench/recipes/wikiner.sh [NETWORK] [OPTION...]      NETWORK: bilstm-tagger (the default), bilstm-char-tagger,
#                                                         transformer-tagger
set -euo pipefail
network=bilstm-tagger
if [ $# -gt 0 ] && [[ $1 != -* ]]; then
    network=$1
    shift
fi
common=(--optimizer adam --batch 32 --clip 5 --epochs 4 --seed 1)
lstm=(--lr 0.003 --lr-decay 0.7 --hidden 200 --mlp 200)
case $network in
bilstm-tagger) recipe=("${lstm[@]}" --embed 128 --dropout 0.6 --min-count 2) ;;
bilstm-char-tagger) recipe=("${lstm[@]}" --embed 64 --dropout 0.5 --min-count 5) ;;
transformer-tagger)
    recipe=(--lr 0.001 --lr-decay 0.8 --warmup 300 --hidden 128 --layers 3 --heads 4 --dropout 0.3 --min-count 2)
    ;;
*) echo "wikiner: no recipe for '$network'" >&2; exit 2 ;;
esac
exec "${VPPS:-build/vpps}" train "$network" --data "${VPPS_DATA:-../shared/data}/wikiner" "${common[@]}" "${recipe[@]}" "$@"
