#!/usr/bin/env python3
"""Trains recipes in fp32, bf16x3 and bf16 from the same seeds, and prints what they reach on dev as Markdown tables.

    bench/precision_dev.py [--seeds N] [--log FILE] [RECIPE [OPTION...]]

RECIPE is a script of bench/recipes and its arguments, "sst.sh tree-lstm" unless given; options go to `vpps train`. --log: all runs'
measures after each epoch, one JSON object a line. A run that the log has already is not made again.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

RECIPES = pathlib.Path(os.path.relpath(os.path.dirname(__file__))) / "recipes"
PRECISIONS = ["fp32", "bf16x3", "bf16"]
POINTS = {"root", "nodes", "f1", "accuracy"}  # shares, shown in percent


def train(recipe, precision, seed):
    """Measures on dev and the loss, epoch by epoch."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as log:
        command = [RECIPES / recipe[0], *recipe[1:], "--seed", str(seed), "--precision", precision, "--log", log.name,
                   "--log-every", "1000000", "--quiet"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        events = [json.loads(line) for line in open(log.name)]
    return [{"loss": e["loss"], **{k: v for k, v in e["dev"].items() if v is not None}}
            for e in events if e["event"] == "epoch"]


def shown(name, value):
    return f"{100 * value:.2f}" if name in POINTS else f"{value:.4f}"


def spread(name, values):
    return f"{shown(name, statistics.mean(values))} ({' '.join(shown(name, v) for v in values)})"


def tables(runs, seeds):
    epochs = len(runs["fp32", 1])
    measures = list(runs["fp32", 1][-1])
    print(f"After {epochs} epochs, mean (seeds 1 to {seeds}); shares in percent\n")
    print("| |", " | ".join(measures), "|\n| --- |" + " ---: |" * len(measures))
    for p in PRECISIONS:
        print(f"| {p} |", " | ".join(spread(m, [runs[p, s][-1][m] for s in range(1, seeds + 1)]) for m in measures), "|")
    for p in PRECISIONS[1:]:
        print(f"| {p} less fp32 |",
              " | ".join(spread(m, [runs[p, s][-1][m] - runs["fp32", s][-1][m] for s in range(1, seeds + 1)])
                         for m in measures), "|")
    print("\nEpoch by epoch, mean of the seeds: fp32 / bf16x3 / bf16\n")
    print("| epoch |", " | ".join(measures), "|\n| ---: |" + " ---: |" * len(measures))
    for e in range(epochs):
        print(f"| {e + 1} |", " | ".join(" / ".join(
            shown(m, statistics.mean(runs[p, s][e][m] for s in range(1, seeds + 1))) for p in PRECISIONS) for m in measures),
            "|")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seeds", type=int, default=3)
    p.add_argument("--log", type=pathlib.Path)
    p.add_argument("recipe", nargs=argparse.REMAINDER)
    a = p.parse_args()
    recipe = a.recipe or ["sst.sh", "tree-lstm"]
    runs = {}
    if a.log and a.log.exists():
        for r in map(json.loads, a.log.open()):
            if r["recipe"] == recipe:
                runs[r["precision"], r["seed"]] = r["epochs"]
    for seed in range(1, a.seeds + 1):
        for precision in PRECISIONS:
            if (precision, seed) in runs:
                continue
            print(f"{' '.join(recipe)}: {precision}, seed {seed}", file=sys.stderr)
            runs[precision, seed] = train(recipe, precision, seed)
            if a.log:
                with a.log.open("a") as f:
                    f.write(json.dumps({"recipe": recipe, "precision": precision, "seed": seed,
                                        "epochs": runs[precision, seed]}) + "\n")
    tables(runs, a.seeds)


if __name__ == "__main__":
    main()
