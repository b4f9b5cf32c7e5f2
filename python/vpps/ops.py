"""Operations, named as in the C library. Shapes are rows x cols; a vector has one column, a scalar also one row. A vector or matrix of the
model may stand where a node is expected.

In a cell an operation on a list (see `Recorder.gather_list`) is mapped over its members; `sum`, `average`, `max_of` and `min_of` of
a list give one value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Union

from numpy.typing import ArrayLike

from ._arrays import as_u32, real, u32_pointer
from ._vpps import lib
from .errors import ArgumentError
from .graph import current
from .model import Dense, Matrix, Vector
from .node import NO_NODE, NO_PARAM, Epoch, Index, Node, Nodes, Scalar, index_of, made, node_of, same_graph

Value = Union[Node, Dense]
Many = Union[Value, Nodes, Sequence[Value]]


def _one(x: Value, call: Any, *more: Any) -> Node:
    n = x if isinstance(x, Node) else node_of(x, "operation")
    e = n._e
    y = call(e.p, n.id, *more)
    return Node(e, y) if y != NO_NODE else made(e, y)  # faster than a call of `made` for every y


def _two(a: Value, b: Value, call: Any) -> Node:
    x, y = same_graph((a, b), "operation")
    return made(x._e, call(x._e.p, x.id, y.id))


def _with_optional(x: Value, *others: Value | None) -> list[Any]:
    """Returns x as a node, and the numbers of the other nodes, which are of the same graph; NO_NODE for None."""
    nodes = iter(same_graph((x, *(o for o in others if o is not None)), "operation"))
    return [next(nodes), *(NO_NODE if o is None else next(nodes).id for o in others)]


def _ids(xs: Many, what: str) -> tuple[Epoch, int, Any]:
    """Returns the graph, the count and the numbers of xs: a node, `Nodes`, or a list of nodes."""
    if isinstance(xs, (Node, Dense)):
        x = node_of(xs, what)
        return x._e, 1, [x.id]
    if isinstance(xs, Nodes):
        if not len(xs):
            raise ArgumentError(f"{what}: no nodes; expected at least one")
        return xs._e, len(xs), u32_pointer(xs.ids)
    nodes = same_graph(xs, what)
    return nodes[0]._e, len(nodes), [x.id for x in nodes]


def _many(xs: Many, call: Any, what: str) -> Node:
    e, n, ids = _ids(xs, what)
    return made(e, call(e.p, n, ids))


class _Unary(Protocol):
    def __call__(self, x: Value) -> Node: ...

class _Binary(Protocol):
    def __call__(self, a: Value, b: Value) -> Node: ...

class _Several(Protocol):
    def __call__(self, xs: Many) -> Node: ...


def _named(function: Any, form: Any, name: str, doc: str) -> Any:
    """Gives a function its name, its docstring, and the annotations of the protocol `form`."""
    function.__name__, function.__qualname__, function.__doc__, function.__annotations__ = name, name, doc, {**form.__call__.__annotations__}
    return function


def _unary(name: str, doc: str) -> _Unary:
    """Makes a Python function of one node, which adds an operation to the node's graph by the C function vpps_`name`."""
    return _named(lambda x: _one(x, getattr(lib, "vpps_" + name)), _Unary, name, doc)


def _binary(name: str, doc: str) -> _Binary:
    """Makes a Python function of two nodes, which adds an operation to their graph by the C function vpps_`name`."""
    return _named(lambda a, b: _two(a, b, getattr(lib, "vpps_" + name)), _Binary, name, doc)


def _several(name: str, doc: str) -> _Several:
    """Makes a Python function of any number of nodes, which adds an operation to their graph by the C function vpps_`name`."""
    return _named(lambda xs: _many(xs, getattr(lib, "vpps_" + name), name), _Several, name, doc)


# ---------------------------------------------------------------- products

def affine(bias: Vector | None, *terms: Matrix | Value) -> Node:
    """affine(bias, W0, x0, W1, x1) is bias + W0 @ x0 + W1 @ x1 in one operation, of at most 32 products; so is `W0 @ x0 + W1 @ x1 + bias`. The
    bias, which may be None, is added to every column."""
    matrices, xs = terms[::2], terms[1::2]
    if len(matrices) != len(xs) or not all(isinstance(w, Matrix) for w in matrices):
        raise ArgumentError("affine: expected a bias, then matrices and nodes in turn")
    nodes = same_graph(xs, "affine")
    e = nodes[0]._e
    ids = [w._of(e.model) for w in matrices if isinstance(w, Matrix)]
    return made(e, lib.vpps_affine(e.p, NO_PARAM if bias is None else bias._of(e.model), len(ids), ids, [x.id for x in nodes]))


def matvec(w: Matrix, x: Value) -> Node:
    """W @ x of a parameter matrix: (r x k) times (k x c)."""
    n = node_of(x, "matvec")
    return made(n._e, lib.vpps_matvec(n._e.p, w._of(n._e.model), n.id))


matmul = _binary("matmul", "Product of two nodes: (r x k) times (k x c).")


# ---------------------------------------------------------------- element by element

add = _binary("add", "a + b; equal shapes.")
sub = _binary("sub", "a - b; equal shapes.")
mul = _binary("mul", "a * b, element by element; equal shapes.")
div = _binary("div", "a / b, element by element; equal shapes.")
max = _binary("max", "The greater of each two elements; at a tie the gradient goes to a.")
min = _binary("min", "The lesser of each two elements; at a tie the gradient goes to a.")
sum = _several("sum", "The sum of nodes of equal shapes, or of a list's members.")
average = _several("average", "The mean of nodes of equal shapes, or of a list's members.")
max_of = _several("max_of", "The greatest of nodes, element by element; at a tie the gradient goes to the first.")
min_of = _several("min_of", "The least of nodes, element by element; at a tie the gradient goes to the first.")
negate = _unary("negate", "-x.")
one_minus = _unary("one_minus", "1 - x.")
reciprocal = _unary("reciprocal", "1 / x.")


def scale(x: Value, factor: Scalar) -> Node:
    """factor * x."""
    return _one(x, lib.vpps_scale, real(factor, "scale: factor"))


def scale_by(x: Value, scalar: Value) -> Node:
    """x times a scalar node."""
    return _two(x, scalar, lib.vpps_scale_by)


def when(x: Value, scalar: Value) -> Node:
    """x where the scalar is above 0, else zeros; the scalar has no gradient."""
    return _two(x, scalar, lib.vpps_when)


def unless(x: Value, scalar: Value) -> Node:
    """Zeros where the scalar is above 0, else x; the scalar has no gradient."""
    return _two(x, scalar, lib.vpps_unless)


def select(condition: Value, a: Value, b: Value) -> Node:
    """a where the scalar `condition` is above 0, else b; the gradient goes to the one that was taken."""
    c, x, y = same_graph((condition, a, b), "select")
    return made(c._e, lib.vpps_select(c._e.p, c.id, x.id, y.id))


sigmoid = _unary("sigmoid", "1 / (1 + e^-x).")
tanh = _unary("tanh", "Hyperbolic tangent.")
relu = _unary("relu", "max(x, 0); gradient 0 at 0.")


def elu(x: Value, alpha: Scalar = 1.0) -> Node:
    """Element by element: x if x > 0, else alpha (e^x - 1); alpha > 0."""
    return _one(x, lib.vpps_elu, real(alpha, "elu: alpha"))


gelu = _unary("gelu", "x Phi(x) in its tanh form (Hendrycks and Gimpel 2016).")
gelu_erf = _unary("gelu_erf", """x Phi(x), computed with the error function, as PyTorch's gelu by default. `gelu` is PyTorch's gelu with """
                  """approximate="tanh".""")
exp = _unary("exp", "e^x.")
log = _unary("log", "Natural logarithm.")
square = _unary("square", "x^2.")
sqrt = _unary("sqrt", "Square root.")
abs = _unary("abs", "|x|; gradient 0 at 0.")


def dropout(x: Value, p: float) -> Node:
    """In training: zero with probability p, else x / (1 - p); 0 <= p < 1. In `Trainer.forward`: x."""
    y = _one(x, lib.vpps_dropout, real(p, "dropout: p"))
    y._e.model._drops = True
    return y


# ---------------------------------------------------------------- shapes

concat = _several("concat", "Nodes of equally many columns on top of each other.")


def slice(x: Value, first: int, rows: int) -> Node:
    """Rows first to first + rows - 1, as x[first : first + rows]."""
    return _one(x, lib.vpps_slice, first, rows)


transpose = _unary("transpose", "The transpose of x.")


def reshape(x: Value, rows: int, cols: int = 1) -> Node:
    """The elements of x, column after column, as rows x cols: numpy's x.reshape((rows, cols), order="F")."""
    return _one(x, lib.vpps_reshape, rows, cols)


hstack = _several("hstack", "Nodes of equally many rows side by side.")


def select_rows(x: Value, rows: ArrayLike | Node) -> Node:
    """Rows of x by their numbers, which may repeat: numpy's x[rows]. `rows` may also be a node, a vector of numbers whose fractions are
    dropped; the result is NaN where x has no such row."""
    if isinstance(rows, Node):
        return _two(x, rows, lib.vpps_select_rows_at)
    numbers = as_u32(rows, "select_rows: rows").reshape(-1)
    return _one(x, lib.vpps_select_rows, len(numbers), u32_pointer(numbers))


def broadcast(x: Value, rows: int, cols: int) -> Node:
    """x as rows x cols: a scalar in every element, a vector in every column, a row in every row."""
    return _one(x, lib.vpps_broadcast, rows, cols)


sum_rows = _unary("sum_rows", "The sum of a matrix's rows: 1 x cols.")
sum_columns = _unary("sum_columns", "The sum of a matrix's columns: a vector.")


# ---------------------------------------------------------------- over all elements

dot = _binary("dot", "Sum of a * b: a scalar.")
squared_distance = _binary("squared_distance", "|a - b|^2: a scalar.")
sum_elements = _unary("sum_elements", "The sum of all elements: a scalar.")
softmax = _unary("softmax", "e^x / sum of e^x, of a vector, or of each column.")
log_softmax = _unary("log_softmax", "log of softmax(x), of a vector, or of each column.")
log_sum_exp = _unary("log_sum_exp", "log of the sum of e^x over the elements of a vector: a scalar. Of a matrix: a vector with an element for "
                     "each column.")
centre = _unary("centre", "x - mean(x), of a vector, or of each column.")
argmax = _unary("argmax", "For `Trainer.forward` only: the number of a vector's greatest element, and log softmax of that element, as 2 x 1 numbers "
                "without gradient.")


def rms_norm(x: Value, gain: Value | None = None, epsilon: float = 1e-5) -> Node:
    """gain * x / sqrt(mean(x^2) + epsilon), of a vector or of each column; the gain is a vector, None means ones."""
    a, w = _with_optional(x, gain)
    return made(a._e, lib.vpps_rms_norm(a._e.p, a.id, w, real(epsilon, "rms_norm: epsilon")))


def layer_norm(x: Value, gain: Value | None = None, bias: Value | None = None, epsilon: float = 1e-5) -> Node:
    """PyTorch's LayerNorm of a vector or each column: gain * y / sqrt(mean(y^2) + epsilon) + bias, y = x - mean(x); gain, bias: vectors."""
    a, w, b = _with_optional(x, gain, bias)
    return made(a._e, lib.vpps_layer_norm(a._e.p, a.id, w, b, real(epsilon, "layer_norm: epsilon")))


def weighted_sum(weights: Value, xs: Nodes | Sequence[Value]) -> Node:
    """Sum of weights[k] * xs[k]: attention; weights is a vector with an element for each x."""
    e, n, ids = _ids(xs, "weighted_sum")
    w = node_of(weights, "weighted_sum")
    if e is not w._e:
        raise ArgumentError("weighted_sum: nodes of two graphs")
    return made(e, lib.vpps_weighted_sum(e.p, w.id, n, ids))


# ---------------------------------------------------------------- losses

def cross_entropy(x: Value, label: Index, weights: Value | None = None, label_smoothing: float = 0.0) -> Node:
    """-log softmax(x)[label] of a vector of scores: a scalar. In a cell's function the label may be a `Recorder.pull_index()`, given per vertex.

    `weights`, a vector with an element for each class, and `label_smoothing`, from 0 to 1, are those of PyTorch's CrossEntropyLoss for
    one example: -sum over k of q[k] log softmax(x)[k], with q as `smooth_label` computes it. `average` of losses divides by their number,
    PyTorch's reduction="mean" by the sum of weights[label]. A parameter that is given as `weights` is trained unless it is frozen."""
    nodes = same_graph((x,) if weights is None else (x, weights), "cross_entropy")
    a = nodes[0]
    number = index_of(label, a._e, "cross_entropy: label")
    if weights is None and label_smoothing == 0:
        return _one(a, lib.vpps_cross_entropy, number)
    w = NO_NODE if weights is None else nodes[1].id
    return _one(a, lib.vpps_cross_entropy_with, number, w, real(label_smoothing, "cross_entropy: label_smoothing"))


def smooth_label(weights: Value, label: Index, label_smoothing: float) -> Node:
    """The weights q of `cross_entropy`: q[k] = weights[k] * ((1 - label_smoothing if k == label else 0) + label_smoothing / rows)."""
    w = node_of(weights, "smooth_label")
    smoothing = real(label_smoothing, "smooth_label: label_smoothing")
    return _one(w, lib.vpps_smooth_label, index_of(label, w._e, "smooth_label: label"), smoothing)


def hinge(x: Value, label: Index, margin: float = 1.0) -> Node:
    """Sum over j != label of max(0, margin - x[label] + x[j]): a scalar."""
    a = node_of(x, "hinge")
    return _one(a, lib.vpps_hinge, index_of(label, a._e, "hinge: label"), real(margin, "hinge: margin"))


def binary_log_loss(p: Value, target: Value) -> Node:
    """-sum of target log p + (1 - target) log(1 - p), 0 < p < 1: a scalar."""
    return _two(p, target, lib.vpps_binary_log_loss)


# ---------------------------------------------------------------- lists, in cells

def softmax_list(scores: Value) -> Node:
    """The softmax of a list of scalars, e^score / sum over the members of e^score: a list of scalars."""
    return _one(scores, lib.vpps_softmax_list)


def log_softmax_list(scores: Value) -> Node:
    """The log softmax of a list of scalars, score - log sum of e^score: a list of scalars. A loss for the choice among any number of
    candidates is -sum(log_softmax_list(scores) * chosen), with `chosen` 1 for the right one and 0 for the others."""
    return _one(scores, lib.vpps_log_softmax_list)


def weighted_sum_list(weights: Value, xs: Value) -> Node:
    """Sum over the members of weight * x; `weights` is a list of scalars."""
    return _two(weights, xs, lib.vpps_weighted_sum_list)


def concat_list(xs: Value, most: int) -> Node:
    """The members of a list on top of each other, then zeros: in all `most` times a member's rows."""
    return _one(xs, lib.vpps_concat_list, most)


# ---------------------------------------------------------------- leaves, on the current graph or cell

def input(data: Any) -> Node:
    """A node of numbers from the host: a scalar, a vector or a matrix of rows x cols."""
    return current().input(data)


def constant(value: Scalar, rows: int = 1, cols: int = 1) -> Node:
    """rows x cols elements of one number, without gradient."""
    return current().constant(value, rows, cols)


def zeros(rows: int = 1, cols: int = 1) -> Node:
    """rows x cols zeros, without gradient."""
    return current().zeros(rows, cols)


def ones(rows: int = 1, cols: int = 1) -> Node:
    """rows x cols ones, without gradient."""
    return current().ones(rows, cols)


# `from vpps import *` leaves out sum, max, min, abs, slice and input, which would replace Python's own.
__all__ = ["affine", "matvec", "matmul", "add", "sub", "mul", "div", "average", "max_of", "min_of", "negate", "one_minus", "reciprocal",
           "scale", "scale_by", "when", "unless", "select", "sigmoid", "tanh", "relu", "elu", "gelu", "gelu_erf", "exp", "log", "square",
           "sqrt", "dropout", "concat", "transpose", "reshape", "hstack", "select_rows", "broadcast", "sum_rows", "sum_columns", "dot",
           "squared_distance", "sum_elements", "softmax", "log_softmax", "log_sum_exp", "centre", "rms_norm", "layer_norm", "weighted_sum",
           "cross_entropy", "smooth_label", "hinge", "binary_log_loss", "argmax", "softmax_list", "log_softmax_list", "weighted_sum_list",
           "concat_list", "constant", "zeros", "ones"]
