#!/usr/bin/env python3
"""One process with a virtual processor (VP) a core beside a process with one VP a core, started by mpirun.

    python3 bench/processes.py [--batches 32,128,512] [--rounds N] [--seconds S]

The Tree-LSTM on SST ($VPPS_DATA; generated trees without), hidden 256, SGD, as `vpps train` trains it, in turn, some S seconds each.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys

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
    for batch in o.batches:
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--batches", default="32,128,512", metavar="A,B")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    o = parser.parse_args()
    o.batches = [int(x) for x in o.batches.split(",")]
    measure(o)


if __name__ == "__main__":
    main()
