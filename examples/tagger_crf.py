#!/usr/bin/env python3
"""A bidirectional LSTM tagger with a conditional random field (Huang, Xu and Yu 2015; Lafferty, McCallum and Pereira 2001).

    python3 tagger_crf.py [--train FILE --dev FILE] [--epochs N]

Files have lines of word|TAG tokens. Without files it learns a small generated language with names in it; after 6 epochs, some seconds,
it finds the names in 200 new sentences with an F1 of 0.9 and more.

The field's loss is the log of the sum over all taggings, less the score of the right one. With the transition scores T and emission
scores e_t, the forward algorithm is a_t = e_t + log(exp(T) exp(a_(t-1))). Its cell keeps p = softmax(a) and z = log sum exp(a) apart,
so that nothing overflows however long the sentence is: a_t = e_t + z + log(exp(T) p).
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

import vpps
from vpps.data import F1, Sentence, Sentences, generate_language

U32 = NDArray[np.uint32]


class Tagger:
    def __init__(self, model: vpps.Model, words: int, tags: int, embed: int, hidden: int) -> None:
        self.tags = tags
        E = model.add_lookup("embedding", words, embed, init=vpps.uniform(-0.05, 0.05))
        self.T = model.add_lookup("transitions", 1, tags, tags, init=0.0)  # T[i, j]: tag i after tag j
        one_hot = model.add_lookup("one_hot", tags, tags, init=np.eye(tags))
        one_hot.frozen = True
        W_s, b_s = model.add_matrix("W_s", tags, 2 * hidden), model.add_vector("b_s", tags)

        self.forth, self.back = (vpps.nn.LSTM(model, E, hidden, suffix=f"_l0{s}") for s in ("", "_reverse"))

        @model.cell
        def emit(c: vpps.Recorder) -> None:
            scores = W_s @ vpps.concat([c.gather(0, 0, hidden), c.gather(1, 0, hidden)]) + b_s
            c.scatter(scores, one_hot[c.pull_index()])
            c.push(scores)

        def normalised(c: vpps.Recorder, a: vpps.Node, right: vpps.Node) -> None:
            log_p = vpps.log_softmax(a)
            z = a[0] - log_p[0]
            c.scatter(vpps.exp(log_p), z, right)
            c.push(z - right)

        @model.cell
        def first(c: vpps.Recorder) -> None:  # child 0: emission and tag
            e, tag = c.gather(0, 0, tags), c.gather(0, 1, tags)
            normalised(c, e, vpps.dot(e, tag))

        @model.cell
        def then(c: vpps.Recorder) -> None:  # child 0: the preceding field; child 1: emission and tag; child 2: those before
            p, z, right = c.gather(0, 0, tags), c.gather(0, 1, 1), c.gather(0, 2, 1)
            e, tag, before = c.gather(1, 0, tags), c.gather(1, 1, tags), c.gather(2, 1, tags)
            T = self.T[0]
            sums = vpps.log(vpps.exp(T) @ p)
            spread = vpps.constant(1.0, tags)
            normalised(c, e + sums + spread * z, right + vpps.dot(e + T @ before, tag))

        self.emit, self.first, self.then = emit, first, then

    def emissions(self, g: vpps.Graph, sentences: list[Sentence]) -> tuple[vpps.Vertices, U32, U32]:
        """A vertex for each word of all sentences; where sentences begin, and end."""
        words = np.concatenate([s.words for s in sentences])
        tags = np.concatenate([s.tags if s.tags is not None else np.zeros(len(s.words), np.uint32) for s in sentences])
        begin = np.cumsum([0] + [len(s.words) for s in sentences])[:-1].astype(np.uint32)
        end = np.append(begin[1:], np.uint32(len(words))) - np.uint32(1)

        lengths = end - begin + np.uint32(1)
        both = [vpps.nn.chain(layer, words, lengths, reverse=reverse).ids for layer, reverse in ((self.forth, False), (self.back, True))]
        return g.apply(self.emit, children=np.stack(both, 1), indices=tags), begin, end

    def loss(self, g: vpps.Graph, sentences: list[Sentence]) -> vpps.Node:
        """-log of the probability of the right tags, the mean of the sentences."""
        emitted, begin, end = self.emissions(g, sentences)
        at = np.empty(len(emitted), np.uint32)
        at[begin] = g.apply(self.first, children=emitted[begin]).ids
        later = np.setdiff1d(np.arange(len(emitted)), begin)
        at[later] = g.next_vertex + np.arange(len(later), dtype=np.uint32)
        g.apply(self.then, children=np.stack([at[later - 1], emitted.ids[later], emitted.ids[later - 1]], 1))
        return vpps.average(g.vertices(at[end]).pushed(0))

    def tag(self, g: vpps.Graph, trainer: vpps.Trainer, sentences: list[Sentence]) -> list[list[int]]:
        """The likeliest tags, by Viterbi's algorithm."""
        with g:
            emitted, begin, end = self.emissions(g, sentences)
            scores = trainer.forward(emitted.pushed(0))
        T, tagged = self.T.value[0], []
        for b, e in zip(begin, end):
            a, back = scores[b], []
            for t in range(b + 1, e + 1):
                paths = T + a
                back.append(paths.argmax(1))
                a = paths.max(1) + scores[t]
            tags = [int(a.argmax())]
            for pointers in reversed(back):
                tags.append(int(pointers[tags[-1]]))
            tagged.append(tags[::-1])
        return tagged


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else None)
    parser.add_argument("--train", metavar="FILE")
    parser.add_argument("--dev", metavar="FILE")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--sentences", type=int, default=1600, help="generated")
    o = parser.parse_args(arguments)

    data = Sentences().read_tagged(o.train) if o.train else generate_language(o.sentences, seed=1, tags=True)
    dev_data = Sentences().read_tagged(o.dev) if o.dev else generate_language(200, seed=2, tags=True)
    words = data.vocab.cut(data.counts(), 2)

    def known(of: Sentences) -> list[Sentence]:  # rare words are <unk>, so that names are told by what stands around them
        word, tag = of.vocab.map(words), of.tag_vocab.map(data.tag_vocab)
        return [Sentence(word[s.words], tag[s.tags]) for s in of if s.tags is not None and len(s.words)]

    train, dev = known(data), known(dev_data)
    model = vpps.Model(seed=1)
    net = Tagger(model, len(words), len(data.tag_vocab), 32, 32)
    trainer = vpps.Trainer(model, optimizer="adam", lr=0.01)
    graph, rng, reached = model.graph(), np.random.default_rng(1), 0.0
    for epoch in range(1, o.epochs + 1):
        order = rng.permutation(len(train))
        for k in vpps.progress(range(0, len(order), o.batch), leave=False, disable=None):
            with graph:
                trainer.step(net.loss(graph, [train[i] for i in order[k:k + o.batch]]))
        score = F1(data.tag_vocab)
        for s, tags in zip(dev, net.tag(graph, trainer, dev)):
            if s.tags is not None:
                score.add(s.tags, tags)
        reached = score.counts().f1
        print(f"epoch {epoch}  loss of the last batch {trainer.loss():.3f}  F1 {reached:.3f}")
    return reached


if __name__ == "__main__":
    main()
