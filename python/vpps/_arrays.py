"""From Python's values to C's arrays: without copies where type and layout fit, never with a number changed silently."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._vpps import ffi
from .errors import ArgumentError

U32 = NDArray[np.uint32]
F32 = NDArray[np.float32]
Floats = Union[ArrayLike, Any]  # anything with __dlpack__, too

LARGEST = 2**32 - 1


def as_u32(x: ArrayLike, what: str) -> U32:
    """Whole numbers from 0 to 2^32 - 1, side by side."""
    a = np.asarray(x)
    if a.dtype == np.uint32:
        return np.ascontiguousarray(a)
    if a.size == 0:
        return np.zeros(a.shape, np.uint32)
    if a.dtype.kind not in "iub":
        raise ArgumentError(f"{what}: numbers of type {a.dtype}; expected whole numbers")
    low, high = int(a.min()), int(a.max())
    if low < 0 or high > LARGEST:
        raise ArgumentError(f"{what}: {low if low < 0 else high}; expected 0 to {LARGEST}")
    return np.ascontiguousarray(a, dtype=np.uint32)


def as_f32(x: Floats) -> F32:
    """float32 on the host: an array, a tensor of another library by DLPack, or numbers."""
    if not isinstance(x, np.ndarray) and hasattr(x, "__dlpack__"):
        if hasattr(x, "detach"):
            x = x.detach()
        a: NDArray[Any] = np.from_dlpack(x)  # type: ignore[arg-type]
    else:
        a = np.asarray(x)
    if a.dtype.kind not in "fiub":
        raise ArgumentError(f"numbers of type {a.dtype}; expected real ones")
    return a.astype(np.float32, copy=False)


def columns(a: F32) -> tuple[int, int, F32]:
    """Rows, columns and the elements as a node has them, column after column; no copy of a contiguous vector or of a matrix in
    Fortran's order."""
    if a.ndim > 2:
        raise ArgumentError(f"an array of {a.ndim} dimensions; expected at most 2: rows x cols")
    if a.ndim < 2:
        flat = np.ascontiguousarray(a).reshape(-1)
        return flat.size, 1, flat
    return a.shape[0], a.shape[1], np.ascontiguousarray(a.T)


def pointer(a: NDArray[Any], ctype: str) -> Any:
    """The address of a contiguous array's elements; NULL of none."""
    return ffi.from_buffer(ctype, a) if a.size else ffi.NULL


def u32_pointer(a: U32 | None) -> Any:
    return ffi.NULL if a is None or not a.size else ffi.from_buffer("uint32_t[]", a)


def encode(text: str, what: str) -> bytes:
    """UTF-8 without NUL, which C would take for the end."""
    data = text.encode("utf-8", "surrogateescape")
    if b"\0" in data:
        raise ArgumentError(f"{what}: {text!r} holds NUL")
    return data


def ragged(rows: Iterable[Iterable[int]], what: str = "members") -> tuple[U32, U32]:
    """Rows of different lengths as one array after the other: where each begins (one number more than there are rows), and all
    numbers."""
    lists = [list(r) for r in rows]
    first = np.zeros(len(lists) + 1, np.uint32)
    np.cumsum([len(r) for r in lists], out=first[1:])
    return first, as_u32([x for r in lists for x in r], what)
