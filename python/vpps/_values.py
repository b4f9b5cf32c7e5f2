"""Arrays for the values of nodes, which C fills in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import numpy as np

from ._arrays import F32, u32_pointer
from ._vpps import ffi, lib
from .errors import ArgumentError
from .node import Node, Nodes, same_graph

Named = Union[Node, Nodes, Sequence[Node]]


def shaped(columns: F32) -> F32:
    """cols x rows numbers as a value of its own number of dimensions."""
    cols, rows = columns.shape
    return columns.reshape(()) if rows == cols == 1 else columns[0] if cols == 1 else columns.T


class Places:
    """Where the values of `n` nodes go: `ids` and `outs` are for C, `result` is what Python sees. The arrays live as long as this."""

    def __init__(self, nodes: Any, what: str) -> None:
        """Nodes of one graph: one, some of any shapes, or `Nodes` of one shape. `what` is for messages."""
        if isinstance(nodes, Nodes):
            self._many(nodes, what)
        else:
            one = not isinstance(nodes, (list, tuple))
            self._some([nodes] if one else list(nodes), one, what)
        self.outs = ffi.cast("float *const *", ffi.from_buffer(self._addresses)) if self.n else ffi.NULL

    def _some(self, nodes: list[Any], one: bool, what: str) -> None:
        made = same_graph(nodes, what) if nodes else []
        shapes = [x.shape for x in made]
        arrays = [np.empty((cols, rows), np.float32) for rows, cols in shapes]
        self.n = len(made)
        self.epoch = made[0]._e if made else None
        self.ids: Any = ffi.new("uint32_t[]", [x.id for x in made])
        self._addresses = np.array([a.ctypes.data for a in arrays], np.uintp)
        self.result: Any = shaped(arrays[0]) if one else [shaped(a) for a in arrays]

    def _many(self, nodes: Nodes, what: str) -> None:
        self.n = n = len(nodes)
        self.epoch = e = nodes._e
        self._nodes = nodes  # whose numbers C reads
        self.ids = u32_pointer(nodes.ids)
        if not n:
            self.result, self._addresses = np.empty((0,), np.float32), np.empty(0, np.uintp)
            return
        shapes = np.empty(n, np.uint64)
        if not lib.glue_shapes(e.p, n, self.ids, ffi.from_buffer("uint64_t[]", shapes)):
            raise e.failure()
        if (shapes != shapes[0]).any():
            raise ArgumentError(f"{what}: nodes of several shapes; expected one, or a list of nodes")
        rows, cols = int(shapes[0]) >> 32, int(shapes[0]) & 0xFFFFFFFF
        out = np.empty((n, cols, rows), np.float32)
        self._addresses = np.uintp(out.ctypes.data) + np.arange(n, dtype=np.uintp) * np.uintp(4 * rows * cols)
        self.result = out[:, 0, 0] if rows == cols == 1 else out[:, 0] if cols == 1 else out.transpose(0, 2, 1)
