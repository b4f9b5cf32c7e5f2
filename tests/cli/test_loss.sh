#!/bin/bash
# test_loss.sh - the loss that is trained on: smoothed labels, weights of classes. VPPS names the program (default: build/vpps).

folder=$(realpath "$(dirname "$0")")
# shellcheck source=SCRIPTDIR/common.sh
source "$folder/common.sh"
# shellcheck source=SCRIPTDIR/launch.sh
source "$folder/launch.sh" 5

# 12 sentences: 8 good, 3 bad, 1 so so
for i in 1 2 3 4 5 6 7 8; do printf 'good\tthe film %s is nice\n' $i; done > train.txt
for i in 1 2 3; do printf 'bad\ta poor book %s\n' $i; done >> train.txt
printf 'so so\twell\n' >> train.txt
net=("$vpps" train bilstm-classifier --train train.txt --hidden 6 --embed 4 --min-count 1 --vps 2 --eval-every 0 --force)


# ---------------------------------------------------------------- weights of classes

still=("${net[@]}" --quiet --batch 12 --epochs 1 --lr 0)
check "without weights" exits 0 "${still[@]}" --log plain.jsonl --save plain.ckpt
balanced() { # N / (classes * count), as scikit-learn has it, and told
    exits 0 "${net[@]}" --batch 12 --epochs 1 --class-weights balanced --save balanced.ckpt &&
        says err "class weights: good 0.5, bad 1.333, so so 4" && holds "near(floats(load('balanced.ckpt')['class_weights']), [12 / 24, 12 / 9, 12 / 3])"
}
check "--class-weights balanced" balanced
begins_alike() { # the network begins with the same parameters
    exits 0 "${net[@]}" --quiet --epochs 0 --save a.ckpt && exits 0 "${net[@]}" --quiet --epochs 0 --class-weights balanced --save b.ckpt &&
        holds "all(load('b.ckpt')[k] == v for k, v in load('a.ckpt').items())"
}
check "leave the other parameters" begins_alike
check "trees and their nodes have weights of numbers" shows err "class weights: 0 " \
    "$vpps" train tree-lstm --examples 30 --hidden 6 --embed 4 --epochs 1 --class-weights balanced --max-batches 1 --eval-every 0 --save trees.ckpt --verify
check "tags" exits 0 "$vpps" train bilstm-tagger --examples 30 --hidden 6 --embed 4 --epochs 1 --class-weights balanced --max-batches 1 --eval-every 0 --quiet
printf 'bad 2\nso so\t 0\r\n\ngood 0.5\n' > weights.txt
from_file() { # the mean over examples of weight times loss: linear in the weights
    exits 0 "${still[@]}" --class-weights weights.txt --log all.jsonl --save weighted.ckpt && holds "floats(load('weighted.ckpt')['class_weights']) == [0.5, 2, 0]" &&
        printf 'good 1\nbad 0\nso so 0\n' > good.txt && printf 'good 0\nbad 1\nso so 0\n' > bad.txt && printf 'good 0\nbad 0\n' > soso.txt &&
        for w in good bad soso; do exits 0 "${still[@]}" --class-weights $w.txt --log $w.jsonl || return 1; done &&
        holds "near(losses('all.jsonl'), [losses('good.jsonl')[0] / 2 + 2 * losses('bad.jsonl')[0]])" &&
        holds "near(losses('plain.jsonl'), [sum(losses(w + '.jsonl')[0] for w in ('good', 'bad', 'soso'))])"
}
check "--class-weights FILE" from_file
check "a break" broken 2 --batch 4 --epochs 2 --class-weights weights.txt --dropout 0.2
check "the weights come from the checkpoint" sh -c "mv weights.txt moved.txt && $vpps train --resume broken.ckpt --epochs 3 --quiet; mv moved.txt weights.txt"
check "others" fails_with 1 "broken.ckpt was made with --class-weights weights.txt: training cannot resume with balanced" "$vpps" train --resume broken.ckpt \
    --epochs 4 --class-weights balanced
check "some where there were none" fails_with 1 "plain.ckpt was made without --class-weights: training cannot resume with it" "$vpps" train --resume plain.ckpt \
    --epochs 4 --class-weights balanced
init_keeps() { # another network's parameters bring no weights
    exits 0 "${still[@]}" --init weighted.ckpt --class-weights balanced --save init.ckpt && holds "load('init.ckpt')['class_weights'] == load('balanced.ckpt')['class_weights']"
}
check "--init takes no weights" init_keeps
init_keeps_none() { # nor for a label that the new file leaves out
    printf 'bad 3\n' > other.txt && exits 0 "${still[@]}" --init weighted.ckpt --class-weights other.txt --save other.ckpt &&
        holds "floats(load('other.ckpt')['class_weights']) == [1, 3, 1]"
}
check "not even where a file leaves labels out" init_keeps_none
absent() { # of roots: labels that other nodes alone have do not count
    printf '(2 (0 a) (1 b))\n(2 (0 c) (1 b))\n(2 (0 a) (3 d))\n(1 (0 a) (1 c))\n' > roots.txt &&
        exits 0 "$vpps" train tree-lstm --train roots.txt --min-count 1 --hidden 6 --embed 4 --epochs 1 --eval-every 0 --loss root --class-weights balanced &&
        says err "class weights: 0 1, 1 2, 2 0.6667, 3 1"
}
check "balanced by the labels that there are" absent
evaluates() { # what is measured is not weighed
    exits 0 "$vpps" eval --model weighted.ckpt --test train.txt --json && json out "o['metrics']['accuracy'] >= 0" &&
        exits 0 sh -c "cut -f2 train.txt | '$vpps' predict --model weighted.ckpt" && exits 0 "$vpps" export --model weighted.ckpt --save exported.safetensors
}
check "eval, predict and export have a network with weights" evaluates
# refused TEXT CONTENT: a file of this content
refused() {
    printf '%b' "$2" > wrong.txt
    fails_with 1 "wrong.txt:$1" "${still[@]}" --class-weights wrong.txt
}
check "a label that is none" refused '1: "goood" is no label of the training part; did you mean good' 'goood 1\n'
check "no weight" refused '2: expected a label and its weight' 'good 1\nbad\n'
check "a weight below 0" refused '1: expected a label and its weight, a number from 0 on' 'good -1\n'
check "a weight that is no number" refused '1: expected a label and its weight' 'good nan\n'
check "a label twice" refused '2: "good" has a weight already' 'good 1\ngood 2\n'
check "weights that are all 0" refused ' the weights of all labels are 0' 'good 0\nbad 0\nso so 0\n'
check "no file" fails_with 1 "nowhere.txt: " "${still[@]}" --class-weights nowhere.txt
check "a network without classes" fails_with 2 "'--class-weights' is an option of" "$vpps" train lstm-lm --class-weights balanced

# ---------------------------------------------------------------- label smoothing

smoothed() { # linear in X, and 0 is the plain loss: of one class, all that the others have
    for x in 0 0.25 1; do exits 0 "${still[@]}" --label-smoothing $x --log s$x.jsonl || return 1; done
    holds "losses('s0.jsonl') == losses('plain.jsonl')" &&
        holds "near(losses('s0.25.jsonl'), [0.75 * losses('s0.jsonl')[0] + 0.25 * losses('s1.jsonl')[0]]) and losses('s1.jsonl') != losses('s0.jsonl')"
}
check "--label-smoothing" smoothed
check "a break, with weights" broken 2 --batch 4 --epochs 2 --label-smoothing 0.1 --class-weights balanced --dropout 0.2
check "accumulated" broken 2 --batch 4 --epochs 2 --label-smoothing 0.1 --accumulate 2
another() {
    exits 0 "$vpps" train --resume broken.ckpt --epochs 3 --label-smoothing 0.2 --save /dev/null && says err "broken.ckpt was made with --epochs 2, --label-smoothing 0.1: it goes on with --epochs 3, --label-smoothing 0.2"
}
check "another choice is told" another
check "out of its range" fails_with 2 "--label-smoothing: '1.5' is not a number from 0 to 1" "${net[@]}" --label-smoothing 1.5
check "of words" exits 0 "$vpps" train lstm-lm --examples 20 --hidden 6 --embed 4 --epochs 1 --label-smoothing 0.1 --quiet --verify --json --save lm.ckpt
plain() { # what is measured does not depend on it
    for x in 0 0.5; do
        exits 0 "$vpps" train lstm-lm --examples 20 --hidden 6 --embed 4 --epochs 1 --lr 0 --label-smoothing $x --quiet --json --save lm.ckpt --force || return 1
        cp out lm$x.json
    done
    holds "json.load(open('lm0.json'))['dev'] == json.load(open('lm0.5.json'))['dev']" && exits 0 "$vpps" eval --model lm.ckpt --split dev --json &&
        holds "json.load(open('out'))['metrics']['perplexity'] == json.load(open('lm0.json'))['dev']['perplexity']"
}
check "perplexity is of the plain loss" plain
check "under software SIMT" exits 0 "${still[@]}" --label-smoothing 0.25 --device simt --log simt.jsonl
check "the same loss" holds "all(abs(a - b) <= 1e-4 * b for a, b in zip(losses('simt.jsonl'), losses('s0.25.jsonl')))"
for name in "${launchers[@]:0:1}"; do
    check "two processes" exits 0 launch "$name" 2 "${net[@]}" --quiet --vps 1 --batch 12 --epochs 1 --lr 0 --class-weights balanced --label-smoothing 0.25 --log two.jsonl
    check "one process" exits 0 "${still[@]}" --class-weights balanced --label-smoothing 0.25 --log one.jsonl
    check "the same" holds "near(losses('two.jsonl'), losses('one.jsonl'))"
done

# ---------------------------------------------------------------- accuracy on the training part

# all of an epoch in one batch: the first epoch's accuracy is that of the network as it began
tells() {
    exits 0 "${net[@]}" --epochs 0 --quiet --save begin.ckpt && exits 0 "$vpps" eval --model begin.ckpt --test train.txt --json || return 1
    cp out begin.json
    exits 0 "${net[@]}" --batch 12 --epochs 1 --train-accuracy --log accuracy.jsonl --json &&
        holds "abs(last('out')['train_accuracy'] - (wanted := last('begin.json')['metrics']['accuracy'])) < 1e-6 and
            f'train accuracy {100 * wanted:.1f}%' in open('err').read() and abs(lines('accuracy.jsonl', 'epoch')[0]['train_accuracy'] - wanted) < 1e-6"
}
check "--train-accuracy" tells
same_bits() {
    exits 0 "${net[@]}" --quiet --batch 4 --epochs 3 --dropout 0.2 --save none.ckpt --json && json out "o['train_accuracy'] is None" &&
        exits 0 "${net[@]}" --quiet --batch 4 --epochs 3 --dropout 0.2 --train-accuracy --save counted.ckpt --json && json out "0 <= o['train_accuracy'] <= 1" &&
        same_tensors none.ckpt counted.ckpt
}
check "changes no bit" same_bits
learned() { exits 0 "${net[@]}" --quiet --batch 4 --epochs 60 --lr 0.02 --train-accuracy --json && json out "o['train_accuracy'] == 1"; }
check "is 1 of what was learned" learned
resumed_accuracy() { # of the whole epoch
    exits 0 "${net[@]}" --quiet --batch 4 --epochs 2 --train-accuracy --log whole.jsonl && exits 0 "${net[@]}" --quiet --batch 4 --epochs 2 --train-accuracy \
        --max-batches 4 --save half.ckpt && exits 0 "$vpps" train --resume half.ckpt --quiet --log half.jsonl &&
        holds "lines('whole.jsonl', 'epoch')[-1]['train_accuracy'] == lines('half.jsonl', 'epoch')[-1]['train_accuracy']"
}
check "over a break" resumed_accuracy
for name in "${launchers[@]:0:1}"; do
    check "two processes count together" exits 0 launch "$name" 2 "${net[@]}" --quiet --vps 1 --batch 12 --epochs 1 --train-accuracy --json
    check "as one does" json out "abs(o['train_accuracy'] - lines('accuracy.jsonl', 'epoch')[0]['train_accuracy']) < 1e-6"
done

summary
