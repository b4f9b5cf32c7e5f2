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


def draw_trees():
    random = Random(2015)
    return [draw_tree(random, 1 + random.below(12)) for _ in range(EXAMPLES)]


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


def classify(p, h, label):
    return -torch.log_softmax(p["W_s"] @ h + p["b_s"], 0)[label]


def vertex(p, tree, losses):
    if len(tree) == 2:
        x = p["embedding"][tree[1]]
        i = torch.sigmoid(p["W_i"] @ x + p["b_i"])
        o = torch.sigmoid(p["W_o"] @ x + p["b_o"])
        u = torch.tanh(p["W_u"] @ x + p["b_u"])
        c = i * u
    else:
        (h_l, c_l), (h_r, c_r) = vertex(p, tree[1], losses), vertex(p, tree[2], losses)
        i = torch.sigmoid(p["U_i_l"] @ h_l + p["U_i_r"] @ h_r + p["b_i"])
        o = torch.sigmoid(p["U_o_l"] @ h_l + p["U_o_r"] @ h_r + p["b_o"])
        u = torch.tanh(p["U_u_l"] @ h_l + p["U_u_r"] @ h_r + p["b_u"])
        f_l = torch.sigmoid(p["U_f_ll"] @ h_l + p["U_f_lr"] @ h_r + p["b_f"])
        f_r = torch.sigmoid(p["U_f_rl"] @ h_l + p["U_f_rr"] @ h_r + p["b_f"])
        c = i * u + f_l * c_l + f_r * c_r
    h = o * torch.tanh(c)
    losses.append(classify(p, h, tree[0]))
    return h, c


def sum_of_losses(vertex_of):
    """Returns the loss function of a tree, given vertex_of(p, tree, losses), which appends the losses of all its vertices."""

    def loss(p, tree):
        losses = []
        vertex_of(p, tree, losses)
        return torch.stack(losses).sum()

    return loss


def main():
    trees = draw_trees()
    write(map(example, trees), golden("tree-lstm", TENSORS, sum_of_losses(vertex), trees))


if __name__ == "__main__":
    main()
