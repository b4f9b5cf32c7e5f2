"""Tree-LSTMs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import ops
from .._arrays import U32, as_u32, plain
from ..errors import ArgumentError
from ..graph import Graph, Members, Recorder
from ..model import Model
from ..node import Node, Vertices
from .layer import I64, Head, Inputs, Layer, graph_now, grouped


class ChildSumTreeLSTM(Layer):
    """Child-Sum Tree-LSTM (Tai, Socher and Manning 2015, section 3.1); states h and c. Every vertex has an input. Parameters have the names and
    first values that `vpps train child-sum-tree-lstm` gives them."""

    def __init__(self, model: Model, inputs: Inputs, hidden: int, name: str = "", *, head: Head = None) -> None:
        super().__init__(model, inputs, name, head)
        self.W, self.U, self.b = {}, {}, {}
        for k in "ifou":
            self.W[k], self.U[k] = self.matrix(f"W_{k}", hidden, self.rows), self.matrix(f"U_{k}", hidden, hidden)
            self.b[k] = self.vector(f"b_{k}", hidden, 1.0 if k == "f" else None)

        def cell(c: Recorder) -> Node:
            x = self.read(c)
            h_k, c_k = c.gather_list(0, hidden), c.gather_list(1, hidden)
            sums = {k: ops.affine(self.b[k], self.W[k], x, self.U[k], h_k if k == "f" else ops.sum(h_k)) for k in "ifou"}
            state = ops.sigmoid(sums["i"]) * ops.tanh(sums["u"]) + ops.sum(ops.sigmoid(sums["f"]) * c_k)
            h = ops.sigmoid(sums["o"]) * ops.tanh(state)
            c.scatter(h, state)
            return h

        self.cell = self.record(cell)

    def grow(self, g: Graph, x: Any, order: I64, first: I64, members: I64, indices: ArrayLike | None) -> U32:
        given, at = self.given(x, indices, len(order)), np.empty(len(order), np.uint32)
        at[order] = g.next_vertex + np.arange(len(order))  # the number that each tree node's vertex gets by the next call
        g.apply(self.cell, lists=[Members(first, at[members])], **{k: v if k == "n" or v is None else v[order] for k, v in given.items()})
        return at


class BinaryTreeLSTM(Layer):
    """N-ary Tree-LSTM of two children (Tai, Socher and Manning 2015, section 3.2); states h and c. Only leaves have inputs. Parameters have the
    names and first values that `vpps train tree-lstm` gives them. `head` adds operations to the cells of leaves and of inner vertices."""

    def __init__(self, model: Model, inputs: Inputs, hidden: int, name: str = "", *, head: Head = None) -> None:
        super().__init__(model, inputs, name, head)
        W = {k: self.matrix(f"W_{k}", hidden, self.rows) for k in "iou"}
        U = {k: self.matrix(f"U_{k}", hidden, hidden) for k in "i_l i_r o_l o_r f_ll f_lr f_rl f_rr u_l u_r".split()}
        b = {k: self.vector(f"b_{k}", hidden, 1.0 if k == "f" else None) for k in "iofu"}

        def finish(c: Recorder, i: Node, o: Node, u: Node, *kept: Node) -> Node:
            state = ops.sum([ops.sigmoid(i) * ops.tanh(u), *kept])
            h = ops.sigmoid(o) * ops.tanh(state)
            c.scatter(h, state)
            return h

        def leaf(c: Recorder) -> Node:
            x = self.read(c)
            return finish(c, *(ops.affine(b[k], W[k], x) for k in "iou"))

        def inner(c: Recorder) -> Node:
            h_l, c_l, h_r, c_r = (c.gather(child, k, hidden) for child in (0, 1) for k in (0, 1))
            i, o, u, f_l, f_r = (ops.affine(b[k[0]], U[k + "l"], h_l, U[k + "r"], h_r) for k in ("i_", "o_", "u_", "f_l", "f_r"))
            return finish(c, i, o, u, ops.sigmoid(f_l) * c_l, ops.sigmoid(f_r) * c_r)

        self.leaf, self.inner = self.record(leaf, " leaf"), self.record(inner, " inner")

    def grow(self, g: Graph, x: Any, order: I64, first: I64, members: I64, indices: ArrayLike | None) -> U32:
        count = np.diff(first)
        wrong = np.flatnonzero((count != 0) & (count != 2))
        if len(wrong):
            raise ArgumentError(f"parents: vertex {order[wrong[0]]} has {count[wrong[0]]} children; expected 0 or 2")
        leaves, inner = np.sort(order[count == 0]), order[count == 2]
        more = None if indices is None else as_u32(indices, "indices")
        if more is not None and len(more) != len(order):
            raise ArgumentError(f"indices of shape {more.shape}; expected {len(order)} rows")
        at = np.empty(len(order), np.uint32)
        at[leaves] = g.apply(self.leaf, **self.given(x, None if more is None else more[leaves], len(leaves))).ids
        at[inner] = g.next_vertex + np.arange(len(inner))
        g.apply(self.inner, children=at[members.reshape(-1, 2)], indices=None if more is None else more[inner], n=len(inner))
        return at


def tree(layer: ChildSumTreeLSTM | BinaryTreeLSTM, x: Any, parents: ArrayLike, *, indices: ArrayLike | None = None) -> Vertices:
    """Applies a Tree-LSTM to any number of trees side by side: a vertex for each tree node, that is, for each element of `parents`.

    parents     for each tree node, the index of its parent; -1: a root. Children may stand before or after their parents. Of a binary
                tree's two children the first in the array is the left one.
    x           inputs of all tree nodes; for `BinaryTreeLSTM` inputs of the leaves alone, in the array's order
    indices     numbers that the layer's `head` pulls: for each tree node as many as it pulls"""
    p = plain(parents, "parents")
    n = len(p) if p.ndim == 1 else 0
    if p.ndim != 1 or p.dtype.kind not in "iu" and n:
        raise ArgumentError(f"parents: an array of {p.dtype} of shape {p.shape}; expected whole numbers in one dimension")
    wrong = np.flatnonzero((p < -1) | (p >= n))
    if len(wrong):
        raise ArgumentError(f"parents: {p[wrong[0]]} at {wrong[0]}; expected -1, or a place from 0 to {n - 1}")
    up = p.astype(np.int64)
    order, below = np.arange(n), np.flatnonzero(up >= 0)
    if (up[below] <= below).any():  # a parent stands before its child: sort by depth, deepest first
        depth, far = (up >= 0).astype(np.int64), up  # far: the ancestor of each node that is 1, then 2, 4, ... levels up
        for _ in range(n.bit_length()):
            depth, far = np.where(far >= 0, depth + depth[far], depth), np.where(far >= 0, far[far], -1)
        if (far >= 0).any():
            raise ArgumentError(f"parents: vertex {np.flatnonzero(far >= 0)[0]} is below a cycle; expected trees")
        order = np.argsort(-depth, kind="stable")
    first, members = grouped(np.argsort(order)[up[below]], below, n)  # members[first[k]:first[k + 1]]: indices of the children of tree node order[k]
    g = graph_now()
    return g.vertices(layer.grow(g, x, order, first, members, indices))
