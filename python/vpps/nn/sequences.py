"""Recurrent cells, and their application along sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import ops
from .._arrays import as_u32, whole
from ..errors import ArgumentError
from ..graph import Recorder
from ..model import Model
from ..node import Node, Vertices
from .layer import Head, Inputs, Layer, graph_now, in_torch, nodes_of, split


class Recurrent(Layer):
    """Base class of cells that read sequences step by step. A subclass sets `begin` and `gates`, and defines `step`.

    hidden      number of rows of each state; the first state is the layer's output
    suffix      end of the parameters' names, as "_l0" in PyTorch's weight_ih_l0"""

    gates = 1  # number of gates: weight_ih has gates * hidden rows
    begin: tuple[float, ...] = (0.0,)  # the value of each state's elements before the first step

    def __init__(self, model: Model, inputs: Inputs, hidden: int, name: str = "", *, suffix: str = "_l0", bias: bool = True,
                 head: Head = None) -> None:
        super().__init__(model, inputs, name, head)
        self.hidden, self.suffix = whole(hidden, "hidden"), suffix
        init, rows = in_torch(hidden), self.gates * hidden
        self.weight_ih, self.weight_hh = (self.matrix(k + suffix, rows, n, init) for k, n in (("weight_ih", self.rows), ("weight_hh", hidden)))
        self.bias_ih, self.bias_hh = (self.vector(b + suffix, rows, init) if bias else None for b in ("bias_ih", "bias_hh"))
        self.declare()

        def cell(c: Recorder) -> Node:
            states = self.step(self.read(c), *(c.gather(0, k, hidden) for k in range(len(self.begin))))
            c.scatter(*states)
            return states[0]

        self.cell = self.record(cell, suffix)

    def declare(self) -> None:
        """A subclass whose `step` needs parameters besides weight_* and bias_* declares them here."""

    def step(self, x: Node, *states: Node) -> tuple[Node, ...]:
        """The new states after a step that reads x."""
        raise NotImplementedError

    def sums(self, x: Node, h: Node) -> list[Node]:
        """weight_ih x + bias_ih + weight_hh h + bias_hh, gate by gate."""
        a: Node = ops.affine(self.bias_ih, self.weight_ih, x, self.weight_hh, h)
        return split(a if self.bias_hh is None else a + self.bias_hh.node(), self.gates, self.hidden)


class RNN(Recurrent):
    """h' = tanh(weight_ih x + bias_ih + weight_hh h + bias_hh): PyTorch's nn.RNN."""

    activation = staticmethod(ops.tanh)

    def step(self, x: Node, *states: Node) -> tuple[Node, ...]:
        return (self.activation(self.sums(x, states[0])[0]),)


class ReluRNN(RNN):
    """PyTorch's nn.RNN(nonlinearity="relu"): an RNN with relu in place of tanh."""

    activation = staticmethod(ops.relu)


class LSTM(Recurrent):
    """PyTorch's nn.LSTM, with its gates in the order i, f, g, o; states h and c."""

    gates = 4
    begin: tuple[float, ...] = (0.0, 0.0)

    def step(self, x: Node, *states: Node) -> tuple[Node, ...]:
        i, f, g, o = self.sums(x, states[0])
        c = ops.sigmoid(f) * states[1] + ops.sigmoid(i) * ops.tanh(g)
        return ops.sigmoid(o) * ops.tanh(c), c


class GRU(Recurrent):
    """PyTorch's nn.GRU, with its gates in the order r, z, n; state h."""

    gates = 3

    def step(self, x: Node, *states: Node) -> tuple[Node, ...]:
        h = states[0]
        return (gru(ops.affine(self.bias_ih, self.weight_ih, x), ops.affine(self.bias_hh, self.weight_hh, h), h),)


def gru(of_x: Node, of_h: Node, h: Node) -> Node:
    """The new state of a GRU from the stacked sums of its gates, of the input (of_x) and of the state (of_h)."""
    (r, z, n), (r_h, z_h, n_h) = (split(a, 3, h.shape[0]) for a in (of_x, of_h))
    z = ops.sigmoid(z + z_h)
    return (1 - z) * ops.tanh(n + ops.sigmoid(r + r_h) * n_h) + z * h


class LayerNormLSTM(LSTM):
    """An LSTM whose sums and state are normalised (Ba, Kiros and Hinton 2016), as LayerNormLSTMCell of PyTorch's benchmarks:
    i, f, g, o = layernorm_i(weight_ih x) + layernorm_h(weight_hh h); c' = layernorm_c(f c + i g); h' = o tanh(c'). Without other biases."""

    def __init__(self, model: Model, inputs: Inputs, hidden: int, name: str = "", *, suffix: str = "_l0", head: Head = None) -> None:
        super().__init__(model, inputs, hidden, name, suffix=suffix, bias=False, head=head)

    def declare(self) -> None:
        self.norms = [(self.vector(f"layernorm_{k}{self.suffix}.weight", rows, 1.0), self.vector(f"layernorm_{k}{self.suffix}.bias", rows))
                      for k, rows in (("i", 4 * self.hidden), ("h", 4 * self.hidden), ("c", self.hidden))]

    def step(self, x: Node, *states: Node) -> tuple[Node, ...]:
        of_x, of_h = (ops.layer_norm(ops.matvec(w, y), *norm) for w, y, norm in zip((self.weight_ih, self.weight_hh), (x, states[0]), self.norms))
        i, f, g, o = split(of_x + of_h, 4, self.hidden)
        c = ops.layer_norm(ops.sigmoid(f) * states[1] + ops.sigmoid(i) * ops.tanh(g), *self.norms[2])
        return ops.sigmoid(o) * ops.tanh(c), c


class SLSTM(LSTM):
    """sLSTM with its stabiliser (Beck et al. 2024, equations 8 to 17) and a sigmoid at the forget gate; states h, c, n and m:
    m' = max(log sigmoid(f) + m, i), i' = e^(i - m'), f' = e^(log sigmoid(f) + m - m'), c' = f' c + i' tanh(g), n' = f' n + i',
    h' = sigmoid(o) c' / n'. Parameters are those of the LSTM; m begins at -1e30, so that the first step takes its input alone."""

    begin = (0.0, 0.0, 0.0, -1e30)

    def step(self, x: Node, *states: Node) -> tuple[Node, ...]:
        h, c, n, m = states
        i, f, g, o = self.sums(x, h)
        log_f = (f - ops.abs(f)) * 0.5 - ops.log(ops.exp(-ops.abs(f)) + 1.0)
        kept = log_f + m
        new_m = ops.max(kept, i)
        taken, forgotten = ops.exp(i - new_m), ops.exp(kept - new_m)
        c, n = forgotten * c + taken * ops.tanh(g), forgotten * n + taken
        return ops.sigmoid(o) * c / n, c, n, new_m


def chain(layer: Recurrent, x: Any, lengths: ArrayLike, *, start: Sequence[Any] | None = None, reverse: bool = False,
          indices: ArrayLike | None = None) -> Vertices:
    """Applies a recurrent layer along sequences that lie in x one after the other: a vertex for each element, in x's order.

    lengths     length of each sequence; the sum of all lengths is the number of inputs
    start       states before the first step. For each kind of state (h, c): nodes, vertices or rows of an array, one per sequence; None: zeros
    reverse     whether each sequence is read from its last element to its first
    indices     numbers that the layer's `head` pulls: for each element, in x's order, as many as it pulls"""
    return chain_and_ends(layer, x, lengths, start=start, reverse=reverse, indices=indices)[0]


def chain_and_ends(layer: Recurrent, x: Any, lengths: ArrayLike, *, start: Sequence[Any] | None = None, reverse: bool = False,
                   indices: ArrayLike | None = None) -> tuple[Vertices, Vertices]:
    """Returns the vertices that `chain` makes, and each sequence's last vertex; for an empty sequence, a vertex that outputs the initial states."""
    g = graph_now()
    of = as_u32(lengths, "lengths").astype(np.int64)
    if of.ndim != 1:
        raise ArgumentError(f"lengths of shape {of.shape}; expected one dimension")
    total = int(of.sum())
    given = layer.given(x, indices, total)
    begin = np.empty(len(of), np.int64)
    if start is None:
        begin[:] = g.source(*(g.constant(v, layer.hidden) for v in layer.begin)).id
    else:
        parts = [nodes_of(s) for s in start]
        if len(parts) != len(layer.begin) or any(len(p) != len(of) for p in parts):
            raise ArgumentError(f"start: {' and '.join(str(len(p)) for p in parts) or 'no'} states; expected {len(of)}, a sequence each, of "
                                f"{len(layer.begin)} kinds")
        begin[:] = g.sources(*parts).ids
    last = np.cumsum(of) - 1
    some, first_vertex = of > 0, g.next_vertex
    if reverse:
        first, end = total - 1 - last, total - 1 - (last - of + 1)
        for k in ("indices", "pulls"):
            given[k] = None if given[k] is None else given[k][::-1]
    else:
        first, end = last - of + 1, last
    before = np.arange(first_vertex - 1, first_vertex + total - 1)
    before[first[some]] = begin[some]
    v = g.apply(layer.cell, children=before, **given)
    return v[::-1] if reverse else v, g.vertices(np.where(some, first_vertex + end, begin))
