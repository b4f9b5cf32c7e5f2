"""Graphs (a batch's computation), cells (functions applied at the vertices of graphs), and recorders, which record a cell's operations once."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, Union

import numpy as np
from numpy.typing import ArrayLike

from ._arrays import (DEFAULT_STREAM, LARGEST, U32, Floats, OnGpu, as_f32, as_u32, columns, encode, is_on_gpu, keeping, leaf_only, pointer, real,
                      u32_pointer, whole)
from ._vpps import ffi, lib
from .errors import ArgumentError, StateError, Uncopied, check, result, sized
from .node import (FIRST_PULLED, NODES, NO_NODE, VERTICES, Epoch, Index, Node, Nodes, PulledIndex, Scalar, Vertex, Vertices, ids_of, index_of, made, made_id,
                   node_of)

if TYPE_CHECKING:
    from .model import Dense, Lookup, Model

NO_VERTEX = 2**32 - 1
_apply: Any = ctypes.cast(lib.glue_python_apply(), ctypes.py_object).value

Numbers = Union[ArrayLike, Sequence[SupportsIndex]]  # of one vertex
Ids = Union[ArrayLike, Nodes, Vertices, Sequence[Node], Sequence[Vertex]]


class _Current(threading.local):
    def __init__(self) -> None:
        self.stack: list[Builder] = []


_current = _Current()


def current() -> Builder:
    """The graph or recorder that this thread builds on: the innermost `with graph:`, or the cell being recorded."""
    stack = _current.stack
    if not stack:
        raise StateError("no graph is being built; expected `with graph:` around this, or a cell's function")
    return stack[-1]


class Members(NamedTuple):
    """What a list input of a cell (an input of any number of vertices or nodes) reads at all vertices of a call of `Graph.apply`: vertex i reads
    children[first[i]:first[i + 1]]. `children` is None if the input has nodes only, which are then an entry of the argument `pull_lists`."""

    first: ArrayLike; children: Ids | None = None


class Cost(NamedTuple):
    """A lower bound of the work of one training step on a graph: an operation counts once for each vertex, and for each member of a list.

    product_flops     of W @ x and a @ b: 2 for each multiplication in forward, and 2 more for each of the two factors that has a gradient
    other_flops       operations other than products
    parameter_bytes   each element of a parameter, or of a table entry that is used, is read and written once; if it is frozen, only read
    value_bytes       each value and each gradient of a value is written once and read once"""

    nodes: int; product_flops: int; other_flops: int; parameter_bytes: int; value_bytes: int


class Builder(Uncopied):
    """The base class of `Graph` and `Recorder`; its methods make leaf nodes: inputs, constants, lookups and parameters."""

    model: Model
    _epoch: Epoch
    _not_own = "a node of another graph, or of this one before it was cleared"

    @property
    def _p(self) -> Any:
        """The C graph or, in a Recorder, the C cell. Fails after the graph's clear or the cell's end, and while a trainer reads the graph."""
        if not self._epoch.p:
            raise self._epoch.failure()
        return self._epoch.p

    def input(self, data: Floats) -> Node:
        """A node of numbers, which are copied: a scalar, a vector or a matrix of rows x cols; any array, sequence or DLPack tensor. A tensor in
        the memory of the GPU on which the model's trainer runs is copied there."""
        leaf_only(data, "input")
        trainer = self.model._on_gpu() if is_on_gpu(data) else None
        if trainer is not None:
            value = trainer.keep_data(data)
            self._epoch.values.append(value)
            return made(self._epoch, lib.vpps_kept(self._epoch.p, trainer._c, value._number[0]))
        rows, cols, flat = columns(as_f32(data, "input"))
        return made(self._epoch, lib.vpps_input(self._epoch.p, rows, cols, pointer(flat, "float[]")))

    def constant(self, value: Scalar, rows: int = 1, cols: int = 1) -> Node:
        """rows x cols elements of one number, without gradient."""
        return made(self._epoch, lib.vpps_constant(self._epoch.p, rows, cols, real(value, "constant")))

    def zeros(self, rows: int = 1, cols: int = 1) -> Node:
        """rows x cols zeros, without gradient."""
        return made(self._epoch, lib.vpps_zeros(self._epoch.p, rows, cols))

    def ones(self, rows: int = 1, cols: int = 1) -> Node:
        """rows x cols ones, without gradient."""
        return made(self._epoch, lib.vpps_ones(self._epoch.p, rows, cols))

    def lookup(self, table: Lookup, index: Index) -> Node:
        """Entry `index` of a table, with the table's rows and cols; `table[index]` on the current graph is the same."""
        e, id = self._epoch, table._of(self.model)
        plain = type(index) is int and 0 <= index < FIRST_PULLED
        return made(e, lib.vpps_lookup(e.p, id, index if plain else index_of(index, e, "lookup: index", table._info().count - 1)))

    def lookup_at(self, table: Lookup, index: Node) -> Node:
        """The table's entry whose number is the value of the node `index`. The device reads the number; for `Trainer.forward` only."""
        return made(self._epoch, lib.vpps_lookup_at(self._epoch.p, table._of(self.model), self._own(index).id))

    def parameter(self, parameter: Dense) -> Node:
        """A vector or a matrix of the model as a node."""
        return made(self._epoch, lib.vpps_parameter(self._epoch.p, parameter._of(self.model)))

    def _own(self, x: Node | Dense) -> Node:
        """x as a node of this graph or cell; x may be a parameter."""
        n = x if isinstance(x, Node) else x._node(self._epoch) if hasattr(x, "_node") else node_of(x, "operation")
        if n._e is not self._epoch:
            raise ArgumentError(self._not_own)
        return n

    def _pop_current(self) -> None:
        """Ends this builder's latest `with` block. Other builders' blocks may be above it on the stack, as generators' blocks end in any order."""
        stack = _current.stack
        del stack[-1 - stack[::-1].index(self)]

    def __len__(self) -> int:
        """The number of nodes so far, those inside applied cells included."""
        return lib.vpps_graph_size(self._p)

    def __bool__(self) -> bool:
        return True


class Graph(Builder):
    """A batch's vertices and nodes. `with graph:` clears the graph and makes it current, so that inputs and lookups add nodes to it:

        with graph:
            loss = vpps.cross_entropy(W @ vpps.input(x), label)
            trainer.step(loss)

    One graph object serves all batches and keeps its memory. A graph belongs to one thread at a time: while a trainer reads it, other threads'
    calls on it raise StateError. After a failed call it must be cleared."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._glue = ffi.gc(result(lib.glue_user_create, model._glue, ffi.NULL, ffi.NULL), lib.glue_user_destroy)
        self._c = self._glue.graph
        self._epoch = Epoch(self._c, self.model, self._glue)

    def __enter__(self) -> Graph:
        self.clear()
        _current.stack.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._pop_current()

    def __repr__(self) -> str:
        return f"<graph of {len(self)} nodes, {self.next_vertex} vertices>" if self._epoch.p else "<graph that a trainer reads>"

    def clear(self) -> None:
        """Removes all nodes and vertices, which cannot be used any more, and forgets a failure. The graph keeps its memory."""
        self._epoch.end()
        lib.vpps_graph_clear(self._c)
        self._epoch = Epoch(self._c, self.model, self._glue)

    def status(self) -> None:
        """Raises the first failure since the last clear, if there was one."""
        check(lib.vpps_graph_status(self._p))

    @property
    def next_vertex(self) -> int:
        """The number that the next vertex will have: vertex i of a call of `apply` has the number next_vertex + i."""
        return lib.vpps_graph_vertices(self._p)

    def inputs(self, data: Floats) -> Nodes:
        """Makes n nodes from a copy of n x rows or n x rows x cols numbers. A tensor in the memory of the trainer's GPU must be n x rows."""
        leaf_only(data, "inputs")
        trainer = self.model._on_gpu() if is_on_gpu(data) else None
        if trainer is not None:
            t = OnGpu(data, trainer._gpu or 0, "inputs")
            if len(t.shape) != 2 or not t.by_rows:
                raise ArgumentError(f"inputs: a tensor of shape {t.shape} on a GPU; expected n x rows, contiguous: x.contiguous()")
            return Nodes(self._epoch, trainer._inputs_at(self._epoch, t.address, *t.shape, DEFAULT_STREAM))
        a = as_f32(data, "inputs")
        if a.ndim not in (2, 3):
            raise ArgumentError(f"inputs: an array of {a.ndim} dimensions; expected n x rows, or n x rows x cols")
        n, rows, cols, *_ = *a.shape, 1
        flat = np.ascontiguousarray(a if a.ndim == 2 else a.transpose(0, 2, 1))
        first = made_id(self._epoch, lib.vpps_input_many(self._p, n, rows, cols, pointer(flat, "float[]")))
        return Nodes(self._epoch, np.arange(first, first + n, dtype=np.uint32))

    def source(self, *nodes: Node | Dense) -> Vertex:
        """A vertex whose outputs are existing nodes, for other vertices to read, such as the states before a recurrence's first step."""
        return self._vertex(lib.vpps_source(self._p, len(nodes), [self._own(x).id for x in nodes]))

    def sources(self, *nodes: Nodes) -> Vertices:
        """Many vertices without a cell, whose outputs are existing nodes: output k of vertex i is node i of argument k."""
        e, ids = self._epoch, [ids_of(x, self._epoch, "sources", NODES) for x in nodes]
        if not ids or len({len(x) for x in ids}) > 1:
            raise ArgumentError(f"sources: {' and '.join(str(len(x)) for x in ids) or 'no'} nodes; expected equally many of each kind")
        n, rows = len(ids[0]), np.stack(ids, 1)
        first: int = lib.glue_sources(self._p, n, len(ids), u32_pointer(rows)) if n else self.next_vertex
        if first == NO_VERTEX:
            raise e.failure()
        return Vertices(e, np.arange(first, first + n, dtype=np.uint32))

    def _cell(self, cell: Cell) -> int:
        """Returns the cell's number; fails if the cell belongs to another model."""
        if cell.model is not self.model:
            raise ArgumentError(f"cell {cell.name} of another model")
        return cell.id

    def _vertices(self, vertices: Sequence[Vertex]) -> list[int]:
        """The vertices' numbers. Nodes have numbers, too; therefore everything that is no vertex is refused."""
        for v in vertices:
            if not isinstance(v, Vertex):
                raise TypeError(f"a child that is {type(v).__name__}; expected a vertex, what calling a cell, or graph.source(), returns")
            if v._e is not self._epoch:
                raise ArgumentError("a child of another graph, or of this one before it was cleared")
        return [v.id for v in vertices]

    def _vertex(self, v: int) -> Vertex:
        if v == NO_VERTEX:
            raise self._epoch.failure()
        return Vertex(self._epoch, v)

    def _application(self, cell: Cell, children: Sequence[Vertex], pulls: Sequence[Node], indices: Numbers,
                     pull_lists: Sequence[Sequence[Node]] = (), members: Numbers = ()) -> Any:
        """The C struct vpps_application, which applies a cell to inputs at one vertex."""
        a = sized("vpps_application")
        a.cell, vertices, nodes = self._cell(cell), self._vertices(children), [self._own(x).id for x in pulls]
        lists = [[self._own(x).id for x in row] for row in pull_lists]
        given, list_members = _numbers(indices, cell, "indices"), _numbers(members, cell, "list_members")
        if len({len(row) for row in lists}) > 1 and not list_members:
            raise ArgumentError("pull_lists of different lengths; expected list_members")
        _check_pulled(cell, [len(row) for row in lists], list_members)
        rows = [ffi.new("vpps_node[]", row or 1) for row in lists]
        keep = [ffi.new("vpps_vertex[]", vertices or 1), ffi.new("vpps_node[]", nodes or 1), ffi.new("uint32_t[]", given or 1),
                ffi.new("vpps_node *[]", rows or 1), ffi.new("uint32_t[]", list_members or 1)]
        a.n_children, a.n_pulls, a.n_indices, a.n_pull_lists, a.n_lists = map(len, (vertices, nodes, given, rows, list_members))
        a.children, a.pulls, a.indices, _, a.list_members = keep
        a.pull_lists = ffi.cast("const vpps_node *const *", keep[3])
        a.n_members = 0 if list_members else len(lists[0]) if lists else 0
        return keeping(a, *keep, *rows)

    def apply(self, cell: Cell, *, children: Ids | None = None, pulls: Ids | None = None, indices: ArrayLike | None = None,
              lists: Sequence[Members | tuple[ArrayLike, Ids | None]] = (), pull_lists: Sequence[Ids] = (),
              n: SupportsIndex | None = None) -> Vertices:
        """Applies a cell at n new vertices. Its function reads children's outputs by `gather`, nodes by `pull`, and whole numbers by `pull_index`.

        children    n x (children that the cell reads by `gather`): Vertices or their numbers. A child may be a vertex of this call that comes
                    before its parent: the call's vertex i has the number `graph.next_vertex + i`.
        pulls       n x (calls of `pull` in the cell): Nodes or their numbers.
        indices     n x (calls of `pull_index` in the cell): whole numbers from 0.
        lists       for each of the cell's lists `Members(first, children)`; see `Members`.
        pull_lists  for each `pull_list` in the cell, the nodes of its members, of all vertices together.
        n           number of vertices; only needed if no other argument tells it.

        Arrays of one column may have one dimension. Arrays of uint32 are used as they are, others are converted."""
        e, of_cell = self._epoch, self._cell(cell)
        n = None if n is None else whole(n, "apply: n")
        columns_of: list[U32 | None] = []
        for what, x, kinds in (("children", children, VERTICES), ("pulls", pulls, NODES), ("indices", indices, (int, int))):
            a = None if x is None else ids_of(x, e, what, kinds)
            if a is not None:
                if a.ndim > 2:
                    raise ArgumentError(f"{what}: an array of {a.ndim} dimensions; expected at most 2")
                if n is not None and len(a) != n:
                    raise ArgumentError(f"{what}: {len(a)} rows; expected {n}")
                n = len(a)
            columns_of.append(a)
        members = [(as_u32(first, "first"), None if c is None else ids_of(c, e, "children of a list", VERTICES)) for first, c in lists]
        if members and n is None:
            n = max(len(members[0][0]) - 1, 0)
        for first, of in members:
            if first.ndim != 1 or len(first) != (n or 0) + 1:
                raise ArgumentError(f"lists: {len(first)} numbers in first; expected {(n or 0) + 1}, one more than vertices")
            if of is not None and len(of) != first[-1]:
                raise ArgumentError(f"lists: {len(of)} children; expected {first[-1]}, the last number of first")
        pulled = [ids_of(x, e, "pull_lists", NODES) for x in pull_lists]
        if n is None:
            raise ArgumentError("apply: no array tells how many vertices there are; expected n")
        _check_pulled(cell, [p.size for p in pulled], [int(first[-1]) for first, _ in members])
        a = sized("vpps_applications")
        keep: list[Any] = [u32_pointer(c) for c in columns_of]
        a.cell, a.n = of_cell, n
        a.children, a.pulls, a.indices = keep
        a.n_children, a.n_pulls, a.n_indices = (0 if c is None else 1 if c.ndim == 1 else c.shape[1] for c in columns_of)
        of_lists = ffi.new("vpps_members_of[]", max(len(members), 1))
        for i, (first, of) in enumerate(members):
            of_lists[i].first = u32_pointer(first)
            of_lists[i].children = ffi.NULL if of is None else u32_pointer(of if of.size else np.zeros(1, np.uint32))
        of_pulled = ffi.new("vpps_node *[]", [u32_pointer(p) for p in pulled] or 1)
        a.n_lists, a.lists = len(members), of_lists
        a.n_pull_lists, a.pull_lists = len(pulled), ffi.cast("const vpps_node *const *", of_pulled)
        first_vertex: int = lib.vpps_apply_many(self._p, a)
        if first_vertex == NO_VERTEX:
            raise e.failure()
        return Vertices(e, np.arange(first_vertex, first_vertex + n, dtype=np.uint32))

    def apply_one(self, cell: Cell, children: Sequence[Vertex] = (), pulls: Sequence[Node] = (), indices: Numbers = (),
                  pull_lists: Sequence[Sequence[Node]] = (), list_members: Numbers = ()) -> Vertex:
        """Makes a vertex that applies the cell to child vertices, nodes (`pulls`) and whole numbers (`indices`), as `cell(child, ...)` does on the
        current graph. list_members: if the cell has several list inputs, how many nodes each has. For many vertices `apply` is faster."""
        return self._vertex(lib.vpps_apply(self._p, self._application(cell, children, pulls, indices, pull_lists, list_members)))

    def loop(self, cell: Cell, start: Vertex, limit: int, *, children: Sequence[Vertex] = (), pulls: Sequence[Node] = (),
             indices: Numbers = ()) -> Vertices:
        """Repeats a cell that has a condition, at most `limit` times, while the condition holds. Child 0 is `start`, and in a repetition the
        preceding vertex; all other inputs stay the same. Returns all vertices; the last vertex has the result as its outputs."""
        a = self._application(cell, (start, *children), pulls, indices)
        limit = whole(limit, "loop: limit")
        turns = np.empty(max(limit, 1), np.uint32)
        if lib.vpps_while(self._p, a, limit, pointer(turns, "uint32_t[]", written=True)) == NO_VERTEX:
            raise self._epoch.failure()
        return Vertices(self._epoch, turns)

    def case(self, branches: Sequence[Application]) -> Vertex:
        """Applies several cells with conditions. The outputs of the new vertex are the sums of the outputs of the cells whose conditions hold,
        usually one; zeros if none does."""
        made_of = [self._application(*b) for b in branches]
        all_of = ffi.new("vpps_application[]", [a[0] for a in made_of] or 1)
        all_of[0].size = ffi.sizeof("vpps_application")
        return self._vertex(lib.vpps_case(self._p, len(made_of), all_of))

    def nodes(self, ids: ArrayLike) -> Nodes:
        """Returns the nodes that have these numbers, in this order."""
        return Nodes(self._epoch, as_u32(ids, "nodes").reshape(-1))

    def vertices(self, ids: ArrayLike) -> Vertices:
        """Returns the vertices that have these numbers, in this order."""
        return Vertices(self._epoch, as_u32(ids, "vertices").reshape(-1))

    def cost(self) -> Cost:
        """A lower bound of the operations and the memory traffic of one training step on the graph."""
        c = sized("vpps_cost")
        check(lib.vpps_graph_cost(self._p, c))
        return Cost(*(getattr(c, name) for name in Cost._fields))


class Application(NamedTuple):
    """A cell with the inputs that it gets at one vertex. `Graph.case` takes one Application per branch."""

    cell: Cell; children: Sequence[Vertex] = (); pulls: Sequence[Node] = (); indices: Numbers = ()


def _numbers(given: Numbers, cell: Cell, what: str) -> Sequence[int]:
    """Checks numbers (indices or lengths of lists) that a cell gets at one vertex, and converts them for C."""
    if isinstance(given, (list, tuple)):
        for x in given:
            if type(x) is not int or not 0 <= x <= LARGEST:
                return [whole(n, f"apply {cell.name}: {what}") for n in given]
        return given
    return as_u32(given, f"apply {cell.name}: {what}").reshape(-1).tolist()  # type: ignore[arg-type]


def _check_pulled(cell: Cell, sizes: list[int], members: Sequence[int]) -> None:
    """Checks that each call of `pull_list` in the cell's function (number k) got as many nodes, sizes[k], as its list input has members."""
    for k, (size, of) in enumerate(zip(sizes, cell.pull_list_of)):
        if of < len(members) and size != members[of]:
            raise ArgumentError(f"pull_lists: {size} nodes in number {k}; expected {members[of]}, one a member")


class Cell(Uncopied):
    """A vertex function, recorded once by `Model.cell`. A call, `rnn(before, indices=[word])`, makes a vertex of the current graph."""

    def __init__(self, model: Model, id: int, name: str, lists: int, pull_list_of: list[int]) -> None:
        self.model, self.id, self.name, self.lists, self.pull_list_of = model, id, name, lists, pull_list_of

    def __call__(self, *children: Vertex, pulls: Sequence[Node] = (), indices: Numbers = (),
                 pull_lists: Sequence[Sequence[Node]] = (), list_members: Numbers = ()) -> Vertex:
        """Applies the cell in the current graph; returns the new vertex. `children`: the vertices that the cell's function reads by `gather`, then
        those that it reads by `gather_list`. `pulls`, `indices`, `pull_lists`: for each call of `pull` in the function a node, of `pull_index` a
        number, of `pull_list` any number of nodes. `list_members`: how many vertices or nodes each list has, if the cell has several lists."""
        stack = _current.stack
        g = stack[-1] if stack else current()
        if type(g) is Graph and not self.lists and g.model is self.model:
            vertex: Vertex | None = _apply(g._epoch, self.id, children, pulls, indices)
            if vertex is not None:
                return vertex  # the fast path in C, which most calls take, has made the vertex
        if not isinstance(g, Graph):
            raise StateError(f"cell {self.name}: applied while a cell is recorded; expected a graph")
        return g.apply_one(self, children, pulls, indices, pull_lists, list_members)

    def __repr__(self) -> str:
        return f"<cell {self.name}>"


class Recorder(Builder):
    """Records a cell: operations, inputs (`gather` reads from vertices, `pull` from nodes) and outputs (`scatter`: for other vertices; `push`:
    nodes). A list has a value for each member; vertices may have any number of members. An operation on a list is applied to each member."""

    def __init__(self, model: Model, name: str) -> None:
        self.model, self.name = model, name
        self._not_own = f"cell {name}: a node that is not the cell's own"
        self._epoch = Epoch(result(lib.vpps_cell_begin, model._c, encode(name, "name")), model)
        self._lists = 0
        self._pull_list_of: list[int] = []

    def gather(self, child: int, output: int, rows: int, cols: int = 1) -> Node:
        """Reads output number `output` (made by `scatter`) of child number `child`, an input vertex."""
        return made(self._epoch, lib.vpps_gather(self._epoch.p, child, output, rows, cols))

    def gather_list(self, output: int, rows: int, cols: int = 1, *, first: int = 0) -> Node:
        """Reads output number `output` of each child (input vertex) from child `first` on. They are the cell's first list input, number 0."""
        return self._list(0, lib.vpps_gather_list_from(self._epoch.p, first, output, rows, cols))

    def gather_list_of(self, list: int, output: int, rows: int, cols: int = 1) -> Node:
        """Reads output number `output` of each member (input vertex) of list number `list` (from 0), as a list."""
        return self._list(list, lib.vpps_gather_list_of(self._epoch.p, list, output, rows, cols))

    def pull(self, rows: int, cols: int = 1) -> Node:
        """A node that is given when the cell is applied."""
        return made(self._epoch, lib.vpps_pull(self._epoch.p, rows, cols))

    def pull_list(self, rows: int, cols: int = 1) -> Node:
        """A list of nodes, given when the cell is applied: any number or, if the cell has a `gather_list`, one for each child in that list."""
        return self.pull_list_of(0, rows, cols)

    def pull_list_of(self, list: int, rows: int, cols: int = 1) -> Node:
        """As `pull_list`, in a cell of several lists (inputs of any number of children or nodes): a node for each member of list number `list`."""
        x = self._list(list, lib.vpps_pull_list_of(self._epoch.p, list, rows, cols))
        self._pull_list_of.append(list)
        return x

    def _list(self, list: int, x: int) -> Node:
        node = made(self._epoch, x)
        self._lists = max(self._lists, list + 1)
        return node

    def pull_index(self) -> PulledIndex:
        """A whole number that is given when the cell is applied: an index for a lookup, a label for a loss; for nothing else."""
        return PulledIndex(self._epoch, made_id(self._epoch, lib.vpps_pull_index(self._epoch.p)), self.name)

    def scatter(self, *xs: Node | Dense) -> None:
        """Makes values the vertex's outputs, which other vertices read by `gather`; the outputs are numbered from 0, in order."""
        for x in xs:
            check(lib.vpps_scatter(self._p, self._own(x).id))

    def push(self, *xs: Node | Dense) -> None:
        """Makes each value an output for operations outside cells, such as logits; numbered from 0, separately from the outputs of `scatter`."""
        for x in xs:
            check(lib.vpps_push(self._p, self._own(x).id))

    def condition(self, scalar: Node, value: int | None = None) -> None:
        """Gives the cell a condition, which holds at a vertex if `scalar`, an input (of `gather` or `pull`), is above 0 or, with `value`, rounds
        to `value`. Make all outputs by `scatter_else`, which says what they are where the condition does not hold."""
        if value is None:
            check(lib.vpps_condition(self._p, self._own(scalar).id))
        else:
            check(lib.vpps_condition_is(self._p, self._own(scalar).id, value))

    def scatter_else(self, x: Node, otherwise: Node | None = None) -> None:
        """Makes an output for other vertices: x where the cell's `condition` holds, else `otherwise`, a result of `gather` or `pull`; None: zeros."""
        other = NO_NODE if otherwise is None else self._own(otherwise).id
        check(lib.vpps_scatter_else(self._p, self._own(x).id, other))
