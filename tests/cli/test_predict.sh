#!/bin/bash
# test_predict.sh - `vpps predict` as a co-process: a line out for each line in, when it comes, whatever comes.
# VPPS names the program (default: build/vpps).

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

# shellcheck source=SCRIPTDIR/people.sh
source "$cli/people.sh"

check "a language model" exits 0 "$vpps" train lstm-lm --train text "${small[@]}" --save text.ckpt
check "a network on trees" exits 0 "$vpps" train tree-lstm --examples 100 "${small[@]}" --epochs 1 --save trees.ckpt

# ---------------------------------------------------------------- the network's name

check "predict without a name" exits 0 "$vpps" predict --model tags.ckpt
check "predict -mFILE" exits 0 "$vpps" predict -mtags.ckpt
check "predict, the model last" exits 0 "$vpps" predict --on-error=skip --mod tags.ckpt
check "eval without a name" exits 0 "$vpps" eval --split train --model tags.ckpt
check "resume without a name" exits 0 "$vpps" train --quiet -r tags.ckpt --epochs 13 --save more.ckpt
check "predict without a name or a model" fails_with 2 "--model FILE is missing" "$vpps" predict --on-error skip
check "predict without a name, no checkpoint" fails_with 1 "none.ckpt: cannot be opened" "$vpps" predict --model none.ckpt
check "another name than the checkpoint's" fails_with 1 "holds the network bilstm-tagger" "$vpps" predict lstm-lm --model tags.ckpt

# ---------------------------------------------------------------- line in, line out

as_it_comes() { # answers come while standard input stays open; lines may come in pieces, or several at once, and the last one without its end
    with_runs "assert ask(sys.argv[1], [('ada sees rome .\n', 'ada|B-PER sees|O rome|B-LOC .|O\n'), ('\n', '\n'), ('bob li', ''),
('kes oslo\nada .\n', 'bob|B-PER likes|O oslo|B-LOC\nada|B-PER .|O\n'), ('rome', '')], '--model', 'tags.ckpt', '--batch', '32') == 'rome|B-LOC\n'" "$vpps"
}
check "an answer for each line when it comes" as_it_comes
on_terminal() {
    python3 - "$vpps" <<'PY'
import os, pty, select, subprocess, sys
ours, theirs = pty.openpty()
p = subprocess.Popen([sys.argv[1], 'predict', '--model', 'tags.ckpt', '--vps', '1'], stdin=theirs, stdout=subprocess.PIPE)
os.write(ours, b'ada sees rome .\n')
assert select.select([p.stdout], [], [], 30)[0], 'no answer'
assert p.stdout.readline() == b'ada|B-PER sees|O rome|B-LOC .|O\n'
os.write(ours, b'\x04')
assert p.wait() == 0
PY
}
check "the same on a terminal" on_terminal
whole_batches() { # INPUT: a file, or a pipe that is full, is run in whole batches
    for _ in 1 2 3 4 5; do cat text; done >many.txt
    case $1 in
    file) predict --model tags.ckpt --batch 25 --trace trace.json <many.txt ;;
    *) python3 -c "import sys; sys.stdout.write(open('many.txt').read())" |
        (sleep 1; predict --model tags.ckpt --batch 25 --trace trace.json) ;;
    esac
    [ "$(wc -l <out)" = 300 ] && [ "$(grep -o '"build graph"' trace.json | wc -l)" = 12 ] && cp out at-25 &&
        predict --model tags.ckpt --batch 1 <many.txt && cmp out at-25
}
check "a file is run in whole batches" whole_batches file
check "a full pipe is, too" whole_batches pipe
every_line() { # NETWORK-FILE LINE: an empty line answers an empty line
    printf '\n%s\n   \n\n%s\r\n\n' "$2" "$2" | predict --model "$1" && [ "$(wc -l <out)" = 6 ] &&
        [ "$(grep -n . out | cut -d: -f1 | tr '\n' ' ')" = "2 5 " ] && empty err
}
check "empty lines: tags" every_line tags.ckpt "ada sees rome ."
check "empty lines: text" every_line text.ckpt "ada sees rome ."
check "empty lines: labels" every_line labels.ckpt "ada sees rome ."
check "empty lines: trees" every_line trees.ckpt "(-1 (3 3) (7 7))"
empty_only() { printf '\n\n\n' | predict --model tags.ckpt && [ "$(wc -c <out)" = 3 ]; }
check "empty lines only" empty_only

# ---------------------------------------------------------------- files

printf 'ada sees rome .\n' >one.txt
printf 'bob .\n\nada\n' >two.txt
gzip -k two.txt
tagged() { printf 'ada|B-PER sees|O rome|B-LOC .|O\nbob|B-PER .|O\n\nada|B-PER\n'; }
check "predict FILE..." exits 0 "$vpps" predict --model tags.ckpt one.txt two.txt
check "answers all files" cmp out <(tagged)
check "predict NETWORK --model MODEL FILE" exits 0 "$vpps" predict bilstm-tagger --model tags.ckpt one.txt two.txt.gz
check "and compressed ones" cmp out <(tagged)
check "predict FILE... --model MODEL" exits 0 "$vpps" predict one.txt two.txt --model tags.ckpt
check "the files first" cmp out <(tagged)
dash() { "$vpps" predict --model tags.ckpt one.txt - <two.txt >out 2>err && cmp out <(tagged); }
check "- is standard input" dash
check "a file that is missing" fails_with 1 "none.txt: cannot be opened" "$vpps" predict --model tags.ckpt none.txt
check "neither a network nor a file" fails_with 2 "nor a file that is there; did you mean 'bilstm-tagger'?" "$vpps" predict bilstm-taggr --model tags.ckpt
second() { # what was before it is answered
    printf 'ada\n\na\0b\n' >bad.txt
    ! predict --model tags.ckpt one.txt bad.txt && says err "vpps: bad.txt:3:2: expected text" && [ "$(wc -l <out)" = 3 ]
}
check "a bad line of the second file" second
check "eval FILE" exits 0 "$vpps" eval --model tags.ckpt tags
cp out by-file
check "eval --test FILE" exits 0 "$vpps" eval --model tags.ckpt --test tags
check "is the same" cmp out by-file
from_stdin() { "$vpps" eval --model tags.ckpt - <tags >out 2>err && cmp out by-file; }
check "eval -" from_stdin
check "eval of two files" fails_with 2 "'tags': too many arguments" "$vpps" eval --model tags.ckpt tags tags
check "eval FILE --split" fails_with 2 "neither --test nor --split" "$vpps" eval --model tags.ckpt tags --split dev

# ---------------------------------------------------------------- bad lines

bad='(-1 (3 3) (7 7))\n(1 (2 a)\n\n(4 b))\n(5 5)'
stops() {
    # shellcheck disable=SC2059
    printf "$bad" | predict --model trees.ckpt -o label
    [ $? -eq 1 ] && says err "vpps: stdin:2:9: expected" && [ "$(wc -l <out)" = 1 ] && [ "$(wc -l <err)" = 1 ] &&
        says err "; the output ends before it (--on-error skip goes on)"
}
check "--on-error stop, after what was before" stops
skips() {
    # shellcheck disable=SC2059
    printf "$bad" | predict --model trees.ckpt -o label --on-error skip && [ "$(wc -l <out)" = 5 ] &&
        [ "$(grep -n . out | cut -d: -f1 | tr '\n' ' ')" = "1 5 " ] && [ "$(wc -l <err)" = 2 ] &&
        says err "vpps: stdin:2:9: expected" && says err "vpps: stdin:4:"
}
check "--on-error skip: an empty line and a message" skips
nul() { printf 'ada\nb\0b\nrome\n' | predict --model tags.ckpt --on-error skip && [ "$(wc -l <out)" = 3 ] &&
    says err "stdin:2:2: expected text" && [ "$(tail -n 1 out)" = 'rome|B-LOC' ]; }
check "NUL in a line" nul
takes() { # KIB OPTION...: predict takes less memory
    PYTHONPATH=$cli PYTHONDONTWRITEBYTECODE=1 "$python" -S -c "import runs, sys; sys.exit(runs.peak(*sys.argv[2:]) >= int(sys.argv[1]))" "$1" \
        "$vpps" predict --model tags.ckpt --vps 1 "${@:2}" >out 2>err
}
too_long() { # a line of 200 MB without an end, in the memory of a short one
    { echo "ada sees rome ."; head -c 200000000 /dev/zero | tr '\0' a; printf '\nrome\n'; } |
        takes 120000 --on-error skip && says err "stdin:2: expected a line of at most 65536 bytes" &&
        [ "$(wc -l <out)" = 3 ] && [ "$(tail -n 1 out)" = 'rome|B-LOC' ]
}
check "a line of 200 MB" too_long
many_words() { # lines as long as is allowed, full of words: not all in one batch
    python3 -c "
for _ in range(12): print('a ' * 32000)" | takes 200000 --batch 64 && [ "$(wc -l <out)" = 12 ]
}
if grep -q __asan <<<"$(nm -D "$vpps" 2>/dev/null)"; then # which keeps what was freed for a while
    skip "many long lines" "the address sanitizer's memory comes on top"
else
    check "many long lines" many_words
fi
exactly() { # as many bytes as are allowed, and one more
    printf 'ada \r\nada  \n' | predict --model tags.ckpt --line-bytes 4 --on-error skip && says err "stdin:2: expected a line" &&
        [ "$(head -n 1 out)" = $'ada|B-PER\r' ] && [ "$(wc -l <err)" = 1 ]
}
check "--line-bytes" exactly
pool() { # a line that does not fit into the memory for a batch is the line's failure
    python3 -c "
print('ada sees')
print('ada ' * 15000)
print('rome')" | predict --model tags.ckpt --pool-bytes 2M --on-error skip && [ "$(wc -l <out)" = 3 ] && says err "stdin:2: " &&
        [ "$(tail -n 1 out)" = 'rome|B-LOC' ]
}
check "a line beyond --pool-bytes" pool

unknown_labels() { # the names of labels that the network does not know are not kept for ever
    printf '%s\n' '(S (NP (NN ada)) (VP (VB sees)))' '(NP (NN rome))' >constituents
    exits 0 "$vpps" train tree-lstm --train constituents "${small[@]}" --epochs 1 --min-count 1 --save named.ckpt &&
        PYTHONPATH=$cli PYTHONDONTWRITEBYTECODE=1 "$python" -S - "$vpps" <<'PY'
import runs, sys
def peak(n):
    with open('unknown', 'w') as f:
        for i in range(n): print(f'({"L" * 2000}{i} (NN ada))', file=f)
    return runs.peak(sys.argv[1], 'predict', '--model', 'named.ckpt', '--vps', '1', '-o', 'label', 'unknown')
few = peak(100)
more = peak(20000)
assert more < few + 20000, (few, more)
PY
}
if grep -q __asan <<<"$(nm -D "$vpps" 2>/dev/null)"; then
    skip "memory for unknown labels" "the address sanitizer's memory comes on top"
else
    check "memory for unknown labels" unknown_labels
fi

# ---------------------------------------------------------------- --json

objects() { # CONDITION ARGUMENT... <INPUT: of o, the objects of the lines, None for an empty one
    local condition=$1
    shift
    predict --json "$@" && python3 - "$condition" <<'PY'
import json, math, sys
o = [json.loads(l) if l.strip() else None for l in open('out')]
assert eval('(' + sys.argv[1] + ')'), o
PY
}
tags_json() {
    printf 'ada sees rome .\n\nbob .\n' | objects "o[1] is None and len(o) == 3 and
        o[0]['words'] == ['ada', 'sees', 'rome', '.'] and
        [t['label'] for t in o[0]['tags']] == ['B-PER', 'O', 'B-LOC', 'O'] and
        all(0.4 < t['score'] <= 1 for t in o[0]['tags']) and
        [(s['begin'], s['end'], s['type']) for s in o[0]['spans']] == [(0, 1, 'PER'), (2, 3, 'LOC')] and
        o[0]['spans'][1]['score'] == o[0]['tags'][2]['score'] and 'top' not in o[0]['tags'][0]" --model tags.ckpt
}
check "tags: scores and spans" tags_json
top() {
    printf 'ada sees\n' | objects "all(len(t['top']) == 3 and abs(sum(x['score'] for x in t['top']) - 1) < 1e-4 and
        t['top'][0] == {'label': t['label'], 'score': t['score']} and
        t['top'][0]['score'] >= t['top'][1]['score'] >= t['top'][2]['score'] for t in o[0]['tags'])" \
        --model tags.ckpt --top 10
}
check "--top: all classes, the likeliest first" top
equal() { # all parameters 0: classes are equally likely, and each is there once
    recast "$1" equal.ckpt "del m['vpps.checksum']; data[:] = bytes(len(data))"
    printf '%s\n' "$2" | objects "[len(t['top']) for t in $3] == [$4] * len($3) and
        all(len({x['label'] for x in t['top']}) == $4 and {x['score'] for x in t['top']} == {t['top'][0]['score']} and
        abs(t['top'][0]['score'] * $4 - 1) < 1e-4 for t in $3)" --model equal.ckpt --top 9
}
check "--top of equally likely tags" equal tags.ckpt 'ada sees' "o[0]['tags']" 3
check "--top of equally likely labels" equal labels.ckpt 'ada sees' "[o[0]]" 2
labels_json() {
    printf 'ada sees rome .\n' | objects "o[0]['label'] == 'person' and len(o[0]['top']) == 2" --model labels.ckpt --top 2
}
check "labels" labels_json
trees_json() {
    printf '(-1 (-1 (3 3) (7 7)) (-1 x))\n' | objects "o[0]['words'] == ['3', '7', 'x'] and
        [(n['begin'], n['end']) for n in o[0]['nodes']] == [(0, 1), (1, 2), (0, 2), (2, 3), (0, 3)] and
        o[0]['label'] == o[0]['nodes'][-1]['label'] and isinstance(o[0]['label'], int)" --model trees.ckpt
}
check "trees: a span for each node" trees_json
text_json() { # what the text form says
    printf 'ada sees the rome .\n' | predict --model text.ckpt && cp out plain &&
        printf 'ada sees the rome .\n' | objects "abs(o[0]['perplexity'] / float(open('plain').read().split()[0]) - 1) < 1e-3 and
        [w['word'] for w in o[0]['words']][-2:] == ['.', '<eos>'] and len(o[0]['words'][0]['top']) == 2 and
        abs(sum(w['log_probability'] for w in o[0]['words']) - o[0]['log_probability']) < 1e-3 and
        {t['label'] for t in o[0]['words'][1]['top']} == {'sees', 'likes'}" --model text.ckpt --top 2
}
check "text: each word's probability" text_json
pair_json() {
    exits 0 "$vpps" train lstm-nmt --examples 30 "${small[@]}" --epochs 1 --save pairs.ckpt &&
        printf 'a b\n' | objects "isinstance(o[0]['translation'], str) and o[0]['score'] <= 0" --model pairs.ckpt --beam 2
}
check "translations" pair_json
best_json() {
    printf 'a b\n' | objects "1 <= len(o[0]['top']) <= 4 and o[0]['top'][0] == {k: o[0][k] for k in ('translation', 'score')} and
        all(x['score'] >= y['score'] for x, y in zip(o[0]['top'], o[0]['top'][1:])) and
        len({t['translation'] for t in o[0]['top']}) == len(o[0]['top'])" --model pairs.ckpt --beam 4 --top 4
}
check "the best translations" best_json
gold_json() { # together they are the perplexity that eval measures
    printf '{"source": "%s", "target": "%s"}\n' 'a b' 'x y' b 'kasu heku babu' 'c a b' x >records.jsonl
    predict --model pairs.ckpt --gold records.jsonl &&
        "$vpps" eval --vps 1 --model pairs.ckpt --test records.jsonl --split test --json >measured 2>err && python3 - <<'PY'
import json, math
said = [json.loads(l) for l in open('out')]
words = sum(len(o['target'].split()) + 1 for o in said)
perplexity = math.exp(-sum(o['gold_log_probability'] for o in said) / words)
assert len({o['gold_log_probability'] for o in said}) == 3, said
measured = json.load(open('measured'))['metrics']['perplexity']
assert abs(perplexity / measured - 1) < 1e-3, (perplexity, measured)
PY
}
check "how likely a record's own translation is" gold_json
no_gold() { printf '{"source": "a b"}\n' | predict --model pairs.ckpt --gold; [ $? = 1 ] && says err "expected a field 'target'"; }
check "a record without one" no_gold
lines_gold() { printf 'a b\n' | predict --model pairs.ckpt --gold; [ $? = 1 ] && says err "--gold needs examples with targets"; }
check "lines have none" lines_gold
check "text does not say it" fails_with 1 "--gold: lines of translations do not say how likely a target is" "$vpps" predict --model pairs.ckpt --gold --output-format text records.jsonl
check "text does not say the best ones" fails_with 1 "--top: the likeliest ones are printed in JSON" "$vpps" predict --model labels.ckpt --top 2 --output-format csv records.jsonl
check "more of them than the beam has" fails_with 1 "--top 5: expected --beam 5 or more" "$vpps" predict --model pairs.ckpt --json --top 5 --beam 4 </dev/null
strange_json() { printf 'a\377b\n' | objects "o[0]['words'] == ['a\ufffdb']" --model tags.ckpt; }
check "bytes that are not UTF-8" strange_json
spans() { # of tags as conlleval takes them apart
    printf '%s\n' 'a|B-X b|I-X c|I-Y d|O e|S-Z f|E-Z' 'a|B-X b|I-X c|I-Y d|O e|S-Z f|E-Z' >form && exits 0 "$vpps" train \
        bilstm-tagger --train form "${small[@]}" --epochs 60 --lr 0.05 --min-count 1 --save form.ckpt &&
        printf 'a b c d e f\n' | objects "[(s['begin'], s['end'], s['type']) for s in o[0]['spans']] ==
            [(0, 2, 'X'), (2, 3, 'Y'), (4, 5, 'Z'), (5, 6, 'Z')] and
            o[0]['spans'][0]['score'] == min(t['score'] for t in o[0]['tags'][:2])" --model form.ckpt
}
check "spans of more than a word" spans
span_scores() { # the least of its tags', wherever that stands
    python3 -c "
import random
r = random.Random(1)
for _ in range(20): print(' '.join(r.choice('abcdefxyz') for _ in range(30)))" >random.txt
    exits 0 "$vpps" train bilstm-tagger --train form "${small[@]}" --epochs 3 --min-count 1 --seed 5 --save early.ckpt &&
        objects "(lambda spans: len(spans) > 20 and max(len(t) for _, t in spans) > 2 and all(abs(s['score'] - min(t)) < 1e-5 for s, t in spans) and
            len({t.index(min(t)) for _, t in spans}) > 1)([(s, [t['score'] for t in x['tags'][s['begin']:s['end']]]) for x in o for s in x['spans']])" \
            --model early.ckpt <random.txt
}
check "the score of a span" span_scores
no_spans() {
    sed 's/B-PER/NN/g; s/B-LOC/NP/g; s/|O/|X/g' tags >pos && exits 0 "$vpps" train bilstm-tagger --train pos \
        "${small[@]}" --epochs 1 --save pos.ckpt && printf 'ada\n' | objects "o[0]['spans'] is None" --model pos.ckpt
}
check "tags that are no chunks have none" no_spans

summary
