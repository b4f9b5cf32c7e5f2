#!/bin/bash
# test_crf.sh - taggers with a conditional random field, and tags that a scheme allows. VPPS names the program (default: build/vpps).

# shellcheck source=SCRIPTDIR/common.sh
source "$(realpath "$(dirname "$0")")/common.sh"

# Each color is told by the word before it alone: after "to" comes I-A, after "from" I-B; a name goes on for two words.
python3 - <<'PY'
import random
draw = random.Random(1)
def lines(n):
    for _ in range(n):
        words = []
        for _ in range(draw.randint(1, 3)):
            kind = draw.choice('AB')
            words += ['go|O', ('to' if kind == 'A' else 'from') + '|O', f'{draw.choice(["red", "blue"])}|B-{kind}', f'town|I-{kind}']
        yield ' '.join(words) + '\n'
open('train.txt', 'w').writelines(lines(120))
open('dev.txt', 'w').writelines(lines(40))
PY
net=("$vpps" train bilstm-tagger --crf --train train.txt --dev dev.txt --hidden 8 --embed 6 --mlp 0 --min-count 1 --vps 2 --optimizer adam --lr 0.03 --force)

learns() {
    exits 0 "${net[@]}" --epochs 20 --batch 8 --quiet --log learned.jsonl --save learned.st && exits 0 "$vpps" eval --model learned.st --split dev --json &&
        json out "o['metrics']['f1'] > 0.95"
}
check "it learns" learns
transitions() { # what never comes is worth less than what does: entry i * 5 + j is of tag j and tag i after it
    holds "len(floats(load('learned.st')['crf.transitions'])) == 25 and len(floats(load('learned.st')['crf.begin'])) == 5"
}
check "its parameters" transitions
same_tags() { # what predict says is what eval counts
    sed 's/|[^ ]*//g' dev.txt > words.txt && exits 0 "$vpps" predict --model learned.st words.txt && mv out predicted.txt &&
        exits 0 "$vpps" eval --model learned.st --test predicted.txt --json && json out "o['metrics']['accuracy'] == 1"
}
check "predict says what eval counts" same_tags
scores() { # probabilities of each tag whatever the others are
    exits 0 "$vpps" predict --model learned.st words.txt --json --top 5 && json out "all(abs(sum(s['score'] for s in t['top']) - 1) < 1e-4 for t in o['tags'])"
}
check "predict --json" scores
check "--resume" broken 8 --batch 20 --epochs 2
begins() { # with the parameters of a tagger without one, and of one with one
    exits 0 "${net[@]/--crf/--quiet}" --epochs 1 --save plain.st && exits 0 "${net[@]}" --quiet --epochs 0 --init plain.st --save init.st &&
        holds "load('init.st')['W_s'] == load('plain.st')['W_s'] and not any(floats(load('init.st')['crf.end']))" &&
        exits 0 "${net[@]}" --quiet --epochs 0 --init learned.st --save init.st &&
        holds "load('init.st')['crf.transitions'] == load('learned.st')['crf.transitions']"
}
check "--init" begins
check "with characters" exits 0 "$vpps" train bilstm-char-tagger --crf --examples 60 --hidden 6 --embed 4 --character-embed 4 --mlp 0 --epochs 1 --quiet --verify
check "a transformer" exits 0 "$vpps" train transformer-tagger --crf --train train.txt --hidden 8 --heads 2 --min-count 1 --vps 2 --quiet --epochs 1 --verify
lattices() { # characters; what predict says is what eval counts, and the tags stand by the scheme
    "$vpps" train lattice-lstm --crf --examples 40 --hidden 6 --embed 4 --vps 2 --epochs 2 --quiet --verify --save lattices.st >out 2>err || return 1
    holds "len(floats(load('lattices.st')['crf.begin']))**2 == len(floats(load('lattices.st')['crf.transitions']))" &&
        printf 'abc\nca b\n' >characters.txt && exits 0 "$vpps" predict --model lattices.st characters.txt && mv out predicted.txt &&
        exits 0 "$vpps" eval --model lattices.st --test predicted.txt --json && json out "o['metrics']['accuracy'] == 1"
}
check "lattices" lattices
check "under software SIMT" exits 0 "${net[@]}" --quiet --epochs 1 --max-batches 2 --device simt --verify

# ---------------------------------------------------------------- schemes

invalid() { # sentences of out with an I- tag that goes on from nothing
    python3 - <<'PY'
bad = 0
for line in open('out'):
    before = 'O'
    for tag in (w.rsplit('|', 1)[1] for w in line.split()):
        bad += tag[0] == 'I' and (before[0] == 'O' or before[2:] != tag[2:])
        before = tag
print(bad)
PY
}
allowed() { # a tagger that has learned next to nothing
    exits 0 "${net[@]/--crf/--quiet}" --epochs 0 --seed "$1" --save poor.st && exits 0 "$vpps" predict --model poor.st words.txt && cp out any.txt && [ "$(invalid)" -gt 0 ] &&
        exits 0 "$vpps" predict --model poor.st --scheme iob2 words.txt && [ "$(invalid)" -eq 0 ]
}
some_allowed() { for seed in 1 2 3 4 5 6 7 8; do allowed $seed && return 0; done; return 1; }
check "--scheme iob2 lets no I- tag go on from nothing" some_allowed
measured() {
    cp out predicted.txt && exits 0 "$vpps" eval --model poor.st --scheme iob2 --test predicted.txt --json && json out "o['metrics']['accuracy'] == 1"
}
check "eval --scheme counts the same tags" measured
printf 'go|V now|A\nrun|V|A there|A\n' > pos.txt
check "--scheme wants tags of chunks" fails_with 1 "--scheme: the network's tags are not those of chunks" "$vpps" train bilstm-tagger --train pos.txt --dev pos.txt --hidden 4 --embed 4 \
    --min-count 1 --epochs 1 --scheme iob2 --quiet
check "--label-smoothing" fails_with 1 "--crf: its loss is of all tags of a sentence together; expected no --label-smoothing" "${net[@]}" --label-smoothing 0.1
check "--class-weights" fails_with 1 "expected no --class-weights" "${net[@]}" --class-weights balanced
check "--train-accuracy" fails_with 1 "--train-accuracy counts each word's tag by itself; expected no --crf" "${net[@]}" --train-accuracy
check "--train-accuracy and a scheme" fails_with 1 "by itself; expected no --scheme" "${net[@]/--crf/--quiet}" --train-accuracy --scheme iob2
check "tags of another scheme" fails_with 1 "--scheme: the network's tag 'B-" "${net[@]}" --scheme iobes
check "tags of another scheme, in predict" fails_with 1 "is of another scheme" "$vpps" predict --model poor.st --scheme iobes words.txt

summary
