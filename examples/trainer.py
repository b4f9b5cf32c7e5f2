#!/usr/bin/env python3
"""A recurrent network that learns whether word 7 occurs in a sentence: the loss goes below 0.01 in a second or two."""
from random import randrange
import vpps

WORDS, DIM, HIDDEN, BATCH, BATCHES = 20, 32, 64, 32, 600
model = vpps.Model(seed=1)
words = model.add_lookup("words", WORDS, DIM)
Wx, Wh = model.add_matrix("Wx", HIDDEN, DIM), model.add_matrix("Wh", HIDDEN, HIDDEN)
b = model.add_vector("b", HIDDEN)
Wo, bo = model.add_matrix("Wo", 2, HIDDEN), model.add_vector("bo", 2)

@model.cell
def rnn(c: vpps.Recorder) -> None:
    c.scatter(vpps.tanh(Wx @ words[c.pull_index()] + Wh @ c.gather(0, 0, HIDDEN) + b))

trainer = vpps.Trainer(model, optimizer="adam", lr=0.003)
graph = model.graph()
for batch in range(1, BATCHES + 1):
    with graph:  # clears it
        losses = []
        for _ in range(BATCH):
            v, found = graph.source(vpps.zeros(HIDDEN)), False
            for _ in range(randrange(1, 26)):
                word = randrange(WORDS)
                found |= word == 7
                v = rnn(v, indices=[word])
            losses.append(vpps.cross_entropy(Wo @ v.scattered() + bo, found))
        loss = trainer.step(vpps.average(losses))  # forward, backward, update; the loss of the preceding batch
    if batch % 100 == 0: print(f"batch {batch - 1}  loss {loss:.4f}")
