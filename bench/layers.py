#!/usr/bin/env python3
"""Speed of layers inside PyTorch on the CPU: vpps.torch.LSTM beside torch.nn.LSTM, on sequences of mixed lengths and in a recurrent policy.

    python3 bench/layers.py [--lengths 400,4000] [--batches 8,32,128] [--hidden 256] [--rounds 5] [--seconds 2] [--patience 30] [--json FILE]

A step is forward and backward from the sum of all outputs, from the list of a batch's sequences on: packing and padding count. Figures are
tokens a second (real ones; padding is none), medians of the rounds (first - third quartile); in a round every way is measured once, one
after the other, so that a change of the machine's speed hits all alike. Ratios are medians of the rounds' ratios. PyTorch runs
with one thread or all, whichever is faster at that size. A way whose step takes longer than --patience seconds, as PyTorch's on long packed
sequences, is measured by one step alone, and left out of larger batches of these lengths.

    vpps         vpps.torch.LSTM on a packed sequence
    vpps-equal   the same on as many tokens in sequences of equal lengths
    packed       nn.LSTM on a packed sequence
    padded       nn.LSTM on a padded batch
    compiled     torch.compile of that

Lengths are drawn from 10 to each of --lengths. The policy has 16 environments and 128 steps, and an episode ends at every 20th step in
the mean: vpps takes episodes as sequences; masks is nn.LSTM step by step, with masks (examples/recurrent_policy.py).
"""
import argparse
import json
import os
import statistics
import sys
import time

import torch
from torch.nn.utils.rnn import pack_sequence, pad_sequence

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "examples"))
import recurrent_policy  # noqa: E402

import vpps.torch  # noqa: E402

KINDS = 4  # different batches of a size, which all ways take in turn


class Way:
    """A step on batch number k, and what its PyTorch's threads are."""

    def __init__(self, name, step, tokens, threads=None):
        self.name, self.step, self.tokens, self.threads, self.rates, self.at = name, step, tokens, threads, [], 0

    def measure(self, seconds):
        if self.threads:
            torch.set_num_threads(self.threads)
        n, begin = 0, time.perf_counter()
        while not n or time.perf_counter() - begin < seconds:
            self.step(self.at % KINDS)
            n += self.tokens[self.at % KINDS]
            self.at += 1
        return n / (time.perf_counter() - begin)

    def choose_threads(self):
        """Of those that are PyTorch's."""
        rates = {}
        for self.threads in sorted({1, len(os.sched_getaffinity(0))}):
            self.measure(0)
            rates[self.threads] = self.measure(0.3)
        self.threads = max(rates, key=rates.get)


def backward(layer, y):
    layer.zero_grad(set_to_none=True)
    y.sum().backward()


def ways_of_lengths(o, longest, batch):
    torch.manual_seed(longest + batch)
    lengths = [torch.randint(10, longest + 1, (batch,)).tolist() for _ in range(KINDS)]
    given = [[torch.randn(n, o.hidden) for n in some] for some in lengths]
    equal = [[torch.randn(max(sum(some) // batch, 1), o.hidden) for _ in range(batch)] for some in lengths]
    tokens, tokens_equal = ([sum(map(len, some)) for some in sequences] for sequences in (given, equal))
    theirs = torch.nn.LSTM(o.hidden, o.hidden)
    ours, compiled = vpps.torch.LSTM.from_torch(theirs), torch.compile(theirs, dynamic=True)

    def packed(layer, sequences):
        backward(layer, layer(pack_sequence(sequences, enforce_sorted=False))[0].data)

    def padded(layer, sequences):
        backward(layer, layer(pad_sequence(sequences))[0])

    return [Way("vpps", lambda k: packed(ours, given[k]), tokens), Way("vpps-equal", lambda k: packed(ours, equal[k]), tokens_equal),
            Way("packed", lambda k: packed(theirs, given[k]), tokens, 1), Way("padded", lambda k: padded(theirs, given[k]), tokens, 1),
            Way("compiled", lambda k: padded(compiled, given[k]), tokens, 1)]


def ways_of_policy(o, environments=16, steps=128):
    torch.manual_seed(1)
    x = [torch.randn(steps, environments, o.hidden) for _ in range(KINDS)]
    starts = [torch.rand(steps, environments) < 1 / 20 for _ in range(KINDS)]
    state = (torch.zeros(1, environments, o.hidden), torch.zeros(1, environments, o.hidden))
    theirs = torch.nn.LSTM(o.hidden, o.hidden)
    ours, tokens = vpps.torch.LSTM.from_torch(theirs), [steps * environments] * KINDS

    def way(name, layer, along, threads=None):
        return Way(name, lambda k: backward(layer, along(layer, x[k], starts[k], state)), tokens, threads)

    return [way("vpps", ours, recurrent_policy.by_sequences), way("masks", theirs, recurrent_policy.by_masks, 1)]


def measure(o, what, ways, slow):
    """Prints and returns the rates; a way that fails, or is among the slow ones, is told, and left out. Adds to the slow ones."""
    for way in list(ways):
        try:
            if way.name in slow:
                raise TimeoutError(slow[way.name])
            if way.name != "packed":  # which compiles nothing
                way.measure(0)
            begin = time.perf_counter()
            rate = way.measure(0)
            if time.perf_counter() - begin > o.patience:
                slow[way.name], way.rates = f"{what}: a step took {time.perf_counter() - begin:.1f} s", [rate]
            elif way.threads:
                way.choose_threads()
        except Exception as error:  # torch.compile needs a C++ compiler, and lacks some layers
            print(f"{what}: {way.name}: left out: {str(error).strip().splitlines()[0] if str(error) else type(error).__name__}")
            ways.remove(way)
    for _ in range(o.rounds):
        for way in ways:
            if way.name not in slow:
                way.rates.append(way.measure(o.seconds))
    ours = ways[0]
    for way in ways:
        q1, median, q3 = statistics.quantiles(way.rates, n=4, method="inclusive") if len(way.rates) > 1 else way.rates * 3
        ratio = "" if way is ours else f"  vpps is {statistics.median(a / b for a, b in zip(ours.rates, way.rates)):.2f} x as fast"
        threads = f", {way.threads} threads" if way.threads else ""
        print(f"{what}: {way.name:<11}{median:>9,.0f} ({q1:,.0f} - {q3:,.0f}){threads}{ratio}", flush=True)
    return [{"what": what, "way": way.name, "threads": way.threads, "rates": way.rates} for way in ways]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--lengths", default="400,4000")
    parser.add_argument("--batches", default="8,32,128")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--patience", type=float, default=30)
    parser.add_argument("--json", metavar="FILE")
    o = parser.parse_args(arguments)
    print(f"PyTorch {torch.__version__}, hidden {o.hidden}, tokens a second")
    results = measure(o, "policy", ways_of_policy(o), {})
    for longest in map(int, o.lengths.split(",")):
        slow = {}
        for batch in map(int, o.batches.split(",")):
            results += measure(o, f"lengths 10 to {longest}, batch {batch}", ways_of_lengths(o, longest, batch), slow)
    if o.json:
        with open(o.json, "w", encoding="utf-8") as file:
            json.dump(results, file)


if __name__ == "__main__":
    main()
