"""Models: parameters and cells."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Union

import numpy as np

from ._arrays import F32, U32, Floats, Path, as_f32, encode, fill, keeping, names_of, path_bytes, real, whole
from ._vpps import ffi, lib
from .errors import ArgumentError, FormatError, Hinting, check, result, sized, written
from .graph import Builder, Cell, Graph, Recorder, _current, current
from .node import NO_PARAM, Affine, Epoch, Index, Node, made, node_of

if TYPE_CHECKING:
    from .trainer import Communicator, Trainer


class Init(NamedTuple):
    """The initial values of a parameter; see `glorot`, `uniform`, `normal` and `constant_init`."""

    kind: int; a: float = 0.0; b: float = 0.0


def glorot() -> Init:
    """Uniform in +-sqrt(6 / (rows + cols)), an entry of a table counting as rows x 1; vectors are zero. The default."""
    return Init(lib.VPPS_INIT_GLOROT)


def uniform(a: float, b: float) -> Init:
    """Values uniform in [a, b)."""
    return Init(lib.VPPS_INIT_UNIFORM, a, b)


def normal(mean: float, deviation: float) -> Init:
    """Normally distributed values."""
    return Init(lib.VPPS_INIT_NORMAL, mean, deviation)


def constant_init(value: float) -> Init:
    """All elements get this value. A plain number in place of an Init means the same."""
    return Init(lib.VPPS_INIT_CONSTANT, value)


InitLike = Union[Init, float, Floats, None]


class Gradient(NamedTuple):
    """A parameter's gradient. A matrix or vector has `values` of its own shape, and `entries` is None. A table has the numbers of the
    entries with a gradient in `entries`, and their values, n x rows (x cols), in `values`."""

    values: F32; entries: U32 | None = None


class Parameter(Hinting):
    """A matrix, a vector or a lookup table of a model."""

    _instead = "; p.value is a copy of the values"
    _elsewhere = {
        "grad": "p.gradient has it after trainer.backward(loss) and trainer.read_gradients()",
        "data": "p.value is a copy of the values, p.view() the model's memory", "numpy detach values weight": "p.value is a copy of the values",
        "requires_grad": "p.frozen says whether training leaves the parameter as it is, and can be assigned", "T": "vpps.transpose(p) is a node"}

    def __init__(self, model: Model, id: int) -> None:
        self.model, self.id = model, id

    def _of(self, model: Model) -> int:
        """Returns the parameter's number; fails if it is not a parameter of this model."""
        if model is not self.model:
            raise ArgumentError(f"parameter {self.name} of another model")
        return self.id

    def _info(self) -> Any:
        info = sized("vpps_param_info")
        check(lib.vpps_param_describe(self.model._c, self.id, info))
        return info

    @property
    def name(self) -> str:
        """The name given at the declaration, which checkpoints use."""
        return ffi.string(self._info().name).decode()

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, cols) of a matrix, (rows,) of a vector, (count, rows) or (count, rows, cols) of a table."""
        return self.view().shape

    def view(self) -> F32:
        """The values in the model's memory as an array, without copying. `Trainer.read_parameters` copies a trainer's values there,
        `Trainer.write_parameters` copies the values there to the trainer. The array may outlive the model."""
        info = self._info()
        # the array holds `values`, whose destructor refers to the C model, so that the model's memory lives as long as the array
        values = ffi.gc(lib.vpps_param_values(self.model._c, self.id), lambda _, k=self.model._glue: None)
        own = info.count if info.step <= 1 else max(0, -(-(info.count - info.first) // info.step))
        return self._shown(info, values, own)

    @staticmethod
    def _shown(info: Any, values: Any, own: int) -> F32:
        """Makes an array over the memory at `values`, without a copy: a row-major matrix, a vector, or `own` column-major entries of a table."""
        flat: F32 = np.frombuffer(ffi.buffer(values, 4 * own * info.rows * info.cols), np.float32)
        entry = (info.rows,) if info.cols == 1 else (info.cols, info.rows)
        shape: tuple[int, ...] = {lib.VPPS_MATRIX: (info.rows, info.cols), lib.VPPS_VECTOR: (info.rows,)}.get(info.kind, (own, *entry))
        values_of = flat.reshape(shape)
        return values_of.transpose(0, 2, 1) if values_of.ndim == 3 else values_of

    @property
    def value(self) -> F32:
        """A copy of the values: the trainer's if the model has one. Assigning sets the values in the model and the trainer."""
        self.model._read()
        return np.array(self.view())

    @value.setter
    def value(self, values: Floats) -> None:
        new, view = as_f32(values, f"parameter {self.name}"), self.view()
        if new.shape != view.shape:
            raise ArgumentError(f"parameter {self.name}: values of shape {new.shape}; expected {view.shape}")
        self.model._read()
        view[...] = new
        self.model._write()

    def _gradient(self) -> tuple[F32, U32 | None, bool]:
        """Returns the gradient in the model's memory (valid until the next read_gradients), the table's entries in it, and whether it exists."""
        out, info = sized("vpps_gradient"), self._info()
        check(lib.vpps_param_gradient(self.model._c, self.id, out))
        if info.kind != lib.VPPS_LOOKUP:
            return self._shown(info, out.values, 1), None, out.n > 0
        if not out.n:
            return np.empty((0, *self.shape[1:]), np.float32), np.empty(0, np.uint32), False
        entries: U32 = np.frombuffer(ffi.buffer(out.entries, 4 * out.n), np.uint32).copy()
        return self._shown(info, out.values, out.n), entries, True

    @property
    def gradient(self) -> Gradient:
        """A copy of the gradient as of the latest `Trainer.read_gradients`; zeros for a matrix or vector without gradient."""
        values, entries, _ = self._gradient()
        return Gradient(np.array(values), entries)

    def set_gradient(self, values: Floats) -> None:
        """Sets the model's copy of the gradient (of a table: of entries `gradient.entries`). `Trainer.write_gradients` copies it to the trainer."""
        new, (old, *_) = as_f32(values, f"gradient of {self.name}"), self._gradient()
        if new.shape != old.shape:
            raise ArgumentError(f"parameter {self.name}: a gradient of shape {new.shape}; expected {old.shape}")
        old[...] = new

    @property
    def frozen(self) -> bool:
        """Whether training leaves the parameter unchanged; assigning takes effect with the next batch."""
        return bool(self._info().frozen)

    @frozen.setter
    def frozen(self, frozen: bool) -> None:
        check(lib.vpps_freeze(self.model._c, self.id, frozen))

    def __repr__(self) -> str:
        return f"<{type(self).__name__.lower()} {self.name} of shape {self.shape}>"


class Dense(Parameter):
    """A matrix or a vector. It can be used wherever a node is expected; `p.node()` has a node's operators."""

    def _node(self, e: Epoch) -> Node:
        return made(e, lib.vpps_parameter(e.p, self._of(e.model)))

    def node(self) -> Node:
        """The parameter as a node of the current graph, or of the cell being recorded."""
        return current().parameter(self)


class Matrix(Dense):
    """A rows x cols matrix. `W @ x` is its product with a node of `cols` rows; a sum of such products and a bias is one operation. Any other
    use copies the matrix: at each call of `W.node()` in a graph, or at each vertex (application of a cell) whose cell uses it."""

    def __matmul__(self, x: Node | Dense) -> Node:
        x = node_of(x, f"{self.name} @")
        self._of(x._e.model)
        return Affine(x._e, ((self, x),))


class Vector(Dense):
    """A vector of `rows` elements."""


class Lookup(Parameter):
    """A table of `count` entries of rows x cols. `table[index]` is an entry, on the current graph or in the cell being recorded."""

    def __getitem__(self, index: Index) -> Node:
        return current().lookup(self, index)

    def __iter__(self) -> Iterator[Node]:
        raise TypeError("a table is no sequence; index it")

    def at(self, index: Node) -> Node:
        """The table's entry whose number is the value of the scalar node `index`; for `Trainer.forward` only."""
        b: Builder = current()
        return b.lookup_at(self, index)


CLASSES: dict[int, type[Parameter]] = {lib.VPPS_MATRIX: Matrix, lib.VPPS_VECTOR: Vector, lib.VPPS_LOOKUP: Lookup}


PRECISIONS = names_of("VPPS_C_")  # of Model.export_c


class Model(Hinting):
    """Parameters and cells. Equal seeds and declarations give equal initial values."""

    _elsewhere = {
        "train": "trainer.step(loss) trains", "eval": "trainer.forward(node) has no dropout, and needs no other mode",
        "to cuda": "the device is chosen by vpps.Trainer(model, device=...)", "zero_grad": "trainer.zero_gradients() forgets gradients",
        "named_parameters": "model.parameters is a list; each has a name", "forward": "trainer.forward(node) computes values",
        "save": "trainer.save(path) writes a checkpoint", "load": "trainer.load(path) reads it"}
    _instead = "; state_dict() has copies of its values, which a model that is declared alike takes by load_state_dict()"

    def __init__(self, seed: int = 1) -> None:
        self._glue = ffi.gc(result(lib.glue_model_create, whole(seed, "seed", 2**64 - 1)), lib.glue_model_release)
        self._c = self._glue.model
        self._trainer: Callable[[], Trainer | None] = lambda: None
        self._drops = False  # whether any cell or graph so far has dropout

    def __repr__(self) -> str:
        lines = [f"  {p.name:12} {type(p).__name__.lower():7} {' x '.join(map(str, p.shape))}{'  frozen' if p.frozen else ''}"
                 for p in self.parameters]
        return "\n".join([f"<model of {len(lines)} parameters, {sum(p.view().size for p in self.parameters):,} numbers>", *lines])

    # ---- parameters

    def _init(self, name: str, init: InitLike, shape: tuple[int, ...], order: tuple[int, ...]) -> Any:
        """Makes the C struct vpps_init from `init`; NULL from None. An array must have the parameter's `shape`; C gets its axes in `order`."""
        what = f"parameter {name}: initial values"
        if init is None:
            return ffi.NULL
        if isinstance(init, Init):
            return ffi.new("vpps_init *", {"kind": init.kind, "a": real(init.a, what), "b": real(init.b, what)})
        values = as_f32(init, what)
        if not values.ndim:
            return ffi.new("vpps_init *", {"kind": lib.VPPS_INIT_CONSTANT, "a": float(values)})
        if values.shape != shape:
            raise ArgumentError(f"{what} of shape {values.shape}; expected {shape}")
        flat = ffi.from_buffer("float[]", np.ascontiguousarray(values.transpose(order)))
        return keeping(ffi.new("vpps_init *", {"kind": lib.VPPS_INIT_VALUES, "values": flat}), flat)

    def _added(self, call: Any, name: str, sizes: tuple[int, ...], init: Any) -> int:
        """Declares a parameter by the C function `call`; returns the parameter's number."""
        out = ffi.new("vpps_param *")
        check(call(self._c, out, encode(name, "name"), *(whole(n, f"parameter {name}: size") for n in sizes), init))
        return out[0]

    def add_matrix(self, name: str, rows: int, cols: int, init: InitLike = None) -> Matrix:
        """Declares a rows x cols matrix. `init`: an `Init`, a number, or rows x cols values; None: `glorot()`."""
        return Matrix(self, self._added(lib.vpps_add_matrix, name, (rows, cols), self._init(name, init, (rows, cols), (0, 1))))

    def add_vector(self, name: str, rows: int, init: InitLike = None) -> Vector:
        """Declares a vector of `rows` elements; `init` None: zeros."""
        return Vector(self, self._added(lib.vpps_add_vector, name, (rows,), self._init(name, init, (rows,), (0,))))

    def add_lookup(self, name: str, count: int, rows: int, cols: int = 1, init: InitLike = None) -> Lookup:
        """Declares a table of `count` entries of rows x cols; initial values are count x rows, or count x rows x cols."""
        shape, order = ((count, rows), (0, 1)) if cols == 1 else ((count, rows, cols), (0, 2, 1))
        return Lookup(self, self._added(lib.vpps_add_lookup, name, (count, rows, cols), self._init(name, init, shape, order)))

    @property
    def parameters(self) -> list[Parameter]:
        """All parameters, in order of declaration."""
        return [CLASSES[Parameter(self, id)._info().kind](self, id) for id in range(lib.vpps_param_count(self._c))]

    def parameter(self, name: str) -> Parameter:
        """The parameter of that name."""
        return self.parameters[result(lib.vpps_param_find, self._c, encode(name, "name"))]

    def gradient_norm(self, parameter: Parameter | None = None) -> float:
        """The Euclidean norm of a parameter's gradient (None: of all gradients together) as of the latest `Trainer.read_gradients`."""
        return result(lib.vpps_gradient_norm, self._c, NO_PARAM if parameter is None else parameter._of(self))

    def shard_tables(self, communicator: Communicator | None) -> None:
        """Distributes the tables that are declared after this call over the communicator's processes."""
        check(lib.vpps_shard_tables(self._c, ffi.NULL if communicator is None else communicator._c))

    def state_dict(self) -> dict[str, F32]:
        """Copies of all values by name, for `safetensors.numpy.save_file` and the like."""
        self._read()
        return {p.name: np.ascontiguousarray(p.view()).copy() for p in self.parameters}

    def export_c(self, path: Path, *, header: Path | None = None, weights: Path | None = None, prefix: str = "net", precision: str = "fp32",
                 losses: bool = False) -> None:
        """Writes the model's cells to `path` as C99 functions that need only libc and libm. `header`: a file for prototypes and constants;
        None: all is in one file. `weights`: a file for the weights; None: they are in the C source. `precision`: fp32, bf16, or int8 with a
        scale for each row. Comments in the source say what each function reads and writes. Files are written, atomically, once all are generated."""
        self._read()
        paths = [None if p is None else path_bytes(p) for p in (path, header, weights)]
        o = fill(sized("vpps_c_export"), {"prefix": prefix, "header_name": None if header is None else os.path.basename(header),
                                          "precision": precision, "losses": losses}, {"precision": PRECISIONS})

        def export(source: Any, *others: Any) -> int:
            o.header, o.weights = (ffi.NULL if to is None else file for to, file in zip(paths[1:], others))
            return lib.vpps_export_c(self._c, source, o)

        for to, text in zip(paths, written(export, 3)):
            if to is not None:
                check(lib.vpps_output_write_file(to, text, len(text)))

    def load_state_dict(self, values: Mapping[str, Floats]) -> None:
        """Sets all values by name, in the trainer, too. All or nothing: fails if a name is missing or unknown, or a shape differs."""
        known = {p.name: p for p in self.parameters}
        missing, unknown = sorted(known.keys() - values.keys()), sorted(values.keys() - known.keys())
        if missing or unknown:
            raise FormatError(f"load_state_dict: missing {missing}, unknown {unknown}")
        arrays = {name: as_f32(v, f"load_state_dict: {name}") for name, v in values.items()}
        for name, a in arrays.items():
            if a.shape != known[name].shape:
                raise FormatError(f"load_state_dict: {name} has shape {a.shape}; expected {known[name].shape}")
        self._read()
        for name, a in arrays.items():
            known[name].view()[...] = a
        self._write()

    def _read(self) -> None:
        if (trainer := self._trainer()) is not None:
            trainer.read_parameters()

    def _on_gpu(self) -> Trainer | None:
        """Returns the model's trainer if the trainer is on a GPU, else None."""
        trainer = self._trainer()
        return None if trainer is None or trainer._gpu is None else trainer

    def _write(self) -> None:
        if (trainer := self._trainer()) is not None:
            trainer.write_parameters()

    # ---- cells and graphs

    def cell(self, function: Callable[[Recorder], None]) -> Cell:
        """Decorator: records the function, which is given a `Recorder`, as a cell of its name, once:

            @model.cell
            def rnn(c: vpps.Recorder) -> None:
                h = vpps.tanh(Wx @ words[c.pull_index()] + Wh @ c.gather(0, 0, HIDDEN) + b)
                c.scatter(h)"""
        return self.named_cell(getattr(function, "__name__", "cell"))(function)

    def named_cell(self, name: str) -> Callable[[Callable[[Recorder], None]], Cell]:
        """Decorator: records the function as `cell` does, under another name for messages and listings."""

        def record(function: Callable[[Recorder], None]) -> Cell:
            recorder = Recorder(self, name)
            _current.stack.append(recorder)
            try:
                returned: object = function(recorder)  # type: ignore[func-returns-value]
                if returned is not None:
                    raise TypeError(f"cell {name}: its function returned {type(returned).__name__}; outputs are given to scatter() and push()")
            except BaseException:
                lib.vpps_graph_destroy(recorder._epoch.end())
                raise
            finally:
                recorder._pop_current()
            return Cell(self, result(lib.vpps_cell_end, recorder._epoch.end()), name, recorder._lists, recorder._pull_list_of)

        return record

    def graph(self) -> Graph:
        """An empty graph over the model's parameters."""
        return Graph(self)
