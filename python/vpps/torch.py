"""A layer of VPPS in a PyTorch network: `LSTM`, `GRU` and `RNN` instead of PyTorch's, `Module` for any cells, and `Optimizer`, by which the
engine updates its own parameters.

    model = vpps.Model(seed=1)
    W, b = model.add_matrix("W", 16, 8), model.add_vector("b", 16)

    @model.cell
    def turn(c: vpps.Recorder) -> None:
        c.scatter(vpps.tanh(W @ c.pull(8) + b))

    layer = vpps.torch.Module(model, lambda x: vpps.current().apply(turn, pulls=x).scattered())
    y = layer(torch.randn(5, 8))                # 5 x 16, with a grad_fn
    y.square().sum().backward()                 # gradients of W and b, as of any nn.Parameter

PyTorch is imported by this module alone; `import vpps.torch` does it."""

from __future__ import annotations

import ctypes
import os
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Optional

import numpy as np
import torch
from torch import Tensor, nn

from ._arrays import F32
from ._vpps import lib
from .engine import ENUMS
from .errors import ShapeError, check
from .graph import Graph
from .model import Dense, Lookup, Model, Parameter
from .node import Node, Nodes
from .step import Joined, Step, addresses_of, columns_of, host
from .trainer import Trainer, request_of


# ---------------------------------------------------------------- tensors

class _Place(int):
    """The number of a tensor among those that become nodes; it stands for the tensor in a call's arguments."""


def _mapped(x: Any, change: Callable[[Any, str], Any], what: str = "") -> Any:
    """Returns x with each object y that is no list, tuple or dict, at any depth, replaced by change(y, where it is)."""
    if isinstance(x, (list, tuple)):
        items = [_mapped(y, change, f"{what}[{i}]") for i, y in enumerate(x)]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    return {k: _mapped(y, change, f"{what}[{k!r}]") for k, y in x.items()} if isinstance(x, dict) else change(x, what)


def _taken_out(x: Any, tensors: list[Tensor], gpu: int | None, what: str) -> Any:
    """Takes a float tensor out of a call's arguments: appends it to `tensors`, and returns its index there, a `_Place`. Copies a tensor of whole
    numbers to an array. `gpu`: the GPU where tensors may be. Copies are made as backward may build the graph again after the caller changed x."""
    if not isinstance(x, Tensor):
        return x.copy() if isinstance(x, np.ndarray) else x
    if not (x.is_floating_point() or x.is_complex()):
        return x.detach().cpu().numpy().copy()
    expected = tensors[0].device if tensors else torch.device("cpu" if x.is_cpu or gpu is None else f"cuda:{gpu}")
    if x.device != expected:
        hint = ": x.cpu()" if expected.type == "cpu" else f": x.to({str(expected)!r})"
        raise TypeError(f"{what}: a tensor on {x.device}; expected one on {'the CPU' if expected.type == 'cpu' else expected}, "
                        f"{'as the tensors before it' if tensors else 'where the engine is'}{hint}")
    if x.dtype != torch.float32:
        raise TypeError(f"{what}: a tensor of {str(x.dtype).removeprefix('torch.')}; expected float32: x.float()")
    if x.layout != torch.strided:
        raise TypeError(f"{what}: a tensor of layout {x.layout}; expected a dense one, as x.to_dense() or the `data` of a packed sequence")
    tensors.append(x)
    return _Place(len(tensors) - 1)


class _Memory(NamedTuple):
    """Makes tensors in the memory of the engine's device: a GPU, or with device "simt" the host. `stream`: the GPU's CUDA stream, else 0."""

    device: torch.device; stream: int

    def __call__(self, *shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.float32, device=self.device)


try:
    _omp_pause: Any = ctypes.CDLL(torch._C.__file__).omp_pause_resource_all
except (OSError, AttributeError):  # PyTorch without OpenMP
    _omp_pause = None
_process = os.getpid()


def _rest_threads(trainer: Trainer) -> None:
    """Ends PyTorch's worker threads before the engine takes their cores: idle threads of OpenMP poll for work for up to 16 ms. PyTorch starts
    them again for its next operation on several threads. A child of fork() has no such threads."""
    if _omp_pause is not None and trainer._gpu is None and torch.get_num_threads() > 1 and os.getpid() == _process:
        _omp_pause(1)  # omp_pause_soft


def _memory_of(trainer: Trainer, tensors: list[Tensor]) -> Optional[_Memory]:
    """Returns a function of a shape that makes tensors on the device of `tensors`; None if the engine must read and write NumPy's arrays."""
    device = tensors[0].device if tensors else torch.device("cpu")
    if not trainer._has_memory or (trainer._gpu is None) != (device.type == "cpu"):
        return None
    return _Memory(device, torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0)


def _node_of(graph: Graph, x: Tensor, trainer: Trainer, memory: Optional[_Memory]) -> Node | Nodes:
    """A scalar or a vector as a node; vectors along the last dimension of a larger tensor as nodes."""
    x = x.detach().contiguous()
    if not x.numel() and x.ndim > 1:
        return Nodes(graph._epoch, np.empty(0, np.uint32))
    rows = x.shape[-1] if x.ndim else 1
    if memory is None:
        return graph.input(x.numpy()) if x.ndim < 2 else graph.inputs(x.numpy().reshape(-1, rows))
    ids = trainer._inputs_at(graph._epoch, x.data_ptr(), x.numel() // max(rows, 1), rows, memory.stream)
    return Node(graph._epoch, int(ids[0])) if x.ndim < 2 else Nodes(graph._epoch, ids)


def _tensors(values: list[Any]) -> Iterator[Tensor]:
    return (v if isinstance(v, Tensor) else torch.from_numpy(v) for v in values)


class _Call:
    """One call of a module: its arguments, and its open step (forward has run, backward has not), which ends if another call needs the engine."""

    def __init__(self, module: Module, arguments: Any, wanted: list[bool]) -> None:
        self.module, self.arguments = module, arguments
        self.wanted = wanted  # for each tensor, whether its gradient is asked for
        self.updates, self.training = module._updates, module.training
        self.trained = [p.requires_grad for p in module._shared]
        self.trains = True  # parameters get gradients
        self.draw = 0  # seed of the dropout masks; 0: not drawn yet
        self.step: Optional[Step] = None
        self.single, self.done = True, False
        self.outputs: list[tuple[int, bool]] = []  # of each output: number of nodes, and whether they are `Nodes`
        self.memory: Optional[_Memory] = None

    def build(self, tensors: list[Tensor]) -> tuple[Joined, list[Any]]:
        """Calls the module's function, which adds the call's nodes to the module's graph; `with graph:` must be in force."""
        m = self.module
        self.memory = _memory_of(m.trainer, tensors)
        nodes = [_node_of(m._graph, x, m.trainer, self.memory) for x in tensors]
        arguments, keywords = _mapped(self.arguments, lambda x, _: nodes[x] if isinstance(x, _Place) else x)
        returned = m.function(*arguments, **keywords)
        self.single = not isinstance(returned, (list, tuple))
        outputs = [returned] if self.single else returned
        for x in outputs:
            if not isinstance(x, (Node, Nodes, Dense)):
                raise TypeError(f"the module's function returned {type(x).__name__}; expected a node, Nodes, or a tuple or list of these")
        _rest_threads(m.trainer)
        return Joined([x.node() if isinstance(x, Dense) else x for x in outputs], "outputs", self.memory or host), nodes

    @property
    def stream(self) -> Optional[int]:
        return None if self.memory is None else self.memory.stream

    def values(self, tensors: list[Tensor]) -> list[Any]:
        """The outputs, computed without gradients."""
        m = self.module
        with m._graph:
            places, _ = self.build(tensors)
            if not places.n:
                return places.result
            if self.training and m.model._drops:
                self.open(places, [])
                m._give_up()
            else:
                with m.trainer._arrays_at(self.stream):
                    check(m.trainer._call(places.epoch, "forward", lambda h, g: lib.vpps_forward(h, g, places.n, places.ids, places.outs)))
        return places.result

    def open(self, places: Joined, nodes: list[Any]) -> None:
        m = self.module
        asked = Joined(nodes, "inputs", self.memory or host)
        if not self.draw:  # PyTorch draws the seed of dropout masks, so that torch.manual_seed and torch.utils.checkpoint determine them
            self.draw = int(torch.randint(1, 2**62, ())) if m.model._drops and self.training else 1
        request = request_of(places, asked if asked.n else None, self.trains, self.training)
        request.draw = self.draw
        self.step = m.trainer._open_step(places.epoch, request, places, asked, self.stream)
        m._open = weakref.ref(self)

    def forward(self, tensors: list[Tensor]) -> list[Any]:
        """Builds the call's graph and runs it forward; the engine's step stays open for `backward`."""
        with self.module._graph:
            places, nodes = self.build(tensors)
            if places.n:
                self.open(places, [x for x, wanted in zip(nodes, self.wanted) if wanted])
        self.outputs = [(p.n, p.many) for p in places.parts]
        return places.result

    def backward(self, slopes: list[Optional[Tensor]], tensors: list[Tensor], parameters: list[Tensor]) -> list[Optional[Tensor]]:
        """Runs this call's graph backward; returns the gradients of `tensors`. First repeats forward with `parameters` if another call intervened."""
        m = self.module
        if not any(n for n, _ in self.outputs):
            return [torch.zeros_like(x) if wanted else None for x, wanted in zip(tensors, self.wanted)]
        if self.step is None or not self.step._is_open or not self.trains:  # the step has ended, or parameters need no gradients: forward again
            if self.updates != m._updates:
                raise RuntimeError("vpps.torch: backward after Optimizer.step(), of a call from before it; expected backward first")
            m._give_up()
            m._push(parameters if m._engine is None else m._shared, self.trained)
            self.forward(tensors)
        step, self.step = self.step, None
        assert step is not None
        given = [None if s is None else columns_of(s.detach().to(torch.float32), many).contiguous() for s, (_, many) in zip(slopes, self.outputs)]
        if self.memory is not None:
            self.memory = _memory_of(m.trainer, tensors)  # makes result tensors on the tensors' device, for the CUDA stream that is current now
        _rest_threads(m.trainer)
        step._go_on([np.zeros(n, np.uintp) if s is None else addresses_of(s.data_ptr(), 4 * s.numel(), n)
                     for s, (n, _) in zip(given, self.outputs)], self.stream)
        m._open = None
        results = _tensors(step._asked.result if step._asked is not None else [])
        return [next(results).reshape(x.shape) if wanted else None for x, wanted in zip(tensors, self.wanted)]


class _Autograd(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, call: _Call, n: int, *tensors: Tensor) -> Any:
        ctx.call, ctx.n = call, n
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        with call.module._lock:
            values = call.forward(list(tensors[:n]))
        return tuple(_tensors(values))

    @staticmethod
    def backward(ctx: Any, *slopes: Optional[Tensor]) -> Any:
        call, tensors = ctx.call, ctx.saved_tensors
        if torch.is_grad_enabled():
            raise RuntimeError("vpps.torch: a second derivative of a module (create_graph=True); VPPS has first derivatives alone")
        if call.done:
            raise RuntimeError("vpps.torch: backward twice through one call of a module (retain_graph=True); expected another call of it")
        call.done = True
        m = call.module
        with m._lock:
            adding = (torch._C._will_engine_execute_node(node) for node, _ in ctx.next_functions[ctx.n:] if node is not None)
            call.trains = m._engine is None or any(adding)  # false: an Optimizer's gradients in the engine must not grow by autograd.grad of inputs
            inputs = call.backward(list(slopes), list(tensors[:ctx.n]), list(tensors[ctx.n:]))
            if m._engine is not None:
                m._added |= call.trains
                return (None, None, *inputs, *[None] * (len(tensors) - ctx.n))
            return (None, None, *inputs, *m._take_gradients(any(n for n, _ in call.outputs), call.trained))


class Module(nn.Module):
    """An nn.Module whose forward is a graph of VPPS, which a function of yours builds in each call.

    model       a `vpps.Model` with its parameters declared and its cells recorded. The module makes the model's trainer.
    function    gets the arguments of a call, adds to the current graph, and returns the outputs: a node, `Nodes` of one shape, or a tuple or
                list of these
    sparse      gradients of lookup tables are sparse tensors, for `torch.optim.SparseAdam` and SGD; else dense ones
    recipe      (make, arguments): `make(*arguments)` makes another model and function. A module with a recipe can be copied by `copy.deepcopy`,
                and pickled if `make` is a function of a Python file
    options     of `vpps.Trainer`, as device, vps and precision

    Arguments may be positional or named, and in lists, tuples and dicts. Instead of a float32 tensor the function gets nodes that carry its
    gradient: for a scalar or a vector a node; for more dimensions `Nodes`, one for each vector along the last dimension, in the tensor's order.
    A tensor of whole numbers becomes an array; everything else stays as it is. Other floating tensors raise TypeError. Outputs are float32
    tensors: of a node of shape (), (rows,) or (rows, cols); of n `Nodes` with n before that. With device="cuda" all float32 tensors of a call
    may be on the engine's GPU: outputs and gradients are then there, too, without a copy through the host. Option keep_bytes bounds inputs.

    Parameters are `nn.Parameter`s with the model's names, where a dot becomes an underscore. They share the model's memory: optimizers of torch,
    schedulers, `clip_grad_norm_`, hooks, `state_dict`, `load_state_dict` and `requires_grad_(False)` work, and so do parametrizations, pruning,
    `torch.func.functional_call` and assignments, which replace a parameter by another tensor. Each call copies changed parameters to the engine;
    each backward copies gradients back. `Optimizer` saves both copies. A parameter on which no output of a call depends gets no gradient from it.

    In `train()` dropout is on, with masks by PyTorch's generator; in `eval()` it is off. Several calls may come before backward: the engine keeps
    the values of the latest call, and backward through an earlier one runs its forward again, with the same masks. A second backward through a
    call, and second derivatives, raise RuntimeError. `torch.compile` leaves the module as it is. The module stays on the CPU in float32; its
    `device` is an option."""

    def __init__(self, model: Model, function: Callable[..., Any], *, sparse: bool = False,
                 recipe: tuple[Callable[..., tuple[Model, Callable[..., Any]]], tuple[Any, ...]] | None = None, **options: Any) -> None:
        super().__init__()
        self.model, self.function, self.sparse = model, function, sparse
        self._recipe, self._options = recipe, {"caller": "works", **options}  # the calling thread computes, since it waits for the values anyway
        self._lock = threading.RLock()
        self._graph = self.model.graph()
        self._of: list[Parameter] = self.model.parameters
        self._views: list[F32] = [p.view() for p in self._of]
        self._names = [p.name.replace(".", "_") for p in self._of]
        # the latest call's parameters, whose values are in the model's memory
        self._shared: list[Tensor] = [nn.Parameter(torch.from_numpy(view), requires_grad=not p.frozen) for p, view in zip(self._of, self._views)]
        self._trainer: Optional[Trainer] = None
        self._engine: Optional[Optimizer] = None
        self._open: Optional[weakref.ReferenceType[_Call]] = None
        self._updates = 0
        self._added = False  # whether the engine holds gradients for Optimizer.step
        self._behind = False  # whether the engine has newer values than the model
        self._anchor = torch.zeros((), requires_grad=True)  # makes outputs need gradients when the engine, not PyTorch, has the parameters
        for name, shared in zip(self._names, self._shared):
            self.register_parameter(name, shared)  # type: ignore[arg-type]
        self._versions = [p._version for p in self._shared]

    # ---- the engine

    @property
    def trainer(self) -> Trainer:
        """The model's trainer, for `stats` and the like. Its values are newer than the parameters between `Optimizer.step` and `pull`."""
        if self._trainer is None:
            self._trainer = Trainer(self.model, **self._options)
        return self._trainer

    def _give_up(self) -> None:
        """Drops the step of an earlier call that has run forward but not backward, if any; `backward` of that call then runs forward again."""
        call = self._open() if self._open is not None else None
        self._open = None
        if call is not None and call.step is not None:
            call.step.drop()
            call.step = None

    def pull(self) -> None:
        """Copies the engine's values to the parameters, after steps of `Optimizer`. `state_dict` does so, too."""
        with self._lock:
            if self._behind:
                self._check_unchanged()
                self._give_up()
                self.trainer.read_parameters()
                self._behind = False

    def _check_unchanged(self) -> None:
        for name, p, view, version in zip(self._names, self._shared, self._views, self._versions):
            if p._version != version or p.data_ptr() != view.ctypes.data:
                raise RuntimeError(f"vpps.torch: {name} was changed while the engine had newer values, after Optimizer.step(); expected "
                                   "module.pull() before the change")

    def _tensors(self) -> list[Tensor]:
        """The tensors that have the parameters' names now: parametrizations, `functional_call` and assignments replace parameters."""
        return [getattr(self, name) for name in self._names]

    def _push(self, tensors: list[Tensor] | None = None, trained: list[bool] | None = None) -> None:
        """Makes `tensors` (None: the module's present ones) the parameters: copies changed values to the model and the engine, and freezes
        the parameters that are not `trained` (None: that do not require gradients)."""
        changed = False
        tensors = tensors or self._tensors()
        trained = trained or [p.requires_grad for p in tensors]
        if self._behind:
            self._check_unchanged()
        for i, (name, of, view, p, old) in enumerate(zip(self._names, self._of, self._views, tensors, self._shared)):
            if p is not old:
                if self._engine is not None:
                    raise RuntimeError(f"vpps.torch: {name} was replaced by another tensor after Optimizer had it; expected that before")
                for q in (old, *self.parameters()):  # p becomes the parameter in the model's memory; tensors that were there get copies
                    if q is not p and isinstance(q, nn.Parameter) and q.data_ptr() == view.ctypes.data:
                        q.data = q.detach().clone()  # gives q memory of its own
                self._shared[i] = p
                changed = True
            if p.data_ptr() != view.ctypes.data:  # p's values are not in the model's memory
                if p.shape != view.shape or p.dtype != torch.float32 or p.device.type != "cpu":
                    raise ShapeError(f"vpps.torch: {name} is a tensor of {p.dtype} of shape {tuple(p.shape)} on {p.device}; expected "
                                     f"torch.float32, {view.shape}, cpu")
                view[...] = p.detach().numpy()
                if isinstance(p, nn.Parameter):
                    p.data = torch.from_numpy(view)
                changed = True
            changed |= p._version != self._versions[i]
            self._versions[i] = p._version
            if of.frozen == trained[i]:
                of.frozen = not trained[i]
        if changed:
            self.trainer.write_parameters()

    def _take_gradients(self, ran: bool, trained: list[bool]) -> Iterator[Optional[Tensor]]:
        """Takes the `trained` parameters' gradients from the engine: None if no output depends on a parameter, zeros if no graph `ran`."""
        t = self.trainer
        t.read_gradients()
        taken = [self._gradient(of, p, ran) if wanted else None for of, p, wanted in zip(self._of, self._shared, trained)]
        t.zero_gradients()
        return iter(taken)

    def _gradient(self, of: Parameter, p: Tensor, ran: bool) -> Optional[Tensor]:
        values, entries, there = of._gradient()
        if ran and not there:
            return None
        if not isinstance(of, Lookup):
            return torch.from_numpy(values.copy())
        assert entries is not None
        rows, of_rows = torch.from_numpy(entries.astype(np.int64)), torch.from_numpy(values.copy())
        if self.sparse:
            return torch.sparse_coo_tensor(rows[None], of_rows, p.shape, is_coalesced=True, check_invariants=False)
        return torch.zeros_like(p).index_copy_(0, rows, of_rows)

    # ---- nn.Module

    def forward(self, *arguments: Any, **keywords: Any) -> Any:
        tensors: list[Tensor] = []
        with self._lock:
            gpu = self.trainer._gpu
            taken = [_mapped(some, lambda x, what: _taken_out(x, tensors, gpu, what), "argument") for some in (arguments, keywords)]
            self._give_up()
            self._push()
            wanted = [x.requires_grad and torch.is_grad_enabled() for x in tensors]
            call = _Call(self, taken, wanted)
            anchors = self._shared if self._engine is None else [self._anchor]
            if torch.is_grad_enabled() and (any(wanted) or any(p.requires_grad for p in self._shared)):
                values = _Autograd.apply(call, len(tensors), *tensors, *anchors)
            else:
                values = tuple(_tensors(call.values(tensors)))
        return values[0] if call.single else values

    def zero_grad(self, set_to_none: bool = True) -> None:
        super().zero_grad(set_to_none)
        with self._lock:
            if self._added:
                self._give_up()
                self.trainer.zero_gradients()
                self._added = False

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Module:
        for p in self._shared:
            if fn(p.detach()[:0]).dtype != torch.float32 or fn(p.detach()[:0]).device.type != "cpu":
                raise TypeError("vpps.torch: the module's parameters stay on the CPU in float32, where the model has them; the options "
                                "`device` and `precision` choose where and how it computes")
        return self

    def _save_to_state_dict(self, *arguments: Any) -> None:
        self.pull()
        super()._save_to_state_dict(*arguments)

    def _load_from_state_dict(self, *arguments: Any) -> None:
        self.pull()
        super()._load_from_state_dict(*arguments)

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._recipe is None:
            raise TypeError("vpps.torch: a module without a recipe is neither copied nor pickled; give Module(recipe=...), or save its state_dict()")
        return _made_anew, (type(self), self._recipe, self.sparse, self._options, self.training,
                            {k: v.clone() for k, v in self.state_dict().items()}, [p.requires_grad for p in self._tensors()])

    def __deepcopy__(self, memo: dict[int, Any]) -> Module:
        make, arguments = self.__reduce_ex__(4)
        copied: Module = make(*arguments)
        memo[id(self)] = copied
        return copied


untraced: Any = torch.compiler.disable  # torch.compile breaks its graph at a function so wrapped, and does not compile the function
Module.forward = untraced(Module.forward)  # type: ignore[method-assign]


def _made_anew(kind: type[Module], recipe: Any, sparse: bool, options: dict[str, Any], training: bool, state: dict[str, Tensor],
               trained: list[bool]) -> Module:
    make, arguments = recipe
    m = kind.__new__(kind)
    model, function = make(*arguments)
    Module.__init__(m, model, function, sparse=sparse, recipe=recipe, **options)
    m.load_state_dict(state)
    for p, wanted in zip(m._shared, trained):
        p.requires_grad_(wanted)
    return m.train(training)


class Optimizer(torch.optim.Optimizer):
    """Updates a module's parameters by the engine, in place: backward adds up gradients on the engine's device, and nothing is copied.

        optimizer = vpps.torch.Optimizer(layer, "adam", lr=1e-3)
        loss.backward()
        optimizer.step(); optimizer.zero_grad()

    module      a `Module`. From now on its parameters get no `.grad`; `module.pull()` and `module.state_dict()` bring the engine's newer values.
                A change of parameters after a step needs `pull()` before, else the next call raises RuntimeError. Gradients are cleared by
                `zero_grad()` of the optimizer or the module, not by that of a module around it
    optimizer   "sgd", "momentum", "adagrad", "adam" or "adamw", with the numbers of `vpps.Trainer`; `clip` bounds the norm of all gradients

    Schedulers of PyTorch set `lr`. The rest of a network has an optimizer of its own."""

    def __init__(self, module: Module, optimizer: str = "adam", lr: float = 1e-3, **numbers: Any) -> None:
        if optimizer not in ENUMS["optimizer"]:
            raise ValueError(f"optimizer: {optimizer!r}; expected one of {', '.join(ENUMS['optimizer'])}")
        with module._lock:
            module._give_up()
            module.pull()
            if module._trainer is not None:
                module._trainer.close()  # the module makes another trainer, with these options
            module._trainer, module._options = None, {**module._options, "optimizer": optimizer, "lr": lr, **numbers}
            module._push()
            module._engine = self
        self._module, self._lr = module, lr
        super().__init__(module._shared, {"lr": lr})

    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Updates the parameters by the gradients computed since the latest step, if there are any."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        m = self._module
        with m._lock:
            m._give_up()
            lr = float(self.param_groups[0]["lr"])
            if lr != self._lr:
                m.trainer.set_learning_rate(lr)
                self._lr = lr
            if m._added:
                m.trainer.update()
                m._updates += 1
                m._added, m._behind = False, True
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        self._module.zero_grad(set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        if self.param_groups:
            raise ValueError("vpps.torch.Optimizer: another group of parameters; expected an optimizer of PyTorch for what is not the module's")
        super().add_param_group(param_group)

    def state_dict(self) -> dict[str, Any]:
        """The optimizer's state, with the engine's state as a checkpoint in a tensor of bytes."""
        m = self._module
        with m._lock, tempfile.TemporaryDirectory() as folder:
            m._give_up()
            path = os.path.join(folder, "state")
            m.trainer.save(path)
            with open(path, "rb") as f:
                data = torch.frombuffer(bytearray(f.read()), dtype=torch.uint8)
        return {**super().state_dict(), "engine": data}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads the optimizer's state; parameters stay as they are."""
        m = self._module
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "engine"})
        with m._lock, tempfile.TemporaryDirectory() as folder:
            m._give_up()
            m.pull()
            m._push()
            before = [view.copy() for view in m._views]
            path = os.path.join(folder, "state")
            with open(path, "wb") as f:
                f.write(state_dict["engine"].numpy().tobytes())
            m.trainer.load(path)
            for view, values in zip(m._views, before):
                view[...] = values
            m.trainer.write_parameters()


from ._torch_rnn import GRU, LSTM, RNN  # imported last: these classes derive from Module

__all__ = ["GRU", "LSTM", "RNN", "Module", "Optimizer"]
