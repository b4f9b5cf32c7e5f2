#!/usr/bin/env bash
# The Child-Sum Tree-LSTM on the dependency trees of the GUM corpus: each word's relation to its head, or with `labels` each sentence's
# type, is to be told from the words below it. VPPS_DATA: folder with gum/ (default ../shared/data), whose files gum.train.conllu,
# gum.dev.conllu and gum.test.conllu are the documents of github.com/amir-zeldes/gum, dep/ (commit 72ce5ac1), joined by the parts that
# its splits.md names, those of reddit left out: their words are not in it.
#
#     bench/recipes/dependencies.sh [relations|labels] [OPTION...]
set -euo pipefail
what=relations
if [ $# -gt 0 ] && [[ $1 != -* ]]; then
    what=$1
    shift
fi
case $what in
relations) options=(--subtypes cut) ;;
labels) options=(--sentence-label s_type) ;;
*) echo "dependencies: no recipe for '$what'" >&2; exit 2 ;;
esac
exec "${VPPS:-build/vpps}" train child-sum-tree-lstm --data "${VPPS_DATA:-../shared/data}/gum" "${options[@]}" \
    --optimizer adam --lr 0.002 --lr-decay 0.8 --batch 32 --hidden 128 --embed 128 --dropout 0.3 --epochs 6 --seed 1 "$@"
