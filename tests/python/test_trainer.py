"""Tests training, the trainer's options, parameters, and looking inside."""

import json
import math

import numpy as np
import pytest
from small import Interrupting, Small, refused

import vpps
from vpps._vpps import lib
from vpps.engine import ENUMS


def test_it_learns(rng):
    net = Small(optimizer="adam", lr=0.01).train()
    batch, stale = net.draw(rng, 8), []
    refused(vpps.StateError, "", net.trainer.loss)
    for _ in range(401):
        with net.graph:
            stale.append(net.trainer.step(net.loss(batch)))
    assert math.isnan(stale[0]) and net.trainer.loss() < 0.3 < stale[1]
    assert net.trainer.poll_loss() == net.trainer.loss()
    assert net.trainer.stats().batches == 401


@pytest.mark.parametrize("optimizer", ENUMS["optimizer"])
def test_a_trainer_without_a_learning_rate_has_the_optimizers(rng, optimizer):
    rate = lib.vpps_default_lr(ENUMS["optimizer"][optimizer])
    told = []
    net = Small(optimizer=optimizer, on_step=lambda n, values: told.append(values["lr"])).train()
    twin = Small(optimizer=optimizer, lr=rate).train()
    batch = net.draw(rng)
    for s in (net, twin):
        s.step(batch)
        s.trainer.loss()
    assert net.trainer.lr == rate and told == [rate] and (net.values() == twin.values()).all()


def test_gradients_of_nodes(rng):
    m = vpps.Model(1)
    W, E = m.add_matrix("W", 4, 3), m.add_lookup("E", 5, 3)
    trainer = vpps.Trainer(m)
    data = rng.standard_normal((3, 2)).astype(np.float32)

    def build(data):
        x, word = vpps.input(data), E[2]
        y = vpps.tanh(W @ x)
        return x, word, y, vpps.sum_elements(vpps.square(y)) + vpps.dot(word, word)

    with m.graph() as g:
        x, word, y, loss = build(data)
        aside = vpps.square(loss)
        got = trainer.backward(loss, values=[y, loss], gradients=[x, word, y, loss, aside], parameters=False)
        np.testing.assert_array_equal(got.values[1], trainer.loss())
        assert got.values[0].shape == got.gradients[2].shape == (4, 2)
        np.testing.assert_allclose(got.gradients[2], 2 * got.values[0], rtol=1e-5)
        np.testing.assert_allclose(got.gradients[0], W.value.T @ (2 * got.values[0] * (1 - got.values[0] ** 2)), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(got.gradients[1], 2 * E.value[2], rtol=1e-6)
        assert got.gradients[3] == 1 and got.gradients[4] == 0
        one = trainer.backward(loss, gradients=x, parameters=False).gradients
        np.testing.assert_array_equal(one, got.gradients[0])
        assert trainer.backward(loss, values=[], gradients=g.nodes([]), parameters=False).values == []
        refused(vpps.StateError, "no gradients", trainer.update)
        both = trainer.backward(loss, gradients=x)
        np.testing.assert_array_equal(both.gradients, one)
        trainer.update()
        for wrong, error in (([W], TypeError), (E, TypeError), (3, TypeError)):
            refused(error, "", lambda: trainer.backward(loss, gradients=wrong))
        refused(TypeError, "p.gradient after read_gradients", lambda: trainer.backward(loss, gradients=[Small().b]))
    with m.graph():
        other = vpps.input(data)
        refused(vpps.ArgumentError, "two graphs", lambda: trainer.backward(build(data)[3], values=x))
        loss = build(data)[3]
        mixed = vpps.current().nodes([other.id, loss.id])
        refused(vpps.ArgumentError, "several shapes", lambda: trainer.backward(loss, values=mixed), lambda: trainer.forward(mixed))


def test_gradients_that_are_not_there(rng):
    net = Small().train()
    refused(vpps.StateError, "", net.trainer.update, lambda: net.W.gradient)
    with net.graph:
        net.trainer.backward(net.loss(net.draw(rng)))
    net.trainer.read_gradients()
    refused(vpps.ArgumentError, "a gradient of shape", lambda: net.W.set_gradient(np.ones(3)))
    net.trainer.zero_gradients()
    refused(vpps.StateError, "", net.trainer.update)


def test_learning_rate(rng):
    net = Small(lr=0.0).train()
    before = net.values()
    net.step(net.draw(rng))
    np.testing.assert_array_equal(net.values(), before)
    net.trainer.lr = 0.25
    assert net.trainer.lr == 0.25
    net.step(net.draw(rng))
    assert (net.values() != before).any()
    with pytest.raises(vpps.ArgumentError):
        net.trainer.lr = -1.0
    assert net.trainer.lr == 0.25


def test_groups_of_parameters(rng):
    net = Small(optimizer="momentum", lr=0.1).train()
    net.trainer.set_param_group([net.W, net.U], lr=0.0)
    net.trainer.set_momentum(0.5)
    net.trainer.set_weight_decay(0.01)
    w, c = net.W.value, net.C.value
    net.step(net.draw(rng))
    np.testing.assert_array_equal(net.W.value, w)
    assert (net.C.value != c).any()
    net.trainer.set_param_group([net.W])
    net.step(net.draw(rng))
    assert (net.W.value != w).any()
    refused(vpps.ArgumentError, "", lambda: net.trainer.set_momentum(2.0), lambda: net.trainer.set_weight_decay(-1.0),
            lambda: net.trainer.set_param_group([net.W], lr=float("inf")), lambda: net.trainer.set_param_group([net.W], lr=math.nan))


def test_options():
    for wrong, error in [({"optimizer": "nadam"}, "expected one of adagrad, adam, adamw, momentum, sgd"),
                         ({"precision": "fp16"}, "precision: 'fp16'"), ({"policy": "x"}, "x"),
                         ({"lr": -1.0}, "learning rate|lr"), ({"momentum": 0.9}, "momentum: the optimizer is sgd, which has none; expected momentum$"),
                         ({"optimizer": "Momentum", "beta2": 0.9}, "beta2: .* expected adam or adamw"),
                         ({"optimizer": "sgd", "epsilon": 1e-6}, "epsilon: .* expected adagrad or adam or adamw")]:
        refused(vpps.ArgumentError, error, lambda: Small(**wrong).train())
    refused(vpps.DeviceError, "tpu: unknown", lambda: Small(device="tpu").train())
    refused(TypeError, "", lambda: Small(learning_rate=1.0).train())
    net = Small(vps=1, groups=1, optimizer="adamw", weight_decay=0.1, clip=1.0, gradients="accumulate", nonfinite="skip",
                caller="free", precision="bf16x3", policy="ratio", verify=True, seed=5).train()
    stats = net.trainer.stats()
    assert (stats.vps, stats.device, stats.precision, stats.caller_works) == (1, "cpu", "bf16x3", False)
    refused(vpps.StateError, "one already", lambda: vpps.Trainer(net.model))


def test_what_cannot_be_trained(rng):
    net = Small().train()
    with net.graph:
        refused(vpps.ShapeError, "scalar", lambda: net.trainer.step(vpps.input([1.0, 2.0])))
    other = Small()
    with other.graph:
        refused(vpps.ArgumentError, "another model", lambda: net.trainer.step(other.loss(other.draw(rng))))
    with net.graph:
        loss = net.loss(net.draw(rng))
    net.graph.clear()
    refused(vpps.StateError, "cleared", lambda: net.trainer.step(loss), lambda: net.trainer.forward(loss))
    net.trainer.close()
    with net.graph:
        refused(vpps.StateError, "closed", lambda: net.trainer.step(net.loss(net.draw(rng))))
    net.trainer.close()


def test_looking_inside(rng):
    lines = []
    net = Small(trace_events=10000, device="auto", log=lines.append).train()
    assert any("cpu" in line for line in lines)
    batch = net.draw(rng)
    with net.graph:
        with net.trainer.trace("build"):
            loss = net.loss(batch)
        assert "cross_entropy" in net.trainer.disassemble(loss) or "turn" in net.trainer.disassemble(loss)
        cost = net.graph.cost()
        net.trainer.step(loss)
    assert cost.nodes > 10 and cost.product_flops > 1000
    events = json.loads(net.trainer.trace_json())["traceEvents"]
    assert any(e.get("name") == "build" for e in events)
    stats = net.trainer.stats()
    assert stats.nodes == cost.nodes and stats.policy == "share" and stats.gradients == "kernel"
    trials, done = net.trainer.trials()
    assert isinstance(trials, list) and isinstance(done, bool)
    refused(vpps.StateError, "", lambda: Small().train().trainer.trace_json())


@pytest.mark.parametrize("caller", ["works", "free"])
def test_on_step_is_told_of_each_batch_once(tmp_path, rng, caller):
    """on_step gets each batch's number and its own loss and learning rate, whether the batch still runs when step returns or not."""
    told, losses = [], []
    net = Small(on_step=lambda n, values: told.append((n, values["loss"], values["lr"])), lr=0.5, caller=caller).train()
    batches = [net.draw(rng) for _ in range(8)]
    twin = Small(lr=0.5).train()
    for i, b in enumerate(batches):
        rate = 0.5 if i < 3 else 0.25
        twin.trainer.lr = net.trainer.lr = rate
        twin.step(b)
        losses.append((i + 1, twin.trainer.loss(), rate))
        if i == 5:
            with net.graph:
                net.trainer.backward(net.loss(b))
                net.trainer.update()
        else:
            net.step(b)
        assert told[:i] == losses[:i] and len(told) in (i, i + 1)
    net.trainer.loss()
    net.trainer.loss()
    assert told == losses
    net.trainer.save(tmp_path / "a")
    net.trainer.load(tmp_path / "a")
    net.step(batches[0])
    net.trainer.loss()
    assert [n for n, _, _ in told] == list(range(1, 10))


@pytest.mark.parametrize(("name", "parts"), [("glue_fb", False), ("vpps_sync_latest_loss", False), ("vpps_poll_loss", False),
                                             ("vpps_backward", True), ("glue_update", True), ("vpps_poll_loss", True)])
def test_on_step_is_told_of_batches_in_spite_of_ctrl_c(rng, monkeypatch, name, parts):
    told, losses = [], []
    net, twin = Small(on_step=lambda n, values: told.append((n, values["loss"], values["lr"]))).train(), Small().train()

    def step(of, batch):
        with of.graph:
            loss = of.loss(batch)
            if parts:
                of.trainer.backward(loss)
                of.trainer.update()
            else:
                of.trainer.step(loss)
            of.trainer.poll_loss()

    for i in range(6):
        batch = net.draw(rng)
        net.trainer.lr = twin.trainer.lr = 0.1 / (i + 1)
        if i in (0, 2, 3):
            with monkeypatch.context() as m:
                m.setattr(vpps.trainer, "lib", Interrupting(vpps.trainer.lib, name))
                try:
                    step(net, batch)
                    net.trainer.loss()
                except KeyboardInterrupt:
                    pass
        else:
            step(net, batch)
        if name == "vpps_backward" and i in (0, 2, 3):  # the gradients were computed, but the update was interrupted
            net.trainer.update()
        step(twin, batch)
        losses.append((i + 1, twin.trainer.loss(), 0.1 / (i + 1)))
    net.trainer.loss()
    assert told == losses
    np.testing.assert_array_equal(net.values(), twin.values())


def test_ctrl_c_while_a_trainer_is_made_leaves_none(rng, monkeypatch):
    """An interrupted constructor frees what it made: else a trainer that nothing refers to would keep the model from taking another."""
    net = Small()
    for make in (net.train, lambda: vpps.Inference(net.trainer)):
        for _ in range(2):
            with monkeypatch.context() as m:
                m.setattr(vpps.trainer, "lib", Interrupting(vpps.trainer.lib, "glue_user_create"))
                refused(KeyboardInterrupt, "", make)
        net.trainer = None
        net.train()
    net.step(net.draw(rng))
    assert np.isfinite(net.trainer.loss())


def test_a_second_trainer_counts_on(rng):
    told = []
    net = Small().train()
    net.step(net.draw(rng))
    net.trainer.close()
    net.trainer = vpps.Trainer(net.model, on_step=lambda n, _: told.append(n))
    for _ in range(2):
        net.step(net.draw(rng))
    net.trainer.loss()
    assert told == [2, 3] and net.trainer.stats().batches == 3


def test_on_step_is_told_of_losses_that_are_not_finite(rng):
    told = []
    net = Small(on_step=lambda n, values: told.append((n, math.isfinite(values["loss"]))), nonfinite="skip").train()
    for factor in (1.0, math.inf, 1.0):
        with net.graph:
            net.trainer.step(net.loss(net.draw(rng)) * factor)
    net.trainer.loss()
    assert told == [(1, True), (2, False), (3, True)] and net.trainer.stats().skipped == 1


def test_metrics(tmp_path, rng):
    from vpps.metrics import read_csv

    with vpps.Metrics(tmp_path / "run", every=2, tensorboard=False) as metrics:
        net = Small(on_step=metrics, lr=0.5).train()
        for _ in range(6):
            net.step(net.draw(rng))
        net.trainer.loss()
        assert [r["step"] for r in read_csv(metrics.path)] == [2, 4, 6]  # written at once, since a run may be killed
        metrics(8, {"loss": 1.0, "other": 2.0})

    rows = list(read_csv(tmp_path / "run/metrics.csv"))
    assert [r["step"] for r in rows] == [2, 4, 6, 8]
    assert all(r["lr"] == 0.5 and r["loss"] > 0 for r in rows[:-1]) and "other" not in rows[-1]
    with vpps.Metrics(tmp_path / "run", tensorboard=False) as metrics:
        metrics(10, {"loss": 3.0})
    assert len(list(read_csv(tmp_path / "run/metrics.csv"))) == 5
    assert list(vpps.progress(range(3), disable=True)) == [0, 1, 2]


@pytest.mark.packages
def test_tensorboard(tmp_path):
    pytest.importorskip("tensorboardX")
    with vpps.Metrics(tmp_path, tensorboard=True) as metrics:
        metrics(1, {"loss": 0.5})
    events = list(tmp_path.glob("events.out.tfevents.*"))
    assert len(events) == 1 and b"loss" in events[0].read_bytes()


def test_names_of_other_frameworks_are_told(rng):
    net = Small(optimizer="Adam", precision="FP32").train()
    net.step(net.draw(rng))
    with net.graph:
        node = net.b.node()
        for owner, name, told in [
            (net.W, "grad", r"p.gradient has it after trainer.backward\(loss\) and trainer.read_gradients"), (net.E, "requires_grad", "p.frozen"),
            (net.b, "data", "p.value"), (node, "grad", "gradients=node"), (node, "item", r"trainer.value\(node\)"),
            (node, "backward", "trainer.step"), (net.trainer, "zero_grad", "zero_gradients"), (net.trainer, "learning_rate", "lr is"),
            (net.model, "eval", "no dropout"), (net.model, "to", r"vpps.Trainer\(model, device"), (vpps.Inference(net.trainer), "eval", "dropout"),
        ]:
            refused(AttributeError, f"{type(owner).__name__}.{name}: not here; .*{told}", lambda: getattr(owner, name))
            with pytest.raises(AttributeError):  # refused, since silently nothing would happen
                setattr(owner, name, 0)
        for owner in (net.W, node, net.trainer, net.model):
            refused(AttributeError, "no attribute 'nonsense'", lambda: owner.nonsense)
    for call, told in [(lambda: Small(optimizer="adem").train(), "'adem'; expected one of adagrad, .*. Did you mean 'adam'?"),
                       (lambda: Small(optimizer=None).train(), "None; expected one of"),
                       (lambda: Small(gradients="acumulate").train(), "Did you mean 'accumulate'?"),
                       (lambda: vpps.data.Constituents("cuts"), "form: 'cuts'; expected one of cut, raw, whole. Did you mean 'cut'?"),
                       (lambda: vpps.data.Constituents().binarise(vpps.data.Treebank(), vpps.data.Vocab(), "rihgt"), "Did you mean 'right'?"),
                       (lambda: vpps.data.Bleu().score("add"), "smoothing: 'add'; expected one of exp, none")]:
        refused(vpps.ArgumentError, told, call)
    refused(vpps.StateError, r"expected that to be ended before, .*by close\(\) of the other trainer", lambda: vpps.Trainer(net.model))


def test_statistics_are_readable(rng):
    net = Small().train()
    net.step(net.draw(rng))
    net.trainer.loss()
    stats = net.trainer.stats()
    lines = repr(stats).splitlines()
    assert lines[:2] == ["Stats", "  batches           1"] and len(lines) == 1 + len(stats.__dataclass_fields__)
    told = dict(line.split(None, 1) for line in lines[1:])
    assert told["device"] == "cpu" and told["host_ns"] == f"{stats.host_ns / 1e6:,.3f} ms"
    assert told["pool_bytes"] == f"{stats.pool_bytes / 1024:,.1f} KiB"
