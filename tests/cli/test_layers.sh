#!/bin/bash
# test_layers.sh - networks of several layers: training, resuming, --init, and all that makes words step by step. VPPS names the
# program (default: build/vpps).

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
fresh() { exits 0 "$vpps" train lstm-lm --vps 1 --examples 24 --epochs 0 --eval-every 0 --json "$@"; }
check "--init: as many layers as the file" fresh --init lstm-lm.ckpt
check "--init: all of them" json out "o['layers'] == 2 and o['init']['whole'] + o['init']['partly'] == o['init']['parameters'] == 27"
more() {
    fresh --init lstm-lm.ckpt --layers 3 && json out "o['layers'] == 3 and o['init']['whole'] + o['init']['partly'] == 27" && says err "took 27 of 39" &&
        says err ", lstm3.W_i," && says err "lstm3.b_u"
}
check "--init with more layers takes those that there are, and says what it did not" more

fewer() {
    fresh --init lstm-lm.ckpt --layers 1 && says err "took 15 of 15 parameters" && says err "; lstm-lm has no lstm2.W_i, lstm2.U_i, " &&
        ! grep -q optimizer err
}
check "--init with fewer layers says what of the file it did not take" fewer
whole_file() { fresh --init lstm-lm.ckpt && ! grep -q "has no" err; }
check "--init with as many layers has nothing to say of that" whole_file

# ---------------------------------------------------------------- word by word: the states of all layers

printf '%s\n' 'a b' 'a b c' 'a c' 'b' 'a b' 'c a' >text
check "a language model of 3 layers on short sentences" exits 0 "$vpps" train lstm-lm --train text --min-count 1 --layers 3 --hidden 6 \
    --embed 5 --batch 2 --vps 1 --quiet --lr 0.02 --eval-every 0 --epochs 12 --save short.ckpt
generated() { # the log-probabilities of what is generated are those that predict says of it
    exits 0 "$vpps" generate --vps 1 --model short.ckpt --json --count 6 --max-words 30 --seed 3 && cp out lines && python3 -c "
import json
for l in open('lines'): print(json.loads(l)['text'])" >said && "$vpps" predict --vps 1 --model short.ckpt --json <said >scored &&
        python3 - <<'PY'
import json
a, b = ([json.loads(l) for l in open(f) if l.strip()] for f in ('lines', 'scored'))
a = [x for x in a if x['text']] # of nothing, predict says nothing
assert len(a) == len(b) > 3 and all(abs(x['log_probability'] - y['log_probability']) < 1e-3 for x, y in zip(a, b)), (a, b)
assert any(len(x['text'].split()) > 1 for x in a), a
PY
}
check "generate: what predict says of it" generated
translated() { # greedy search by the device and by the host, and a beam that is no worse
    printf '%s\n' 'a b c' 'a' 'b c b' >sources
    for how in '--beam 1 --max-words 9' '--beam 1 --max-words 2000' '--beam 4 --length-penalty 0 --max-words 9'; do
        # shellcheck disable=SC2086
        "$vpps" predict lstm-nmt --vps 1 --model attention.ckpt --json $how <sources >>said2 2>err || { cat err; return 1; }
    done
    python3 - <<'PY'
import json
a = [json.loads(l) for l in open('said2')]
assert len(a) == 9, a
device, host, beam = a[:3], a[3:6], a[6:]
for x, y, z in zip(device, host, beam):
    assert len(x['translation'].split()) < 9, x
    assert x['translation'] == y['translation'] and abs(x['score'] - y['score']) < 1e-4, (x, y)
    assert z['score'] >= x['score'] - 1e-4, (x, z)
PY
}
mkdir pairs
python3 - <<'PY'
s = [' '.join('abc'[(i // 3 ** k) % 3] for k in range(1 + i % 4)) for i in range(81)]
for end, words in (('de', 'abc'), ('en', 'xyz')):
    open(f'pairs/train.{end}', 'w').write(''.join(x.translate(str.maketrans('abc', words)) + '\n' for x in s))
PY
check "lstm-nmt --attention --layers 3" exits 0 "$vpps" train lstm-nmt --data pairs --source de --target en --min-count 1 --attention \
    --layers 3 --hidden 12 --embed 8 --batch 8 --vps 1 --quiet --lr 0.02 --eval-every 0 --epochs 6 --save attention.ckpt
check "greedy search by device and host" translated

summary
