#!/usr/bin/env python3
"""What building graphs from Python costs: nanoseconds for a call, a vertex and a node, the least of some rounds.

    python3 bench/python_calls.py [--rounds N]

The Tree-LSTM of examples/tree_lstm.py on generated trees, batch 16: a call for every vertex, and two calls for the batch. Nothing is trained.
CPU time of this process is counted, so that what else the machine does disturbs little.
"""
import argparse
import os
import sys
import time

import numpy as np
import vpps
from vpps.data import Treebank

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples"))
from tree_lstm import TreeLstm  # noqa: E402


def least(rounds, n, call):
    times = []
    for _ in range(rounds):
        begin = time.process_time_ns()
        call()
        times.append((time.process_time_ns() - begin) / n)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=30)
    o = parser.parse_args()
    bank = Treebank().generate_listops(400, seed=1)
    trees = bank.arrays()
    model = vpps.Model(seed=1)
    net, graph = TreeLstm(model, len(bank.vocab), bank.classes, 256, 256), model.graph()
    batches = [trees.take(range(k, k + 16)) for k in range(0, 400, 16)]
    vertices = len(trees.label)
    columns = [[x.tolist() for x in (b.label, b.left, b.right, b.word)] for b in batches]

    def each():
        for label, left, right, word in columns:
            with graph:
                at = []
                for k in range(len(label)):
                    if left[k] < 0:
                        at.append(net.leaf(indices=(word[k], max(label[k], 0))))
                    else:
                        at.append(net.inner(at[left[k]], at[right[k]], indices=(max(label[k], 0),)))

    def bulk():
        for b in batches:
            with graph:
                net.add(graph, b)

    def nodes():
        with graph:
            x = vpps.input(np.zeros(4, np.float32))
            for _ in range(10000):
                vpps.tanh(x)

    print(f"a vertex, each by a call: {least(o.rounds, vertices, each):.0f} ns")
    print(f"a vertex, two calls for 16 trees: {least(o.rounds, vertices, bulk):.0f} ns")
    print(f"a node, each by a call: {least(o.rounds, 10000, nodes):.0f} ns")


if __name__ == "__main__":
    main()
