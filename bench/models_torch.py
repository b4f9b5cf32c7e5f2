#!/usr/bin/env python3
"""Two networks in PyTorch on the CPU, as peers for models.py: sentences a second by batch size.

    python3 bench/models_torch.py --network tree-lstm|bilstm-tagger --data FILE [--batches 1,2,...] [--seconds S]

FILE is sst/train.txt or wikiner/train.txt. Sizes are those of models.py's table: all layers 256 wide. fp32, SGD, the
loss of a batch over its number of sentences; a word that a batch does not use costs nothing. Two ways:

    eager     one sentence after the other: what a user writes first. A vertex of a tree is an operation for each of
              its steps; a sentence to tag is one call of nn.LSTM.
    batched   what a user writes by hand when that is too slow. Trees: vertices of all trees by their height, each
              height at once; states that a vertex above still needs are carried along. Sentences: packed into one
              nn.LSTM call.

Before anything is timed, both must give the same loss and gradients. Reading the data is not timed; making a batch of
it is. Each way and batch size is measured with one thread and with all, for which is faster depends on both: a line
of JSON each. nn.LSTM has a second bias that the network of VPPS does not have.
"""
import argparse
import json
import sys
import time

try:
    import torch
except ImportError:
    sys.exit("models_torch: PyTorch is not installed")

import gpu_torch

SIZE = 256
RATE = 0.001


# ---------------------------------------------------------------- tree-lstm

class Trees:
    """The network and its eager way are gpu_torch's; the batched way copies less than the one there."""

    def __init__(self, path):
        self.examples, n_words = gpu_torch.read_trees(path, -1)
        self.net = gpu_torch.TreeLstm(n_words, SIZE, "cpu")
        self.ways = {"eager": lambda trees: gpu_torch.eager_loss(self.net, trees), "batched": self.batched}
        self.parameters = self.net.parameters
        self.embedding = self.net.embedding

    @staticmethod
    def levels(trees):
        """For every height: labels; words, or where the children's states are (left, right, left, ...); and which of the
        states at hand are still needed after it."""
        heights, by_height = [], []
        for number, tree in enumerate(trees):
            height = []
            for k, (_, _, left, right) in enumerate(tree):
                height.append(0 if left < 0 else 1 + max(height[left], height[right]))
                if height[k] == len(by_height):
                    by_height.append([])
                by_height[height[k]].append((number, k))
            heights.append(height)
        at_hand, levels = [], []
        for level, vertices in enumerate(by_height):
            labels = [trees[number][k][0] for number, k in vertices]
            if level == 0:
                levels.append((labels, [trees[number][k][1] for number, k in vertices], []))
                at_hand = vertices
                continue
            place = {vertex: i for i, vertex in enumerate(at_hand)}
            children = [place.pop((number, child)) for number, k in vertices for child in trees[number][k][2:]]
            levels.append((labels, children, list(place.values())))
            at_hand = list(place) + vertices
        return levels

    def batched(self, trees):
        net, all_h, labels = self.net, [], []
        h = c = None
        for level, (level_labels, indices, kept) in enumerate(self.levels(trees)):
            labels += level_labels
            indices = torch.tensor(indices)
            if level == 0:
                h, c = net.leaves(gpu_torch.lookup(net, indices))
                all_h.append(h)
                continue
            n = len(level_labels)
            both_c = c.index_select(0, indices).view(n, 2, SIZE)
            new_h, new_c = net.vertices(h.index_select(0, indices).view(n, 2 * SIZE), both_c[:, 0], both_c[:, 1])
            all_h.append(new_h)
            kept = torch.tensor(kept, dtype=torch.long)
            h, c = torch.cat([h.index_select(0, kept), new_h]), torch.cat([c.index_select(0, kept), new_c])
        return net.nll(torch.cat(all_h), torch.tensor(labels)) / len(trees)


# ---------------------------------------------------------------- bilstm-tagger

class Tagger:
    """Embedding, one LSTM each way, a hidden layer, a tag for every word."""

    def __init__(self, path):
        words, tags, self.examples = {}, {}, []
        with open(path, encoding="utf-8") as file:
            for line in file:
                pairs = [token.rsplit("|", 1) for token in line.split()]
                if pairs:
                    self.examples.append((torch.tensor([words.setdefault(w, len(words)) for w, _ in pairs]),
                                          torch.tensor([tags.setdefault(t, len(tags)) for _, t in pairs])))
        torch.manual_seed(1)
        self.embedding = torch.empty(len(words), SIZE).uniform_(-0.05, 0.05).requires_grad_()
        self.lstm = torch.nn.LSTM(SIZE, SIZE, bidirectional=True)
        self.head = torch.nn.Sequential(torch.nn.Linear(2 * SIZE, SIZE), torch.nn.Tanh(),
                                        torch.nn.Linear(SIZE, len(tags)))
        self.parameters = [*self.lstm.parameters(), *self.head.parameters()]
        self.ways = {"eager": self.eager, "batched": self.batched}

    def lookup(self, words):
        return torch.nn.functional.embedding(words, self.embedding, sparse=True)

    def nll(self, h, tags):
        return torch.nn.functional.cross_entropy(self.head(h), tags, reduction="sum")

    def eager(self, sentences):
        loss = 0
        for words, tags in sentences:
            loss = loss + self.nll(self.lstm(self.lookup(words))[0], tags)
        return loss / len(sentences)

    def batched(self, sentences):
        pack = torch.nn.utils.rnn.pack_sequence
        words = pack([x[0] for x in sentences], enforce_sorted=False)
        tags = pack([x[1] for x in sentences], enforce_sorted=False)
        h, _ = self.lstm(words._replace(data=self.lookup(words.data)))
        return self.nll(h.data, tags.data) / len(sentences)


NETWORKS = {"tree-lstm": Trees, "bilstm-tagger": Tagger}


# ---------------------------------------------------------------- both

def step(network):
    with torch.no_grad():
        for p in [*network.parameters, network.embedding]:
            p.add_(p.grad, alpha=-RATE)
            p.grad = None


def check(network):
    """The two ways agree."""
    results = []
    for loss_of in network.ways.values():
        loss = loss_of(network.examples[:8])
        loss.backward()
        results.append([loss.detach()] + [p.grad for p in network.parameters] + [network.embedding.grad.to_dense()])
        for p in [*network.parameters, network.embedding]:
            p.grad = None
    for a, b in zip(*results):
        if not torch.allclose(a, b, rtol=1e-3, atol=1e-4):
            sys.exit(f"models_torch: the two ways differ, by {float((a - b).abs().max())} at most")


def rate(network, loss_of, batch, seconds):
    examples, n, begin = network.examples, 0, time.perf_counter()
    while n == 0 or time.perf_counter() - begin < seconds:
        loss_of([examples[(n + k) % len(examples)] for k in range(batch)]).backward()
        step(network)
        n += batch
    return n / (time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--network", choices=NETWORKS, required=True)
    parser.add_argument("--data", required=True, metavar="FILE")
    parser.add_argument("--batches", default="1,2,4,8,16,32,64,128")
    parser.add_argument("--seconds", type=float, default=2, help="for each line")
    o = parser.parse_args()
    network = NETWORKS[o.network](o.data)
    check(network)
    for threads in sorted({1, torch.get_num_threads()}):
        torch.set_num_threads(threads)
        for name, loss_of in network.ways.items():
            rate(network, loss_of, 1, o.seconds / 10)  # warms up
            for batch in map(int, o.batches.split(",")):
                print(json.dumps({"network": o.network, "mode": name, "batch": batch, "threads": threads,
                                  "torch": torch.__version__,
                                  "sentences_per_s": rate(network, loss_of, batch, o.seconds)}), flush=True)


if __name__ == "__main__":
    main()
