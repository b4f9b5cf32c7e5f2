"""PyTorch's recurrent layers by VPPS: `vpps.torch.LSTM`, `GRU` and `RNN`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from . import nn, ops
from ._arrays import as_u32
from .errors import ArgumentError, ShapeError
from .graph import Graph, current
from .model import Model
from .node import Nodes
from .torch import Module, untraced

I64 = NDArray[np.int64]
T = TypeVar("T", bound="Recurrent")


class Config(NamedTuple):
    """The arguments of the constructors of PyTorch's layers."""

    cell: type[nn.Recurrent]; input_size: int; hidden_size: int; num_layers: int
    bias: bool; batch_first: bool; dropout: float; bidirectional: bool


def make(o: Config) -> tuple[Model, Callable[..., Any]]:
    """Returns a model, and a function of (x, lengths, start, row) that builds a batch's graph. x has a node for each step of each sequence;
    `row` is an array of indices that sorts x by sequence and step (None: x is sorted); `start` has the first states (None: zeros)."""
    model, ways = Model(), range(2 if o.bidirectional else 1)
    drops = [o.dropout if k + 1 < o.num_layers else 0.0 for k in range(o.num_layers)]  # dropout of a layer's output

    def layer(k: int, way: int) -> nn.Recurrent:
        inputs = o.input_size if not k else (o.hidden_size,) * len(ways) if o.bidirectional else o.hidden_size
        return o.cell(model, inputs, o.hidden_size, suffix=f"_l{k}{'_reverse' * way}", bias=o.bias,
                      head=(lambda c, h: c.push(ops.dropout(h, drops[k]))) if drops[k] else None)

    layers = [[layer(k, way) for way in ways] for k in range(o.num_layers)]

    def function(x: Nodes, lengths: I64, start: list[Nodes] | None, row: I64 | None) -> tuple[Nodes, ...]:
        last: list[list[Any]] = [[] for _ in o.cell.begin[:2]]
        given: Any = x if row is None else x[row]
        for k, of_layer in enumerate(layers):
            outs = []
            for way, cell in enumerate(of_layer):
                at = (k * len(ways) + way) * len(lengths)
                some = None if start is None else [s[at:at + len(lengths)] for s in start]
                v, ends = nn.chain_and_ends(cell, given, lengths, start=some, reverse=bool(way))
                outs.append(v.pushed() if drops[k] else v.scattered())
                for n, states in enumerate(last):
                    states.append(ends.scattered(n).ids)
            given = tuple(outs) if o.bidirectional else outs[0]
        g = current()
        assert isinstance(g, Graph)
        return (*(outs if row is None else [y[np.argsort(row)] for y in outs]), *(g.nodes(np.concatenate(states)) for states in last))

    return model, function


def _with_state(made: Any, of: torch.nn.Module) -> Any:
    """Copies to the layer `made` the parameters, their requires_grad and the mode (training or not) of the layer `of`. Returns `made`."""
    made.load_state_dict(of.state_dict())
    for p, q in zip(made.parameters(), of.parameters()):
        p.requires_grad_(q.requires_grad)
    return made.train(of.training)


class Recurrent(Module):
    """Replaces PyTorch's layer of the same name. Arguments, parameters, first values, inputs, outputs and gradients are equal, to 1e-5; dropout
    masks differ. proj_size is refused. Options of `vpps.Trainer` may be given by name. With device="cuda" the parameters stay on the CPU;
    tensors may be on the CPU or on the engine's GPU.

    Inputs are padded batches, single sequences, packed sequences and jagged nested tensors of float32. `lengths`, a number from 0 for each
    sequence of a padded batch, saves work: outputs after a sequence's end are zeros, as those of `pad_packed_sequence`, and not computed. With
    `lengths`, an input of two dimensions has all steps of the first sequence, then of the second, and so on; so has the output."""

    cells: dict[str, type[nn.Recurrent]]
    of_torch: type[torch.nn.RNNBase]

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device: Any = None, dtype: Any = None, *,
                 nonlinearity: str = "tanh", **options: Any) -> None:
        kind = type(self).__name__
        if proj_size:
            raise ArgumentError(f"vpps.torch.{kind}: proj_size={proj_size}; expected 0: projections are not computed")
        if dtype not in (None, torch.float32):
            raise TypeError(f"vpps.torch.{kind}: dtype={dtype}; expected torch.float32")
        if nonlinearity not in self.cells:
            raise ArgumentError(f"vpps.torch.{kind}: nonlinearity={nonlinearity!r}; expected {' or '.join(map(repr, self.cells))}")
        for name, n in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
            if isinstance(n, bool) or not isinstance(n, int) or n < 1:
                raise ArgumentError(f"vpps.torch.{kind}: {name}={n!r}; expected a whole number from 1 on")
        if not 0 <= dropout < 1:
            raise ArgumentError(f"vpps.torch.{kind}: dropout={dropout}; expected 0 to less than 1")
        config = Config(self.cells[nonlinearity], input_size, hidden_size, num_layers, bool(bias), bool(batch_first), float(dropout),
                        bool(bidirectional))
        if device is not None:
            options["device"] = str(device)
        super().__init__(*make(config), recipe=(make, (config,)), **options)
        self.reset_parameters()

    @property
    def config(self) -> Config:
        assert self._recipe is not None
        return self._recipe[1][0]

    def __getattr__(self, name: str) -> Any:
        if name in Config._fields:  # attributes of PyTorch's layers, such as input_size
            return getattr(self.config, name)
        return super().__getattr__(name)

    def extra_repr(self) -> str:
        return ", ".join(f"{k}={v}" for k, v in self.config._asdict().items() if k != "cell")

    def reset_parameters(self) -> None:
        """Sets PyTorch's initial values: equal ones after the same `torch.manual_seed`."""
        for p in self.parameters():
            torch.nn.init.uniform_(p, -self.config.hidden_size**-0.5, self.config.hidden_size**-0.5)

    def flatten_parameters(self) -> None:
        """Does nothing; PyTorch's layers have a method of this name."""

    @classmethod
    def from_torch(cls: type[T], module: torch.nn.RNNBase, **options: Any) -> T:
        """A layer with a copy of the parameters of PyTorch's layer."""
        if not isinstance(module, cls.of_torch):
            raise TypeError(f"vpps.torch.{cls.__name__}.from_torch: {type(module).__name__}; expected torch.nn.{cls.of_torch.__name__}")
        names = [*Config._fields[1:], "proj_size", *(["nonlinearity"] if len(cls.cells) > 1 else [])]
        return _with_state(cls(**{name: getattr(module, name) for name in names}, **options), module)

    def to_torch(self) -> torch.nn.RNNBase:
        """PyTorch's layer with a copy of this layer's parameters."""
        values = self.config._asdict()
        cell = values.pop("cell")
        if len(self.cells) > 1:
            values["nonlinearity"] = next(k for k, v in self.cells.items() if v is cell)
        return _with_state(self.of_torch(**values), self)

    def forward(self, input: Any, hx: Any = None, lengths: Any = None) -> tuple[Any, Any]:
        o = self.config
        if lengths is not None and (isinstance(input, PackedSequence) or input.is_nested):
            raise ArgumentError("lengths beside a packed sequence or a nested tensor; expected them beside a padded batch alone")
        data, of, at, back = self._sequences(input, lengths)
        if data.shape[-1] != o.input_size:
            raise ShapeError(f"input: {data.shape[-1]} numbers a step; expected input_size, which is {o.input_size}")
        single = isinstance(input, Tensor) and not input.is_nested and input.dim() == 2 and lengths is None
        x, start = data.reshape(-1, o.input_size), self._start_states(hx, len(of), single)
        where = None if at is None or len(at) == len(x) else torch.from_numpy(at).to(x.device)  # rows of x that are no padding; None: all
        *outs, = super().forward(x if where is None else x.index_select(0, where), of, start, at if where is None else None)
        n_ways = 2 if o.bidirectional else 1
        parts = [part.reshape(-1, o.hidden_size) for part in outs[:n_ways]]
        y = torch.cat(parts, 1) if o.bidirectional else parts[0]
        if where is not None:
            y = y.new_zeros(len(x), y.shape[1]).index_copy(0, where, y)
        last = [s.reshape(n_ways * o.num_layers, len(of), o.hidden_size) for s in outs[n_ways:]]
        if single:
            last = [s.squeeze(1) for s in last]
        return back(y), tuple(last) if len(last) > 1 else last[0]

    def _sequences(self, input: Any, lengths: Any) -> tuple[Tensor, I64, I64 | None, Callable[[Tensor], Any]]:
        """Returns a tensor of ... x input_size, which has one row for each step; the sequences' lengths; indices that sort the rows by sequence and
        step (None: they are sorted); and a function that gives an array of output rows the form of `input` (padded, packed or nested)."""
        if isinstance(input, PackedSequence):
            sizes = input.batch_sizes.numpy()
            n = int(sizes[0]) if len(sizes) else 0
            place = np.arange(n) if input.unsorted_indices is None else input.unsorted_indices.cpu().numpy()
            of = (sizes[None] > place[:, None]).sum(1)
            sequence, step = _steps(of)
            return input.data, of, (np.cumsum(sizes) - sizes)[step] + place[sequence], lambda y: input._replace(data=y)
        if not isinstance(input, Tensor):
            raise TypeError(f"input: {type(input).__name__}; expected a tensor or a PackedSequence")
        if input.is_nested:
            nested: Any = input
            if nested.layout != torch.jagged or nested.dim() != 3 or nested.lengths() is not None:
                raise ArgumentError("input: a nested tensor of another form; expected layout=torch.jagged, of sequences x steps x input_size, "
                                    "without holes")
            offsets = nested.offsets()
            return nested.values(), np.diff(offsets.cpu().numpy()), None, lambda y: torch.nested.nested_tensor_from_jagged(y, offsets)
        if input.dim() not in (2, 3):
            raise ShapeError(f"input: a tensor of shape {tuple(input.shape)}; expected two dimensions, or three of a batch")
        n, most = (1, len(input)) if input.dim() == 2 else input.shape[:2] if self.config.batch_first else (input.shape[1], input.shape[0])
        of = np.full(n, most, np.int64)
        if lengths is not None:
            of = as_u32(lengths.cpu().numpy() if isinstance(lengths, Tensor) else lengths, "lengths").astype(np.int64)
            if input.dim() == 2:
                if of.ndim != 1 or of.sum() != len(input):
                    raise ShapeError(f"lengths: {of.tolist()}; expected numbers whose sum is {len(input)}, the steps of all sequences")
                return input, of, None, lambda y: y
            if of.shape != (n,) or (of > most).any():
                raise ShapeError(f"lengths: {of.tolist()}; expected {n} numbers up to {most}")
        sequence, step = _steps(of)
        at = sequence * most + step if self.config.batch_first or input.dim() == 2 else step * n + sequence
        return input, of, at, lambda y: y.reshape(*input.shape[:-1], y.shape[1])

    def _start_states(self, hx: Any, n: int, single: bool) -> list[Tensor] | None:
        if hx is None:
            return None
        o = self.config
        kinds, rows = len(o.cell.begin), o.num_layers * (2 if o.bidirectional else 1)
        states = list(hx) if isinstance(hx, (tuple, list)) else [hx]
        expected = (rows, o.hidden_size) if single else (rows, n, o.hidden_size)
        if len(states) != kinds or isinstance(hx, Tensor) and kinds > 1:
            raise ArgumentError(f"hx: {len(states)} states; expected {'h_0 and c_0' if kinds > 1 else 'h_0'}")
        for s, name in zip(states, ("h_0", "c_0")):
            if tuple(s.shape) != expected:
                raise ShapeError(f"hx: {name} of shape {tuple(s.shape)}; expected {expected}")
        return [s.reshape(rows, n, o.hidden_size) for s in states]


Recurrent.forward = untraced(Recurrent.forward)  # type: ignore[method-assign]


def _steps(lengths: I64) -> tuple[I64, I64]:
    """Returns two arrays over the steps of all sequences: the number of the step's sequence, and the step's number in that sequence."""
    return np.repeat(np.arange(len(lengths)), lengths), np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


class LSTM(Recurrent):
    """PyTorch's nn.LSTM; see `Recurrent`."""

    cells, of_torch = {"tanh": nn.LSTM}, torch.nn.LSTM


class GRU(Recurrent):
    """PyTorch's nn.GRU; see `Recurrent`."""

    cells, of_torch = {"tanh": nn.GRU}, torch.nn.GRU


class RNN(Recurrent):
    """PyTorch's nn.RNN; see `Recurrent`."""

    cells, of_torch = {"tanh": nn.RNN, "relu": nn.ReluRNN}, torch.nn.RNN

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, **more: Any) -> None:
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, nonlinearity=nonlinearity, **more)
