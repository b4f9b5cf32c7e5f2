"""mixes.py VPPS SCALE: one bad record costs `vpps predict --on-error skip` its own answer alone, whatever it is and wherever it stands: in
mixes of good and bad records of every form each record has the answer that it has alone. The folder has the networks of
test_predict_forms.sh. SCALE full: all records, many mixes."""
import json
import random
import subprocess
import sys

vpps, full = sys.argv[1], sys.argv[2] == 'full'
seed = random.randrange(1 << 32) if full else 1
r = random.Random(seed)


def predict(text, *options):
    p = subprocess.run([vpps, 'predict', '--vps', '1', *options], input=text, capture_output=True)
    return p.returncode, p.stdout, p.stderr.decode(errors='replace')


def lines_of(*records):
    return [json.dumps(x).encode() + b'\n' for x in records]


sentences = ['ada sees rome .', 'bob', 'oslo likes the unseen', '-DOCSTART- ada', '# bob', 'rome -DOCSTART-']
lines = [s.encode() + b'\n' for s in sentences]
bad_lines = [b'a\0b\n', b'ada ' * 20000 + b'\n', b'\n', b'  \n']
texts = lines_of(*({'id': i, 'text': t} for i, t in enumerate(sentences)), {'id': 8, 'text': 'ada', 'label': 'x', 'n': 1.50})
bad_json = [b'{\n', b'[1]\n', b'{"id": }\n', b'\n', b'7\n', b'{"id":1,"text":"\xff"}\n', b'\xff\n'] + lines_of({'id': 9, 'no': 1, 'yes': 2}, {'id': 9, 'text': 7}, {'id': 9, 'text': None}, {'id': 9, 'text': 'a\0b'}, {'id': 9, 'text': ''}, {'id': 9, 'text': []}, {'id': 9, 'text': ['a b\n', 1]}) + [b'{"text":"a","text":"b"}\n', b'{"id":1,"text":"ada' + b' ada' * 20000 + b'"}\n']
table = [b'1,ada sees\n', b'2,"rome , bob"\n', b'3,"two\nlines"\n', b'4,-DOCSTART- ada\n']
bad_table = [b'1\n', b'1,2,3\n', b'"a"b,c\n', b'\xff,ada\n', b'1,\n', b'1,""\n', b'1,a\0b\n']
tsv = [b'1\tada sees\n', b'2\trome bob\n', b'3\t"ada"\n']
bad_tsv = [b'1\n', b'1\t2\t3\n', b'\xff\tada\n', b'1\t\n', b'\t\n', b'\ta\0\n']
columns = [b'ada X O\nsees X O\n\n', b'# c d\nbob X O\n\n', b'-DOCSTART- X O\n\n', b'rome X O\n\n']
bad_columns = [b'ada X O\nbob O\n\n', b'bob\0 X O\n\n', b'ada X O\n' * 9000 + b'\n']
tagged = [b'ada|O sees|O\n', b'bob|X\n']
bad_tagged = [b'ada|O sees\n', b'|O\n', b'a\0|O\n', b'\n']
labelled = [b'place\tada sees\n', b'x\trome .\n']
bad_labelled = [b'ada sees\n', b'place\t\n', b'\tada\n', b'a\tb\tc\n', b'\n', b'p\ta\0\n']
trees = [b'(1 (2 3) (7 7))\n', b'(1 a)\n', b'(0 (0 1) (1 (2 2) (3 x)))\n']
bad_trees = [b'(1 (2 3)\n', b'(5 5)x\n', b'\n', b'(a\0)\n', b'(x (1 2))\n', b')\n', b'(1 2)(1 2)\n', b'(1 (0 a) (0 b) (0 c))\n']
pairs = lines_of({'source': 'a b', 'target': 'x y'}, {'source': 'b', 'target': 'kasu'}, {'source': 'c', 'target': '-DOCSTART-'})
bad_pairs = lines_of({'source': 'a'}, {'target': 'b'}, {'source': 'a', 'target': ''}, {'source': '', 'target': 'b'}, {'source': 'a', 'target': 3}, {'source': 'a', 'target': 'a\0'}, {'source': 'a', 'target': [1]})
tags = lines_of({'tokens': ['ada', 'x'], 'tags': ['O', 'O']}, {'tokens': ['-DOCSTART-'], 'tags': ['O']}, {'tokens': ['#', 'ada'], 'tags': ['O', 'B-PER']})
bad_tags = lines_of({'tokens': ['ada'], 'tags': []}, {'tokens': ['ada']}, {'tokens': [''], 'tags': ['O']}, {'tokens': ['a', 1], 'tags': ['O', 'O']}, {'tokens': ['a\n\nb', '\n'], 'tags': ['O', 'O']}, {'tokens': ['a'], 'tags': [None]}, {'tokens': [' ', 'b'], 'tags': ['', 'O']})
cases = []
for model in ('tags', 'labels', 'text', 'lattices', 'pairs'):
    cases += [(model, '--input-format text', b'', lines, bad_lines), (model, '--input-format jsonl', b'', texts, bad_json),
              (model, '--input-format csv', b'id,text\n', table, bad_table)]
for model in ('tags', 'labels'):
    cases += [(model, '--input-format tsv', b'id\ttext\n', tsv, bad_tsv),
              (model, '--input-format jsonl --output-format csv', b'', texts[:6], bad_json + lines_of({'id': 1, 'text': 'ada', 'new': 2})),
              (model, '--input-format csv --output-format jsonl', b'id,text\n', table, bad_table),
              (model, '--input-format csv --output-format tsv', b'id,text\n', table[:2] + table[3:], bad_table + [table[2]]),
              (model, '--input-format text --json', b'', lines, bad_lines),
              (model, '--input-format text --output-format csv', b'', lines, bad_lines)]
cases += [('tags', '--input-format columns', b'', columns, bad_columns), ('tags', '--input-format tagged', b'', tagged, bad_tagged),
          ('tags', '--input-format jsonl --gold', b'', tags, bad_tags), ('lattices', '--input-format columns', b'', columns, bad_columns),
          ('labels', '--input-format labelled', b'', labelled, bad_labelled), ('trees', '', b'', trees, bad_trees),
          ('trees', '--json', b'', trees, bad_trees), ('trees', '--gold', b'', trees, bad_trees),
          ('pairs', '--input-format jsonl --gold', b'', pairs, bad_pairs)]


def row_of(answer, names):
    """Returns the one row of a table; without an answer a row of empty fields, for then there may be no line of column names either."""
    separator = b',' if b',' in names else b'\t'
    first, _, rest = answer.partition(b'\n')
    return rest if first == names and rest.strip(separator + b'\n') else separator * names.count(separator) + b'\n'


def check(model, options, head, good, bad):
    options = ['--model', model + '.ckpt', '--on-error', 'skip', *options.split()]
    if not full:
        good, bad = r.sample(good, 1), r.sample(bad, 2)
    alone = {}
    for x in [*good, *bad]:
        rc, alone[x], err = predict(head + x, *options)
        assert rc == 0, (x, err)
    form = options[-1] if '--output-format' in options else options[options.index('--input-format') + 1] if '--input-format' in options else ''
    if form in ('csv', 'tsv'):
        names = alone[good[0]].split(b'\n')[0]
        alone = {x: row_of(alone[x], names) for x in alone}
    for _ in range(20 if full else 1):
        mix = [r.choice(good if r.random() < 0.6 else bad) for _ in range(r.choice([3, 20, 60]))]
        mix.append(good[0])  # an answer that gives the table its column names
        rc, out, err = predict(head + b''.join(mix), *options, '--batch', str(r.choice([1, 4, 16])))
        wanted = (names + b'\n' if form in ('csv', 'tsv') else b'') + b''.join(alone[x] for x in mix)
        assert rc == 0 and out == wanted, (mix, rc, err, next(x for x in zip(wanted.split(b'\n'), out.split(b'\n'), strict=False) if x[0] != x[1]))


for case in cases:
    try:
        check(*case)
    except AssertionError as e:
        sys.exit(f'seed {seed}: {case[:2]}: {str(e)[:3000]}')
