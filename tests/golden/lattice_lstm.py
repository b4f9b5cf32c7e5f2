#!/usr/bin/env python3
"""Golden losses of a small lattice LSTM, by an implementation in PyTorch that shares nothing with VPPS.

    python3 tests/golden/lattice_lstm.py > tests/golden/lattice_lstm.json

Zhang and Yang, "Chinese NER Using Lattice LSTM" (ACL 2018), section 3.3, eqs. 11 to 16, from left to right only, with a
softmax for each tag instead of a CRF. The cell of a word starts from the state at the word's first character (h_b and
c_b of eq. 13). A character where no word ends is a step of torch.nn.LSTMCell. The loss is the sum of the negative log
likelihoods over the batch's number of lattices.
"""
import torch

from golden import (CLASSES, EMBED, EXAMPLES, HIDDEN, WORDS, Random, golden, lstm_tensors, lstm_weights, matrix, nll,
                    table, vector, write)

CHARACTERS = 15

TENSORS = [
    table("characters", CHARACTERS, EMBED),
    *lstm_tensors("char", EMBED, HIDDEN),
    table("words", WORDS, EMBED),
    *(tensor for gate in "iful" for tensor in (matrix(f"word.W_{gate}", HIDDEN, EMBED),
                                               matrix(f"word.U_{gate}", HIDDEN, HIDDEN),
                                               vector(f"word.b_{gate}", HIDDEN))),
    matrix("W_s", CLASSES, HIDDEN),
    vector("b_s", CLASSES),
]
LSTM = torch.nn.LSTMCell(EMBED, HIDDEN, dtype=torch.float64)


def linear(p, name, gate, x, h):
    return p[f"{name}.W_{gate}"] @ x + p[f"{name}.U_{gate}"] @ h + p[f"{name}.b_{gate}"]


def word_cell(p, word, state):
    """Returns c of a word's cell, by eq. 13 of the paper."""
    x, (h, c) = p["words"][word], state
    return (torch.sigmoid(linear(p, "word", "f", x, h)) * c
            + torch.sigmoid(linear(p, "word", "i", x, h)) * torch.tanh(linear(p, "word", "u", x, h)))


def joined(p, x, state, word_cells):
    """Joins the cells of a character and of the words that end there (eqs. 11 and 14 to 16): their weights are a softmax, element by element."""
    h, _ = state
    i, o = (torch.sigmoid(linear(p, "char", gate, x, h)) for gate in "io")
    gates = [i, *(torch.sigmoid(linear(p, "word", "l", x, c)) for c in word_cells)]
    cells = [torch.tanh(linear(p, "char", "u", x, h)), *word_cells]
    c = (torch.softmax(torch.stack(gates), 0) * torch.stack(cells)).sum(0)
    return o * torch.tanh(c), c


def loss(p, lattice):
    """Returns the loss of a lattice: (characters, tags, words), where a word is (first character, last character, id)."""
    characters, tags, words = lattice
    zero = torch.zeros(HIDDEN, dtype=torch.float64)
    before, states = (zero, zero), []
    for e, character in enumerate(characters):
        x = p["characters"][character]
        cells = [word_cell(p, word, states[b]) for b, end, word in words if end == e]
        if cells:
            before = joined(p, x, before, cells)
        else:
            before = torch.func.functional_call(LSTM, lstm_weights(p, "char", ""), (x, before))
        states.append(before)
    h = torch.stack([h for h, _ in states])
    return nll(h @ p["W_s"].T + p["b_s"], tags)


def draw_lattice(random):
    n = 1 + random.below(12)
    words = [(b, e, random.below(WORDS)) for e in range(n) for b in range(max(0, e - 4), e) if random.below(4) == 0]
    return random.ids(n, CHARACTERS), random.ids(n, CLASSES), words


def example(lattice):
    """Returns the lattice as nodes and arcs: node 0 is the start, node k + 1 stands after character k. An arc is (the node before its first
    character, the id, 1 for a character or 0 for a word)."""
    characters, tags, words = lattice
    arcs, first = [], [0, 0]
    for e, character in enumerate(characters):
        arcs.append((e, character, 1))
        arcs += [(b, word, 0) for b, end, word in words if end == e]
        first.append(len(arcs))
    return {"lattice": {"tags": [0, *tags], "first": first, "arcs": arcs}}


def main():
    random = Random(2018)
    lattices = [draw_lattice(random) for _ in range(EXAMPLES)]
    write(map(example, lattices), golden("lattice-lstm", TENSORS, loss, lattices, characters=CHARACTERS))


if __name__ == "__main__":
    main()
