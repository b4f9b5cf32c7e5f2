"""Tests every place that takes a number: whole numbers only by operator.index, real ones as float32 holds them, and none changed silently."""

import builtins
import copy
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from small import CLASSES, HIDDEN, Small, refused

import vpps
from vpps import data

NOT_WHOLE = [np.float32(1.9), np.float64(1.0), 1.0, Decimal(1), Fraction(3, 2), "1", 1j, np.ma.masked, 2**64]
LATTICES = "a|X b|X\n\nb|X a|X\n"


class World(Small):
    """All objects that the calls below need besides a number: a network, data, nodes and vertices on the current graph."""

    def __init__(self):
        super().__init__()

        @self.model.cell
        def pairs(c: vpps.Recorder) -> None:
            c.scatter(c.pull(2), c.pull(2))
            c.push(vpps.ones(), vpps.ones())

        @self.model.cell
        def lists(c: vpps.Recorder) -> None:
            c.scatter(vpps.sum(c.gather_list_of(0, 0, HIDDEN)) + vpps.sum(c.gather_list_of(1, 0, HIDDEN)))

        @self.model.cell
        def repeat(c: vpps.Recorder) -> None:
            h, on = c.gather(0, 0, HIDDEN), c.gather(0, 1, 1)
            c.condition(on)
            c.scatter_else(h + h, h)
            c.scatter_else(on - 1, on)

        self.pairs, self.lists, self.repeat = pairs, lists, repeat
        self.train()
        self.graph.__enter__()
        self.begin()

    def begin(self):
        self.graph.clear()
        self.nodes = self.graph.inputs(np.ones((3, 2)))
        self.vertices = self.graph.apply(self.start, indices=[0, 1, 2])
        self.two = self.pairs(pulls=[self.nodes[0], self.nodes[1]])
        self.some = self.graph.vertices([self.two.id])


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    w = World()
    w.folder = tmp_path_factory.mktemp("metrics")
    yield w
    w.graph._pop_current()


def recorded(call):
    """Returns a test of a number in a cell: whether call(recorder, number) records it."""

    def record(_, n):
        def cell(c: vpps.Recorder) -> None:
            call(c, n)

        return vpps.Model(1).cell(cell)

    return record


# Calls that take a whole number; 1 is right for each of them.
WHOLE = {
    "lookup": lambda w, n: w.E[n],
    "Graph.lookup": lambda w, n: w.graph.lookup(w.E, n),
    "cross_entropy": lambda w, n: vpps.cross_entropy(w.c, n),
    "cross_entropy, smoothed": lambda w, n: vpps.cross_entropy(w.c, n, label_smoothing=0.1),
    "hinge": lambda w, n: vpps.hinge(w.c, n),
    "smooth_label": lambda w, n: vpps.smooth_label(w.c, n, 0.1),
    "slice": lambda w, n: vpps.slice(w.c, n, 1),
    "rows of slice": lambda w, n: vpps.slice(w.c, 0, n),
    "row": lambda w, n: w.c.node()[n],
    "rows": lambda w, n: w.c.node()[0:n],
    "rows of reshape": lambda w, n: vpps.reshape(w.c, n, CLASSES),
    "columns of reshape": lambda w, n: vpps.reshape(w.c, CLASSES, n),
    "rows of broadcast": lambda w, n: vpps.broadcast(vpps.ones(), n, 2),
    "columns of broadcast": lambda w, n: vpps.broadcast(vpps.ones(), 2, n),
    "select_rows": lambda w, n: vpps.select_rows(w.c, [n, 2]),
    "constant": lambda w, n: vpps.constant(0.0, n, n),
    "zeros": lambda w, n: vpps.zeros(n),
    "ones": lambda w, n: vpps.ones(2, n),
    "an index": lambda w, n: w.start(indices=[n]),
    "the index": lambda w, n: w.start(indices=n),
    "indices": lambda w, n: w.graph.apply(w.start, indices=[n, 1]),
    "n": lambda w, n: w.graph.apply(w.start, indices=[1], n=n),
    "members": lambda w, n: w.lists(w.vertices[0], w.vertices[1], list_members=[n, n]),
    "first": lambda w, n: w.graph.apply(w.lists, lists=[([0, n], w.vertices[:1]), ([0, n], w.vertices[:1])]),
    "children": lambda w, n: w.graph.apply(w.turn, children=[n], indices=[0]),
    "pulls": lambda w, n: w.graph.apply(w.pairs, pulls=[[n, 1]]),
    "scattered": lambda w, n: w.two.scattered(n),
    "pushed": lambda w, n: w.two.pushed(n),
    "scattered of many": lambda w, n: w.some.scattered(n),
    "node": lambda w, n: w.nodes[n],
    "vertex": lambda w, n: w.vertices[n],
    "nodes by number": lambda w, n: w.graph.nodes([n]),
    "vertices by number": lambda w, n: w.graph.vertices([n]),
    "loop": lambda w, n: w.graph.loop(w.repeat, w.graph.source(w.vertices[0].scattered(), vpps.ones()), n),
    "seed": lambda w, n: vpps.Model(n),
    "matrix": lambda w, n: vpps.Model(1).add_matrix("W", n, n),
    "vector": lambda w, n: vpps.Model(1).add_vector("v", n),
    "table": lambda w, n: vpps.Model(1).add_lookup("E", n, n, n),
    **{name: lambda w, n, name=name: vpps.Trainer(vpps.Model(1), **{name: n})
       for name in ("vps", "groups", "waves", "slices", "keep_bytes", "watchdog_ms", "batch", "trace_events", "no_tuning")},
    **{name: recorded(call) for name, call in {
        "child": lambda c, n: c.gather(n, 0, 2), "output": lambda c, n: c.gather(0, n, 2), "rows of gather": lambda c, n: c.gather(0, 0, n),
        "columns of gather": lambda c, n: c.gather(0, 0, 2, n), "first of gather_list": lambda c, n: c.gather_list(0, 2, first=n),
        "gather_list": lambda c, n: c.gather_list(n, n), "list": lambda c, n: [c.gather_list_of(0, 0, 2), c.gather_list_of(n, 0, 2)], "pull": lambda c, n: c.pull(n, n),
        "pull_list": lambda c, n: c.pull_list(n), "pull_list_of": lambda c, n: [c.gather_list_of(0, 0, 2), c.pull_list_of(n, 2)],
        "condition": lambda c, n: c.condition(c.pull(1), n), "concat_list": lambda c, n: vpps.concat_list(c.gather_list(0, 2), n)}.items()},
    "word": lambda w, n: data.Vocab("ab").word(n),
    "min_count": lambda w, n: data.Vocab("ab").cut([1, 2], n),
    "counts": lambda w, n: data.Vocab("ab").cut([n, 2]),
    "missing": lambda w, n: data.Vocab("ab").map(data.Vocab("a"), n),
    "spelling": lambda w, n: data.Vocab("ab").spellings()[n],
    "listops": lambda w, n: data.Treebank().generate_listops(n, n, max_depth=1 + n - n),
    "complete trees": lambda w, n: data.Treebank().generate_complete(n, n),
    "text of a tree": lambda w, n: data.Treebank().generate_complete(2).text(n),
    "line of a tree": lambda w, n: data.Treebank().generate_complete(2).line(n),
    "trees": lambda w, n: data.Treebank().generate_complete(2).arrays().take([n]),
    "words of trees": lambda w, n: data.Treebank().read_text("(1 a)").arrays().with_words([n]),
    "language": lambda w, n: data.generate_language(n, n),
    "sentence": lambda w, n: data.generate_language(3)[n],
    "column": lambda w, n: data.Sentences().read_columns_text("a B\n", word=n, tag=n + 1),
    "label": lambda w, n: data.generate_language(3, labels=True).label(n),
    "lattice": lambda w, n: data.Lattices().build(data.Sentences().read_tagged_text(LATTICES), data.Vocab())[n],
    "tags": lambda w, n: data.F1(data.Vocab(["O", "B-A"])).add([n], [1]),
    "words": lambda w, n: data.Bleu().add([n], [1]),
    "every": lambda w, n: vpps.Metrics(w.folder, every=n, tensorboard=False).close(),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_are_not_cut(world, name):
    call = WHOLE[name]
    for right in (1, np.int64(1), np.uint8(1), np.array(1)):
        world.begin()
        call(world, right)
        world.graph.status()
    for wrong in NOT_WHOLE[:-1] if name == "rows" else NOT_WHOLE:  # x[0:2**64] is right: all rows
        with pytest.raises((TypeError, ValueError, IndexError, MemoryError, vpps.Error)) as error:
            call(world, wrong)
            world.graph.status()
        assert len(str(error.value)) > 10, wrong


def test_masks_are_no_indices(world):
    """A mask chooses elements where NumPy's arrays take one. Where numbers are expected it is refused, and so is an index of two dimensions."""
    world.begin()
    mask = np.array([True, False, True])
    assert world.vertices[mask].ids.tolist() == [world.vertices.ids[0], world.vertices.ids[2]] and len(world.nodes[mask.tolist()]) == 2
    trees = data.Treebank().generate_complete(3).arrays()
    assert len(trees.take(mask)) == 2
    refused((TypeError, ValueError, IndexError), "", lambda: world.graph.apply(world.start, indices=mask), lambda: world.graph.vertices(mask),
            lambda: world.start(indices=mask), lambda: world.E[mask], lambda: vpps.select_rows(world.c, mask),
            lambda: vpps.select_rows(world.c, [True, False, True]), lambda: world.graph.apply(world.turn, children=mask, indices=[1, 2, 3]),
            lambda: world.nodes[True], lambda: world.nodes[None], lambda: world.vertices[np.bool_(True)], lambda: world.vertices[mask[:2]],
            lambda: data.Bleu().add(mask, [1]), lambda: vpps.ragged([[True], [False]]), lambda: world.nodes[[[0, 1], [2, 0]]],
            lambda: world.vertices[np.array([[0]])])
    with pytest.raises(vpps.ArgumentError, match=r"indices: numbers of type bool; expected whole numbers: np.flatnonzero\(mask\)"):
        world.graph.apply(world.start, indices=mask)


HIDDEN_ELEMENT = np.ma.array([1, 2, 3], mask=[0, 1, 0])


def test_masked_arrays_keep_their_mask(world):
    world.begin()
    hidden, trees = HIDDEN_ELEMENT, data.Treebank().generate_complete(4).arrays()
    refused((TypeError, ValueError), "mask", lambda: vpps.input(hidden), lambda: vpps.input(hidden.astype(np.float32)),
            lambda: vpps.input([hidden, hidden]), lambda: world.graph.inputs(np.ma.array(np.ones((2, 2)), mask=np.eye(2))),
            lambda: vpps.input([1.0, np.ma.masked]), lambda: world.graph.apply(world.start, indices=hidden), lambda: world.start(indices=hidden[:2]),
            lambda: world.vertices[hidden], lambda: world.graph.apply(world.turn, children=hidden, indices=[1, 2, 3]), lambda: trees.take(hidden),
            lambda: vpps.select_rows(world.c, hidden), lambda: data.Bleu().add(hidden, [1]), lambda: vpps.ragged([hidden, [1]]),
            lambda: setattr(world.c, "value", hidden), lambda: vpps.Model(1).add_vector("v", 3, init=hidden), lambda: world.trainer.keep_data(hidden),
            lambda: world.model.load_state_dict({**world.model.state_dict(), "c": hidden}))
    whole = np.ma.array([1, 2, 3], mask=False)
    np.testing.assert_array_equal(world.trainer.forward(vpps.input(whole)), [1, 2, 3])
    assert len(world.graph.apply(world.start, indices=whole)) == 3


# ---------------------------------------------------------------- real numbers

def set_gradient(w, x):
    w.trainer.backward(w.loss([([1], 1)]))
    w.trainer.read_gradients()
    w.c.set_gradient(x)
    w.trainer.zero_gradients()
    return w.c.gradient.values


# Places that take values: each takes three, and returns those that the engine then has.
SINKS = {
    "input": lambda w, x: w.trainer.forward(vpps.input(x)),
    "inputs": lambda w, x: w.trainer.forward(w.graph.inputs([x]))[0],
    "keep_data": lambda w, x: w.trainer.keep_data(x).numpy(),
    "value": lambda w, x: setattr(w.c, "value", x) or w.c.value,
    "load_state_dict": lambda w, x: w.model.load_state_dict({**w.model.state_dict(), "c": x}) or w.c.value,
    "init": lambda w, x: vpps.Model(1).add_vector("v", 3, init=x).value,
    "set_gradient": set_gradient,
}
LARGEST = float(np.finfo(np.float32).max)


@pytest.mark.parametrize("sink", SINKS.values(), ids=SINKS)
def test_values_are_kept_or_refused(world, sink):
    world.begin()
    for right in ([0.1, -0.5, 1e-50], np.array([1, 2, 2**24]), np.array([2**25, -(2**60), 3]), np.array([True, False, True]), (1, 2.5, 0.5),
                  np.array([LARGEST, 1e38, -LARGEST]), np.array([1, 2, 3], np.float16), np.array([1, 2, 3], ">f4"), np.array([7, 8, 9], np.uint64),
                  np.array([1.5, 2, 3], np.longdouble)):
        np.testing.assert_array_equal(sink(world, right), np.asarray(right).astype(np.float32))
    for wrong in (np.array([2**24 + 1, 0, 0]), [2**24 + 1, 0, 0], np.array([0, 2**63 + 1, 0], np.uint64), [1e39, 0, 0], np.array([0, -1e300, 0]),
                  np.array([0, 0, np.finfo(np.longdouble).max]), [1j, 0, 0], np.array([1, 0, 0], np.complex64), ["1", "2", "3"], [None, 1, 2],
                  np.array([1, 2, 3], object), [Decimal(1), 2, 3], [2**70 + 1, 0, 0], np.array(["2020", "2021", "2022"], "datetime64[Y]"),
                  np.array([b"1", b"2", b"3"])):
        refused((TypeError, ValueError), "float32 holds|expected real ones", lambda: sink(world, wrong))


REAL = {
    "constant": lambda w, x: vpps.constant(x),
    "scale": lambda w, x: vpps.scale(vpps.ones(), x),
    "times": lambda w, x: vpps.ones() * x,
    "plus": lambda w, x: vpps.ones() + x,
    "minus": lambda w, x: x - vpps.ones(),
    "by": lambda w, x: vpps.ones() / x,
    "elu": lambda w, x: vpps.elu(vpps.ones(), x),
    "dropout": lambda w, x: vpps.dropout(vpps.ones(), x),
    "rms_norm": lambda w, x: vpps.rms_norm(w.c, epsilon=x),
    "layer_norm": lambda w, x: vpps.layer_norm(w.c, epsilon=x),
    "cross_entropy": lambda w, x: vpps.cross_entropy(w.c, 1, label_smoothing=x),
    "smooth_label": lambda w, x: vpps.smooth_label(w.c, 1, x),
    "hinge": lambda w, x: vpps.hinge(w.c, 1, x),
    "lr": lambda w, x: setattr(w.trainer, "lr", x),
    "momentum": lambda w, x: w.trainer.set_momentum(x),
    "weight_decay": lambda w, x: w.trainer.set_weight_decay(x),
    "group": lambda w, x: w.trainer.set_param_group([w.W], lr=x),
    "optimizer": lambda w, x: vpps.Trainer(vpps.Model(1), lr=x, clip=x),
    "init": lambda w, x: vpps.Model(1).add_vector("v", 3, init=x),
    "uniform": lambda w, x: vpps.Model(1).add_vector("v", 3, init=vpps.uniform(0, x)),
}


@pytest.mark.parametrize("name", REAL)
def test_single_numbers_are_kept_or_refused(world, name):
    world.begin()
    for right in (0.25, np.float32(0.25), np.float64(0.25)):
        REAL[name](world, right)
    for wrong in (1e39, 2**24 + 1, 10**400, 1j, np.complex64(0.5), "0.5", Decimal("0.5"), np.ma.masked, np.array([0.25, 0.25]),
                  np.ma.array(0.25, mask=True)):
        if name == "init" and np.ndim(wrong):
            continue
        refused((TypeError, ValueError), "", lambda: REAL[name](world, wrong))
    world.graph.status()


# ---------------------------------------------------------------- what pull_index gives

USES = {
    "E[i + 1]": lambda i, e: e[i + 1], "1 + i": lambda i, e: 1 + i, "np +": lambda i, e: np.int64(3) + i, "array +": lambda i, e: np.arange(3) + i,
    "i == 3": lambda i, e: i == 3, "hash": lambda i, e: {i: 1}, "if i": lambda i, e: 1 if i else 0, "for": lambda i, e: list(i),
    "1 in i": lambda i, e: 1 in i, "int": lambda i, e: int(i), "float": lambda i, e: float(i), "{:d}": lambda i, e: f"{i:d}", "%d": lambda i, e: "%d" % i,
    "list[i]": lambda i, e: [1, 2][i], "array[i]": lambda i, e: np.arange(3)[i], "array": lambda i, e: np.array(i), "zeros": lambda i, e: vpps.zeros(i),
    "slice": lambda i, e: vpps.slice(vpps.ones(2), i, 1), "select_rows": lambda i, e: vpps.select_rows(vpps.ones(2), [i]),
    "input": lambda i, e: vpps.input([i]), "x * i": lambda i, e: vpps.ones() * i, "copy": lambda i, e: copy.copy(i), "pickle": lambda i, e: pickle.dumps(i),
    "gather": lambda i, e: vpps.current().gather(0, 0, i), "condition": lambda i, e: vpps.current().condition(vpps.current().pull(1), i),
    "at": lambda i, e: e.at(i), "seed": lambda i, e: vpps.Model(i), "hinge": lambda i, e: vpps.hinge(vpps.ones(2), 0, i),
}


@pytest.mark.parametrize("use", USES)
def test_a_pulled_index_is_no_number(use):
    m = vpps.Model(1)
    e = m.add_lookup("E", 5, 2)

    def cell(c: vpps.Recorder) -> None:
        USES[use](c.pull_index(), e)

    with pytest.raises((TypeError, IndexError), match=None if use in ("array[i]", "%d") else
                       "index 0 that cell cell pulls.* has no number|neither copied nor pickled|node and PulledIndex"):
        m.cell(cell)


def test_a_pulled_index_is_taken_by_its_cell_alone(world):
    m = vpps.Model(1)
    e, kept = m.add_lookup("E", 5, 2), []

    @m.cell
    def first(c: vpps.Recorder) -> None:
        i, j = c.pull_index(), c.pull_index()
        assert repr(j) == f"{j}" == "<index 1 that cell first pulls>"
        kept.append(i)
        c.push(vpps.cross_entropy(e[i], j), vpps.hinge(e[j], i), vpps.smooth_label(e[i], j, 0.5), vpps.cross_entropy(e[i], j, vpps.ones(2), 0.5))

    def second(c: vpps.Recorder) -> None:
        c.scatter(e[kept[0]])

    refused(vpps.ArgumentError, "index 0 that cell first pulls", lambda: m.named_cell("second")(second))
    with pytest.raises(vpps.ArgumentError, match="expected a whole number from 0 to"):
        m.named_cell("number")(lambda c: c.scatter(vpps.hinge(e[0], 2**32 - 2**16)))
    with m.graph() as g:
        refused((vpps.ArgumentError, TypeError), "index 0 that cell first pulls", lambda: e[kept[0]], lambda: vpps.hinge(e[0], kept[0]),
                lambda: first(indices=[kept[0], 1]))
        values = vpps.Trainer(m).forward([first(indices=[1, 1]).pushed(k) for k in range(4)])
        assert len(g) > 0 and all(np.isfinite(v).all() for v in values)


# ---------------------------------------------------------------- names and copies

def test_star_import_replaces_nothing_of_python():
    names = {}
    exec("from vpps import *", names)
    del names["__builtins__"]
    assert not names.keys() & vars(builtins).keys()
    assert {"tanh", "cross_entropy", "Trainer", "Model", "PulledIndex", "data", "zeros"} <= names.keys()
    shadowing = {"sum", "max", "min", "abs", "slice", "input"}
    made = {n for n, f in vars(vpps.ops).items() if callable(f) and getattr(f, "__module__", "") == "vpps.ops" and not n.startswith("_")}
    assert made - shadowing == set(vpps.ops.__all__) and all(getattr(vpps, n) is getattr(vpps.ops, n) for n in made)
    classes = {n for n, c in vars(vpps).items() if isinstance(c, type) and c.__module__.startswith("vpps.")}
    assert classes <= set(vpps.__all__)


@pytest.mark.parametrize("copying", [copy.copy, copy.deepcopy, pickle.dumps], ids=["copy", "deepcopy", "pickle"])
def test_objects_are_not_copied(world, copying):
    world.begin()
    sentences = data.generate_language(2)
    for x in (world.trainer, world.model, world.graph, world.W, world.E, world.start, world.c.node(), world.W @ world.E[1], world.nodes,
              world.vertices, world.vertices[0], world.trainer.keep_data([1.0]), vpps.Inference(world.trainer), sentences,
              data.Treebank(), data.Constituents(), data.Lattices(), data.F1(data.Vocab()), data.Bleu(), data.Vocab().spellings()):
        refused(TypeError, f"{type(x).__name__}: an object that can be neither copied nor pickled", lambda: copying(x))
    for words in (data.Vocab(), data.Vocab(["a", "b c", "é"]), sentences.vocab):
        got = copying(words)
        got = pickle.loads(got) if isinstance(got, bytes) else got
        assert list(got) == list(words) and got.add("another") == len(words) and "another" not in words
