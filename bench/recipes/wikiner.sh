#!/usr/bin/env bash
# Taggers on WikiNER (10,000 sentences of Wikipedia, tagged with names; dev is Wikigold), no pretrained vectors. VPPS_DATA:
# folder with wikiner/ (default ../shared/data), where train.txt and dev.txt have a sentence a line, each word as word|TAG.
#
#     bench/recipes/wikiner.sh [NETWORK] [OPTION...]      NETWORK: bilstm-tagger (the default), bilstm-char-tagger
set -euo pipefail
network=bilstm-tagger
if [ $# -gt 0 ] && [[ $1 != -* ]]; then
    network=$1
    shift
fi
common=(--optimizer adam --lr 0.003 --lr-decay 0.7 --batch 32 --clip 5 --epochs 4 --seed 1 --hidden 200 --mlp 200)
case $network in
bilstm-tagger) recipe=(--embed 128 --dropout 0.6 --min-count 2) ;;
bilstm-char-tagger) recipe=(--embed 64 --dropout 0.5 --min-count 5) ;;
*) echo "wikiner: no recipe for '$network'" >&2; exit 2 ;;
esac
exec "${VPPS:-build/vpps}" train "$network" --data "${VPPS_DATA:-../shared/data}/wikiner" "${common[@]}" "${recipe[@]}" "$@"
