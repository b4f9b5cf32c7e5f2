#!/usr/bin/env python3
"""Golden losses of a small tagger with a conditional random field, in PyTorch.

    python3 tests/golden/crf.py > tests/golden/crf.json

The network below is that of bilstm_tagger.py. The field (Lafferty, McCallum and Pereira 2001) is computed as it is defined, by the
forward algorithm: -log of e^s(y) over the sum of e^s(y') for all tags y', where s adds up the words' scores, those of tags that
follow each other, and those of the first and the last tag. A sentence with a word without a tag has no loss.
"""
import torch

from bilstm_tagger import MLP, tensors
from golden import CLASSES, EXAMPLES, NO_WORD, WORDS, Random, golden, run_lstm, sentence, table, vector, write


def emissions(p, words):
    h, _ = run_lstm(p, "forward", p["embedding"][words], backward="backward")
    return torch.tanh(h @ p["W_h"].T + p["b_h"]) @ p["W_s"].T + p["b_s"]


def loss(p, sentence):
    words, tags = sentence
    e = emissions(p, words)
    if NO_WORD in tags:
        return 0 * e.sum()
    transitions = p["crf.transitions"].reshape(CLASSES, CLASSES).T  # row: preceding tag, column: tag; VPPS stores entries by columns
    paths, score = p["crf.begin"] + e[0], p["crf.begin"][tags[0]] + e[0, tags[0]]
    for k in range(1, len(words)):
        paths = torch.logsumexp(paths[:, None] + transitions, 0) + e[k]
        score = score + transitions[tags[k - 1], tags[k]] + e[k, tags[k]]
    return torch.logsumexp(paths + p["crf.end"], 0) - score - p["crf.end"][tags[-1]]


def draw_sentence(random, number):
    words = random.ids(1 + random.below(12), WORDS)
    tags = random.ids(len(words), CLASSES)
    if number % 5 == 4:
        tags[random.below(len(tags))] = NO_WORD
    return words, tags


def main():
    random = Random(2001)
    sentences = [draw_sentence(random, number) for number in range(EXAMPLES)]
    all_tensors = [*tensors(1), table("crf.transitions", 1, CLASSES * CLASSES), vector("crf.begin", CLASSES),
                   vector("crf.end", CLASSES)]
    write(({"sentence": sentence(words, tags)} for words, tags in sentences),
          golden("bilstm-tagger", all_tensors, loss, sentences, name="bilstm-tagger-crf", mlp=MLP, crf=1))


if __name__ == "__main__":
    main()
