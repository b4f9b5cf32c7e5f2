#!/bin/bash
# test_forms.sh - files of other tools, and files that are nearly right: what is read of them, what is told, what is refused.
# VPPS names the program (default: build/vpps).

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

# ---------------------------------------------------------------- helpers

# learn NETWORK OPTION...: trains for an epoch, with every word known; leaves out, err and f.ckpt.
learn() {
    rm -f f.ckpt
    exits 0 "$vpps" train "$1" --vps 1 --hidden 4 --batch 4 --epochs 1 --min-count 1 --save f.ckpt --json "${@:2}"
}
# has KEY EXPRESSION: the Python expression is true of x, the list of f.ckpt's words (vocabulary) or classes (class_names).
has() {
    with_runs "x = sorted(parts('f.ckpt')[1][sys.argv[1]].split('\n')); eval(sys.argv[2]) or sys.exit(f'not true: {sys.argv[2]} of {x}')" "$@"
}
# finds KEY EXPRESSION NETWORK OPTION...: it learns, and has such words or classes. untold NETWORK OPTION...: it learns, and nothing is told.
finds() { learn "${@:3}" && has "$1" "$2"; }
untold() { learn "$@" && quiet; }
quiet() { ! grep -v '^\(vpps: \)\?cpu\|^epoch\|^[a-z-]* on ' err | grep . || { echo "told:"; cat err; return 1; }; }
# refuses TEXT NETWORK OPTION...
refuses() { fails_with 1 "$1" "$vpps" train "$2" --vps 1 --hidden 4 --epochs 1 "${@:3}"; }

# The same ten sentences in every form; words and tags that all readers must find in them.
python3 - <<'PY'
import random
r = random.Random(4)
S = []
for k in range(10):
    s = [(r.choice(['Ann', 'Bob']), 'B-PER')] + [('Li', 'I-PER'), ('Wu', 'I-PER')][:k % 3] + [(r.choice(['sees', 'runs']), 'O')]
    S.append(s + [('#', 'O')] * (k % 4 == 0) + [('Oslo', 'B-LOC')] * (k % 2))
def write(name, text): open(name, 'w', newline='').write(text)
def columns(line, begin=''):
    return ''.join(begin + ''.join(line(i, w, t) + '\n' for i, (w, t) in enumerate(s, 1)) + '\n' for s in S)
def bars(token, between=' '): return ''.join(between.join(token(w, t) for w, t in s) + '\n' for s in S)
write('bars', bars(lambda w, t: f'{w}|{t}'))
write('bars-tabs', bars(lambda w, t: f'{w}|{t}', '\t'))
write('bars-3', bars(lambda w, t: f'{w}|NN|{t}'))
write('bars-crlf', '\ufeff' + bars(lambda w, t: f'{w}|{t}').replace('\n', ' \r\n'))
write('blanks', columns(lambda i, w, t: f'{w} {t}'))
write('joined', ''.join('\ufeff' + part for part in columns(lambda i, w, t: f'{w} {t}').split('\n\n')[:-1]).replace('\ufeff', '\n\n\ufeff'))
write('slashes', bars(lambda w, t: f'{w}/{t}'))
write('slashes-alike', 'Ann/NN sees/VB Oslo/NN\nBob/NN runs/VB ./SYM\n')
write('underscores', bars(lambda w, t: f'{w}_{t}'))
for name, change in (('lower', str.lower), ('underscored', lambda t: t.replace('-', '_')), ('plain', lambda t: t[2:] or t),
                     ('last', lambda t: '-'.join(reversed(t.split('-'))))):
    write('tags-' + name, columns(lambda i, w, t: f'{w} {change(t)}'))
write('tabs', columns(lambda i, w, t: f'{w}\t{t}'))
write('tabs-blank', columns(lambda i, w, t: f' {w} \t{t}\t\n\t'.rstrip('\n\t')).replace('\n\n', '\n \t \n'))
write('comments', '# a file of ten sentences\n' + columns(lambda i, w, t: f'{w} NN {t}', '# sentence\n'))
write('conll2003', '-DOCSTART- -X- -X- O\n\n' + columns(lambda i, w, t: f'{w} NN I-NP {t}'))
write('conllu', columns(lambda i, w, t: f'{i}\t{w}\t{w}\t{t}\tX\t_\t{i - 1}\tdep\t_\t_', '# text = x\n'))
write('conllu-spaces', columns(lambda i, w, t: f'{i}  {w} {w} {t} X _ {i - 1} dep _ _', '# text = x\n'))
write('plus', '# global.columns = NER ID FORM\n' + columns(lambda i, w, t: f'{t}\t{i}\t{w}'))
write('conllx', columns(lambda i, w, t: f'{i}\t{w}\t_\t{t}\t{t}\t_\t{i - 1}\tdep\t_\t_'))
write('conll2009', ''.join(''.join('\t'.join([str(i), w, 'l', 'l', t, t, '_', '_', '0', '0', 'd', 'd', '_', '_'] + ['_'] * (k % 3))
                                   + '\n' for i, (w, t) in enumerate(s, 1)) + '\n' for k, s in enumerate(S)))
write('conll2012', '#begin document (bc/x); part 000\n' + columns(
    lambda i, w, t: f'bc/x   0   {i}   {w}   {t}  (TOP*  -  -   -   Speaker#1   *   -') + '#end document\n')
write('germeval', columns(lambda i, w, t: f'{i}\t{w}\t{t}\tO', '#\thttp://example.org\t[2009-10-17]\n'))
write('cut', columns(lambda i, w, t: f'{i}\t{w}\t{t}'))
write('mistyped', columns(lambda i, w, t: f'{w} {t}').replace(' O\n', ' 0\n', 1))
for name, letters in (('iobes', 'BIES'), ('bilou', 'BILU'), ('bmes', 'BMES')):
    def convert(s):
        out = []
        for i, (w, t) in enumerate(s):
            last = i + 1 == len(s) or s[i + 1][1][0] != 'I'
            out.append((w, t if t == 'O' else letters[{'B': 3 if last else 0, 'I': 2 if last else 1}[t[0]]] + t[1:]))
        return out
    write(name, ''.join(''.join(f'{w}\t{t}\n' for w, t in convert(s)) + '\n' for s in S))
PY
words="['#', '<unk>', 'Ann', 'Bob', 'Li', 'Oslo', 'Wu', 'runs', 'sees']"
tags="['B-LOC', 'B-PER', 'I-PER', 'O']"

# ---------------------------------------------------------------- forms of tagged sentences

right() { # FILE OPTION...: the same words, tags and sentences as those of bars, since the same bits come of them
    learn bilstm-tagger --embed 4 --train "$@" && has vocabulary "x == $words" && has class_names "x == $tags" &&
        json out "o['sentences'] == 10" && quiet || return 1
    [ "$1" != bars ] || cp f.ckpt bars.ckpt
    holds "parts('f.ckpt')[2] == parts('bars.ckpt')[2]"
}
for form in bars bars-tabs bars-3 bars-crlf blanks joined tabs tabs-blank comments conll2003 conllu conllu-spaces conllx; do
    check "$form" right $form
done
check "CoNLL-2009 by columns" right conll2009 --word-column 2 --tag-column 5
check "CoNLL-2012 by columns" right conll2012 --word-column 4 --tag-column 5
check "CoNLL-U Plus by a column's name" right plus --tag-column ner
check "GermEval by columns" right germeval --word-column 2 --tag-column 3
check "word|POS|TAG, another column" finds vocabulary "x == sorted($tags + ['<unk>'])" \
    bilstm-tagger --embed 4 --train bars-3 --dev bars-3 --word-column 3 --tag-column 1
for form in conll2009 germeval cut; do
    check "$form: running numbers" refuses "expected words in column 1, found a number" bilstm-tagger --train $form
    check "$form: which option" says err "--word-column 2"
done
check "a column of numbers that is asked for" learn bilstm-tagger --embed 4 --train cut --word-column 1
for form in slashes slashes-alike; do
    check "$form" refuses "$form:1:1: expected word|TAG or columns, found words with '/', as in word/TAG" bilstm-tagger --train $form
done
check "underscores" refuses "underscores:1:1: expected word|TAG or columns, found words with '_', as in word_TAG" bilstm-tagger --train underscores
for i in $(seq 12); do for ((k = i * 7 % 5; k >= 0; k--)); do printf 'word '; done; echo end; done >sentences
check "lines of text" refuses "sentences:2:1: expected 4 columns as in line 1, found 6 (read as columns by line 1; --input-format" bilstm-tagger --train sentences
check "lines of text that are asked for" refuses "sentences: expected sentences with tags, but --input-format text has none" \
    bilstm-tagger --train sentences --input-format text
check "bars: no such column" refuses "bars-3: expected two of its 3 columns" bilstm-tagger --train bars-3 --tag-column 4
check "a dev part whose comments begin it" learn bilstm-tagger --embed 4 --train blanks --dev comments --word-column 1 --tag-column 2

told() { # TEXT NETWORK OPTION...: trains, and tells TEXT
    learn "$2" "${@:3}" && says err "$1"
}
printf 'a|b|O c|O\nd|O e|B-X\nf|O g|O h|O i|O j|O k|O\n' >inner
check "a word with a bar is whole" finds vocabulary "'a|b' in x" bilstm-tagger --embed 4 --train inner
printf 'a|O b|B-X\nc|O d\n' >lacks
check "a word without a tag" refuses "lacks:2:5: expected word|TAG, found 'd'" bilstm-tagger --train lacks
printf 'a|NN|O b|NN|B-X c|NN|O d|NN|O e|NN|O\nf|NN|O g|NN|O h|NN|O i|O j|NN|O\n' >lacks
check "a word without a column" refuses "lacks:2:22: expected 3 columns with '|' between, found 'i|O'" bilstm-tagger --train lacks

printf 'Haus\tA=1|B=2\nsteht\tA=1|C=2\n\nda\tA=1|B=2\n' >features
check "tags with bars in columns" finds class_names "x == ['A=1|B=2', 'A=1|C=2']" bilstm-tagger --embed 4 --train features
printf 'a|b X\nc|d O\n' >compounds
printf '# global.columns = FORM UPOS\nAC|DC\tN\nrome\tP\n' >bars.conllup
check "words with bars in CoNLL-U Plus" finds vocabulary "x == ['<unk>', 'AC|DC', 'rome']" bilstm-tagger --embed 4 --train bars.conllup
printf '3M\tNNP\ta\tb\tc\td\te\tf\tg\tB-ORG\nmakes\tVBZ\ta\tb\tc\td\te\tf\tg\tO\n' >ten
check "ten columns that are not CoNLL-U's" finds vocabulary "x == ['3M', '<unk>', 'makes']" bilstm-tagger --embed 4 --train ten
check "words with bars in columns that are asked for" finds vocabulary "x == ['<unk>', 'a|b', 'c|d']" bilstm-tagger --embed 4 --train compounds --input-format columns

# ---------------------------------------------------------------- schemes of tags

f1() { json out "o['dev']['f1'] is not None"; }
for scheme in iobes bilou bmes; do
    check "$scheme" learn bilstm-tagger --embed 4 --train $scheme --dev $scheme
    check "$scheme: F1" f1
    check "$scheme: nothing is told" quiet
done
same_spans() { # what predict finds, and eval's counts of entities, are the same chunks in every scheme
    local scheme
    for scheme in tabs iobes bilou bmes; do
        exits 0 "$vpps" train bilstm-tagger --vps 1 --hidden 16 --embed 8 --batch 2 --epochs 40 --lr 0.02 --min-count 1 \
            --quiet --train $scheme --save s.ckpt --force &&
            exits 0 "$vpps" eval --model s.ckpt --data $scheme --json &&
            json out "sorted((e['name'], e['gold'], e['correct']) for e in o['entities']) == [('LOC', 5, 5), ('PER', 10, 10)]" &&
            printf 'Ann Li Wu sees Oslo\n' | "$vpps" predict --model s.ckpt --json >out &&
            json out "[(s['begin'], s['end'], s['type']) for s in o['spans']] == [(0, 3, 'PER'), (4, 5, 'LOC')]" || return 1
    done
}
check "the same entities in all schemes" same_spans
line=$(grep -n ' 0$' mistyped | cut -d : -f 1)
check "a mistyped tag" told "mistyped:$line: tag '0' is of no scheme (O, B-X, I-X and so on): F1 takes it for O" bilstm-tagger \
    --embed 4 --train mistyped --dev blanks
check "a mistyped tag: F1" f1
check "a mistyped tag in dev" told "mistyped:$line: tag '0' is of no scheme" bilstm-tagger --embed 4 --train blanks --dev mistyped
check "a mistyped tag in dev: F1" f1
check "a mistyped tag in dev: never right" says err "mistyped:$line: the training part has no label 0"
spans() { printf 'Ann sees\n' | "$vpps" predict --model f.ckpt --json >out && json out "o['spans'] is not None"; }
check "a mistyped tag: spans" learn bilstm-tagger --embed 4 --train mistyped
check "a mistyped tag: spans of others" spans
sed 's/B-PER/NNP/; s/I-PER/NNP/; s/B-LOC/NNP/; s/O$/S/' blanks >pos
check "parts of speech are no chunks" learn bilstm-tagger --embed 4 --train pos --dev pos
check "parts of speech are no chunks: no F1" json out "o['dev']['f1'] is None and o['dev']['accuracy'] > 0"
check "parts of speech are no chunks: nothing is told" quiet
for form in lower underscored plain last; do
    check "tags-$form: no F1" told "are of no scheme (O, B-X, I-X and so on): accuracy is measured, no F1" bilstm-tagger --embed 4 \
        --train tags-$form --dev tags-$form
done

# ---------------------------------------------------------------- trees

cat >names <<'TREES'
(very-positive (good fine) (good great))
(very-negative	(bad poor)
  (bad awful))
(very-positive (good great) (film film))
TREES
check "labels of one's own" finds class_names "x == ['bad', 'film', 'good', 'very-negative', 'very-positive']" tree-lstm --embed 4 --train names
check "labels of one's own: words" has vocabulary "x == ['<unk>', 'awful', 'film', 'fine', 'great', 'poor']"
cat >penn <<'TREES'
( (S (NP-SBJ-1 (DT the) (NN cat)) (VP (VBZ sits)
       (NP (-NONE- *T*-1) ) (PP-LOC=2 (IN in) (NP	(NN sun))))))
( (S (NP (DT the) (NN dog)) (VP (VBZ runs) (PP-TMP (IN at) (NP (NN noon))))))
( (S (NP (-LRB- -LRB-) (NN x)) (VP (VBZ is) (PP (IN in) (NP (NN y))))))
( (S (S|<VP-.> (VP (VBZ x)) (. .)) (S|<VP-PP> (VP (VBZ y)) (PP (IN z) (NN u)))))
TREES
check "Penn's function tags are cut" told "penn: function tags are left out, NP-SBJ is NP: of 16 labels as written, 13 are left" tree-lstm --embed 4 --train penn
check "Penn's function tags: classes" has class_names \
    "{'PP', '-LRB-', 'S|<VP-.>', 'S|<VP-PP>'} <= set(x) and not any('SBJ' in c or 'LOC' in c or 'NONE' in c for c in x)"
check "Penn's function tags: no trace is a word" has vocabulary "'*T*-1' not in x and 'sun' in x"
check "--function-tags keep" finds class_names "{'NP-SBJ-1', 'PP-LOC=2', 'PP-TMP', 'PP'} <= set(x) and not any('NONE' in c for c in x)" \
    tree-lstm --embed 4 --train penn --function-tags keep
kept() { printf '(S (NP-SBJ-1 (DT the) (NN cat)) (VP (VBZ sits) (PP-TMP (IN at) (NP (NN noon)))))\n' >line &&
    exits 0 "$vpps" eval --model f.ckpt --data line --classes-of nodes && grep -qE '^NP-SBJ-1 .* 1 +[0-9]+$' out; }
check "--function-tags keep: eval remembers it" kept
check "--function-tags cut" finds class_names "'very-positive' in x" tree-lstm --embed 4 --train names --function-tags cut
check "--function-tags for generated data" fails_with 2 "--function-tags goes with --data" "$vpps" train tree-lstm --function-tags cut
check "--function-tags, resumed with another" fails_with 1 "with --function-tags cut" "$vpps" train tree-lstm --resume f.ckpt --function-tags keep --epochs 2
printf '( 3\n  (2 (1\ta) (2 b))\n  (4\tc))\n(1 (2 a)(3 b))\n' >sst
check "trees of numbers, over several lines" finds vocabulary "x == ['<unk>', 'a', 'b', 'c']" tree-lstm --embed 4 --train sst
check "trees of numbers, over several lines: how many" json out "o['sentences'] == 2"
printf '(1star (1star a) (5stars b))\n(5stars (1star a) (5stars c))\n' >stars
check "labels that begin with a digit" finds class_names "x == ['1star', '5stars']" tree-lstm --embed 4 --train stars

# ---------------------------------------------------------------- labelled sentences

python3 - <<'PY'
lines = [(k % 2, f'film number {k} is {"good" if k % 2 else "bad"}') for k in range(12)]
open('labels', 'w').write(''.join(f'{a}\t{b}\n' for a, b in lines))
open('cola', 'w').write(''.join(f'gj04\t{a}\t\t{b}\n' for a, b in lines))
PY
check "labelled sentences, and nothing is told" untold bilstm-classifier --embed 4 --train labels
printf 'text,label\nfine,pos\nsad,neg\n' >names.csv
check "a label below names, and nothing is told" untold bilstm-classifier --embed 4 --min-count 1 --train names.csv
check "more columns" refuses "cola:1:7: expected spaces between words, found a second tab" bilstm-classifier --train cola
check "text for a language model, and nothing is told" untold lstm-lm --embed 4 --train <(cut -f 2 labels)

# ---------------------------------------------------------------- reserved words

yes 'a b c' | head -n 20 >text
{ cat text; echo 'a <eos> b <eos>'; } >eos
check "<eos> in a text" told "eos:21: <eos> marks the end of a sentence; inside a line it is read as <unk>; such words: 1" lstm-lm --embed 4 --train eos
check "<eos> at the end of a line" says err "eos:21: <eos> at the end of a line is the mark that every sentence gets; such"
check "<eos> in a text: counted once" learn lstm-lm --embed 4 --train text --dev eos
counted() { # 20 lines of 4 words, and a <unk> b <eos>
    exits 0 "$vpps" eval --model f.ckpt --data eos && says out "(84 words)" &&
        exits 0 "$vpps" eval --model f.ckpt --data eos --json && json out "abs(o['metrics']['unknown'] - 1 / 84) < 1e-9"
}
check "<eos> in a text: how many words" counted
echo 'a b c' >one
check "--min-count does not cut <eos>" finds vocabulary "x == ['<eos>', '<unk>']" lstm-lm --embed 4 --train one --min-count 2
check "generate refuses it in a prompt" fails_with 1 "the word '<eos>' marks the end of a sentence" "$vpps" generate --model f.ckpt --prompt $'<unk>\t<eos>'
for side in de en; do yes 'a <unk> c d e f g' | head -n 30 >unk.$side; done
nmt() { # what it learns to say is the reference
    exits 0 "$vpps" train lstm-nmt --vps 1 --hidden 16 --embed 8 --batch 10 --epochs 60 --lr 0.02 --min-count 1 --quiet \
        --train unk --dev unk --source de --target en --save n.ckpt --json && json out "o['dev']['bleu'] > 99.9"
}
check "<unk> in references: BLEU of the same text" nmt
identical() { "$vpps" predict --model n.ckpt <unk.de | cmp - unk.en; }
check "<unk> in references: it is the same text" identical
{ head -n 29 unk.en; echo 'a <eos> c'; } >eos.en && cp unk.de eos.de
check "<eos> in a translation" exits 0 "$vpps" train lstm-nmt --vps 1 --hidden 8 --embed 8 --epochs 1 --min-count 1 --train eos --source de --target en
check "<eos> in a translation: told" says err "eos.en:30: <eos> marks the end of a sentence; inside a line"

# ---------------------------------------------------------------- lexicons

python3 - <<'PY'
import random
r = random.Random(1)
lines = []
for _ in range(20):
    for w in r.choices(['ab', 'cd', 'e', 'fgh'], k=4):
        lines += [f'{c} {"B" if i == 0 else "I"}-X' if w == 'ab' else f'{c} O' for i, c in enumerate(w)]
    lines.append('')
open('characters', 'w').write('\n'.join(lines))
open('lexicon', 'w').write('ab 12 n\ncd 3 v\nfgh\n')
open('lexicon-tabs', 'w', newline='').write('ab\t12\ncd \t 3\tv\r\nfgh\n\n \n')
open('lexicon-csv', 'w').write('ab,12\ncd,3\nfgh,1\n')
open('lexicon-latin1', 'wb').write(b'ab\nr\xf6t\n')
PY
lattices() { exits 0 "$vpps" train lattice-lstm --vps 1 --hidden 4 --embed 4 --epochs 1 --min-count 1 --train characters "$@"; }
arcs() { # the lexicon's words are those of `lexicon`, and all of them are on arcs
    lattices --save f.ckpt --force --lexicon "$1" && has lexicon "x == ['ab', 'cd', 'fgh']" &&
        has vocabulary "x == ['<unk>', 'ab', 'cd', 'fgh']" && quiet
}
for file in lexicon lexicon-tabs; do check "$file" arcs $file; done
check "a lexicon that finds nothing" lattices --lexicon lexicon-csv
check "a lexicon that finds nothing: told" says err "warning: lexicon-csv: none of its 3 words is in the training part: no lattice has a word"
check "a lexicon of another encoding" lattices --lexicon lexicon-latin1
check "a lexicon of another encoding: told" says err "lexicon-latin1:2:2: byte 0xF6 is not UTF-8"

# ---------------------------------------------------------------- vectors

printf 'Ann 1 2\nOslo 1 2 7\n' >many
printf 'ann 1 2\noslo 1 2\n' >lower
start=("$vpps" train bilstm-tagger --vps 1 --hidden 4 --epochs 0 --min-count 1 --train bars --json)
check "vectors: a number too many" fails_with 1 "many:2:1: expected a word and 2 numbers, found 3 numbers" "${start[@]}" --vectors many
check "vectors: none of the words" shows err "warning: lower: vectors of none of the 9 words" "${start[@]}" --vectors lower

# ---------------------------------------------------------------- which file is which part

part_of() { # FILE PARTS: a folder with bars as train, and FILE; (is there dev, is there test)
    rm -rf folder && mkdir folder && cp bars folder/train.txt && cp bars "folder/$1" &&
        learn bilstm-tagger --embed 4 --data folder && json out "(o['dev'] is not None, o['test'] is not None) == $2"
}
for file in device.txt developer.md value.txt testament.txt trainer.txt constrain detest latest.log; do
    check "$file is no part" part_of $file "(False, False)"
done
for file in dev.txt ner-dev valid.txt Val devel_1 dev2.tsv eng.testa; do check "$file is the dev part" part_of $file "(True, False)"; done
for file in test.txt TEST ner_test2016.v2 eng.testb testset; do check "$file is the test part" part_of $file "(False, True)"; done

# ---------------------------------------------------------------- predict

check "a tagger" learn bilstm-tagger --embed 4 --train bars
same_answer() { # white space of any kind parts words
    printf 'Ann Li sees\n\tAnn\tLi \v sees\f\n \t \nAnn Li sees\t\r\n' | "$vpps" predict --model f.ckpt >out &&
        [ "$(tr -d '\r' <out | sort -u | grep -c .)" = 1 ] && [ "$(wc -l <out)" = 4 ]
}
check "tabs in predict's input" same_answer
check "a tagger of characters" lattices --save f.ckpt --force --lexicon lexicon
characters() {
    printf 'ab cd\na\tb\tcd\n' | "$vpps" predict --model f.ckpt >out && [ "$(sort -u out | wc -l)" = 1 ] && says out 'b|'
}
check "tabs between characters" characters

summary
