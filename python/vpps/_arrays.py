"""Converts Python's values to arrays for C. Arrays whose type and layout fit are not copied, and no number is changed silently."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping
from typing import Any, SupportsIndex, Union
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._vpps import ffi, lib
from .errors import ArgumentError

U32 = NDArray[np.uint32]
F32 = NDArray[np.float32]
Floats = Union[ArrayLike, Any]  # anything with __dlpack__, too
Path = Union[str, "os.PathLike[str]"]

LARGEST = 2**32 - 1
LARGEST_FLOAT = float(np.finfo(np.float32).max)
KDL_CUDA = 2  # DLPack's number of the memory of NVIDIA's GPUs
DEFAULT_STREAM = 1  # number of CUDA's default stream, in DLPack and in CUDA's driver
PLAIN = {int, float, bool}  # types of list elements that cannot hold elements masked out by NumPy


def integer(x: SupportsIndex, what: str) -> int:
    """Returns x as an integer, by operator.index, which refuses numbers such as 1.9."""
    try:
        return operator.index(x)
    except TypeError:
        if hasattr(x, "__index__") and not isinstance(x, (np.ndarray, np.generic)):
            raise  # the exception of __index__ itself says why
        raise TypeError(f"{what}: {x!r}; expected a whole number") from None


def whole(x: SupportsIndex, what: str, most: int = LARGEST) -> int:
    """Returns x as a whole number from 0 to `most`; fails for any other x."""
    n = integer(x, what)
    if not 0 <= n <= most:
        raise ArgumentError(f"{what}: {n}; expected a whole number from 0 to {most}")
    return n


def place(i: SupportsIndex, n: int, what: str) -> int:
    """Returns i as an index from 0 to n - 1; a negative i counts from the end. Fails if i is out of range."""
    k = integer(i, what)
    if not -n <= k < n:
        raise IndexError(f"{what} {k} of {n}")
    return k + n if k < 0 else k


def names_of(prefix: str) -> dict[str, int]:
    """Returns the numbers of a C enum by their names, in small letters, without the prefix."""
    return {n[len(prefix):].lower(): getattr(lib, n) for n in dir(lib) if n.startswith(prefix)}


def choice(name: str, what: str, of: Mapping[str, int]) -> int:
    """The number that `of` has for a name, whose letters may be capital or small; fails if `of` lacks the name."""
    found = of.get(name.lower()) if isinstance(name, str) else None
    if found is None:
        import difflib

        near = difflib.get_close_matches(str(name).lower(), of, 1)
        raise ArgumentError(f"{what}: {name!r}; expected one of {', '.join(sorted(of))}" + (f". Did you mean {near[0]!r}?" if near else ""))
    return found


def is_masked(x: Any) -> bool:
    """Whether x, or an array in the list x, has elements that NumPy masks out."""
    if isinstance(x, np.ma.MaskedArray):
        return bool(np.ma.is_masked(x))
    return isinstance(x, (list, tuple)) and not {*map(type, x)} <= PLAIN and any(map(is_masked, x))


def of_dlpack(x: Any, what: str) -> NDArray[Any]:
    """Returns x, a tensor of another library in the host's memory, as an array; fails for a tensor on another device."""
    try:
        kind, _ = x.__dlpack_device__()
        if kind in (1, 3):  # kDLCPU, kDLCUDAHost
            return np.from_dlpack(x.detach() if hasattr(x, "detach") else x)
    except (BufferError, RuntimeError, ValueError) as e:
        raise TypeError(f"{what}: a tensor that DLPack does not pass to NumPy: {e}") from None
    raise TypeError(f"{what}: a tensor on {getattr(x, 'device', f'DLPack device {kind}')}; expected one on the CPU, as x.cpu()")


def is_on_gpu(x: Any) -> bool:
    """Whether x is a tensor of another library in a GPU's memory."""
    return not isinstance(x, (np.ndarray, list, tuple, float, int)) and hasattr(x, "__dlpack_device__") and x.__dlpack_device__()[0] == KDL_CUDA


class OnGpu:
    """A float32 tensor of another library in the memory of GPU `gpu`, read by DLPack: its address, its shape, and whether it lies row after
    row or column after column. Later work in CUDA's default stream waits for work that the library has queued on the tensor."""

    def __init__(self, x: Any, gpu: int, what: str) -> None:
        kind, number = x.__dlpack_device__() if hasattr(x, "__dlpack_device__") else (1, 0)
        if (kind, number) != (KDL_CUDA, gpu):
            came = f"cuda:{number}" if kind == KDL_CUDA else "the CPU" if kind == 1 else f"DLPack device {kind}"
            raise TypeError(f"{what}: a tensor on {came}; expected one on cuda:{gpu}, where the engine is")
        self.capsule = (x.detach() if hasattr(x, "detach") else x).__dlpack__(stream=DEFAULT_STREAM)
        t = lib.glue_dlpack(id(self.capsule))
        if not t or (t.code, t.bits, t.lanes) != (2, 32, 1):
            raise TypeError(f"{what}: a tensor on cuda:{gpu} of {getattr(x, 'dtype', 'another type')}; expected float32")
        self.shape = tuple(t.shape[0:t.ndim])
        self.address = int(ffi.cast("uintptr_t", t.data)) + t.byte_offset
        by_rows = [int(np.prod(self.shape[i + 1:])) for i in range(t.ndim)]
        strides = list(t.strides[0:t.ndim]) if t.strides else by_rows
        self.by_rows, self.by_columns = (0 in self.shape or all(n == 1 or s == w for n, s, w in zip(self.shape, strides, wanted))
                                         for wanted in (by_rows, [1, *self.shape[:1]]))

    def columns(self, what: str) -> tuple[int, int]:
        """Rows and columns of a scalar, a vector, or a matrix whose columns lie one after the other."""
        if len(self.shape) > 2:
            raise ArgumentError(f"{what}: a tensor of {len(self.shape)} dimensions; expected at most 2: rows x cols")
        if not self.by_columns:
            raise ArgumentError(f"{what}: a tensor on a GPU that does not lie column after column; expected x.t().contiguous().t(), or of a "
                                "vector x.contiguous()")
        rows, cols, *_ = [*self.shape, 1, 1]
        return rows, cols


def plain(x: Any, what: str) -> NDArray[Any]:
    """Returns x as an array; fails if x is a masked array that leaves out elements."""
    if not isinstance(x, np.ndarray) and hasattr(x, "__dlpack__"):
        return of_dlpack(x, what)
    if is_masked(x):
        raise ArgumentError(f"{what}: a masked array; expected no hidden elements: x.filled(value) puts a value there")
    return np.asarray(x)


def as_u32(x: ArrayLike, what: str) -> U32:
    """A contiguous array of whole numbers from 0 to 2^32 - 1."""
    a = plain(x, what)
    if a.dtype == np.uint32:
        return np.ascontiguousarray(a)
    if a.size == 0:
        return np.zeros(a.shape, np.uint32)
    if a.dtype.kind not in "iu":
        hint = ": np.flatnonzero(mask) has the places of a mask" if a.dtype.kind == "b" else ""
        raise ArgumentError(f"{what}: numbers of type {a.dtype}; expected whole numbers{hint}")
    low, high = int(a.min()), int(a.max())
    if low < 0 or high > LARGEST:
        raise ArgumentError(f"{what}: {low if low < 0 else high}; expected 0 to {LARGEST}")
    return np.ascontiguousarray(a, dtype=np.uint32)


def as_f32(x: Floats, what: str) -> F32:
    """Converts numbers, an array, or another library's tensor on the host to a float32 array. Real numbers are rounded. Numbers too large for
    float32, and whole numbers that float32 cannot hold exactly, are refused."""
    a = plain(x, what)
    if a.dtype == np.float32:
        return a
    if a.dtype.kind not in "fiub":
        raise ArgumentError(f"{what}: numbers of type {a.dtype}; expected real ones")
    if a.dtype.kind == "f" and a.size and float(np.abs(a).max()) <= LARGEST_FLOAT:
        return a.astype(np.float32)  # the usual case, without the tests below
    with np.errstate(over="ignore"):
        f: F32 = a.astype(np.float32)
    wrong = np.isinf(f) & np.isfinite(a) if a.dtype.kind == "f" else f.astype(np.longdouble) != a.astype(np.longdouble)
    if wrong.any():
        expected = ("numbers that float32 holds: up to 3.4e38" if a.dtype.kind == "f" else
                    "whole numbers that float32 holds, as all up to 2^24: astype(float) lets others be rounded")
        raise ArgumentError(f"{what}: {a[wrong].flat[0]}; expected {expected}")
    return f


def leaf_only(x: Any, what: str) -> None:
    """Refuses tensors that require a gradient: a graph does not give gradients of its inputs back to tensors."""
    if getattr(x, "requires_grad", False) is True:
        raise ArgumentError(f"{what}: a tensor that requires a gradient, which it would not get; expected x.detach(), or the tensor among the "
                            "arguments of a vpps.torch.Module")


def real(x: Any, what: str) -> float:
    """Returns the number x as a Python float; fails if x is an array, no number, too large for float32, or an integer that it would round."""
    if type(x) in (float, int) and -(2**24) <= x <= 2**24:
        return float(x)
    a = as_f32(x, what)
    if a.ndim:
        raise TypeError(f"{what}: an array of shape {a.shape}; expected a number")
    return float(a)


def columns(a: F32) -> tuple[int, int, F32]:
    """Returns rows, columns, and the elements column after column, as a node stores them; copies elements that lie otherwise."""
    if a.ndim > 2:
        raise ArgumentError(f"an array of {a.ndim} dimensions; expected at most 2: rows x cols")
    if a.ndim < 2:
        flat = np.ascontiguousarray(a).reshape(-1)
        return flat.size, 1, flat
    return a.shape[0], a.shape[1], np.ascontiguousarray(a.T)


def pointer(a: NDArray[Any], ctype: str, *, written: bool = False) -> Any:
    """The address of a contiguous array's elements; NULL if there are none. `written`: C writes the elements; a read-only array fails."""
    return ffi.from_buffer(ctype, a, require_writable=written) if a.size else ffi.NULL


def u32_pointer(a: U32 | None) -> Any:
    return ffi.NULL if a is None or not a.size else ffi.from_buffer("uint32_t[]", a)


def encode(text: str, what: str) -> bytes:
    """The text as UTF-8; a NUL, which ends a text in C, is refused."""
    if not isinstance(text, str):
        raise TypeError(f"{what}: {text!r}; expected text")
    data = text.encode("utf-8", "surrogateescape")
    if b"\0" in data:
        raise ArgumentError(f"{what}: {text!r} holds NUL")
    return data


_kept: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()  # for each C struct, what its members point to


def keeping(o: Any, *owned: Any) -> Any:
    """Returns the C struct o, and keeps the objects `owned`, to whose memory its members point, alive as long as the struct."""
    _kept.setdefault(o, []).extend(owned)
    return o


def fill(o: Any, given: Mapping[str, Any], enums: Mapping[str, Mapping[str, int]] = {}) -> Any:  # noqa: B006
    """Sets members of the C struct o to the values that `given` has under their names: whole numbers, texts, or, for an enum, a name, which
    enums[member] maps to a number. Members without a value, or with None, stay as they are. Returns o."""
    for name, member in ffi.typeof(o).item.fields:
        value, kind = given.get(name), member.type
        if value is None:
            continue
        if kind.kind == "enum":
            setattr(o, name, choice(value, name, enums[name]))
        elif kind.cname == "_Bool":
            setattr(o, name, value if isinstance(value, (bool, np.bool_)) else whole(value, name, 1))
        elif kind.kind == "primitive":
            setattr(o, name, whole(value, name, 2 ** (8 * ffi.sizeof(kind)) - 1))
        elif kind.cname == "char *":
            text = ffi.new("char[]", encode(value, name))
            setattr(keeping(o, text), name, text)
    return o


def struct(ctype: str, given: Mapping[str, Any]) -> Any:
    """Makes a C struct of type `ctype`, whose members have the values that `given` has under their names; others are zero."""
    return fill(ffi.new(f"{ctype} *"), given)


def path_bytes(path: Path) -> bytes:
    """The path as C takes it; a NUL, which would end the path there, is refused."""
    data = os.fsencode(path)
    if b"\0" in data:
        raise ArgumentError(f"path {os.fspath(path)!r} holds NUL")
    return data


def ragged(rows: Iterable[Iterable[int]], what: str = "members") -> tuple[U32, U32]:
    """Joins rows of different lengths: row i is numbers[first[i]:first[i + 1]] of the arrays (first, numbers) that this returns."""
    lists = [list(r) for r in rows]
    first = np.zeros(len(lists) + 1, np.uint32)
    np.cumsum([len(r) for r in lists], out=first[1:])
    return first, as_u32([x for r in lists for x in r], what)
