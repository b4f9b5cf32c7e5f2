"""Trains with two or three features at once, drawn by a seed. Each must do what it does alone; and a run that is saved, and goes on with another
model and trainer, must end with the same bits."""

import os
import random

import numpy as np
import pytest
from small import HIDDEN, Small

STEPS = 6
DRAWS = 200 if os.environ.get("VPPS_TEST_SCALE") == "full" else 24

# Options of a trainer, and names of what a run does besides (see Run). HOW leave the trained parameters as they are, SHAPES change them.
HOW = [{"vps": 1}, {"vps": 3}, {"waves": 2}, {"slices": 2}, {"policy": "depth"}, {"verify": True}, {"portable": True}, {"caller": "free"},
       {"no_tuning": True}, {"trace_events": 1000}, {"keep_bytes": 8192}, "keep", "infer", "halves", "read", "metrics"]
SHAPES = [{"optimizer": "momentum"}, {"optimizer": "adagrad"}, {"optimizer": "adam"}, {"optimizer": "adamw"}, {"clip": 0.02},
          {"weight_decay": 0.1}, {"lr": 0.3}, {"precision": "bf16"}, "freeze", "group", "schedule", "every other"]


class Run:
    def __init__(self, features):
        self.features = features
        options = {"vps": 2, "lr": 0.1}
        for f in features:
            options.update(f if isinstance(f, dict) else {})
        self.steps = []
        if "metrics" in features:
            options["on_step"] = lambda number, metrics: self.steps.append(number)
        self.s = Small(seed=3, **options)
        if "freeze" in features:
            self.s.E.frozen = True
        self.s.train()
        if "group" in features:
            self.s.trainer.set_param_group([self.s.C, self.s.E], lr=0.5)

    def step(self, k, batch):
        s, has = self.s, self.features.__contains__
        if has("schedule"):
            s.trainer.lr = 0.1 / (k + 1)
        if has("keep"):
            with s.graph, s.trainer.keep_data(np.ones(HIDDEN, np.float32)) as state:
                s.trainer.forward(s.turn(s.graph.source(state.node(s.graph)), indices=[1]).scattered())
        if has("infer"):
            with s.graph:
                assert np.isfinite(s.trainer.value(s.loss(batch)))
        for part in (batch[:2], batch[2:]) if has("halves") else (batch,):
            with s.graph:
                loss = s.loss(part) * (len(part) / len(batch))
                if has("halves") or has("every other"):
                    s.trainer.backward(loss)
                else:
                    s.trainer.step(loss)
        if has("every other") and k % 2 == 0:
            return
        if has("read"):
            s.trainer.read_parameters()
        if has("halves") or has("every other"):
            s.trainer.update()

    def values(self):
        self.s.trainer.sync_latest_loss()
        self.s.trainer.read_parameters()
        if "metrics" in self.features:
            assert self.steps == sorted(set(self.steps)) and self.steps
        return self.s.values()

    def close(self):
        self.s.trainer.close()


def train(features, batches, stop=None, path=None):
    run = Run(features)
    for k, batch in enumerate(batches):
        if k == stop:
            run.s.trainer.save(path)
            run.close()
            run = Run(features)
            run.s.trainer.load(path)
        run.step(k, batch)
    values = run.values()
    run.close()
    return values


def names(features):
    return [name for f in features for name in (f if isinstance(f, dict) else [f])]


@pytest.mark.parametrize("seed", range(DRAWS))
def test_features_at_once(seed, tmp_path):
    draw = random.Random(seed)
    features = draw.sample(HOW, draw.choice((0, 1, 2))) + draw.sample(SHAPES, draw.choice((1, 2)))
    if len(set(names(features))) < len(names(features)) or {"schedule", "lr"} <= set(names(features)):
        features = features[:1]
    rng = np.random.default_rng(seed)
    batches = [Small().draw(rng) for _ in range(STEPS)]
    together = train(features, batches)
    assert np.isfinite(together).all()
    for feature in features:
        without = train([f for f in features if f is not feature], batches)
        if feature in HOW:
            near = 0.02 if {"precision": "bf16"} in features else 1e-3
            np.testing.assert_allclose(together, without, atol=near, err_msg=f"{feature} of {features}")
        else:
            assert (together != without).any(), f"{feature} of {features} changes nothing"
    stop = 2 * draw.randrange(1, STEPS // 2)  # an even step: gradients that wait for an update are not saved
    np.testing.assert_array_equal(train(features, batches, stop, tmp_path / "part.st"), together, f"{features}, stopped after {stop}")
