"""The base of trainers and inference engines: forward passes, values that stay on the device, counters, traces."""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any, Optional, TypeVar, overload

import numpy as np

from ._arrays import DEFAULT_STREAM, F32, KDL_CUDA, U32, Floats, OnGpu, as_f32, columns, encode, fill, is_on_gpu, names_of, pointer
from ._vpps import ffi, lib
from .errors import ArgumentError, Closing, Hinting, StateError, check, sized, written
from .graph import Graph
from .model import Dense, Model
from .node import Epoch, Node, Nodes, made, node_of
from .step import Places, shaped

MOST_KEPT = 2**22 - 1  # most numbers that vpps_keep_data copies to a value on the device


def _human(name: str, value: Any) -> str:
    """A statistic as text for people: times in ms, memory in KiB."""
    if value is None or isinstance(value, (bool, float, str)):
        return str(value)
    return f"{value / 1e6:,.3f} ms" if name.endswith("_ns") else f"{value / 1024:,.1f} KiB" if name.endswith("_bytes") else f"{value:,}"


@dataclass(frozen=True)
class Stats:
    """The counters of `Trainer.stats`; printed one per line. Names of times end in `_ns`, of memory in `_bytes`.

    batches, skipped        training batches finished since the model was made; those not applied because loss or gradient was not finite
    nodes, levels           nodes of the latest batch's graph, inside cells too; its levels (a level's vertices can run at once)
    phases, instructions    parts of the batch's script (the program that the library writes for it) between barriers; tasks of the script
    steps                   how many times vertices of one cell run together in forward
    script_bytes            size of the script
    pool_bytes, live_bytes  memory of parameters and the batch's tensors; the most of it in use at one time
    host_ns, device_ns      time to write the latest batch's script (program); time to run it
    total_..., peak_...     sums and maxima over all training batches of this trainer
    vps, groups, waves, slices    number of each that the latest batch used; `Trainer` says what they are
    caller_works, decides   whether the calling thread works as a virtual processor; whether the device can run argmax and lookup_at
    precision, precision_unit     number format of products; the instructions that compute them
    device, policy          names of the device and the batching policy
    rank, processes         with a communicator: number of this process, from 0; number of processes
    total_exchange_ns, total_sent_bytes    time to exchange gradients with other processes, waiting included; bytes sent
    imbalance               how much longer the slowest process takes for its gradients than the mean of all processes; 0.1: 10 %
    kept_values, kept_bytes, keep_bytes    number and memory of the values that `keep` made; the most memory they may take
    wall_ns, gap_ns         time between the ends of the preceding and the latest batch; in it, time in which the device was idle
    gradients               what computed the gradients of matrices: "kernel", "cublas" or "cublas-tf32"
    gpu                     with device "cuda" the GPU's number, as in DLPack and PyTorch's cuda:0; else 0"""

    batches: int; skipped: int
    nodes: int; levels: int; phases: int; steps: int; instructions: int; script_bytes: int; pool_bytes: int; live_bytes: int
    host_ns: int; device_ns: int; total_nodes: int; total_host_ns: int; total_device_ns: int; peak_pool_bytes: int
    vps: int; groups: int; waves: int; slices: int; caller_works: bool; decides: bool
    precision: Optional[str]; precision_unit: Optional[str]; device: Optional[str]; policy: Optional[str]
    rank: int; processes: int; total_exchange_ns: int; total_sent_bytes: int; imbalance: float
    kept_values: int; kept_bytes: int; keep_bytes: int; wall_ns: int; gap_ns: int; total_wall_ns: int; total_gap_ns: int
    gradients: Optional[str]; gpu: int

    def __repr__(self) -> str:
        return "Stats\n" + "\n".join(f"  {f.name:18}{_human(f.name, getattr(self, f.name))}" for f in fields(self))


NAMES = {member: {v: n for n, v in names_of(prefix).items()} for member, prefix in (("state", "VPPS_TRIAL_"), ("gradients", "VPPS_GRADIENTS_"))}

T = TypeVar("T")


def _fields(of: type[T], c: Any) -> T:
    """A dataclass filled from a C struct's fields of the same names."""

    def member(name: str) -> Any:
        v = getattr(c, name)
        if isinstance(v, ffi.CData):
            return ffi.string(v).decode() if v else None
        return NAMES[name][v] if name in NAMES else v

    return of(**{f.name: member(f.name) for f in fields(of)})  # type: ignore[arg-type]


@ffi.def_extern()  # type: ignore[untyped-decorator]
def glue_log(context: Any, line: Any) -> None:
    ffi.from_handle(context)(ffi.string(line).decode(errors="replace"))


ENUMS: dict[str, dict[str, int]] = {
    "optimizer": {n: getattr(lib, f"VPPS_{n.upper()}") for n in ("sgd", "momentum", "adagrad", "adam", "adamw")},
    **{name: names_of(f"VPPS_{name.upper()}_") for name in ("gradients", "nonfinite", "caller", "precision")}}


def _options(given: Mapping[str, Any]) -> tuple[Any, Any]:
    """Makes a vpps_options of a constructor's arguments, named as its members. The second result must live as long as the handle."""
    o, log = ffi.new("vpps_options *"), given["log"]
    check(lib.vpps_options_init(o, ffi.sizeof("vpps_options")))
    held = ffi.new_handle(log) if log else ffi.NULL
    if log:
        o.log, o.log_context = lib.glue_log, held
    return fill(o, given, ENUMS), held


class Value(Closing):
    """A value that stays on the device (`Trainer.keep`). A later graph reads it by `value.node(graph)`; `numpy()` copies it to the host, and
    DLPack, as `torch.from_dlpack(value)`, to a tensor in the device's memory.
    `release`, leaving `with value:`, or dropping the last reference frees its memory."""

    __slots__ = ("_engine", "_number", "_released", "shape", "__weakref__")

    def __init__(self, engine: Engine, number: Any, rows: int, cols: int) -> None:
        """`number` points to the number that identifies the value in C; C may write the number later."""
        self._engine, self._number, self._released, self.shape = engine, number, engine._released, (rows, cols)

    def __repr__(self) -> str:
        return f"<kept value of {self.shape[0]} x {self.shape[1]}>" if self._number[0] else "<kept value that was released>"

    def node(self, graph: Graph) -> Node:
        """A node of the graph that reads this kept value, as a constant without gradient. Only the engine that keeps the value can run the graph."""
        e = graph._epoch
        with self._engine._lock:
            return made(e, lib.vpps_kept(graph._p, self._engine._c, self._number[0]))

    def numpy(self) -> F32:
        """The value as an array; waits for the batch in flight."""
        rows, cols = self.shape
        out = np.empty((cols, rows), np.float32)
        self._engine._do(lib.vpps_read_kept, self._number[0], pointer(out, "float[]", written=True))
        return shaped(out)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (KDL_CUDA, self._engine._gpu) if self._engine._gpu is not None else (1, 0)

    def __dlpack__(self, *, stream: int | None = None, **_: Any) -> Any:
        """A copy of the value as DLPack's capsule. On a GPU, later work in the CUDA stream `stream` sees the copy complete."""
        engine = self._engine
        if engine._gpu is None:
            return self.numpy().__dlpack__()
        (rows, cols), array, at = self.shape, ffi.new("vpps_array **"), ffi.new("float **")
        with engine._arrays_at(DEFAULT_STREAM if stream in (None, -1) else stream):
            check(lib.vpps_array_create(array, engine._c, rows * cols, at))
            status = lib.vpps_read_kept(engine._c, self._number[0], at[0])
            if status:
                lib.vpps_array_destroy(array[0])
            check(status)
        ndim = 0 if rows == cols == 1 else 1 if cols == 1 else 2
        capsule = ctypes.cast(lib.glue_capsule(array[0], at[0], engine._gpu, ndim, rows, cols), ctypes.py_object).value
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(capsule))  # drops the reference that C's glue_capsule returned; `capsule` holds another
        return capsule

    def release(self) -> None:
        """Frees the value, which cannot be used any more. Never waits."""
        with self._engine._lock:
            check(lib.vpps_release(self._engine._c, self._number[0]))
            self._number[0] = 0

    close = release

    def __del__(self) -> None:
        if self._number[0]:
            self._released.append(self._number[0])  # __del__ runs in any thread: the library's next call frees the value


class Engine(Hinting, Closing):
    """A model on a device; the base of `Trainer` and `Inference`."""

    _what = "engine"
    _elsewhere = {
        "zero_grad": "zero_gradients() forgets the gradients that backward() added up; step() needs none of it",
        "learning_rate": "lr is the learning rate, and can be assigned", "param_groups": "set_param_group() gives parameters numbers of their own",
        "state_dict": "save() writes a checkpoint, model.state_dict() has the values", "load_state_dict": "see load() and model.load_state_dict()",
        "fit train": "step(loss) trains one batch", "eval": "forward() has no dropout, and needs no other mode",
        "predict": "forward(node) computes values", "optimizer": "the optimizer is chosen when the trainer is made"}
    _instead = "; model.state_dict() has copies of the values, and a trainer's save() writes a checkpoint"
    model: Model
    _glue: Any
    _handle: Any

    def _open(self, model: Model, create: Callable[[Any], int]) -> None:
        """Makes the C handle, a model on a device, by create(out). If Ctrl-C comes meanwhile, destroys it, so that the model can have another."""
        out = ffi.new("glue_user **")
        try:
            check(create(out))
        except BaseException:
            if out[0]:
                lib.glue_user_destroy(out[0])
            raise
        self.model = model
        self._glue = ffi.gc(out[0], lib.glue_user_destroy)
        self._handle = self._glue.handle
        self._lock = threading.RLock()
        self._released: deque[int] = deque()  # ids of values on the device that no `Value` refers to any more; the next call frees them
        self._is_open = False  # whether a `Step` has run forward but not backward
        self._left_open = False  # whether a step has run forward alone and its `Step` object is gone: the engine's next call ends it
        stats = self._counters()
        device = ffi.string(stats.device)
        self._gpu: int | None = stats.gpu if device == b"cuda" else None
        self._has_memory = device != b"cpu"  # whether the device has memory of its own

    @property
    def _c(self) -> Any:
        if not self._handle:
            raise StateError(f"the {self._what} is closed")
        if self._left_open:
            self._is_open = self._left_open = False
            lib.vpps_step_drop(self._handle)
        return self._handle

    def close(self) -> None:
        """Frees the engine. The same happens when nothing refers to it any more."""
        if self._handle:
            with self._lock:
                self._handle = ffi.NULL
                ffi.release(self._glue)

    def _do(self, call: Any, *arguments: Any) -> None:
        """Calls C with the handle, when no other thread does."""
        with self._lock:
            check(call(self._c, *arguments))

    def _call(self, e: Epoch, what: str, call: Callable[[Any, Any], T]) -> T:
        """Calls C with the handle and a graph, which no other thread can use until the call returns."""
        with self._lock:
            self._give_back()
            if not e.p:
                raise e.failure()
            if not e.keeps:
                raise StateError(f"{what}: a node of a cell; expected one of a graph")
            g, at = e.p, e.at
            try:
                e.p, e.at, e.running = ffi.NULL, 0, True
                return call(self._c, g)
            finally:
                e.p, e.at, e.running = g, at, False

    # ---- values that stay on the device

    def _give_back(self) -> None:
        while self._released and not self._is_open:
            lib.vpps_release(self._c, self._released.popleft())

    def keep(self, node: Node) -> Value:
        """The node's value stays on the device after the next `step`, `backward`, `forward` or `run` of its graph. A graph that reads the
        value sees a constant, as after PyTorch's detach."""
        node = node_of(node, "keep")
        number, id = ffi.new("vpps_value *"), node.id
        value = Value(self, number, *node.shape)  # made before the call, so that a Ctrl-C during the call leaks nothing
        check(self._call(node._e, "keep", lambda h, g: lib.vpps_keep(h, g, id, number)))
        return value

    def keep_data(self, data: Floats) -> Value:
        """Copies an array of numbers to a value that stays on the device; it can be used as soon as this call returns. With `device="cuda"`
        the numbers may be a float32 tensor on the GPU (read through DLPack), which is not copied by way of the host."""
        if self._gpu is not None and is_on_gpu(data):
            t = OnGpu(data, self._gpu, "keep_data")
            return self._keep_at(t.address, *t.columns("keep_data"), DEFAULT_STREAM)
        rows, cols, flat = columns(as_f32(data, "keep_data"))
        return self._keep_at(int(ffi.cast("uintptr_t", pointer(flat, "float[]"))), rows, cols)

    @contextmanager
    def _arrays_at(self, stream: int | None) -> Iterator[None]:
        """While the context lasts, C reads and writes arrays in the device's memory, ordered by the CUDA `stream`; if it is None, on the host."""
        with self._lock:
            self._give_back()
            if stream is not None:
                check(lib.vpps_set_pointer_mode(self._c, lib.VPPS_POINTERS_DEVICE, ffi.cast("void *", stream)))
            try:
                yield
            finally:
                if stream is not None and self._handle:
                    lib.vpps_set_pointer_mode(self._handle, lib.VPPS_POINTERS_HOST, ffi.NULL)

    def _keep_at(self, address: int, rows: int, cols: int, stream: int | None = None) -> Value:
        """Copies rows x cols numbers at `address` (in the GPU if `stream` is given), column after column, to a `Value` on the device."""
        number = ffi.new("vpps_value *")
        value = Value(self, number, rows, cols)
        with self._arrays_at(stream):
            check(lib.vpps_keep_data(self._c, rows, cols, ffi.cast("float *", address), number))
        return value

    def _inputs_at(self, e: Epoch, address: int, n: int, rows: int, stream: int) -> U32:
        """The nodes of n vectors that lie one after the other in the device's memory."""
        ids = []
        most = max(MOST_KEPT // max(rows, 1), 1)
        for i in range(0, n, most):
            value = self._keep_at(address + 4 * rows * i, rows, min(most, n - i), stream)
            e.values.append(value)  # keeps the value until the graph is cleared
            with self._lock:
                first = made(e, lib.vpps_kept_columns(e.p, self._c, value._number[0])).id
            ids.append(np.arange(first, first + min(most, n - i), dtype=np.uint32))
        return np.concatenate(ids or [np.empty(0, np.uint32)])

    def run(self, graph: Graph) -> None:
        """Runs the graph for the values that `keep` asked for, and copies nothing to the host."""
        check(self._call(graph._epoch, "run", lambda h, g: lib.vpps_forward(h, g, 0, ffi.NULL, ffi.NULL)))

    # ---- inference

    @overload
    def forward(self, nodes: Node | Dense | Nodes) -> F32: ...
    @overload
    def forward(self, nodes: Sequence[Node]) -> list[F32]: ...
    def forward(self, nodes: Node | Dense | Nodes | Sequence[Node]) -> F32 | list[F32]:
        """Computes values of nodes, without dropout and update. A node gives an array of shape (), (rows,) or (rows, cols). n `Nodes` of one
        shape give one array with n before these sizes. A list of nodes gives a list of arrays. Waits for the batch in flight."""
        several = list(nodes) if isinstance(nodes, Iterable) and not isinstance(nodes, (Nodes, Node, Dense)) else nodes
        places = Places(several, "forward")
        if places.epoch is None:
            raise ArgumentError("forward: no nodes; expected at least one")
        if places.n:
            check(self._call(places.epoch, "forward", lambda h, g: lib.vpps_forward(h, g, places.n, places.ids, places.outs)))
        return places.result

    def value(self, node: Node) -> float:
        """The value of a scalar node."""
        return float(self.forward(node))

    # ---- looking inside

    def stats(self) -> Stats:
        """Counters and times; never waits for the batch in flight."""
        return _fields(Stats, self._counters())

    def _counters(self) -> Any:
        s = sized("vpps_stats")
        self._do(lib.vpps_handle_stats, s)
        return s

    @contextmanager
    def trace(self, name: str) -> Iterator[None]:
        """Marks a section of the program in the trace: `with trainer.trace("build"):`. Without `trace_events` it does nothing."""
        self._do(lib.vpps_trace_begin, encode(name, "name"))
        try:
            yield
        finally:
            self._do(lib.vpps_trace_end)

    def trace_json(self) -> str:
        """The trace: JSON in Chrome's trace event format, which https://ui.perfetto.dev opens."""
        with self._lock:
            return written(lambda file: lib.vpps_trace_write(self._c, file))[0].decode(errors="replace")
