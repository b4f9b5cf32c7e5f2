#!/usr/bin/env python3
"""Golden losses of a small recurrent network with adaptive computation time, by an implementation in PyTorch.

    python3 tests/golden/act.py > tests/golden/act.json

Graves, "Adaptive Computation Time for Recurrent Neural Networks" (2016), section 2, with torch.nn.RNNCell, whose second
bias is zero. It stops where the halting probabilities add up to enough, as the paper's Python would. The loss of an
example is its label's negative log likelihood and the ponder cost, of which only the remainder has a gradient.
"""
import torch

from golden import (CLASSES, EMBED, EXAMPLES, HIDDEN, WORDS, Random, golden, matrix, nll, sentence, table, vector,
                    write)

TURNS, PONDER, EPSILON = 4, 0.05, 0.01
# The order of the tensors gives each its number, which its initial values depend on.
TENSORS = [
    table("embedding", WORDS, EMBED),
    matrix("W", HIDDEN, EMBED),
    vector("w_1", HIDDEN),
    matrix("U_s", HIDDEN, HIDDEN),
    vector("b", HIDDEN),
    matrix("U_p", 1, HIDDEN),
    vector("b_p", 1),
    matrix("W_s", CLASSES, HIDDEN),
    vector("b_s", CLASSES),
]
RNN = torch.nn.RNNCell(EMBED + 1, HIDDEN, dtype=torch.float64)


def ponder(p, weights, word, state):
    """Steps the network on a word until it halts. Returns the mean state, and the word's ponder cost: number of steps + remainder."""
    states, probabilities, spent = [], [], 0.0
    while True:
        n = len(states) + 1
        flag = torch.full((1,), float(n == 1), dtype=torch.float64)
        state = torch.func.functional_call(RNN, weights, (torch.cat([word, flag]), state))
        h = torch.sigmoid(p["U_p"] @ state + p["b_p"])[0]
        states.append(state)
        if n == TURNS or (h + spent).item() >= 1 - EPSILON:
            probabilities.append(1 - spent)
            break
        probabilities.append(h)
        spent = spent + h
    mean = torch.stack(probabilities) @ torch.stack(states)
    return mean, len(states) + probabilities[-1]


def loss(p, example):
    words, label = example
    weights = {"weight_ih": torch.cat([p["W"], p["w_1"][:, None]], 1), "weight_hh": p["U_s"], "bias_ih": p["b"],
               "bias_hh": torch.zeros_like(p["b"])}
    state, cost = torch.zeros(HIDDEN, dtype=torch.float64), 0.0
    for word in words:
        state, turns = ponder(p, weights, p["embedding"][word], state)
        cost = cost + turns
    return nll((p["W_s"] @ state + p["b_s"])[None], [label]) + PONDER * cost


def main():
    random = Random(2016)
    sentences = [(random.ids(1 + random.below(9), WORDS), random.below(CLASSES)) for _ in range(EXAMPLES)]
    write(({"sentence": sentence(words), "label": label} for words, label in sentences),
          golden("act", TENSORS, loss, sentences, turns=TURNS, ponder=PONDER))


if __name__ == "__main__":
    main()
