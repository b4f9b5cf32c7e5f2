"""Graph attention, by torch_geometric."""
import os

import torch
import torch_geometric
from peers import FILES, read_trees
from torch import nn
from torch.nn import functional as F

from .parts import NONE, fill, numbers, rounded, table, vocabulary

HEADS = 4


class Round(torch_geometric.nn.MessagePassing):
    """Of the attention, with d elements of a node's state."""

    def __init__(self, d):
        super().__init__(aggr="add", node_dim=0)
        self.types = nn.Embedding(4, d)  # left and right, read from below and from above
        self.q, self.v = nn.Linear(d, d), nn.Linear(d, d, bias=False)
        self.a = nn.Parameter(torch.empty(HEADS, d // HEADS).uniform_(-0.05, 0.05))
        self.messages, self.own = nn.Linear(d, d, bias=False), nn.Linear(d, d)

    def forward(self, h, edges, types):
        q, v, t = (x.unflatten(1, (HEADS, -1)) for x in (self.q(h), self.v(h), self.types(types)))
        m = self.propagate(edges, q=q, v=v, t=t)
        return h + F.elu(self.messages(m.flatten(1)) + self.own(h))

    def message(self, q_i, v_j, t, index, ptr, size_i):
        said = v_j + t
        score = (F.leaky_relu(q_i + said, 0.2) * self.a).sum(-1)
        return said * torch_geometric.utils.softmax(score, index, ptr, size_i)[..., None]


class Graphs(nn.Module):
    """models/gat.c with two rounds. Constituents have a word that they share. A tree's last nodes are labelled, all or one."""

    COMPILED = ("nll",)
    labelled, pooled = slice(None), staticmethod(lambda h, graph, n_graphs: h)

    def __init__(self, o):
        super().__init__()
        d = o.hidden
        trees, _ = read_trees(os.path.join(o.data, FILES[o.network][0]))
        words = vocabulary((node[1] for tree in trees for node in tree), o.min_count)
        labels = vocabulary(node[0] for tree in trees for node in tree[self.labelled])
        self.device, self.examples = o.device, [self.graph_of(tree, words, labels) for tree in trees]
        self.table, self.word = table(len(words), o.embed), nn.Linear(o.embed, d)
        self.rounds, self.head = nn.ModuleList([Round(d), Round(d)]), nn.Linear(d, len(labels) - 1)

    def take(self, saved):
        saved.take(self.table.weight, "embedding")
        saved.take_linear(self.word, "x")
        for layer, name in zip(self.rounds, ("round", "round2")):
            saved.take(layer.types.weight, f"{name}.forward", f"{name}.backward")
            saved.take(layer.a.view(-1), f"{name}.a")
            for parameter, tensor in ((layer.q.weight, "W_q"), (layer.q.bias, "b_q"), (layer.v.weight, "W_v"), (layer.messages.weight, "W_o"),
                                      (layer.own.weight, "W_h"), (layer.own.bias, "b_o")):
                saved.take(parameter, f"{name}.{tensor}")
        saved.take_linear(self.head, "s")

    def graph_of(self, tree, words, labels):
        """Its labels; its nodes' words; its edges, each read at both ends; their types. On the host."""
        up = [(node[2 + side], k, side) for k, node in enumerate(tree) if node[2] >= 0 for side in (0, 1)]
        both = up + [(parent, child, 2 + side) for child, parent, side in up]
        edges = torch.tensor(both, dtype=torch.long).view(-1, 3)
        words = torch.tensor(numbers((node[1] for node in tree), words))
        return torch.tensor([labels[node[0]] - 1 for node in tree[self.labelled]]), words, edges[:, :2].t(), edges[:, 2]

    def nll(self, x, labels, edges, types, graph):
        """x: nodes' embeddings; graph: the number of each node's graph."""
        h = self.word(x)
        for layer in self.rounds:
            h = layer(h, edges, types)
        return F.cross_entropy(self.head(self.pooled(h, graph, len(labels))), labels, reduction="sum")

    def loss(self, labels, words, *more):
        labels, words, *more = (x.to(self.device, non_blocking=True) for x in (labels, words, *more))
        return self.nll(self.table(words), labels, *more)

    def eager(self, graphs):
        return sum(self.loss(*graph, torch.zeros_like(graph[1])) for graph in graphs) / len(graphs)

    def batched(self, graphs):
        labels, words, edges, types = zip(*graphs)
        sizes = torch.tensor([len(x) for x in words])
        moved = torch.cat([x + n for x, n in zip(edges, (sizes.cumsum(0) - sizes).tolist())], 1)
        graph = torch.repeat_interleave(torch.arange(len(graphs)), sizes)
        return self.loss(torch.cat(labels), torch.cat(words), moved, torch.cat(types), graph) / len(graphs)

    def buffers(self, graphs):
        """Nodes and edges beyond the real ones are a graph of their own; its edges are at the last node."""
        labels, words, edges, types = zip(*graphs)
        sizes = torch.tensor([len(x) for x in words])
        n = rounded(int(sizes.sum()) + 1)
        moved = [fill(torch.cat([x[end] + k for x, k in zip(edges, (sizes.cumsum(0) - sizes).tolist())]), n - 1) for end in (0, 1)]
        graph, words = (F.pad(x, (0, n - len(x)), value=v) for x, v in ((torch.repeat_interleave(torch.arange(len(graphs)), sizes), len(graphs)),
                                                                     (torch.cat(words), 0)))
        labels = torch.cat(labels)
        labels = F.pad(labels, (0, (n if len(labels) > len(graphs) else len(graphs) + 1) - len(labels)), value=NONE)
        return labels, words, torch.stack(moved), fill(torch.cat(types)), graph, sizes

    def padded(self, labels, words, edges, types, graph, sizes):
        return self.nll(self.table(words), labels, edges, types, graph) / len(sizes)


class GraphClassifier(Graphs):
    """Of the root's label, by the mean of all nodes."""

    labelled, pooled = slice(-1, None), staticmethod(torch_geometric.nn.global_mean_pool)
