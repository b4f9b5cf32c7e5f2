"""Tests a training step in two halves: Trainer.step_forward and Step.backward."""

import gc

import numpy as np
import pytest
from small import CLASSES, Small, refused

import vpps


@pytest.fixture
def nets():
    return [Small(vps=2, optimizer="momentum", verify=True).train() for _ in range(2)]


@pytest.fixture
def batch(nets, rng):
    return nets[0].draw(rng)


def opened(net, batch, **named):
    """Returns the first half of a step that computes the scores of the batch."""
    with net.graph:
        net.loss(batch)
        scores = net.graph.vertices([h.id for h in net.heads]).pushed(1)
        return net.trainer.step_forward(scores, **named)


def test_gradients_are_those_of_backward(nets, batch, rng):
    for turn in range(3):
        slope = rng.standard_normal((len(batch), CLASSES)).astype(np.float32)
        with opened(nets[0], batch) as step:
            values = step.values
            assert values.shape == slope.shape
            assert step.backward(slope) is None
        with nets[1].graph:
            nets[1].loss(batch)
            scores = [h.pushed(1) for h in nets[1].heads]
            loss = vpps.sum([vpps.dot(s, vpps.input(d)) for s, d in zip(scores, slope)])
            np.testing.assert_allclose(values, nets[1].trainer.backward(loss, values=scores).values, rtol=1e-5)
        if turn:
            for net in nets:
                net.trainer.update()
    np.testing.assert_allclose(nets[0].values(), nets[1].values(), rtol=1e-4, atol=1e-6)
    assert nets[0].trainer.stats().batches == 2


def test_shapes_and_what_comes_back(nets):
    net = nets[0]
    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    for parameters in (True, False):
        with net.graph:
            g = net.graph
            a, b = vpps.input(x), vpps.input(x[:, 0])
            y, z = vpps.tanh(net.W @ a), vpps.sum_elements(vpps.square(b))
            step = net.trainer.step_forward([y, z, z, a], gradients=[a, b, vpps.ones(2)], parameters=parameters)
        assert [v.shape for v in step.values] == [(7, 2), (), (), (5, 2)]
        dy = np.ones((7, 2))
        da, db, none = step.backward([dy, 2.0, None, x])
        np.testing.assert_allclose(da, net.W.value.T @ (1 - step.values[0] ** 2) + x, rtol=1e-4)
        np.testing.assert_allclose(db, 2 * 2 * x[:, 0])
        assert none.tolist() == [0, 0]
        if parameters:
            net.trainer.zero_gradients()
        else:
            refused(vpps.StateError, "no gradients", net.trainer.update)
        with net.graph:  # a step of one node alone, and of matrices that have one shape
            a = vpps.input(x)
            with net.trainer.step_forward(vpps.dropout(a, 0.5), gradients=a, parameters=False, dropout=False) as step:
                assert (step.values == x).all() and (step.backward(x) == x).all()
            loss = vpps.sum_elements(vpps.dropout(a, 0.5))
            assert (net.trainer.backward(loss, gradients=a, parameters=False, dropout=False).gradients == 1).all()
            with net.trainer.step_forward(a * 3.0, gradients=a, parameters=False) as step:
                assert (step.backward(x) == 3 * x).all()
            many = g.inputs(np.stack([x, 2 * x]))
            with net.trainer.step_forward(many, gradients=many, parameters=False) as step:
                assert (step.values == np.stack([x, 2 * x])).all()
                assert (step.backward(np.stack([x, 5 * x])) == np.stack([x, 5 * x])).all()


def test_one_step_is_open_at_a_time(nets, batch):
    net = nets[0]
    kept, held = net.trainer.keep_data([1.0]), net.trainer.keep_data([2.0])
    step = opened(net, batch)
    refused(vpps.StateError, "step 1 .*open", lambda: opened(net, batch), net.trainer.update)
    with pytest.raises(vpps.StateError, match="step 1 .*open"), held:
        assert True
    del kept  # gives the memory of a finished step back
    for wrong, message in (([1.0], "shape"), (np.zeros((len(batch), CLASSES + 1)), "shape"), ("x", "gradients")):
        refused((vpps.ArgumentError, TypeError), message, lambda: step.backward(wrong))
    step.drop()
    step.drop()
    assert held.numpy() == 2.0  # the refused release has left it
    held.release()
    refused(vpps.StateError, "closed", lambda: step.backward(np.zeros((len(batch), CLASSES))))
    with pytest.raises(KeyError), opened(net, batch):
        raise KeyError  # the error gives the step up
    step = opened(net, batch)
    del step  # as does the end of the last reference to it
    gc.collect()
    net.step(batch)
    assert net.trainer.stats().kept_values == 0
    refused(vpps.ArgumentError, "no nodes", lambda: net.trainer.step_forward([]))
    with opened(net, batch) as step:
        net.trainer.close()
    refused(vpps.StateError, "closed", lambda: step.backward(np.zeros((len(batch), CLASSES))))
