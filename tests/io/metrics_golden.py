#!/usr/bin/env python3
"""Computes golden numbers for tests/io/f1_tests.c and bleu_tests.c by other implementations, on the same drawn sequences:

    python3 -m venv venv && venv/bin/pip install sacrebleu==2.6.0 seqeval==1.2.2
    venv/bin/python tests/io/metrics_golden.py
"""
from sacrebleu.metrics import BLEU
from seqeval.scheme import BILOU, IOB1, IOB2, IOBES, Entities

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


# By scheme the letters that begin a chunk, continue it, end it, and stand for a whole one; None: IOB.
SCHEMES = {"IOB1": None, "IOB2": None, "IOBES": "BIES", "BILOU": "BILU", "BMES": "BMES"}


def draw_chunks(r, n):
    """Draws chunks in n words, often side by side, as (begin, end, type)."""
    chunks, at = [], 0
    while at < n:
        length = min(n - at, 1 + r.below(3))
        if r.below(3):
            chunks.append((at, at + length, "XY"[r.below(2)]))
        at += length
    return chunks


def spoil(r, chunks):
    """Returns the chunks with errors: some are missing, some have the other type, some are shorter."""
    for begin, end, kind in chunks:
        what = r.below(6)
        if what == 1:
            kind = "XY"[kind == "X"]
        elif what == 2:
            end -= 1
        if what and end > begin:
            yield begin, end, kind


def encode(chunks, n, scheme):
    tags, letters, before = ["O"] * n, SCHEMES[scheme], None
    for begin, end, kind in chunks:
        for k in range(begin, end):
            tags[k] = f"{letters[1] if letters else 'I'}-{kind}"
        if letters:
            tags[begin], tags[end - 1] = f"{letters[0]}-{kind}", f"{letters[2]}-{kind}"
            if end - begin == 1:
                tags[begin] = f"{letters[3]}-{kind}"
        elif scheme == "IOB2" or before == (begin, kind):
            tags[begin] = f"B-{kind}"
        before = (end, kind)
    return tags


def strict(tags, scheme):
    """Returns the chunks that seqeval reads by the strict rules of the scheme. seqeval has no BMES: there M is called I."""
    rules = {"IOB1": IOB1, "IOB2": IOB2, "BILOU": BILOU}.get(scheme, IOBES)
    entities = Entities([[t.replace("M-", "I-") for t in tags]], rules).entities[0]
    return {(e.tag, e.start, e.end) for e in entities}


def schemes(scheme, seed):
    r = Random(seed)
    n = 9 + r.below(4)
    gold = draw_chunks(r, n)
    predicted = spoil(r, gold)
    tags = [encode(chunks, n, scheme) for chunks in (gold, predicted)]
    g, p = (strict(t, scheme) for t in tags)
    texts = ", ".join('"' + " ".join(t) + '"' for t in tags)
    print(f"    {{{texts}, {len(g)}, {len(p)}, {len(g & p)}}}, /* {scheme} */")


print("BLEU: seed, pairs, words, noise, matches, hypothesis words, reference words, none, exp")
for case in ((1, 100, 1000, 10), (2, 100, 50, 30), (3, 20, 5, 40), (4, 3, 100, 60), (5, 1, 8, 50), (6, 200, 30000, 5),
             (7, 40, 3, 64)):
    bleu(case)
print("F1 by the schemes' own rules: gold and predicted tags, chunks, those found, those right")
for name in SCHEMES:
    for number in range(4):
        schemes(name, 10 * len(name) + 7 * number + ord(name[1]))
