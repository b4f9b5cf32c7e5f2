"""A training step in two halves: forward, then a loss computed by the caller, then backward from that loss's gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._arrays import DEFAULT_STREAM, F32, OnGpu, as_f32, is_on_gpu
from ._values import Places, addresses_of, columns_of
from ._vpps import ffi, lib
from .errors import ArgumentError, StateError, Uncopied, check

if TYPE_CHECKING:
    from .trainer import Trainer


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
