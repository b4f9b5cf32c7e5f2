#!/usr/bin/env python3
"""A greedy transition parser with BiLSTM features (Kiperwasser and Goldberg 2016) for dependency trees.

    python3 transition_parser.py [--data FOLDER] [--epochs N] [--sentences N]

FOLDER has gum.train.conllu, gum.dev.conllu and gum.test.conllu, as bench/recipes/dependencies.sh describes them; the default is gum/
in the folder that VPPS_DATA names. The corpus' parts of speech are given. After 6 epochs, seven minutes on two cores that do other work as
well, 87.7 % of the test part's words have the right head (UAS), 85.8 % its relation, too (LAS), punctuation among them. The paper's
parser by its authors, with a dynamic oracle, more features and pretrained vectors, has 94.7 % UAS on the Penn Treebank, which has five times
as many words (github.com/elikip/bist-parser).

A state is a stack, which begins with the root, and a buffer of words. The arc-hybrid system moves: SHIFT takes the buffer's first word to
the stack; LEFT and RIGHT take the stack's top away, as a dependent of the buffer's first word, or of the word below it. One MLP over the
BiLSTM's vectors of four words, the top three of the stack and the first of the buffer, scores all moves and relations. It learns the
moves of a static oracle, from projective trees: all states of a batch are vertices of one graph. Sentences are parsed together, though
every one decides for itself: a round computes the scores of all sentences' states at once.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np
from numpy.typing import NDArray

import vpps
from vpps.data import Sentences

SHIFT, LEFT, RIGHT = 0, 1, 2
NOTHING = -1  # where a stack or a buffer has no such word


class Tree:
    """A sentence. Word 0 is the root."""

    def __init__(self, words: list[int], tags: list[int], heads: list[int], relations: list[int]) -> None:
        self.words, self.tags, self.heads, self.relations = words, tags, heads, relations

    def __len__(self) -> int:
        return len(self.words)


class State:
    """Of a sentence that is parsed."""

    def __init__(self, n: int) -> None:
        self.stack, self.next, self.n = [0], 1, n
        self.heads, self.relations = [0] * n, [0] * n

    def places(self) -> list[int]:
        top = self.stack[:-4:-1]
        return top + [NOTHING] * (3 - len(top)) + [self.next if self.next < self.n else NOTHING]

    def allowed(self) -> tuple[bool, bool, bool]:
        more = self.next < self.n
        return more, more and len(self.stack) > 1, len(self.stack) > 1

    def move(self, move: int, relation: int) -> None:
        if move == SHIFT:
            self.stack.append(self.next)
            self.next += 1
        else:
            word = self.stack.pop()
            self.heads[word] = self.next if move == LEFT else self.stack[-1]
            self.relations[word] = relation

    @property
    def done(self) -> bool:
        return self.next == self.n and len(self.stack) == 1


def oracle(tree: Tree) -> list[tuple[list[int], int, int]] | None:
    """The states' words, moves and relations that build the tree; None: it is not projective."""
    state, steps = State(len(tree)), []
    left = [tree.heads[1:].count(k) for k in range(len(tree))]  # dependents that a word has not got yet
    while not state.done:
        word = state.stack[-1]
        _, to_left, to_right = state.allowed()
        if to_left and tree.heads[word] == state.next:
            move = LEFT
        elif to_right and tree.heads[word] == state.stack[-2] and not left[word]:
            move = RIGHT
        elif state.next < state.n:
            move = SHIFT
        else:
            return None
        steps.append((state.places(), move, 0 if move == SHIFT else tree.relations[word]))
        left[tree.heads[word]] -= move != SHIFT
        state.move(move, tree.relations[word])
    return steps if state.heads[1:] == tree.heads[1:] else None


class Parser:
    def __init__(self, model: vpps.Model, words: int, tags: int, relations: int, embed: int = 100, hidden: int = 128) -> None:
        self.hidden, self.relations, nn = hidden, relations, vpps.nn
        E, T = model.add_lookup("word", words, embed), model.add_lookup("tag", tags, 25)
        self.unknown = model.add_lookup("nothing", 1, 2 * hidden)
        mlp = nn.MLP(model, [8 * hidden, 128, 1 + 2 * relations], "mlp", activation=vpps.tanh)

        @model.cell
        def word(c: vpps.Recorder) -> None:
            c.scatter(vpps.concat([E[c.pull_index()], T[c.pull_index()]]))

        self.word = word
        self.layers = [[nn.LSTM(model, embed + 25 if k == 0 else (hidden, hidden), hidden, suffix=f"_l{k}{way}")
                        for way in ("", "_reverse")] for k in range(2)]

        @model.cell
        def join(c: vpps.Recorder) -> None:
            both = vpps.concat([c.gather(0, 0, hidden), c.gather(1, 0, hidden)])
            c.scatter(vpps.dropout(both, 0.3))

        @model.cell
        def decide(c: vpps.Recorder) -> None:
            scores = mlp(vpps.concat([c.pull(2 * hidden) for _ in range(4)]))
            c.push(scores, vpps.cross_entropy(scores, c.pull_index()))

        self.join, self.decide = join, decide

    def vectors(self, g: vpps.Graph, trees: list[Tree], words: list[list[int]]) -> vpps.Nodes:
        """Of the words of all sentences, one after the other."""
        lengths = [len(t) for t in trees]
        given = np.stack([np.concatenate(words), np.concatenate([t.tags for t in trees])], 1)
        x: object = g.apply(self.word, indices=given)
        for forth, back in self.layers:
            both = [vpps.nn.chain(layer, x, lengths, reverse=layer is back) for layer in (forth, back)]
            x = tuple(both)
        return g.apply(self.join, children=np.stack([v.ids for v in both], 1)).scattered(0)

    def number(self, move: int, relation: int) -> int:
        return 0 if move == SHIFT else 1 + (move - 1) * self.relations + relation

    def loss(self, g: vpps.Graph, trees: list[Tree], words: list[list[int]], steps: list[list[tuple[list[int], int, int]]]) -> vpps.Node:
        """The mean of the losses of all moves."""
        vectors, nothing = self.vectors(g, trees, words), self.unknown[0].id
        first = np.cumsum([0] + [len(t) for t in trees])
        at = np.concatenate([np.where(np.array(p) == NOTHING, NOTHING, f + np.array(p)) for f, some in zip(first, steps) for p in [[s[0] for s in some]]])
        pulls = np.where(at == NOTHING, nothing, vectors.ids[at]).astype(np.uint32)
        moves = [self.number(move, relation) for some in steps for _, move, relation in some]
        return vpps.average(g.apply(self.decide, pulls=pulls, indices=moves).pushed(1))

    def parse(self, g: vpps.Graph, trainer: vpps.Trainer, trees: list[Tree]) -> list[State]:
        with g:
            vectors = trainer.forward(self.vectors(g, trees, [t.words for t in trees]))
        vectors = np.concatenate([vectors, self.unknown.value])  # the last one: nothing
        first, states = np.cumsum([0] + [len(t) for t in trees]), [State(len(t)) for t in trees]
        while open_ones := [(f, s) for f, s in zip(first, states) if not s.done]:
            at = np.array([[len(vectors) - 1 if p == NOTHING else f + p for p in s.places()] for f, s in open_ones])
            with g:
                pulls = g.inputs(vectors[at].reshape(-1, vectors.shape[1])).ids.reshape(at.shape)
                scores = trainer.forward(g.apply(self.decide, pulls=pulls, indices=np.zeros(len(at), int)).pushed(0))
            may = np.array([s.allowed() for _, s in open_ones])
            scores[~np.repeat(may, [1, self.relations, self.relations], axis=1)] = -np.inf
            for (_, s), best in zip(open_ones, scores.argmax(1).tolist()):
                move, relation = divmod(best - 1, self.relations)
                s.move(move + 1, relation)
        return states

    def score(self, g: vpps.Graph, trainer: vpps.Trainer, trees: list[Tree]) -> tuple[float, float]:
        """The share of words with the right head; with the right head and relation."""
        n = heads = both = 0
        for k in range(0, len(trees), 200):
            some = trees[k:k + 200]
            for tree, state in zip(some, self.parse(g, trainer, some)):
                for w in range(1, len(tree)):
                    n, right = n + 1, state.heads[w] == tree.heads[w]
                    heads, both = heads + right, both + (right and state.relations[w] == tree.relations[w])
        return heads / n, both / n


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else None)
    parser.add_argument("--data", metavar="FOLDER", default=os.path.join(os.environ.get("VPPS_DATA", "../shared/data"), "gum"))
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--sentences", type=int, default=None, help="the first so many of each part")
    o = parser.parse_args(arguments)

    parts = {}
    for part in ("train", "dev", "test"):
        path = os.path.join(o.data, f"gum.{part}.conllu")
        forms = Sentences().read_columns(path, word=2, tag=4, tabs=True, comments=True, conllu=True)
        parts[part] = forms, Sentences().read_dependencies(path, cut_subtypes=True)
    forms, deps = parts["train"]
    words, counts = forms.vocab.cut(forms.counts(), 2), forms.counts()
    rare = np.zeros(len(words) + 1)  # the chance that a word is taken for an unknown one
    known = forms.vocab.map(words)
    rare[known] = 0.25 / (0.25 + counts)
    root_word, root_tag = len(words), len(forms.tag_vocab)

    def trees_of(part: str) -> list[Tree]:
        of, tree_of = parts[part]
        word, tag, relation = of.vocab.map(words), of.tag_vocab.map(forms.tag_vocab), tree_of.tag_vocab.map(deps.tag_vocab)
        trees = []
        for i, (s, d) in enumerate(zip(of, tree_of)):
            heads = tree_of.heads(i)
            if heads is not None and s.tags is not None and d.tags is not None and (o.sentences is None or i < o.sentences):
                trees.append(Tree([root_word, *word[s.words]], [root_tag, *tag[s.tags]], [0, *heads.tolist()], [0, *relation[d.tags].tolist()]))
        return trees

    train = [(tree, steps) for tree in trees_of("train") if (steps := oracle(tree))]
    dev, test = trees_of("dev"), trees_of("test")
    print(f"{len(train)} projective sentences, {sum(len(s) for _, s in train)} moves; {len(dev)} sentences of dev, {len(test)} of test")
    model = vpps.Model(seed=1)
    net = Parser(model, len(words) + 1, root_tag + 1, len(deps.tag_vocab), hidden=o.hidden)
    trainer, graph, rng = vpps.Trainer(model, optimizer="adam", lr=0.002, clip=5.0), model.graph(), np.random.default_rng(1)
    start, reached = time.monotonic(), (0.0, 0.0)
    for epoch in range(1, o.epochs + 1):
        order, total = rng.permutation(len(train)), 0.0
        for k in vpps.progress(range(0, len(order), o.batch), leave=False, disable=None):
            some = [train[i] for i in order[k:k + o.batch]]
            heard = [[0 if rng.random() < rare[w] else w for w in tree.words] for tree, _ in some]
            with graph:
                trainer.step(net.loss(graph, [t for t, _ in some], heard, [s for _, s in some]))
            total += trainer.loss() * len(some)
        trainer.read_parameters()
        trainer.lr *= 0.8
        reached = net.score(graph, trainer, dev)
        print(f"epoch {epoch}  loss {total / len(train):.3f}  dev UAS {reached[0]:.3f}  LAS {reached[1]:.3f}  {time.monotonic() - start:.0f} s", flush=True)
    print("test UAS {:.3f}  LAS {:.3f}".format(*net.score(graph, trainer, test)))
    return reached[0]


if __name__ == "__main__":
    main()
