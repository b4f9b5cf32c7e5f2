"""Shared by tests: a small network, which classifies sequences by a recurrent cell; a library during whose calls Ctrl-C is pressed; and checks."""

import numpy as np
import pytest

import vpps

WORDS, DIM, HIDDEN, CLASSES = 11, 5, 7, 3


class Small:
    def __init__(self, seed=1, hidden=HIDDEN, **options):
        self.model = m = vpps.Model(seed)
        self.E = m.add_lookup("E", WORDS, DIM)
        self.W, self.U = m.add_matrix("W", hidden, DIM), m.add_matrix("U", hidden, hidden)
        self.b = m.add_vector("b", hidden)
        self.C, self.c = m.add_matrix("C", CLASSES, hidden), m.add_vector("c", CLASSES)

        @m.cell
        def start(c: vpps.Recorder) -> None:
            c.scatter(vpps.tanh(self.W @ self.E[c.pull_index()] + self.b))

        @m.cell
        def turn(c: vpps.Recorder) -> None:
            c.scatter(vpps.tanh(self.W @ self.E[c.pull_index()] + self.U @ c.gather(0, 0, hidden) + self.b))

        @m.cell
        def head(c: vpps.Recorder) -> None:
            scores = self.C @ c.gather(0, 0, hidden) + self.c
            c.push(vpps.cross_entropy(scores, c.pull_index()), scores)

        self.start, self.turn, self.head = start, turn, head
        self.graph = m.graph()
        self.trainer = None
        self.options = options

    def train(self):
        self.trainer = vpps.Trainer(self.model, **self.options)
        return self

    def draw(self, rng, n=4, longest=6):
        return [(rng.integers(WORDS, size=rng.integers(1, longest + 1)), int(rng.integers(CLASSES))) for _ in range(n)]

    def loss(self, batch):
        """Returns the mean loss of the batch, built on the current graph."""
        losses, self.heads = [], []
        for words, label in batch:
            v = self.start(indices=[int(words[0])])
            for w in words[1:]:
                v = self.turn(v, indices=[int(w)])
            self.heads.append(self.head(v, indices=[label]))
            losses.append(self.heads[-1].pushed())
        return vpps.average(losses)

    def step(self, batch):
        with self.graph:
            self.trainer.step(self.loss(batch))

    def values(self):
        return np.concatenate([p.value.reshape(-1) for p in self.model.parameters])


class Interrupting:
    """Stands for the library. Ctrl-C comes while its function `name` runs, so that KeyboardInterrupt is raised in place of the function's return."""

    def __init__(self, lib, name):
        self._lib, self._name = lib, name

    def __getattr__(self, name):
        function = getattr(self._lib, name)

        def call(*arguments):
            self._name = ""
            function(*arguments)
            raise KeyboardInterrupt

        return call if name == self._name else function


def refused(kind, text, *calls):
    """Checks that each call raises an exception of this kind, whose message has the text, a regular expression; "": any."""
    for call in calls:
        with pytest.raises(kind, match=text or None):
            call()
