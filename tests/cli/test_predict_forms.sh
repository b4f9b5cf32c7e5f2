#!/bin/bash
# test_predict_forms.sh - `vpps predict` on the files that people have: tagged and labelled ones, columns, JSONL, CSV, text that is not
# split into words. VPPS names the program (default: build/vpps).

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

# shellcheck source=SCRIPTDIR/people.sh
source "$cli/people.sh"

check "a language model" exits 0 "$vpps" train lstm-lm --train text "${small[@]}" --epochs 1 --save text.ckpt
check "a translator" exits 0 "$vpps" train lstm-nmt --examples 30 "${small[@]}" --epochs 1 --save pairs.ckpt
check "a network on trees" exits 0 "$vpps" train tree-lstm --examples 60 "${small[@]}" --epochs 1 --save trees.ckpt
check "a network on lattices" exits 0 "$vpps" train lattice-lstm --examples 60 "${small[@]}" --epochs 1 --save lattices.ckpt

# gives TEXT OPTION... <INPUT: what predict prints, with printf's escapes.
gives() {
    local text=$1
    shift
    # shellcheck disable=SC2059 # escapes are wanted
    predict "$@" && diff <(printf -- "$text") out
}
given() { # given INPUT TEXT OPTION...
    local input=$1
    shift
    # shellcheck disable=SC2059
    printf -- "$input" | gives "$@"
}

# ---------------------------------------------------------------- tags, columns, labels

same() { predict "${@:2}" && cmp out "$1"; } # same FILE OPTION...: that is what predict prints
check "word|TAG lines come back" same tags --model tags.ckpt tags
check "it is told" says err "vpps: tags: read as word|TAG lines, whose tags are replaced (--input-format text"
check "columns come back" same columns --model tags.ckpt --input-format columns columns
check "columns as lines" same tags --model tags.ckpt --input-format columns columns --output-format text
other_labels() {
    printf '\nfive\tada\nperson\tbob\n' >other && fails_with 1 "other:2:1: expected a label of the network before the tab, found 'five'; --input-format text" \
        "$vpps" predict --model labels.ckpt other && exits 0 "$vpps" predict --model labels.ckpt other --input-format labelled &&
        exits 0 "$vpps" predict --model labels.ckpt other --input-format text && printf 'person\tada\nfive\tbob\nada\n' >other &&
        ! predict --model labels.ckpt other && says err "other:3:" && printf ' \t\n' | predict --model labels.ckpt && empty err
}
check "labels that the network does not have" other_labels
check "labelled lines come back" same labels --model labels.ckpt labels
check "it is told, too" says err "vpps: labels: read as a label, a tab and a sentence a line"
check "other tags are ignored" given 'ada|X sees|Y rome|Z\n' 'ada|B-PER sees|O rome|B-LOC\n' --model tags.ckpt
unclear() { # unclear INPUT MESSAGE: its first line may be one of text or of columns
    # shellcheck disable=SC2059 # escapes are wanted
    printf "$1" | predict --model tags.ckpt
    [ $? -eq 1 ] && empty out && says err "vpps: stdin:$2; --input-format text or columns says what the lines are"
}
first_word() { # the first word tells, whatever the others are
    printf 'ada sees|O rome|O\n' | predict --model tags.ckpt && grep -q ' sees|O|.* rome|O|' out &&
        printf 'ada|O sees\nrome\n' >some && fails_with 1 "some:1:7: expected word|TAG, found 'sees'" "$vpps" predict --model tags.ckpt some
}
check "the first word tells of tags" first_word
check "columns without tabs" unclear 'ada X B-PER\nsees X O\n' "1:1: expected text, found a line that may be of columns"
check "columns with unknown tags" unclear '# a\n\nada\tX\tNEW\nsees\tX\tO\n' "3:1: expected a tag of the network in the column of tags"
check "columns with tabs" given 'ada\tO\nsees\tO\n' 'ada\tB-PER\nsees\tO\n' --model tags.ckpt
check "columns from -DOCSTART- on" given '-DOCSTART- X O\n\nada X O\n' '-DOCSTART- X O\n\nada X B-PER\n' --model tags.ckpt
check "--json and another form" fails_with 2 "--json prints JSON: it excludes another --output-format" "$vpps" predict --model tags.ckpt --json \
    --output-format csv tags
quiet() { printf 'ada sees rome\nbob likes oslo\n' | predict --model tags.ckpt && [ ! -s err ]; }
check "sentences of equal length are none" quiet
check "--gold: both tags" given 'ada|O sees|O\n' 'ada|O|B-PER sees|O|O\n' --model tags.ckpt --gold
check "--gold: both labels" given 'place\tada sees rome .\n' 'place\tperson\tada sees rome .\n' --model labels.ckpt --gold
check "--gold: columns for conlleval" given 'ada X O\n\n\nbob X B-PER\n' 'ada X O B-PER\n\n\nbob X B-PER B-PER\n' --model tags.ckpt --gold --input-format columns
matches() { # matches INPUT PATTERN OPTION...: the only line
    # shellcheck disable=SC2059
    printf "$1" | predict "${@:3}" && [ "$(wc -l <out)" = 1 ] && grep -qxP -e "$2" out && return
    cat out err
    return 1
}
check "--gold: trees" matches '(1 (2 3) (7 7))\n' '\(1 \(2 3\) \(7 7\)\)\t\(\d \(\d 3\) \(\d 7\)\)' --model trees.ckpt --gold
check "--gold: labels of trees" matches '(1 (2 3) (7 7))\n' '1\t\d' --model trees.ckpt --gold -o label
check "--gold needs some" fails_with 1 "text: --gold needs examples with tags, found lines of text" "$vpps" predict --model tags.ckpt --gold text
check "lines of text stay lines of text" given 'ada .\nrome .\n' 'ada|B-PER .|O\nrome|B-LOC .|O\n' --model tags.ckpt
check "--input-format text" matches 'ada|O\n' 'ada\|O\|[^|]+' --model tags.ckpt --input-format text
check "words alone, as columns" given 'ada\nsees\n\nrome\n' 'ada\tB-PER\nsees\tO\n\nrome\tB-LOC\n' --model tags.ckpt --input-format columns
check "--tag-column" given 'ada O X\nrome O Y\n' 'ada B-PER X\nrome B-LOC Y\n' --model tags.ckpt --input-format columns --tag-column 2
check "tags that the network does not know stay" given 'ada NN\nrome NP\n' 'ada NN B-PER\nrome NP B-LOC\n' --model tags.ckpt --input-format columns
check "ten words, the first a number" matches '5.30 is the time when the train to London leaves\n' '(\S+\|\S+ ){9}leaves\|\S+' --model tags.ckpt
check "ten words, the first a year" matches '2023 was a good year for all of us here\n' '(\S+\|\S+ ){9}here\|\S+' --model tags.ckpt
one_word() { printf 'ada\n\nsees O\n' | predict --model tags.ckpt --input-format columns; [ $? -eq 1 ] && says err "stdin:3:1: expected one word a line"; }
check "a word alone, then two columns" one_word
range() { printf '1-2\tAda.\t_\t_\t_\t_\t_\t_\t_\t_\n1\tada\ta\t%s\tNN\t_\t2\tx\t_\t_\n' "$1"; }
range_stays() { range X | predict --model tags.ckpt && grep -q "^1.ada.a.X.*B-PER$" out && range O | predict --model tags.ckpt && grep -q "^1.ada.a.B-PER.NN.*_$" out; }
check "the first word's tag, after a multiword token" range_stays
check "one line without an end, below a comment" given '# c\nada\tO' '# c\nada\tB-PER\n' --model tags.ckpt
check "CoNLL-U with spaces" unclear '1 ada a X NN _ 2 x _ _\n' "1:1: expected text, found a line that may be of columns"
at_once() { with_runs "assert not ask(sys.argv[1], [('\n', '\n'), ('ada\n', 'ada|B-PER\n')], '--model', 'tags.ckpt', '--input-format', 'text')" "$vpps"; }
check "lines of text as they come, where the format is told" at_once
slowly() { (printf '# a\n\n'; sleep 0.2; printf 'ada\tO\n') | gives '# a\n\nada\tB-PER\n' --model tags.ckpt; }
check "a comment that comes first, from a pipe" slowly
check "unknown tags after -DOCSTART- stay" given '-DOCSTART- X\n\nada NN\n' '-DOCSTART- X\n\nada NN B-PER\n' --model tags.ckpt
check "comments and -DOCSTART- stay" given '-DOCSTART- X O\n\n# one\nada X O\nrome X B-LOC\n' \
    '-DOCSTART- X O\n\n# one\nada X B-PER\nrome X B-LOC\n' --model tags.ckpt --input-format columns
conllu() { printf '# text = ada\n1-2\tAda.\t_\t_\t_\t_\t_\t_\t_\t_\n1\tada\ta\t%s\tNN\t_\t2\tx\t_\t_\n2\trome\tb\t%s\tNP\t_\t0\ty\t_\t_\n\n' "$1" "$2"; }
conllu _ _ >in.conllu
conllu B-PER B-LOC >expected
check "CoNLL-U" same expected --model tags.ckpt in.conllu
plus() { printf '# global.columns = ID FORM UPOS\n1\tada\t%s\n\n1\trome\t%s\n' "$1" "$2"; }
plus _ _ >plus.conllu
plus B-PER B-LOC >expected
check "CoNLL-U Plus" same expected --model tags.ckpt plus.conllu
bad_columns() {
    printf 'ada X O\n\nbob X O\nada O\n\nrome X O\n' >bad.conll
    ! predict --model tags.ckpt bad.conll && says err "vpps: bad.conll:4:1: expected 3 columns as in line 1" && [ "$(wc -l <out)" = 2 ] &&
        predict --model tags.ckpt bad.conll --on-error skip && [ "$(grep -c X out)" = 2 ] && [ "$(tail -n 1 out)" = 'rome X B-LOC' ]
}
check "a bad sentence of columns" bad_columns
co_process() { # an answer when the sentence ends
    with_runs "assert not ask(sys.argv[1], [('ada\tO\nsees\tO\n\n', 'ada\tB-PER\nsees\tO\n\n')], '--model', 'tags.ckpt', '--input-format', 'columns')" "$vpps"
}
check "columns as they come" co_process
long_sentence() {
    { printf 'ada O\n\n'; for _ in $(seq 30); do printf 'ada O\n'; done; printf '\nrome O\n'; } >long
    predict --model tags.ckpt --input-format columns --line-bytes 100 --on-error skip long &&
        says err "vpps: long:3: expected a sentence of at most 100 bytes" && [ "$(tail -n 1 out)" = 'rome B-LOC' ]
}
check "a sentence beyond --line-bytes" long_sentence
check "columns are for taggers" fails_with 1 "bilstm-classifier does not read columns" "$vpps" predict --model labels.ckpt --input-format columns labels
check "nor are they printed" fails_with 1 "does not tag words: it prints no columns" "$vpps" predict --model labels.ckpt --output-format columns labels

# ---------------------------------------------------------------- JSONL, CSV, TSV

# What Python's json and csv write is read, and the other way round; texts have all that has to be quoted.
records() {
    python3 - "$vpps" <<'PY'
import csv, functools, io, json, sys
from runs import answer
predict = functools.partial(answer, sys.argv[1])
texts = ['ada sees rome .', 'rome , "a" sees\nada', 'bob\r\nsees', ' "oslo" ', '', "l'été, ö", 'a,b', '"', 'x\ty']
rows = [{'id': str(i), 'text': t, 'label': 'place'} for i, t in enumerate(texts)]
# JSONL
for ascii in (True, False):
    out = [json.loads(l) for l in predict(''.join(json.dumps(r, ensure_ascii=ascii) + '\n' for r in rows), '--model', 'labels.ckpt').splitlines()]
    assert [o['id'] for o in out] == [r['id'] for r in rows] and [o['text'] for o in out] == texts
    assert out[0]['label'] == 'person' and 0.5 < out[0]['score'] <= 1 and out[1]['label'] == 'place' and out[4] == {'id': '4', 'text': '', 'label': None}
out = [json.loads(l) for l in predict(''.join(json.dumps(r) + '\n' for r in rows), '--model', 'labels.ckpt', '--gold').splitlines()]
assert (out[0]['gold'], out[0]['label']) == ('place', 'person')
# CSV, with both line ends and all quoted or few
for dialect in ({}, {'lineterminator': '\n'}, {'quoting': csv.QUOTE_ALL}):
    f = io.StringIO(newline='')
    w = csv.DictWriter(f, ['id', 'text', 'label'], **dialect)
    w.writeheader(); w.writerows(rows)
    out = list(csv.DictReader(io.StringIO(predict(f.getvalue(), '--model', 'labels.ckpt', '--input-format', 'csv', '--gold'), newline='')))
    assert [o['text'] for o in out] == texts, out
    assert list(out[0]) == ['id', 'text', 'label', 'score', 'gold'] and out[0]['label'] == 'person' and out[0]['gold'] == 'place'
    assert out[4]['score'] == out[4]['label'] == ''
# a byte order mark is no part of a record; a table's first line ends as that of the input does
mark = '\ufeff'
assert json.loads(predict(mark + '{"text": "ada sees rome"}\n', '--model', 'labels.ckpt'))['label'] == 'person'
out = predict(mark + '"id\nof",text\r\n1,ada sees rome\n', '--model', 'labels.ckpt', '--input-format', 'csv')
assert out.startswith('"id\nof",text,label,score\r\n1,ada sees rome,person,') and out.count('\r') == 1, out
assert predict(mark + 'ada\tx\n', '--model', 'tags.ckpt', '--input-format', 'tsv', '--text-field', '1') == 'ada\tx\tada\tB-PER\n'
# taggers: text, or words as they are; tags as lists, as text, or as predict prints them
out = json.loads(predict(json.dumps({'text': 'ada sees rome', 'n': 1.5, 'meta': {'a': [1]}}) + '\n', '--model', 'tags.ckpt'))
assert out['words'] == ['ada', 'sees', 'rome'] and [t['label'] for t in out['tags']] == ['B-PER', 'O', 'B-LOC']
assert out['n'] == 1.5 and out['meta'] == {'a': [1]} and out['spans'][1]['type'] == 'LOC'
again = json.loads(predict(json.dumps(out) + '\n', '--model', 'tags.ckpt', '--gold'))
assert [t['gold'] for t in again['tags']] == ['B-PER', 'O', 'B-LOC']
out = json.loads(predict(json.dumps({'tokens': ['ada', 'New York', 'rome'], 'tags': ['O', 'O', 'O']}) + '\n', '--model', 'tags.ckpt', '--gold'))
assert out['words'] == ['ada', 'New York', 'rome'] and [t['gold'] for t in out['tags']] == ['O'] * 3
out = predict('words,gold\nada sees,O O\n', '--model', 'tags.ckpt', '--input-format', 'csv', '--gold')
assert out == 'words,gold,tags\nada sees,O O,B-PER O\n', out
# TSV, and a table without names
assert predict('text\tid\nada "sees\t7\n', '--model', 'tags.ckpt', '--input-format', 'tsv').startswith('text\tid\twords\ttags\nada "sees\t7\tada "sees\tB-PER ')
# quotes between tabs: of a whole field they go, as a spreadsheet's; others are text, as where nothing is quoted
bare = ['ada " sees', 'ada "sees" rome', '"ada" sees "rome"', '"ada sees', 'ada sees"', '"']
text = lambda field: json.loads(predict(f'id\ttext\n7\t{field}\n', '--model', 'text.ckpt', '--input-format', 'tsv', '--output-format', 'jsonl'))['text']
for field in bare: assert text(field) == field, field
for field in ['ada\tsees', 'a "b" c', '"', '"ada"', '', 'x\t"y"\t']: assert text('"' + field.replace('"', '""') + '"') == field, field
f = io.StringIO(newline='')
csv.writer(f, csv.excel_tab).writerows([['text', 'id']] + [[t, i] for i, t in enumerate(texts) if not set('\r\n') & set(t)])
back = predict(f.getvalue(), '--model', 'text.ckpt', '--input-format', 'tsv')
assert [r[0] for r in list(csv.reader(io.StringIO(back, newline=''), csv.excel_tab))[1:]] == [t for t in texts if not set('\r\n') & set(t)]
assert predict('1,ada sees\n', '--model', 'tags.ckpt', '--input-format', 'csv', '--text-field', '2').startswith('1,ada sees,ada sees,B-PER')
# the other networks
o = json.loads(predict('{"sentence": "ada sees"}\n', '--model', 'text.ckpt'))
assert o['perplexity'] > 1 and o['sentence'] == 'ada sees'
o = json.loads(predict('{"source": "a b", "target": "c"}\n', '--model', 'pairs.ckpt'))
assert isinstance(o['translation'], str) and o['target'] == 'c'
o = json.loads(predict('{"tree": "(1 (2 3) (7 7))"}\n', '--model', 'trees.ckpt', '--gold'))
assert o['gold'] == 1 and len(o['nodes']) == 3 and o['nodes'][0]['gold'] == 2
o = json.loads(predict('{"text": "ab c"}\n', '--model', 'lattices.ckpt'))
assert o['words'] == ['a', 'b', 'c'] and len(o['tags']) == 3
table = list(csv.DictReader(io.StringIO(predict('ada, "x"\nrome\n', '--model', 'text.ckpt', '--output-format', 'csv'))))
assert [t['text'] for t in table] == ['ada, "x"', 'rome'] and float(table[0]['perplexity']) > 1
assert predict('{"text":"ada sees"}\n', '--model', 'tags.ckpt', '--output-format', 'columns') == 'ada\tB-PER\nsees\tO\n\n'
PY
}
check "records of Python's json and csv" records

bad() { # bad FORM INPUT MESSAGE LINES: the message, after so many lines
    # shellcheck disable=SC2059
    printf "$2" | predict --model labels.ckpt --input-format "$1"
    [ $? -eq 1 ] && says err "vpps: stdin:$3" && [ "$(wc -l <err)" = 1 ] && [ "$(wc -l <out)" = "$4" ]
}
check "JSONL: no JSON" bad jsonl '{"text": "ada"}\n{"text": }\n' "2: byte 10: not JSON: " 1
check "JSONL: no object" bad jsonl '[1]\n' "1: expected a JSON object" 0
check "JSONL: no text" bad jsonl '{"text": "ada"}\n{"id": 1, "a": 2}\n' "2: expected a field 'text', found id, a: --text-field" 1
check "CSV: a quote is not closed" bad csv 'text\nada\n"bob\n\n' "3: field 1: expected a closing quote" 2
check "CSV: more after a quote" bad csv 'text\n"a"b\n' "2: field 1: expected a comma or the record's end after the closing quote, found 'b'" 0
unnamed() {
    printf 'ada sees rome\nbob\n' | predict --model labels.ckpt --input-format csv && says err "stdin:1: 'ada sees rome' is read as the name of the field" &&
        [ "$(wc -l <out)" = 2 ] && printf 'ada sees rome\nbob\n' | predict --model labels.ckpt --input-format csv --text-field 1 &&
        empty err && [ "$(wc -l <out)" = 2 ] && ! grep -q name out
}
check "CSV: a line of text where names are" unnamed
check "CSV: one field" bad csv 'text\nada, bob\n' "2: expected 1 field, as there are names, found 2" 0
check "an array" bad auto '[{"text": "ada"},\n{"text": "bob"}]\n' " expected JSON objects, one a line, found an array" 0
check "--json is JSONL" matches '{"text":"ada"}\n' '\{"text":"ada","words":\["ada"\].*' --model tags.ckpt --json
check "TSV: a line is a record" bad tsv 'id\ttext\n1\t"ada\nsees"\n' "3: expected 2 fields, as there are names, found 1" 2
by_name() {
    printf 'text\nada\n' >some.csv
    printf '{"text":"ada"}\n' >some.jsonl
    gzip -k some.csv
    predict --model labels.ckpt some.csv && [ "$(head -n 1 out)" = text,label,score ] && predict --model labels.ckpt some.csv.gz some.csv &&
        [ "$(grep -c ada out)" = 2 ] && [ "$(grep -c text out)" = 1 ] && predict --model labels.ckpt some.jsonl && grep -q '^{"text":"ada","label":' out
}
check "forms by files' names" by_name
two_of_columns() { # a blank line parts the sentences of two files
    printf 'ada X O\nsees X O\n' >first.conll && printf 'rome X O\n\n' >second.conll &&
        gives 'ada X B-PER\nsees X O\n\nrome X B-LOC\n\nada X B-PER\nsees X O\n' --model tags.ckpt first.conll second.conll first.conll &&
        : >none.txt && gives 'ada X B-PER\nsees X O\n\nrome X B-LOC\n\n' --model tags.ckpt first.conll none.txt second.conll
}
check "columns of several files" two_of_columns

check "trees are no text" fails_with 2 "'--tokenizer' is an option of" "$vpps" predict --model trees.ckpt --tokenizer simple

# ---------------------------------------------------------------- words

tokens() { printf '%s\n' "$1" | predict --model text.ckpt --tokenizer simple && diff <(printf '%s\n' "$2") <(cut -f2 out); }
check "--tokenizer simple" tokens "Ada, (bob) \"sees\" it's e-mail: 3.14... a@b.org -- \$5 #x, U.S." \
    "Ada , ( bob ) \" sees \" it's e-mail : 3.14 ... a@b.org -- \$5 #x , U.S ."
# shellcheck disable=SC1111 # these quotes are meant
check "beyond ASCII" tokens "„Été“ – l’été… 你好。" "„ Été “ – l’été … 你好 。"
check "words stay" tokens "ada sees rome ." "ada sees rome ."
check "of a field" matches '{"text":"ada, rome."}\n' 'ada\|\S+ ,\|\S+ rome\|\S+ \.\|\S+' --model tags.ckpt --tokenizer simple --output-format text

# An object's beginning tells that records are JSONL, whatever is wrong with the first one.
faulty() { # faulty RECORD: it costs its own answer alone, and stands for no text
    # shellcheck disable=SC2059
    printf "$1\n{\"text\":\"ada\"}\n" | predict --model labels.ckpt --on-error skip && says err "vpps: stdin:1: byte $2: not JSON" &&
        [ "$(wc -l <out)" = 2 ] && [ -z "$(head -n 1 out)" ] && tail -n 1 out | grep -q '^{"text":"ada","label":"person"'
}
check "a first record with half a pair of surrogates" faulty '{"text":"\\ud800 ada"}' 16
check "with a comma too many" faulty '{"text":"ada",}' 15
check "that is not closed" faulty '{"text":"ada' 13
check "with other bytes than UTF-8" faulty '{"text":"\377"}' 10
check "in several lines" bad auto '{\n"text":"ada"}\n' "1: byte 2: not JSON" 0
check "a blank before it" matches '  {"text":"ada"}\n' '\{"text":"ada","label":.*' --model labels.ckpt
check "braces in text" given '{ ada }\n' 'person\t{ ada }\n' --model labels.ckpt

# Fields that are not the network's are what they were, byte by byte.
foreign() {
    python3 - "$vpps" <<'PY'
import csv, io, sys
from runs import answer
def predict(text, *options): return answer(sys.argv[1], text, '--model', 'labels.ckpt', *options)
values = ['12345678901234567890', '-0', '0.1234567890123456789', '1E+400', '1.50', '{"a" : [1, 2.50], "a":{}}', '[ "x","y" ]', '[]', r'"\u00e9\/\u0000\ud83d\ude00"', '"é"',
          'null', 'true', '"' + 'x' * 5000 + '"', '[' * 500 + ']' * 500]
members = ','.join(f'"{chr(97 + i)}":{v}' for i, v in enumerate(values))
out = predict('{' + members + r',"\u0061":7,"text":"ada sees"}' + '\n')
assert out.startswith('{' + members + r',"\u0061":7,"text":"ada sees","label":"person","score":'), out
out = predict('{ "label" : 1.0, "z":1e5 ,"label":2, "text":"ada sees", "score":"mine"}\n')
assert out.startswith('{"label":"person","z":1e5,"text":"ada sees","score":0.'), out
assert predict('{"z":1e5,"label":"x","text":"","y":18446744073709551616}\n') == '{"z":1e5,"label":null,"text":"","y":18446744073709551616}\n'
for form, dialect in (('csv', {}), ('tsv', {'delimiter': '\t'})):
    row = list(csv.reader(io.StringIO(predict('{' + members + ',"text":"ada sees"}\n', '--output-format', form), newline=''), **dialect))[1]
    strings = {9: 'é', 10: '', 12: 'x' * 5000}
    assert row[:len(values)] == [strings.get(i, v) for i, v in enumerate(values)], row
PY
}
check "fields of others" foreign
big() { printf '{"id":99999999999999999999,"text":"ada","label":"person"}\n' >big.jsonl && exits 0 "$vpps" eval --model labels.ckpt big.jsonl; }
check "to measure, too" big
twice() { # only what is read must be there once
    printf '{"id":1,"id":2,"text":"ada"}\n{"text":"a","text":"b"}\n' | predict --model labels.ckpt --on-error skip && says err "stdin:2: expected one field 'text', found 2" &&
        [ "$(sed -n 1p out | cut -c 1-16)" = '{"id":1,"id":2,"' ]
}
check "fields twice" twice

# One bad record costs its own answer alone, whatever it is and wherever it stands: each answer is that of the record alone.
check "a mix of good and bad records" python3 -S "$cli/mixes.py" "$vpps" "${VPPS_TEST_SCALE:-1}"

# ---------------------------------------------------------------- rows, and their ends

rows() { given "$1" "$2" --model tags.ckpt --input-format "${@:3}"; }
check "-DOCSTART- parts sentences of columns" rows 'ada X O\n-DOCSTART- X O\nrome X O\n' 'ada X B-PER\n-DOCSTART- X O\nrome X B-LOC\n' columns
check "comments by themselves" rows '# made by me\n\nada X O\nbob X O\n\n# to be continued soon\n\nrome X O\n' \
    '# made by me\n\nada X B-PER\nbob X B-PER\n\n# to be continued soon\n\nrome X B-LOC\n' columns
check "CR LF of columns" rows 'ada X O\r\nbob X O\n\r\nrome X O\r\n' 'ada X B-PER\r\nbob X B-PER\n\r\nrome X B-LOC\r\n' columns
check "of columns of words" rows 'ada\r\nsees\r\n\r\n' 'ada\tB-PER\r\nsees\tO\r\n\r\n' columns
check "of lines" rows 'ada\r\nrome\n' 'ada|B-PER\r\nrome|B-LOC\n' text
check "of records" rows 'id,text\r\n1,"ada\r\nrome"\r\n' 'id,text,words,tags\r\n1,"ada\r\nrome",ada rome,B-PER B-LOC\r\n' csv
check "a field of white space" rows 'a\ttext\n\t\n\tada\n' 'a\ttext\twords\ttags\n\t\t\t\n\tada\tada\tB-PER\n' tsv
check "a blank line where there is one field" rows 'text\nada\n\nada\n' 'text,words,tags\nada,ada,B-PER\n,,\nada,ada,B-PER\n' csv
check "a blank line of text, as a table" given 'ada\n\nada\n' 'words,tags\nada,B-PER\n,\nada,B-PER\n' --model tags.ckpt --output-format csv
check "no records" rows 'id,text\n' 'id,text,words,tags\n' csv
check "a comment after all" rows '1\tada\ta\tX\tX\t_\t0\t_\t_\t_\n\n# end\n' '1\tada\ta\tX\tX\t_\t0\t_\t_\t_\tB-PER\n\n# end\n' columns
blank_told() { printf 'id,text\n1,ada\n\n2,ada\n' | predict --model tags.ckpt --input-format csv && says err "stdin:3: a blank line is no record, and has no answer; such lines: 1"; }
check "a blank line where there are several is told" blank_told
document_words() {
    printf '{"tokens":["-DOCSTART-","ada","-DOCSTART-"],"tags":["O","O","O"]}\n' | predict --model tags.ckpt --gold && [ "$(grep -o '"gold"' out | wc -l)" = 3 ]
}
check "-DOCSTART- is a word of a record" document_words

doubled() { # one of both would be lost
    printf 'id,id,text\n1,2,ada\n' >doubled.csv
    fails_with 1 "doubled.csv:1: two fields have the name 'id'; expected one" "$vpps" predict --model "$1" doubled.csv
}
check "a name twice, of a field that is not read" doubled labels.ckpt

summary
