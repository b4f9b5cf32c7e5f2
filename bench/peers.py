#!/usr/bin/env python3
"""Workers for bench/train.py: the Tree-LSTM trained from Python with VPPS and with DyNet. And what a call from Python costs.

    python3 bench/peers.py vpps|dynet --data FOLDER        echo "16 0.5 batching" | ...
    python3 bench/peers.py calls

All layers are 256 wide; fp32, SGD, the losses of all labelled nodes over the number of sentences, trees in the order of
FOLDER/train.txt. Each line of standard input, "BATCH SECONDS WAY", is answered by a JSON object on a line. Ways of vpps: bulk (two
calls for a batch) and each (a call for every vertex), by examples/tree_lstm.py. Ways of DyNet: batching (its automatic
batching) and written (without). Reading the data is not timed; making a batch of it is.

calls: CPU time, ns, of building graphs of generated trees, batch 16, the least of 30 rounds; nothing is trained.
"""
import argparse
import json
import os
import sys
import time

SIZE, RATE = 256, 0.001
# The files of the data folder that networks have beside them, the training parts; and what makes a network's data of one.
FILES = (dict.fromkeys(("tree-lstm", "tree-gru", "rvnn", "td-rnn", "td-lstm", "gat", "gat-classifier", "bilstm-classifier"), ["sst/train.txt"])
         | dict.fromkeys(("bilstm-tagger", "bilstm-tagger --crf", "bilstm-char-tagger", "transformer-tagger"), ["wikiner/train.txt"])
         | {"child-sum-tree-lstm": ["gum/gum.train.conllu"], "lstm-lm": ["ptb_lm/ptb.train.txt"], "lattice-lstm": ["lattice_ids/train.txt"]}
         | dict.fromkeys(("lstm-nmt", "lattice-gru"), ["multi30k/train.de", "multi30k/train.en"]))
RECIPES = {"gat": "tree_graphs.py", "gat-classifier": "tree_graphs.py", "bilstm-classifier": "tree_sentences.py"}
# Networks whose batches fit few shapes when they are padded. Every batch of trees or lattices has levels of sizes of its own.
PADDED = [n for n in FILES if n.startswith(("bilstm", "transformer", "lstm", "td", "gat"))]
WARM_UP = 0.1  # seconds before each figure, in which caches fill again with what other ways displaced


def read_trees(path, limit=-1):
    """Trees, each its nodes in post-order: (label, word or -1, left, right); and the number of words."""
    words, trees = {}, []
    with open(path, encoding="utf-8") as file:
        for line in file:
            nodes, stack = [], []
            for token in line.replace("(", " ( ").replace(")", " ) ").split():
                if token == "(":
                    stack.append([])
                elif token == ")":
                    label, *rest = stack.pop()
                    leaf = isinstance(rest[0], str)
                    nodes.append((int(label), words.setdefault(rest[0], len(words)), -1, -1) if leaf else
                                 (int(label), -1, *rest))
                    if stack:
                        stack[-1].append(len(nodes) - 1)
                else:
                    stack[-1].append(token)
            if nodes:
                trees.append(nodes)
            if len(trees) == limit:
                break
    return trees, len(words)


def rate_of(step, first, batch, seconds, wait=lambda: None):
    """Sentences a second of step(first, last), which trains examples by their numbers; and the number after the last one."""
    n, begin = first, time.perf_counter()
    while n == first or time.perf_counter() - begin < seconds:
        step(n, n + batch)
        n += batch
    wait()
    return (n - first) / (time.perf_counter() - begin), n


def serve(ways, prepare=lambda step, batch: {}, wait=lambda: None):
    """Answers standard input. ways: step functions by name. prepare warms one up and returns what its answers also have."""
    at, also = {}, {}
    for line in sys.stdin:
        batch, seconds, way = line.split()
        key, step = (way, batch), ways[way]
        if key not in at:
            also[key] = prepare(step, int(batch))
            at[key] = 0
        for name, value in also[key].items():
            if callable(value):
                value()
        for duration in (WARM_UP, float(seconds)):
            rate, at[key] = rate_of(step, at[key], int(batch), duration, wait)
        shown = {name: value for name, value in also[key].items() if not callable(value)}
        print(json.dumps({"batch": int(batch), "way": way, "rate": rate, **shown}), flush=True)


class Vpps:
    """The network of examples/tree_lstm.py on a treebank; a file's, or generated trees."""

    def __init__(self, path=None):
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples"))
        import numpy as np
        import vpps
        from tree_lstm import TreeLstm
        from vpps.data import Treebank

        bank = Treebank().read(path) if path else Treebank().generate_listops(400, seed=1)
        self.trees = bank.arrays().with_words(np.arange(len(bank.vocab)))
        t, self.take = self.trees, lambda first, last: self.trees.take(np.arange(first, last) % len(self.trees))
        self.columns = [x.tolist() for x in (t.first, t.label, t.left, t.right, t.word)]
        self.vpps, self.model = vpps, vpps.Model(seed=1)
        self.net = TreeLstm(self.model, len(bank.vocab), bank.classes, SIZE, SIZE)
        self.graph = self.model.graph()

    def vertices(self, begin, end):
        """A call for each of these trees; the labelled ones."""
        first, label, left, right, word = self.columns
        at, labelled = {}, []
        for i in range(begin, end):
            tree = i % len(self.trees)
            for k in range(first[tree], first[tree + 1]):
                if left[k] < 0:
                    at[k] = self.net.layer.leaf(indices=(word[k], max(label[k], 0)))
                else:
                    at[k] = self.net.layer.inner(at[left[k]], at[right[k]], indices=(max(label[k], 0),))
                if label[k] >= 0:
                    labelled.append(at[k])
        return labelled


def vpps_ways(folder):
    v = Vpps(os.path.join(folder, "train.txt"))
    trainer = v.vpps.Trainer(v.model, lr=RATE)

    def bulk(first, last):
        with v.graph:
            trainer.step(v.net.loss(v.take(first, last)))

    def each(first, last):
        with v.graph:
            trainer.step(v.vpps.sum([x.pushed(1) for x in v.vertices(first, last)]) / (last - first))

    serve({"bulk": bulk, "each": each}, wait=trainer.loss)


def print_calls(_):
    v = Vpps()
    batches = [(k, k + 16, v.take(k, k + 16)) for k in range(0, len(v.trees), 16)]

    def of_trees(add):
        for first, last, batch in batches:
            with v.graph:
                add(first, last, batch)

    def of_nodes():
        with v.graph:
            x = v.vpps.input([0.0] * 4)
            for _ in range(10000):
                v.vpps.tanh(x)

    for what, n, call in (("vertex, each by a call", len(v.trees.label), lambda: of_trees(lambda first, last, _: v.vertices(first, last))),
                          ("vertex, two calls for 16 trees", len(v.trees.label), lambda: of_trees(lambda _, __, b: v.net.add(b))),
                          ("node, each by a call", 10000, of_nodes)):
        times = []
        for _ in range(30):
            begin = time.process_time_ns()
            call()
            times.append(time.process_time_ns() - begin)
        print(f"a {what}: {min(times) / n:.0f} ns")


def dynet_ways(folder):
    import dynet_config

    dynet_config.set(mem=1024, random_seed=1)
    import dynet as dy

    trees, n_words = read_trees(os.path.join(folder, "train.txt"))
    collection = dy.ParameterCollection()
    embedding = collection.add_lookup_parameters((n_words, SIZE), init=dy.UniformInitializer(0.05))
    W = {g: collection.add_parameters((SIZE, SIZE)) for g in "iou"}
    U = {g + k: collection.add_parameters((SIZE, SIZE)) for g in ("i", "o", "fl", "fr", "u") for k in "lr"}
    b = {g: collection.add_parameters(SIZE, init=dy.ConstInitializer(g == "f")) for g in "iofu"}
    W_s, b_s = collection.add_parameters((5, SIZE)), collection.add_parameters(5, init=dy.ConstInitializer(0))
    trainer = dy.SimpleSGDTrainer(collection, learning_rate=RATE)
    trainer.set_clip_threshold(0)

    def step(first, last, batching):
        dy.renew_cg(autobatching=batching)
        losses = []
        for i in range(first, last):
            at = []
            for label, word, left, right in trees[i % len(trees)]:
                if left < 0:
                    x = dy.lookup(embedding, word)
                    gate = [dy.logistic(dy.affine_transform([b[g], W[g], x])) for g in "io"]
                    c = dy.cmult(gate[0], dy.tanh(dy.affine_transform([b["u"], W["u"], x])))
                else:
                    (h_l, c_l), (h_r, c_r) = at[left], at[right]
                    total = {g: dy.affine_transform([b[g[0]], U[g + "l"], h_l, U[g + "r"], h_r])
                             for g in ("i", "o", "fl", "fr", "u")}
                    gate = [dy.logistic(total[g]) for g in ("i", "o", "fl", "fr")]
                    c = dy.esum([dy.cmult(gate[0], dy.tanh(total["u"])), dy.cmult(gate[2], c_l),
                                 dy.cmult(gate[3], c_r)])
                h = dy.cmult(gate[1], dy.tanh(c))
                at.append((h, c))
                losses.append(dy.pickneglogsoftmax(dy.affine_transform([b_s, W_s, h]), label))
        loss = dy.esum(losses) / (last - first)
        loss.forward()
        loss.backward()
        trainer.update()

    serve({"batching": lambda first, last: step(first, last, True),
           "written": lambda first, last: step(first, last, False)})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=["vpps", "dynet", "calls"])
    parser.add_argument("--data", default=".", metavar="FOLDER")
    o = parser.parse_args()
    {"vpps": vpps_ways, "dynet": dynet_ways, "calls": print_calls}[o.what](o.data)
