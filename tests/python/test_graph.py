"""Compares operations, operators, cells and bulk building with numpy and with each other."""

from inspect import isfunction, signature

import numpy as np
import pytest
from small import HIDDEN, WORDS, Small, refused

import vpps


@pytest.fixture
def model():
    return vpps.Model(3)


@pytest.fixture
def trainer(model):
    model.add_matrix("W", 3, 2)
    model.add_vector("b", 3)
    return vpps.Trainer(model)


def run(trainer, build, *inputs):
    with trainer.model.graph():
        return trainer.forward(build(*(vpps.input(x) for x in inputs)))


A = np.array([0.5, -1.5, 2.0], np.float32)
B = np.array([2.0, 0.25, -1.0], np.float32)
M = np.array([[0.5, 2.0], [-1.0, 0.25], [1.5, -2.0]], np.float32)
S = np.array(3.0, np.float32)


@pytest.mark.parametrize("build, inputs, expected", [
    (lambda a, b: a + b, (A, B), A + B),
    (lambda a, b: a - b, (A, B), A - B),
    (lambda a, b: a * b, (A, B), A * B),
    (lambda a, b: a / b, (A, B), A / B),
    (lambda a, s: a * s, (A, S), A * 3),
    (lambda a, s: s * a, (A, S), A * 3),
    (lambda a, s: a / s, (A, S), A / 3),
    (lambda a: a + 2, (A,), A + 2),
    (lambda a: 2 - a, (A,), 2 - A),
    (lambda a: 1 - a, (A,), 1 - A),
    (lambda a: a - 1.5, (A,), A - 1.5),
    (lambda a: 3 * a, (A,), 3 * A),
    (lambda a: a / 4, (A,), A / 4),
    (lambda a: 6 / a, (A,), 6 / A),
    (lambda a: -a, (A,), -A),
    (lambda a: abs(a), (A,), np.abs(A)),
    (lambda a: a**2, (A,), A * A),
    (lambda a: a + vpps.ones(3), (A,), A + 1),
    (lambda a: a[1:], (A,), A[1:]),
    (lambda a: a[-1], (A,), A[-1]),
    (lambda a: a[0:2], (A,), A[:2]),
    (lambda a, b: sum([a, b]), (A, B), A + B),
    (lambda a, b: vpps.average([a, b]), (A, B), (A + B) / 2),
    (lambda a, b: vpps.max_of([a, b]), (A, B), np.maximum(A, B)),
    (lambda a, b: vpps.min_of([a, b]), (A, B), np.minimum(A, B)),
    (lambda a, b: vpps.concat([a, b]), (A, B), np.concatenate([A, B])),
    (lambda a, b: vpps.weighted_sum(a[0:2], [a, b]), (A, B), A[0] * A + A[1] * B),
    (lambda a, b: vpps.select(a[0], a, b), (A, B), A),
    (lambda a, b: vpps.when(a, a[1]), (A, B), 0 * A),
    (lambda a, b: vpps.unless(a, a[1]), (A, B), A),
    (lambda a: vpps.rms_norm(a, epsilon=0.1), (A,), A / np.sqrt((A * A).mean() + 0.1)),
    (lambda a, b: vpps.rms_norm(a, b), (A, B), B * A / np.sqrt((A * A).mean() + 1e-5)),
    (lambda a, b: vpps.layer_norm(a, bias=b), (A, B), (A - A.mean()) / np.sqrt(A.var() + 1e-5) + B),
    (lambda a, b: vpps.layer_norm(a, b, a, 0.5), (A, B), B * (A - A.mean()) / np.sqrt(A.var() + 0.5) + A),
    (lambda m: vpps.log_sum_exp(m), (M,), np.log(np.exp(M).sum(0))),
    (lambda m, a, b: vpps.layer_norm(m, a, b, 0.5), (M, A, B), A[:, None] * (M - M.mean(0)) / np.sqrt(M.var(0) + 0.5) + B[:, None]),
    (lambda m, a: m + vpps.broadcast(a, 3, 2), (M, A), M + A[:, None]),
    (lambda m, a: m * vpps.broadcast(a, 3, 2), (M, M[:1]), M * M[:1]),
    (lambda a: vpps.broadcast(a[0], 3, 2), (A,), np.full((3, 2), 0.5)),
    (lambda m: vpps.broadcast(m, 3, 2), (M,), M),
    (lambda m: vpps.reshape(m, 2, 3), (M,), M.reshape((2, 3), order="F")),
    (lambda m: vpps.reshape(m, 6), (M,), M.flatten(order="F")),
    (lambda m: vpps.reshape(m, 3, 2), (M,), M),
    (lambda m, a, b: vpps.hstack([a, m, b]), (M, A, B), np.hstack([A[:, None], M, B[:, None]])),
    (lambda m: vpps.hstack([m]), (M,), M),
    (lambda m: vpps.select_rows(m, [2, 0, 2, 2]), (M,), M[[2, 0, 2, 2]]),
    (lambda m: vpps.select_rows(m, vpps.input([1.9, 0.0])), (M,), M[[1, 0]]),
    (lambda a: vpps.select_rows(a, [1]), (A,), A[1]),
    (vpps.sum_rows, (M,), M.sum(0, keepdims=True)),
    (vpps.sum_columns, (M,), M.sum(1)),
    (lambda a: vpps.cross_entropy(a, 1), (A,), np.log(np.exp(A).sum()) - A[1]),
    (lambda a: vpps.cross_entropy(a, 1, label_smoothing=0.3), (A,), np.log(np.exp(A).sum()) - 0.7 * A[1] - 0.3 * A.mean()),
    (lambda a, b: vpps.cross_entropy(a, 1, b), (A, B), B[1] * (np.log(np.exp(A).sum()) - A[1])),
    (lambda a, b: vpps.cross_entropy(a, 1, weights=b, label_smoothing=0.3), (A, B),
     0.7 * B[1] * (np.log(np.exp(A).sum()) - A[1]) + 0.1 * (B * (np.log(np.exp(A).sum()) - A)).sum()),
    (lambda a: vpps.smooth_label(a, 2, 0.3), (A,), A * np.array([0.1, 0.1, 0.8])),
    (lambda a: vpps.hinge(a, 2), (A,), 0.0),
    (lambda a: vpps.elu(a), (A,), np.where(A > 0, A, np.exp(A) - 1)),
    (lambda a: vpps.dropout(a, 0.5), (A,), A),
    (lambda a: vpps.argmax(a)[0], (A,), 2.0),
    (lambda a, b: a @ b, (np.arange(6).reshape(2, 3), np.arange(12).reshape(3, 4)),
     np.arange(6).reshape(2, 3) @ np.arange(12).reshape(3, 4)),
])
def test_values(trainer, build, inputs, expected):
    got = run(trainer, build, *inputs)
    assert got.dtype == np.float32 and got.shape == np.shape(expected)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


FUNCTIONS = [f for name, f in vars(vpps.ops).items() if isfunction(f) and f.__module__ == "vpps.ops" and not name.endswith("_list")
             and {p.annotation for p in signature(f).parameters.values()} == {"Value"}]


@pytest.mark.parametrize("function", FUNCTIONS, ids=[f.__name__ for f in FUNCTIONS])
def test_functions_of_nodes_call_their_namesakes(trainer, monkeypatch, function):
    class Noting:
        names: list = []
        lib = vpps.ops.lib

        def __getattr__(self, name):
            self.names.append(name)
            return getattr(self.lib, name)

    monkeypatch.setattr(vpps.ops, "lib", Noting())
    assert np.isfinite(run(trainer, function, *[0.5 for _ in signature(function).parameters])).all()
    assert Noting.names == ["vpps_" + function.__name__]


def test_sums_of_products_are_one_operation(trainer):
    W, b = trainer.model.parameters
    x = np.array([1.0, 2.0], np.float32)
    with trainer.model.graph() as g:
        y = W @ vpps.input(x) + W @ vpps.input(2 * x) + b
        size = len(g)
        value = trainer.forward(y)
        assert len(g) == size + 1 and len(g) == 3
        np.testing.assert_array_equal(value, trainer.forward(vpps.affine(b, W, vpps.input(x), W, vpps.input(2 * x))))
        again = trainer.forward(y)  # made once
        np.testing.assert_array_equal(value, again)
    np.testing.assert_allclose(value, W.value @ x * 3 + b.value, rtol=1e-5)


def test_sums_of_products_keep_every_bias(trainer):
    W, b = trainer.model.parameters
    x = np.array([1.0, 2.0], np.float32)
    b.value, y = [1.0, -2.0, 3.0], W.value @ x
    with trainer.model.graph():
        def p(k=1):
            return W @ vpps.input(k * x)

        for node, expected in ((p() + b, y + b.value), (b + p(), y + b.value), ((p() + b) + (p(2) + b), 3 * y + 2 * b.value),
                               ((p() + b) + b, y + 2 * b.value), (p() + (p(2) + b), 3 * y + b.value), ((b + p()) + p(2), 3 * y + b.value),
                               (sum([p() + b, p(2) + b, p(3)]), 6 * y + 2 * b.value), ((p() + b) - (p(2) + b), -y),
                               (2 * (p() + b), 2 * (y + b.value)), (p() + b + 1, y + b.value + 1)):
            np.testing.assert_allclose(trainer.forward(node), expected, rtol=1e-5, atol=1e-6)


def test_sums_of_any_number_of_products(trainer):
    """A sum of more than 32 products, the most that one operation can have, is made as a sum of several."""
    W, b = trainer.model.parameters
    x = np.array([1.0, 2.0], np.float32)
    for n in (32, 33, 70):
        with trainer.model.graph():
            total = W @ vpps.input(x)
            for k in range(1, n):
                total = total + W @ vpps.input(k * x)
            many = sum(W @ vpps.input(k * x) for k in range(1, n))
            np.testing.assert_allclose(trainer.forward(total + b), W.value @ x * (1 + n * (n - 1) / 2) + b.value, rtol=1e-4)
            np.testing.assert_allclose(trainer.forward(many), W.value @ x * (n * (n - 1) / 2), rtol=1e-4)


def test_inputs_of_any_layout(trainer, rng):
    m = rng.standard_normal((4, 3)).astype(np.float32)
    for x in (m, np.asfortranarray(m), m.astype(np.float64), m.tolist(), np.repeat(m, 2, axis=1)[:, ::2]):
        np.testing.assert_array_equal(run(trainer, lambda a: a, x), m)
    many = rng.standard_normal((6, 4, 3)).astype(np.float32)
    with trainer.model.graph() as g:
        np.testing.assert_array_equal(trainer.forward(g.inputs(many)), many)
        np.testing.assert_array_equal(trainer.forward(g.inputs(many[:, :, 0])), many[:, :, 0])
        assert len(g.inputs(np.zeros((0, 4)))) == 0
    with pytest.raises(vpps.ArgumentError, match="3 dimensions"), trainer.model.graph():
        vpps.input(many)


def test_dlpack(trainer, rng):
    class Tensor:  # like PyTorch's tensors: no sequence, no __array__
        def __init__(self, a, kind=1):
            self.a, self.kind = a, kind

        def __dlpack__(self, **options):
            return self.a.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.kind, 0

    m = rng.standard_normal((4, 3)).astype(np.float32)
    np.testing.assert_array_equal(run(trainer, lambda a: a, Tensor(m)), m)
    W = trainer.model.parameters[0]
    W.value = Tensor(np.ones((3, 2), np.float32))
    assert (W.value == 1).all()
    with trainer.model.graph() as g:
        numbers = g.inputs(Tensor(m)).ids
        np.testing.assert_array_equal(trainer.forward(g.nodes(Tensor(numbers[1:].astype(np.int64)))), m[1:])
        refused(TypeError, r": a tensor on DLPack device 2; expected one on the CPU, as x.cpu\(\)", lambda: vpps.input(Tensor(m, 2)),
                lambda: g.nodes(Tensor(numbers, 2)), lambda: setattr(W, "value", Tensor(m, 2)))
        refused(TypeError, "input: a tensor that DLPack does not pass", lambda: vpps.input(Tensor(m.astype(">f4"))))


# ---------------------------------------------------------------- bulk building

def bulk_loss(net, batch):
    """Builds the same loss as `Small.loss` by three calls of apply, and one more for the states in the middle."""
    g = net.graph
    words = np.concatenate([w for w, _ in batch])
    first = np.cumsum([0] + [len(w) for w, _ in batch])
    begins = np.isin(np.arange(len(words)), first[:-1])
    starts = g.apply(net.start, indices=words[begins])
    at = np.empty(len(words), np.uint32)
    at[begins] = starts.ids
    at[~begins] = g.next_vertex + np.arange((~begins).sum())
    before = at[np.flatnonzero(~begins) - 1]
    g.apply(net.turn, children=before, indices=words[~begins])
    heads = g.apply(net.head, children=at[first[1:] - 1], indices=[label for _, label in batch])
    return vpps.average(heads.pushed())


def test_bulk_trains_as_one_by_one(rng):
    nets = [Small().train(), Small().train()]
    losses = [[], []]
    for _ in range(20):
        batch = nets[0].draw(rng)
        for net, build, kept in zip(nets, (Small.loss, bulk_loss), losses):
            with net.graph:
                net.trainer.step(build(net, batch))
            kept.append(net.trainer.loss())
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    np.testing.assert_allclose(nets[0].values(), nets[1].values(), rtol=1e-4, atol=1e-6)


def states_of_nodes():
    """Returns a model, a matrix of it, and a cell that holds the state of a node of a graph."""
    m = vpps.Model(1)

    @m.cell
    def state(c: vpps.Recorder) -> None:
        c.scatter(c.pull(4))

    return m, m.add_matrix("W", 4, 4), state


def test_lists_in_bulk(rng):
    """Builds a graph network in bulk: each node sums its neighbours' states, times the weight of the edge."""
    m, W, state = states_of_nodes()

    @m.cell
    def node(c: vpps.Recorder) -> None:
        h, weight = c.gather_list(0, 4, first=1), c.pull_list(1)
        c.scatter(vpps.tanh(c.gather(0, 0, 4) + W @ vpps.sum(vpps.scale_by(h, weight))))

    trainer = vpps.Trainer(m)
    x = rng.standard_normal((5, 4)).astype(np.float32)
    edges = [[1, 2], [], [0, 1, 3, 4], [3], [0]]
    weights = rng.standard_normal(8).astype(np.float32)
    with m.graph() as g:
        states = g.apply(state, pulls=g.inputs(x))
        first, neighbours = vpps.ragged(edges)
        one_each = g.inputs(weights[:, None])
        out = g.apply(node, children=states, lists=[vpps.Members(first, states[neighbours])], pull_lists=[one_each])
        bulk = trainer.forward(out.scattered())
        single = []
        for i, (v, n) in enumerate(zip(states, edges)):
            mine = list(one_each)[first[i]:first[i + 1]]
            single.append(node(v, *(states[k] for k in n), pull_lists=[mine]).scattered())
        one_by_one = np.stack(trainer.forward(single))
    np.testing.assert_array_equal(bulk, one_by_one)
    at, expected = 0, []
    for i, n in enumerate(edges):
        total = sum((weights[at + k] * x[j] for k, j in enumerate(n)), np.zeros(4, np.float32))
        expected.append(np.tanh(x[i] + W.value @ total))
        at += len(n)
    np.testing.assert_allclose(bulk, expected, rtol=1e-5, atol=1e-6)


def test_attention_and_two_lists(rng):
    """Compares softmax_list, log_softmax_list, weighted_sum_list, concat_list and a second list with NumPy."""
    m, W, state = states_of_nodes()

    @m.cell
    def attend(c: vpps.Recorder) -> None:
        query = W @ c.gather(0, 0, 4)
        keys = c.gather_list(0, 4, first=1)
        scores = vpps.dot(keys, query)
        c.push(vpps.weighted_sum_list(vpps.softmax_list(scores), keys))
        c.push(vpps.weighted_sum_list(vpps.log_softmax_list(scores), keys))

    @m.cell
    def two(c: vpps.Recorder) -> None:
        left, right, features = c.gather_list_of(0, 0, 4), c.gather_list_of(1, 0, 4), c.pull_list_of(1, 1)
        c.push(vpps.concat([vpps.concat_list(left, 3), vpps.sum(right * features)]))

    trainer, x = vpps.Trainer(m), rng.standard_normal((5, 4)).astype(np.float32)
    lists = [[1, 2], [0, 2, 3, 4], [4]]
    queries, first = [0, 1, 2], np.cumsum([0] + [len(k) for k in lists])

    attended = []
    for q, keys in zip(queries, lists):
        e = np.exp([x[k] @ (W.value @ x[q]) for k in keys])
        attended.append(np.stack([(e / e.sum()) @ x[keys], np.log(e / e.sum()) @ x[keys]]))

    with m.graph() as g:
        states = g.apply(state, pulls=g.inputs(x))
        v = g.apply(attend, children=states[queries], lists=[(first, states[np.concatenate(lists)])])
        for k in range(2):
            np.testing.assert_allclose(trainer.forward(v.pushed(k)), np.stack(attended)[:, k], rtol=1e-4, atol=1e-5)
        v = two(states[0], states[3], states[1], states[2], pull_lists=[[vpps.input(2.0), vpps.input(3.0)]], list_members=[2, 2])
        expected = np.concatenate([x[0], x[3], np.zeros(4), 2 * x[1] + 3 * x[2]])
        np.testing.assert_allclose(trainer.forward(v.pushed()), expected, rtol=1e-5, atol=1e-6)


def test_bulk_counts_what_c_would_read_beyond(rng):
    net = Small()
    m, _, state = states_of_nodes()

    @m.cell
    def listed(c: vpps.Recorder) -> None:
        c.scatter(vpps.sum(c.gather_list(0, 4)) + vpps.sum(c.pull_list(4)))

    with m.graph() as g:
        x = g.inputs(np.zeros((3, 4)))
        s = g.apply(state, pulls=x)
        assert len(g.apply(listed, lists=[([0, 2, 3], s)], pull_lists=[x])) == 2
        refused(vpps.ArgumentError, "3 children; expected 2", lambda: g.apply(listed, lists=[([0, 2], s)], pull_lists=[x]))
        refused(vpps.ArgumentError, "2 nodes in number 0; expected 3", lambda: g.apply(listed, lists=[([0, 3], s)], pull_lists=[x[:2]]),
                lambda: listed(*s, pull_lists=[list(x)[:2]], list_members=[3]))
    with net.graph as g:
        for arguments, text in [
            ({"indices": [-1]}, "-1; expected 0 to 4294967295"),
            ({"indices": [2**40]}, "1099511627776; expected"),
            ({"indices": [0.5]}, "expected whole numbers"),
            ({"indices": [[[1]]]}, "3 dimensions"),
            ({"indices": [1, 2], "n": 3}, "2 rows; expected 3"),
            ({}, "expected n"),
        ]:
            refused(vpps.ArgumentError, text, lambda: g.apply(net.start, **arguments))
        with pytest.raises(vpps.ArgumentError, match="vertex 1 of 2: apply start: index 11 for lookup; expected below 11"):
            g.apply(net.start, indices=[0, WORDS])


def test_nothing_in_bulk(rng):
    net = Small()
    with net.graph as g:
        none = g.apply(net.start, indices=np.zeros(0, np.int64))
        assert len(none) == 0 and len(none.scattered()) == 0
        assert len(g.apply(net.turn, children=none, indices=[])) == 0
        refused(vpps.ArgumentError, "no nodes", lambda: vpps.sum(none.scattered()))


# ---------------------------------------------------------------- conditions, loops

def test_loops_and_cases():
    m = vpps.Model(1)

    @m.cell
    def halve(c: vpps.Recorder) -> None:
        left, x = c.gather(0, 0, 1), c.gather(0, 1, 2)
        c.condition(left)
        c.scatter_else(left - 1, left)
        c.scatter_else(x * 0.5, x)

    @m.cell
    def one(c: vpps.Recorder) -> None:
        which = c.pull(1)
        c.condition(which, 1)
        c.scatter_else(c.pull(2) * 10)

    @m.cell
    def two(c: vpps.Recorder) -> None:
        which = c.pull(1)
        c.condition(which, 2)
        c.scatter_else(c.pull(2) * 100)

    trainer = vpps.Trainer(m)
    with m.graph() as g:
        turns = g.loop(halve, g.source(vpps.input(3.0), vpps.input([8.0, 16.0])), 5)
        np.testing.assert_array_equal(trainer.forward(turns[-1].scattered(1)), [1.0, 2.0])
        for which, factor in ((1, 10), (2, 100), (3, 0)):
            pulls = (vpps.input(which), vpps.input([1.0, 2.0]))
            v = g.case([vpps.Application(one, pulls=pulls), vpps.Application(two, pulls=pulls)])
            np.testing.assert_array_equal(trainer.forward(v.scattered()), [1.0 * factor, 2.0 * factor])


# ---------------------------------------------------------------- what is refused

def test_nodes_of_a_cleared_graph():
    net = Small()
    with net.graph:
        x = vpps.input([1.0, 2.0])
        v = net.start(indices=[1])
        many = net.graph.apply(net.start, indices=[1, 2])
    with net.graph:
        y = vpps.input([1.0, 2.0])
        refused(vpps.StateError, "graph that was cleared", lambda: vpps.tanh(x), lambda: x.shape, lambda: x[0], v.scattered, many.scattered)
        refused(vpps.ArgumentError, "cleared", lambda: x + y, lambda: vpps.sum([x, y]), lambda: net.turn(v, indices=[1]),
                lambda: net.graph.apply(net.turn, children=many, indices=[0, 0]), lambda: net.graph.source(x))
        assert "cleared" in repr(x)


def test_only_nodes_are_nodes(rng):
    """Nodes, vertices, cells and parameters have numbers, but one kind is not taken for another."""
    net = Small().train()
    g = net.graph
    with g:
        x = vpps.input(np.zeros(HIDDEN))
        v = net.start(indices=[1])
        many = g.apply(net.start, indices=[1, 2])
        for use, text in [
            (lambda: vpps.tanh(v), "Vertex; expected a node; its nodes are v.scattered"),
            (lambda: vpps.sum(many), "Vertex; expected a node"),
            (lambda: vpps.add(x, v), "Vertex; expected a node"),
            (lambda: vpps.select(x, x, v), "Vertex; expected a node"),
            (lambda: vpps.weighted_sum(v, [x]), "Vertex; expected a node"),
            (lambda: vpps.affine(None, net.U, v), "Vertex; expected a node"),
            (lambda: net.U @ v, "U @: Vertex; expected a node"),
            (lambda: vpps.tanh(net.E), r"an entry of a table is table\[index\]"),
            (lambda: vpps.tanh(A), r"vpps.input\(\) makes one of an array"),
            (lambda: vpps.tanh(1.0), r"vpps.constant\(\) makes one of a number"),
            (lambda: x + np.zeros(HIDDEN), "node and ndarray"),
            (lambda: np.zeros(HIDDEN) * x, "node and ndarray"),
            (lambda: g.source(v), "Vertex; expected a node"), (lambda: g.sources(many), "sources: Vertices; expected Nodes"),
            (lambda: net.turn(x, indices=[1]), "a child that is Node; expected a vertex"),
            (lambda: net.turn([v], indices=[1]), "a child that is list; expected a vertex"),
            (lambda: g.loop(net.turn, x, 2, indices=[1]), "a child that is Node; expected a vertex"),
            (lambda: g.case([vpps.Application(net.turn, [x], indices=[1])]), "a child that is Node; expected a vertex"),
            (lambda: g.apply(net.turn, children=many.scattered(), indices=[1, 2]), "children: Nodes; expected Vertices"),
            (lambda: g.apply(net.turn, children=[x, x], indices=[1, 2]), "children: Node; expected Vertices"),
            (lambda: g.apply(net.start, indices=many), "indices: Vertices; expected int"),
            (lambda: g.apply(net.start, indices=[1], pulls=v), "pulls: Vertex; expected Nodes"),
            (lambda: net.trainer.step(v), "step: Vertex; expected a node"),
            (lambda: net.trainer.backward(v), "backward: Vertex; expected a node"),
            (lambda: net.trainer.forward([v]), "forward: Vertex; expected a node"),
            (lambda: net.trainer.forward(many), "forward: Vertex; expected a node"),
            (lambda: net.trainer.disassemble(v), "disassemble: Vertex; expected a node"),
        ]:
            refused(TypeError, text, use)
        refused(vpps.ArgumentError, "to the power of 3", lambda: x**3)
        g.status()


def test_common_mistakes_are_told():
    m = vpps.Model(1)
    E, b = m.add_lookup("E", 10, 4), m.add_vector("b", 4)

    @m.cell
    def leaf(c: vpps.Recorder) -> None:
        c.scatter(E[c.pull_index()])

    @m.cell
    def listed(c: vpps.Recorder) -> None:
        c.scatter(vpps.sum(c.gather_list(0, 4)) + E[c.pull_index()])

    trainer = vpps.Trainer(m)
    with m.graph() as g:
        x, v = leaf(indices=3).scattered(), leaf(indices=np.array([3]))
        np.testing.assert_array_equal(*trainer.forward([x, v.scattered()]))
        for use, kind, text in [
            (lambda: E[-1], ValueError, "lookup: index: -1; expected a whole number from 0 to 9"),
            (lambda: vpps.cross_entropy(x, -1), ValueError, "cross_entropy: label: -1; expected a whole number from 0 to"),
            (lambda: trainer.forward(3), TypeError, "forward: int; expected a node; vpps.constant"),
            (lambda: E[1.0], TypeError, "lookup: index: 1.0; expected a whole number"),
            (lambda: vpps.zeros((2, 3)), TypeError, r"zeros: \(2, 3\); expected a whole number"),
            (lambda: vpps.input([1, 2**24 + 1]), ValueError, "input: 16777217; expected whole numbers that float32 holds"),
            (lambda: vpps.Model("a"), TypeError, "seed: 'a'; expected a whole number"),
            (lambda: vpps.Model(1).add_vector(1, 2), TypeError, "name: 1; expected text"),
            (lambda: x[0, 0], TypeError, "expected rows alone"),
            (lambda: float(x[0]), TypeError, r"trainer.forward\(node\) computes it"),
            (lambda: np.asarray(x), TypeError, r"trainer.forward\(node\) computes it"),
            (lambda: leaf(indices=[-1]), ValueError, "apply leaf: indices: -1; expected a whole number from 0"),
            (lambda: listed(v, indices=[2**32]), ValueError, "apply listed: indices: 4294967296; expected a whole number from 0"),
            (lambda: leaf(indices=[1], pulls=x), TypeError, "a node is no sequence"),
            (lambda: leaf(indices=0.5), ValueError, "indices: numbers of type float64; expected whole numbers"),
            (lambda: vpps.Trainer(g), TypeError, "a trainer of Graph; expected a model"),
            (lambda: vpps.Trainer(vpps.Model(1), vps=-1), ValueError, "vps: -1; expected a whole number from 0 to"),
            (lambda: vpps.Model(1).add_matrix("W", -1, 2), ValueError, "parameter W: size: -1; expected a whole number from 0 to"),
            (lambda: m.cell(lambda c: c.pull(2)), TypeError, r"its function returned Node; outputs are given to scatter\(\)"),
        ]:
            refused(kind, text, use)
        g.status()
        assert repr(g) == f"<graph of {len(g)} nodes, 2 vertices>"
    E.frozen = True
    assert repr(m) == "<model of 2 parameters, 44 numbers>\n  E            lookup  10 x 4  frozen\n  b            vector  4"
    assert repr(trainer).startswith("<trainer on cpu with ") and repr(trainer).endswith(" virtual processors, lr 0.1, 0 batches>")
    trainer.close()
    assert "closed" in repr(trainer) and b.shape == (4,)


def test_nothing_of_another_model(rng):
    """Objects of another model are refused: their numbers would name something else here."""
    net, other = Small().train(), Small()
    with other.graph as g:
        foreign = other.start(indices=[1])
    with net.graph as g:
        x = vpps.input(np.zeros(HIDDEN))
        v = net.start(indices=[1])
        for use in (lambda: other.start(indices=[1]), lambda: g.apply(other.start, indices=[1]), lambda: g.loop(other.turn, v, 2),
                    lambda: g.case([vpps.Application(other.turn, [v])]), lambda: other.U @ x, lambda: net.U @ x + other.b,
                    lambda: x + other.b, lambda: other.E[1], lambda: vpps.affine(other.b, net.U, x), lambda: vpps.matvec(other.U, x),
                    lambda: other.E.at(x[0]), lambda: vpps.tanh(other.b), lambda: net.model.gradient_norm(other.W),
                    lambda: net.trainer.set_param_group([other.W], lr=1.0)):
            refused(vpps.ArgumentError, "(cell|parameter) \\w+ of another model", lambda: vpps.tanh(use()) and pytest.fail("taken"))
        refused(vpps.ArgumentError, "another graph", lambda: net.turn(foreign, indices=[1]), lambda: g.loop(net.turn, foreign, 2, indices=[1]))
        g.status()
    with pytest.raises(vpps.ArgumentError, match="parameter U of another model"):
        @net.model.cell
        def mixed(c: vpps.Recorder) -> None:
            c.scatter(vpps.tanh(other.U @ c.gather(0, 0, HIDDEN)))


def test_vector_parameters_are_nodes(rng):
    """A vector parameter is taken wherever a node is expected: a learned initial state, a learned key."""
    m = vpps.Model(1)
    b = m.add_vector("b", 3, init=[1.0, 2.0, 3.0])
    W = m.add_matrix("W", 3, 3)

    @m.cell
    def turn(c: vpps.Recorder) -> None:
        c.scatter(vpps.tanh(b) + c.gather(0, 0, 3), b)

    trainer, value = vpps.Trainer(m), np.array([1.0, 2.0, 3.0], np.float32)
    with m.graph() as g:
        v = turn(g.source(b))
        for build, expected in [
            (vpps.tanh(b), np.tanh(value)), (W @ b, W.value @ value), (vpps.concat([b, vpps.input(A)]), np.concatenate([value, A])),
            (vpps.dot(b, vpps.input(A)), value @ A), (vpps.sum(b), value), (vpps.weighted_sum(b, [b, b, b]), 6 * value),
            (vpps.input(A) - b, A - value), (b * vpps.input(A), A * value), (b, value), (v.scattered(0), np.tanh(value) + value),
            (v.scattered(1), value),
        ]:
            np.testing.assert_allclose(trainer.forward(build), expected, rtol=1e-5)
        some = g.inputs(np.eye(3))
        pairs = g.sources(some, some[::-1])  # as many vertices as sources
        assert (trainer.forward(pairs.scattered(1)) == np.eye(3)[::-1]).all() and (trainer.forward(turn(pairs[2]).scattered(0)) > 0).all()
        assert len(g.sources(some[:0])) == 0
        for wrong, message in (((), "no nodes"), ((some, some[:1]), "3 and 1 nodes; expected equally many")):
            refused(vpps.ArgumentError, f"sources: {message}", lambda: g.sources(*wrong))


def test_matrix_parameters_are_nodes(rng):
    m = vpps.Model(1)
    W, U = (m.add_matrix(name, 2, 3, init=rng.standard_normal((2, 3)).astype(np.float32)) for name in "WU")

    @m.cell
    def turn(c: vpps.Recorder) -> None:
        x = c.gather(0, 0, 2, 3)
        c.scatter(vpps.tanh(x) * W)
        c.push(vpps.transpose(W) @ x)

    trainer, w, u = vpps.Trainer(m, verify=True), W.value, U.value
    with m.graph() as g:
        v = turn(g.source(U))
        for build, expected in [
            (W.node(), w), (W, w), (vpps.tanh(W), np.tanh(w)), (W.node() * U, w * u), (vpps.transpose(W) @ U, w.T @ u),
            (W @ vpps.transpose(U), w @ u.T), (vpps.select_rows(W, [1, 1]), w[[1, 1]]), (W.node()[1], w[1:]),
            (v.scattered(0), np.tanh(u) * w), (v.pushed(0), w.T @ u),
        ]:
            np.testing.assert_allclose(trainer.forward(build), expected, rtol=1e-5)
        trainer.backward(vpps.sum_elements(v.scattered(0) + vpps.square(W)) + vpps.sum_elements(W @ vpps.transpose(U)))
        trainer.read_gradients()
    np.testing.assert_allclose(W.gradient.values, np.tanh(u) + 2 * w + u.sum(0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(U.gradient.values, (1 - np.tanh(u) ** 2) * w + w.sum(0), rtol=1e-4, atol=1e-5)


def test_no_graph():
    net = Small()
    refused(vpps.StateError, "no graph is being built", lambda: vpps.input([1.0]), lambda: net.E[1], lambda: net.start(indices=[1]))


def test_errors_tell_the_librarys_message():
    net = Small()
    with net.graph:
        x, y = vpps.input([1.0, 2.0]), vpps.input([1.0, 2.0, 3.0])
        with pytest.raises(vpps.ShapeError, match="add: argument 1 is 3 x 1, argument 0 is 2 x 1; expected equal") as caught:
            x + y
        assert caught.value.status == "SHAPE" and isinstance(caught.value, ValueError)
        with pytest.raises(vpps.ShapeError, match="add: argument 1"):  # the graph keeps its first error
            vpps.tanh(x)
        refused(vpps.ShapeError, "add: argument 1", net.graph.status)
    with net.graph:
        vpps.tanh(vpps.input([1.0]))
        refused(TypeError, "node and str", lambda: vpps.input([1.0]) + "x")
        refused(TypeError, "", lambda: bool(vpps.input([1.0])), lambda: list(vpps.input([1.0])))
        refused(IndexError, "", lambda: vpps.input([1.0])[1])
        refused(vpps.ArgumentError, "steps of 2", lambda: vpps.input([1.0, 2.0])[::2])


def test_a_cell_that_fails_is_dropped():
    net = Small()
    with pytest.raises(vpps.ShapeError, match="affine: matrix U"):
        @net.model.cell
        def wrong(c: vpps.Recorder) -> None:
            c.scatter(net.U @ c.gather(0, 0, HIDDEN + 1) + net.b)

    with pytest.raises(ZeroDivisionError):
        @net.model.cell
        def divides(c: vpps.Recorder) -> None:
            c.pull_index()
            1 / 0  # noqa: B018

    kept = []

    @net.model.cell
    def keeps(c: vpps.Recorder) -> None:
        kept.append(c.pull(2))
        c.scatter(kept[0])

    refused(vpps.StateError, "cell that is recorded", lambda: vpps.tanh(kept[0]))
    with net.graph:
        with pytest.raises(vpps.ArgumentError, match="apply keeps: given 0 children, 0 pulls, 0 indices; expected 0 children, 1 pulls, 0 indices"):
            keeps()
