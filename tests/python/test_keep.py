"""Tests values that stay on the device, and inference next to a trainer."""

import gc
import threading

import numpy as np
import pytest
from small import HIDDEN, Interrupting, Small, refused

import vpps


def state_after(s, start, words):
    v = s.graph.source(start)
    for w in words:
        v = s.turn(v, indices=[w])
    return v.scattered()


def test_a_kept_state_goes_on():
    s = Small(verify=True).train()
    words = [3, 1, 4, 1, 5, 9]
    with s.graph:
        whole = s.trainer.forward(state_after(s, s.graph.zeros(HIDDEN), words))
    kept = s.trainer.keep_data(np.zeros(HIDDEN, np.float32))
    assert kept.shape == (HIDDEN, 1)
    for first in range(0, 6, 2):
        with s.graph:
            following = s.trainer.keep(state_after(s, kept.node(s.graph), words[first:first + 2]))
            s.trainer.run(s.graph)
        kept.release()
        kept = following
    np.testing.assert_allclose(kept.numpy(), whole, atol=1e-6)
    assert s.trainer.stats().kept_values == 1
    with s.graph:
        trained = s.trainer.keep(state_after(s, s.graph.zeros(HIDDEN), words))
        s.trainer.step(s.loss([([1, 2], 1)]))
    np.testing.assert_allclose(trained.numpy(), whole, atol=1e-6)
    trained.release()
    with kept:
        pass
    assert s.trainer.stats().kept_bytes == 0


def test_ctrl_c_leaves_no_value_behind(monkeypatch):
    s = Small().train()
    with s.graph:
        node = s.graph.input([1.0, 2.0])
        for name, keep in (("vpps_keep", lambda: s.trainer.keep(node)), ("vpps_keep_data", lambda: s.trainer.keep_data([1.0]))):
            with monkeypatch.context() as m, pytest.raises(KeyboardInterrupt):
                m.setattr(vpps.engine, "lib", Interrupting(vpps.engine.lib, name))
                keep()
        gc.collect()
        s.trainer.forward(node)
    assert s.trainer.stats().kept_values == 0


def test_what_nothing_refers_to_is_given_back(rng):
    s = Small(keep_bytes=64 * 4).train()
    for _ in range(20):
        with s.graph:
            s.trainer.keep(state_after(s, s.graph.zeros(HIDDEN), [1, 2]))
            s.trainer.step(s.loss(s.draw(rng)))
    s.step(s.draw(rng))
    assert s.trainer.stats().kept_values == 0
    for _ in range(20):
        s.trainer.keep_data(np.ones(16, np.float32))
        gc.collect()
    assert s.trainer.stats().kept_values <= 1
    held = [s.trainer.keep_data(np.ones(16, np.float32)) for _ in range(4)]
    refused(vpps.PoolError, "4 kept values take 256 of 256 bytes", lambda: s.trainer.keep_data(1.0))
    assert len(held) == 4


def test_misuse():
    s = Small().train()
    kept = s.trainer.keep_data(np.ones(HIDDEN, np.float32))
    with s.graph:
        x = kept.node(s.graph)
        kept.release()
        refused(vpps.StateError, "was released", lambda: s.trainer.forward(vpps.tanh(x)))
    refused(vpps.StateError, "was released", kept.numpy)
    with s.graph:
        promised = s.trainer.keep(s.graph.zeros(3))
    refused(vpps.StateError, "no run", promised.numpy)
    other = s.trainer.keep_data(1.0)
    s.trainer.close()
    refused(vpps.StateError, "closed", other.numpy)


def test_inference_beside_a_trainer(rng):
    s = Small(optimizer="adam", lr=0.05, vps=1).train()
    batch = s.draw(rng)
    reader = vpps.Inference(s.trainer, vps=1)
    answers, done = [], threading.Event()

    def read():
        graph = s.model.graph()
        while True:
            last = done.is_set()
            with graph:
                answers.append(reader.value(s.loss(batch)))
            if last:
                return

    thread = threading.Thread(target=read)
    thread.start()
    truth = []
    for _ in range(20):
        with s.graph:
            loss = s.loss(batch)
            truth.append(s.trainer.value(loss))
            s.trainer.step(loss)
        s.trainer.publish_parameters()
    with s.graph:
        truth.append(s.trainer.value(s.loss(batch)))
    done.set()
    thread.join()
    assert set(answers) <= set(truth)
    assert answers[-1] == truth[-1] < truth[0]
    s.trainer.close()
    with s.graph:
        assert reader.value(s.loss(batch)) == truth[-1]
    reader.close()
    with s.graph, pytest.raises(vpps.StateError, match="the inference is closed"):
        reader.value(s.loss(batch))
