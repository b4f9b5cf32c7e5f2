#!/usr/bin/env python3
"""A worker for bench/train.py: networks trained with PyTorch, on the CPU or on a GPU.

    python3 bench/peers_torch.py [--device cpu|cuda] [--network NAME] --data DIR [--vpps COMMAND] [--compile] [-- OPTION...]

    echo "16 0.5 batched" | ...

DIR has the files that FILES names; trees are also read as graphs (recipes/tree_graphs.py) and as sentences (recipes/tree_sentences.py).
OPTION: those of `vpps train`, of which --hidden, --embed and --min-count say the same here. fp32 (TF32 off), SGD, the loss of a batch
over its number of sentences; a word that a batch does not use costs nothing. nn.LSTM has a second bias that the networks of VPPS do not
have: it is zero, and not trained. Lines are answered as by peers.py, in these ways:

    eager     one example after the other: what a user writes first. A vertex of a tree is an operation for each of its steps; a
              sentence is one call of nn.LSTM, or one transformer, and each rare word one more; a graph is a call of each round; a
              level of a time-delay network is an operation for each of its steps
    batched   what a user writes by hand when that is too slow. Trees: vertices of all trees of a batch by their height, each height
              at once, weights of a vertex's gates joined into one matrix; states that a vertex above still needs are carried
              along. Sentences: packed into one call of nn.LSTM each way, or padded where it reads one way alone, which is faster;
              the words to spell of all sentences packed into one more call; what is said of words is of real words alone. For
              attention, a transformer's or a translator's, words are padded. Graphs: as one graph of all their nodes. Dependency trees: as
              trees, with the products of all words at once and sums over dependents by index_add. Rounds are
              torch_geometric's message passing. Time-delay networks: pairs of neighbours of all sentences, each level at once. Lattices:
              the same node of all lattices at once, with the products of all characters and words before; a word's step is taken
              with all that begin at a node
    compiled  with --compile, and instead of the others: batched, with the network's functions compiled by torch.compile for any sizes
              (dynamic=True), but for nn.LSTM and what loops over words. Compiling is not timed; compile_s of an answer is how long it,
              the check and 32 examples took

Before anything is timed, all ways must give the same loss and gradients. With --vpps, the command, the network must also be the one that it
trains: from the same parameters, two batches of the first examples have the same losses. On the CPU each figure is by one thread or by
all, whichever is faster. Reading the data is not timed; making a batch of it, and moving that to the device, is.
"""
import argparse
import copy
import importlib
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time

import torch
from peers import FILES, RATE, RECIPES, SIZE, rate_of, serve
from twins.parts import Saved

NETWORKS = {"tree-lstm": "trees.TreeLstm", "tree-gru": "trees.TreeGru", "rvnn": "trees.RvNN", "td-rnn": "trees.TdRnn", "td-lstm": "trees.TdLstm",
            "child-sum-tree-lstm": "trees.ChildSum", "gat": "graphs.Graphs", "gat-classifier": "graphs.GraphClassifier",
            "bilstm-classifier": "taggers.Classifier", "bilstm-tagger": "taggers.Tagger",
            "bilstm-tagger --crf": "taggers.FieldTagger", "bilstm-char-tagger": "taggers.CharacterTagger",
            "transformer-tagger": "taggers.Transformer", "lstm-lm": "text.LanguageModel", "lstm-nmt": "text.Translator",
            "lattice-lstm": "lattices.LatticeLstm", "lattice-gru": "lattices.LatticeGru"}


def trained(net):
    return [p for p in net.parameters() if p.requires_grad]


def make(o):
    module, name = NETWORKS[o.network].split(".")
    torch.manual_seed(1)
    return getattr(importlib.import_module(f"twins.{module}"), name)(o).to(o.device)


def compiled(net):
    """The network, with the same parameters, whose functions are compiled."""
    made = copy.copy(net)
    for name in net.COMPILED:
        setattr(made, name, torch.compile(getattr(made, name), dynamic=True))
    return made


def check(net, loss_of_way):
    """The way agrees with the eager one."""
    results = []
    for loss_of in (net.eager, loss_of_way):
        loss = loss_of(net.examples[:8])
        loss.backward()
        results.append([loss.detach()] + [p.grad.to_dense() for p in trained(net)])
        net.zero_grad()
    for a, b in zip(*results):
        if not torch.allclose(a, b, rtol=1e-3, atol=1e-4):
            sys.exit(f"peers_torch: two ways differ, by {float((a - b).abs().max())} at most")


def step_of(net, loss_of, rate=RATE):
    """A function that trains examples first to last, by SGD, and returns their loss. Tables' gradients are sparse."""
    parameters = trained(net)

    def step(first, last):
        loss = loss_of([net.examples[k % len(net.examples)] for k in range(first, last)])
        loss.backward()
        with torch.no_grad():
            for p in parameters:
                if p.grad is not None:
                    p.add_(p.grad, alpha=-rate)
                p.grad = None
        return loss.detach()
    return step


def losses_of_vpps(o, data, options):
    """Those of two batches by the command, and the parameters that they begin with."""
    def train(*more):
        command = [o.vpps, "train", *o.network.split(), *o.options, "--data", data, "--quiet", "--no-tuning", *options, *more]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sys.exit(f"peers_torch: {done.stderr}")

    with tempfile.TemporaryDirectory() as folder:
        new, larger, log = (os.path.join(folder, name) for name in ("new", "larger", "log"))
        train("--epochs", "0", "--save", new)
        saved = Saved(new)
        saved.enlarge(larger)
        train("--epochs", "2", "--init", larger, "--log", log)
        with open(log, encoding="utf-8") as file:
            return [line["loss"] for line in map(json.loads, file) if line["event"] == "batch"], saved


def check_same(o):
    """Of the first examples, all in one batch, in double: PyTorch's sums of floats are off by 1e-5 on some processors."""
    torch.set_default_dtype(torch.float64)
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, os.path.dirname(FILES[o.network][0]))
        os.mkdir(data)
        for name in FILES[o.network]:
            with open(os.path.join(o.data, name), encoding="utf-8") as whole, open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                end = "\n\n" if name.endswith(".conllu") or name.startswith("lattice_ids") else "\n"
                texts = whole.read().rstrip("\n").split(end)[:32]
                if name.startswith("lattice_ids"):  # the file begins with their number
                    texts[0] = re.sub(r"\d+", str(len(texts)), texts[0], count=1)
                file.writelines(text + end for text in texts)
        if o.network in RECIPES:
            trees, data = os.path.join(folder, name), os.path.join(folder, "made.txt")
            with open(data, "w", encoding="utf-8") as file:
                subprocess.run([sys.executable, os.path.join(os.path.dirname(__file__), "recipes", RECIPES[o.network]), trees], stdout=file, check=True)
        net = make(argparse.Namespace(**{**vars(o), "data": folder, "device": "cpu"}))
        n, rate = len(net.examples), 0.01
        theirs, saved = losses_of_vpps(o, data, ["--batch", str(n), "--optimizer", "sgd", "--lr", str(rate), "--clip", "0"])
    net.take(saved)
    step = step_of(net, net.batched, rate)
    mine = [float(step(0, n)) for _ in theirs]
    if saved.tensors or not all(math.isclose(a, b, rel_tol=3e-6) for a, b in zip(mine, theirs)):
        sys.exit(f"peers_torch: not the network of VPPS: losses {mine}, there {theirs}; without {list(saved.tensors)}")
    torch.set_default_dtype(torch.float32)


def choose_threads(step, batch):
    """One thread or all, whichever is faster: the best of three trials each, in turn, after a step that is not timed."""
    rates = {1: 0, len(os.sched_getaffinity(0)): 0}
    for trial in range(4):
        for threads in rates:
            torch.set_num_threads(threads)
            rate = rate_of(step, 0, batch, 0.15 if trial else 0)[0]
            rates[threads] = max(rates[threads], rate if trial else 0)
    best = max(rates, key=rates.get)
    return {"threads": best, "use": lambda: torch.set_num_threads(best)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--network", choices=NETWORKS, default="tree-lstm")
    parser.add_argument("--data", required=True, metavar="DIR")
    parser.add_argument("--vpps", metavar="COMMAND", help="compare with the network that it trains")
    parser.add_argument("--compile", action="store_true", help="the compiled way instead of the others")
    parser.add_argument("options", nargs="*", metavar="OPTION", help="those of `vpps train`, behind --")
    o = parser.parse_args()
    shape = argparse.ArgumentParser()
    shape.add_argument("--hidden", type=int, default=SIZE)
    shape.add_argument("--embed", type=int)
    shape.add_argument("--min-count", type=int, default=5 if o.network == "bilstm-char-tagger" else 2)
    shape.parse_known_args(o.options, o)
    o.embed = o.embed or o.hidden
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    if o.vpps:
        check_same(o)
    net = make(o)
    ways = {"compiled": compiled(net).batched} if o.compile else {"eager": net.eager, "batched": net.batched}
    begin = time.monotonic()
    check(net, [*ways.values()][-1])
    for threads in {1, len(os.sched_getaffinity(0))} if o.compile else ():  # sizes of 1 and other numbers of threads compile anew
        torch.set_num_threads(threads)
        for k in range(32):
            ways["compiled"](net.examples[k % len(net.examples):][:1]).backward()
        net.zero_grad()
    told = {"compile_s": round(time.monotonic() - begin)} if o.compile else {}
    on_cpu = o.device == "cpu"
    serve({way: step_of(net, loss_of) for way, loss_of in ways.items()},
          lambda step, batch: {**(choose_threads(step, batch) if on_cpu else {}), **told}, (lambda: None) if on_cpu else torch.cuda.synchronize)


if __name__ == "__main__":
    main()
