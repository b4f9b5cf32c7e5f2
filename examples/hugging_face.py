#!/usr/bin/env python3
"""Rows of Hugging Face's `datasets` and ids of its `tokenizers` as inputs: a recurrent classifier of sentences.

    python3 hugging_face.py [--epochs N]

The rows are made here, in memory: reviews of a line, whose label is what they say. A tokenizer of byte pairs learns its pieces from them.
After 4 epochs, some seconds, at least 0.95 of 200 other reviews are told right. `datasets.load_dataset(...)` and
`tokenizers.Tokenizer.from_pretrained(...)` give rows and ids of the same form.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

import vpps

GOOD, BAD = "wonderful moving clever lovely gripping funny".split(), "dull tedious clumsy bland boring hollow".split()
THINGS, LINKS = "film story cast plot ending music".split(), "and but though while".split()
PIECES, DIM, HIDDEN, BATCH = 300, 24, 48, 32


def make_rows(n: int, seed: int) -> Dataset:
    rng, rows = np.random.default_rng(seed), []
    for _ in range(n):
        label = int(rng.integers(2))
        parts = []
        for k in range(int(rng.integers(1, 4))):
            kind = label if k == 0 else int(rng.integers(2))
            negated = bool(rng.integers(2))
            words = GOOD if bool(kind) != negated else BAD
            parts.append(f"the {rng.choice(THINGS)} is {'not ' if negated else ''}{rng.choice(words)}")
        rows.append({"text": f" {rng.choice(LINKS)} ".join(parts[::-1]), "label": label})  # the last part counts
    return Dataset.from_list(rows)


def main(arguments: list[str] | None = None) -> float:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else None)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rows", type=int, default=2000)
    o = parser.parse_args(arguments)

    train, test = make_rows(o.rows, 1), make_rows(200, 2)
    tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(train["text"], trainers.BpeTrainer(vocab_size=PIECES, special_tokens=["[UNK]"], show_progress=False))

    def add_ids(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
        return {"ids": [e.ids for e in tokenizer.encode_batch(rows["text"])]}

    train, test = train.map(add_ids, batched=True), test.map(add_ids, batched=True)

    model = vpps.Model(seed=1)
    E = model.add_lookup("E", tokenizer.get_vocab_size(), DIM)
    gru = vpps.nn.GRU(model, E, HIDDEN)
    W_s, b_s = model.add_matrix("W_s", 2, HIDDEN), model.add_vector("b_s", 2)

    @model.cell
    def head(c: vpps.Recorder) -> None:
        scores = W_s @ c.gather(0, 0, HIDDEN) + b_s
        c.push(scores, vpps.cross_entropy(scores, c.pull_index()))

    trainer = vpps.Trainer(model, optimizer="adam", lr=0.005)
    graph = model.graph()

    def add(rows: dict[str, list[Any]]) -> vpps.Vertices:
        """All sentences of a batch, by two calls."""
        first, ids = vpps.ragged(rows["ids"])
        states = vpps.nn.chain(gru, ids, np.diff(first))
        return graph.apply(head, children=states[first[1:] - 1], indices=rows["label"])

    reached = 0.0
    for epoch in range(1, o.epochs + 1):
        for rows in train.shuffle(seed=epoch).iter(BATCH):
            with graph:
                trainer.step(vpps.average(add(rows).pushed(1)))
        with graph:
            scores = trainer.forward(add(test[:]).pushed(0))
        reached = float((scores.argmax(1) == np.array(test["label"])).mean())
        print(f"epoch {epoch}  loss of the last batch {trainer.loss():.3f}  accuracy {reached:.3f}")
    return reached


if __name__ == "__main__":
    main()
