#!/bin/bash
# test_layers.sh - networks of several layers: training, resuming and --init. VPPS names the program (default: build/vpps).

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

small=(--hidden 6 --batch 4 --vps 1 --quiet --json --dropout 0.2 --seed 5 --examples 24)
train() {
    local embed=(--embed 5)
    [ "$1" != transformer-tagger ] || embed=()
    exits 0 "$vpps" train "$1" "${small[@]}" "${embed[@]}" --force "${@:2}"
}

# header FILE EXPRESSION: the Python expression is true of h, the tensors' shapes, and m, the metadata.
header() {
    with_runs "h, m, _ = parts('$1'); h = {k: v['shape'] for k, v in h.items()}; assert eval(sys.argv[1]), (h, m)" "$2"
}

# without FILE TO KEY: a copy that lacks an entry of the metadata.
without() { recast "$1" "$2" "del m['$3']"; }

# ---------------------------------------------------------------- every network that has layers

whole() { # NETWORK EXPRESSION: of two layers, trained, resumed and measured again
    local f=$1
    train "$1" --layers 2 --epochs 2 --save "$f.ckpt" && cp out whole && json whole "o['layers'] == 2" &&
        header "$f.ckpt" "$2 and m['option.layers'] == '2'" && train "$1" --layers 2 --epochs 1 --save half.ckpt &&
        exits 0 "$vpps" train "$1" --vps 1 --quiet --json --resume half.ckpt --epochs 2 && cmp "$f.ckpt" half.ckpt &&
        exits 0 "$vpps" eval "$1" --model "$f.ckpt" --vps 1 --json && holds "last('whole')['metrics'] == last('out')['metrics'] != {}"
}
while IFS='|' read -r network expression; do
    check "$network --layers 2" whole "$network" "$expression"
    check "$network --layers 2: resumed with 1" fails_with 1 "was made with --layers 2: training cannot resume with 1" "$vpps" \
        train "$network" --vps 1 --quiet --resume "$network.ckpt" --layers 1
done <<'LIST'
lstm-lm|h['lstm.W_i'] == [6, 5] and h['lstm2.W_i'] == [6, 6] and h['lstm2.U_o'] == [6, 6] and 'lstm3.W_i' not in h
lstm-lm-fixed|h['lstm2.W_u'] == [6, 6]
bilstm-tagger|h['forward.W_i'] == [6, 5] and h['forward2.W_i'] == h['backward2.W_o'] == [6, 12]
bilstm-char-tagger|h['forward2.W_i'] == h['backward2.W_o'] == [6, 12] and 'spell_forward2.W_i' not in h
bilstm-classifier|h['forward2.W_i'] == h['backward2.W_o'] == [6, 12] and h['forward2.b_f'] == [6]
transformer-tagger|h['layer.W_q'] == [8, 6] and h['layer2.W_o'] == [6, 8] and h['layer2.W_1'] == [24, 6] and h['gain'] == [6]
lstm-nmt|h['encoder2.W_i'] == h['decoder2.W_i'] == [6, 6] and h['W_s'][1] == 6
LIST
check "one layer is the default" train lstm-lm --epochs 1 --save one.ckpt
check "one layer: no number in a name" header one.ckpt "'lstm.W_i' in h and not any('2' in k for k in h)"
same() { train lstm-lm --layers 1 --epochs 1 --save given.ckpt && cmp one.ckpt given.ckpt; }
check "--layers 1 is the same" same
check "a network without layers" fails_with 2 "unrecognized option '--layers" "$vpps" train act --layers 2
check "--layers 0" fails_with 2 "--layers: '0' is not" "$vpps" train lstm-lm --layers 0
check "--layers 17" fails_with 2 "--layers: '17' is not" "$vpps" train lstm-lm --layers 17

# ---------------------------------------------------------------- files that are older than the option; --init

older() {
    without one.ckpt older.ckpt option.layers && exits 0 "$vpps" eval --model one.ckpt --vps 1 --json && cp out before &&
        exits 0 "$vpps" eval --model older.ckpt --vps 1 --json && holds "last('before')['metrics'] == last('out')['metrics'] != {}"
}
check "a checkpoint that does not say how many layers has one" older
check "it is resumed with 2" fails_with 1 "was made with --layers 1: training cannot resume with 2" "$vpps" train lstm-lm --vps 1 \
    --quiet --resume older.ckpt --layers 2
fresh() { exits 0 "$vpps" train lstm-lm --vps 1 --examples 24 --seed 5 --epochs 0 --eval-every 0 --json "$@"; }
check "--init: as many layers as the file" fresh --init lstm-lm.ckpt
check "--init: all of them" json out "o['layers'] == 2 and o['init']['whole'] == o['init']['parameters'] == 27"
more() {
    fresh --init lstm-lm.ckpt --layers 3 && json out "o['layers'] == 3 and o['init']['whole'] == 27" && says err "took 27 of 39" &&
        says err "lstm3.W_i," && says err "lstm3.b_u"
}
check "--init with more layers takes those that there are, and says what it did not" more

fewer() {
    fresh --init lstm-lm.ckpt --layers 1 && says err "took 15 of 15 parameters" && says err "; lstm-lm has no lstm2.W_i, lstm2.U_i, " &&
        ! grep -q optimizer err
}
check "--init with fewer layers says what of the file it did not take" fewer
whole_file() { fresh --init lstm-lm.ckpt && ! grep -q "has no" err; }
check "--init with as many layers has nothing to say of that" whole_file

summary
