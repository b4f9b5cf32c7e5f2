#!/usr/bin/env python3
"""Predicts training speed on an H100: trains every network on the GPU model by the model's own latencies and by pessimistic ones,
and prints the device time of a batch as a Markdown table. Nothing is measured.

    bench/predict.py --log FILE [--networks A,B] [--batches 1,16,128] [--precisions fp32,bf16x3,bf16] [--settings default,pessimistic]
                     [--examples N] [--limit S] [--with OPTIONS] [--table]

A row trains a batch of one example that does not count, then batches of together at least N examples. A row goes to the log as one JSON
object as soon as it is known, and is not made again: the log can be filled by several calls, also beside each other, and --table only
prints it.
A row that takes longer than S seconds is left out, which the log says; a call with a larger S tries it again.

The GPU model is $VPPS_LIBCUDA, else it is built from $GPU_MODEL (../shared/tools/gpumodel) as `make check-gpu-model` does. Options and data
are those of bench/train.py, with hidden 256 for all but mv-rnn and lattice-lstm; --with adds options to these, and the log
keeps its rows apart from those without. cuBLAS is the library that $VPPS_LIBCUBLAS names, else the GPU model itself.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

import train

WIDE = "--hidden 256 --embed 256"
SIZES = {"rvnn": WIDE, "td-rnn": "--hidden 256"}  # beside those of bench/train.py; a network that is not there: WIDE
SETTINGS = {"default": {}, "pessimistic": {"GPUMODEL_L2": "340", "GPUMODEL_L2_THERE": "170", "GPUMODEL_MEMBAR": "850"}}
PRECISIONS = ["fp32", "bf16x3", "bf16"]
KEY = ("network", "precision", "batch", "setting", "with")


def library():
    if "VPPS_LIBCUDA" in os.environ:
        return os.environ["VPPS_LIBCUDA"]
    subprocess.run(["make", "-s", f"BUILD={train.BUILD}", "gpu-model"], check=True, stdout=sys.stderr)
    return os.path.abspath(os.path.join(train.BUILD, "gpumodel", "libgpudriver.so"))


def options_of(o, network):
    return [*train.options_of(o, network), *SIZES.get(network, "" if network in train.NETWORKS else WIDE).split(), *o.more.split()]


def predict(o, row):
    """The row with its figures, or with "over": the limit."""
    command = [o.bench_train, row["network"], "--device", "cuda", "--no-tuning", "--precision", row["precision"], *options_of(o, row["network"])]
    environment = {"VPPS_LIBCUBLAS": o.library, **os.environ, "VPPS_LIBCUDA": o.library, **SETTINGS[row["setting"]]}
    start = time.monotonic()
    try:
        done = subprocess.run(command, input=f"{row['batch']} 0 {o.examples}\n", capture_output=True, text=True, env=environment,
                              timeout=o.limit, check=False)
    except subprocess.TimeoutExpired:
        return {**row, "over": o.limit}
    if done.returncode:
        raise train.Failure(f"{' '.join(command)}: {done.stderr.strip()}")
    answer = json.loads(done.stdout)
    return {**row, "device_us": round(1e3 * answer["device_ms"], 1), "nodes": answer["nodes"],
            "examples": -(-o.examples // row["batch"]) * row["batch"], "vps": answer["vps"], "commit": train.commit(),
            "seconds": round(time.monotonic() - start)}


def read(path):
    """The log's rows by their key; the last one counts."""
    rows = map(json.loads, path.open()) if path.exists() else []
    return {tuple(r.get(k, "") for k in KEY): r for r in rows}


def fill(o):
    o.library = library()
    for batch in o.batches:
        for network in o.networks:
            for precision in o.precisions:
                for setting in o.settings:
                    key = (network, precision, batch, setting, o.more)
                    known = read(o.log).get(key)
                    if known and known.get("over", o.limit) >= o.limit:
                        continue
                    train.tell(f"{network}, {precision}, batch {batch}, {setting}")
                    row = predict(o, dict(zip(KEY, key)))
                    with o.log.open("a", encoding="utf-8") as f:
                        f.write(json.dumps(row) + "\n")


def shown(row):
    return f"{row['device_us']:,.1f}" if row and "device_us" in row else ""


def print_table(o):
    rows = read(o.log)
    table = []
    for network in o.networks:
        for precision in o.precisions:
            cells = [shown(rows.get((network, precision, b, s, o.more))) for b in o.batches for s in o.settings]
            if any(cells):
                table.append([network, precision, *cells])
    columns = [f"{b}, {s}" for b in o.batches for s in o.settings]
    train.print_table(["network", "precision", *columns], table, len(columns))
    some = [r for k, r in rows.items() if k[0] in o.networks and k[-1] == o.more and "device_us" in r]
    print(f"Predicted device time of a batch in us. Commits: {', '.join(sorted({r['commit'] for r in some}))}. Examples that count at batch 1: "
          + ", ".join(f"{n} of {', '.join(sorted(w))}" for n, w in by_examples(some).items()) + ".\n")
    for network in dict.fromkeys(r["network"] for r in some):
        print(f"- {network}: `vpps train {network} {' '.join(options_of(o, network))}`")


def by_examples(rows):
    networks = {}
    for r in rows:
        if r["batch"] == 1:
            networks.setdefault(r["examples"], set()).add(r["network"])
    return networks


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--log", type=pathlib.Path, required=True)
    p.add_argument("--networks", default="all")
    p.add_argument("--batches", default="1,16,128")
    p.add_argument("--precisions", default=",".join(PRECISIONS))
    p.add_argument("--settings", default=",".join(SETTINGS))
    p.add_argument("--examples", type=int, default=8)
    p.add_argument("--limit", type=float, default=1800, metavar="S")
    p.add_argument("--with", dest="more", default="", metavar="OPTIONS")
    p.add_argument("--table", action="store_true")
    p.set_defaults(hidden=None)  # which bench/train.py asks for
    p.add_argument("--data", default=os.environ.get("VPPS_DATA", "../shared/data"))
    o = p.parse_args()
    o.batches, o.precisions, o.settings = [int(b) for b in o.batches.split(",")], o.precisions.split(","), o.settings.split(",")
    try:
        o.networks = train.find_networks(o)
        if not o.table:
            fill(o)
    except (train.Failure, OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"predict.py: {error}")
    print_table(o)


if __name__ == "__main__":
    main()
