#!/usr/bin/env python3
"""Runs recipes, draws their curves, and writes a table of what they reached.

    bench/recipes/all.py [--out DIR] [--table-only] [NAME...]

Each recipe leaves NAME.svg and NAME.jsonl in DIR (default bench/results/recipes); results.md is made of all logs there.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(os.path.relpath(os.path.dirname(__file__)))
RECIPES = {  # name: script and arguments
    **{f"sst-{n}": ["sst.sh", n] for n in
       ("tree-lstm", "tree-gru", "tree-lstm-2type", "rvnn", "mv-rnn", "td-rnn", "td-lstm")},
    "treebank-tree-gru": ["treebank.sh"],
    "gum-relations": ["dependencies.sh", "relations"],
    "gum-labels": ["dependencies.sh", "labels"],
    "wikiner-bilstm-tagger": ["wikiner.sh", "bilstm-tagger"],
    "wikiner-bilstm-char-tagger": ["wikiner.sh", "bilstm-char-tagger"],
    "wikiner-transformer-tagger": ["wikiner.sh", "transformer-tagger"],
    "ptb-lstm-lm": ["ptb.sh", "lstm-lm"],
    "ptb-lstm-lm-fixed": ["ptb.sh", "lstm-lm-fixed"],
    "multi30k-lstm-nmt": ["multi30k.sh"],
    "iwslt-lstm-nmt": ["iwslt.sh"],
    "weibo-lattice-lstm": ["weibo.sh", "weibo"],
    "lattice-ids-lattice-lstm": ["weibo.sh", "lattice-ids"],
    "multi30k-lattice-gru": ["lattice_nmt.sh"],
}
SHARES = {"root", "nodes", "f1", "accuracy", "precision", "recall"}


def shown(measures):
    if not measures:
        return "-"
    return ", ".join(f"{k} {100 * v:.1f} %" if k in SHARES else f"{k} {v:.1f}"
                     for k, v in measures.items() if v is not None)


def table(out):
    lines = ["# What the recipes reach", "",
             "`bench/recipes/all.py` runs them and writes this. Loss: the mean of the last epoch. s: seconds of training, without measuring,",
             "on two cores of a machine that did other work as well. NAME.svg is a recipe's curve; `git log -1 NAME.jsonl` tells its commit. -: the",
             "data has no such part.",
             "", "| recipe | command | epochs | loss | dev | test | best dev, after epoch | s |",
             "| --- | --- | ---: | ---: | --- | --- | --- | ---: |"]
    for name, command in RECIPES.items():
        log = out / f"{name}.jsonl"
        if not log.exists():
            continue
        ends = [e for e in map(json.loads, log.open()) if e["event"] == "end"]
        if not ends:
            continue
        e = ends[-1]
        best = "-" if e["best_dev"] is None else f"{e['best_dev']:.4g}, {e['best_dev_epoch']}"
        lines.append(f"| [{name}]({name}.svg) | `bench/recipes/{' '.join(command)}` | {e['epochs']} | {e['loss']:.3f} | "
                     f"{shown(e['dev'])} | {shown(e['test'])} | {best} | {e['seconds']:.0f} |")
    (out / "results.md").write_text("\n".join(lines) + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=pathlib.Path, default=HERE.parent / "results" / "recipes")
    p.add_argument("--table-only", action="store_true", help="run nothing: make the table of the logs that are there")
    p.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    a = p.parse_args()
    unknown = [n for n in a.names if n not in RECIPES]
    if unknown:
        p.error(f"no recipe {unknown[0]}; there are {', '.join(RECIPES)}")
    a.out.mkdir(parents=True, exist_ok=True)
    for name in [] if a.table_only else a.names or RECIPES:
        script, *arguments = RECIPES[name]
        print(f"{name}: {script} {' '.join(arguments)}", file=sys.stderr)
        files = ["--force", "--log", a.out / f"{name}.jsonl", "--plot", a.out / f"{name}.svg", "--log-every", "100"]
        subprocess.run([HERE / script, *arguments, *files], check=True)
    table(a.out)


if __name__ == "__main__":
    main()
