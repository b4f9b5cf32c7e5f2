#!/usr/bin/env python3
"""A worker for bench/train.py: networks trained with PyTorch, on the CPU or on a GPU.

    python3 bench/peers_torch.py [--device cpu|cuda] [--network NAME] [--data DIR]        echo "16 0.5 batched" | ...

DIR has sst/train.txt, which is also read as graphs (recipes/tree_graphs.py), and wikiner/train.txt. fp32 (TF32 off), SGD, the loss of a batch over its number of sentences; all layers 256 wide;
a word that a batch does not use costs nothing. nn.LSTM has a second bias that the network of VPPS does not have. Lines are answered as by
peers.py, in two ways:

    eager     one example after the other: what a user writes first. A vertex of a tree is an operation for each of its steps; a
              sentence to tag is one call of nn.LSTM, or one transformer; a graph is a call of each round
    batched   what a user writes by hand when that is too slow. Trees: vertices of all trees of a batch by their height, each height
              at once, weights of a vertex's gates joined into one matrix; states that a vertex above still needs are carried
              along. Sentences: packed into one call of nn.LSTM; for a transformer, words of all sentences are rows of one
              matrix, padded for attention alone. Graphs: as one graph of all their nodes. Rounds are torch_geometric's
              message passing

Before anything is timed, both must give the same loss and gradients. On the CPU each figure is by one thread or by all, whichever is
faster. Reading the data is not timed; making a batch of it, and moving that to the device, is.
"""
import argparse
import os
import sys

import torch
from peers import RATE, SIZE, rate_of, read_trees, serve

CLASSES = 5


# ---------------------------------------------------------------- tree-lstm

class Trees:
    """Gates of a leaf: i, o, u; of an inner vertex, from h of both children side by side: i, o, u, f_l, f_r. The biases of
    i, o and u are shared, and so is that of both f."""

    def __init__(self, o):
        self.examples, n_words = read_trees(os.path.join(o.data, "sst", "train.txt"))
        generator = torch.Generator().manual_seed(1)

        def uniform(rows, cols):
            bound = (6 / (rows + cols)) ** 0.5
            values = (torch.rand(rows, cols, generator=generator) * 2 - 1) * bound
            return values.to(o.device).requires_grad_()

        self.hidden, self.device = o.hidden, o.device
        self.embedding = uniform(n_words, o.hidden)
        self.leaf = uniform(3 * o.hidden, o.hidden)
        self.inner = uniform(5 * o.hidden, 2 * o.hidden)
        self.bias = torch.zeros(3 * o.hidden, device=o.device, requires_grad=True)
        self.forget_bias = torch.ones(o.hidden, device=o.device, requires_grad=True)
        self.classifier = uniform(CLASSES, o.hidden)
        self.classifier_bias = torch.zeros(CLASSES, device=o.device, requires_grad=True)
        self.parameters = [self.leaf, self.inner, self.bias, self.forget_bias, self.classifier, self.classifier_bias]

    def lookup(self, words):
        return torch.nn.functional.embedding(words, self.embedding, sparse=True)

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

    def eager(self, trees):
        loss = 0
        for tree in trees:
            words = torch.tensor([word for _, word, left, _ in tree if left < 0], device=self.device)
            labels = torch.tensor([label for label, *_ in tree], device=self.device)
            x, states, n_leaves = self.lookup(words), [], 0
            for k, (_, _, left, right) in enumerate(tree):
                if left < 0:
                    h, c = self.leaves(x[n_leaves:n_leaves + 1])
                    n_leaves += 1
                else:
                    (h_l, c_l), (h_r, c_r) = states[left], states[right]
                    h, c = self.vertices(torch.cat([h_l, h_r], 1), c_l, c_r)
                states.append((h, c))
                loss = loss + self.nll(h, labels[k:k + 1])
        return loss / len(trees)

    @staticmethod
    def levels(trees):
        """For every height: labels; words, or where the children's states are (left, right, left, ...); and which of the
        states at hand are still needed after it."""
        by_height = []
        for number, tree in enumerate(trees):
            height = []
            for k, (_, _, left, right) in enumerate(tree):
                height.append(0 if left < 0 else 1 + max(height[left], height[right]))
                if height[k] == len(by_height):
                    by_height.append([])
                by_height[height[k]].append((number, k))
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
        levels = self.levels(trees)
        sizes = [len(part) for level in levels for part in level]
        flat = torch.tensor([x for level in levels for part in level for x in part]).to(self.device, non_blocking=True)
        parts = iter(flat.split(sizes))  # all indices are one copy to the device
        all_h, labels, h, c = [], [], None, None
        for level in range(len(levels)):
            level_labels, indices, kept = next(parts), next(parts), next(parts)
            labels.append(level_labels)
            if level == 0:
                h, c = self.leaves(self.lookup(indices))
                all_h.append(h)
                continue
            n = len(level_labels)
            both_c = c.index_select(0, indices).view(n, 2, self.hidden)
            new_h, new_c = self.vertices(h.index_select(0, indices).view(n, 2 * self.hidden), both_c[:, 0], both_c[:, 1])
            all_h.append(new_h)
            h, c = torch.cat([h.index_select(0, kept), new_h]), torch.cat([c.index_select(0, kept), new_c])
        return self.nll(torch.cat(all_h), torch.cat(labels)) / len(trees)


# ---------------------------------------------------------------- bilstm-tagger

def read_tagged(o):
    """Sentences of WikiNER, each its words' numbers and its tags'; how many words and tags there are."""
    words, tags, sentences = {}, {}, []
    with open(os.path.join(o.data, "wikiner", "train.txt"), encoding="utf-8") as file:
        for line in file:
            pairs = [token.rsplit("|", 1) for token in line.split()]
            if pairs:
                both = ([words.setdefault(w, len(words)) for w, _ in pairs], [tags.setdefault(t, len(tags)) for _, t in pairs])
                sentences.append([torch.tensor(x, device=o.device) for x in both])
    return sentences, len(words), len(tags)


class Tagger:
    """Embedding, one LSTM each way, a hidden layer, a tag for every word."""

    def __init__(self, o):
        self.examples, n_words, n_tags = read_tagged(o)
        torch.manual_seed(1)
        self.embedding = torch.empty(n_words, o.hidden).uniform_(-0.05, 0.05).to(o.device).requires_grad_()
        self.lstm = torch.nn.LSTM(o.hidden, o.hidden, bidirectional=True).to(o.device)
        self.head = torch.nn.Sequential(torch.nn.Linear(2 * o.hidden, o.hidden), torch.nn.Tanh(),
                                        torch.nn.Linear(o.hidden, n_tags)).to(o.device)
        self.parameters = [*self.lstm.parameters(), *self.head.parameters()]

    def lookup(self, words):
        return torch.nn.functional.embedding(words, self.embedding, sparse=True)

    def nll(self, h, tags):
        return torch.nn.functional.cross_entropy(self.head(h), tags, reduction="sum")

    def eager(self, sentences):
        return sum(self.nll(self.lstm(self.lookup(words))[0], tags) for words, tags in sentences) / len(sentences)

    def batched(self, sentences):
        words, tags = (torch.nn.utils.rnn.pack_sequence(x, enforce_sorted=False) for x in zip(*sentences))
        h, _ = self.lstm(words._replace(data=self.lookup(words.data)))
        return self.nll(h.data, tags.data) / len(sentences)


class FieldTagger(Tagger):
    """With a conditional random field (models/crf.h): the forward algorithm word by word, over all sentences."""

    def __init__(self, o):
        super().__init__(o)
        n = self.head[-1].out_features
        self.next, self.begin, self.end = (torch.zeros(*shape, device=o.device, requires_grad=True) for shape in ((n, n), (n,), (n,)))
        self.parameters += [self.next, self.begin, self.end]

    def loss(self, e, tags, lengths):  # e: words x sentences x tags
        each, a = torch.arange(e.shape[1], device=e.device), self.begin + e[0]
        right = a[each, tags[0]] + self.end[tags[lengths - 1, each]]
        for k in range(1, e.shape[0]):
            here = lengths > k
            a = torch.where(here[:, None], torch.logsumexp(a[:, :, None] + self.next, 1) + e[k], a)
            right = right + here * (e[k, each, tags[k]] + self.next[tags[k - 1], tags[k]])
        return (torch.logsumexp(a + self.end, 1) - right).sum()

    def eager(self, sentences):
        return sum(self.batched([s]) for s in sentences) / len(sentences)

    def batched(self, sentences):
        words, tags = (torch.nn.utils.rnn.pack_sequence(x, enforce_sorted=False) for x in zip(*sentences))
        h = self.lstm(words._replace(data=self.lookup(words.data)))[0]
        e, lengths = torch.nn.utils.rnn.pad_packed_sequence(h._replace(data=self.head(h.data)))
        return self.loss(e, torch.nn.utils.rnn.pad_packed_sequence(tags)[0], lengths.to(e.device)) / len(sentences)


# ---------------------------------------------------------------- transformer-tagger

HEADS = 4


class Transformer:
    """One layer of models/transformer_tagger.c at its default sizes."""

    def __init__(self, o):
        self.examples, n_words, n_tags = read_tagged(o)
        d = self.hidden = o.hidden
        torch.manual_seed(1)
        self.embedding = torch.empty(n_words, d).uniform_(-0.05, 0.05).to(o.device).requires_grad_()
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(d) for _ in range(3)).to(o.device)
        self.qkv, self.output = torch.nn.Linear(d, 3 * d).to(o.device), torch.nn.Linear(d, d).to(o.device)
        self.feed = torch.nn.Sequential(torch.nn.Linear(d, 4 * d), torch.nn.GELU(), torch.nn.Linear(4 * d, d)).to(o.device)
        self.head = torch.nn.Linear(d, n_tags).to(o.device)
        self.parameters = [p for part in (self.norms, self.qkv, self.output, self.feed, self.head) for p in part.parameters()]
        longest = max(len(words) for words, _ in self.examples)
        angles = torch.arange(longest)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
        self.positions = torch.stack([angles.sin(), angles.cos()], 2).reshape(longest, d).to(o.device)

    def lookup(self, words):
        return torch.nn.functional.embedding(words, self.embedding, sparse=True) * self.hidden**0.5

    def attend(self, q, k, v, mask=None):
        """Of sentences x words x d."""
        heads = (x.unflatten(-1, (HEADS, -1)).transpose(1, 2) for x in (q, k, v))
        a = torch.nn.functional.scaled_dot_product_attention(*heads, attn_mask=mask)
        return a.transpose(1, 2).flatten(2)

    def nll(self, x, a, tags):
        """Of words x d: what attention reads and what it says."""
        y = x + self.output(a)
        y = y + self.feed(self.norms[1](y))
        return torch.nn.functional.cross_entropy(self.head(self.norms[2](y)), tags, reduction="sum")

    def eager(self, sentences):
        losses = []
        for words, tags in sentences:
            x = self.lookup(words) + self.positions[:len(words)]
            a = self.attend(*self.qkv(self.norms[0](x))[None].chunk(3, 2))
            losses.append(self.nll(x, a[0], tags))
        return sum(losses) / len(sentences)

    def batched(self, sentences):
        """Words of all sentences one after the other but for attention, which is padded."""
        lengths = torch.tensor([len(words) for words, _ in sentences])
        columns = torch.arange(int(lengths.max()))
        mask = (columns < lengths[:, None]).to(self.embedding.device)
        words, tags = (torch.cat(x) for x in zip(*sentences))
        x = self.lookup(words) + self.positions[:len(columns)].expand(len(sentences), -1, -1)[mask]
        padded = x.new_zeros(*mask.shape, 3 * self.hidden)
        padded[mask] = self.qkv(self.norms[0](x))
        a = self.attend(*padded.chunk(3, 2), mask=mask[:, None, None, :])
        return self.nll(x, a[mask], tags) / len(sentences)


# ---------------------------------------------------------------- gat

class Graphs:
    """models/gat.c with two rounds. Embeddings of constituents' words and of leaves' alike."""

    def __init__(self, o):
        import torch_geometric
        d, s = o.hidden, o.hidden // HEADS

        class Round(torch_geometric.nn.MessagePassing):
            def __init__(self):
                super().__init__(aggr="add", node_dim=0)
                self.types = torch.nn.Embedding(4, d)  # left and right, read from below and from above
                self.q, self.v = torch.nn.Linear(d, d), torch.nn.Linear(d, d, bias=False)
                self.a = torch.nn.Parameter(torch.empty(HEADS, s).uniform_(-0.05, 0.05))
                self.messages, self.own = torch.nn.Linear(d, d, bias=False), torch.nn.Linear(d, d)

            def forward(self, h, edges, types):
                m = self.propagate(edges, q=self.q(h).view(-1, HEADS, s), v=self.v(h).view(-1, HEADS, s), t=self.types(types).view(-1, HEADS, s))
                return h + torch.nn.functional.elu(self.messages(m.flatten(1)) + self.own(h))

            def message(self, q_i, v_j, t, index, ptr, size_i):
                said = v_j + t
                score = (torch.nn.functional.leaky_relu(q_i + said, 0.2) * self.a).sum(-1)
                return said * torch_geometric.utils.softmax(score, index, ptr, size_i)[..., None]

        trees, n_words = read_trees(os.path.join(o.data, "sst", "train.txt"))
        torch.manual_seed(1)
        self.device, self.examples = o.device, [self.graph_of(tree, n_words) for tree in trees]
        self.embedding = torch.empty(n_words + 1, d).uniform_(-0.05, 0.05).to(o.device).requires_grad_()
        self.word, self.rounds = torch.nn.Linear(d, d).to(o.device), torch.nn.ModuleList([Round(), Round()]).to(o.device)
        self.head = torch.nn.Linear(d, CLASSES).to(o.device)
        self.parameters = [p for part in (self.word, self.rounds, self.head) for p in part.parameters()]

    @staticmethod
    def graph_of(tree, no_word):
        """Labels and words of its nodes; its edges, each read at both ends; their types. On the host."""
        labels, words = ([node[k] for node in tree] for k in (0, 1))
        up = [(node[2 + side], k, side) for k, node in enumerate(tree) if node[2] >= 0 for side in (0, 1)]
        both = up + [(parent, child, 2 + side) for child, parent, side in up]
        edges = torch.tensor(both, dtype=torch.long).view(-1, 3)
        return torch.tensor(labels), torch.tensor([no_word if w < 0 else w for w in words]), edges[:, :2].t(), edges[:, 2]

    def loss(self, labels, words, edges, types):
        labels, words, edges, types = (x.to(self.device, non_blocking=True) for x in (labels, words, edges, types))
        h = self.word(torch.nn.functional.embedding(words, self.embedding, sparse=True))
        for layer in self.rounds:
            h = layer(h, edges, types)
        return torch.nn.functional.cross_entropy(self.head(h), labels, reduction="sum")

    def eager(self, graphs):
        return sum(self.loss(*graph) for graph in graphs) / len(graphs)

    def batched(self, graphs):
        labels, words, edges, types = zip(*graphs)
        first = torch.tensor([0, *(len(x) for x in labels[:-1])]).cumsum(0)
        moved = torch.cat([x + n for x, n in zip(edges, first.tolist())], 1)
        return self.loss(torch.cat(labels), torch.cat(words), moved, torch.cat(types)) / len(graphs)


NETWORKS = {"tree-lstm": Trees, "bilstm-tagger": Tagger, "bilstm-tagger --crf": FieldTagger, "transformer-tagger": Transformer, "gat": Graphs}


# ---------------------------------------------------------------- both

def check(net):
    """The two ways agree."""
    results, parameters = [], [*net.parameters, net.embedding]
    for loss_of in (net.eager, net.batched):
        loss = loss_of(net.examples[:8])
        loss.backward()
        results.append([loss.detach()] + [p.grad.to_dense() for p in parameters])
        for p in parameters:
            p.grad = None
    for a, b in zip(*results):
        if not torch.allclose(a, b, rtol=1e-3, atol=1e-4):
            sys.exit(f"peers_torch: the two ways differ, by {float((a - b).abs().max())} at most")


def step_of(net, loss_of):
    """A function that trains examples first to last, by SGD. The embedding's gradient is sparse."""
    def step(first, last):
        loss_of([net.examples[k % len(net.examples)] for k in range(first, last)]).backward()
        with torch.no_grad():
            for p in [*net.parameters, net.embedding]:
                p.add_(p.grad, alpha=-RATE)
                p.grad = None
    return step


def choose_threads(step, batch):
    """One thread or all, whichever is faster."""
    rates = {}
    for threads in sorted({1, len(os.sched_getaffinity(0))}):
        torch.set_num_threads(threads)
        if not rates:
            step(0, batch)
        rates[threads] = rate_of(step, 0, batch, 0.15)[0]
    best = max(rates, key=rates.get)
    return {"threads": best, "use": lambda: torch.set_num_threads(best)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--network", choices=NETWORKS, default="tree-lstm")
    parser.add_argument("--data", required=True, metavar="DIR")
    o = parser.parse_args()
    o.hidden = SIZE
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    net = NETWORKS[o.network](o)
    check(net)
    on_cpu = o.device == "cpu"
    serve({"eager": step_of(net, net.eager), "batched": step_of(net, net.batched)},
          choose_threads if on_cpu else lambda step, batch: {}, (lambda: None) if on_cpu else torch.cuda.synchronize)


if __name__ == "__main__":
    main()
