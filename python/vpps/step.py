"""What a step gives and takes: memory for the values and gradients of nodes, and training steps in two halves, forward and backward, between
which the caller computes a loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy as np
from numpy.typing import NDArray

from ._arrays import DEFAULT_STREAM, F32, U32, OnGpu, as_f32, is_on_gpu, pointer, u32_pointer
from ._vpps import ffi, lib
from .errors import ArgumentError, StateError, Uncopied, check
from .node import Node, Nodes, same_graph

if TYPE_CHECKING:
    from .trainer import Trainer

Named = Union[Node, Nodes, Sequence[Node]]


def shaped(columns: Any) -> Any:
    """Turns values from C, an array of (..., cols, rows) since C has matrices column by column, to (...), (..., rows) or (..., rows, cols)."""
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


def _placed(gradient: Any, value: F32, many: bool, gpu: int | None, what: str) -> tuple[int, Any]:
    """Returns the address of a value's gradient, on the host or on GPU `gpu`, and the object that owns the memory there; 0 for None (zeros)."""
    if gradient is None:
        return 0, None
    g: F32 | OnGpu = as_f32(gradient, what) if gpu is None else OnGpu(gradient, gpu, what)
    if g.shape != value.shape:
        raise ArgumentError(f"{what}: {'an array' if gpu is None else 'a tensor'} of shape {g.shape}; expected {value.shape}, the value's")
    if not isinstance(g, OnGpu):
        g = np.ascontiguousarray(columns_of(g, many))
        return g.ctypes.data, g
    if not many:
        g.columns(what)
    elif len(g.shape) > 2 or not g.by_rows:
        raise ArgumentError(f"{what}: a tensor of shape {g.shape} on a GPU; expected vectors, contiguous: x.contiguous()")
    return g.address, g


class Step(Uncopied):
    """An open step, made by `Trainer.step_forward`: it has run forward, not yet backward. `values`: values of nodes, as from `Trainer.forward`.

    `backward` completes and closes the step. Without `backward`, the step closes by `drop`, at the end of `with step:`, or when nothing refers
    to it any more. While a step is open, every other call of the trainer raises StateError."""

    def __init__(self, trainer: Trainer, values: Places, gradients: Places | None) -> None:
        self._trainer, self._places, self._asked = trainer, values, gradients
        self._is_open = True

    @property
    def values(self) -> Any:
        """The values of the nodes that `step_forward` named."""
        return self._places.result

    def __repr__(self) -> str:
        return f"<{'open' if self._is_open else 'closed'} step of {self._places.n} values>"

    def backward(self, gradients: Any) -> Any:
        """Runs backward from `gradients`, those of the caller's loss with respect to `values`: an array for an array, a list for a list, in which
        None stands for zeros. Adds to the parameters' gradients as `Trainer.backward` does, and returns the gradients that `step_forward` named,
        or None. Then the step is closed; only after an exception about `gradients` it is still open.

        Gradients that are not finite raise no exception here: `Trainer.update` does what `nonfinite` says."""
        places = self._places
        if isinstance(places.result, list):
            values, given = places.result, list(gradients)
            if len(given) != len(values):
                raise ArgumentError(f"gradients: {len(given)}; expected {len(values)}, one for each value")
        else:
            values, given = [places.result], [gradients]
        what = [f"gradients[{i}]" if len(values) > 1 else "gradients" for i in range(len(values))]
        gpu, n = self._trainer._gpu if any(map(is_on_gpu, given)) else None, places.n // max(len(values), 1)
        placed = [_placed(g, v, places.many, gpu, w) for g, v, w in zip(given, values, what)]
        self._go_on([addresses_of(at, 4 * v.size if at else 0, n) for (at, _), v in zip(placed, values)], None if gpu is None else DEFAULT_STREAM)
        return None if self._asked is None else self._asked.result

    def _go_on(self, at: list[NDArray[np.uintp]], stream: int | None = None) -> None:
        """Runs the backward pass with gradients at the addresses `at` (0: zeros), on the host, or, with a CUDA `stream`, on the GPU."""
        t = self._trainer
        with t._lock:
            if not self._is_open:
                raise StateError("backward: the step is closed; expected one step_forward for each backward")
            all_of = np.concatenate(at or [np.zeros(0, np.uintp)])
            to = ffi.cast("const float *const *", ffi.from_buffer(all_of)) if len(all_of) else ffi.NULL
            with t._arrays_at(stream):
                check(lib.vpps_step_backward(t._c, len(all_of), to))
            self._close()

    def drop(self) -> None:
        """Closes the step without backward, as if forward had not run. A closed step stays closed."""
        with self._trainer._lock:
            if self._is_open:
                self._close()
                check(lib.vpps_step_drop(self._trainer._c))

    def _close(self) -> None:
        self._is_open = self._trainer._is_open = False

    def __enter__(self) -> Step:
        return self

    def __exit__(self, *_: object) -> None:
        if self._trainer._handle:
            self.drop()

    def __del__(self) -> None:
        if getattr(self, "_is_open", False):
            self._trainer._left_open = True  # __del__ runs in any thread and only notes the end; the library's next call drops the step
