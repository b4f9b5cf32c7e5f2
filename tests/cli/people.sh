# shellcheck shell=bash
# people.sh - what the tests of `vpps predict` share: sentences of people and places as tags, columns, text and labels; a tagger, tags.ckpt,
# and a classifier, labels.ckpt, that have learned them; and predict. To be sourced after common.sh.

# shellcheck disable=SC2154 # common.sh sets it
small=(--hidden 8 --embed 6 --batch 4 --vps 1 --eval-every 0 --quiet --min-count 1 --lr 0.02 --epochs 12)
python3 - <<'PY'
import random
r = random.Random(1)
names = {'ada': 'PER', 'bob': 'PER', 'oslo': 'LOC', 'rome': 'LOC'}
tagged = []
for _ in range(60):
    words = [r.choice(list(names)), r.choice(['sees', 'likes']), r.choice(['the', 'a']), r.choice(list(names)), '.']
    tagged.append([(w, f'B-{names[w]}' if w in names else 'O') for w in words])
lines = [' '.join(f'{w}|{t}' for w, t in s) for s in tagged]
open('tags', 'w').write('\n'.join(lines) + '\n')
open('columns', 'w').write(''.join(''.join(f'{w} X {t}\n' for w, t in s) + '\n' for s in tagged))
open('text', 'w').write('\n'.join(' '.join(w for w, _ in s) for s in tagged) + '\n')
open('labels', 'w').write(''.join(('person' if 'PER' in s[0][1] else 'place') + '\t' + ' '.join(w for w, _ in s) + '\n' for s in tagged))
PY
check "a tagger" exits 0 "$vpps" train bilstm-tagger --train tags "${small[@]}" --save tags.ckpt
check "a classifier" exits 0 "$vpps" train bilstm-classifier --train labels "${small[@]}" --save labels.ckpt
predict() { "$vpps" predict --vps 1 "$@" >out 2>err; }
