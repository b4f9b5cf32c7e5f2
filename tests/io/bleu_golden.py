#!/usr/bin/env python3
"""Computes golden numbers for tests/io/bleu_tests.c by another implementation, on the same drawn sequences:

    python3 -m venv venv && venv/bin/pip install sacrebleu==2.6.0
    venv/bin/python tests/io/bleu_golden.py
"""
from sacrebleu.metrics import BLEU

MASK = (1 << 64) - 1


class Random:
    """The generator vpps_random, and vpps_random_below, of src/base/base.h."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
        return ((z >> 32) * n) >> 32


def pairs(seed, n, words, noise):
    r = Random(seed)
    for _ in range(n):
        reference = [r.below(words) for _ in range(1 + r.below(25))]
        hypothesis = []
        for word in reference:
            what = r.below(100)
            if what < noise:
                hypothesis.append(r.below(words))
            elif what >= noise + noise // 2:
                hypothesis.append(word)
            if what >= 100 - noise // 2:
                hypothesis.append(r.below(words))
        yield hypothesis, reference


def bleu(case):
    drawn = list(pairs(*case))
    text = [[" ".join(f"w{w}" for w in side) for side in pair] for pair in drawn]
    scores = []
    for smooth in ("none", "exp"):
        metric = BLEU(tokenize="none", smooth_method=smooth, force=True)
        score = metric.corpus_score([h for h, _ in text], [[r for _, r in text]])
        scores.append(score.score)
    print(f"    {{{', '.join(map(str, case))}, {{{', '.join(map(str, score.counts))}}}, "
          f"{score.sys_len}, {score.ref_len}, {scores[0]:.10f}, {scores[1]:.10f}}},")


print("BLEU: seed, pairs, words, noise, matches, hypothesis words, reference words, none, exp")
for case in ((1, 100, 1000, 10), (2, 100, 50, 30), (3, 20, 5, 40), (4, 3, 100, 60), (5, 1, 8, 50), (6, 200, 30000, 5),
             (7, 40, 3, 64)):
    bleu(case)
