"""Arrays into which C writes the values of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from ._arrays import U32, pointer, u32_pointer
from ._vpps import ffi, lib
from .errors import ArgumentError
from .node import Node, Nodes, same_graph

Named = Union[Node, Nodes, Sequence[Node]]


def shaped(columns: Any) -> Any:
    """Returns a node's values (cols x rows numbers, as C has them; or those of many nodes) in the shape (), (rows,) or (rows, cols)."""
    cols, rows = columns.shape[-2:]
    return columns.reshape(columns.shape[:-2]) if rows == cols == 1 else columns[..., 0, :] if cols == 1 else columns.swapaxes(-1, -2)


def host(*shape: int) -> Any:
    """Makes a NumPy array as memory for C's results. Callers that want PyTorch's tensors pass another function instead."""
    return np.empty(shape, np.float32)


class Places:
    """Memory for the values of `n` nodes. C takes the nodes' numbers `ids` and the values' addresses `outs`, valid as long as this object.
    Python sees the values as `result`."""

    def __init__(self, nodes: Any, what: str, memory: Any = host) -> None:
        """`nodes`: a node, a list of nodes of one graph, or `Nodes` of one shape. `what` names them in messages; `memory` makes arrays."""
        self.many = isinstance(nodes, Nodes)
        if self.many:
            self.epoch, ids = nodes._e, nodes.ids
            cols, rows = self._cols_and_rows(ids, what) if len(ids) else (1, 1)
            out = memory(len(ids), cols, rows)
            self.result: Any = shaped(out)
            addresses = addresses_of(_address(out), 4 * cols * rows * len(ids), len(ids))
        else:
            one = not isinstance(nodes, (list, tuple))
            made = same_graph([nodes] if one else nodes, what) if one or nodes else []
            arrays = [memory(cols, rows) for rows, cols in [x.shape for x in made]]
            self.epoch, ids = made[0]._e if made else None, np.array([x.id for x in made], np.uint32)
            self.result = shaped(arrays[0]) if one else [shaped(a) for a in arrays]
            addresses = np.array([_address(a) for a in arrays], np.uintp)
        self._point(ids, addresses)

    def _point(self, ids: U32, addresses: NDArray[np.uintp]) -> None:
        self.n, self._ids, self._addresses = len(ids), ids, addresses
        self.ids = u32_pointer(ids)
        self.outs = ffi.cast("float *const *", ffi.from_buffer(addresses)) if self.n else ffi.NULL

    def _cols_and_rows(self, ids: U32, what: str) -> tuple[int, int]:
        shapes = np.empty(len(ids), np.uint64)
        if not lib.glue_shapes(self.epoch.p, len(ids), u32_pointer(ids), pointer(shapes, "uint64_t[]", written=True)):
            raise self.epoch.failure()
        if (shapes != shapes[0]).any():
            raise ArgumentError(f"{what}: nodes of several shapes; expected one, or a list of nodes")
        return int(shapes[0]) & 0xFFFFFFFF, int(shapes[0]) >> 32


def _address(a: Any) -> int:
    return a.ctypes.data if isinstance(a, np.ndarray) else a.data_ptr()


def columns_of(a: Any, many: bool) -> Any:
    """Transposes a matrix, or (`many`) each of several, since C has matrices column after column; returns other values as they are."""
    return a.swapaxes(-1, -2) if a.ndim == 2 + many else a


def addresses_of(address: int, size: int, n: int) -> NDArray[np.uintp]:
    """Returns the addresses of n values of equal size in an array of `size` bytes at `address`."""
    return np.uintp(address) + np.arange(n, dtype=np.uintp) * np.uintp(size // max(n, 1))


class Joined(Places):
    """Memory for the values of several `Node` and `Nodes` of one graph, which one call of C computes; `result` has an array for each."""

    def __init__(self, nodes: Sequence[Any], what: str, memory: Any = host) -> None:
        self.parts = [Places(x, what, memory) for x in nodes]
        self.many, self.result = False, [p.result for p in self.parts]
        self.epoch = self.parts[0].epoch if self.parts else None
        self._point(np.concatenate([np.empty(0, np.uint32), *(p._ids for p in self.parts)]),
                    np.concatenate([np.empty(0, np.uintp), *(p._addresses for p in self.parts)]))
        if len({id(p.epoch) for p in self.parts}) > 1:
            raise ArgumentError(f"{what}: nodes of two graphs, or of a graph before and after it was cleared")
