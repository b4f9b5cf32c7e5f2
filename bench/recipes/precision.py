#!/usr/bin/env python3
"""Trains a recipe in fp32, bf16x3 and bf16 from the same seeds, and prints what it reaches on dev as a Markdown table.

    bench/recipes/precision.py [--seeds N] [--precision P]... [--log FILE] [RECIPE [OPTION...]]

RECIPE is a script of bench/recipes and its arguments, "sst.sh tree-lstm" unless given; options go to `vpps train`. --precision: only
these beside fp32. --log: all runs' measures after each epoch, one JSON object a line. A run that the log has already is not
made again: take its line out when the recipe's script, the data or the engine has changed.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

from all import HERE, SHARES

ROUNDED = ["bf16x3", "bf16"]


def train(recipe, precision, seed):
    """The loss and the measures on dev, epoch by epoch."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as log:
        command = [HERE / recipe[0], *recipe[1:], "--seed", str(seed), "--precision", precision, "--log", log.name,
                   "--log-every", "1000000", "--quiet"]
        if subprocess.run(command, stdout=subprocess.DEVNULL).returncode:
            sys.exit(f"precision.py: {' '.join(recipe)} failed in {precision}, seed {seed}")
        events = [json.loads(line) for line in open(log.name)]
    return [{"loss": e["loss"], **{k: v for k, v in e["dev"].items() if v is not None}}
            for e in events if e["event"] == "epoch"]


def in_percent(epochs):
    return [{k: 100 * v if k in SHARES else v for k, v in e.items()} for e in epochs]


def digits(name):
    return 4 if name == "loss" else 2


def spread(values, n_digits, unit=""):
    return f"{statistics.mean(values):.{n_digits}f}{unit} ({' '.join(f'{v:.{n_digits}f}' for v in values)})"


def differences(name, ours, fp32):
    """Seed by seed: in points, of perplexity in percent of fp32's."""
    return [100 * (a / b - 1) if name == "perplexity" else a - b for a, b in zip(ours, fp32)]


def table(runs, precisions, seeds):
    def last(precision, name):
        return [runs[precision, s][-1][name] for s in seeds]

    measures = list(runs["fp32", 1][-1])
    print(f"After {len(runs['fp32', 1])} epochs, mean (seeds {seeds[0]} to {seeds[-1]}); shares in percent\n")
    print("| |", " | ".join(measures), "|\n| --- |" + " ---: |" * len(measures))
    for p in precisions:
        print(f"| {p} |", " | ".join(spread(last(p, m), digits(m)) for m in measures), "|")
    for p in precisions[1:]:
        off = {m: differences(m, last(p, m), last("fp32", m)) for m in measures}
        print(f"| {p} less fp32 |",
              " | ".join(spread(off[m], digits(m), " %" if m == "perplexity" else "") for m in measures), "|")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seeds", type=int, default=3)
    p.add_argument("--precision", action="append", choices=ROUNDED)
    p.add_argument("--log", type=pathlib.Path)
    p.add_argument("recipe", nargs=argparse.REMAINDER)
    a = p.parse_args()
    recipe = a.recipe or ["sst.sh", "tree-lstm"]
    precisions = ["fp32"] + [q for q in ROUNDED if q in (a.precision or ROUNDED)]
    seeds = range(1, a.seeds + 1)
    runs = {}
    if a.log and a.log.exists():
        for r in map(json.loads, a.log.open()):
            if r["recipe"] == recipe:
                runs[r["precision"], r["seed"]] = r["epochs"]
    for seed in seeds:
        for precision in precisions:
            if (precision, seed) in runs:
                continue
            print(f"{' '.join(recipe)}: {precision}, seed {seed}", file=sys.stderr)
            runs[precision, seed] = train(recipe, precision, seed)
            if a.log:
                with a.log.open("a") as f:
                    f.write(json.dumps({"recipe": recipe, "precision": precision, "seed": seed,
                                        "epochs": runs[precision, seed]}) + "\n")
    runs = {key: in_percent(epochs) for key, epochs in runs.items()}
    table(runs, precisions, seeds)


if __name__ == "__main__":
    main()
