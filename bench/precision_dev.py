#!/usr/bin/env python3
"""Trains a recipe in fp32, bf16x3 and bf16 from the same seeds, and prints what it reaches on dev as Markdown tables.

    bench/precision_dev.py [--seeds N] [--precision P]... [--log FILE] [--plot FILE.svg] [RECIPE [OPTION...]]

RECIPE is a script of bench/recipes and its arguments, "sst.sh tree-lstm" unless given; options go to `vpps train`. --precision: only
these beside fp32. --log: all runs' measures after each epoch, one JSON object a line. A run that the log has already is not
made again: take its line out when the recipe's script, the data or the engine has changed. --plot: curves over each other.
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
sys.path.append(str(RECIPES))
from all import SHARES

ROUNDED = ["bf16x3", "bf16"]
COLOURS = {"fp32": "#0072b2", "bf16x3": "#009e73", "bf16": "#d55e00"}  # Okabe and Ito's palette, as `vpps train --plot`
POINTS, PERCENT = 0.5, 1.0  # how far from fp32 a mean may be: measures in points; perplexity, which has no such scale, in percent


def train(recipe, precision, seed):
    """The loss and the measures on dev, epoch by epoch."""
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as log:
        command = [RECIPES / recipe[0], *recipe[1:], "--seed", str(seed), "--precision", precision, "--log", log.name,
                   "--log-every", "1000000", "--quiet"]
        if subprocess.run(command, stdout=subprocess.DEVNULL).returncode:
            sys.exit(f"precision_dev: {' '.join(recipe)} failed in {precision}, seed {seed}")
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


def tables(runs, precisions, seeds):
    def at(epoch, precision, name):
        return [runs[precision, s][epoch][name] for s in seeds]

    n_epochs = len(runs["fp32", 1])
    measures = list(runs["fp32", 1][-1])
    print(f"After {n_epochs} epochs, mean (seeds {seeds[0]} to {seeds[-1]}); shares in percent\n")
    print("| |", " | ".join(measures), "|\n| --- |" + " ---: |" * len(measures))
    for p in precisions:
        print(f"| {p} |", " | ".join(spread(at(-1, p, m), digits(m)) for m in measures), "|")
    verdicts = []
    for p in precisions[1:]:
        off = {m: differences(m, at(-1, p, m), at(-1, "fp32", m)) for m in measures}
        print(f"| {p} less fp32 |",
              " | ".join(spread(off[m], digits(m), " %" if m == "perplexity" else "") for m in measures), "|")
        beyond = [m for m in measures[1:]
                  if abs(statistics.mean(off[m])) > (PERCENT if m == "perplexity" else POINTS)]
        verdicts.append(f"{p}: " + (f"not in {', '.join(beyond)}" if beyond else "yes"))
    print(f"\nMeans within {POINTS} points of fp32's, perplexity {PERCENT:g} %? {'; '.join(verdicts)}.")
    print(f"\nEpoch by epoch, mean of the seeds: {' / '.join(precisions)}\n")
    print("| epoch |", " | ".join(measures), "|\n| ---: |" + " ---: |" * len(measures))
    for e in range(n_epochs):
        print(f"| {e + 1} |", " | ".join(" / ".join(f"{statistics.mean(at(e, p, m)):.{digits(m)}f}" for p in precisions)
                                         for m in measures), "|")


def plot(path, title, runs, precisions, seeds):
    """The loss, and below it the first measure: thin lines are seeds, thick ones their means, dashed except for fp32's."""
    width, height, left, top = 640, 220, 60, 50
    n_epochs = len(runs["fp32", 1])
    out = [f"<svg xmlns='http://www.w3.org/2000/svg' width='{left + width + 20}' height='{2 * (top + height) + 44}' "
           "font-family='Helvetica, Arial, sans-serif' font-size='12' fill='#222'>",
           f"<rect width='100%' height='100%' fill='white'/><text x='{left}' y='22' font-weight='bold'>{title}</text>"]
    for panel, name in enumerate(list(runs["fp32", 1][0])[:2]):
        base = (panel + 1) * (top + height)
        curves = {p: [[e[name] for e in runs[p, s]] for s in seeds] for p in precisions}
        means = {p: [statistics.mean(e) for e in zip(*curves[p])] for p in precisions}
        values = [v for p in precisions for curve in curves[p] for v in curve]
        low, high = min(values), max(values)

        def x(epoch):
            return f"{left + width * epoch / max(n_epochs - 1, 1):.1f}"

        def y(value):
            return f"{base - height * (value - low) / (high - low or 1):.1f}"

        def line(curve, style):
            points = " ".join(f"{x(e)},{y(v)}" for e, v in enumerate(curve))
            return f"<polyline fill='none' {style} points='{points}'/>"

        out.append(f"<path d='M{left} {base - height}v{height}h{width}' fill='none' stroke='#444'/>")
        out += [f"<text x='{left - 6}' y='{y(v)}' text-anchor='end'>{v:.{digits(name)}f}</text>" for v in (low, high)]
        out += [f"<text x='{x(e)}' y='{base + 16}' text-anchor='middle'>{e + 1}</text>" for e in range(n_epochs)]
        for p in precisions:
            out += [line(curve, f"stroke='{COLOURS[p]}' stroke-opacity='0.35'") for curve in curves[p]]
        for p in precisions:
            out.append(line(means[p], f"stroke='{COLOURS[p]}' stroke-width='2'" + " stroke-dasharray='6 6'" * (p != "fp32")))
        out.append(f"<text x='{left}' y='{base - height - 8}'>{name}: " + ", ".join(
            f"<tspan fill='{COLOURS[p]}'>{p} {means[p][-1]:.{digits(name)}f}</tspan>" for p in precisions) + "</text>")
    out.append(f"<text x='{left + width / 2}' y='{2 * (top + height) + 36}' text-anchor='middle'>epoch</text></svg>")
    path.write_text("\n".join(out) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seeds", type=int, default=3)
    p.add_argument("--precision", action="append", choices=ROUNDED)
    p.add_argument("--log", type=pathlib.Path)
    p.add_argument("--plot", type=pathlib.Path)
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
    tables(runs, precisions, seeds)
    if a.plot:
        plot(a.plot, ' '.join(recipe), runs, precisions, seeds)


if __name__ == "__main__":
    main()
