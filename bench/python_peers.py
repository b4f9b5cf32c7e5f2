#!/usr/bin/env python3
"""Training from Python beside training from C: the Tree-LSTM on sst, sentences a second by batch size.

    python3 bench/python_peers.py [--batches 1,16,128] [--seconds S] [--rounds N] [--data FOLDER]
                                  [--vpps PYTHON] [--dynet PYTHON] [--torch PYTHON] [--json FILE]

All layers 256 wide, fp32, SGD, the losses of all labelled nodes over the number of sentences, trees in the order of the file. Every way
is measured in every round, one after the other, S seconds for each batch size, so that a change of the machine's speed hits all alike.
Figures are medians of the rounds; ratios are medians of the rounds' ratios.

    C           `vpps train tree-lstm` ($VPPS, default build/vpps)
    bulk        the Python package: examples/tree_lstm.py, each batch by two calls
    each        the same, a call for every vertex
    DyNet       a call for every operation, as its users write; with its automatic batching, and without
    PyTorch     models_torch.py: one tree after the other (eager), and batched by hand; one thread or all, whichever is faster

--vpps, --dynet and --torch name a Python that has the package (PYTHONPATH may help); a way that is missing is left out, and told.
Reading the data is not timed; making a batch of it is.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict

HERE = os.path.dirname(os.path.abspath(__file__))
SIZE, RATE = 256, 0.001
WAYS = ("C", "bulk", "each", "DyNet batching", "DyNet", "PyTorch batched", "PyTorch eager")


def tell(text):
    print(text, file=sys.stderr, flush=True)


def measure(step, batch, seconds):
    """Sentences a second of step(first, last), which takes trees by their number; after some to warm up."""
    n, begin = 0, time.perf_counter()
    while n < 2 * batch or time.perf_counter() - begin < seconds / 5:
        step(n, n + batch)
        n += batch
    n, begin = 0, time.perf_counter()
    while n == 0 or time.perf_counter() - begin < seconds:
        step(n, n + batch)
        n += batch
    return n / (time.perf_counter() - begin)


# ---------------------------------------------------------------- workers, each in a process of its own

def work_vpps(o):
    sys.path.insert(0, os.path.join(HERE, "..", "examples"))
    import numpy as np
    import vpps
    from tree_lstm import TreeLstm
    from vpps.data import Treebank

    bank = Treebank().read(o.file)
    trees = bank.arrays()
    trees = trees.with_words(np.arange(len(bank.vocab)))
    columns = [x.tolist() for x in (trees.first, trees.label, trees.left, trees.right, trees.word)]
    model = vpps.Model(seed=1)
    net = TreeLstm(model, len(bank.vocab), bank.classes, SIZE, SIZE)
    trainer = vpps.Trainer(model, lr=RATE)
    graph = model.graph()

    def bulk(first, last):
        with graph:
            trainer.step(net.loss(graph, trees.take(np.arange(first, last) % len(trees))))

    def each(begin, end):
        first, label, left, right, word = columns
        with graph:
            losses, at = [], {}
            for i in range(begin, end):
                tree = i % len(trees)
                for k in range(first[tree], first[tree + 1]):
                    if left[k] < 0:
                        at[k] = net.leaf(indices=(word[k], max(label[k], 0)))
                    else:
                        at[k] = net.inner(at[left[k]], at[right[k]], indices=(max(label[k], 0),))
                    if label[k] >= 0:
                        losses.append(at[k].pushed(1))
            trainer.step(vpps.sum(losses) / (end - begin))

    for batch in o.batches:
        for name, step in (("bulk", bulk), ("each", each)):
            rate = measure(step, batch, o.seconds)
            trainer.loss()
            yield name, batch, rate


def read_trees(path):
    """Of each tree, in post-order: (label, word or None, left, right)."""
    words, trees = {}, []
    with open(path, encoding="utf-8") as file:
        for line in file:
            tree, stack = [], []
            for token in line.replace("(", " ( ").replace(")", " ) ").split():
                if token != ")":
                    stack.append(token)
                    continue
                part = []
                while stack[-1] != "(":
                    part.append(stack.pop())
                stack.pop()
                label, *rest = reversed(part)
                if isinstance(rest[0], str):
                    tree.append((int(label), words.setdefault(rest[0], len(words)), 0, 0))
                else:
                    tree.append((int(label), None, *rest))
                stack.append(len(tree) - 1)
            trees.append(tree)
    return trees, len(words)


def work_dynet(o):
    import dynet_config

    batching = o.worker == "dynet-batching"
    dynet_config.set(mem=1024, autobatch=int(batching), random_seed=1)
    import dynet as dy

    trees, n_words = read_trees(o.file)
    collection = dy.ParameterCollection()
    embedding = collection.add_lookup_parameters((n_words, SIZE), init=dy.UniformInitializer(0.05))
    W = {g: collection.add_parameters((SIZE, SIZE)) for g in "iou"}
    U = {g + k: collection.add_parameters((SIZE, SIZE)) for g in ("i", "o", "fl", "fr", "u") for k in "lr"}
    b = {g: collection.add_parameters(SIZE, init=dy.ConstInitializer(g == "f")) for g in "iofu"}
    W_s, b_s = collection.add_parameters((5, SIZE)), collection.add_parameters(5, init=dy.ConstInitializer(0))
    trainer = dy.SimpleSGDTrainer(collection, learning_rate=RATE)
    trainer.set_clip_threshold(0)

    def step(first, last):
        dy.renew_cg()
        losses = []
        for i in range(first, last):
            tree, at = trees[i % len(trees)], []
            for label, word, left, right in tree:
                if word is not None:
                    x = dy.lookup(embedding, word)
                    gate = [dy.logistic(dy.affine_transform([b[g], W[g], x])) for g in "io"]
                    c = dy.cmult(gate[0], dy.tanh(dy.affine_transform([b["u"], W["u"], x])))
                else:
                    (h_l, c_l), (h_r, c_r) = at[left], at[right]
                    total = {g: dy.affine_transform([b[g[0]], U[g + "l"], h_l, U[g + "r"], h_r]) for g in ("i", "o", "fl", "fr", "u")}
                    gate = [dy.logistic(total[g]) for g in ("i", "o", "fl", "fr")]
                    c = dy.esum([dy.cmult(gate[0], dy.tanh(total["u"])), dy.cmult(gate[2], c_l), dy.cmult(gate[3], c_r)])
                h = dy.cmult(gate[1], dy.tanh(c))
                at.append((h, c))
                losses.append(dy.pickneglogsoftmax(dy.affine_transform([b_s, W_s, h]), label))
        loss = dy.esum(losses) / (last - first)
        loss.forward()
        loss.backward()
        trainer.update()

    for batch in o.batches:
        yield "DyNet batching" if batching else "DyNet", batch, measure(step, batch, o.seconds)


# ---------------------------------------------------------------- the parts of a round

def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])
    return done.stdout


def rate_of_c(o, batch):
    command = [o.command, "train", "tree-lstm", "--data", os.path.dirname(o.file), "--hidden", str(SIZE), "--embed", str(SIZE),
               "--optimizer", "sgd", "--lr", str(RATE), "--seed", "1", "--batch", str(batch), "--epochs", "100000", "--eval-every",
               "0", "--json", "--quiet", "--max-batches"]
    n = max(2, 32 // batch)
    while True:
        result = json.loads(run([*command, str(n)]).splitlines()[-1])
        if result["seconds"] > o.seconds * 0.8:
            return result["sentences_per_s"]
        n = max(n + 1, round(n * min(8, 1.1 * o.seconds / max(result["seconds"], 1e-3))))


def measure_c(o):
    for batch in o.batches:
        yield "C", batch, rate_of_c(o, batch)


def measure_worker(o, python, worker):
    lines = run([python, __file__, "--worker", worker, "--data", os.path.dirname(o.file), "--batches",
                 ",".join(map(str, o.batches)), "--seconds", str(o.seconds)])
    for line in lines.splitlines():
        if line.startswith("{"):
            found = json.loads(line)
            yield found["way"], found["batch"], found["rate"]


def measure_torch(o):
    lines = run([o.torch, os.path.join(HERE, "models_torch.py"), "--network", "tree-lstm", "--data", o.file, "--batches",
                 ",".join(map(str, o.batches)), "--seconds", str(o.seconds)])
    best = {}
    for found in map(json.loads, lines.splitlines()):
        key = f"PyTorch {found['mode']}", found["batch"]
        best[key] = max(best.get(key, 0), found["sentences_per_s"])
    for (way, batch), rate in best.items():
        yield way, batch, rate


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--batches", default="1,16,128")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", default=os.path.join(os.environ.get("VPPS_DATA", "../shared/data"), "sst"), metavar="FOLDER")
    parser.add_argument("--vpps", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--dynet", metavar="PYTHON")
    parser.add_argument("--torch", metavar="PYTHON")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    o = parser.parse_args()
    o.batches = [int(b) for b in o.batches.split(",")]
    o.file = os.path.join(o.data, "train.txt")
    o.command = os.environ.get("VPPS", os.path.join(os.environ.get("BUILD", "build"), "vpps"))
    if o.worker:
        for way, batch, rate in (work_vpps if o.worker == "vpps" else work_dynet)(o):
            print(json.dumps({"way": way, "batch": batch, "rate": rate}), flush=True)
        return
    if not os.path.exists(o.file):
        sys.exit(f"python_peers: {o.file} is missing")
    parts = {"C": lambda: measure_c(o), "vpps": lambda: measure_worker(o, o.vpps, "vpps")}
    if o.dynet:
        parts["DyNet batching"] = lambda: measure_worker(o, o.dynet, "dynet-batching")
        parts["DyNet"] = lambda: measure_worker(o, o.dynet, "dynet")
    if o.torch:
        parts["PyTorch"] = lambda: measure_torch(o)
    rates = defaultdict(list)
    for n in range(o.rounds):
        for name, part in list(parts.items()):
            try:
                for way, batch, rate in part():
                    rates[way, batch].append(rate)
                    tell(f"round {n + 1}/{o.rounds}  {way}, batch {batch}: {rate:.1f} sentences/s")
            except (RuntimeError, OSError) as error:
                tell(f"{name} is left out: {error}")
                del parts[name]
    rates = {k: v for k, v in rates.items() if len(v) == o.rounds}
    print("Sentences a second, median (lowest - highest) of the rounds; and how many times as fast C is\n")
    print("| | " + " | ".join(f"batch {b}" for b in o.batches) + " |")
    print("| --- |" + " ---: |" * len(o.batches))
    for way in WAYS:
        row = []
        for batch in o.batches:
            mine, c = rates.get((way, batch)), rates.get(("C", batch))
            if not mine:
                row.append("-")
                continue
            ratio = f", {statistics.median(a / b for a, b in zip(c, mine)):.2f}" if c and way != "C" else ""
            row.append(f"{statistics.median(mine):,.0f} ({min(mine):,.0f} - {max(mine):,.0f}){ratio}")
        if any(x != "-" for x in row):
            print(f"| {way} | " + " | ".join(row) + " |")
    if o.json:
        with open(o.json, "w", encoding="utf-8") as file:
            json.dump([{"way": w, "batch": b, "rates": r} for (w, b), r in rates.items()], file, indent=1)


if __name__ == "__main__":
    main()
