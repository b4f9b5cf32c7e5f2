#!/usr/bin/env python3
"""The Tree-LSTM of models/tree_lstm.c in PyTorch, as a peer for bench_gpu: sentences a second by batch size.

    python3 bench/gpu_torch.py [--device cuda|cpu] [--seconds S] [--data DIR] [--hidden N] [--trees N] [--batches 1,2,...]

Needs PyTorch; without it, or without a GPU unless --device cpu is given, it says so and ends well. DIR has sst/train.txt
($VPPS_DATA). SGD with lr 0.01, fp32 (TF32 off), loss at every node, over the number of trees. Two ways:

    eager     one tree after the other, an operation a node: what a user writes first
    batched   nodes of all trees of a batch by their height, an operation for all of one height, weights of a vertex's
              gates joined into one matrix: what a user writes by hand when that is too slow

Before anything is timed, both must give the same loss and gradients. Batch sizes take turns, round by round. Every figure
is a line of JSON, [median, lowest, highest] of the rounds. Reading trees is not timed; finding the heights and moving
indices to the device is. On a busy CPU set OMP_NUM_THREADS=1: PyTorch's threads wait for each other at every operation.
"""
import argparse
import json
import os
import statistics
import sys
import time

try:
    import torch
except ImportError:
    torch = None

CLASSES = 5


# ---------------------------------------------------------------- trees

def read_tree(line, words):
    """Nodes in post-order: (label, word or -1, left, right)."""
    nodes, open_nodes = [], []
    for token in line.replace("(", " ( ").replace(")", " ) ").split():
        if token == "(":
            open_nodes.append([])
        elif token == ")":
            label, *rest = open_nodes.pop()
            if isinstance(rest[0], str):
                node = (int(label), words.setdefault(rest[0], len(words)), -1, -1)
            else:
                node = (int(label), -1, rest[0], rest[1])
            nodes.append(node)
            if open_nodes:
                open_nodes[-1].append(len(nodes) - 1)
        else:
            open_nodes[-1].append(token)
    return nodes


def read_trees(path, limit):
    words, trees = {}, []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip():
                trees.append(read_tree(line, words))
            if len(trees) == limit:
                break
    return trees, len(words)


# ---------------------------------------------------------------- the network

class TreeLstm:
    """Gates of a leaf: i, o, u; of an inner vertex, from h of both children side by side: i, o, u, f_l, f_r. The biases of
    i, o and u are shared, and so is that of both f."""

    def __init__(self, n_words, hidden, device):
        generator = torch.Generator().manual_seed(1)

        def uniform(rows, cols):
            bound = (6 / (rows + cols)) ** 0.5
            values = (torch.rand(rows, cols, generator=generator) * 2 - 1) * bound
            return values.to(device).requires_grad_()

        self.hidden, self.device = hidden, device
        self.embedding = uniform(n_words, hidden)
        self.leaf = uniform(3 * hidden, hidden)
        self.inner = uniform(5 * hidden, 2 * hidden)
        self.bias = torch.zeros(3 * hidden, device=device, requires_grad=True)
        self.forget_bias = torch.ones(hidden, device=device, requires_grad=True)
        self.classifier = uniform(CLASSES, hidden)
        self.classifier_bias = torch.zeros(CLASSES, device=device, requires_grad=True)
        self.parameters = [self.leaf, self.inner, self.bias, self.forget_bias, self.classifier, self.classifier_bias]

    def leaves(self, x):
        i, o, u = torch.addmm(self.bias, x, self.leaf.t()).chunk(3, 1)
        c = torch.sigmoid(i) * torch.tanh(u)
        return torch.sigmoid(o) * torch.tanh(c), c

    def vertices(self, h, c_l, c_r):
        bias = torch.cat([self.bias, self.forget_bias, self.forget_bias])
        i, o, u, f_l, f_r = torch.addmm(bias, h, self.inner.t()).chunk(5, 1)
        c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(f_l) * c_l + torch.sigmoid(f_r) * c_r
        return torch.sigmoid(o) * torch.tanh(c), c

    def nll(self, h, labels):
        logits = torch.addmm(self.classifier_bias, h, self.classifier.t())
        return torch.nn.functional.cross_entropy(logits, labels, reduction="sum", ignore_index=-1)

    def step(self, lr):
        """SGD. The embedding's gradient is sparse: words that a batch does not use cost nothing."""
        with torch.no_grad():
            for p in self.parameters:
                p.add_(p.grad, alpha=-lr)
                p.grad = None
            self.embedding.add_(self.embedding.grad, alpha=-lr)
            self.embedding.grad = None


def lookup(net, words):
    return torch.nn.functional.embedding(words, net.embedding, sparse=True)


def eager_loss(net, trees):
    loss = 0
    for tree in trees:
        words = torch.tensor([word for _, word, left, _ in tree if left < 0], device=net.device)
        labels = torch.tensor([label for label, *_ in tree], device=net.device)
        x, states, n_leaves = lookup(net, words), [], 0
        for k, (_, _, left, right) in enumerate(tree):
            if left < 0:
                h, c = net.leaves(x[n_leaves:n_leaves + 1])
                n_leaves += 1
            else:
                (h_l, c_l), (h_r, c_r) = states[left], states[right]
                h, c = net.vertices(torch.cat([h_l, h_r], 1), c_l, c_r)
            states.append((h, c))
            loss = loss + net.nll(h, labels[k:k + 1])
    return loss / len(trees)


def levels_of(trees):
    """For every height: labels; and words, or pairs of children, which are numbers in the order of the levels."""
    places, levels = [], []
    for number, tree in enumerate(trees):
        heights = []
        for label, word, left, right in tree:
            height = 0 if left < 0 else 1 + max(heights[left], heights[right])
            heights.append(height)
            if height == len(levels):
                levels.append(([], [], [], []))
            level = levels[height]
            level[0].append(label)
            level[1].append(word)
            level[2].append((number, left))
            level[3].append((number, right))
            places.append((height, len(level[0]) - 1))
    starts, n = [], 0
    for level in levels:
        starts.append(n)
        n += len(level[0])
    first, total = [], 0
    for tree in trees:
        first.append(total)
        total += len(tree)

    def place(child):
        number, node = child
        height, at = places[first[number] + node]
        return starts[height] + at

    return [(labels, words) if k == 0 else (labels, [place(x) for x in left], [place(x) for x in right])
            for k, (labels, words, left, right) in enumerate(levels)]


def batched_loss(net, trees):
    levels = levels_of(trees)
    flat = [x for level in levels for part in level for x in part]
    indices, at = torch.tensor(flat).to(net.device, non_blocking=True), 0  # one copy
    h = c = labels = None
    for k, level in enumerate(levels):
        n = len(level[0])
        parts = [indices[at + i * n:at + (i + 1) * n] for i in range(len(level))]
        at += n * len(level)
        if k == 0:
            labels, (h, c) = [parts[0]], net.leaves(lookup(net, parts[1]))
            continue
        labels.append(parts[0])
        both = torch.cat([h.index_select(0, parts[1]), h.index_select(0, parts[2])], 1)
        new_h, new_c = net.vertices(both, c.index_select(0, parts[1]), c.index_select(0, parts[2]))
        h, c = torch.cat([h, new_h]), torch.cat([c, new_c])
    return net.nll(h, torch.cat(labels)) / len(trees)


LOSSES = {"eager": eager_loss, "batched": batched_loss}


def check(net, trees):
    """The two ways agree."""
    results = []
    for loss_of in LOSSES.values():
        loss = loss_of(net, trees)
        loss.backward()
        gradients = [p.grad for p in net.parameters] + [net.embedding.grad.to_dense()]
        results.append([loss.detach()] + gradients)
        for p in net.parameters + [net.embedding]:
            p.grad = None
    for a, b in zip(*results):
        if not torch.allclose(a, b, rtol=1e-3, atol=1e-4):
            raise SystemExit(f"the two ways differ: by {float((a - b).abs().max())} at most")


# ---------------------------------------------------------------- timing

def synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


def run_round(net, loss_of, trees, start, batch, seconds):
    synchronize(net.device)
    n, begin = 0, time.perf_counter()
    while n == 0 or time.perf_counter() - begin < seconds:
        loss_of(net, [trees[(start + n + k) % len(trees)] for k in range(batch)]).backward()
        net.step(0.01)
        n += batch
    synchronize(net.device)
    return n / (time.perf_counter() - begin), start + n


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--data", default=os.environ.get("VPPS_DATA", "."))
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--trees", type=int, default=-1, help="read so many only")
    parser.add_argument("--batches", default="1,2,4,8,16,32,64,128")
    o = parser.parse_args()
    if torch is None:
        print("gpu_torch: PyTorch is not installed; nothing was measured", file=sys.stderr)
        return
    if o.device == "cuda" and not torch.cuda.is_available():
        print("gpu_torch: PyTorch finds no GPU; nothing was measured (--device cpu measures the CPU)", file=sys.stderr)
        return
    torch.backends.cuda.matmul.allow_tf32 = False
    trees, n_words = read_trees(os.path.join(o.data, "sst", "train.txt"), o.trees)
    net = TreeLstm(n_words, o.hidden, o.device)
    check(net, trees[:8])
    batches = [int(x) for x in o.batches.split(",")]
    rates = {(way, batch): [] for way in LOSSES for batch in batches}
    at = dict.fromkeys(rates, 0)
    for turn in range(o.rounds + 1):  # the first warms up
        for way, batch in rates:
            rate, at[way, batch] = run_round(net, LOSSES[way], trees, at[way, batch], batch, o.seconds)
            if turn:
                rates[way, batch].append(rate)
    for (way, batch), x in rates.items():
        print(json.dumps({"bench": "torch", "torch": torch.__version__, "device": o.device, "way": way,
                          "hidden": o.hidden, "batch": batch,
                          "sentences_per_s": [round(y, 2) for y in (statistics.median(x), min(x), max(x))]}))


if __name__ == "__main__":
    main()
