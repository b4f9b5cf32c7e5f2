"""Tests how parameters of every kind get from Python to the model and the device, and back. `forward` tells what the device has, since no copy takes
part in it."""

import gc

import numpy as np
import pytest
from small import refused

import vpps

SHAPES = {"M": (3, 4), "v": (3,), "T": (5, 4), "Q": (4, 2, 3), "F": (3, 4), "e": (2, 3)}


def fresh(name, rng):
    return rng.standard_normal(SHAPES[name]).astype(np.float32)


class Net:
    """A network with a matrix, a vector, a table, a table of matrices, and a frozen matrix and table."""

    def __init__(self, train=True, **options):
        self.model = m = vpps.Model(3)
        self.M, self.v, self.T = m.add_matrix("M", 3, 4), m.add_vector("v", 3, init=vpps.uniform(-1, 1)), m.add_lookup("T", 5, 4)
        self.Q, self.F, self.e = m.add_lookup("Q", 4, 2, 3), m.add_matrix("F", 3, 4), m.add_lookup("e", 2, 3)
        self.F.frozen = self.e.frozen = True

        @m.cell
        def cell(c: vpps.Recorder) -> None:
            h = vpps.tanh(self.M @ self.T[c.pull_index()] + self.F @ self.T[c.pull_index()] + self.v + self.e[c.pull_index()])
            c.push(vpps.sum_elements(vpps.square(self.Q[c.pull_index()] @ h)))

        self.cell, self.options = cell, {"optimizer": "adam", "lr": 0.05, "no_tuning": True, **options}
        self.trainer = self.open() if train else None

    def open(self):
        self.trainer = vpps.Trainer(self.model, **self.options)
        return self.trainer

    def loss(self, k):
        return vpps.average([self.cell(indices=[i % 5, (i + 1) % 5, i % 2, i % 3]).pushed() for i in (k, k + 2)])

    def step(self, *numbers):
        for k in numbers:
            with self.model.graph():
                self.trainer.step(self.loss(k))
        return self

    def on_device(self):
        with self.model.graph():  # all at once: a GPU's kernel would grow with each call
            nodes = {p.name: [p[i] for i in range(SHAPES[p.name][0])] if isinstance(p, vpps.Lookup) else [p.node()] for p in self.model.parameters}
            values = iter(self.trainer.forward(sum(nodes.values(), [])))
            return {name: np.stack([next(values) for _ in of]) if len(of) > 1 else next(values) for name, of in nodes.items()}


def same(got, expected):
    assert got.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(got[name], values, err_msg=name)
        assert got[name].shape == values.shape == SHAPES[name]


def values(net):
    return {p.name: p.value for p in net.model.parameters}


def views(net):
    return {p.name: p.view() for p in net.model.parameters}


devices = pytest.mark.parametrize("device", ["cpu", "simt"])


@devices
def test_what_the_trainer_has_is_read(device):
    net = Net(device=device)
    first = values(net)
    same(net.on_device(), first)
    shown = views(net)  # views of the model's own memory, which never moves
    net.step(0, 1)
    same(shown, first)
    trained = net.on_device()
    assert all((trained[n] != first[n]).any() == (n not in "Fe") for n in SHAPES)
    for read in (values, lambda n: n.model.state_dict()):
        same(read(net), trained)
        same(shown, trained)
        net.step(2)
        trained = net.on_device()
    same({p.name: p.value for p in reversed(net.model.parameters)}, trained)
    net.step(3)
    trained = net.on_device()
    net.trainer.read_parameters()
    same(shown, trained)
    for v in (*values(net).values(), *net.model.state_dict().values()):
        v[...] = 0  # these are copies, which nobody else has
    same(shown, trained)


def twins(read_before, **options):
    """Returns two networks that were trained alike. With `read_before` the model of the first has old copies of the values."""
    net, twin = Net(**options).step(0, 1), Net(**options).step(0, 1)
    if read_before:
        net.model.state_dict()
    return net.step(2, 3), twin.step(2, 3)


@pytest.mark.parametrize(("device", "read_before"), [("cpu", False), ("cpu", True), ("simt", True)])
def test_what_is_assigned_is_all_that_changes(device, read_before, rng):
    """Only the parameter that gets values changes: the others and the optimizer's state stay, so training goes on as in a twin."""
    for name in SHAPES:
        net, twin = twins(read_before, device=device)
        expected, new = twin.on_device(), fresh(name, rng)
        net.model.parameter(name).value = new
        same(net.on_device(), {**expected, name: new})
        same(values(net), {**expected, name: new})
        net.model.parameter(name).value = expected[name]
        same(net.step(0, 1).on_device(), twin.step(0, 1).on_device())


@pytest.mark.parametrize("read_before", [False, True])
def test_a_loaded_state_keeps_the_optimizers(read_before, rng):
    net, twin = twins(read_before)
    expected = twin.on_device()
    other = {name: fresh(name, rng) for name in SHAPES}
    net.model.load_state_dict(other)
    same(net.on_device(), other)
    net.model.load_state_dict(expected)
    same(net.step(0, 1).on_device(), twin.step(0, 1).on_device())


@devices
def test_views_are_written_on_demand(device, rng):
    net = Net(device=device).step(0, 1)
    net.trainer.read_parameters()
    trained, new = net.on_device(), {name: fresh(name, rng) for name in SHAPES}
    for name, view in views(net).items():
        view[...] = new[name]
    same(net.on_device(), trained)
    net.trainer.write_parameters()
    same(net.on_device(), new)
    same(values(net), new)


@devices
def test_before_between_and_after_trainers(device, rng):
    net = Net(train=False, device=device)
    same(values(net), values(Net(train=False)))
    new = {name: fresh(name, rng) for name in SHAPES}
    for name in SHAPES:
        if name in "MTe":
            net.model.parameter(name).value = new[name]
        else:
            net.model.parameter(name).view()[...] = new[name]
    same(net.model.state_dict(), new)
    shown = views(net)
    net.open()
    same(net.on_device(), new)
    for end in ("close", "drop"):
        trained = net.step(0, 1).on_device()
        if end == "close":
            net.trainer.close()
        net.trainer = None
        gc.collect()
        same(values(net), trained)
        same(shown, trained)
        net.v.value = new["v"]
        same(net.model.state_dict(), {**trained, "v": new["v"]})
        net.open()
        same(net.on_device(), {**trained, "v": new["v"]})
    net.trainer.close()
    trained = values(net)
    del net
    gc.collect()
    same(shown, trained)


@devices
def test_gradients_both_ways(device, rng):
    """Finds out gradients by the step that sgd makes of them: with lr 1, old values - new ones."""
    net = Net(device=device, optimizer="sgd", lr=1.0)
    before = net.on_device()
    with net.model.graph():
        net.trainer.backward(net.loss(0))
    net.trainer.read_gradients()
    read = {p.name: p.gradient for p in net.model.parameters if not p.frozen}
    assert net.T.gradient.entries.tolist() == [0, 1, 2, 3] and net.Q.gradient.entries.tolist() == [0, 2] and net.M.gradient.entries is None

    def stepped(gradients):
        after, expected = net.on_device(), {**before}
        for name, g in gradients.items():
            at = ... if read[name].entries is None else read[name].entries
            expected[name] = before[name].copy()
            expected[name][at] -= g
            np.testing.assert_allclose(after[name], expected[name], rtol=1e-5, atol=1e-6, err_msg=name)
        same({n: after[n] for n in SHAPES if n not in gradients} | {n: before[n] for n in gradients}, before)
        return after

    norms = {n: np.linalg.norm(g.values.astype(float)) for n, g in read.items()}
    for name, norm in norms.items():
        assert net.model.gradient_norm(net.model.parameter(name)) == pytest.approx(norm, rel=1e-5)
    assert net.model.gradient_norm() == pytest.approx(np.linalg.norm(list(norms.values())), rel=1e-5)
    for name, g in read.items():
        net.model.parameter(name).gradient.values[...] = 0  # a copy, too
        np.testing.assert_array_equal(net.model.parameter(name).gradient.values, g.values)
    net.trainer.update()
    before = stepped({n: g.values for n, g in read.items()})
    for name in read:  # change the gradient of one parameter, and leave the others as they were read
        with net.model.graph():
            net.trainer.backward(net.loss(0))
        net.trainer.read_gradients()
        given = {n: net.model.parameter(n).gradient.values for n in read}
        given[name] = rng.standard_normal(given[name].shape).astype(np.float32)
        net.model.parameter(name).set_gradient(given[name])
        np.testing.assert_array_equal(net.model.parameter(name).gradient.values, given[name])
        net.trainer.write_gradients()
        net.trainer.update()
        before = stepped(given)


def test_freezing_is_of_one_parameter():
    net = Net()
    assert [p.frozen for p in net.model.parameters] == [False, False, False, False, True, True]
    before = net.on_device()
    net.T.frozen, net.e.frozen = True, False
    after = net.step(0, 1).on_device()
    assert [bool((after[n] != before[n]).any()) for n in SHAPES] == [True, True, False, True, False, True]
    assert [p.frozen for p in net.model.parameters] == [False, False, True, False, True, False]


def test_initial_values_of_every_kind(rng):
    new = {name: fresh(name, rng) for name in SHAPES}
    m = vpps.Model(1)
    m.add_matrix("M", 3, 4, init=np.asfortranarray(new["M"]))
    m.add_vector("v", 3, init=new["v"].tolist())
    m.add_lookup("T", 5, 4, init=new["T"][::-1][::-1])
    m.add_lookup("Q", 4, 2, 3, init=new["Q"].astype(np.float64))
    m.add_matrix("F", 3, 4, init=2.5)
    m.add_lookup("e", 2, 3, init=vpps.constant_init(-1))
    same(m.state_dict(), {**new, "F": np.full((3, 4), 2.5, np.float32), "e": np.full((2, 3), -1, np.float32)})
    assert [type(p) for p in m.parameters] == [vpps.Matrix, vpps.Vector, vpps.Lookup, vpps.Lookup, vpps.Matrix, vpps.Lookup]
    u, n = m.add_lookup("u", 5, 3, init=vpps.uniform(-1, 1)).value, m.add_matrix("n", 50, 50, init=vpps.normal(1.0, 0.1)).value
    assert 0 < np.abs(u).max() <= 1 and abs(n.mean() - 1) < 0.02 and abs(n.std() - 0.1) < 0.02
    refused(vpps.ArgumentError, r"\(4, 3\); expected \(3, 4\)", lambda: setattr(m.parameter("M"), "value", new["M"].T))
    for name in ("", "M", "a\0b", "__metadata__"):
        refused(vpps.ArgumentError, "", lambda: m.add_vector(name, 1))
    for call, name, shape, expected in ((m.add_matrix, "N", (3, 4), (3, 4)), (m.add_vector, "w", (3,), (3,)), (m.add_lookup, "U", (5, 4), (5, 4)),
                                        (m.add_lookup, "V", (4, 2, 3), (4, 2, 3))):
        with pytest.raises(vpps.ArgumentError) as error:
            call(name, *shape, init=np.zeros(7))
        assert str(error.value) == f"parameter {name}: initial values of shape (7,); expected {expected}"
    trainer, Q = vpps.Trainer(m), m.parameter("Q")
    with m.graph():
        np.testing.assert_array_equal(trainer.forward([Q[1], Q.at(vpps.input(3.0))]), new["Q"][[1, 3]])
    refused(vpps.StateError, "", lambda: m.add_vector("late", 1))
