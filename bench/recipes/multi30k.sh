#!/usr/bin/env bash
# Translation from German to English on Multi30k, with attention: captions of pictures, 29,000 pairs. A pass over them
# takes some minutes on two cores. VPPS_DATA: folder with multi30k/ (default ../shared/data).
#
#     bench/recipes/multi30k.sh [OPTION...]
set -euo pipefail
recipe=(--attention --min-count 2 --hidden 256 --embed 256 --dropout 0.3
    --optimizer adam --lr 0.002 --lr-decay 0.8 --clip 5 --batch 32 --epochs 5 --seed 1)
exec "${VPPS:-build/vpps}" train lstm-nmt --data "${VPPS_DATA:-../shared/data}/multi30k" --source de --target en \
    "${recipe[@]}" "$@"
