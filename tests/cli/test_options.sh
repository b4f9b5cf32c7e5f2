#!/bin/bash
# test_options.sh - options as a user meets them: help, slips of the pen, mistakes in small files, the log, limits, progress.

# shellcheck source=SCRIPTDIR/common.sh
source "$(dirname "$0")/common.sh"

train=("$vpps" train tree-lstm --examples 160 --hidden 12 --embed 8 --batch 16 --vps 2 --epochs 1)

# ---------------------------------------------------------------- help

check "-h" shows out "Usage: vpps COMMAND" "$vpps" -h
names=$(sed -n '/^Commands/,/^$/s/^  \([a-z]*\) .*/\1/p' out)
check "it lists commands" says out "  doctor "
for command in $names; do
    check "$command -h" shows out "Usage: vpps $command" "$vpps" "$command" -h
    "$vpps" "$command" --help >long
    check "$command -h is --help" cmp out long
    check "help $command, too" test "$("$vpps" help "$command")" = "$(cat out)"
done
check "train tree-lstm -h" exits 0 "$vpps" train tree-lstm -h
given_is_no_default() { diff <("${train[@]}" --optimizer sgd --lr-decay 0.5 -h) <("$vpps" train tree-lstm -h); }
check "-h after other options shows the defaults" given_is_no_default
engine_defaults() { diff <("$vpps" train tree-lstm --vps 3 --help-engine) <("$vpps" train tree-lstm --help-engine); }
check "--help-engine, too" engine_defaults

once() { # no option is listed twice
    for network in tree-lstm bilstm-tagger ''; do
        for command in train eval predict generate script plan; do
            # shellcheck disable=SC2086 # no network is no argument
            { "$vpps" $command $network --help && { "$vpps" $command $network --help-engine || true; }; } 2>/dev/null |
                sed -n 's/^  \(-., \|    \)--\([a-z-]*\).*/\2/p' | sort >listed
            if [ "$(wc -l <listed)" -lt 6 ] || [ "$(uniq -d listed)" ]; then uniq -d listed; echo "$command $network"; return 1; fi
        done
    done
}
check "--help and --help-engine have every option once" once
for command in train eval predict generate export; do
    check "$command --help without a network" shows out "\`vpps $command NETWORK --help'" "$vpps" $command --help
    check "has no network's" test "$(grep -cE -e '--(hidden|generate|lexicon|beam)\b' out)" = 0
done
check "train --help" exits 0 "$vpps" train --help
check "leaves the engine's options out" test "$(grep -c -e '--waves' out)" = 0
check "--help-engine" shows out "--waves" "$vpps" train --help-engine
check "and no others" test "$(grep -c -e '--epochs' out)" = 0
check "plan --help shows the GPU's" grep -q -e '--arch=' <("$vpps" plan --help)

# ---------------------------------------------------------------- slips

check "command" fails_with 2 "'trian' is not a command; did you mean 'train'?" "$vpps" trian
check "an action after options" exits 0 env VPPS_CACHE_DIR="$work/cache" "$vpps" cache --json list
check "help of a command" fails_with 2 "did you mean 'train'?" "$vpps" help trian
check "network" fails_with 2 "'treelstm' is not a network; did you mean 'tree-lstm'?" "$vpps" train treelstm
check "and no list of networks" test "$(wc -l <err)" = 2
check "a network that is like none" fails_with 2 "'qqq' is not a network" "$vpps" train qqq
check "then their names are listed" says err "Networks: tree-lstm, "
check "the end of a network" fails_with 2 "did you mean 'bilstm-tagger'?" "$vpps" train tagger
check "a longer command" fails_with 2 "did you mean 'eval'?" "$vpps" evaluate
check "a longer option" fails_with 2 "did you mean --batch?" "${train[@]}" --batch-size 5
check "the beginning of a network" fails_with 2 "did you mean 'bilstm-tagger'?" "$vpps" train bilstm
groups() { diff <(grep -n '^Commands' out | cut -d: -f2) <(printf '%s\n' 'Commands to train and use networks' 'Commands to look into networks' 'Commands for this machine'); }
check "help" exits 0 "$vpps" --help
check "it has commands by what they are for" groups
check "option" fails_with 2 "unrecognized option '--hiden'; did you mean --hidden?" "${train[@]}" --hiden 5
options() { # options OPTION... -- EXPRESSION: what the log's first line says
    local options=()
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    exits 0 "${train[@]}" --max-batches 1 --eval-every 0 --quiet --force --log options.jsonl "${options[@]}" &&
        with_runs "o = lines('options.jsonl')[0]['options']; assert $2, o"
}
check "words in capital letters" options --optimizer Adam --precision FP32 -- "o['optimizer'] == 'adam' and o['precision'] == 'fp32'"
check "no option, but there is one for it" fails_with 2 "'--gpu'; did you mean --device cuda?" "${train[@]}" --gpu
check "a device by another name" grep -q cuda <("${train[@]}" --device gpu 2>&1)
check "option with a value" fails_with 2 "did you mean --dropout?" "${train[@]}" --droput=0.5
check "swapped letters" fails_with 2 "did you mean --epochs?" "${train[@]}" --epcohs 5
check "nothing near" fails_with 2 "unrecognized option '--zzzz'" "${train[@]}" --zzzz
check "and then nothing is suggested" test "$(grep -c 'did you mean' err)" = 0
check "an option of other commands" fails_with 2 "'--hidden' is an option of train, cell, script, plan, kernel, tune, not of eval" "$vpps" eval tree-lstm --hidden 5
check "an option of other networks" fails_with 2 "'--gold' is an option of tree-lstm and others, not of gat" "$vpps" predict gat --gold
check "short option" fails_with 2 "unrecognized option '-x'" "${train[@]}" -x
check "a value is missing" fails_with 2 "--hidden: a value must follow" "$vpps" train tree-lstm --hidden
check "a flag with a value" fails_with 2 "--json takes no value" "${train[@]}" --json=3
check "a beginning of several" fails_with 2 "--e is ambiguous; possible are --embed, --examples, --epochs" "${train[@]}" --e 5
check "a beginning of one" exits 0 "${train[@]}" --max-b 1 --quiet

# ---------------------------------------------------------------- the summary

check "a run" prints '^loss       [0-9.]+ \([0-9.]+ a node\)$' "${train[@]}"
check "so has an epoch" grep -qE '^epoch 1/1  loss [0-9.]+ \([0-9.]+ a node\)  dev ' err
printf '(1 (0 a) (0 b))\n' >one.txt
check "one of each" exits 0 "$vpps" train tree-lstm --train one.txt --dev one.txt --min-count 1 --hidden 4 --vps 1 --epochs 1
check "is said in the singular" grep -q 'one.txt: 1 tree, 3 words, 2 classes; cpu with 1 VP$' err
check "at the end, too" grep -q '^trained    1 tree in ' out
check "and of measures" grep -q '(1 tree, 3 labelled nodes)$' out
per_node() { # where nothing is learned, the sum over three nodes is three times what each has
    exits 0 "$vpps" train tree-lstm --train one.txt --min-count 1 --hidden 4 --vps 1 --epochs 1 --lr 0 --optimizer sgd &&
        python3 -c "
import re
total, each = map(float, re.search(r'^loss +(\S+) \((\S+) a node\)$', open('out').read(), re.M).groups())
assert abs(total - 3 * each) < 3e-4, (total, each)"
}
check "the loss of a node" per_node
printf '(2 (1 a) (3 b))\n' >few.trees
while IFS='|' read -r given companion; do
    # shellcheck disable=SC2086 # several words
    check "alone: --$given" fails_with 2 "--${given%% *} goes with $companion" "$vpps" train tree-lstm --$given
done <<'END'
examples 5 --train few.trees|generated data
leaves 4|--generate complete
leaves 4 --train few.trees|--generate complete
save-every 5|--save
log-every 5|--log
trace-events 5|--trace
END
check "a network of roots has one loss a tree" prints '^loss       [0-9.]+$' "$vpps" train tree-lstm --examples 20 --loss root --hidden 4 --epochs 1

# ---------------------------------------------------------------- the log

check "train --log" exits 0 "${train[@]}" --lr 0.1 --optimizer momentum --momentum 0.25 --log a.jsonl --quiet
head -n 1 a.jsonl >start.json
check "numbers are numbers" json start.json "o['options']['hidden'] == 12 and o['options']['lr'] == 0.1 and o['options']['momentum'] == 0.25 \
and o['options']['pool-bytes'] == 0 and not isinstance(o['options']['seed'], str)"
check "flags are true or false" json start.json "o['options']['quiet'] is True and o['options']['portable'] is False"
check "words are strings" json start.json "o['options']['optimizer'] == 'momentum' and o['options']['log'] == 'a.jsonl'"
check "what is not given is null" json start.json "o['options']['data'] is None"

tree=("$vpps" train tree-lstm --examples 20 --hidden 8 --vps 1 --epochs 0)

# ---------------------------------------------------------------- values

for option in "train --resume" "eval --model" "predict --model"; do
    read -r -a words <<<"$option"
    check "$option" fails_with 2 "${words[1]}: a value must follow" "$vpps" "${words[@]}"
done
check "--resume=" fails_with 2 "--resume: the value is empty; expected a checkpoint" "$vpps" train --resume=
check "an empty name" fails_with 2 "--save: the value is empty; expected a text of a character or more" "${tree[@]}" --save ''
check "an empty number" fails_with 2 "--lr: the value is empty; expected a number from 0 to 1e+06" "${tree[@]}" --lr ''
check "an empty word" fails_with 2 "--optimizer: the value is empty; expected one of sgd" "${tree[@]}" --optimizer ''
check "a picture without an ending" exits 0 "${tree[@]}" --plot curves
check "vpps version" test "$("$vpps" version)" = "$("$vpps" --version)"
more_vps() { exits 0 "${tree[@]}" --vps 63 && says err "cpu with 63 VPs on" && says err "cores: more VPs than cores are slower"; }
if [ "$(nproc)" -lt 63 ]; then check "more VPs than cores" more_vps; else skip "more VPs than cores" "there are as many"; fi

# ---------------------------------------------------------------- lists of parameters

check "blanks in a list" exits 0 "${tree[@]}" --lr-of ' embedding = 1,	W_i=2 ' --freeze 'embedding, W_i'
check "an item without a name" fails_with 1 "--freeze 'embedding,': an item has no name; expected names with commas between" "${tree[@]}" --freeze embedding,
check "and without a rate" fails_with 1 "--lr-of '=1': an item has no name" "${tree[@]}" --lr-of '=1'
thaws() { # a resumed run may train everything again, and all of it at one rate
    exits 0 "${tree[@]}" --epochs 1 --eval-every 0 --freeze embedding --lr-of W_i=0 --save frozen.ckpt &&
        exits 0 "$vpps" train --resume frozen.ckpt --freeze '' --lr-of '' --epochs 2 --save thawed.ckpt &&
        says err "frozen.ckpt was made with --epochs 1, --lr-of W_i=0, --freeze embedding: it goes on with --epochs 2, no --lr-of, no --freeze" &&
        holds "all(parameters('frozen.ckpt')[k] != parameters('thawed.ckpt')[k] for k in ('embedding', 'W_i'))" &&
        exits 0 "$vpps" train --resume thawed.ckpt --epochs 3 && holds "parameters('frozen.ckpt')['embedding'] != load('thawed.ckpt')['embedding']"
}
check "--freeze '' freezes nothing" thaws

# ---------------------------------------------------------------- files

printf '' >none.txt
printf '\n  \n' >blank.txt
printf '\xef\xbb\xbf1 2\n' >marked.txt
for file in none blank; do
    check "class weights: $file" fails_with 1 "$file.txt: expected lines of a label and its weight, found none" "${tree[@]}" --class-weights $file.txt
done
marked() { exits 0 "${tree[@]}" --class-weights marked.txt && says err "class weights: 0 1, 1 2, 2 1"; }
check "class weights after a byte order mark" marked
printf '{"text": "a b", "label": 1.0}\n' >real.jsonl
check "a label with a point" fails_with 1 "real.jsonl:1: label: expected a label, as text or a whole number, found 1.0" \
    "$vpps" train bilstm-classifier --train real.jsonl

# ---------------------------------------------------------------- fields without a name

printf 'text,label,,\na b,x,1,\na c,y,,2\n' >empty.csv
unnamed() { # two trailing commas, as of a spreadsheet's empty columns: they have their numbers, and keep what they hold
    exits 0 "$vpps" train bilstm-classifier --train empty.csv --min-count 1 --hidden 8 --embed 4 --epochs 1 --vps 1 --save empty.ckpt &&
        exits 0 "$vpps" predict --model empty.ckpt empty.csv && sed -E 's/[xy],([0-9]*),([0-9]*),0.*/L,\1,\2,S/' out >fields &&
        diff fields <(printf 'text,label,3,4,score\na b,L,1,,S\na c,L,,2,S\n')
}
check "two fields without a name" unnamed

# ---------------------------------------------------------------- limits

for bytes in 1 2 3 4 1K; do
    check "--pool-bytes $bytes is too little" fails_with 1 "larger pool_bytes" "${train[@]}" --quiet --pool-bytes $bytes
done
check "it says what there is and what is asked for" grep -qE 'take [0-9]+ bytes of the pool, and .* larger pool_bytes than 1024' err
check "--pool-bytes for a batch" fails_with 1 "Use smaller batches, or a pool_bytes of" "${train[@]}" --quiet --pool-bytes 60K

# ---------------------------------------------------------------- progress

shows_progress() { # shows_progress COLUMNS: the progress line fits a terminal so wide
    python3 - "$1" "$vpps" <<'PY'
import fcntl, os, pty, re, struct, sys, termios
columns, program = int(sys.argv[1]), sys.argv[2]
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
    os.execv(program, [program, 'train', 'tree-lstm', '--examples', '3000', '--hidden', '32', '--embed', '32', '--epochs',
                       '1', '--vps', '1', '--eval-every', '0'])
text = b''
while True:
    try:
        part = os.read(fd, 65536)
    except OSError:
        break
    if not part:
        break
    text += part
assert os.waitpid(pid, 0)[1] == 0, text
bars = [b.split('\r')[0] for b in text.decode().split('\r\x1b[K')[1:]]
bars = [b for b in bars if '%' in b and 'dev' not in b]
assert bars, text
for b in bars:
    assert len(b) < columns, (len(b), b)
    assert re.search(r'\d%', b), b
    assert re.match(r'epoch 1/1  +\d+%  [\d.]+ trees/s  [\d.]+ s left  loss \d', b) or columns < 60, b
PY
}
for columns in 20 60; do
    check "progress at $columns columns" shows_progress $columns
done

# ---------------------------------------------------------------- what is nearly right

printf 'pos\tgood film\nneg\tbad film\npos\tnice play\nneg\tawful play\n' >small.tsv
check "a small text" exits 0 "$vpps" train bilstm-classifier --train small.tsv --epochs 1 --hidden 8 --embed 8 --vps 1 --save small.ckpt
check "is told that most of its words are rare" says err '4 of 6 different words occur fewer than 2 times, and become <unk>: --min-count 1 keeps them'
printf '(1 (0 a) (1 b))\n(0 (1 c) (0 d))\n' >small.trees
check "a small treebank" exits 0 "$vpps" train tree-lstm --train small.trees --epochs 1 --hidden 8 --embed 8 --vps 1
check "is told, too" says err '4 of 4 different words occur fewer than 2 times'
check "a loss for each label" prints '^loss +[0-9.]+ \([0-9.]+ a label\)$' "$vpps" train child-sum-tree-lstm --examples 50 --epochs 1 --hidden 8 --embed 8 --vps 1
for word in good bad; do printf '%s|ADJ film|NOUN\n' $word; done >plain.tagged
check "a tagger without entities" exits 0 "$vpps" train bilstm-tagger --train plain.tagged --dev plain.tagged --min-count 1 --epochs 1 --hidden 8 --embed 8 --vps 1
check "has its measure in the column of others" says out 'dev        accuracy  '
check "not where they are kept" exits 0 "$vpps" train bilstm-classifier --train small.tsv --epochs 1 --hidden 8 --embed 8 --vps 1 --min-count 1
lacks() { ! grep -q "$2" "$1"; }
check "no word of it" lacks err 'become <unk>'
check "--modle" fails_with 2 "unrecognized option '--modle'; did you mean --model?" "$vpps" predict --modle small.ckpt small.tsv
check "--modle=" fails_with 2 "unrecognized option '--modle'; did you mean --model?" "$vpps" eval --modle=small.ckpt
check "--resmue" fails_with 2 "unrecognized option '--resmue'; did you mean --resume?" "$vpps" train --resmue small.ckpt
check "a network after options" fails_with 2 "'bilstm-classifier' must follow the command: vpps train bilstm-classifier" "$vpps" train --hidden 8 bilstm-classifier
check "a part more" fails_with 1 "training cannot resume with small.tsv; --init small.ckpt begins a new run" "$vpps" train --resume small.ckpt --epochs 2 --dev small.tsv
check "nothing left" exits 0 "$vpps" train --resume small.ckpt --epochs 1
check "is not trained 0 sentences" lacks out 'trained '
check "a .tsv that trained is predicted" exits 0 "$vpps" predict --model small.ckpt small.tsv
check "by labels" test "$(wc -l <out) $(cut -f 2 out | head -n 1)" = '4 good film'
printf 'id\ttext\n1\tgood film\n' >fields.tsv
check "one with a header, too" exits 0 "$vpps" predict --model small.ckpt fields.tsv
check "by fields" test "$(cut -f 1,2 out | tail -n 1)" = $'1\tgood film'
tr '\t' , <small.tsv >small.csv
check "CSV without names" fails_with 1 "small.csv:1: expected names of fields with 'text' and 'label', found pos, good film: --text-field" \
    "$vpps" train bilstm-classifier --train small.csv

# ---------------------------------------------------------------- somebody else's file

kept() { # OPTION COMMAND...: does not replace a file that is none of its own, but one that it made, and an empty one
    printf 'notes\n' >notes && : >empty && rm -f made && fails_with 1 "--$1 notes: the file exists already, and --$1 has not made it" "${@:2}" "--$1" notes &&
        grep -q notes notes && exits 0 "${@:2}" "--$1" empty && test -s empty && exits 0 "${@:2}" "--$1" made && exits 0 "${@:2}" "--$1" made && cmp -n 4 made empty
}
quick=(train tree-lstm --examples 4 --epochs 1 --hidden 4 --embed 4 --vps 1 --quiet)
check "--plot" kept plot "$vpps" "${quick[@]}"
check "--trace" kept trace "$vpps" "${quick[@]}"
check "--plot with --force" exits 0 "$vpps" "${quick[@]}" --plot notes --force
check "replaces it" grep -q '<svg' notes

summary
