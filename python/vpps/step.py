"""A training step in two halves: forward, then a loss computed by the caller, then backward from that loss's gradients."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from ._arrays import F32, as_f32
from ._values import Joined, Places, addresses_of, laid_out
from ._vpps import ffi, lib
from .errors import ArgumentError, StateError, Uncopied, check

if TYPE_CHECKING:
    from .trainer import Trainer


def _checked(gradient: Any, value: F32, what: str) -> F32:
    """The gradient as an array; fails if its shape is not the value's."""
    g = as_f32(gradient, what)
    if g.shape != value.shape:
        raise ArgumentError(f"{what}: an array of shape {g.shape}; expected {value.shape}, the value's")
    return g


class Step(Uncopied):
    """An open step, as `Trainer.step_forward` returns it: `values` are the values of its nodes, in arrays as `Trainer.forward` gives them.

    `backward` closes it, and so do `drop`, the end of `with step:`, and the last reference's end, which give it up. Until then every other
    call of the trainer raises StateError."""

    def __init__(self, trainer: Trainer, values: Places | Joined, gradients: Places | Joined | None) -> None:
        self._trainer, self._places, self._asked = trainer, values, gradients
        self._is_open = True

    @property
    def values(self) -> Any:
        """The values of the nodes that `step_forward` named."""
        return self._places.result

    def __repr__(self) -> str:
        return f"<{'open' if self._is_open else 'closed'} step of {self._places.n} values>"

    def backward(self, gradients: Any) -> Any:
        """Goes on from the gradients of the caller's loss with respect to `values`: an array for an array, a list for a list, in which None
        stands for zeros. Adds to the parameters' gradients as `Trainer.backward` does, and returns the gradients that `step_forward` named, or
        None. The step is closed then; after an exception about the gradients it is still open.

        A gradient that is not finite is no failure before `Trainer.update`, which then does what `nonfinite` says."""
        places = self._places
        if isinstance(places.result, list):
            values, given = places.result, list(gradients)
            if len(given) != len(values):
                raise ArgumentError(f"gradients: {len(given)}; expected {len(values)}, one for each value")
        else:
            values, given = [places.result], [gradients]
        self._go_on([None if g is None else laid_out(_checked(g, v, f"gradients[{i}]" if len(values) > 1 else "gradients"), places.many)
                     for i, (g, v) in enumerate(zip(given, values))], [places.n // max(len(values), 1)] * len(values))
        return None if self._asked is None else self._asked.result

    def _go_on(self, given: list[F32 | None], counts: list[int]) -> None:
        """Runs the backward half. `given` has arrays of gradients in the library's order, each for so many nodes as `counts` says; None:
        zeros."""
        t = self._trainer
        with t._lock:
            if not self._is_open:
                raise StateError("backward: the step is closed; expected one step_forward for each backward")
            at = [np.zeros(n, np.uintp) if g is None else addresses_of(g, n) for g, n in zip(given, counts)]
            all_of = np.concatenate(at or [np.zeros(0, np.uintp)])
            to = ffi.cast("const float *const *", ffi.from_buffer(all_of)) if len(all_of) else ffi.NULL
            check(lib.vpps_step_backward(t._c, len(all_of), to))
            self._close()

    def drop(self) -> None:
        """Gives the step up; forward has changed nothing. A closed step stays closed."""
        with self._trainer._lock:
            if self._is_open:
                self._close()
                check(lib.vpps_step_drop(self._trainer._c))

    def _close(self) -> None:
        self._is_open = self._trainer._is_open = False

    def __enter__(self) -> Step:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if self._trainer._handle:
            self.drop()

    def __del__(self) -> None:
        if getattr(self, "_is_open", False):
            self._trainer._left_open = True  # runs in any thread; the next call of the library drops the step
