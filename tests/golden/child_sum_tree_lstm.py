#!/usr/bin/env python3
"""Golden losses of a small Child-Sum Tree-LSTM, by an implementation in PyTorch that shares nothing with VPPS.

    python3 tests/golden/child_sum_tree_lstm.py > tests/golden/child_sum_tree_lstm.json

needs PyTorch (any version; written with 2.x) and no data: the trees are drawn here and go into the file. The network is that of Tai,
Socher and Manning, "Improved Semantic Representations From Tree-Structured Long Short-Term Memory Networks" (ACL 2015), section 3.1,
eqs. 2-8, on dependency trees. A classifier at every word that has a label; the loss is the sum of their negative log likelihoods over the
batch's number of trees.
"""
import torch

from golden import (CLASSES, EMBED, EXAMPLES, HIDDEN, NO_WORD, WORDS, Random, golden, matrix, sentence, table, vector,
                    write)

# The order numbers the tensors.
TENSORS = [
    table("embedding", WORDS, EMBED),
    *(tensor for gate in "ifou" for tensor in (matrix(f"W_{gate}", HIDDEN, EMBED), matrix(f"U_{gate}", HIDDEN, HIDDEN),
                                               vector(f"b_{gate}", HIDDEN))),
    matrix("W_s", CLASSES, HIDDEN),
    vector("b_s", CLASSES),
]


def draw_heads(random, n):
    """Heads from 1, 0 for a root, of words that are drawn one after the other in some order: each depends on one before it, or on none."""
    order, heads = [], [0] * n
    for word in range(n):
        order.insert(random.below(word + 1), word)
    for k in range(1, n):
        before = random.below(k + 1)
        heads[order[k]] = 0 if before == k else order[before] + 1
    return heads


def draw_trees():
    """(words, labels, heads), every sixth label or so missing."""
    random = Random(2015)
    trees = []
    for _ in range(EXAMPLES):
        n = 1 + random.below(12)
        words, labels = random.ids(n, WORDS), random.ids(n, CLASSES)
        labels = [NO_WORD if random.below(6) == 0 else label for label in labels]
        trees.append((words, labels if any(label != NO_WORD for label in labels) else [0] * n, draw_heads(random, n)))
    return trees


def loss(p, tree):
    words, labels, heads = tree
    losses = []

    def state(k):
        """h and c of word k, from 0."""
        children = [state(j) for j in range(len(words)) if heads[j] == k + 1]
        x = p["embedding"][words[k]]
        total = sum((h for h, _ in children), torch.zeros(HIDDEN, dtype=x.dtype))
        i = torch.sigmoid(p["W_i"] @ x + p["U_i"] @ total + p["b_i"])
        o = torch.sigmoid(p["W_o"] @ x + p["U_o"] @ total + p["b_o"])
        u = torch.tanh(p["W_u"] @ x + p["U_u"] @ total + p["b_u"])
        c = i * u
        for h_k, c_k in children:
            c = c + torch.sigmoid(p["W_f"] @ x + p["U_f"] @ h_k + p["b_f"]) * c_k
        h = o * torch.tanh(c)
        if labels[k] != NO_WORD:
            losses.append(-torch.log_softmax(p["W_s"] @ h + p["b_s"], 0)[labels[k]])
        return h, c

    for k in range(len(words)):
        if heads[k] == 0:
            state(k)
    return torch.stack(losses).sum()


def main():
    trees = draw_trees()
    write(({"sentence": sentence(*tree)} for tree in trees), golden("child-sum-tree-lstm", TENSORS, loss, trees))


if __name__ == "__main__":
    main()
