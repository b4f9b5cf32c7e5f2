#!/usr/bin/env python3
"""Golden losses of a small tagger with a conditional random field, in PyTorch.

    python3 tests/golden/crf.py > tests/golden/crf.json

The network below is a bidirectional LSTM (Graves and Schmidhuber 2005), here torch.nn.LSTM, on the words' embeddings, and a classifier with
a hidden layer on both directions' h. The field (Lafferty, McCallum and Pereira 2001) is computed as it is defined, by the
forward algorithm: -log of e^s(y) over the sum of e^s(y') for all tags y', where s adds up the words' scores, those of tags that
follow each other, and those of the first and the last tag. A sentence with a word without a tag has no loss.
"""
import torch

from golden import (CLASSES, EMBED, EXAMPLES, HIDDEN, NO_WORD, WORDS, Random, golden, matrix, sentence, table, vector,
                    write)

MLP = 16
# The order of the tensors gives each its number, which its initial values depend on.
TENSORS = [
    table("embedding", WORDS, EMBED),
    *(tensor for name in ("forward", "backward") for gate in "ifou"
      for tensor in (matrix(f"{name}.W_{gate}", HIDDEN, EMBED), matrix(f"{name}.U_{gate}", HIDDEN, HIDDEN),
                     vector(f"{name}.b_{gate}", HIDDEN))),
    matrix("W_h", MLP, 2 * HIDDEN),
    vector("b_h", MLP),
    matrix("W_s", CLASSES, MLP),
    vector("b_s", CLASSES),
    table("crf.transitions", 1, CLASSES * CLASSES),
    vector("crf.begin", CLASSES),
    vector("crf.end", CLASSES),
]
LSTM = torch.nn.LSTM(EMBED, HIDDEN, bidirectional=True, dtype=torch.float64)


def lstm_weights(p, name, suffix):
    """Returns the tensors of one direction with the names and the order of torch.nn.LSTM, whose gates are i, f, g (here u), o. It has two biases:
    the second one is zero and not trained."""

    def stacked(kind):
        return torch.cat([p[f"{name}.{kind}_{gate}"] for gate in "ifuo"])

    bias = stacked("b")
    return {f"weight_ih{suffix}": stacked("W"), f"weight_hh{suffix}": stacked("U"),
            f"bias_ih{suffix}": bias, f"bias_hh{suffix}": torch.zeros_like(bias)}


def emissions(p, words):
    weights = lstm_weights(p, "forward", "_l0") | lstm_weights(p, "backward", "_l0_reverse")
    h, _ = torch.func.functional_call(LSTM, weights, (p["embedding"][words],))
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
    write(({"sentence": sentence(words, tags)} for words, tags in sentences),
          golden("bilstm-tagger", TENSORS, loss, sentences, name="bilstm-tagger-crf", mlp=MLP, crf=1))


if __name__ == "__main__":
    main()
