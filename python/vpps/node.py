"""Nodes (values in a graph) and vertices (applications of cells): a class for one of them, and a class for an array of many."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, NoReturn, SupportsIndex, TypeVar, Union, overload

import numpy as np
from numpy.typing import ArrayLike

from ._arrays import U32, as_u32, integer, is_masked, place, pointer, real, u32_pointer, whole
from ._vpps import ffi, lib
from .errors import ArgumentError, Hinting, StateError, Uncopied, check, error_of, message

if TYPE_CHECKING:
    from .model import Dense, Matrix, Model, Vector

NO_NODE = 2**32 - 1
NO_PARAM = 2**32 - 1
MOST_PRODUCTS = 32  # of one vpps_affine
FIRST_PULLED = 2**32 - 2**16  # an index or label from here on stands for the result of a vpps_pull_index, a number given to each vertex
One = TypeVar("One", bound="Union[Node, Vertex]")
Some = TypeVar("Some", bound="Many[Any]")


class Epoch(Uncopied):
    """A graph between two clears, or a cell that is recorded; nodes refer to it. `p` is the C graph, and NULL after the clear, so that uses of
    older nodes fail. `at` is the address in `p` as a number. `keeps` is the object that owns the C graph, which therefore lives as long as
    its nodes; None for a cell. While a trainer reads the graph, `running` is true and `p` NULL, so that other threads cannot change it.

    An epoch does not refer to the Graph object: a graph without references is freed at once, without the garbage collector."""

    __slots__ = ("p", "at", "model", "keeps", "running", "values")

    def __init__(self, p: Any, model: Model, keeps: Any = None) -> None:
        self.p, self.at = p, int(ffi.cast("uintptr_t", p))
        self.model, self.keeps, self.running = model, keeps, False
        self.values: list[Any] = []  # kept values on the device that nodes of this graph read; `end` drops them

    def end(self) -> Any:
        """Makes the graph's nodes unusable, and returns the C graph."""
        if self.running:
            raise self.failure()
        p, self.p, self.at = self.p, ffi.NULL, 0
        self.values.clear()
        return p

    def failure(self) -> Exception:
        """The exception for a call that failed to make a node."""
        if self.running:
            return StateError("another thread trains or runs the graph; expected a graph for each thread")
        if not self.p:
            return StateError("the node belongs to a graph that was cleared since, or to a cell that is recorded")
        status = lib.vpps_graph_status(self.p)
        return error_of(status) if status else ArgumentError(message())


def made(e: Epoch, x: int) -> Node:
    """Returns the node x that a C call made; raises the exception for the call's failure if there is none."""
    return Node(e, x if x != NO_NODE else made_id(e, x))


class PulledIndex(Uncopied):
    """The result of `Recorder.pull_index`: a number that every vertex is given when the cell is applied. It can be the index of a lookup or the
    label of a loss. Any other use raises TypeError, since the number is unknown while the cell is recorded."""

    __slots__ = ("_e", "_number", "_cell")
    __array_ufunc__ = None

    def __init__(self, e: Epoch, number: int, cell: str) -> None:
        self._e, self._number, self._cell = e, number, cell

    def __repr__(self) -> str:
        return f"<index {self._number - FIRST_PULLED} that cell {self._cell} pulls>"

    def __format__(self, form: str) -> str:
        return self._no_number() if form else repr(self)

    def _no_number(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"{self!r} has no number while the cell is recorded; expected a use as table[index] or as a loss' label. "
                        "Compute with numbers where the cell is applied, and give the result in indices=")

    __index__ = __int__ = __float__ = __complex__ = __trunc__ = __floor__ = __ceil__ = __round__ = __bool__ = __hash__ = _no_number
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _no_number
    __iter__ = __reversed__ = __len__ = __contains__ = __getitem__ = __array__ = __neg__ = __pos__ = __abs__ = __invert__ = _no_number


for _name in "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor".split():
    setattr(PulledIndex, f"__{_name}__", PulledIndex._no_number)
    setattr(PulledIndex, f"__r{_name}__", PulledIndex._no_number)

Index = Union[SupportsIndex, PulledIndex]
Scalar = Union[int, float]
NUMBERS = (int, float, np.number)


def index_of(x: Index, e: Epoch, what: str, most: int = FIRST_PULLED - 1) -> int:
    """Converts an index or a label for C: a whole number, or, in a recorded cell, a number that each vertex is given (`pull_index`)."""
    if not isinstance(x, PulledIndex):
        return whole(x, what, most)
    if x._e is not e:
        raise ArgumentError(f"{what}: {x!r}; expected one of {'the cell that is recorded' if not e.keeps else 'no cell: a number'}")
    return x._number


class Node(Hinting):
    """A value of a graph, or of a cell that is recorded: `rows` x `cols` numbers. A vector has one column; a scalar has one row, too.

    `a + b`, `a - b`, `a * b` and `a / b` work element by element on equal shapes, or with a number as one operand; `a * b` with a scalar
    node scales. `a @ b` is the product of two nodes, `W @ a` of a parameter and a node. `a[i:j]` is rows i to j - 1. `a**2` is the square."""

    __slots__ = ("_e", "id")
    _elsewhere = {
        "grad": "trainer.backward(loss, gradients=node) returns the gradient",
        "backward": "trainer.step(loss) trains, trainer.backward(loss) makes gradients alone",
        "value numpy data cpu": "trainer.forward(node) computes the value",
        "item": "trainer.value(node) computes a scalar, trainer.loss() has that of the latest batch",
        "detach": "trainer.keep(node) keeps the value for a later graph, as a constant",
        "sum": "vpps.sum_elements(x) is the sum of all elements", "mean": "vpps.sum_elements(x) / the number of elements",
        "size": "x.shape is (rows, cols)", "view reshape": "vpps.reshape(x, rows, cols)", "T": "vpps.transpose(x)",
        **{name: f"vpps.{name}(x)" for name in ("exp", "log", "tanh", "sigmoid", "softmax")}}
    __array_ufunc__ = None  # array + node calls Node.__radd__, which raises TypeError, instead of adding the node to each element

    def __init__(self, e: Epoch, id: int) -> None:
        self._e, self.id = e, id

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, cols)."""
        s: int = lib.glue_shape(self._e.p, self.id)
        if not s:
            raise self._e.failure()
        return s >> 32, s & 0xFFFFFFFF

    def __repr__(self) -> str:
        if not self._e.p:
            return f"<node {self.id} of a graph that was cleared>"
        return "<node {} of {} x {}>".format(self.id, *self.shape)

    def _with(self, other: Operand, call: Any) -> Node:
        e = self._e
        if isinstance(other, Node):
            if other._e is not e:
                raise ArgumentError("nodes of two graphs, or of a graph before and after it was cleared")
            return made(e, call(e.p, self.id, other.id))
        if isinstance(other, NUMBERS):
            return made(e, call(e.p, self.id, made_id(e, lib.vpps_constant(e.p, *self.shape, real(other, "a number beside a node")))))
        as_node = getattr(other, "_node", None)
        if as_node is None:
            raise TypeError(f"a node and {type(other).__name__}; expected a node, a vector parameter or a number, and vpps.input() "
                            "around an array")
        return made(e, call(e.p, self.id, as_node(e).id))

    def __add__(self, other: Operand) -> Node:
        if not isinstance(other, Node) and isinstance(other, (int, float)) and other == 0:
            return self  # so that Python's sum() works
        return self._with(other, lib.vpps_add)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> Node:
        return self._with(other, lib.vpps_sub)

    def __rsub__(self, other: Operand) -> Node:
        if isinstance(other, (int, float)) and other == 1:
            return made(self._e, lib.vpps_one_minus(self._e.p, self.id))
        return (-self).__add__(other)

    def __mul__(self, other: Operand) -> Node:
        e = self._e
        if isinstance(other, NUMBERS):
            return made(e, lib.vpps_scale(e.p, self.id, real(other, "a number beside a node")))
        if isinstance(other, Node) and other._e is e:
            a, b = self.shape, other.shape
            if a != b and b == (1, 1):
                return made(e, lib.vpps_scale_by(e.p, self.id, other.id))
            if a != b and a == (1, 1):
                return made(e, lib.vpps_scale_by(e.p, other.id, self.id))
        return self._with(other, lib.vpps_mul)

    __rmul__ = __mul__

    def __truediv__(self, other: Operand) -> Node:
        e = self._e
        if isinstance(other, NUMBERS):
            return self * (1.0 / real(other, "a number beside a node"))
        if isinstance(other, Node) and other._e is e and other.shape == (1, 1) != self.shape:
            return made(e, lib.vpps_scale_by(e.p, self.id, lib.vpps_reciprocal(e.p, other.id)))
        return self._with(other, lib.vpps_div)

    def __rtruediv__(self, other: Scalar) -> Node:
        x = made(self._e, lib.vpps_reciprocal(self._e.p, self.id))
        return x if other == 1 else x * other

    def __neg__(self) -> Node:
        return made(self._e, lib.vpps_negate(self._e.p, self.id))

    def __pow__(self, exponent: Scalar) -> Node:
        if exponent == 2:
            return made(self._e, lib.vpps_square(self._e.p, self.id))
        raise ArgumentError(f"a node to the power of {exponent}; expected 2, or vpps.sqrt, vpps.reciprocal, vpps.exp")

    def __abs__(self) -> Node:
        return made(self._e, lib.vpps_abs(self._e.p, self.id))

    def __matmul__(self, other: Node | Dense) -> Node:
        if not isinstance(other, Node) and not hasattr(other, "_node"):
            return NotImplemented
        return self._with(other, lib.vpps_matmul)

    def __getitem__(self, rows: SupportsIndex | slice) -> Node:
        n = self.shape[0]
        if isinstance(rows, tuple):
            raise TypeError("rows and columns; expected rows alone, x[i] or x[i:j]")
        if isinstance(rows, slice):
            first, last, step = rows.indices(n)
            if step != 1:
                raise ArgumentError(f"rows in steps of {step}; expected 1")
        else:
            first = place(rows, n, "row")
            last = first + 1
        return made(self._e, lib.vpps_slice(self._e.p, self.id, first, max(last - first, 0)))

    def __iter__(self) -> Iterator[Node]:
        raise TypeError("a node is no sequence; slice it")

    def _no_value(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("a node has no value while the graph is built; trainer.forward(node) computes it, vpps.select and conditions of cells "
                        "choose by it")

    __bool__ = __float__ = __array__ = _no_value


class Affine(Node):
    """A sum of products with matrices, and a bias; it becomes one operation when it is first used."""

    __slots__ = ("_terms", "_bias", "_made")

    def __init__(self, e: Epoch, terms: tuple[tuple[Matrix, Node], ...], bias: Vector | None = None) -> None:
        self._e, self._terms, self._bias = e, terms, bias
        self._made: int | None = None

    @property
    def id(self) -> int:  # type: ignore[override]
        if self._made is None:
            matrices = [w._of(self._e.model) for w, _ in self._terms]
            xs = [x.id for _, x in self._terms]
            bias = NO_PARAM if self._bias is None else self._bias._of(self._e.model)
            self._made = made_id(self._e, lib.vpps_affine(self._e.p, bias, len(xs), matrices, xs))
        return self._made

    def __add__(self, other: Operand) -> Node:
        from .model import Vector

        if self._made is None:
            if isinstance(other, Affine) and other._made is None and other._e is self._e:
                few = len(self._terms) + len(other._terms) <= MOST_PRODUCTS
                if few and (self._bias is None or other._bias is None):
                    return Affine(self._e, self._terms + other._terms, self._bias or other._bias)
            elif isinstance(other, Vector) and self._bias is None:
                return Affine(self._e, self._terms, other)
        return super().__add__(other)

    __radd__ = __add__


Operand = Union[Node, "Dense", Scalar]


def made_id(e: Epoch, x: int) -> int:
    if x == NO_NODE:
        raise e.failure()
    return x


def node_of(x: Any, what: str) -> Node:
    """Returns x, a node or a matrix or vector of the model, as a node. Refuses all else, vertices too: in C, both are numbers."""
    if isinstance(x, Node):
        return x
    if hasattr(x, "_node"):
        return x.node()
    hint = {"Vertex": "; its nodes are v.scattered() and v.pushed()", "Vertices": "; their nodes are v.scattered() and v.pushed()",
            "Lookup": "; an entry of a table is table[index]", "ndarray": "; vpps.input() makes one of an array",
            "float": "; vpps.constant() makes one of a number", "int": "; vpps.constant() makes one of a number",
            "PulledIndex": f", and {x!r} has no number while the cell is recorded; table[index] is an entry"}.get(type(x).__name__, "")
    raise TypeError(f"{what}: {type(x).__name__}; expected a node{hint}")


def same_graph(nodes: Iterable[Any], what: str) -> list[Node]:
    """The nodes as a list. Fails if there is none, or if they do not all belong to one graph, or to one cell that is being recorded."""
    checked = [x if isinstance(x, Node) else node_of(x, what) for x in nodes]
    if not checked:
        raise ArgumentError(f"{what}: no nodes; expected at least one")
    e = checked[0]._e
    for x in checked:
        if x._e is not e:
            raise ArgumentError(f"{what}: nodes of two graphs, or of a graph before and after it was cleared")
    return checked


def picked(ids: U32, i: Any, what: str) -> Any:
    """Returns ids[i], where i is a number, a slice, an array of numbers or a mask, as in NumPy; `what` names ids in messages."""
    if i is None or isinstance(i, (bool, np.bool_, tuple)) or is_masked(i):
        raise TypeError(f"{what}[{i!r}]; expected a number, a slice, an array of numbers, or a mask of {len(ids)}")
    got = ids[integer(i, what) if hasattr(type(i), "__index__") and not isinstance(i, np.ndarray) else i]
    if np.ndim(got) > 1:
        raise TypeError(f"{what}[...]: an index of {np.ndim(got)} dimensions; expected one: {what}.ids[...] is an array of their numbers")
    return got


class Vertex(Uncopied):
    """One application of a cell (a recorded function). Its function makes outputs for other vertices by `scatter`, for operations by `push`."""

    __slots__ = ("_e", "id")

    def __init__(self, e: Epoch, id: int) -> None:
        self._e, self.id = e, id

    def scattered(self, k: int = 0) -> Node:
        """Output number k of the vertex, as a node. The vertex's cell made the output by `scatter`, for other vertices to read."""
        return made(self._e, lib.vpps_scattered(self._e.p, self.id, k))

    def pushed(self, k: int = 0) -> Node:
        """Output number k, from 0, of those that the cell gives by `push` to operations outside of cells and to the program, such as a loss."""
        return made(self._e, lib.vpps_pushed(self._e.p, self.id, k))

    def __repr__(self) -> str:
        return f"<vertex {self.id}>"


class Many(Uncopied, Generic[One]):
    """The base of `Nodes` and `Vertices`. Indexing by a number gives one; by a slice, an array or a mask, several."""

    __slots__ = ("_e", "ids")
    _one: type[One]

    def __init__(self, e: Epoch, ids: U32) -> None:
        self._e, self.ids = e, ids

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, i: int) -> One: ...
    @overload
    def __getitem__(self: Some, i: slice | ArrayLike) -> Some: ...
    def __getitem__(self, i: Any) -> Any:
        got = picked(self.ids, i, type(self).__name__.lower())
        return self._one(self._e, int(got)) if np.ndim(got) == 0 else type(self)(self._e, np.ascontiguousarray(got))

    def __iter__(self) -> Iterator[One]:
        return (self._one(self._e, int(i)) for i in self.ids)

    def __repr__(self) -> str:
        return f"<{len(self)} {type(self).__name__.lower()}>"


class Nodes(Many[Node]):
    """Many nodes of a graph; `ids` has their numbers."""

    __slots__ = ()
    _one = Node


class Vertices(Many[Vertex]):
    """Many vertices of a graph; `ids` has their numbers. Later calls take them as children."""

    __slots__ = ()
    _one = Vertex

    def _outputs(self, k: int, call: Any) -> Nodes:
        out = np.empty(len(self.ids), np.uint32)
        if not self._e.p:
            raise self._e.failure()
        check(call(self._e.p, len(out), u32_pointer(self.ids), k, pointer(out, "uint32_t[]", written=True)))
        return Nodes(self._e, out)

    def scattered(self, k: int = 0) -> Nodes:
        """Output number k of each vertex, as nodes. The vertices' cells made the outputs by `scatter`, for other vertices to read."""
        return self._outputs(k, lib.vpps_scattered_many)

    def pushed(self, k: int = 0) -> Nodes:
        """For each vertex a node: the value that its cell gave out by `push` as number k (from 0), such as logits or a loss."""
        return self._outputs(k, lib.vpps_pushed_many)


def ids_of(x: Any, e: Epoch, what: str, kinds: tuple[type, ...]) -> U32:
    """The numbers of nodes or of vertices: x is an object of the types `kinds`, a list of such objects, or an array of numbers."""
    if isinstance(x, (Nodes, Vertices, Node, Vertex)):
        if not isinstance(x, kinds):
            raise TypeError(f"{what}: {type(x).__name__}; expected {kinds[1].__name__}")
        if x._e is not e:
            raise ArgumentError(f"{what}: of another graph, or of a graph before it was cleared")
        return x.ids if isinstance(x, (Nodes, Vertices)) else np.array([x.id], np.uint32)
    if isinstance(x, (list, tuple)) and x and isinstance(x[0], (Node, Vertex, Nodes, Vertices, list, tuple)):
        return (np.concatenate if isinstance(x[0], (Node, Vertex)) else np.stack)([ids_of(y, e, what, kinds) for y in x])
    return as_u32(x, what)


NODES, VERTICES = (Node, Nodes), (Vertex, Vertices)
