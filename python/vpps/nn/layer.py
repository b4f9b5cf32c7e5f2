"""The base class of all layers, and layers that are called with one node (value of the computation graph)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Optional, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import ops
from .._arrays import U32, as_f32, as_u32, leaf_only, whole
from ..errors import ArgumentError
from ..graph import Cell, Graph, Recorder, current
from ..model import Init, Lookup, Matrix, Model, Vector, uniform
from ..node import Node, Nodes, Vertices

Inputs = Union[int, tuple[int, ...], Lookup]
Head = Optional[Callable[[Recorder, Node], None]]
I64 = NDArray[np.int64]


class Layer:
    """Parameters and cells of a model, made for one layer."""

    def __init__(self, model: Model, inputs: Inputs, name: str, head: Head = None) -> None:
        self.model, self.inputs, self.head = model, inputs, head
        self._prefix = f"{name}." if name else ""
        if not isinstance(inputs, (int, tuple, Lookup)):
            raise TypeError(f"{type(self).__name__}: inputs of type {type(inputs).__name__}; expected a number of rows, a tuple of such, or a table")
        sizes = (inputs.shape[1],) if isinstance(inputs, Lookup) else inputs if isinstance(inputs, tuple) else (inputs,)
        self.rows = sum(whole(n, f"{type(self).__name__}: inputs") for n in sizes)

    def matrix(self, name: str, rows: int, cols: int, init: Init | None = None) -> Matrix:
        return self.model.add_matrix(self._prefix + name, rows, cols, init)

    def vector(self, name: str, rows: int, init: Init | float | None = None) -> Vector:
        return self.model.add_vector(self._prefix + name, rows, init)

    def record(self, function: Callable[[Recorder], Node], kind: str = "") -> Cell:
        """Records a cell: `function` computes the layer's output, a node; the layer's `head`, if given, adds operations on that node."""

        def whole_cell(c: Recorder) -> None:
            h = function(c)
            if self.head is not None:
                self.head(c, h)

        return self.model.named_cell(self._prefix + type(self).__name__ + kind)(whole_cell)

    def read(self, c: Recorder) -> Node:
        """Records, in the layer's cell, that each vertex (application of the cell) reads an input; returns the node that stands for it."""
        if isinstance(self.inputs, Lookup):
            return self.inputs[c.pull_index()]
        if isinstance(self.inputs, tuple):
            return ops.concat([c.pull(n) for n in self.inputs])
        return c.pull(self.inputs)

    def given(self, x: Any, indices: ArrayLike | None, n: int | None = None) -> dict[str, Any]:
        """Returns `Graph.apply`'s arguments for inputs x, one per vertex, and `indices` that the user's function `head` reads. n: expected inputs."""
        some: list[U32] = []
        if isinstance(self.inputs, Lookup):
            numbers = as_u32(x, "x")
            if numbers.ndim != 1:
                raise ArgumentError(f"x: numbers of a table's entries of shape {numbers.shape}; expected one dimension")
            some, count = [numbers[:, None]], len(numbers)
        else:
            parts = x if isinstance(self.inputs, tuple) else (x,)
            pulls = [nodes_of(part).ids for part in parts]
            count = len(pulls[0]) if pulls else 0
            if len({len(p) for p in pulls}) > 1 or isinstance(self.inputs, tuple) and len(pulls) != len(self.inputs):
                raise ArgumentError(f"x: parts of {', '.join(str(len(p)) for p in pulls)} inputs; expected {self.inputs}, equally many of each")
        if n is not None and count != n:
            raise ArgumentError(f"x: {count} inputs; expected {n}")
        if indices is not None:
            more = as_u32(indices, "indices")
            if len(more) != count or more.ndim > 2:
                raise ArgumentError(f"indices of shape {more.shape}; expected {count} rows")
            some.append(more.reshape(count, -1))
        return {"n": count, "indices": np.concatenate(some, 1) if some else None,
                "pulls": None if isinstance(self.inputs, Lookup) else np.stack(pulls, 1)}


def nodes_of(x: Any) -> Nodes:
    """Converts x to nodes. x is an array, each row of which becomes a node; vertices, of each of which the first output is taken; or nodes."""
    if isinstance(x, Vertices):
        return x.scattered()
    if isinstance(x, Nodes):
        return x
    leaf_only(x, "x")
    return graph_now().inputs(as_f32(x, "x"))


def graph_now() -> Graph:
    """The graph that is being built."""
    g = current()
    if not isinstance(g, Graph):
        raise ArgumentError("vpps.nn: applied while a cell is recorded; expected a graph")
    return g


def in_torch(size: int) -> Init:
    """PyTorch's initial values, uniform in +-1 / sqrt(size): the hidden size of recurrent layers, the inputs of nn.Linear."""
    return uniform(-(max(size, 1) ** -0.5), max(size, 1) ** -0.5)


def split(x: Node, n: int, rows: int) -> list[Node]:
    """x cut into n pieces of `rows` rows."""
    return [x[k * rows:(k + 1) * rows] for k in range(n)]


class Linear(Layer):
    """weight @ x + bias, as PyTorch's nn.Linear; called with a node, in a cell or on a graph."""

    def __init__(self, model: Model, inputs: int, outputs: int, name: str = "", *, bias: bool = True, init: Init | None = None) -> None:
        super().__init__(model, inputs, name)
        self.weight = self.matrix("weight", outputs, inputs, init or in_torch(inputs))
        self.bias = self.vector("bias", outputs, 0.0 if init else in_torch(inputs)) if bias else None

    def __call__(self, x: Node) -> Node:
        return ops.affine(self.bias, self.weight, x)


class MLP(Layer):
    """Linear layers with an activation between them, with the names of PyTorch's nn.Sequential: "0.weight", "2.weight"; called with a node.

    sizes       rows of the input, of each hidden layer, and of the output
    activation  a function of a node, as vpps.tanh
    dropout     after each activation"""

    def __init__(self, model: Model, sizes: Sequence[int], name: str = "", *, activation: Callable[[Node], Node] = ops.relu,
                 dropout: float = 0.0) -> None:
        if len(sizes) < 2:
            raise ArgumentError(f"MLP: sizes of {len(sizes)} numbers; expected at least two: rows of the input and of the output")
        super().__init__(model, sizes[0], name)
        self.activation, self.dropout, self.outputs = activation, dropout, sizes[-1]
        step = 3 if dropout else 2
        self.layers = [Linear(model, a, b, f"{self._prefix}{step * i}") for i, (a, b) in enumerate(zip(sizes, sizes[1:]))]

    def __call__(self, x: Node) -> Node:
        for i, layer in enumerate(self.layers):
            if i:
                x = self.activation(x)
                x = ops.dropout(x, self.dropout) if self.dropout else x
            x = layer(x)
        return x


def grouped(keys: I64, members: I64, n: int) -> tuple[I64, I64]:
    """Groups members by key, 0 to n - 1. Returns where each key's members begin in the second array, and the members, sorted by key."""
    return np.append(0, np.cumsum(np.bincount(keys, minlength=n))), members[np.argsort(keys, kind="stable")]
