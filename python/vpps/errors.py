"""Exceptions: one class for each status of the library, with the library's message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn, SupportsIndex, TypeVar

from ._vpps import ffi, lib

Closes = TypeVar("Closes", bound="Closing")


class Error(Exception):
    """The base of all exceptions of the library. `status` is the name of the C library's status, such as "SHAPE"."""

    status = ""

    def __init_subclass__(cls, status: str = "") -> None:
        cls.status = status or cls.status


class ArgumentError(Error, ValueError, status="ARGUMENT"):
    """An argument is out of its range."""

class ShapeError(Error, ValueError, status="SHAPE"):
    """Operand shapes do not fit."""

class OutOfMemoryError(Error, MemoryError, status="MEMORY"):
    """Memory is exhausted, the host's or the device's."""

class PoolError(Error, MemoryError, status="POOL"):
    """The batch does not fit the memory for it (`pool_bytes`)."""

class FileError(Error, OSError, status="IO"):
    """A file could not be read or written."""

class FormatError(Error, ValueError, status="FORMAT"):
    """A file's content does not follow its format."""

class DeviceError(Error, RuntimeError, status="DEVICE"):
    """The device is missing or failed."""

class StallError(Error, RuntimeError, status="STALL"):
    """The device, or another process, made no progress for `watchdog_ms`."""

class NonfiniteError(Error, ArithmeticError, status="NONFINITE"):
    """The loss or its gradient is not finite."""

class ScriptError(Error, RuntimeError, status="SCRIPT"):
    """A script (the program that the library writes for a batch) failed verification."""

class StateError(Error, RuntimeError, status="STATE"):
    """The call does not fit the object's state."""


class Uncopied:
    """An object that cannot be copied or pickled, since it stands for an object of the C library."""

    __slots__ = ()
    _instead = ""  # end of the message that refuses a copy: what to use instead

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(f"{type(self).__name__}: an object that can be neither copied nor pickled{self._instead}")


class Closing(Uncopied):
    """An object that is closed at the end of `with`."""

    __slots__ = ()

    close: Any  # a method, which subclasses define

    def __enter__(self: Closes) -> Closes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _missing(name: str, hint: str) -> property:
    def fail(self: object, *_: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name}: not here; {hint}")

    fail.__doc__ = f"Not here; {hint}."
    return property(fail, fail)


class Hinting(Uncopied):
    """Base class that makes each name in `_elsewhere`, as "detach", a property that raises AttributeError with a hint (`__getattr__` is slow)."""

    __slots__ = ()
    _elsewhere: Mapping[str, str] = {}

    def __init_subclass__(cls) -> None:
        cls._elsewhere = {name: hint for names, hint in cls._elsewhere.items() for name in names.split()}
        for name, hint in cls._elsewhere.items():
            if not hasattr(cls, name):
                setattr(cls, name, _missing(name, hint))

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in self._elsewhere]


CLASSES: dict[str, type[Error]] = {c.status: c for c in Error.__subclasses__()}


def message() -> str:
    """The message of this thread's last failed call."""
    return ffi.string(lib.vpps_error_message()).decode(errors="replace")


def error_of(status: int) -> Error:
    """The exception for a status that is not OK."""
    name: str = ffi.string(lib.vpps_status_name(status)).decode()
    return CLASSES.get(name, Error)(message() or name)


def check(status: int) -> None:
    if status:
        raise error_of(status)


def sized(type_name: str) -> Any:
    """Makes a C struct of the interface, and sets its first member, the struct's size."""
    x = ffi.new(f"{type_name} *")
    x.size = ffi.sizeof(type_name)
    return x


def written(call: Callable[..., int], n: int = 1) -> list[bytes]:
    """Runs `call`, which lets C write to the n FILEs that it is given and returns C's status; returns what C wrote to each."""
    texts, sizes, files = ffi.new("char *[]", n), ffi.new("size_t[]", n), []
    try:
        try:
            for i in range(n):
                files.append(lib.open_memstream(texts + i, sizes + i))
            status = call(*files) if all(files) else lib.VPPS_MEMORY
        finally:
            whole = not any([lib.fclose(file) for file in files if file])
        check(status)
        if not whole:
            raise OutOfMemoryError("no memory for a text")
        return [ffi.buffer(texts[i], sizes[i])[:] for i in range(n)]
    finally:
        for text in texts:
            lib.free(text)


def result(call: Any, *arguments: Any) -> Any:
    """Calls C with one more argument, the address of a result, and returns the result."""
    out = ffi.new(ffi.typeof(call).args[-1].cname)
    check(call(*arguments, out))
    return out[0]
