#!/usr/bin/env bash
# Translation from lattices on Multi30k, German to English: the source is read by its characters, and by the words of the
# training source that they make. VPPS_DATA: folder with multi30k/ (default ../shared/data), which has train, val and
# test2016, each with .de and .en.
#
#     bench/recipes/lattice_nmt.sh [OPTION...]
set -euo pipefail
exec "${VPPS:-build/vpps}" train lattice-gru --data "${VPPS_DATA:-../shared/data}/multi30k" --source de --target en \
    --optimizer adam --lr 0.002 --lr-decay 0.8 --batch 32 --dropout 0.2 --clip 5 --hidden 128 --embed 128 --min-count 2 --epochs 3 \
    --seed 1 "$@"
