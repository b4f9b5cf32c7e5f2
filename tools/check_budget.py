#!/usr/bin/env python3
"""Counts the lines of the sources, and fails where a group of folders has more than tools/budget.txt allows.

    tools/check_budget.py

A line of that file is: a name, the most lines, and folders. A folder that is named by itself does not count for the one that holds it.
What counts are files that git follows and whose names end as a source's do; comments and blank lines are lines too.
"""
import argparse
import os
import subprocess
import sys

SUFFIXES = (".c", ".h", ".cuh", ".def", ".S", ".sh", ".py")


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    with open("tools/budget.txt", encoding="utf-8") as file:
        rows = [line.split() for line in file if line.strip() and not line.startswith("#")]
    if not os.path.exists(".git"):
        print("skipped: lines are counted of what git follows")
        return
    lines = {name: 0 for name, *_ in rows}
    group = {folder: name for name, _, *folders in rows for folder in folders}
    for path in subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout.splitlines():
        folder = os.path.dirname(path)
        while folder and folder not in group:
            folder = os.path.dirname(folder)
        if folder and path.endswith(SUFFIXES) and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                lines[group[folder]] += sum(1 for _ in file)
    over = [f"{name}: {lines[name]:,} lines, {int(most):,} at most" for name, most, *_ in rows if lines[name] > int(most)]
    for name, most, *_ in rows:
        print(f"{name:12}{lines[name]:8,} of {int(most):,}")
    if over:
        sys.exit("tools/budget.txt: " + "; ".join(over) + "\nTake lines out, or raise the number and say why in the commit.")


if __name__ == "__main__":
    main()
