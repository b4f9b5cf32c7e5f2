#!/bin/bash
# test_records.sh - records to train on and to measure: JSONL, CSV and TSV, whose examples are the same as those of the networks' own
# files; and --tokenizer, which splits the text of any of them. VPPS names the program (default: build/vpps).

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

small=(--hidden 8 --embed 6 --batch 4 --vps 1 --min-count 1 --lr 0.02 --epochs 3 --force)
# learns FILE NETWORK OPTION...: the last lines of the run, as JSON, go to FILE.
learns() { exits 0 "$vpps" train "$2" "${small[@]}" --json "${@:3}" --save "$1.ckpt" && tail -n 1 out >"$1"; }
# alike FILE FILE: the runs trained the same: loss and measures to the last digit, and the parameters.
alike() {
    holds "(a := last('$1'))['loss'] and all(k not in a or a[k] == last('$2')[k] for k in ('loss', 'metrics'))" && holds "parts('$1.ckpt')[2] == parts('$2.ckpt')[2]"
}

# trains_as OTHER FILE NETWORK OPTION...: it trains the same as the other did.
trains_as() { learns "${@:2}" && alike "$1" "$2"; }

# ---------------------------------------------------------------- the same examples in all forms

python3 - <<'PY'
import csv, json, random
r = random.Random(1)
names = {'ada': 'PER', 'bob': 'PER', 'oslo': 'LOC', 'rome': 'LOC'}
sentences = [[r.choice(list(names)), r.choice(['sees', '"likes"', 'a,b']), r.choice(['the', 'it"s']), r.choice(list(names)), '.'] for _ in range(60)]
tags = [[f'B-{names[w]}' if w in names else 'O' for w in s] for s in sentences]
labels = ['person' if t[0] == 'B-PER' else 'place' for t in tags]
def write(name, native, rows, space='\n'):
    open(name, 'w').write(native)
    with open(name + '.jsonl', 'w') as f:
        for row in rows: print(json.dumps(row), file=f)
    flat = [{k: v if isinstance(v, str) else ' '.join(map(str, v)) for k, v in row.items()} for row in rows]
    for ending, dialect in (('csv', csv.excel), ('tsv', csv.excel_tab)):
        with open(f'{name}.{ending}', 'w', newline='') as f:
            w = csv.DictWriter(f, list(flat[0]), dialect=dialect)
            w.writeheader()
            # in CSV white space between words may be a line end
            w.writerows({k: v.replace(' ', space, 1) if ending == 'csv' and k == 'text' else v for k, v in row.items()} for row in flat)
text = [' '.join(s) for s in sentences]
write('labels', ''.join(f'{l}\t{t}\n' for l, t in zip(labels, text)), [{'id': str(i), 'text': t, 'label': l} for i, (t, l) in enumerate(zip(text, labels))])
write('tags', ''.join(' '.join(f'{w}|{t}' for w, t in zip(*x)) + '\n' for x in zip(sentences, tags)),
      [{'tokens': s, 'tags': t} for s, t in zip(sentences, tags)])
write('text', '\n'.join(text) + '\n', [{'sentence': t} for t in text])
open('pairs.de', 'w').write('\n'.join(text) + '\n')
open('pairs.en', 'w').write('\n'.join(' '.join(reversed(s)) for s in sentences) + '\n')
write('pairs', '', [{'source': ' '.join(s), 'target': ' '.join(reversed(s))} for s in sentences])
trees = [f'({i % 3} (2 {s[0]}) (0 {s[3]}))' for i, s in enumerate(sentences)]
write('trees', '\n'.join(trees) + '\n', [{'tree': t} for t in trees])
named = [f'(S (NP-SBJ (NN {s[0]})) (VP (VB {s[1]}) (NN {s[3]})))' for s in sentences]
write('named', '\n'.join(named) + '\n', [{'tree': t} for t in named])
spelled = [list(w) for s in sentences for w in s[:1]]
write('spelled', '\n'.join(''.join(f'{c} {"B-PER" if i == 0 else "O"}\n' for i, c in enumerate(s)) for s in spelled) + '\n',
      [{'tokens': s, 'tags': ['B-PER'] + ['O'] * (len(s) - 1)} for s in spelled])
open('lexicon', 'w').write('ada\nbob\noslo\nrome\n')
PY
# forms NETWORK NAME OPTION...: JSONL, CSV and TSV train as the network's own form does.
forms() {
    learns "$2.own" "$1" --train "$2" --dev "$2" "${@:3}" || return
    for ending in jsonl csv tsv; do
        learns "$2.$ending.run" "$1" --train "$2.$ending" --dev "$2.$ending" "${@:3}" && alike "$2.own" "$2.$ending.run" || return
    done
}
check "labelled sentences" forms bilstm-classifier labels
check "tagged sentences" forms bilstm-tagger tags
check "text" forms lstm-lm text
check "trees" forms tree-lstm trees
check "trees with names" forms tree-gru named
check "lattices of a lexicon" forms lattice-lstm spelled --lexicon lexicon
pairs() { # NETWORK
    learns pairs.own "$1" --train pairs --dev pairs --source de --target en || return
    for ending in jsonl csv tsv; do
        learns pairs.run "$1" --train "pairs.$ending" --dev "pairs.$ending" && alike pairs.own pairs.run || return
    done
}
check "pairs in one file" pairs lstm-nmt
check "eval of records by a network of two files" exits 0 "$vpps" eval --model pairs.own.ckpt pairs.csv --json --vps 1
check "measures the same pairs" json out "o['metrics'] == last('pairs.own')['metrics']"
check "pairs of lattices" pairs lattice-gru
gzip -k labels.csv
check "compressed is the same" trains_as labels.own labels.gz bilstm-classifier --train labels.csv.gz --dev labels.csv.gz
check "JSONL of another name is the same, too" trains_as labels.own labels.other bilstm-classifier --train <(cat labels.jsonl) --dev labels.jsonl
check "and is told" says err ": read as JSONL, an object a line"
tail -n +2 labels.tsv >numbered.tsv
check "fields by number are the same" trains_as labels.own numbered bilstm-classifier --train numbered.tsv --dev numbered.tsv --text-field 2 --label-field 3
sed '1s/text/review/; 1s/label/stars/' labels.tsv >renamed.tsv
check "fields by name are the same, too" trains_as labels.own renamed bilstm-classifier --train renamed.tsv --dev renamed.tsv --text-field review --label-field stars
measured() { # eval takes the names from the checkpoint, and measures what the run measured
    exits 0 "$vpps" eval --model renamed.ckpt --vps 1 --json renamed.tsv && json out "o['metrics']['accuracy'] == last('labels.own')['metrics']['accuracy']"
}
check "eval" measured
resumed() {
    exits 0 "$vpps" train --resume renamed.ckpt --epochs 4 --json && tail -n 1 out >resumed.json && learns four bilstm-classifier --train labels --dev labels --epochs 4 &&
        json resumed.json "o['loss'] == last('four')['loss']"
}
check "--resume" resumed
check "predict, whose header is no example" shows out $'id\ttext\tlabel\tscore' "$vpps" predict --model labels.own.ckpt labels.tsv
printf 'label\ttext\nperson\tada sees\n' >order.tsv
check "predict of label and text" exits 0 "$vpps" predict --model labels.own.ckpt order.tsv
check "is as long" test "$(wc -l <out) $(head -n 1 out | cut -f 1)" = "2 label"
numbers() { # tags and labels may be whole numbers
    printf '{"tokens": ["ada", "New York"], "ner_tags": [1, 0]}\n{"tokens": ["bob"], "ner_tags": [1]}\n' >numbers.jsonl
    learns numbers bilstm-tagger --train numbers.jsonl --label-field ner_tags && "$vpps" predict --model numbers.ckpt --json numbers.jsonl | grep -q '"label":"[01]"' &&
        printf '{"text": "ada", "label": 1}\n{"text": "bob", "label": 0}\n' >numbers.jsonl && learns numbers bilstm-classifier --train numbers.jsonl
}
check "whole numbers" numbers

# ---------------------------------------------------------------- what is wrong, and where

bad() { # NETWORK FILE TEXT MESSAGE OPTION...
    # shellcheck disable=SC2059 # escapes are wanted
    printf "$3" >"$2"
    fails_with 1 "vpps: $2$4" "$vpps" train "$1" --train "$2" --hidden 8 --min-count 1 "${@:5}"
}
check "a header without a label" bad bilstm-classifier a.csv 'text,stars\na,1\n' ":1: expected names of fields with 'text' and 'label', found text, stars: --text-field and --label-field tell others"
check "a header without a text" bad lstm-lm a.csv 'id,review\n1,a\n' ":1: expected names of fields with 'text', found id, review: --text-field tells others"
check "a name twice" bad bilstm-classifier a.csv 'text,label,text\na,x,b\n' ":1: expected one field 'text', found 2"
check "too few fields" bad bilstm-classifier a.csv 'text,label\n"a\nb",x\nc\n' ":4: expected 2 fields, as there are names, found 1"
check "semicolons" bad bilstm-classifier a.csv 'text;label\na;x\n' ":1: expected commas between fields, found semicolons: 'text;label'"
check "an array" bad bilstm-classifier a.json '[\n {"text": "a", "label": "x"}]\n' ": expected JSON objects, one a line, found an array: jq -c '.[]'"
check "a number that is not whole" bad bilstm-classifier a.jsonl '{"text": "a", "label": 0.5}\n' ":1: label: expected a label, as text or a whole number, found 0.5"
check "a quote is open" bad bilstm-classifier a.csv 'text,label\na,x\n"b,y\n' ":3: field 1: expected a closing quote"
check "no label" bad bilstm-classifier a.csv 'text,label\na,x\nb,\n' ":3: label: expected a label, as text or a whole number, found none"
check "no text" bad bilstm-classifier a.csv 'text,label\na,x\n,y\n' ":3: text: expected a text, found none"
check "null" bad bilstm-classifier a.jsonl '{"text": "a", "label": "x"}\n\n{"text": "b", "label": null}\n' ":3: label: expected a label"
check "no JSON" bad bilstm-classifier a.jsonl '{"text": "a", "label": "x"}\n{"text"\n' ":2: byte "
check "a key twice" bad bilstm-classifier a.jsonl '{"text": "a", "label": "x"}\n{"text": "b", "label": "x", "label": "y"}\n' ":2: expected one field 'label', found 2"
check "no such key" bad bilstm-classifier a.jsonl '{"text": "a", "stars": 1}\n' ":1: expected a field 'label', found text, stars: --label-field tells another name"
check "no number" bad bilstm-classifier a.csv 'a,x\n' ":1: expected a field 'label', found 1, 2: --label-field" --text-field 1
check "tags for fewer words" bad bilstm-tagger a.jsonl '{"tokens": ["a", "b"], "tags": ["O"]}\n' ":1: tags: expected a tag for each of 2 words, found 1"
check "no tags" bad bilstm-tagger a.jsonl '{"tokens": ["a"], "tags": ["O"]}\n{"tokens": ["a"]}\n' ":2: expected a field 'tags', found tokens: --label-field"
check "a tag that is none" bad bilstm-tagger a.jsonl '{"tokens": ["a", "b"], "tags": ["O", null]}\n' ":1: expected a tag of word 2, found none"
check "no target" bad lstm-nmt a.csv 'source,text\na,b\n' ":1: expected names of fields with 'source' and 'target', found source, text"
check "a bad tree" bad tree-lstm a.csv 'tree\n(3 (2 a) (1 b))\n(3 (2 a)\n' ":3: "
check "two trees" bad tree-lstm a.csv 'tree\n(3 (2 a) (1 b)) (3 (2 a) (1 b))\n' ":2: expected"
check "not UTF-8" bad bilstm-classifier a.csv 'text,label\na,x\n\377,y\n' ":3: field 1: expected text in UTF-8"
check "plain text has no fields" bad bilstm-classifier a.txt 'x\ta\n' ": --text-field names fields of files that end in .jsonl, .csv or .tsv" --text-field review
left_out() { # a note of pairs that lack a side, and of empty texts
    printf 'source,target\na b,c\nd,\n"x\ny",z\n,f\n' >gaps.csv && exits 0 "$vpps" train lstm-nmt "${small[@]}" --epochs 1 --train gaps.csv &&
        says err 'lstm-nmt on gaps.csv: 2 pairs' && says err 'gaps.csv:3: a record without words on one side is left out; such records: 2' &&
        printf '{"text": "a b"}\n{"text": " "}\n' >gaps.jsonl && exits 0 "$vpps" train lstm-lm "${small[@]}" --epochs 1 --train gaps.jsonl &&
        says err 'gaps.jsonl:2: a record without words is left out; such records: 1'
}
check "records without words" left_out
check "a tree's labels are in it" fails_with 2 "'--label-field' is an option of" "$vpps" train tree-lstm --train trees.jsonl --label-field tree
check "nor have edges" bad gat a.jsonl '{"text": "a"}\n' ": gat does not read JSONL"
check "CoNLL-U has no fields" bad child-sum-tree-lstm a.csv 'text\na\n' ": child-sum-tree-lstm does not read CSV"
two_files() {
    mkdir -p both && cp pairs.csv both/train.csv && cp pairs.jsonl both/train.jsonl
    fails_with 1 "train part: name one by --train; of pairs in two files --source and --target must tell" "$vpps" train lstm-nmt --data both --hidden 8
}
check "two files of a part" two_files
check "one file of text is no pair" bad lstm-nmt a.txt 'a\n' ": --source and --target must tell"
check "where an odd label is" learns odd bilstm-classifier --train labels.csv --dev <(printf '{"text": "ada", "label": "person"}\n{"text": "ada", "label": "thing"}\n')
check "is its line" says err ":2: the training part has no label thing"
check "a tag's line" learns odd bilstm-tagger --train tags.jsonl --dev <(head -n 7 tags.jsonl; printf '{"text": "ada", "tags": "B-X"}\n')
check "is its record's" says err ":8: the training part has no label B-X"
check "<eos> in a record" learns eos lstm-lm --train <(printf '{"text": "a b"}\n{"text": "c <eos> d"}\n')
check "is told with its line" says err ":2: <eos> marks the end of a sentence"
printf 'label\ttext\nperson\tada\n' >plain.txt
check "a name that says nothing: lines, as before" learns plain bilstm-classifier --train plain.txt

# ---------------------------------------------------------------- lists in cells of tables

python3 - <<'PY'
import csv, json
rows = [(['Ada', "d'Or", 'é"\\'], [0, 1, 0]), (['a', 'b'], [1, 1]), (['x'], [0])] * 4
numpy = lambda x: '[' + '\n '.join(map(repr, x)) + ']'
for name, words, tags in (('repr', repr, repr), ('json', json.dumps, json.dumps), ('numpy', numpy, numpy), ('tuple', lambda x: repr(tuple(x)), repr)):
    w = csv.writer(open(f'lists.{name}.csv', 'w', newline=''))
    w.writerows([('tokens', 'tags'), *((words(t), tags(g)) for t, g in rows)])
    w = csv.writer(open(f'lists.{name}.text.csv', 'w', newline=''))
    w.writerows([('text',), *((words(t),) for t, _ in rows)])
open('lists.jsonl', 'w').write(''.join(json.dumps({'tokens': t, 'tags': list(map(str, g))}) + '\n' for t, g in rows))
open('lists.text.jsonl', 'w').write(''.join(json.dumps({'text': t}) + '\n' for t, _ in rows))
open('brackets.csv', 'w').write('text\n"[applause] he said ""no"" [laughs]"\n"[\'Tis the season]"\n"(they, too)"\n')
PY
check "lists of JSONL" learns list.run bilstm-tagger --train lists.jsonl --dev lists.jsonl
check "lists of words" learns list.text.run lstm-lm --train lists.text.jsonl --dev lists.text.jsonl
for form in repr json numpy tuple; do
    check "lists as $form are those of JSONL" trains_as list.run "list.$form" bilstm-tagger --train lists.$form.csv --dev lists.$form.csv
    check "words as $form are those of JSONL, too" trains_as list.text.run "list.text.$form" lstm-lm --train lists.$form.text.csv --dev lists.$form.text.csv
done
check "brackets that are text" learns brackets.run lstm-lm --train brackets.csv --min-count 1
bracket_words() { grep -aqF "\\n[applause]" brackets.run.ckpt && grep -aqF "\\n['Tis" brackets.run.ckpt; }
check "stay it" bracket_words
printf "tokens,tags\n\"['a' ... 'z']\",\"[0 ... 1]\"\n" >cut.csv
check "a list without its middle" fails_with 1 'cut.csv:2: tokens: expected a list, found one with "..."' "$vpps" train bilstm-tagger --train cut.csv
printf 'index\tquestion\tsentence\tlabel\n1\tIs it so ?\tIt is .\ta\n2\tIs it ?\tNo .\tb\n' >qnli.tsv
check "a text that is not read" learns qnli.run bilstm-classifier --train qnli.tsv
check "is told" says err "qnli.tsv:2: 'question' is not read, only 'sentence': --text-field names another one"

# ---------------------------------------------------------------- --tokenizer

python3 - <<'PY'
import csv, json
text = [('good', 'A film, "good" it\'s!', 'A film , " good " it\'s !'), ('bad', 'Not (very) good.', 'Not ( very ) good .')] * 8
for name, k in (('raw', 1), ('split', 2)):
    open(f'{name}.labels', 'w').write(''.join(f'{t[0]}-x!\t{t[k]}\n' for t in text))
    open(f'{name}.text', 'w').write(''.join(t[k] + '\n' for t in text))
    for e in ('de', 'en'): open(f'{name}.pairs.{e}', 'w').write(''.join(t[k] + '\n' for t in text))
    open(f'{name}.jsonl', 'w').write(''.join(json.dumps({'label': t[0] + '-x!', 'text': t[k]}) + '\n' for t in text))
PY
split() { # NETWORK FILE OPTION...
    learns split.run "$1" --train "split.$2" --dev "split.$2" "${@:3}" && learns raw.run "$1" --train "raw.$2" --dev "raw.$2" --tokenizer simple "${@:3}" && alike split.run raw.run
}
check "labelled sentences, whose labels stay" split bilstm-classifier labels
check "predict does as training did" test "$(printf 'Not (very)!\n' | "$vpps" predict --model raw.run.ckpt | cut -f 2)" = "Not ( very ) !"
check "of labelled sentences, too" test "$("$vpps" predict --model raw.run.ckpt raw.labels 2>/dev/null | cut -f 2)" = "$(cut -f 2 split.labels)"
check "--tokenizer none" test "$(printf 'Not (very)!\n' | "$vpps" predict --model raw.run.ckpt --tokenizer none | cut -f 2)" = "Not (very)!"
check "eval measures the same" tells "o['metrics'] == last('split.run')['metrics']" "$vpps" eval --model raw.run.ckpt raw.labels --json --vps 1
check "records" split bilstm-classifier jsonl
check "text" split lstm-lm text
check "pairs" split lstm-nmt pairs --source de --target en
check "words with tags stay as they are" trains_as tags.own tags.simple bilstm-tagger --train tags --dev tags --tokenizer simple
check "and predict splits text" test "$(echo 'ada, bob.' | "$vpps" predict --model tags.simple.ckpt | wc -w)" = 4
by_command() { # a checkpoint of when the tokenizer might be a command
    recast "$1" by.ckpt "m['option.tokenizer'] = 'touch ran; cat'"
}
learns before bilstm-classifier --train raw.labels --tokenizer simple
check "made by a command" by_command before.ckpt
for run in "predict --model" "eval --model" "train --resume"; do
    read -r -a words <<<"$run"
    check "it is not run: $run" fails_with 1 "by.ckpt: \"option.tokenizer\" is \"touch ran; cat\", not one of none|simple" "$vpps" "${words[@]}" by.ckpt
done
check "--tokenizer none of it" exits 0 "$vpps" eval --model by.ckpt split.labels --tokenizer none
check "nor one that is given" fails_with 2 "--tokenizer" "$vpps" train lstm-lm --train raw.text --tokenizer 'touch ran; cat'
check "no command was run" test ! -e ran
check "without data there is no text" fails_with 2 "--tokenizer goes with --data or --train" "$vpps" train lstm-lm --tokenizer simple

summary
