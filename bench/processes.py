#!/usr/bin/env python3
"""One process with a virtual processor (VP) a core beside a process with one VP a core, started by mpirun.

    python3 bench/processes.py [--batches 32,128,512] [--rounds N] [--seconds S]

The Tree-LSTM on SST ($VPPS_DATA; generated trees without), all layers 256 wide, SGD, as `vpps train` trains it, in turn, some S seconds each.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys

import train

MPIRUN = ["mpirun", "--bind-to", "none", "-n", str(len(os.sched_getaffinity(0)))]
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
NETWORK = "tree-lstm"


def run(o, launcher, vps, batch, n):
    """The summary of `vpps train`, n batches."""
    command = [*launcher, os.environ.get("VPPS", os.path.join(train.BUILD, "vpps")), "train", NETWORK, *train.options_of(o, NETWORK), "--vps", str(vps),
               "--batch", str(batch), "--max-batches", str(n), "--epochs", "100000", "--eval-every", "0", "--json", "--quiet"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env={**os.environ, **ROOT})
    if done.returncode:
        sys.exit(f"processes.py: {' '.join(command)}: exit status {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])


def row_of(o, cores, batch):
    first = run(o, [], cores, batch, 2)
    n = max(2, round(o.seconds * first["sentences_per_s"] / batch))
    pairs = [(run(o, [], cores, batch, n), run(o, MPIRUN, 1, batch, n)) for _ in range(o.rounds)]
    rates = [[summary["sentences_per_s"] for summary in pair] for pair in pairs]
    exchange, sent, imbalance = (statistics.median(together[key] for _, together in pairs)
                                 for key in ("exchange_ms_per_batch", "sent_bytes_per_batch", "imbalance"))
    return [str(batch), *(train.shown_spread(train.spread(x)) for x in zip(*rates)), train.shown_spread(train.spread([b / a for a, b in rates])),
            f"{exchange:.1f}", f"{1e-6 * sent:.2f}", f"{100 * imbalance:.1f} %"]


def measure(o):
    cores = int(MPIRUN[-1])
    print(f"Training, sentences a second: median (quartiles) of {o.rounds} rounds in turn\n")
    train.print_table(["batch", f"one process, {cores} VPs", f"{cores} processes", "ratio", "exchange ms a batch", "sent MB a batch", "imbalance"],
                      [row_of(o, cores, batch) for batch in o.batches], 7)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--batches", default="32,128,512", metavar="A,B")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    o = parser.parse_args(namespace=argparse.Namespace(hidden=None))
    o.batches = [int(x) for x in o.batches.split(",")]
    o.data = os.environ.get("VPPS_DATA", "../shared/data")
    if shutil.which("mpirun"):
        measure(o)
    else:
        train.tell("processes.py: mpirun is not installed; nothing was measured")


if __name__ == "__main__":
    main()
