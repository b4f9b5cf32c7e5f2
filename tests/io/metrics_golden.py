#!/usr/bin/env python3
"""Golden numbers of tests/io/f1_tests.c and bleu_tests.c from other implementations, on the same drawn sequences:

    python3 -m venv venv && venv/bin/pip install sacrebleu==2.6.0 seqeval==1.2.2
    venv/bin/python tests/io/metrics_golden.py
"""
from sacrebleu.metrics import BLEU
from seqeval.metrics.sequence_labeling import get_entities

MASK = (1 << 64) - 1


class Random:
    """vpps_random and vpps_random_below of src/base/base.h."""

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


TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y", "E-X", "S-X", "E-Y", "S-Y"]


def f1(seed, n_tags, sentences, wrong):
    r = Random(seed)
    counts = {t: [0, 0, 0] for t in "XY"}
    for _ in range(sentences):
        gold = [r.below(n_tags) for _ in range(1 + r.below(12))]
        predicted = [r.below(n_tags) if r.below(100) < wrong else g for g in gold]
        g, p = (set(get_entities([TAGS[t] for t in tags])) for tags in (gold, predicted))
        for t in "XY":
            counts[t][0] += sum(e[0] == t for e in g)
            counts[t][1] += sum(e[0] == t for e in p)
            counts[t][2] += sum(e[0] == t for e in g & p)
    print(f"    {{{seed}, {n_tags}, {sentences}, {wrong}, "
          + ", ".join("{" + ", ".join(map(str, counts[t])) + "}" for t in "XY") + "},")


print("BLEU: seed, pairs, words, noise, matches, hypothesis words, reference words, none, exp")
for case in ((1, 100, 1000, 10), (2, 100, 50, 30), (3, 20, 5, 40), (4, 3, 100, 60), (5, 1, 8, 50), (6, 200, 30000, 5),
             (7, 40, 3, 64)):
    bleu(case)
print("F1: seed, tags, sentences, percent drawn anew, gold, predicted, correct of X and of Y")
for case in ((1, 5, 200, 20), (2, 9, 200, 20), (3, 3, 50, 60), (4, 9, 1000, 5)):
    f1(*case)
