#!/usr/bin/env bash
# The lattice LSTM, no pretrained vectors: on Weibo's messages with names tagged (the revised annotation), where words of
# a lexicon are found in the characters; or on ready-made lattices of ids, which lattice_text.py makes characters and a
# lexicon. VPPS_DATA: folder with weibo_ner/ and lattice_ids/ (default ../shared/data).
#
#     bench/recipes/weibo.sh [DATA] [OPTION...]      DATA: weibo (the default), lattice-ids
set -euo pipefail
data=weibo
if [ $# -gt 0 ] && [[ $1 != -* ]]; then
    data=$1
    shift
fi
folder=${VPPS_DATA:-../shared/data}
weibo=$folder/weibo_ner/weiboNER_2nd_conll
common=(--optimizer adam --lr 0.002 --dropout 0.5 --clip 5 --hidden 128 --embed 64 --seed 1)
case $data in
weibo)
    recipe=(--train "$weibo.train" --dev "$weibo.dev" --test "$weibo.test" --lexicon "$folder/weibo_ner/lexicon.txt"
        --batch 8 --min-count 2 --lr-decay 0.9 --epochs 15)
    ;;
lattice-ids)
    made=${BUILD:-build}/bench/lattice_text
    python3 "$(dirname "$0")/lattice_text.py" "$folder/lattice_ids" "$made"
    recipe=(--data "$made" --lexicon "$made/lexicon" --batch 16 --lr-decay 0.8 --epochs 8)
    ;;
*) echo "weibo: no recipe for '$data'" >&2; exit 2 ;;
esac
exec "${VPPS:-build/vpps}" train lattice-lstm "${common[@]}" "${recipe[@]}" "$@"
