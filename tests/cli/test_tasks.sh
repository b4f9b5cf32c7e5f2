#!/bin/bash
# test_tasks.sh - the `vpps` command on every kind of data it trains networks on: trees, tagged sentences, text,
# lattices, pairs, pairs of lattices, graphs, dependency trees; generated and from files. VPPS names the program (default: build/vpps).

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

# ---------------------------------------------------------------- helpers

training=(--vps 1 --quiet --json --batch 8 --lr 0.01)
small=("${training[@]}" --hidden 16 --embed 8)
# A transformer's embeddings are as large as its state.
sizes_of() { if [ "$1" = transformer-tagger ]; then echo --hidden "$2"; else echo --hidden "$2" --embed 8; fi; }

# fit NAME NETWORK OPTION...: trains; leaves NAME.json, NAME.jsonl, NAME.ckpt.
fit() {
    local name=$1 sizes
    shift
    rm -f "$name.jsonl"
    read -r -a sizes <<<"$(sizes_of "$1" 16)"
    exits 0 "$vpps" train "$1" "${training[@]}" "${sizes[@]}" --force --no-tuning --log "$name.jsonl" --save "$name.ckpt" "${@:2}" && cp out "$name.json"
}

# learns NAME EXPRESSION [SHARE]: the loss of NAME's last epoch is below that share (0.9) of the first, and the Python expression is true of
# its summary o, whose measures are m.
learns() {
    with_runs "
o, epochs = last(sys.argv[1] + '.json'), [o['loss'] for o in lines(sys.argv[1] + '.jsonl', 'epoch')]
m = o.get('metrics')
assert epochs[-1] < float(sys.argv[3]) * epochs[0] and o['loss'] == epochs[-1], (o['loss'], epochs)
assert eval(sys.argv[2]), (sys.argv[2], o)" "$1" "$2" "${3:-0.9}"
}

# same_metrics A.json B.json: the measures are equal, to the last digit.
same_metrics() {
    holds "(a := last('$1'))['metrics'] and a['metrics'] == last('$2')['metrics'] and a.get('signature') == last('$2').get('signature')"
}

# evaluates NAME NETWORK OPTION...: `eval` measures what the end of training did.
evaluates() {
    exits 0 "$vpps" eval "$2" --model "$1.ckpt" --vps 1 --json "${@:3}" && same_metrics "$1.json" out
}

# learned EXPRESSION NAME NETWORK OPTION...: trains, learns, and is measured again. fits EXPRESSION NAME NETWORK OPTION...: trains, and the expression is
# true of the summary. as_good OTHER.json NAME NETWORK OPTION...: trains, and measures what the other one did.
learned() { fit "${@:2}" && learns "$2" "$1" "${share:-0.9}" && evaluates "$2" "$3"; }
fits() { fit "${@:2}" && json "$2.json" "$1"; }
as_good() { fit "${@:2}" && same_metrics "$2.json" "$1"; }

# predict NAME NETWORK OPTION... <INPUT: prints to said. members EXPRESSION NAME NETWORK OPTION...: the expression is true of the JSON that is printed.
# prints_file FILE NAME NETWORK OPTION...: FILE is printed.
predict() { "$vpps" predict "$2" --model "$1.ckpt" --vps 1 "${@:3}" >said 2>err; }
members() { predict "${@:2}" && json said "$1"; }
prints_file() { predict "${@:2}" && diff said "$1"; }

# names NAME CLASS...: eval counts these classes.
names() { exits 0 "$vpps" eval --model "$1.ckpt" --vps 1 --json && json out "sorted(c['name'] for c in o['classes']) == '${*:2}'.split()"; }

# answers INPUT EXPECTED NAME NETWORK OPTION...: both with printf's escapes.
answers() {
    # shellcheck disable=SC2059
    printf "$1" | predict "${@:3}" || { echo "failed: ${*:3}"; cat err; return 1; }
    # shellcheck disable=SC2059
    printf "$2" | diff - said && empty err
}

# refuses INPUT TEXT NAME NETWORK: exit code 1, TEXT on stderr, nothing but empty lines on stdout.
refuses() {
    # shellcheck disable=SC2059
    printf "$1" | predict "${@:3}"
    [ $? -eq 1 ] && says err "$2" && ! grep -q . said
}

# resumes NAME NETWORK OPTION...: two epochs at once, one and one more, and a stop amid the second one, end in the same
# checkpoint and the same measures.
resumes() {
    local name=$1 network=$2
    shift 2
    fit "$name-whole" "$network" --epochs 2 "$@" && fit "$name-half" "$network" --epochs 1 "$@" &&
        exits 0 "$vpps" train "$network" --vps 1 --quiet --json --resume "$name-half.ckpt" --epochs 2 &&
        cmp "$name-whole.ckpt" "$name-half.ckpt" && same_metrics "$name-whole.json" out || return 1
    local batches
    batches=$(python3 -c "import json; print(json.load(open('$name-whole.json'))['batches'] * 3 // 4)")
    fit "$name-middle" "$network" --epochs 2 --max-batches "$batches" "$@" &&
        exits 0 "$vpps" train "$network" --vps 1 --quiet --json --resume "$name-middle.ckpt" --save "$name-rest.ckpt" &&
        cmp "$name-whole.ckpt" "$name-rest.ckpt" && same_metrics "$name-whole.json" out &&
        json out "0 < o['batches'] < $batches"
}

# strip FROM.ckpt TO.ckpt KEY [VALUE]: without an entry of its metadata, or with another value.
strip() {
    recast "$1" "$2" "del m[a[0]]; m.update(zip(a, a[1:]))" "${@:3}"
}

# ---------------------------------------------------------------- data in files

# Small languages that a small network learns at once. train has 240 examples, dev and test 40 (others where noted).
python3 - <<'PY' || exit 1
import os, random
r, labels = random.Random(7), random.Random(8)

def write(path, lines):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, 'w').write(''.join(line + '\n' for line in lines))

def names(): # persons, some with the name of a family, and places
    s = [('the', 'O'), ('old', 'O'), ('man', 'O')] if r.random() < 0.3 else [(r.choice(['ada', 'bob', 'eve']), 'B-PER')]
    if s[0][1] != 'O' and r.random() < 0.5: s.append((r.choice(['ng', 'li']), 'I-PER'))
    return s + [(r.choice(['sees', 'visits']), 'O'), r.choice([('oslo', 'B-LOC'), ('rome', 'B-LOC'), ('rain', 'O')])]

def characters(): # the word "ab" is an entity, whose tag stands at its end
    s = ''.join(r.choice(['ab', 'a', 'b', 'c', 'cd', 'd']) for _ in range(5))
    return [(c, 'B-X' if s[i - 1:i + 1] == 'ab' else 'O') for i, c in enumerate(s)]

def conllu(s): # with a word of two, which is written as one, and a word that is not written
    lines = ['# sent_id = x', '# text = ' + ' '.join(w for w, _ in s)]
    for i, (w, t) in enumerate(s, 1):
        if i == 2: lines.append('2-3\tboth' + 8 * '\t_')
        lines.append(f'{i}\t{w}\tlemma-{w}\t{t}\tX{t}\t_\t{i - 1}\tdep\t_\tSpaceAfter=No')
        if i == 2: lines.append('2.1\tnothing\tnothing\tNOTHING' + 6 * '\t_')
    return lines + ['']

def random_words(): return ' '.join(labels.choices(['a', 'b', 'c', 'd', 'film', 'this'], k=labels.randint(1, 6)))

def columns(sentences, pattern):
    return [line for s in sentences for line in [pattern.format(w, t) for w, t in s] + ['']]

def dependencies(): # a noun with its particle, before or after the verb
    p, r = labels.choice([('of', 'nmod:poss'), ('to', 'obl'), ('from', 'obl:arg')])
    mood = labels.choice(['sad', 'so glad'])
    rows = [(p, 'case', 1), (labels.choice('abc'), r, 0), (mood[-4:], 'advmod', 1)]
    at = labels.randrange(3)
    words = rows[:2] + [('goes', 'root', None)] + rows[2:] if at else [('goes', 'root', None)] + rows
    numbers = {w: i for i, (w, _, _) in enumerate(words, 1)}
    heads = {'case': numbers[rows[1][0]], 'root': 0}
    return [f'# mood = {mood}'] + [f'{i}\t{w}\t_\tX\t_\t_\t{heads.get(d, numbers["goes"])}\t{d}\t_\tid={i}'
                                  for i, (w, d, _) in enumerate(words, 1)] + ['']

def noun(): return r.choice(['(NP (DT the) (NN cat))', '(NP-SBJ (NNP Bob))', '(NP (DT a) (JJ red) (NN fox))'])
def clause(): return f'(S {noun()} (VP (VBZ sees) {noun()}))' if r.random() < 0.5 else f'(S {noun()} (VP (VBZ sits)))'

for part, n in (('train', 240), ('dev', 40), ('test', 40)):
    s = [names() for _ in range(n)]
    write(f'bars/ner.{part}.txt', [' '.join(f'{w}|{t}' for w, t in x) for x in s])
    write(f'tabs/{part}.tsv', columns(s, '{}\tx\t{}'))
    write(f'spaces/{part}_ner', columns(s, '{} x  y {}'))
    write(f'swapped/{part}', ['# a comment of these data'] + columns(s, '{1} x {0} y'))
    write(f'conllu/{part}.conllu', [line for x in s for line in conllu(x)])
    # an ending tells the tag of a word that was hardly ever seen
    s = [[''.join(r.choices('abcdefg', k=4)) + r.choice('xo') for _ in range(4)] for _ in range(n)]
    write(f'endings/{part}', [' '.join(f'{w}|{"B-X" if w[-1] == "x" else "O"}' for w in x) for x in s])
    # the label is told by one of the words
    s = [(k, random_words(), random_words()) for k in labels.choices(['very good', 'bad', 'so'], k=n)]
    write(f'labelled/{part}', [f'{k}\t{a} {dict(so="fair").get(k, k[-3:])} {b}' for k, a, b in s])
    # each word follows from the one before
    s, words = [(r.randrange(6), r.randint(2, 6)) for _ in range(n)], 'zero one two three four five'.split()
    write(f'text/{part}', [' '.join(words[(k + i) % 6] for i in range(m)) for k, m in s])
    # word by word
    s = [[r.randrange(6) for _ in range(r.randint(2, 4))] for _ in range(n)]
    write(f'pairs/{part}.de', [' '.join('ab cd efg ba dc gfe'.split()[i] for i in x) for x in s])
    write(f'pairs/{part}.en', [' '.join('North South East West Up Down'.split()[i] for i in x) for x in s])
    s = [characters() for _ in range(n)]
    write(f'characters/{part}', columns(s, '{} {}'))
    # what a noun is to its verb is told by the word below it; one more is said of the verb
    write(f'depends/{part}.conllu', [line for _ in range(n) for line in dependencies()])
    write(f'trees/{part}.mrg', [clause() for _ in range(n // 4)])
write('./lexicon', ['ab 12 n', 'cd 3 v', 'abc'])
PY
pairs=(--source de --target en)

# ---------------------------------------------------------------- an option belongs to its kind

while read -r command network option; do
    check "$command $network $option" fails_with 2 "'$option'" "$vpps" "$command" "$network" "$option"
done <<'LIST'
train bilstm-tagger --beam=4
train bilstm-tagger --heads=4
train transformer-tagger --mlp=8
train lstm-lm --source=de
train tree-gru --lexicon=x
train tree-gru --beam=4
train lattice-lstm --target=en
train lstm-nmt --generate=listops
train lstm-nmt --lexicon=x
train lattice-gru --leaves=4
train lstm-lm --steps=4
predict lattice-lstm --beam=4
eval lstm-lm-fixed --beam=4
eval lstm-nmt --attention
train lattice-gru --input-feeding
LIST
check "predict bilstm-tagger --output=label" fails_with 2 "--output-format: 'label' is not one of" "$vpps" predict bilstm-tagger --output=label
check "--beam 0" fails_with 2 "--beam: '0' is not" "$vpps" train lstm-nmt --beam 0
check "--length-penalty -1" fails_with 2 "--length-penalty: '-1' is not" "$vpps" train lstm-nmt --length-penalty=-1

# ---------------------------------------------------------------- generated data

# Those of which no files follow below learn until a measure tells; of the others the loss falls (tests/models shows that all learn).

tags="set(m) == {'f1', 'accuracy', 'precision', 'recall'} and all(0 <= m[k] <= 1 for k in m) and o['dev'] \
and o['test'] == m and 'signature' not in o"
accuracy="set(m) == {'accuracy'} and o['test'] == m and o['best_dev'] == o['dev']['accuracy'] and 'signature' not in o"
perplexity="set(m) == {'perplexity', 'unknown'} and 0 <= m['unknown'] < 1 and o['test'] == m \
and o['best_dev'] == o['dev']['perplexity']"
bleu="set(m) == {'bleu', 'perplexity', 'unknown'} and 0 <= m['unknown'] < 1 and 0 <= m['bleu'] <= 100 and o['signature'].startswith('BLEU|')"
while IFS='|' read -r name command expression; do
    read -r -a words <<<"$command"
    share=1 check "$name" learned "$expression" "$name" "${words[@]}"
done <<LIST
trees|tree-gru --examples 600 --epochs 3|set(m) == {'root', 'nodes'} and m['root'] > 0.3 and m['nodes'] > 0.7
tagger|bilstm-tagger --examples 120 --epochs 2 --mlp 8|$tags
speller|bilstm-char-tagger --examples 120 --epochs 2 --mlp 8 --character-embed 8|$tags
nodes|gat --examples 300 --epochs 4 --heads 2|$accuracy and m['accuracy'] > 0.5
transformer|transformer-tagger --examples 500 --epochs 6 --layers 2 --heads 3 --feed-forward 24|$tags and m['f1'] > 0.3 and m['accuracy'] > 0.85
classifier|bilstm-classifier --examples 120 --epochs 2|$accuracy
parity|act --examples 300 --epochs 2|$accuracy
lm|lstm-lm --examples 120 --epochs 2|$perplexity
fixed|lstm-lm-fixed --examples 120 --epochs 2 --steps 16|$perplexity
lattices|lattice-lstm --examples 120 --epochs 2|$tags
nmt|lstm-nmt --examples 300 --epochs 3|$bleu and m['perplexity'] < 75
attention|lstm-nmt --examples 120 --epochs 2 --attention|$bleu
gru|lattice-gru --examples 120 --epochs 2|$bleu
relations|child-sum-tree-lstm --examples 120 --epochs 2|$accuracy
polarity|child-sum-tree-lstm --examples 120 --epochs 2 --sentence-label polarity|$accuracy
LIST

check "text summary: tags" prints '^test +F1 +[0-9.]+ % +accuracy.*precision.*recall.* entities, [0-9]+ tags\)$' "$vpps" eval bilstm-tagger --model tagger.ckpt --vps 1
check "text summary: BLEU" prints '^dev +BLEU [0-9.]+ +perplexity [0-9.]+ +unknown words +[0-9.]+ % +\([0-9]+ sentences, [0-9]+ words\)$' \
    "$vpps" eval lstm-nmt --model nmt.ckpt --vps 1 --split dev --beam 2 --max-words 5
check "text summary: BLEU's signature" grep -qE '^signature +BLEU\|' out
check "nothing is measured where all of a generated part was trained on" fits "o['dev'] is None and o['test'] is None and o['best_dev'] is None" \
    few tree-gru --generate complete --leaves 2 --examples 300 --epochs 1
check "nor later" fails_with 1 "all generated test trees occur in training" "$vpps" eval tree-gru --model few.ckpt

for network in bilstm-tagger bilstm-char-tagger bilstm-classifier act lstm-lm lstm-lm-fixed lattice-lstm lstm-nmt lattice-gru \
    child-sum-tree-lstm transformer-tagger gat gat-classifier; do
    read -r -a sizes <<<"$(sizes_of $network 8)"
    check "script $network" exits 0 "$vpps" script "$network" --examples 30 --batch 2 "${sizes[@]}" --vps 1
    check "script $network prints one" test "$(wc -l <out)" -gt 20
    check "cell $network" tells "all(c['stages'] and c['vertices'] for c in o['cells'])" "$vpps" cell "$network" --examples 30 --batch 2 "${sizes[@]}" --vps 1 --json
done
for network in lstm-nmt gat; do
    check "plan $network" tells "len(o['plans'][0]['matrices']) >= 2" "$vpps" plan "$network" --arch sm_90 --sms 132 --hidden 64 --json
    check "kernel $network" prints '\bvpps_kernel\(' "$vpps" kernel "$network" --arch sm_90 --sms 132 --hidden 64
done
check "plan of a checkpoint: its classes" tells "any(m['name'] == 'W_s' and m['rows'] == 7 for m in o['plans'][0]['matrices'])" \
    "$vpps" plan lattice-lstm --arch sm_90 --sms 132 --model lattices.ckpt --json
check "script of a checkpoint" exits 0 "$vpps" script lstm-nmt --model attention.ckpt --vps 1

# ---------------------------------------------------------------- logs and plots

log_lines() { # NAME METRIC...
    with_runs "
logged = lines(sys.argv[1] + '.jsonl')
assert [o['event'] for o in logged if o['event'] not in ('batch', 'engine')] == ['start', 'epoch', 'epoch', 'epoch', 'end'], logged
assert all(set(o[p]) == set(sys.argv[2:]) for o in logged if o['event'] == 'epoch' for p in ('dev', 'test')), logged
assert all('time' in o for o in logged) and logged[-1]['metrics']" "$@"
}
check "log of trees" log_lines trees root nodes
check "log of pairs" log_lines nmt bleu perplexity unknown
plotted() { # FILE CURVES AXIS NETWORK OPTION...: two of the curves are the loss
    fit p "${@:4}" --plot "$1" && python3 - "${@:1:3}" <<'PY'
import sys, xml.dom.minidom
d = xml.dom.minidom.parse(sys.argv[1])
texts = [t.firstChild.data for t in d.getElementsByTagName('text') if t.firstChild]
assert d.documentElement.tagName == 'svg' and sys.argv[3] in texts and 'training loss' in texts, texts
assert len(d.getElementsByTagName('polyline')) == int(sys.argv[2])
for p in d.getElementsByTagName('polyline'):
    points = [tuple(map(float, q.split(','))) for q in p.getAttribute('points').split()]
    assert all(0 <= x <= 800 and 0 <= y <= 620 for x, y in points), points
PY
}
check "plot of shares" plotted shares.svg 6 "measured (%)" bilstm-tagger --data bars --epochs 2
check "plot of a perplexity" plotted perplexity.svg 4 "perplexity" lstm-lm --data text --epochs 2
check "plot of BLEU" plotted bleu.svg 4 "BLEU" lstm-nmt --data pairs "${pairs[@]}" --epochs 2
cp -r text 'a<b&c'
check "plot of a folder with a strange name" plotted strange.svg 4 "lstm-lm on a<b&c" lstm-lm --data 'a<b&c' --epochs 1

# ---------------------------------------------------------------- resuming

check "resumed: a transformer, with dropout" resumes transformer transformer-tagger --examples 160 --dropout 0.2
check "--heads 0" fails_with 2 "--heads: '0' is not" "$vpps" train transformer-tagger --heads 0
check "--heads 32" fails_with 2 "--heads: '32' is not" "$vpps" train transformer-tagger --heads 32
check "resumed: a speller, with dropout" resumes speller bilstm-char-tagger --examples 160 --mlp 8 --dropout 0.2
check "resumed: a translator" resumes nmt lstm-nmt --data pairs "${pairs[@]}" --attention
check "resumed: a classifier" resumes classify bilstm-classifier --data labelled --dropout 0.3 --mlp 8
check "resumed: lattices of a lexicon" resumes lattice lattice-lstm --data characters --lexicon lexicon --lr-decay 0.5
check "resumed: dependency trees" resumes dependencies child-sum-tree-lstm --examples 60 --sentence-label polarity --dropout 0.2
check "resumed: pairs of lattices" resumes gru lattice-gru --examples 40 --batch 4
check "resume with another ending" fails_with 1 "with --source de" "$vpps" train lstm-nmt --resume nmt-whole.ckpt --source fr
check "resume with no lexicon of that name" fails_with 1 "other: cannot be opened" "$vpps" train lattice-lstm --resume lattice-whole.ckpt --lexicon other
{ cat lexicon; echo zz; } >longer
check "resume with another lexicon" fails_with 1 "another lexicon than longer" "$vpps" train lattice-lstm --resume lattice-whole.ckpt --lexicon longer
cp lexicon moved-lexicon
check "resume with a lexicon that has moved" exits 0 "$vpps" train lattice-lstm --vps 1 --resume lattice-whole.ckpt --lexicon moved-lexicon --save moved.ckpt
check "resume generated data from files" fails_with 1 "without --data" "$vpps" train bilstm-char-tagger --resume speller-whole.ckpt --data endings

# ---------------------------------------------------------------- tagged sentences

train=("$vpps" train bilstm-tagger "${small[@]}" --epochs 1)
check "word|TAG" learned "$tags and m['f1'] > 0.9 and o['sentences'] == 720" bars bilstm-tagger --data bars --epochs 3
check "columns of CoNLL-U by name" fits "o['sentences'] == 720 and o['metrics']['accuracy'] > 0.9" named bilstm-tagger --data conllu --epochs 3 \
    --word-column lemma --tag-column XPOS
check "columns of CoNLL-U by name: the tags" bash -c "echo lemma-ada | '$vpps' predict bilstm-tagger --model named.ckpt | grep -q 'lemma-ada|X'"
check "columns of CoNLL-U by name: eval remembers them" evaluates named bilstm-tagger
check "columns of CoNLL-U by name: other data" evaluates named bilstm-tagger --test conllu/test.conllu
check "columns by number" as_good bars.json swapped bilstm-tagger --data swapped --epochs 3 --word-column 3 --tag-column 1
check "resume with another column" fails_with 1 "with --tag-column 1" "$vpps" train bilstm-tagger --resume swapped.ckpt --tag-column 4
check "no such column" fails_with 1 "expected a column POS, found ID FORM LEMMA UPOS" "${train[@]}" --data conllu --tag-column POS
check "no such number" fails_with 1 "expected at least 9 columns, found 3" "${train[@]}" --data tabs --tag-column 9
for column in 0 3x; do
    check "--tag-column $column" fails_with 1 "--tag-column: expected a column's number, from 1, or its name" "${train[@]}" --data tabs --tag-column $column
done
check "--tag-column for generated data" fails_with 2 "--tag-column goes with --data" "$vpps" train bilstm-tagger --tag-column 2
printf '1\tA\t1\n2\tB\t1\n\n1\tC\t1\n2-3\tD\t1\n' >numbered # is no CoNLL-U: what is said decides
check "numbers are no CoNLL-U" fit numbered bilstm-tagger --data numbered --epochs 1 --word-column 2 --tag-column 1 --min-count 1
check "numbers are no CoNLL-U: all lines are words" holds "parts('numbered.ckpt')[1]['vocabulary'].split() == ['<unk>', 'A', 'B', 'C', 'D']"
check "eval of another file" evaluates bars bilstm-tagger --data tabs/test.tsv
check "eval --test" evaluates bars bilstm-tagger --test spaces/test_ner

same_tags() { # what predict prints is what eval counts
    sed 's/|[^ ]*//g' bars/ner.test.txt | predict bars bilstm-tagger && cp said own.txt &&
        tells "o['metrics']['accuracy'] == o['metrics']['f1'] == 1" "$vpps" eval --model bars.ckpt --vps 1 --test own.txt --json
}
check "tags that are printed" same_tags
measured() { # of three entities that are predicted, one is one of the two
    printf 'ada|B-PER ng|O sees|O oslo|B-LOC\nbob|O sees|O rain|O\n' >two.txt &&
        tells "[round(o['metrics'][k], 3) for k in ('precision', 'recall', 'f1', 'accuracy')] == [0.333, 0.5, 0.4, 0.714]" \
            "$vpps" eval --model bars.ckpt --vps 1 --test two.txt --json
}
check "precision, recall, F1 and accuracy" measured
check "tags, empty lines, CR LF, no line end" answers \
    '\nada ng sees oslo\n\n  the old   man visits rome \r\n\nbob sees rain' \
    '\nada|B-PER ng|I-PER sees|O oslo|B-LOC\n\nthe|O old|O man|O visits|O rome|B-LOC\r\n\nbob|B-PER sees|O rain|O\n' \
    bars bilstm-tagger
unseen() { # words never seen are alike
    printf 'xyz sees qqq\n|| sees <unk>\n' | predict bars bilstm-tagger &&
        [ "$(sed 's/^[^ ]*|/|/; s/ [^ ]*|/ |/g' said | sort -u | wc -l)" = 1 ] && says said '|||' && says said '<unk>|'
}
check "words never seen" unseen
check "nothing on stdin" answers '' '' bars bilstm-tagger
check "empty lines on stdin" answers '\n\r\n  \n' '\n\r\n\n' bars bilstm-tagger
check "NUL on stdin" refuses '\nc \0 d\n' "stdin:2:3" bars bilstm-tagger

check "words with endings" learned "$tags and m['f1'] > 0.9" endings bilstm-char-tagger --data endings --epochs 3 --mlp 8 --character-embed 8
check "words never seen are spelled" answers 'qqqqx\nZ\303\274rich-o gggx zo\n' 'qqqqx|B-X\nZ\303\274rich-o|O gggx|B-X zo|O\n' endings bilstm-char-tagger
strange() { printf '\342\202\254\n' | predict endings bilstm-char-tagger && grep -qxE $'\342\202\254\\|(O|B-X)' said; }
check "characters never seen" strange

printf 'caf\351|O ada|B-PER\n' >latin1.txt
check "words that are not UTF-8" fails_with 1 "is not UTF-8" "${train[@]}" --data latin1.txt --min-count 1 --save l.ckpt
printf 'a|O\nb|B-PER\nna\357ve|O\n\351|O\n' >>latin1.txt
check "words that are not UTF-8, told" shows err "latin1.txt:1:4: byte 0xE9 is not UTF-8, nor are those of 2 more lines: words are taken as bytes" \
    "$vpps" train bilstm-tagger --vps 1 --hidden 8 --embed 8 --epochs 1 --data latin1.txt
check "words that are not UTF-8, nothing saved" exits 0 "${train[@]}" --data latin1.txt --min-count 1
latin1=$(printf 'caf\xe9.txt')
cp bars/ner.train.txt "$latin1"
check "a path that is not UTF-8" fails_with 1 "(train) is not UTF-8" "${train[@]}" --train "$latin1" --save l.ckpt
umlauts=$(printf 'x%.0s' {1..75})üüüüüü.txt # the title is cut within a character
cp bars/ner.train.txt "$umlauts"
titled() { exits 0 "${train[@]}" --train "$1" --plot titled.svg && python3 -c "import xml.dom.minidom as d; d.parse('titled.svg')"; }
check "a plot's title in UTF-8" titled "$umlauts"
check "a plot's title that is not UTF-8" titled "$latin1"

# Tags that training has not: of its kind they are missed entities, of another kind they are no entities.
mkdir foreign
cp bars/ner.train.txt foreign/train
sed 's/B-LOC/B-NEW/' bars/ner.test.txt >foreign/test
sed '1s/|O/|odd/' bars/ner.test.txt >foreign/dev
check "tags unknown in training" fit foreign bilstm-tagger --data foreign --epochs 3
told() { # NETWORK TEXT OPTION...: trains one epoch, and says the text on stderr
    exits 0 "$vpps" train "$1" --vps 1 --hidden 8 --embed 8 --epochs 1 --force --log told.jsonl "${@:3}" && says err "$2" &&
        says told.jsonl "$2"
}
line=$(grep -nm1 B-LOC bars/ner.test.txt | cut -d : -f 1)
check "tags unknown in training: told" told bilstm-tagger "foreign/test:$line: the training part has no label B-NEW: it is never right" --data foreign
check "tags unknown in training: the other part" says err "foreign/dev:1: the training part has no label odd: it is"
sed '3s/^/x\n/; 4s/^[^\t]*/odd/; 7s/^[^\t]*/odder/' <(sed 2d labelled/dev) | sed '/^x$/d' >labelled.dev
check "labels unknown in training: told" told bilstm-classifier \
    "labelled.dev:4: the training part has no label odd, nor 1 more: it is never right" --train labelled/train \
    --dev labelled.dev
sed 's/(NP-SBJ/(XP/' trees/dev.mrg >xp.dev
line=$(grep -nm1 XP xp.dev | cut -d : -f 1)
check "names of trees unknown in training: told" told tree-gru "xp.dev:$line: the training part has no label XP" --train trees/train.mrg --dev xp.dev
printf '(0 (0 a) (2 b))\n(2 (0 b) (2 a))\n' >numbers.train
printf '(0 (0 a) (2 b))\n\n(0 (1 b) (2 a))\n' >numbers.dev
check "numbers of trees unknown in training: told" told tree-gru \
    "numbers.dev:3: the training part has no label 1: it is never right" --train numbers.train --dev numbers.dev
printf '(0 (0 a) (2 b))\n\n\n(0 (4 b) (2 a))\n' >numbers.dev
check "a number beyond those of training" fails_with 1 \
    "numbers.dev:4: expected labels 0 to 2, which the network was made for, found label 4" "$vpps" train tree-gru \
    --train numbers.train --dev numbers.dev
printf '\na O\nb B-NINE\n' >nine.dev
check "tags of lattices unknown in training: told" told lattice-lstm \
    "nine.dev:3: the training part has no label B-NINE: it is never right" --train characters/train --lexicon lexicon --dev nine.dev
check "nothing is told of labels that training has" exits 0 "$vpps" train tree-gru --vps 1 --epochs 1 --data trees
check "nothing is told of labels that training has: so" bash -c "! grep -q 'has no label' err"
check "tags unknown in training: measured" json foreign.json "0.3 < o['test']['f1'] < 0.9 \
and o['test']['accuracy'] < 0.95 and o['dev']['f1'] > 0.9 and o['dev']['accuracy'] > 0.9"

# ---------------------------------------------------------------- labelled sentences

check "labelled sentences" learned "$accuracy and m['accuracy'] > 0.95 and o['sentences'] == 720" labelled bilstm-classifier --data labelled --epochs 3
check "labels of sentences" answers 'a b  good c\n\nfilm fair d\r\na bad unseen' \
    'very good\ta b good c\n\nso\tfilm fair d\r\nbad\ta bad unseen\n' labelled bilstm-classifier
check "text summary: labels" prints '^test +accuracy +[0-9.]+ % +\([0-9]+ sentences\)$' "$vpps" eval bilstm-classifier --model labelled.ckpt --vps 1

# ---------------------------------------------------------------- text

check "text" learned "$perplexity and 1 < m['perplexity'] < 4" text lstm-lm --data text --epochs 4
perplexities() { # the words' mean of what predict prints is what eval measures
    predict text lstm-lm <text/test && cut -f 2 said | diff - text/test && ! grep -qvE $'^[0-9]+\\.[0-9]{4}\t' said || return 1
    python3 - <<'PY'
import json, math
lines = [line.rstrip('\n').split('\t') for line in open('said')]
words = [len(text.split()) + 1 for _, text in lines]
mean = sum(n * math.log(float(p)) for n, (p, _) in zip(words, lines)) / sum(words)
wanted = json.load(open('text.json'))['metrics']['perplexity']
assert abs(math.exp(mean) / wanted - 1) < 1e-3, (math.exp(mean), wanted)
PY
}
check "perplexities of what is printed" perplexities
averaged() { # BATCH: where nothing is learnt, the loss is the sum over a sentence's words, averaged over the sentences
    fit still lstm-lm --train text/train --dev text/train --epochs 1 --lr 0 --batch "$1" || return 1
    python3 - <<'PY'
import json, math
o = json.loads(open('still.json').read().splitlines()[-1])
lengths = [len(line.split()) + 1 for line in open('text/train')]
wanted = math.log(o['dev']['perplexity']) * sum(lengths) / len(lengths)
assert abs(o['loss'] / wanted - 1) < 1e-5, (o['loss'], wanted)
PY
}
for batch in 1 8 240; do check "the loss at batch $batch" averaged $batch; done
check "text, empty lines on stdin" answers '\n\n' '\n\n' text lstm-lm
unknown_words() { # words that training has fewer than --min-count times, and the end of a sentence counts, too
    sed 's/zero/new/' text/test >unknown.txt
    exits 0 "$vpps" eval lstm-lm --model text.ckpt --vps 1 --test unknown.txt --json && python3 - <<'PY'
import json
lines = [line.split() + ['end'] for line in open('unknown.txt')]
words = [w for line in lines for w in line]
share = json.loads(open('out').read().splitlines()[-1])['metrics']['unknown']
assert abs(share - words.count('new') / len(words)) < 1e-9 and share > 0, share
PY
}
check "the share of unknown words" unknown_words
check "the share of unknown words as text" prints '^test +perplexity [0-9.]+ +unknown words +[0-9.]+ % +\([0-9]+ words\)$' \
    "$vpps" eval lstm-lm --model text.ckpt --vps 1 --test unknown.txt
check "pieces of text" learned "$perplexity and 1 < m['perplexity'] < 4.5" pieces lstm-lm-fixed --data text --epochs 4 --steps 8
check "pieces of text: how many" json pieces.json "o['sentences'] == 4 * -(-$(sed 's/$/ end/' text/train | wc -w) // 8)"
lines() { # a line a sentence, although it was trained on pieces
    predict pieces lstm-lm-fixed <text/test && cut -f 2 said | diff - text/test
}
check "pieces of text: perplexities of sentences" lines

# ---------------------------------------------------------------- lattices

check "lattices of a lexicon" learned "$tags and m['f1'] > 0.9" lexicon lattice-lstm --data characters --lexicon lexicon --epochs 3
mv lexicon lexicon.gone
check "the checkpoint has the lexicon" evaluates lexicon lattice-lstm
check "characters with tags" answers 'cab\n\n a b  d\r\nb' 'c|O a|O b|B-X\n\na|O b|B-X d|O\r\nb|O\n' lexicon lattice-lstm
mv lexicon.gone lexicon
check "a character of several bytes, and one never seen" answers '\303\274ab\n' '\303\274|O a|O b|B-X\n' lexicon lattice-lstm
check "lattices, an empty line on stdin" answers '\n' '\n' lexicon lattice-lstm

# ---------------------------------------------------------------- pairs

nmt=(lstm-nmt --data pairs "${pairs[@]}" --epochs 8 --lr 0.02)
check "pairs" learned "$bleu and m['bleu'] > 40 and o['best_dev'] >= o['dev']['bleu']" pairs "${nmt[@]}"
own_bleu() { # predict and eval translate alike: measured against what predict prints, BLEU is 100
    mkdir -p own && cp pairs/test.de own/test.de && predict pairs lstm-nmt "$@" <pairs/test.de && cp said own/test.en &&
        tells "abs(o['metrics']['bleu'] - 100) < 1e-6" "$vpps" eval lstm-nmt --model pairs.ckpt --vps 1 --json --test own/test "$@"
}
check "BLEU of what is printed" own_bleu
check "BLEU of what is printed, --beam 4" own_bleu --beam 4
check "translations" answers 'ab cd\n\n dc  ba\r\n' 'North South\n\nUp West\r\n' pairs lstm-nmt
check "translations, --beam 4" answers 'ab cd\n\n dc  ba\r\n' 'North South\n\nUp West\r\n' pairs lstm-nmt --beam 4
check "pairs, --max-words 1: no BLEU" fits "o['metrics']['bleu'] == 0" word lstm-nmt --data pairs "${pairs[@]}" --epochs 4 --lr 0.02 --beam 2 --max-words 1
check "pairs, --max-words 1: eval remembers it" evaluates word lstm-nmt
check "pairs, --max-words 1: eval with more" tells "o['metrics']['bleu'] > 0" "$vpps" eval lstm-nmt --model word.ckpt --vps 1 --json --max-words 0
check "translations, --beam 1" answers 'ab cd\n' 'North South\n' pairs lstm-nmt --beam 1 --length-penalty 2
check "translations, --max-words 1" answers 'ab cd\ncd\n' 'North\nSouth\n' pairs lstm-nmt --max-words 1
check "translations, empty lines on stdin" answers '\n\n' '\n\n' pairs lstm-nmt
unknown() { printf 'unseen words <eos>\n' | predict pairs lstm-nmt --beam 4 && [ "$(wc -l <said)" = 1 ]; }
check "translations of words never seen" unknown
for stem in pairs/train pairs/train.de; do
    check "--train $stem" as_good pairs.json stem "${nmt[@]:0:1}" --train $stem --dev pairs/dev --test pairs/test.de "${nmt[@]:3}"
done
check "--data STEM" evaluates pairs lstm-nmt --data pairs/test
printf 'ab\n\ncd\nef\n' >gaps.de
printf 'North\nlost\nSouth\n\n' >gaps.en
check "pairs with an empty line are left out" fits "o['sentences'] == 2" gaps lstm-nmt --data gaps "${pairs[@]}" --epochs 1 --min-count 1

# ---------------------------------------------------------------- graphs

graph=(gat --hidden 16 --embed 8 --heads 2)
check "graphs: labels two steps away are learned" learned "m['accuracy'] > 0.98" graphs "${graph[@]}" --examples 800 --epochs 5 --lr 0.02
check "graphs of the same words with other edges are other graphs" tells "o['sentences'] > 0.95 * 80" "$vpps" eval --model graphs.ckpt --vps 1 --split test --json
check "graphs: classes" names graphs black blue green red
check "graphs of one round: what is two steps away is not known" fits "o['metrics']['accuracy'] < 0.6" near "${graph[@]}" --examples 800 --epochs 5 --lr 0.02 --rounds 1
check "labels of graphs are learned" learned "m['accuracy'] > 0.9" whole gat-classifier --examples 1000 --epochs 10 --lr 0.02 --numbers 1 --heads 2
check "resumed: graphs, with dropout" resumes links gat --examples 160 --numbers 2 --dropout 0.2
cat >asked <<'END'
# a comment

graph
node white black
	node  red	- # a comment is none here
END
check "a node's line with too much" refuses "$(cat asked)\n" "stdin:5:14: expected the end of the line, found '#'" graphs gat
# The owner of 1 is 2, of 2 is 3, of 3 is 1; the next of each is 3, 1 and 2.
edges='edge 1 2 owner\nedge 2 3 owner\n# between\nedge 3 1 owner\nedge 1 3 next\nedge 2 1 next\nedge 3 2 next\n'
check "predicted labels of nodes" answers "# first\n\ngraph x\nnode red -\n node\tgreen  ?\nnode blue\r\n${edges}" \
    "# first\n\ngraph x\nnode red red\n node\tgreen  green\nnode blue blue\r\n${edges}" graphs gat
printf 'graph p\nnode red -\ngraph\nnode red\n' >two
check "predicted labels of graphs" fit kinds gat-classifier --examples 200 --epochs 1
check "predicted labels of graphs: each its own" predict kinds gat-classifier two --batch 1
check "predicted labels of graphs: in their place" test "$(sed 's/^graph [a-z]*$/graph LABEL/' said)" = "$(printf 'graph LABEL\nnode red -\ngraph LABEL\nnode red')"
check "predicted labels of graphs: JSON" members "o['label'] in ('red', 'green', 'blue', 'black')" kinds gat-classifier two --json
check "predicted labels of nodes: JSON" members "[set(n) for n in o['nodes']] == [{'label', 'score'}]" graphs gat two --output-format jsonl
own_records() { # answers come when a sentence or a graph is complete; a bad one costs its own answer; what is none stays
    python3 - "$vpps" <<'PY'
import sys
from runs import answer, ask
sentence = '# c\n1\tada\t_\t_\t_\t_\t2\tx\t_\t_\n2\tgoes\t_\t_\t_\t_\t0\tx\t_\t_\n'
graph = 'graph x\nnode red x\nnode blue x\nedge 1 2 a\n'
def run(model, text, *options): return answer(sys.argv[1], text, '--model', model, *options)
for model, text in (('depends.ckpt', sentence), ('graphs.ckpt', graph), ('kinds.ckpt', graph)):
    assert not ask(sys.argv[1], [(text + '\n', run(model, text).rstrip('\n') + '\n\n')] * 2, '--model', model)
one = run('depends.ckpt', sentence)
assert run('depends.ckpt', sentence + '\n1\tx\n\n' + sentence + '\n# end\n', '--on-error', 'skip') == one + '\n' + one + '# end\n\n'
assert run('depends.ckpt', (sentence + '\n' + sentence).replace('\n', '\r\n')) == 2 * one.replace('\n', '\r\n')
one = run('graphs.ckpt', graph)
bad = ['graph\n', 'graph\nnode\n', 'graph\nedge 1 2 a\n', 'graph\nnode a\nelse\n']
assert run('graphs.ckpt', graph + ''.join(b + graph for b in bad), '--on-error', 'skip') == one + ('\n' + one) * len(bad)
assert run('graphs.ckpt', '# first\n' + graph.replace('node blue', '\n# mid\nnode blue') + graph + '# end\n') == '# first\n' + one.replace('node blue', '\n# mid\nnode blue') + one + '# end\n'
assert run('kinds.ckpt', (2 * graph).replace('\n', '\r\n')) == 2 * run('kinds.ckpt', graph).replace('\n', '\r\n')
PY
}
check "a form that graphs do not have" fails_with 1 "--output-format: gat reads lists of edges, and prints lists of edges or JSON" \
    "$vpps" predict --model graphs.ckpt --output-format csv two
printf 'graph\nnode red green\nnode blue red\nedge 1 2 owner\n' >typed
check "types of edges" fit typed gat --train typed --test typed --min-count 1 --epochs 1
sed 's/owner/other/' typed >untyped
check "an edge of a type that training does not have" shows err "the training part has no edge of type 'other'" "$vpps" train gat --vps 1 --hidden 8 \
    --train typed --test untyped --min-count 1 --epochs 1
never_right() { # NAME LABELS EXPRESSION: of a file with such labels, what is measured
    # shellcheck disable=SC2059 # escapes are wanted
    printf "$2" >strange && exits 0 "$vpps" eval --model "$1.ckpt" --vps 1 --test strange --json && json out "$3" &&
        says err "strange:$4: the training part has no label odd: it is never right"
}
check "graphs whose every label training does not have" never_right typed 'graph\nnode red odd\ngraph\nnode blue red\ngraph\nnode red\n' \
    "o['sentences'] == 2 and o['metrics']['accuracy'] <= 0.5" 2
check "labels of graphs that training does not have" never_right kinds 'graph odd\nnode red\ngraph red\nnode red\ngraph\nnode red\n' \
    "o['sentences'] == 2 and o['metrics']['accuracy'] <= 0.5" 1
check "graphs without edges" fails_with 1 "the training graphs have no edges" "$vpps" train gat "${small[@]}" --train two
check "labels that no graph has" fails_with 1 "the training graphs have 0 classes" "$vpps" train gat-classifier "${small[@]}" --train typed
check "graphs with other numbers" fails_with 1 "typed:2:15: expected a label and 1 numbers" "$vpps" train gat "${small[@]}" --train typed --numbers 1
# Edges of a type do not get what those of another one learned.
sed 's/ owner$/ owned/' typed >further
check "--init: other types, as many" tells "o['init'] == {'parameters': 23, 'whole': 19}" "$vpps" train gat "${small[@]}" \
    --train further --min-count 1 --epochs 0 --eval-every 0 --init typed.ckpt --json

# ---------------------------------------------------------------- dependency trees

check "dependency trees" learned "m == {'accuracy': 1.0}" depends child-sum-tree-lstm --data depends --epochs 4
check "dependency trees: classes" names depends advmod case nmod:poss obl obl:arg root
check "dependency trees: the matrix" shows out "gold \\ predicted" "$vpps" eval --model depends.ckpt --vps 1
check "subtypes are cut" fit cut child-sum-tree-lstm --data depends --epochs 1 --subtypes cut
check "subtypes are cut: classes" names cut advmod case nmod obl root
word() { printf '%s\t%s\t_\tX\t_\t_\t%s\t%s\t_\t%s\n' "$@"; }
unparsed() { # RELATION-OF-a COMMENT...
    printf '%s\n' "${@:2}"
    word 1-2 toa _ _ _
    word 1 to 2 "${1:+case}" x
    word 2 a 3 "$1" "y z"
    word 2.1 _ _ _ _
    word 3 goes 0 "${1:+root}" _
    printf '\n'
}
{ unparsed "" "# text = toa goes"; unparsed "" "# mood = x" "# newdoc"; } >unparsed.conllu
{ unparsed obl "# text = toa goes"; unparsed obl "# mood = x" "# newdoc"; } >parsed.conllu
check "predicted relations, in their column" prints_file parsed.conllu depends child-sum-tree-lstm unparsed.conllu
check "predicted relations: what is read may have them" prints_file parsed.conllu depends child-sum-tree-lstm parsed.conllu
check "sentences and graphs, one by one" own_records
check "predicted relations: CR LF, no line end at the end" answers \
    '1\ta\t\t\t\t\t2\t\t\t\r\n2\tgoes\t\t\t\t\t0\t\t\t' '1\ta\t\t\t\t\t2\tobl\t\t\r\n2\tgoes\t\t\t\t\t0\troot\t\t\n\n' \
    depends child-sum-tree-lstm
check "predicted relations: the whole file" prints_file depends/test.conllu depends child-sum-tree-lstm depends/test.conllu --batch 7
check "predicted relations: JSON" members "o['words'] == ['to', 'a', 'goes'] and o['heads'] == [2, 3, 0] \
and [r['label'] for r in o['relations']] == ['case', 'obl', 'root']" depends child-sum-tree-lstm unparsed.conllu --json
check "a head that is no word" refuses '1\ta\t\t\t\t\t2\t\t\t\n' "stdin:1:9: expected a head: 0 to 1" depends child-sum-tree-lstm
check "text that is no tree" refuses 'a film\n' "stdin:1:1: expected the 10 columns of CoNLL-U" depends child-sum-tree-lstm
sed 's/\tobl\t/\tother\t/' depends/test.conllu >other.conllu
check "a relation that training does not have" exits 0 "$vpps" train child-sum-tree-lstm --hidden 8 --embed 8 --vps 1 \
    --train depends/train.conllu --test other.conllu --epochs 1
check "a relation that training does not have: a note" grep -qrF "the training part has no label other: it is never right" out err
check "a relation that is missing" fails_with 1 "unparsed.conllu:3:16: expected a relation, found a tab" "$vpps" train \
    child-sum-tree-lstm "${small[@]}" --train unparsed.conllu

check "a form that dependency trees do not have" fails_with 1 "--output-format: child-sum-tree-lstm reads CoNLL-U" "$vpps" \
    predict --model depends.ckpt --output-format csv unparsed.conllu
check "predicted relations: JSONL" members "o['heads'] == [2, 3, 0]" depends child-sum-tree-lstm unparsed.conllu --output-format jsonl

check "labels of sentences are learned" learned "m == {'accuracy': 1.0}" moods child-sum-tree-lstm --data depends --epochs 4 --sentence-label mood
check "labels of sentences: JSON" members "o['label'] in ('sad', 'so glad') and 'relations' not in o" moods child-sum-tree-lstm depends/test.conllu --json
check "labels of sentences: the file" prints_file depends/test.conllu moods child-sum-tree-lstm depends/test.conllu
check "labels of sentences: in place of others" predict moods child-sum-tree-lstm unparsed.conllu
check "labels of sentences: one each" test "$(grep -c '^# mood = ' said) $(grep -c . said)" = "2 14"
check "labels of sentences: above the words" test "$(sed -n '2s/=.*/=/p' said)" = "# mood ="
check "labels that no sentence has" fails_with 1 "the training sentences have 0 classes" "$vpps" train \
    child-sum-tree-lstm "${small[@]}" --data depends --sentence-label other
{ cat depends/train.conllu; word 1 a 0 r _; word 2 b 0 r _; } >roots.conllu
check "two roots: sentences" fails_with 1 "expected one root, which is word 1, found '0'" "$vpps" train \
    child-sum-tree-lstm "${small[@]}" --train roots.conllu --sentence-label mood
check "two roots: relations" exits 0 "$vpps" train child-sum-tree-lstm "${small[@]}" --train roots.conllu --epochs 1

check "pairs of lattices" learned "$bleu and m['perplexity'] < 3" lattice-pairs lattice-gru --data pairs "${pairs[@]}" --epochs 6 --lr 0.02
joined() { # words are parted by the lexicon, so spaces say nothing
    printf 'ab cd\nabcd\na b c d\n' | predict lattice-pairs lattice-gru --beam 4 && [ "$(wc -l <said)" = 3 ] &&
        [ "$(sort -u said | wc -l)" = 1 ] && grep -qE '^(North|South|East|West|Up|Down)' said
}
check "pairs of lattices: translations" joined

# ---------------------------------------------------------------- trees

check "constituents" learned "m['root'] > 0.9 and m['nodes'] > 0.9" constituents tree-gru --data trees --epochs 6
check "trees with the names of labels" answers '(S (NP (DT the) (NN cat)) (VP (VBZ sees) (NP-SBJ (NNP Bob))))\n' \
    '(S (NP (DT the) (NN cat)) (VP (VBZ sees) (NP+NNP Bob)))\n' constituents tree-gru
check "names of roots" answers '(S (NP (DT the) (NN cat)) (VP (VBZ sits)))\n\n(X (Y the) (Z cat))\n' 'S\n\nNP\n' constituents tree-gru --output label
check "numbers are no names" refuses '(1 (0 a) b)\n' "stdin:1:" constituents tree-gru
mkdir labels
cp trees/train.mrg labels/train
sed 's/NP/XP/g' trees/test.mrg >labels/test
check "labels unknown in training are never right" fits "0.5 < o['test']['nodes'] < 0.8" labels tree-gru --data labels --epochs 6
check "labels unknown in training: resumed" exits 0 "$vpps" train tree-gru --vps 1 --resume labels.ckpt --epochs 7

# ---------------------------------------------------------------- which file is which part

folder() { # NAME FILE...: a folder with empty files of these names
    local file
    rm -rf "$1"
    mkdir "$1"
    for file in "${@:2}"; do cp bars/ner.dev.txt "$1/$file"; done
}
folder f train_a b-train
check "two candidates" fails_with 1 "could both be the train part: name one by --train" "${train[@]}" --data f
check "two candidates: the one" says err train_a
check "two candidates: the other" says err b-train
check "two candidates, one named" exits 0 "${train[@]}" --data f --train f/train_a
folder f train dev val
check "dev and val" fails_with 1 "could both be the dev part: name one by --dev" "${train[@]}" --data f
folder f constrain test
check "no training part" fails_with 1 "f: no file has the word train in its name: the train part is missing" "${train[@]}" --data f
check "only --test" fails_with 1 "no train data: --train FILE" "${train[@]}" --test f/test
folder f train
check "no dev and test part" tells "o['metrics'] is None and o['best_dev'] is None" "${train[@]}" --data f --save f.ckpt
check "no test part to eval" fails_with 1 "the test part is missing" "$vpps" eval bilstm-tagger --model f.ckpt
folder f train.de train.fr dev.en
check "no pair" fails_with 1 "train.en: cannot be opened" "$vpps" train lstm-nmt --data f "${pairs[@]}"
folder f train.fr
check "no source" fails_with 1 "has the word train in its name and ends in .de: the train part is missing" "$vpps" train lstm-nmt --data f "${pairs[@]}"

# ---------------------------------------------------------------- pretrained vectors

# Vectors of 12 elements for 5 of the words of bars/, and for one that no text has.
python3 - <<'PY' || exit 1
import random
r = random.Random(3)
with open('glove.txt', 'w') as f:
    for w in ('ada', 'oslo', 'sees', 'absent', 'rome', 'the'): print(w, *(round(r.uniform(-1, 1), 4) for _ in range(12)), file=f)
PY
embeddings() { # NAME.ckpt CHANGED: the words' embeddings are those of the file, or (1) have changed since
    with_runs "
values = {w: floats(b) for w, b in rows('$1.ckpt', 'embedding', 'vocabulary').items()}
assert len(values) == len(parts('$1.ckpt')[1]['vocabulary'].split('\n')) and {len(v) for v in values.values()} == {12}
wanted = {line.split()[0]: [float(x) for x in line.split()[1:]] for line in open('glove.txt')}
same = [all(abs(a - b) < 1e-6 for a, b in zip(values[w], wanted[w])) for w in values if w in wanted]
assert len(same) == 5 and (not any(same) if '$2' == '1' else all(same)), same"
}
pretrained=(--force --vps 1 --quiet --json --hidden 16 --batch 8 --lr 0.01 --data bars --epochs 1)
check "--vectors: in the summary" tells "(v := o['vectors'])['found'] == 5 and o['embed'] == 12 and abs(v['share'] - 5 / v['words']) < 1e-6" \
    "$vpps" train bilstm-tagger "${pretrained[@]}" --vectors glove.txt --log form.jsonl --save form.ckpt
check "--vectors: in the log" says form.jsonl "glove.txt: vectors of 5 of the "
check "--vectors: embeddings are trained" embeddings form 1
check "--vectors before training" exits 0 "$vpps" train bilstm-tagger "${pretrained[@]}" --vectors glove.txt --lr 0 --save form.ckpt
check "--vectors before training: the file's" embeddings form 0
check "--freeze-vectors" exits 0 "$vpps" train bilstm-tagger "${pretrained[@]}" --vectors glove.txt --freeze-vectors --save frozen.ckpt --epochs 2
check "--freeze-vectors: embeddings are as they were" embeddings frozen 0
check "--freeze-vectors: half" exits 0 "$vpps" train bilstm-tagger "${pretrained[@]}" --vectors glove.txt --freeze-vectors --save half.ckpt
mv glove.txt glove.gone
check "--freeze-vectors, resumed without the file" exits 0 "$vpps" train bilstm-tagger --vps 1 --quiet --resume half.ckpt --epochs 2
check "--freeze-vectors, resumed: the same" cmp frozen.ckpt half.ckpt
check "--vectors: eval without the file" exits 0 "$vpps" eval bilstm-tagger --model form.ckpt --vps 1
mv glove.gone glove.txt
check "--vectors, resumed with others" fails_with 1 "was made with --vectors glove.txt" "$vpps" train bilstm-tagger --resume half.ckpt --vectors other.txt
check "--vectors, frozen" exits 0 "$vpps" train bilstm-tagger --vps 1 --hidden 8 --data bars --epochs 1 --vectors glove.txt --freeze-vectors
check "--vectors: told on stderr" grep -qE 'glove.txt: vectors of 5 of the [0-9]+ words \([0-9.]+ %\); embeddings are frozen$' err
check "--vectors of another size" fails_with 1 "glove.txt: its vectors have 12 elements, but --embed is 16" "$vpps" train \
    bilstm-tagger --data bars --vectors glove.txt --embed 16
check "--vectors of no size but the hidden one" tells "o['hidden'] == 12" "$vpps" train td-rnn --vps 1 --examples 40 --epochs 1 --vectors glove.txt --json
sed '3s/ [^ ]*$//' glove.txt >bad.vec
check "--vectors, a line too short" fails_with 1 "bad.vec:3:1: expected a word and 12 numbers, found 11 numbers" "$vpps" \
    train bilstm-tagger --data bars --vectors bad.vec
check "--vectors, no file" fails_with 1 "none.vec: cannot be opened" "$vpps" train bilstm-tagger --data bars --vectors none.vec
check "--freeze-vectors alone" fails_with 2 "--freeze-vectors goes with --vectors" "$vpps" train bilstm-tagger --freeze-vectors
check "no --vectors: nothing is said" json bars.json "o['vectors'] is None"

# ---------------------------------------------------------------- several files, compressed files

mkdir -p many/train/b many/dev many/.hidden packed
split -l 60 bars/ner.train.txt many/train/b/part.
mv many/train/b/part.aa many/train/a
cp bars/ner.dev.txt many/dev/x
gzip many/train/b/part.ab many/dev/x
echo junk >many/train/.hidden
cp bars/ner.test.txt many/a-test
check "parts are folders" as_good bars.json many bilstm-tagger --data many --epochs 3
check "parts are folders: the same losses" holds "losses('bars.jsonl') == losses('many.jsonl') != []"
check "a part is a folder" as_good bars.json many bilstm-tagger --train many/train --dev bars/ner.dev.txt --test many/a-test --epochs 3
mkdir many/empty
check "a folder without files" fails_with 1 "many/empty: expected sentences, found none" "${train[@]}" --train many/empty
printf 'a|O b\n' >many/train/b/part.ac
check "a bad file of several" fails_with 1 "many/train/b/part.ac:1:5: expected word|TAG" "${train[@]}" --data many
mkdir two-trees && head -n 30 trees/train.mrg >two-trees/a && tail -n +31 trees/train.mrg >two-trees/b
check "trees in several files" as_good constituents.json two-trees tree-gru --train two-trees --dev trees/dev.mrg --test trees/test.mrg --epochs 6
mkdir characters/all && cp characters/train characters/all/1 && cp characters/dev characters/all/2
check "lattices in several files" fits "o['sentences'] == 280" all lattice-lstm --train characters/all --lexicon lexicon --epochs 1
mkdir -p pairs/parts
for language in de en; do
    head -n 100 pairs/train.$language >pairs/parts/1.$language
    tail -n +101 pairs/train.$language | gzip >pairs/parts/2.$language.gz
done
pairs_of_parts=(--train pairs/parts --dev pairs/dev --test pairs/test "${pairs[@]}")
check "pairs in several files" as_good pairs.json parts lstm-nmt "${pairs_of_parts[@]}" --epochs 8 --lr 0.02
check "pairs of lattices in several files" as_good lattice-pairs.json parts lattice-gru "${pairs_of_parts[@]}" --epochs 6 --lr 0.02
for language in de en; do gzip -c pairs/train.$language >packed/train.$language.gz; done
check "compressed pairs in a folder" fit packed lstm-nmt --data packed "${pairs[@]}" --epochs 1
mkdir capital && for language in de en; do cp packed/train.$language.gz capital/train.$language.GZ; done
check "with a capital ending" fit capital lstm-nmt --data capital "${pairs[@]}" --epochs 1
check "compressed pairs" fits "o['sentences'] == 240" packed lstm-nmt --train packed/train.de.gz "${pairs[@]}" --epochs 1
gzip -c text/train | head -c 300 >cut.gz
check "a compressed file, cut" fails_with 1 "cut.gz: expected the rest of its gzip data" "$vpps" train lstm-lm --train cut.gz
xz -c text/train >text.xz 2>/dev/null || printf '\3757zXZ\0' >text.xz
check "another compression" fails_with 1 "text.xz: expected data as they are, or compressed by gzip or zstd" "$vpps" train lstm-lm --train text.xz

# Byte order marks, CR LF, and trees as the Penn Treebank has them.
mkdir windows
for part in train dev test; do
    { printf '\357\273\277'; sed 's/$/\r/' "bars/ner.$part.txt"; } >windows/$part
    sed 's/^(S/( (S/; s/ (VP/\r\n  (VP/; s/$/)\r/' trees/$part.mrg >windows/$part.mrg
done
check "a mark and CR LF" as_good bars.json windows bilstm-tagger --train windows/train --dev windows/dev --test windows/test --epochs 3
check "trees over several lines" fits "o['metrics']['root'] > 0.9 and o['metrics']['nodes'] > 0.9" windows tree-gru --train windows/train.mrg \
    --dev windows/dev.mrg --test windows/test.mrg --epochs 6

# ---------------------------------------------------------------- failures

for given in "" "--source de" "--target en"; do
    read -r -a words <<<"$given"
    check "pairs with '$given'" fails_with 1 "--source and --target must tell" "$vpps" train lstm-nmt --data pairs "${words[@]}"
done
malformed() { # NETWORK TEXT MESSAGE OPTION...
    # shellcheck disable=SC2059
    printf "$2" >bad.txt
    fails_with 1 "$3" "$vpps" train "$1" --data bad.txt "${@:4}"
}
check "lattices without a lexicon" malformed lattice-lstm 'a O\nb O\n' "lattice-lstm needs --lexicon FILE"
check "lexicon for generated data" fails_with 2 "--lexicon goes with --data" "$vpps" train lattice-lstm --lexicon lexicon
check "missing lexicon" fails_with 1 "none: cannot be opened" "$vpps" train lattice-lstm --data characters --lexicon none
: >bad.txt
check "one class" malformed bilstm-tagger 'a|O b|O\n' "a classifier needs 2"
for lines in '' '\n\r\n' '\357\273\277'; do
    check "nothing in the data" malformed bilstm-tagger "$lines" "bad.txt: expected sentences, found none"
    check "nothing in the data: trees" malformed tree-gru "$lines" "bad.txt: expected trees, found none"
done
: >empty.txt
check "nothing in dev" fails_with 1 "empty.txt: expected sentences, found none" "$vpps" train bilstm-tagger --train bars/ner.train.txt --dev empty.txt
check "lattice-lstm: empty data" malformed lattice-lstm '' "bad.txt: expected lattices, found none" --lexicon lexicon
check "another network's model" fails_with 1 "bars.ckpt holds the network bilstm-tagger, not lstm-lm" "$vpps" eval lstm-lm --model bars.ckpt
check "another network's model of the same kind" fails_with 1 "not bilstm-char-tagger" "$vpps" predict bilstm-char-tagger --model bars.ckpt
check "another network's model to resume" fails_with 1 "not lstm-lm-fixed" "$vpps" train lstm-lm-fixed --resume text.ckpt
check "a model for a word of its own" fails_with 1 "nothing.json" "$vpps" eval lstm-lm --model nothing.json

# Vocabularies are a checkpoint's metadata.
while read -r name network key; do
    check "$name without $key" strip "$name.ckpt" stripped.ckpt "$key"
    check "$name without $key: eval" fails_with 1 "no \"$key\" in" "$vpps" eval "$network" --model stripped.ckpt
    check "$name without $key: resume" fails_with 1 "no \"$key\" in" "$vpps" train "$network" --quiet --epochs 99 --max-batches 1 --resume stripped.ckpt
    check "$name without $key: predict" fails_with 1 "$key" "$vpps" predict "$network" --model stripped.ckpt
done <<'LIST'
text lstm-lm vocabulary
text lstm-lm classes
bars bilstm-tagger class_names
endings bilstm-char-tagger characters
lexicon lattice-lstm class_names
lexicon lattice-lstm characters
lexicon lattice-lstm lexicon
pairs lstm-nmt class_names
lattice-pairs lattice-gru lexicon
depends child-sum-tree-lstm class_names
graphs gat edge_types
LIST
# The position is training's alone.
check "text without train.batch" strip text.ckpt stripped.ckpt train.batch
check "text without train.batch: resume" fails_with 1 'no "train.batch" in' "$vpps" train lstm-lm --quiet --epochs 99 --resume stripped.ckpt
check "text without train.batch: eval" exits 0 "$vpps" eval lstm-lm --model stripped.ckpt
check "another number of classes" strip bars.ckpt stripped.ckpt classes 3
check "another number of classes: eval" fails_with 1 "3 classes, but 4 names" "$vpps" eval bilstm-tagger --model stripped.ckpt
check "another vocabulary" strip bars.ckpt stripped.ckpt vocabulary $'<unk>\nada'
check "another vocabulary: predict" fails_with 1 "embedding" "$vpps" predict bilstm-tagger --model stripped.ckpt

summary
