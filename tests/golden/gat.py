#!/usr/bin/env python3
"""Golden losses of small graph attention networks: of one round and two, for nodes and for graphs, with sums over edges by index_add.

    python3 tests/golden/gat.py > tests/golden/gat.json

Velickovic et al., "Graph Attention Networks" (2018), with the scores of Brody, Alon and Yahav (2022), equation 7: all edges of a graph are
rows of one matrix, each once for either direction; scores are normalised by sums over the edges into a node (scatter). Some nodes have no label, and
no loss. The loss is the sum of the negative log likelihoods over the batch's number of graphs.
"""
import torch
from torch.nn.functional import elu, leaky_relu

from golden import (CLASSES, EMBED, EXAMPLES, HIDDEN, NO_WORD, WORDS, Random, Tensor, golden, layer_name, matrix, nll,
                    sentence, table, vector, write)

HEADS, TYPES, NUMBERS = 3, 4, 2


def square(name):
    """Of small values: nothing normalises what rounds add."""
    return Tensor(name, (HIDDEN, HIDDEN), 0.1)


def round_tensors(name):
    d = HIDDEN
    return [
        table(f"{name}.forward", TYPES, d), table(f"{name}.backward", TYPES, d),
        square(f"{name}.W_q"), vector(f"{name}.b_q", d), square(f"{name}.W_v"), vector(f"{name}.a", d),
        square(f"{name}.W_o"), square(f"{name}.W_h"), vector(f"{name}.b_o", d),
    ]


def tensors(rounds):
    return [
        table("embedding", WORDS, EMBED), matrix("W_x", HIDDEN, EMBED), vector("b_x", HIDDEN), matrix("W_n", HIDDEN, NUMBERS),
        *(tensor for number in range(rounds) for tensor in round_tensors(layer_name("round", number))),
        matrix("W_s", CLASSES, HIDDEN), vector("b_s", CLASSES),
    ]


def draw_graph(random):
    """(words, labels, the graph's label, edges, numbers); about every other label is missing."""
    n = 1 + random.below(5)
    words = random.ids(n, WORDS)
    labels = [NO_WORD if i and random.below(2) == 0 else random.below(CLASSES) for i in range(n)]
    edges = [(random.below(n), random.below(n), random.below(TYPES)) for _ in range(random.below(2 * n + 1))]
    return words, labels, random.below(CLASSES), edges, [random.below(9) / 4 - 1 for _ in range(NUMBERS * n)]


def example(graph):
    words, labels, label, edges, numbers = graph
    return {"sentence": sentence(words, labels), "label": label, "edges": edges, "numbers": numbers}


def states(p, graph):
    words, _, _, edges, numbers = graph
    n = len(words)
    h = p["embedding"][words] @ p["W_x"].T + torch.tensor(numbers, dtype=torch.float64).reshape(n, NUMBERS) @ p["W_n"].T + p["b_x"]
    source = torch.tensor([e[0] for e in edges] + [e[1] for e in edges], dtype=torch.long)
    target = torch.tensor([e[1] for e in edges] + [e[0] for e in edges], dtype=torch.long)
    types = [e[2] for e in edges]
    for name in ("round", "round2"):
        if f"{name}.W_q" not in p:
            continue
        w = {key.removeprefix(name + "."): value for key, value in p.items() if key.startswith(name + ".")}
        said = (h @ w["W_v"].T)[source] + torch.cat([w["forward"][types], w["backward"][types]])
        z = leaky_relu((h @ w["W_q"].T + w["b_q"])[target] + said, 0.2)
        weights = (z * w["a"]).reshape(-1, HEADS, HIDDEN // HEADS).sum(2).exp()
        sums = torch.zeros(n, HEADS, dtype=torch.float64).index_add(0, target, weights)
        alpha = (weights / sums[target]).repeat_interleave(HIDDEN // HEADS, 1)
        m = torch.zeros(n, HIDDEN, dtype=torch.float64).index_add(0, target, alpha * said)
        h = h + elu(m @ w["W_o"].T + h @ w["W_h"].T + w["b_o"])
    return h


def loss_of_nodes(p, graph):
    return nll(states(p, graph) @ p["W_s"].T + p["b_s"], graph[1])


def loss_of_graph(p, graph):
    return nll((states(p, graph).mean(0) @ p["W_s"].T + p["b_s"])[None], [graph[2]])


def main():
    random = Random(2018)
    graphs = [draw_graph(random) for _ in range(EXAMPLES)]
    write(map(example, graphs),
          *(golden(network, tensors(rounds), loss, graphs, name=f"{network}-{rounds}", layers=rounds, heads=HEADS,
                   edge_types=TYPES, numbers=NUMBERS)
            for network, loss, rounds in (("gat", loss_of_nodes, 1), ("gat", loss_of_nodes, 2), ("gat-classifier", loss_of_graph, 2))))


if __name__ == "__main__":
    main()
