#!/usr/bin/env python3
"""On paper: what many processes would reach, from what bench_processes measured.

    bench/processes.py [--rate SENTENCES] [--message-us US] [--noise SHARE]

A process is one core with one VP. Nothing of this is measured but what the options give; the networks are assumed. A batch takes

    compute    (sentences of the slowest process) / rate
    matrices   two exchanges of all with all (see vpps_allreduce_by_exchange): 2 (P - 1) / P of the gradients' bytes, in
               2 (P - 1) messages, two latencies; and as many messages for the vectors
    rows       of lookup tables: those a process used, to their owners; those that all used, from them; two counts before

The rate of a process at hidden h is that at 256, times (256 / h)^2: the products' share of time only grows with h.
"""

import argparse
import math

NETWORKS = [  # name, bytes a second, seconds of latency
    ("10 Gbit/s, TCP", 1.1e9, 25e-6),
    ("100 Gbit/s, RDMA", 11e9, 2e-6),
]
# Different rows of the embedding that so many sentences use: counted in SST's training part, means of five draws.
ROWS = [(1, 15), (4, 66), (16, 191), (64, 612), (256, 1813), (1024, 5184), (8000, 17668)]


# By how much the largest share of a dealt batch exceeds the mean, where that is above half a percent: SST's sizes, means of 20
# draws. With a tree for each process, the largest tree is waited for.
DEALT = {(64, 512): 0.011, (512, 512): 1.63}


def rows_of(sentences):
    """By ROWS, straight between its points on a double logarithmic scale; at most the vocabulary."""
    for (x0, y0), (x1, y1) in zip(ROWS, ROWS[1:]):
        if sentences <= x1:
            return y0 * (sentences / x0) ** (math.log(y1 / y0) / math.log(x1 / x0))
    return ROWS[-1][1]


def batch_time(p, batch, hidden, rate, message_s, bandwidth, latency, noise):
    dense = 13 * hidden * hidden * 4  # bytes: the Tree-LSTM's matrices, embed = hidden
    row = hidden * 4
    own, everyone = rows_of(batch / p), rows_of(batch)
    compute = batch / p * (1 + noise + DEALT.get((p, batch), 0)) / (rate * (256 / hidden) ** 2)
    if p == 1:
        return compute, 0
    messages = 8 * (p - 1) * message_s + 8 * latency  # headers, two of matrices and of vectors, rows, counts, sums
    sent = 2 * (p - 1) / p * dense + (p - 1) / p * own * row + (p - 1) / p * everyone * row
    return compute, messages + sent / bandwidth


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=790, help="sentences a second of a process at hidden 256")
    parser.add_argument("--message-us", type=float, default=1.0, help="what starting and ending a message takes")
    parser.add_argument("--noise", type=float, default=0.04, help="by which the slowest of equal processes is behind the mean")
    o = parser.parse_args()
    for hidden in (256, 2048):
        for name, batch_of, text in (("strong", lambda p: 512, "batch 512 in all"),
                                     ("weak", lambda p: 32 * p, "32 sentences a process")):
            print(f"\nHidden {hidden}, {text}: sentences/s (share of as many times one process), and the exchange's part of a "
                  "batch\n")
            print("| network | " + " | ".join(f"{p} processes" for p in (1, 8, 64, 512)) + " |")
            print("| --- |" + " ---: |" * 4)
            for network, bandwidth, latency in NETWORKS:
                cells = []
                for p in (1, 8, 64, 512):
                    batch = batch_of(p)
                    compute, exchange = batch_time(p, batch, hidden, o.rate, o.message_us * 1e-6, bandwidth, latency,
                                                   0 if p == 1 else o.noise)
                    reached = batch / (compute + exchange)
                    one = o.rate * (256 / hidden) ** 2
                    cells.append(f"{reached:,.0f} ({reached / one / p:.2f}), {100 * exchange / (compute + exchange):.0f} %")
                print(f"| {network} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
