#!/usr/bin/env python3
"""Several processes: what they reach on this machine, and on paper what many would.

    bench/processes.py --measure [--rounds N] [--seconds S]
    bench/processes.py [--rate SENTENCES] [--rate-2048 SENTENCES] [--message-us US] [--noise SHARE] [--shard-tables]

--measure: the Tree-LSTM on SST ($VPPS_DATA), hidden 256, as `vpps train` trains it: one process with a VP a core, and a process with one VP
a core, started by mpirun, in turn, some S seconds each. Then bench_processes: the time of sums.

On paper: a process is one core with one VP. What the options give was measured, and two rows of the networks, which are one machine's
own; the others are assumed. A batch takes

    compute    (sentences of the slowest process) / rate
    matrices   two exchanges of all with all (see vpps_allreduce_by_exchange): 2 (P - 1) / P of the gradients' bytes, in
               2 (P - 1) messages, two latencies; and as many messages for the vectors
    rows       of lookup tables: those a process used, to their owners; those that all used, from them; two counts before. With
               --shard-tables instead of those that all used: those the process uses, before the batch
"""

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys

# ---------------------------------------------------------------- measured

BUILD = os.environ.get("BUILD", "build")
MPIRUN = ["mpirun", "--bind-to", "none", "-n", str(len(os.sched_getaffinity(0)))]
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env={**os.environ, **ROOT})
    if done.returncode:
        sys.exit(f"processes.py: {' '.join(command)}: exit status {done.returncode}")
    return done.stdout


def train(launcher, vps, batch, n):
    data = os.path.join(os.environ.get("VPPS_DATA", "../shared/data"), "sst")
    command = [*launcher, os.environ.get("VPPS", os.path.join(BUILD, "vpps")), "train", "tree-lstm", "--optimizer", "sgd",
               *(["--data", data] if os.path.isdir(data) else []), "--vps", str(vps), "--batch", str(batch), "--max-batches", str(n),
               "--epochs", "100000", "--eval-every", "0", "--json", "--quiet"]
    return json.loads(run(command).splitlines()[-1])


def spread(values):
    q1, median, q3 = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return f"{median:,.4g} ({q1:,.4g} - {q3:,.4g})"


def measure(o):
    if not shutil.which("mpirun"):
        print("processes.py: mpirun is not installed; nothing was measured", file=sys.stderr)
        return
    cores = int(MPIRUN[-1])
    print(f"Training, sentences a second: median (quartiles) of {o.rounds} rounds in turn\n\n| batch | one process, {cores} VPs | {cores} "
          "processes | ratio | exchange ms a batch | sent MB a batch | imbalance |\n|" + " ---: |" * 7)
    for batch in (32, 128, 512):
        first = train([], cores, batch, 2)
        n = max(2, round(o.seconds * first["sentences_per_s"] / batch))
        alone, together = [], []
        for _ in range(o.rounds):
            alone.append(train([], cores, batch, n))
            together.append(train(MPIRUN, 1, batch, n))
        rates = [[x["sentences_per_s"] for x in way] for way in (alone, together)]
        last = {key: statistics.median(x[key] for x in together) for key in ("exchange_ms_per_batch", "sent_bytes_per_batch", "imbalance")}
        print(f"| {batch} | {spread(rates[0])} | {spread(rates[1])} | {spread([b / a for a, b in zip(*rates)])} | "
              f"{last['exchange_ms_per_batch']:.1f} | {1e-6 * last['sent_bytes_per_batch']:.2f} | {100 * last['imbalance']:.1f} % |", flush=True)
    print("\n" + run([*MPIRUN, os.path.join(BUILD, "bench", "bench_processes"), str(o.rounds)]))


# ---------------------------------------------------------------- on paper

NETWORKS = [  # name, bytes a second, seconds of latency
    ("shared memory, measured", 4.6e9, 0),
    ("TCP to itself, measured", 0.85e9, 4e-6),
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


def batch_time(p, batch, hidden, rate, message_s, bandwidth, latency, noise, sharded):
    dense = 13 * hidden * hidden * 4  # bytes: the Tree-LSTM's matrices, embed = hidden
    row = hidden * 4
    own, everyone = rows_of(batch / p), rows_of(batch)
    compute = batch / p * (1 + noise + DEALT.get((p, batch), 0)) / rate
    if p == 1:
        return compute, 0
    exchanges = 10 if sharded else 8  # headers, two of matrices and of vectors, rows, counts, sums; or three to fetch, and squares
    messages = exchanges * ((p - 1) * message_s + latency)
    sent = 2 * (p - 1) / p * dense + (p - 1) / p * own * row + (p - 1) / p * (own if sharded else everyone) * row
    return compute, messages + sent / bandwidth


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=1115, help="sentences a second of a process at hidden 256")
    parser.add_argument("--rate-2048", type=float, default=3.7, help="the same at hidden 2048")
    parser.add_argument("--shard-tables", action="store_true", help="lookup tables shared out")
    parser.add_argument("--message-us", type=float, default=0.5, help="what starting and ending a message takes")
    parser.add_argument("--noise", type=float, default=0.04, help="by which the slowest of equal processes is behind the mean")
    parser.add_argument("--measure", action="store_true", help="train on this machine instead")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    o = parser.parse_args()
    if o.measure:
        measure(o)
        return
    for hidden, rate in ((256, o.rate), (2048, o.rate_2048)):
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
                    compute, exchange = batch_time(p, batch, hidden, rate, o.message_us * 1e-6, bandwidth, latency,
                                                   0 if p == 1 else o.noise, o.shard_tables)
                    reached = batch / (compute + exchange)
                    cells.append(f"{reached:,.0f} ({reached / rate / p:.2f}), {100 * exchange / (compute + exchange):.0f} %")
                print(f"| {network} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
