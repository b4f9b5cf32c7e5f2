"""Arrays into which C writes the values of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from ._arrays import F32, pointer, u32_pointer
from ._vpps import ffi, lib
from .errors import ArgumentError
from .node import Node, Nodes, same_graph

Named = Union[Node, Nodes, Sequence[Node]]


def shaped(columns: F32) -> F32:
    """An array of cols x rows numbers, transposed and reduced to the dimensions of its node's shape."""
    cols, rows = columns.shape
    return columns.reshape(()) if rows == cols == 1 else columns[0] if cols == 1 else columns.T


class Host:
    """Makes NumPy arrays as memory for C's results. A class with the same functions can make another library's tensors instead."""

    @staticmethod
    def empty(*shape: int) -> Any:
        return np.empty(shape, np.float32)

    @staticmethod
    def address(a: Any) -> int:
        return a.ctypes.data


class Places:
    """Memory for the values of `n` nodes: `ids` and `outs` are C's arrays, `result` is what Python sees. The arrays live as long as this
    object."""

    def __init__(self, nodes: Any, what: str, memory: Any = Host) -> None:
        """`nodes` of one graph: one node, a list of nodes of any shapes, or `Nodes`. `what` names them in messages; `memory` allocates arrays."""
        self.many = isinstance(nodes, Nodes)
        self._memory = memory
        if self.many:
            self._many(nodes, what)
        else:
            one = not isinstance(nodes, (list, tuple))
            self._some([nodes] if one else list(nodes), one, what)
        self.outs = ffi.cast("float *const *", ffi.from_buffer(self._addresses)) if self.n else ffi.NULL

    def _some(self, nodes: list[Any], one: bool, what: str) -> None:
        made = same_graph(nodes, what) if nodes else []
        shapes = [x.shape for x in made]
        arrays = [self._memory.empty(cols, rows) for rows, cols in shapes]
        self.n = len(made)
        self.epoch = made[0]._e if made else None
        self.ids: Any = ffi.new("uint32_t[]", [x.id for x in made])
        self._addresses = np.array([self._memory.address(a) for a in arrays], np.uintp)
        self.result: Any = shaped(arrays[0]) if one else [shaped(a) for a in arrays]

    def _many(self, nodes: Nodes, what: str) -> None:
        self.n = n = len(nodes)
        self.epoch = e = nodes._e
        self._nodes = nodes  # keeps the numbers that C reads alive
        self.ids = u32_pointer(nodes.ids)
        if not n:
            self.result, self._addresses = self._memory.empty(0), np.empty(0, np.uintp)
            return
        shapes = np.empty(n, np.uint64)
        if not lib.glue_shapes(e.p, n, self.ids, pointer(shapes, "uint64_t[]", written=True)):
            raise e.failure()
        if (shapes != shapes[0]).any():
            raise ArgumentError(f"{what}: nodes of several shapes; expected one, or a list of nodes")
        rows, cols = int(shapes[0]) >> 32, int(shapes[0]) & 0xFFFFFFFF
        out = self._memory.empty(n, cols, rows)
        self._addresses = np.uintp(self._memory.address(out)) + np.arange(n, dtype=np.uintp) * np.uintp(4 * rows * cols)
        self.result = out[:, 0, 0] if rows == cols == 1 else out[:, 0] if cols == 1 else out.swapaxes(1, 2)


def laid_out(a: F32, many: bool) -> F32:
    """Reorders the value of a node, or of several (`many`), to the library's order: column after column."""
    return np.ascontiguousarray(a.transpose(0, 2, 1) if many and a.ndim == 3 else a if many else a.T)


def addresses_of(address: int, size: int, n: int) -> NDArray[np.uintp]:
    """Returns the addresses of n nodes' values, which share one array of `size` bytes equally."""
    return np.uintp(address) + np.arange(n, dtype=np.uintp) * np.uintp(size // max(n, 1))


class Joined:
    """Several nodes (each a `Node`, or `Nodes` of a graph) whose values one call reads; `result` has an array for each."""

    def __init__(self, nodes: Sequence[Any], what: str, memory: Any = Host) -> None:
        self.parts = [Places(x, what, memory) for x in nodes]
        self.n = sum(p.n for p in self.parts)
        self.result: list[F32] = [p.result for p in self.parts]
        self.many = False
        self.epoch: Any = self.parts[0].epoch if self.parts else None
        self._ids = np.concatenate([x.ids if isinstance(x, Nodes) else np.array([x.id], np.uint32) for x in nodes] or [np.empty(0, np.uint32)])
        self._all = np.concatenate([p._addresses for p in self.parts] or [np.empty(0, np.uintp)])
        self.ids = u32_pointer(self._ids)
        self.outs = ffi.cast("float *const *", ffi.from_buffer(self._all)) if self.n else ffi.NULL
        if len({id(p.epoch) for p in self.parts}) > 1:
            raise ArgumentError(f"{what}: nodes of two graphs, or of a graph before and after it was cleared")
