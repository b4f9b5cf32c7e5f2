#!/usr/bin/env python3
"""Golden losses of a small binary Tree-LSTM, by an implementation in PyTorch that shares nothing with VPPS.

    python3 tests/golden/tree_lstm.py > tests/golden/tree_lstm.json

needs PyTorch (any version; written with 2.x) and no data: the trees are drawn here and go into the file. The network
is the N-ary Tree-LSTM with N = 2 of Tai, Socher and Manning, "Improved Semantic Representations From Tree-Structured
Long Short-Term Memory Networks" (ACL 2015), eqs. 9-14: words at the leaves only, children at inner vertices only, one
bias b_f for both forget gates. A classifier at every vertex; the loss is the sum of their negative log likelihoods over
the batch's number of trees.
"""
import torch

from golden import CLASSES, EMBED, EXAMPLES, HIDDEN, NO_WORD, WORDS, Random, golden, matrix, table, vector, write

# The order of the tensors gives each its number, which its initial values depend on.
TENSORS = [
    table("embedding", WORDS, EMBED),
    *(matrix(f"W_{gate}", HIDDEN, EMBED) for gate in ("i", "o", "u")),
    *(matrix(f"U_{gate}", HIDDEN, HIDDEN)
      for gate in ("i_l", "i_r", "o_l", "o_r", "u_l", "u_r", "f_ll", "f_lr", "f_rl", "f_rr")),
    *(vector(f"b_{gate}", HIDDEN) for gate in ("i", "o", "u", "f")),
    matrix("W_s", CLASSES, HIDDEN),
    vector("b_s", CLASSES),
]


def draw_tree(random, leaves):
    """Draws a tree: (label, word) for a leaf, (label, left subtree, right subtree) for an inner vertex."""
    label = random.below(CLASSES)
    if leaves == 1:
        return (label, random.below(WORDS))
    left = 1 + random.below(leaves - 1)
    return (label, draw_tree(random, left), draw_tree(random, leaves - left))


def add_nodes(tree, nodes):
    """Appends the tree's nodes in post-order, each as (label, left, right, word)."""
    if len(tree) == 2:
        nodes.append((tree[0], -1, -1, tree[1]))
    else:
        children = [add_nodes(child, nodes) for child in tree[1:]]
        nodes.append((tree[0], *children, NO_WORD))
    return len(nodes) - 1


def example(tree):
    nodes = []
    add_nodes(tree, nodes)
    return {"tree": nodes}


def vertex(p, tree, losses):
    if len(tree) == 2:
        x = p["embedding"][tree[1]]
        i, o, u = (p[f"W_{gate}"] @ x + p[f"b_{gate}"] for gate in "iou")
        c = torch.sigmoid(i) * torch.tanh(u)
    else:
        (h_l, c_l), (h_r, c_r) = vertex(p, tree[1], losses), vertex(p, tree[2], losses)
        i, o, f_l, f_r, u = (p[f"U_{gate}l"] @ h_l + p[f"U_{gate}r"] @ h_r + p[f"b_{gate[0]}"]
                             for gate in ("i_", "o_", "f_l", "f_r", "u_"))
        c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(f_l) * c_l + torch.sigmoid(f_r) * c_r
    h = torch.sigmoid(o) * torch.tanh(c)
    losses.append(-torch.log_softmax(p["W_s"] @ h + p["b_s"], 0)[tree[0]])
    return h, c


def loss(p, tree):
    losses = []
    vertex(p, tree, losses)
    return torch.stack(losses).sum()


def main():
    random = Random(2015)
    trees = [draw_tree(random, 1 + random.below(12)) for _ in range(EXAMPLES)]
    write(map(example, trees), golden("tree-lstm", TENSORS, loss, trees))


if __name__ == "__main__":
    main()
