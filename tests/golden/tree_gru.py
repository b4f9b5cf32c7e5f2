#!/usr/bin/env python3
"""Golden losses of a small binary Tree-GRU, by an implementation in PyTorch that shares nothing with VPPS.

    python3 tests/golden/tree_gru.py > tests/golden/tree_gru.json

The trees are those of tree_lstm.py beside it. The network is the bottom-up Tree-GRU of Chen, Huang, Chiang and Chen,
"Improved Neural Machine Translation with a Syntax-Aware Encoder and Decoder" (ACL 2017), section 3.2; a leaf is a GRU
step from nothing. A classifier at every vertex; the loss is the sum of their negative log likelihoods over the batch's
number of trees.
"""
import torch

from golden import CLASSES, EMBED, HIDDEN, WORDS, golden, matrix, table, vector, write
from tree_lstm import classify, draw_trees, example, sum_of_losses

GATES = ("rl", "rr", "zl", "zr", "z")
# The order numbers the tensors.
TENSORS = [
    table("embedding", WORDS, EMBED),
    matrix("W_z", HIDDEN, EMBED),
    matrix("W_u", HIDDEN, EMBED),
    *(matrix(f"U_{gate}_{child}", HIDDEN, HIDDEN) for gate in (*GATES, "u") for child in "lr"),
    *(vector(f"b_{gate}", HIDDEN) for gate in (*GATES, "u")),
    matrix("W_s", CLASSES, HIDDEN),
    vector("b_s", CLASSES),
]


def vertex(p, tree, losses):
    if len(tree) == 2:
        x = p["embedding"][tree[1]]
        h = torch.sigmoid(p["W_z"] @ x + p["b_z"]) * torch.tanh(p["W_u"] @ x + p["b_u"])
    else:
        l, r = vertex(p, tree[1], losses), vertex(p, tree[2], losses)
        gate = {name: torch.sigmoid(p[f"U_{name}_l"] @ l + p[f"U_{name}_r"] @ r + p[f"b_{name}"]) for name in GATES}
        u = torch.tanh(p["U_u_l"] @ (gate["rl"] * l) + p["U_u_r"] @ (gate["rr"] * r) + p["b_u"])
        h = gate["zl"] * l + gate["zr"] * r + gate["z"] * u
    losses.append(classify(p, h, tree[0]))
    return h


def main():
    trees = draw_trees()
    write(map(example, trees), golden("tree-gru", TENSORS, sum_of_losses(vertex), trees))


if __name__ == "__main__":
    main()
