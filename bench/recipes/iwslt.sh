#!/usr/bin/env bash
# Translation on the 2,821 pairs of IWSLT 2015 that are at hand (tst2012 to train on, tst2013 to measure): far too few to
# learn from, but the lengths are those of talks. VPPS_DATA: folder with iwslt15_envi/ (default ../shared/data).
#
#     bench/recipes/iwslt.sh [OPTION...]
set -euo pipefail
folder=${VPPS_DATA:-../shared/data}/iwslt15_envi
exec "${VPPS:-build/vpps}" train lstm-nmt --attention --train "$folder/tst2012" --test "$folder/tst2013" --source en \
    --target vi --optimizer adam --lr 0.002 --lr-decay 0.9 --clip 5 --batch 32 --hidden 128 --embed 128 --dropout 0.3 \
    --min-count 2 --epochs 8 --seed 1 "$@"
