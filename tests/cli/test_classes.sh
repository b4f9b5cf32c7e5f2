#!/bin/bash
# test_classes.sh - what `vpps eval` says of each class: against what predict says, counted anew.

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

small=(--hidden 16 --embed 12 --batch 16 --vps 2 --quiet)

# ---------------------------------------------------------------- labels of sentences, one of them unseen, one with a comma

python3 - <<'PY'
import random
random.seed(3)
labels = {'good': 'fine nice great', 'bad': 'poor awful sad', 'so, "so"': 'fair plain dull'}
def lines(n, extra=()):
    out = []
    for _ in range(n):
        label = random.choice(list(labels))
        word = random.choice(labels[random.choice(list(labels))] .split()) if random.random() < 0.3 else random.choice(labels[label].split())
        out.append(f"{label}\tthe film is {word}")
    return out + list(extra)
open('train.txt', 'w').write('\n'.join(lines(300)) + '\n')
open('test.txt', 'w').write('\n'.join(lines(80, ['odd\tthe film is fine', 'odd\tthe film is sad'])) + '\n')
PY
check "train a classifier" exits 0 "$vpps" train bilstm-classifier --train train.txt "${small[@]}" --epochs 8 --save c.ckpt
eval=("$vpps" eval bilstm-classifier --model c.ckpt --test test.txt --vps 2)
check "eval --json" exits 0 "${eval[@]}" --json --quiet
cp out c.json
cut -f 2 test.txt | "$vpps" predict bilstm-classifier --model c.ckpt >predicted.txt
counted_anew() {
    python3 - <<'PY'
import collections, json, math
gold = [l.split('\t')[0] for l in open('test.txt')]
said = [l.split('\t')[0] for l in open('predicted.txt')]
assert len(gold) == len(said) == 82
o = json.loads(open('c.json').read())
names = [c['name'] for c in o['classes'][:-1]]
assert sorted(names) == ['bad', 'good', 'so, "so"'], names
assert o['classes'][-1]['name'] == '(unseen)'
assert o['entities'] is None
pairs = collections.Counter(zip(gold, said))
for i, name in enumerate(names + ['odd']):
    row = [pairs[name, other] for other in names]
    assert o['confusion'][i] == row, (name, row, o['confusion'][i])
    right, there, here = pairs[name, name], gold.count(name), said.count(name)
    c = o['classes'][i]
    assert (c['gold'], c['predicted'], c['correct']) == (there, here, right), c
    for key, x in (('precision', right / here if here else None), ('recall', right / there), ('f1', 2 * right / (there + here))):
        assert (c[key] is None) == (x is None), (name, key, c)
        assert x is None or math.isclose(c[key], x, abs_tol=1e-8), (name, key, c)
assert abs(sum(c['correct'] for c in o['classes']) / 82 - o['metrics']['accuracy']) < 1e-6
assert len({c['correct'] for c in o['classes']} - {0}) > 1, 'the network says one class only'
PY
}
check "precision, recall and matrix are what predict says" counted_anew
check "eval as text" prints '^class +precision +recall +F1 +gold +predicted$' "${eval[@]}"
check "with a row a class" grep -qE '^good +[0-9.]+ % +[0-9.]+ % +[0-9.]+ % +[0-9]+ +[0-9]+$' out
check "and one of unseen labels" grep -qE '^\(unseen\) +- +0\.0 % +0\.0 % +2 +0$' out
check "a matrix" grep -qE '^gold \\ predicted' out
check "--quiet" exits 0 "${eval[@]}" --quiet
check "is quiet" empty out

# ---------------------------------------------------------------- tags, and the entities that they are

check "train a tagger" exits 0 "$vpps" train bilstm-tagger --examples 600 "${small[@]}" --epochs 4 --save t.ckpt
check "eval a tagger" exits 0 "$vpps" eval bilstm-tagger --model t.ckpt --vps 2 --json
check "its entities add up" json out "len(o['entities']) == 3 and \
abs(sum(e['correct'] for e in o['entities']) / sum(e['gold'] for e in o['entities']) - o['metrics']['recall']) < 1e-6"
check "its tags add up" json out "abs(sum(c['correct'] for c in o['classes']) / sum(c['gold'] for c in o['classes']) \
- o['metrics']['accuracy']) < 1e-6 and sum(map(sum, o['confusion'])) == sum(c['gold'] for c in o['classes'])"

# ---------------------------------------------------------------- trees: roots, or all nodes

check "train on trees" exits 0 "$vpps" train tree-lstm --examples 300 "${small[@]}" --epochs 1 --save r.ckpt
check "eval counts roots, as many as there are trees" tells "sum(c['gold'] for c in o['classes']) == o['sentences'] and \
abs(sum(c['correct'] for c in o['classes']) / o['sentences'] - o['metrics']['root']) < 1e-6 and len(o['classes']) == 10" "$vpps" eval tree-lstm --model r.ckpt --json
check "eval --classes-of nodes" exits 0 "$vpps" eval tree-lstm --model r.ckpt --json --classes-of nodes
check "counts all nodes" json out "sum(c['gold'] for c in o['classes']) > o['sentences'] and \
abs(sum(c['correct'] for c in o['classes']) / sum(c['gold'] for c in o['classes']) - o['metrics']['nodes']) < 1e-6"

check "a language model has none" exits 0 "$vpps" train lstm-lm --examples 60 "${small[@]}" --epochs 1 --save l.ckpt
check "eval of one" tells "'classes' not in o" "$vpps" eval lstm-lm --model l.ckpt --json

summary
