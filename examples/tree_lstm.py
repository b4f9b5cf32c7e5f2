#!/usr/bin/env python3
"""A binary Tree-LSTM (Tai, Socher and Manning 2015, section 3.2) that labels every node of a tree.

    python3 tree_lstm.py [--train FILE --dev FILE] [--epochs N] [--log-dir FOLDER] [--save FILE]

Files are in the brackets of the Stanford Sentiment Treebank. Without files it learns ListOps: 400 trees of nested MAX, MIN, MED and
SM over digits, whose nodes are labelled with their values; after 12 epochs, some seconds, it labels 0.88 of the nodes of 200 other
trees as they are.

Each batch is built by two calls, one for all leaves and one for all inner nodes.
"""

from __future__ import annotations

import argparse

import numpy as np

import vpps
from vpps.data import Treebank, Trees


class TreeLstm:
    """Parameters have the names, the order and the initial values of `vpps train tree-lstm`, whose checkpoints fit."""

    def __init__(self, model: vpps.Model, words: int, classes: int, embed: int, hidden: int) -> None:
        d = hidden
        E = model.add_lookup("embedding", words, embed, init=vpps.uniform(-0.05, 0.05))
        W = {g: model.add_matrix(f"W_{g}", d, embed) for g in "iou"}
        U = {k: model.add_matrix(f"U_{k}", d, d)
             for k in ("i_l", "i_r", "o_l", "o_r", "f_ll", "f_lr", "f_rl", "f_rr", "u_l", "u_r")}
        W_s = model.add_matrix("W_s", classes, d)
        b = {g: model.add_vector(f"b_{g}", d, init=1.0 if g == "f" else None) for g in "iofu"}
        b_s = model.add_vector("b_s", classes)

        def classify(c: vpps.Recorder, h: vpps.Node) -> None:
            scores = W_s @ h + b_s
            c.push(scores, vpps.cross_entropy(scores, c.pull_index()))

        @model.cell
        def leaf(c: vpps.Recorder) -> None:
            x = E[c.pull_index()]
            i, o = vpps.sigmoid(W["i"] @ x + b["i"]), vpps.sigmoid(W["o"] @ x + b["o"])
            u = vpps.tanh(W["u"] @ x + b["u"])
            state = i * u
            h = o * vpps.tanh(state)
            c.scatter(h, state)
            classify(c, h)

        @model.cell
        def inner(c: vpps.Recorder) -> None:
            h_l, c_l = c.gather(0, 0, d), c.gather(0, 1, d)
            h_r, c_r = c.gather(1, 0, d), c.gather(1, 1, d)
            i = vpps.sigmoid(U["i_l"] @ h_l + U["i_r"] @ h_r + b["i"])
            o = vpps.sigmoid(U["o_l"] @ h_l + U["o_r"] @ h_r + b["o"])
            f_l = vpps.sigmoid(U["f_ll"] @ h_l + U["f_lr"] @ h_r + b["f"])
            f_r = vpps.sigmoid(U["f_rl"] @ h_l + U["f_rr"] @ h_r + b["f"])
            u = vpps.tanh(U["u_l"] @ h_l + U["u_r"] @ h_r + b["u"])
            state = vpps.sum([i * u, f_l * c_l, f_r * c_r])
            h = o * vpps.tanh(state)
            c.scatter(h, state)
            classify(c, h)

        self.leaf, self.inner = leaf, inner

    def add(self, g: vpps.Graph, trees: Trees) -> vpps.Vertices:
        """A vertex for each node of the trees, built by two calls."""
        label = np.maximum(trees.label, 0)  # where there is none, the loss is not used
        is_leaf = trees.left < 0
        inner = np.flatnonzero(~is_leaf)
        at = np.empty(len(label), np.uint32)
        at[is_leaf] = g.apply(self.leaf, indices=np.stack([trees.word, label], 1)[is_leaf]).ids
        at[inner] = g.next_vertex + np.arange(len(inner), dtype=np.uint32)
        children = np.stack([at[trees.left[inner]], at[trees.right[inner]]], 1)
        g.apply(self.inner, children=children, indices=label[inner])
        return g.vertices(at)

    def loss(self, g: vpps.Graph, trees: Trees) -> vpps.Node:
        """The losses of all nodes that have a label, over the number of trees."""
        labelled = self.add(g, trees)[trees.label >= 0]
        return vpps.sum(labelled.pushed(1)) / len(trees)

    def accuracy(self, g: vpps.Graph, trainer: vpps.Trainer, trees: Trees) -> float:
        """At the nodes that have a label."""
        right = n = 0
        for k in range(0, len(trees), 100):
            some = trees.take(range(k, min(k + 100, len(trees))))
            with g:
                labelled = some.label >= 0
                scores = trainer.forward(self.add(g, some)[labelled].pushed(0))
            right += int((scores.argmax(1) == some.label[labelled]).sum())
            n += int(labelled.sum())
        return right / n


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else None)
    parser.add_argument("--train", metavar="FILE")
    parser.add_argument("--dev", metavar="FILE")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=96)
    parser.add_argument("--examples", type=int, default=400, help="generated trees")
    parser.add_argument("--log-dir", metavar="FOLDER", help="metrics.csv, and TensorBoard's events, of every batch")
    parser.add_argument("--save", metavar="FILE", help="a checkpoint, for evaluate_in_torch.py")
    o = parser.parse_args(arguments)

    bank = Treebank().read(o.train) if o.train else Treebank().generate_listops(o.examples, seed=1, max_leaves=40)
    train = bank.arrays()
    words = bank.vocab.cut()
    if o.dev:
        dev_bank = Treebank().read(o.dev)
    else:
        dev_bank = Treebank().generate_listops(200, seed=2, max_leaves=40)
    dev = dev_bank.arrays()
    train = train.with_words(bank.vocab.map(words))  # what the network does not know is <unk>
    dev = dev.with_words(dev_bank.vocab.map(words))
    model = vpps.Model(seed=1)
    net = TreeLstm(model, len(words), bank.classes, o.hidden, o.hidden)
    metrics = vpps.Metrics(o.log_dir) if o.log_dir else None
    trainer = vpps.Trainer(model, optimizer="adam", lr=0.002, on_step=metrics)
    graph = model.graph()
    rng = np.random.default_rng(1)
    reached = 0.0
    for epoch in range(1, o.epochs + 1):
        total, order = 0.0, rng.permutation(len(train))
        for k in vpps.progress(range(0, len(order), o.batch), leave=False, disable=None):
            batch = train.take(order[k:k + o.batch])
            with graph:
                trainer.step(net.loss(graph, batch))
            total += trainer.loss() * len(batch)
        reached = net.accuracy(graph, trainer, dev)
        print(f"epoch {epoch}  loss {total / len(train):.3f}  accuracy {reached:.3f}")
    if o.save:
        trainer.save(o.save, {"vocabulary": words.to_text()})
    return reached


if __name__ == "__main__":
    main()
