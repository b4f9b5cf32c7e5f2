#!/usr/bin/env python3
"""Golden losses of a small binary Tree-GRU, by an implementation in PyTorch that shares nothing with VPPS.

    python3 tests/golden/tree_gru.py > tests/golden/tree_gru_golden.h

The trees, sizes, initial values and optimisers are those of tree_lstm.py beside it. The network is the bottom-up
Tree-GRU of Chen, Huang, Chiang and Chen, "Improved Neural Machine Translation with a Syntax-Aware Encoder and Decoder"
(ACL 2017), section 3.2; a leaf is a GRU step from nothing. A classifier at every vertex; the loss is the sum of their
negative log likelihoods over the batch's number of trees.
"""
import torch

from tree_lstm import (BATCH, BATCHES, CLASSES, EMBED, HIDDEN, TREES, WORDS, Random, SparseAdam, draw_tree, initial)

GATES = ("rl", "rr", "zl", "zr", "z")
# name, shape, scale of the initial values; the order numbers the tensors
TENSORS = [
    ("embedding", (WORDS, EMBED), 0.5),
    ("W_z", (HIDDEN, EMBED), 0.3),
    ("W_u", (HIDDEN, EMBED), 0.3),
    *((f"U_{gate}_{child}", (HIDDEN, HIDDEN), 0.3) for gate in (*GATES, "u") for child in "lr"),
    *((f"b_{gate}", (HIDDEN,), 0.1) for gate in (*GATES, "u")),
    ("W_s", (CLASSES, HIDDEN), 0.3),
    ("b_s", (CLASSES,), 0.1),
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
    logits = p["W_s"] @ h + p["b_s"]
    losses.append(-torch.log_softmax(logits, 0)[tree[0]])
    return h


def train(trees, make_optimizer):
    p = {name: initial(number, shape, scale) for number, (name, shape, scale) in enumerate(TENSORS)}
    optimizer = make_optimizer(list(p.values()))
    result = []
    for batch in range(BATCHES):
        losses = []
        for k in range(BATCH):
            vertex(p, trees[(batch * BATCH + k) % TREES], losses)
        loss = torch.stack(losses).sum() / BATCH
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        result.append(loss.item())
    return result


def main():
    random = Random(2015)
    trees = [draw_tree(random, 1 + random.below(12)) for _ in range(TREES)]
    print("/* tree_gru_golden.h - made by tree_gru.py: do not edit. The trees are tree_lstm_golden.h's. */")
    print("\nstatic const struct {\n    const char *name;\n    double scale;\n} golden_gru_tensors[] = {")
    for name, _, scale in TENSORS:
        print(f'    {{"{name}", {scale}}},')
    print("};")
    for name, make in (("sgd", lambda p: torch.optim.SGD(p, lr=0.2)), ("adam", SparseAdam)):
        losses = train(trees, make)
        print(f"\nstatic const double golden_gru_{name}[GOLDEN_BATCHES] = {{")
        for at in range(0, BATCHES, 4):
            print("    " + " ".join(f"{x:.12g}," for x in losses[at:at + 4]))
        print("};")


if __name__ == "__main__":
    main()
