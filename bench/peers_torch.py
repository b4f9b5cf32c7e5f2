#!/usr/bin/env python3
"""A worker for bench/train.py: networks trained with PyTorch, on the CPU or on a GPU.

    python3 bench/peers_torch.py [--device cpu|cuda] [--network NAME] --data DIR [--vpps COMMAND] [--ways A,B] [-- OPTION...]

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
    compiled  batched, with the network's functions compiled by torch.compile for any sizes (dynamic=True), but for nn.LSTM and what loops
              over words. Compiling is not timed; compile_s of an answer is how long it, the check and 32 examples took
    graphs    batches are padded to buckets of few shapes (twins/parts.py): sequences in length, words and nodes in number. Forward,
              backward and update of a bucket are captured as one CUDA graph, which is replayed on the bucket's buffers. Capturing is
              not timed: only the first 2,048 whole batches are trained. On the CPU the function that would be captured is called
    reduced   compiled with mode="reduce-overhead", by the same buckets: torch.compile captures each function as a CUDA graph for
              each bucket

graphs and reduced are for the networks of peers.PADDED. Each batch of trees or lattices has levels of other sizes: a graph would be for that
one batch, and levels padded to the widest and highest tree's would be empty for the most part. No GPU has run these two ways yet.

Before anything is timed, all ways must give the same loss and gradients. With --vpps, the command, the network must also be the one that it
trains: from the same parameters, two batches of the first examples have the same losses. On the CPU each figure is by one thread or by
all, whichever is faster. Reading the data is not timed; making a batch of it, and moving that to the device, is.
"""
import argparse
import copy
import functools
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
from peers import FILES, PADDED, RATE, RECIPES, SIZE, rate_of, serve
from twins.buckets import Buckets, Graphs, dense, train, trained
from twins.parts import Saved

NETWORKS = {"tree-lstm": "trees.TreeLstm", "tree-gru": "trees.TreeGru", "rvnn": "trees.RvNN", "td-rnn": "trees.TdRnn", "td-lstm": "trees.TdLstm",
            "child-sum-tree-lstm": "trees.ChildSum", "gat": "graphs.Graphs", "gat-classifier": "graphs.GraphClassifier",
            "bilstm-classifier": "taggers.Classifier", "bilstm-tagger": "taggers.Tagger",
            "bilstm-tagger --crf": "taggers.FieldTagger", "bilstm-char-tagger": "taggers.CharacterTagger",
            "transformer-tagger": "taggers.Transformer", "lstm-lm": "text.LanguageModel", "lstm-nmt": "text.Translator",
            "lattice-lstm": "lattices.LatticeLstm", "lattice-gru": "lattices.LatticeGru"}


def make(o):
    module, name = NETWORKS[o.network].split(".")
    torch.manual_seed(1)
    return getattr(importlib.import_module(f"twins.{module}"), name)(o).to(o.device)


def compiled(net, mode=None):
    """The network, with the same parameters, whose functions are compiled."""
    made = copy.copy(net)
    torch._dynamo.config.recompile_limit = 64  # for views at the beginning of a tensor and elsewhere, of one row and of more, of each unit
    for name in net.COMPILED:
        setattr(made, name, torch.compile(getattr(made, name), dynamic=True, mode=mode))
    return made


def gradients(net, loss):
    """The loss and all gradients."""
    loss.backward()
    results = [loss.detach(), *(p.grad.to_dense() for p in trained(net))]
    net.zero_grad()
    return results


def descend(net, rate, loss):
    """A step of SGD. Returns the loss. Tables' gradients are sparse."""
    loss.backward()
    with torch.no_grad():
        for p in trained(net):
            if p.grad is not None:
                p.add_(p.grad, alpha=-rate)
            p.grad = None
    return loss.detach()


def step_of(net, loss_of, rate=RATE):
    """A function that trains examples first to last and returns their loss."""
    return lambda first, last: descend(net, rate, loss_of([net.examples[k % len(net.examples)] for k in range(first, last)]))


def ways_of(net, name):
    """The way's step function, or its buckets, and a function that returns the loss and the gradients of the first examples."""
    few, made = net.examples[:8], net
    if name == "graphs":
        results = Graphs(net, few, functools.partial(train, net, 0))
        return Graphs(net, net.examples, functools.partial(train, net, RATE)), lambda: dense(net, *results(0, len(few)))
    if name in ("compiled", "reduced"):
        made = compiled(net, "reduce-overhead" if name == "reduced" else None)
    if name == "reduced":
        def loss_of(buffers):
            torch.compiler.cudagraph_mark_step_begin()
            return made.padded(*buffers)

        results = Buckets(net, few, lambda buffers: gradients(net, loss_of(buffers)))
        return Buckets(net, net.examples, lambda buffers: descend(net, RATE, loss_of(buffers))), lambda: results(0, len(few))
    loss_of = made.eager if name == "eager" else made.batched
    return step_of(net, loss_of), lambda: gradients(net, loss_of(few))


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
        lexicon = []
        if o.network == "lattice-lstm":
            ids, data = data, os.path.join(folder, "made")
            subprocess.run([sys.executable, os.path.join(os.path.dirname(__file__), "recipes/lattice_text.py"), ids, data, "train.txt"], check=True)
            lexicon = ["--lexicon", os.path.join(data, "lexicon")]
        net = make(argparse.Namespace(**{**vars(o), "data": folder, "device": "cpu"}))
        n, rate = len(net.examples), 0.01
        theirs, saved = losses_of_vpps(o, data, [*lexicon, "--batch", str(n), "--optimizer", "sgd", "--lr", str(rate), "--clip", "0"])
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
    parser.add_argument("--ways", default="eager,batched", metavar="A,B", help="those that are asked for (eager,batched)")
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
    begin, right, ways, padded = time.monotonic(), gradients(net, net.eager(net.examples[:8])), {}, {}
    for way in o.ways.split(","):
        if way in ("graphs", "reduced") and o.network not in PADDED:
            sys.exit(f"peers_torch: {way}: batches of {o.network} do not fit few shapes")
        ways[way], results = ways_of(net, way)
        for a, b in zip(right, results()):
            if not torch.allclose(a, b, rtol=1e-3, atol=1e-4):
                sys.exit(f"peers_torch: {way} differs from the way as written, by {float((a - b).abs().max())} at most")
        if isinstance(ways[way], Buckets):
            padded[ways[way].step], ways[way] = ways[way], ways[way].step
    for threads in {1, len(os.sched_getaffinity(0))} if "compiled" in ways else ():  # sizes of 1 and other numbers of threads compile anew
        torch.set_num_threads(threads)
        for k in range(32):
            ways["compiled"](k, k + 1)
    told = {"compile_s": round(time.monotonic() - begin)} if "compiled" in ways or "reduced" in ways else {}
    on_cpu = o.device == "cpu"

    def prepare(step, batch):
        if step in padded:
            padded[step].prepare(batch)
        return {**(choose_threads(step, batch) if on_cpu else {}), **told}

    serve(ways, prepare, (lambda: None) if on_cpu else torch.cuda.synchronize)


if __name__ == "__main__":
    main()
