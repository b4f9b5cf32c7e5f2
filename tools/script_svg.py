#!/usr/bin/env python3
"""Draws a small script: its phases, one below the other, and in each its tasks, with lines where the VPs wait for each other.

    vpps script NETWORK ... | tools/script_svg.py > picture.svg

Of a script of several groups, the first one's. Without third-party modules; the same script gives the same bytes.
"""

import argparse
import re
import sys
from html import escape

WIDTH, LEFT, ROW, GAP, TOP = 720, 92, 22, 16, 30
COLOURS = {"forward": "#c6dbef", "backward": "#fcbba1", "gradients": "#fee6ce", "update": "#c7e9c0", "other": "#e0e0e0"}
TASK = re.compile(r"^ +\d*  ([A-Z]+)\s*(.*)$")
STAGE = re.compile(r"block \d+ \((.*)\), stage \d+ \((backward )?(\w+), by (\w+)\), vertices (\d+) to (\d+)")


def read(lines):
    """The first group's phases: lists of (kind, text)."""
    cells, phases = {}, [[]]
    groups = 0
    for line in lines:
        block = re.match(r"block (\d+): (.*?), group", line)
        if block:
            cells[block[1]] = block[2]
        groups += line.startswith("group ")
        task = TASK.match(line)
        if not task or groups > 1:
            continue
        name, rest = task.groups()
        stage = STAGE.match(rest)
        if stage:
            n = int(stage[6]) - int(stage[5]) + 1
            kind = "backward" if stage[2] else "forward"
            part = "" if stage[3] == "main" else f" ({stage[3]})"
            phases[-1].append((kind, f"{stage[1]}, {kind}{part}: {n} {'vertex' if n == 1 else 'vertices'}"))
        elif name == "OUTER":
            block, _, n = rest.split(":")[0].split()[:3]
            phases[-1].append(("gradients", f"{cells[block]}: gradients of its parameters, {n} vertices"))
        elif name == "WAIT":
            phases.append([])
        elif name in ("ENTRIES", "LOSS", "NORM", "CONSTANTS", "UPDATE"):
            text = {"ENTRIES": "gradients of a table's entries", "LOSS": "the loss", "NORM": "the norm of the gradients",
                    "CONSTANTS": "constants", "UPDATE": "the optimiser's step for every parameter"}[name]
            kind = {"ENTRIES": "gradients", "UPDATE": "update"}.get(name, "other")
            phases[-1].append((kind, text))
    return [phase for phase in phases if phase]


def draw(phases, out):
    height = TOP + sum(len(p) * ROW + GAP for p in phases) + 8
    print(f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{height}' viewBox='0 0 {WIDTH} {height}' "
          "font-family='Helvetica, Arial, sans-serif' font-size='12' fill='#222'>", file=out)
    print(f"<rect width='{WIDTH}' height='{height}' fill='white'/>", file=out)
    print(f"<text x='{LEFT}' y='18' font-weight='bold'>What every virtual processor does, its share of each task</text>",
          file=out)
    y = TOP
    for number, phase in enumerate(phases, 1):
        print(f"<text x='{LEFT - 10}' y='{y + 15}' text-anchor='end'>phase {number}</text>", file=out)
        for kind, text in phase:
            print(f"<rect x='{LEFT}' y='{y}' width='{WIDTH - LEFT - 12}' height='{ROW - 2}' fill='{COLOURS[kind]}'/>"
                  f"<text x='{LEFT + 8}' y='{y + 14}'>{escape(text)}</text>", file=out)
            y += ROW
        if number < len(phases):
            print(f"<path d='M{LEFT} {y + GAP / 2 - 1:g}H{WIDTH - 12}' stroke='#555' stroke-dasharray='5 3'/>", file=out)
        y += GAP
    print("</svg>", file=out)


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    phases = read(sys.stdin)
    if not phases:
        sys.exit("script_svg: expected what `vpps script` prints")
    draw(phases, sys.stdout)


if __name__ == "__main__":
    main()
