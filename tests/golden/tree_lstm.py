#!/usr/bin/env python3
"""Golden losses of a small binary Tree-LSTM, by an implementation in PyTorch that shares nothing with VPPS.

    python3 tests/golden/tree_lstm.py > tests/golden/tree_lstm_golden.h

needs PyTorch (any version; written with 2.x) and no data: the trees are drawn here and go into the header, which
tests/golden/test_golden.c includes. The network is the N-ary Tree-LSTM with N = 2 of Tai, Socher and Manning,
"Improved Semantic Representations From Tree-Structured Long Short-Term Memory Networks" (ACL 2015), eqs. 9-14: words
at the leaves only, children at inner vertices only, one bias b_f for both forget gates. A classifier at every vertex;
the loss is the sum of their negative log likelihoods over the batch's number of trees.

Everything is computed in double precision from initial values rounded to single precision.
"""
import math

import torch

HIDDEN, EMBED, WORDS, CLASSES = 24, 20, 30, 5
TREES, BATCH, BATCHES = 40, 4, 20


class Random:
    """A 32-bit linear congruential generator: the trees do not depend on any library's version."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 1664525 + 1013904223) % 2**32
        return (self.state >> 8) % n


def draw_tree(random, leaves):
    label = random.below(CLASSES)
    if leaves == 1:
        return (label, random.below(WORDS))
    left = 1 + random.below(leaves - 1)
    return (label, draw_tree(random, left), draw_tree(random, leaves - left))


def brackets(tree):
    if len(tree) == 2:
        return f"({tree[0]} {tree[1]})"
    return f"({tree[0]} {brackets(tree[1])} {brackets(tree[2])})"


# name, shape, scale of the initial values; the order numbers the tensors
TENSORS = [
    ("E", (WORDS, EMBED), 0.5),
    *((f"W_{gate}", (HIDDEN, EMBED), 0.3) for gate in ("i", "o", "u")),
    *((f"U_{gate}", (HIDDEN, HIDDEN), 0.3)
      for gate in ("i_l", "i_r", "o_l", "o_r", "u_l", "u_r", "f_ll", "f_lr", "f_rl", "f_rr")),
    *((f"b_{gate}", (HIDDEN,), 0.1) for gate in ("i", "o", "u", "f")),
    ("V", (CLASSES, HIDDEN), 0.3),
    ("b_s", (CLASSES,), 0.1),
]


def initial(number, shape, scale):
    n = math.prod(shape)
    values = [scale * math.sin(0.37 * i + 0.0011 * i * i + number) for i in range(n)]
    return torch.tensor(values, dtype=torch.float32).double().reshape(shape).requires_grad_()


def vertex(p, tree, losses):
    if len(tree) == 2:
        x = p["E"][tree[1]]
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
    logits = p["V"] @ h + p["b_s"]
    losses.append(-torch.log_softmax(logits, 0)[tree[0]])
    return h, c


class SparseAdam:
    """Adam (Kingma and Ba 2015, algorithm 1), lr 0.03. Rows of the first tensor, the embedding, that a batch does not
    use are not touched, nor is their state; the step's number counts all batches."""

    def __init__(self, parameters):
        self.parameters = parameters
        self.m = [torch.zeros_like(p) for p in parameters]
        self.v = [torch.zeros_like(p) for p in parameters]
        self.t = 0

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    @torch.no_grad()
    def step(self):
        self.t += 1
        for k, p in enumerate(self.parameters):
            if p.grad is None:
                continue
            used = slice(None) if k else p.grad.abs().sum(1) > 0
            g = p.grad[used]
            self.m[k][used] = 0.9 * self.m[k][used] + 0.1 * g
            self.v[k][used] = 0.999 * self.v[k][used] + 0.001 * g * g
            mean = self.m[k][used] / (1 - 0.9**self.t)
            square = self.v[k][used] / (1 - 0.999**self.t)
            p[used] -= 0.03 * mean / (square.sqrt() + 1e-8)


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
    sgd = train(trees, lambda p: torch.optim.SGD(p, lr=0.2))
    # torch.optim.Adam would also move the words that a batch does not use.
    adam = train(trees, SparseAdam)
    print("/* tree_lstm_golden.h - made by tree_lstm.py: do not edit. */")
    for name in ("HIDDEN", "EMBED", "WORDS", "CLASSES", "TREES", "BATCH", "BATCHES"):
        print(f"#define GOLDEN_{name} {globals()[name]}")
    print("\nstatic const char *const golden_trees[GOLDEN_TREES] = {")
    for tree in trees:
        text = brackets(tree)
        while len(text) > 100:
            cut = text.rindex(" ", 0, 100) + 1
            print(f'    "{text[:cut]}"')
            text = text[cut:]
        print(f'    "{text}",')
    print("};")
    for name, losses in (("sgd", sgd), ("adam", adam)):
        print(f"\nstatic const double golden_{name}[GOLDEN_BATCHES] = {{")
        for at in range(0, BATCHES, 4):
            print("    " + " ".join(f"{x:.12g}," for x in losses[at:at + 4]))
        print("};")


if __name__ == "__main__":
    main()
