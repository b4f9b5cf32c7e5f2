"""Layers of graph networks, and pooling over a graph's vertices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import ops
from .._arrays import as_u32, whole
from ..errors import ArgumentError
from ..graph import Graph, Members, Recorder
from ..model import Dense, Init, Lookup, Model, constant_init, uniform
from ..node import Node, Vertices
from .layer import MLP, I64, Head, Inputs, Layer, Linear, graph_now, grouped, in_torch, nodes_of, split
from .sequences import gru


class Attention(Layer):
    """The base of `GAT` and `GATv2`."""

    def __init__(self, model: Model, inputs: Inputs, channels: int, name: str = "", *, heads: int = 1, slope: float = 0.2, self_loops: bool = True,
                 head: Head = None) -> None:
        super().__init__(model, inputs, name, head)
        self.channels, self.heads, self.slope, self.self_loops = whole(channels, "channels"), whole(heads, "heads"), slope, self_loops
        self.outputs = channels * heads
        self.declare()
        bias = self.vector("bias", self.outputs)
        self.project = self.model.named_cell(f"{self._prefix}{type(self).__name__} project")(lambda c: self.projected(c, self.read(c)))

        def attend(c: Recorder) -> Node:
            h = ops.concat([ops.weighted_sum_list(ops.softmax_list(score), x) for x, score in self.scored(c)]) + bias.node()
            c.scatter(h)
            return h

        self.cell = self.record(attend)

    def declare(self) -> None:
        raise NotImplementedError

    def projected(self, c: Recorder, x: Node) -> None:
        raise NotImplementedError

    def scored(self, c: Recorder) -> list[tuple[Node, Node]]:
        """For each head, two lists: the vectors of the sources, and their attention scores."""
        raise NotImplementedError

    def glorot(self, rows: int, cols: int) -> Init:
        """torch_geometric's glorot initialisation."""
        a = (6.0 / (rows + cols)) ** 0.5
        return uniform(-a, a)

    def leaky(self, x: Node) -> Node:
        return ops.max(x * self.slope, x)

    def of_heads(self, x: Node | Dense) -> list[Node]:
        return split(x if isinstance(x, Node) else x.node(), self.heads, self.channels)

    def spread(self, g: Graph, x: Any, source: I64, target: I64, indices: ArrayLike | None) -> Vertices:
        v = g.apply(self.project, **self.given(x, None))
        n = len(v)
        if self.self_loops:
            other = source != target
            source, target = np.append(source[other], np.arange(n)), np.append(target[other], np.arange(n))
        first, members = grouped(target, source, n)
        return g.apply(self.cell, children=v, lists=[Members(first, v[members])], indices=indices)


class GATv2(Attention):
    """torch_geometric's GATv2Conv (Brody, Alon and Yahav 2022): vertex i is the sum over its sources j of a_ij lin_l(x_j), and bias, with
    a_ij the softmax over j of att . leaky_relu(lin_l(x_j) + lin_r(x_i)); heads are concatenated."""

    def declare(self) -> None:
        init = self.glorot(self.outputs, self.rows)
        self.lin_l, self.lin_r = (Linear(self.model, self.rows, self.outputs, self._prefix + k, init=init) for k in ("lin_l", "lin_r"))
        self.att = self.vector("att", self.outputs, self.glorot(self.heads, self.channels))

    def projected(self, c: Recorder, x: Node) -> None:
        c.scatter(self.lin_l(x), self.lin_r(x))

    def scored(self, c: Recorder) -> list[tuple[Node, Node]]:
        own, sources = c.gather(0, 1, self.outputs), c.gather_list(0, self.outputs, first=1)
        return [(x, ops.dot(att, self.leaky(x + y))) for x, y, att in zip(self.of_heads(sources), self.of_heads(own), self.of_heads(self.att))]


class GAT(Attention):
    """torch_geometric's GATConv (Veličković et al. 2018): vertex i is the sum over its sources j of a_ij lin(x_j), and bias, with a_ij
    the softmax over j of leaky_relu(att_src . lin(x_j) + att_dst . lin(x_i)); heads are concatenated."""

    def declare(self) -> None:
        self.lin = Linear(self.model, self.rows, self.outputs, self._prefix + "lin", bias=False, init=self.glorot(self.outputs, self.rows))
        self.att_src, self.att_dst = (self.vector(k, self.outputs, self.glorot(self.heads, self.channels)) for k in ("att_src", "att_dst"))

    def projected(self, c: Recorder, x: Node) -> None:
        y = self.lin(x)
        scores = [ops.concat([ops.dot(a, b) for a, b in zip(self.of_heads(att), self.of_heads(y))]) for att in (self.att_src, self.att_dst)]
        c.scatter(y, *scores)

    def scored(self, c: Recorder) -> list[tuple[Node, Node]]:
        own, sources = c.gather(0, 2, self.heads), c.gather_list(0, self.outputs, first=1)
        scores = c.gather_list(1, self.heads, first=1)
        return [(x, self.leaky(scores[k] + own[k])) for k, x in enumerate(self.of_heads(sources))]


class GIN(Layer):
    """torch_geometric's GINConv (Xu et al. 2019) around an `MLP`, best named "nn": mlp((1 + eps) x_i + the sum of x_j over its sources j).
    eps is a parameter, or with `train_eps=False` stays at its first value."""

    def __init__(self, mlp: MLP, name: str = "", *, eps: float = 0.0, train_eps: bool = False, head: Head = None) -> None:
        super().__init__(mlp.model, mlp.rows, name, head)
        factor = self.vector("eps", 1, constant_init(eps)) if train_eps else None

        def cell(c: Recorder) -> Node:
            x = self.read(c)
            own = x * (1.0 + eps) if factor is None else x + x * factor.node()
            h = mlp(own + ops.sum(c.pull_list(self.rows)))
            c.scatter(h)
            return h

        self.cell = self.record(cell)

    def spread(self, g: Graph, x: Any, source: I64, target: I64, indices: ArrayLike | None) -> Vertices:
        nodes = nodes_of(x)
        first, members = grouped(target, source, len(nodes))
        return g.apply(self.cell, lists=[Members(first)], pull_lists=[nodes[members]], **self.given(nodes, indices))


class GGNN(Layer):
    """Gated graph network (Li et al. 2016), torch_geometric's GatedGraphConv: `steps` steps of a GRU at each vertex. The state is at first x_i,
    with zeros below it. Step k reads weight.k times the sum of the states of the vertex's sources; the matrix "weight.k" is the transpose of
    torch_geometric's weight[k]. The GRU's parameters have the names of PyTorch's nn.GRUCell after "rnn."."""

    def __init__(self, model: Model, inputs: Inputs, hidden: int, steps: int, name: str = "", *, head: Head = None) -> None:
        super().__init__(model, inputs, name)
        if self.rows > hidden:
            raise ArgumentError(f"GGNN: inputs of {self.rows} rows; expected at most hidden, which is {hidden}")
        init, last = in_torch(hidden), whole(steps, "steps") - 1
        weights = [self.matrix(f"weight.{k}", hidden, hidden, init) for k in range(steps)]
        w_ih, w_hh = (self.matrix(f"rnn.weight_{k}", 3 * hidden, hidden, init) for k in ("ih", "hh"))
        b_ih, b_hh = (self.vector(f"rnn.bias_{k}", 3 * hidden, init) for k in ("ih", "hh"))

        def enter(c: Recorder) -> Node:
            x = self.read(c)
            h = x if self.rows == hidden else ops.concat([x, ops.zeros(hidden - self.rows)])
            c.scatter(h)
            return h

        def turn(k: int) -> Callable[[Recorder], Node]:
            def cell(c: Recorder) -> Node:
                h = c.gather(0, 0, hidden)
                m = ops.matvec(weights[k], ops.sum(c.gather_list(0, hidden, first=1)))
                new = gru(ops.affine(b_ih, w_ih, m), ops.affine(b_hh, w_hh, h), h)
                c.scatter(new)
                return new

            return cell

        self.enter, self.turns = self.record(enter, " enter"), []
        for k in range(steps):
            self.head = head if k == last else None
            self.turns.append(self.record(turn(k), f" {k}"))

    def spread(self, g: Graph, x: Any, source: I64, target: I64, indices: ArrayLike | None) -> Vertices:
        v = g.apply(self.enter, **self.given(x, None))
        first, members = grouped(target, source, len(v))
        for cell in self.turns:
            v = g.apply(cell, children=v, lists=[Members(first, v[members])], indices=indices if cell is self.turns[-1] else None)
        return v


def numbers(x: Any, what: str) -> NDArray[Any]:
    """Converts an array or a tensor to whole numbers; `what` names x in messages."""
    return as_u32(x.detach().cpu().numpy() if hasattr(x, "detach") else x, what).astype(np.int64)


def graph(layer: Attention | GIN | GGNN, x: Any, edges: Any = None, *, indices: ArrayLike | None = None) -> Vertices:
    """Applies a graph layer once to every vertex of a graph, or of a batch of graphs side by side.

    edges   2 x n numbers of vertices: row 0 has the sources, row 1 the targets. torch_geometric's Data and Batch, which have this array as
            `edge_index`, are accepted, too; given as x, they also supply the features
    indices for each vertex, whole numbers, such as its label, that the layer's `head`, a function of the user, reads by `pull_index`"""
    if edges is None and hasattr(x, "edge_index"):
        x, edges = x.x, x
    ends = numbers(getattr(edges, "edge_index", edges), "edges")
    if ends.ndim != 2 or len(ends) != 2:
        raise ArgumentError(f"edges of shape {ends.shape}; expected 2 x n")
    if not isinstance(layer.inputs, Lookup):
        x = tuple(nodes_of(part) for part in x) if isinstance(layer.inputs, tuple) else nodes_of(x)
    n = len(x[0]) if isinstance(layer.inputs, tuple) else len(x)
    if ends.size and int(ends.max()) >= n:
        raise ArgumentError(f"edges: vertex {int(ends.max())}; expected numbers below {n}")
    return layer.spread(graph_now(), x, ends[0], ends[1], indices)


class AttentionPooling(Layer):
    """torch_geometric's AttentionalAggregation (Li et al. 2016): sum of softmax(gate_nn(x_j)) nn(x_j) over the members j of each graph. gate_nn
    is by default a `Linear` to one row; `nn`, an `MLP` or a `Linear`, may be left out."""

    def __init__(self, model: Model, inputs: int, name: str = "", *, gate_nn: MLP | Linear | None = None, nn: MLP | Linear | None = None,
                 head: Head = None) -> None:
        super().__init__(model, inputs, name, head)
        gate = gate_nn or Linear(model, inputs, 1, f"{self._prefix}gate_nn")

        def cell(c: Recorder) -> Node:
            xs = c.pull_list(inputs)
            h = ops.weighted_sum_list(ops.softmax_list(gate(xs)), nn(xs) if nn else xs)
            c.scatter(h)
            return h

        self.cell = self.record(cell)


def pool(layer: AttentionPooling, x: Any, batch: Any = None, *, n: int | None = None, indices: ArrayLike | None = None) -> Vertices:
    """Applies a pooling layer, which reduces the inputs of each graph to one vertex; returns a vertex for each graph.

    batch   for each input, the number of its graph; or torch_geometric's Batch, which has this array as `batch`; None: there is one graph
    n       number of graphs; by default `batch.num_graphs`, or one more than the largest number in `batch`
    indices for each graph, whole numbers for the calls of `pull_index` in the layer's `head`, a function that adds operations to its cell"""
    nodes = nodes_of(x)
    if n is None and getattr(batch, "num_graphs", None) is not None:
        n = int(batch.num_graphs)
    batch = getattr(batch, "batch", batch)
    of = np.zeros(len(nodes), np.int64) if batch is None else numbers(batch, "batch")
    if of.shape != (len(nodes),):
        raise ArgumentError(f"batch of shape {of.shape}; expected ({len(nodes)},)")
    largest = int(of.max()) if of.size else -1
    n = (1 if batch is None else largest + 1) if n is None else whole(n, "n")
    if largest >= n:
        raise ArgumentError(f"batch: graph {largest}; expected numbers below {n}")
    first, members = grouped(of, np.arange(len(of)), n)
    return graph_now().apply(layer.cell, lists=[Members(first)], pull_lists=[nodes[members]], indices=indices, n=n)
