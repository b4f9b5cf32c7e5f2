"""Trainers, which train and infer; engines for inference beside a trainer; communicators of processes that train together."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Optional

from ._arrays import Path, choice, encode, path_bytes, real
from ._vpps import ffi, lib
from .engine import ENUMS, Engine, _fields, _options
from .errors import ArgumentError, Closing, NonfiniteError, check, result, sized, written
from .graph import Graph
from .model import Dense, Model, Parameter
from .node import NO_NODE, Epoch, Node, Nodes, node_of
from .step import Named, Places, Step

PROFILE = 2**32 - 1
ADAM = ("adam", "adamw")
NUMBERS_OF = {"momentum": ("momentum",), "beta1": ADAM, "beta2": ADAM, "epsilon": ("adagrad", *ADAM)}  # number: the optimizers that use it


class Asked(NamedTuple):
    """The result of `Trainer.backward`: arrays of the values and gradients that were asked for, None where none were."""

    values: Any; gradients: Any


def _asked(nodes: Named | None, e: Epoch, what: str) -> Places | None:
    """Makes memory for the values or gradients of nodes of graph e that a step is asked for; None: there are no such nodes."""
    if nodes is None:
        return None
    some = nodes if isinstance(nodes, (list, tuple)) else [nodes]
    if any(isinstance(x, Dense) for x in some):
        raise TypeError(f"{what}: a parameter; its value is p.value, and its gradient p.gradient after read_gradients()")
    places = Places(nodes, what)
    if places.epoch not in (None, e):
        raise ArgumentError(f"{what}: nodes of two graphs, or of a graph before and after it was cleared")
    return places


def request_of(v: Places | None, d: Places | None, parameters: bool, dropout: bool) -> Any:
    """Makes the C struct that asks a step for values, in the memory v, and gradients, in d; v and d must live as long as the struct."""
    request = sized("vpps_request")
    if v is not None:
        request.n_values, request.values, request.value_outs = v.n, v.ids, v.outs
    if d is not None:
        request.n_gradients, request.gradients, request.gradient_outs = d.n, d.ids, d.outs
    request.no_parameters, request.no_dropout = not parameters, not dropout
    return request


@dataclass(frozen=True)
class Trial:
    """An alternative that the engine times in search of the fastest way to train. Members that do not concern it are 0, False or None.

    groups, policy, split   the alternative, if it is one of these: a number of groups of virtual processors (CPU: threads; GPU: CTAs); a
                            batching policy; what the processors divide: "rows" (of matrices), "vertices", "size" (of matrices decides)
    product, unit, precision, vectors, far, ns_per_vector    CPU: the kind of product, with 256 x 256 matrices, that is timed on one core; its
                            instructions; its number format; its number of vectors; whether the matrices exceed the core's cache; its time
    rpw, threads            GPU: the alternative, if it is a kernel: rows of a block of a matrix, and threads of a CTA
    registers, load_seconds    GPU: registers of a thread; time to make the kernel, or to load it from the cache
    gradients               GPU: what computes the gradients of matrices
    state, batches, ns_per_node    "waiting" (not tried yet), "rejected", "measured", "current" (in use), or "remembered" (in use: an earlier
                            run chose it); number of batches measured; the median of their device time per node"""

    groups: int; policy: Optional[str]; split: Optional[str]
    product: Optional[str]; unit: Optional[str]; precision: Optional[str]; vectors: int; far: bool; ns_per_vector: float
    rpw: int; threads: int; state: str; batches: int; ns_per_node: float
    registers: int; load_seconds: float; gradients: str


class Communicator(Closing):
    """Processes that train one model together: each builds its share of a batch, and all have equal parameters after it. All processes open
    and close it together. A wait for another process longer than `watchdog_ms` is a `StallError`; 0: ten seconds."""

    def __init__(self, kind: str = "mpi", comm: int = 0, watchdog_ms: int = 0) -> None:
        """`comm`: the address of an MPI_Comm, as mpi4py's `MPI._addressof(comm)`; 0: MPI_COMM_WORLD."""
        out = ffi.new("vpps_communicator **")
        check(lib.vpps_communicator_open(out, encode(kind, "kind"), ffi.cast("void *", comm), watchdog_ms))
        self._c = out[0]

    @property
    def rank(self) -> int:
        """The number of this process, from 0."""
        return lib.vpps_communicator_rank(self._c)

    @property
    def size(self) -> int:
        """How many processes there are."""
        return lib.vpps_communicator_size(self._c)

    def close(self) -> None:
        """Closes the communicator, in all processes together; the trainers that use it must be closed."""
        c, self._c = self._c, ffi.NULL
        lib.vpps_communicator_close(c)


StepCallback = Callable[[int, Mapping[str, float]], None]


class Trainer(Engine):
    """A model specialised for a device (the C library's handle): it trains the model's graphs.

    The library chooses numbers that are 0 and names that are None.

    optimizer               "sgd", "momentum", "adagrad", "adam", "adamw"
    lr                      learning rate; None: 0.1 for sgd and momentum, 0.05 for adagrad, 0.002 for adam and adamw
    momentum                factor of the optimizer "momentum"; None: 0.9
    beta1, beta2            factors of adam and adamw; None: 0.9 and 0.999
    epsilon                 is added to the divisor in adagrad, adam and adamw; None: 1e-8
    weight_decay            its product with the parameter is added to the gradient, or with adamw subtracted from the parameter; None: 0
    clip                    scales all gradients together so that their norm is at most this; 0: no scaling
    device                  "cpu"; "cuda", an NVIDIA GPU; "auto", the GPU where there is one; "simt", a GPU's kernel run by the CPU, slowly
    vps, groups             number of virtual processors (CPU: threads); number of groups of them, among which a batch's inputs are divided
    waves, slices           a batch is divided into waves, and a wave's classifiers into slices; these run one after the other in the same memory
    policy                  decides which vertices run together: "depth", "share", "ratio", "fsm", "auto"
    pool_bytes, keep_bytes  memory for the parameters and one batch; memory for values of `keep`
    gradients               how gradients of matrices are computed: "deferred", "accumulate"; GPU also "cublas", "cublas_tf32", "auto"
    nonfinite               for a batch whose loss or gradient is not finite: "stop" raises `NonfiniteError`, "skip" leaves it out, "ignore"
    caller                  whether the calling thread works as a virtual processor: "works", "free", "auto"
    watchdog_ms             a wait longer than this is a `StallError`; 0: ten seconds
    seed                    seed of dropout
    precision, batch        number format of products: "fp32", "bf16x3", "bf16", "auto"; number of inputs of a batch, for "auto" and a GPU's layout
    communicator            the processes that train together
    portable, verify        CPU: plain C instead of vector instructions; each batch's program is first proved right, slowly
    rpw, threads            GPU: rows of a block, in which CTAs get rows of matrices; threads of a CTA; 0: measured
    trace_events            most events that `trace_json` may have; 0: no trace
    no_tuning, tune         measure nothing, take the first choice; CPU: try all ways to divide the work on batches, and keep the fastest

    `log` is called with lines of text about the run. `on_step` is called for each batch, in order, with its number (from 1, over all trainers of
    the model), its loss and its learning rate, when the next batch begins or `loss()` waits for this one; see `vpps.Metrics`.

    A model has one trainer at a time. Calls from several threads wait for each other. During a step Python's other threads run; they may
    build other graphs."""

    _what = "trainer"

    def __init__(
            self, model: Model, *, optimizer: Literal["sgd", "momentum", "adagrad", "adam", "adamw"] = "sgd", lr: float | None = None,
            momentum: float | None = None, beta1: float | None = None, beta2: float | None = None, epsilon: float | None = None,
            weight_decay: float | None = None, clip: float | None = None, device: str = "cpu", vps: int = 0, groups: int = 0, waves: int = 0,
            slices: int = 0, policy: str | None = None, pool_bytes: int = 0, keep_bytes: int = 0,
            gradients: Literal["deferred", "accumulate", "cublas", "auto", "cublas_tf32"] | None = None,
            nonfinite: Literal["stop", "skip", "ignore"] | None = None, caller: Literal["auto", "works", "free"] | None = None,
            watchdog_ms: int = 0, seed: int | None = None, precision: Literal["fp32", "bf16x3", "bf16", "auto"] | None = None, batch: int = 0,
            communicator: Communicator | None = None, portable: bool = False, verify: bool = False, rpw: int = 0, threads: int = 0,
            trace_events: int = 0, no_tuning: bool = False, tune: bool = False, log: Callable[[str], None] | None = None,
            on_step: StepCallback | None = None) -> None:
        if not isinstance(model, Model):
            raise TypeError(f"a trainer of {type(model).__name__}; expected a model")
        given = dict(locals())
        o, self._held = _options(given)
        o.optimizer.kind = choice(optimizer, "optimizer", ENUMS["optimizer"])
        for name in (name for name, _ in ffi.typeof("vpps_optimizer").fields if given.get(name) is not None):
            if optimizer.lower() not in NUMBERS_OF.get(name, ENUMS["optimizer"]):
                raise ArgumentError(f"{name}: the optimizer is {optimizer}, which has none; expected {' or '.join(NUMBERS_OF[name])}")
            setattr(o.optimizer, name, real(given[name], name))
        o.communicator = ffi.NULL if communicator is None else communicator._c
        self._communicator = communicator
        self._open(model, lambda out: lib.glue_user_create(model._glue, o, ffi.NULL, out))
        self._on_step = on_step
        self._lr = float(o.optimizer.lr if lr is not None else lib.vpps_default_lr(o.optimizer.kind))
        self._untold: float | None = None  # learning rate of the latest batch, if on_step was not called for it yet
        model._trainer = weakref.ref(self)

    def __repr__(self) -> str:
        if not self._handle:
            return "<trainer that is closed>"
        s = self.stats()
        return f"<trainer on {s.device} with {s.vps} virtual processors, lr {self._lr:g}, {s.batches:,} batches>"

    def close(self) -> None:
        """Waits for the batch in flight and frees the engine; the model keeps the trained values and the optimiser's state. The same
        happens when nothing refers to the trainer any more, but then errors of the latest batch are not raised."""
        if self._handle:
            with self._lock:
                try:
                    self._left_open = self._is_open
                    self.read_parameters()
                finally:
                    self.model._trainer = lambda: None
                    super().close()

    # ---- training

    def step(self, loss: Node) -> float:
        """One training step: forward, gradients of `loss` (a scalar), update. Returns the loss of the preceding batch, NaN at the first. A batch
        may still run when this returns, and the graph may be cleared all the same. An error of an earlier batch is raised here.

        Ctrl-C during a batch is raised when the batch is done: it counts, and training can go on."""
        loss = node_of(loss, "step")
        return self._step(loss._e, "step", loss.id)

    fb = step

    def _step(self, e: Epoch, what: str, loss: int) -> float:
        with self._lock:
            return self._begin(lambda a: self._call(e, what, lambda h, g: lib.glue_fb(h, g, loss, a))).stale_loss

    def _begin(self, call: Callable[[Any], None]) -> Any:
        """Begins a batch by `call`, which has C fill in status and loss. If C began the batch, on_step is called later, even after Ctrl-C."""
        answer = ffi.new("glue_answer *", {"status": lib.VPPS_STATE})
        try:
            call(answer)
            check(answer.status)
        except NonfiniteError:  # the preceding batch failed: on_step is not called for that batch
            self._untold = None
            raise
        finally:
            if answer.status == lib.VPPS_OK:
                try:
                    self._tell(answer.stale_loss)
                finally:
                    self._untold = self._lr
        return answer

    def _tell(self, loss: float) -> None:
        """Calls the user's on_step, once, for the latest finished batch."""
        lr, self._untold = self._untold, None
        if lr is not None and self._on_step is not None:
            self._on_step(self._counters().batches, {"loss": loss, "lr": lr})

    def _tell_latest(self) -> None:
        """Waits for the latest batch, and calls on_step for it, if that was not done yet."""
        if self._on_step is not None and self._untold is not None:
            self.sync_latest_loss()

    def idle_step(self, graph: Graph) -> float:
        """With a communicator: takes part in a batch without inputs of its own; `graph` is empty. Returns the preceding batch's loss."""
        return self._step(graph._epoch, "idle_step", NO_NODE)

    def backward(self, loss: Node, *, values: Named | None = None, gradients: Named | None = None,
                 parameters: bool = True, dropout: bool = True) -> Asked:
        """Forward, and gradients of `loss` (a scalar), added to those since the latest `update`. `sync_latest_loss` tells the loss.

        `values` and `gradients` name nodes of the graph: a node, a list of nodes, or `Nodes` of one shape. The result has the nodes' values in
        this step, and the gradients of the loss with respect to them, in arrays as `forward` gives them; the call then waits for the batch.
        With `parameters=False` the parameters' gradients are neither computed nor changed. With `dropout=False` dropout is off.

        `backward` and `update` give the same bits as `step`, which is faster than both calls."""
        loss = node_of(loss, "backward")
        id, e = loss.id, loss._e
        v, d = _asked(values, e, "values"), _asked(gradients, e, "gradients")
        request = request_of(v, d, parameters, dropout)
        with self._lock:
            self._tell_latest()
            check(self._call(e, "backward", lambda h, g: lib.vpps_backward(h, g, id, request)))
        return Asked(None if v is None else v.result, None if d is None else d.result)

    def step_forward(self, values: Named, *, gradients: Named | None = None, parameters: bool = True, dropout: bool = True) -> Step:
        """Runs the forward half of a training step, with dropout. The caller computes a loss from the `values` of some nodes; `Step.backward`
        takes the loss's gradients with respect to the values, adds to the parameters' gradients, and returns the gradients of the nodes that
        `gradients` names. Nodes are named as for `backward`.

            with trainer.step_forward(scores, gradients=x) as step:
                loss, slope = somewhere_else(step.values)
                of_x = step.backward(slope)
            trainer.update()

        Until then, every other call raises StateError. `step.drop()`, or the end of `with`, closes a step without backward."""
        if isinstance(values, (list, tuple)) and not values:
            raise ArgumentError("step_forward: no nodes; expected at least one")
        first = values[0] if isinstance(values, (list, tuple)) else values
        e = first._e if isinstance(first, Nodes) else node_of(first, "values")._e
        v, d = _asked(values, e, "values"), _asked(gradients, e, "gradients")
        return self._open_step(e, request_of(v, d, parameters, dropout), v, d)  # type: ignore[arg-type]

    def _open_step(self, e: Epoch, request: Any, v: Places, d: Places | None, stream: int | None = None) -> Step:
        with self._arrays_at(stream):
            self._tell_latest()
            check(self._call(e, "step_forward", lambda h, g: lib.vpps_step_forward(h, g, request)))
            self._is_open = True
            return Step(self, v, d)

    def update(self) -> None:
        """Makes one step of the optimiser by the accumulated gradients, and clears them. `stats` and `on_step` count the step as one batch."""
        with self._lock:
            self._begin(lambda a: lib.glue_update(self._c, a))
            self._tell_latest()

    def zero_gradients(self) -> None:
        """Clears the gradients accumulated since the latest update."""
        self._do(lib.vpps_zero_gradients)

    def read_gradients(self) -> None:
        """Waits for the batch in flight, and copies the gradients into the model: `Parameter.gradient`, `Model.gradient_norm`."""
        self._do(lib.vpps_read_gradients)

    def write_gradients(self) -> None:
        """Copies the gradients from the model, where `Parameter.set_gradient` changed them, to the device, for the next update."""
        self._do(lib.vpps_write_gradients)

    def poll_loss(self) -> float | None:
        """The loss of the latest batch, or None while it runs; never waits."""
        done, loss = ffi.new("bool *"), ffi.new("float *")
        self._do(lib.vpps_poll_loss, done, loss)
        return float(loss[0]) if done[0] else None

    def sync_latest_loss(self) -> float:
        """The loss of the latest batch, for which it waits."""
        loss = ffi.new("float *")
        with self._lock:
            check(lib.vpps_sync_latest_loss(self._c, loss))
            self._tell(loss[0])
        return loss[0]

    loss = sync_latest_loss

    @property
    def lr(self) -> float:
        """The learning rate; assigning takes effect with the next batch."""
        return self._lr

    @lr.setter
    def lr(self, lr: float) -> None:
        self.set_learning_rate(lr)

    def set_learning_rate(self, lr: float) -> None:
        """Sets the learning rate from the next step on."""
        with self._lock:
            rate = real(lr, "learning rate")
            check(lib.vpps_set_learning_rate(self._c, rate))
            self._lr = rate

    def set_momentum(self, momentum: float) -> None:
        """Sets the momentum, 0 to 1, from the next step on."""
        self._do(lib.vpps_set_momentum, real(momentum, "momentum"))

    def set_weight_decay(self, weight_decay: float) -> None:
        """Sets the weight decay from the next step on."""
        self._do(lib.vpps_set_weight_decay, real(weight_decay, "weight_decay"))

    def set_param_group(self, parameters: Iterable[Parameter], *, lr: float | None = None, momentum: float | None = None,
                        weight_decay: float | None = None) -> None:
        """Sets the optimizer's numbers for these parameters alone, from the next step on; None: the number set for all parameters."""
        ids, group = [p._of(self.model) for p in parameters], ffi.NULL
        numbers = {name: real(x, name) for name, x in (("lr", lr), ("momentum", momentum), ("weight_decay", weight_decay)) if x is not None}
        if any(map(math.isnan, numbers.values())):  # C takes NaN for None
            raise ArgumentError(f"set_param_group: {numbers}; expected numbers")
        if numbers:
            group = sized("vpps_param_group")
            group.lr, group.momentum, group.weight_decay = (numbers.get(name, math.nan) for name in ("lr", "momentum", "weight_decay"))
        self._do(lib.vpps_set_param_group, len(ids), ids, group)

    def read_parameters(self) -> None:
        """Waits for the batch in flight, and copies parameters and the optimiser's state from the device to the model."""
        self._do(lib.vpps_read_parameters)

    def publish_parameters(self) -> None:
        """Waits for the batch in flight, and gives the parameters to the `Inference`s of this trainer, for their next `forward`."""
        self._do(lib.vpps_publish_parameters)

    def write_parameters(self) -> None:
        """Waits for the batch in flight, and copies parameters and the optimiser's state from the model to the device."""
        self._do(lib.vpps_write_parameters)

    def forward_end(self) -> None:
        """Ends calls of forward with distributed tables: each process calls it after its last forward. The process then sends entries of its
        tables to other processes, which may call forward again, until all have called forward_end."""
        self._do(lib.vpps_forward_end)

    # ---- checkpoints

    def save(self, path: Path, metadata: Mapping[str, str] | None = None) -> None:
        """Writes parameters, the optimiser's state and string metadata to a safetensors file, atomically."""
        texts = [[ffi.new("char[]", encode(t, "metadata")) for t in pair] for pair in (metadata or {}).items()]
        self._do(lib.vpps_save, path_bytes(path), ffi.new("vpps_metadata[]", texts or 1), len(texts))

    def load(self, path: Path) -> None:
        """Reads a file that `save` wrote, or any safetensors file that has the model's parameters. All or nothing."""
        with self._lock:
            check(lib.vpps_load(self._c, path_bytes(path)))
            self._untold = None

    # ---- looking inside

    def trials(self) -> tuple[list[Trial], bool]:
        """The settings that are timed to find the fastest (kernels, orders of vertices, ...), with times so far, and whether all are chosen."""
        n, done = ffi.new("uint32_t *", 0), ffi.new("bool *")
        with self._lock:
            check(lib.vpps_handle_trials(self._c, ffi.NULL, n, done))
            room = ffi.new("vpps_trial[]", max(n[0], 1))
            room[0].size = ffi.sizeof("vpps_trial")
            check(lib.vpps_handle_trials(self._c, room, n, done))
        return [_fields(Trial, room[i]) for i in range(min(n[0], len(room)))], bool(done[0])

    def disassemble(self, loss: Node) -> str:
        """The program of tasks (script) that `step(loss)` would run on the device, as text."""
        loss = node_of(loss, "disassemble")
        id = loss.id
        text, = self._call(loss._e, "disassemble", lambda h, g: written(lambda file: lib.vpps_disassemble(h, g, id, file)))
        return text.decode(errors="replace")


class Inference(Engine):
    """Inference beside a trainer, in a thread of its own: `forward`, and values that stay on the device. The parameters are the trainer's,
    as they were when this engine was made, later as they were at the latest `Trainer.publish_parameters`. They change between two
    calls of `forward`, never within one. Trainer and inference share the cores: set `vps`, the number of threads. Each thread builds its own graph.

    An inference engine is made by the thread that has the trainer; the trainer may be closed first."""

    _what = "inference"

    def __init__(
            self, trainer: Trainer, *, device: str = "cpu", vps: int = 0, groups: int = 0, waves: int = 0, policy: str | None = None,
            pool_bytes: int = 0, keep_bytes: int = 0, caller: Literal["auto", "works", "free"] | None = None, watchdog_ms: int = 0,
            precision: Literal["fp32", "bf16x3", "bf16", "auto"] | None = None, batch: int = 0, portable: bool = False, verify: bool = False,
            trace_events: int = 0, no_tuning: bool = False, log: Callable[[str], None] | None = None) -> None:
        o, self._held = _options(dict(locals()))
        with trainer._lock:
            trainer._c  # raises an exception if the trainer is closed
            self._open(trainer.model, lambda out: lib.glue_user_create(trainer.model._glue, o, trainer._glue, out))

    def __repr__(self) -> str:
        return f"<inference on {self.stats().device}>" if self._handle else "<inference that is closed>"


def checkpoint_metadata(path: Path, key: str) -> str | None:
    """The value of a key in a checkpoint's metadata; None: the file has no such key."""
    text = result(lib.vpps_checkpoint_metadata, path_bytes(path), encode(key, "key"))
    return ffi.string(ffi.gc(text, lib.free)).decode(errors="replace") if text else None
