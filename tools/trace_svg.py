#!/usr/bin/env python3
"""Draws a part of a trace that `vpps train --trace` wrote: a line for the host and one for each virtual processor.

    tools/trace_svg.py TRACE.json [--batch N] [--count K] > picture.svg

From when the host begins to build batch N's graph (the middle one of the trace) to the end of the Kth batch (1) on the
device. Without third-party modules; the same trace gives the same bytes.
"""

import argparse
import json
import re
import sys
from html import escape

WIDTH, LEFT, RIGHT, TOP, LANE, GAP = 960, 64, 12, 34, 26, 10

# Kinds of spans: colour, and what the legend says. In the order of the legend.
KINDS = {
    "build": ("#8c6bb1", "build the graph"),
    "schedule": ("#c994c7", "schedule"),
    "launch": ("#e7e1ef", "launch"),
    "forward": ("#4292c6", "forward"),
    "backward": ("#ef6548", "backward"),
    "gradients": ("#fdbb84", "gradients of parameters"),
    "update": ("#41ab5d", "update"),
    "task": ("#969696", "other tasks"),
    "wait": ("#f0f0f0", "wait"),
}


def kind_of(event):
    name, category = event["name"], event["cat"]
    if category == "stage":
        return event["args"]["pass"]
    if category in ("gradients", "wait"):
        return category
    if category == "task":
        return "update" if name == "update" else "task"
    if category == "host":
        return {"build graph": "build", "wait for device": "wait"}.get(name, name if name in KINDS else None)
    return None  # batches and phases enclose what is drawn


def choose(events, batch, count):
    """The window as (begin, end), in microseconds, and the number of the first batch."""
    runs = {e["args"]["batch"]: e for e in events if e["tid"] == 2 and e["args"]["batch"]}
    if not runs:
        sys.exit("trace_svg: the trace has no training batch")
    batch = batch or sorted(runs)[len(runs) // 2]
    last = batch + count - 1
    if batch not in runs or last not in runs:
        sys.exit(f"trace_svg: the trace has batches {min(runs)} to {max(runs)}, not {batch} to {last}")
    begin = runs[batch]["ts"]
    builds = [e["ts"] for e in events if e["name"] == "build graph" and e["ts"] < begin]
    ends = [e["ts"] + e["dur"] for e in events if e["cat"] == "batch" and e["args"]["batch"] == last]
    return max(builds, default=begin), max(ends), batch


def nice_step(span):
    step = 1.0
    while span / step > 12:
        step *= 2.5 if str(step).startswith("2") else 2
    return step


def draw(trace, batch, count, out):
    events = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    names = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    tracks = [t for t in sorted(names) if t != 2]  # the device's line says what the VPs' lines do
    if tracks == [1]:
        tracks = [1, 2]  # unless they are not followed
    begin, end, batch = choose(events, batch, count)
    scale = (WIDTH - LEFT - RIGHT) / (end - begin)
    bottom = TOP + len(tracks) * (LANE + GAP)
    height = bottom + 52

    def x(ts):
        return LEFT + (ts - begin) * scale

    print(f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{height}' viewBox='0 0 {WIDTH} {height}' "
          "font-family='Helvetica, Arial, sans-serif' font-size='12' fill='#222'>", file=out)
    print(f"<rect width='{WIDTH}' height='{height}' fill='white'/>", file=out)
    title = f"batch {batch}" if count == 1 else f"batches {batch} to {batch + count - 1}"
    print(f"<text x='{LEFT}' y='20' font-weight='bold'>{title}: {end - begin:,.0f} us</text>", file=out)
    seen = set()
    for lane, track in enumerate(tracks):
        y = TOP + lane * (LANE + GAP)
        print(f"<text x='{LEFT - 8}' y='{y + LANE - 8}' text-anchor='end'>{escape(names[track])}</text>", file=out)
        for e in events:
            if e["tid"] != track or e["ts"] >= end or e["ts"] + e["dur"] <= begin:
                continue
            kind = kind_of(e) if track != 2 else "task"
            if not kind:
                continue
            seen.add(kind)
            left, right = x(max(e["ts"], begin)), x(min(e["ts"] + e["dur"], end))
            if right - left < 0.02:
                continue
            print(f"<rect x='{left:.2f}' y='{y}' width='{right - left:.2f}' height='{LANE}' "
                  f"fill='{KINDS[kind][0]}'><title>{escape(e['name'])}: {e['dur']:.1f} us</title></rect>", file=out)
    step = nice_step(end - begin)
    for i in range(int((end - begin) / step) + 1):
        at = x(begin + i * step)
        print(f"<path d='M{at:.1f} {bottom - 4}v4' stroke='#222'/><text x='{at:.1f}' y='{bottom + 14}' "
              f"text-anchor='middle'>{i * step:g}</text>", file=out)
    at = LEFT
    for kind, (colour, text) in KINDS.items():
        if kind not in seen:
            continue
        print(f"<rect x='{at}' y='{height - 24}' width='12' height='12' fill='{colour}' stroke='#999' "
              f"stroke-width='0.5'/><text x='{at + 17}' y='{height - 14}'>{text}</text>", file=out)
        at += 34 + round(6.2 * len(text))
    print("</svg>", file=out)


def main():
    parser = argparse.ArgumentParser(description=re.sub(r"\n\n.*", "", __doc__, flags=re.S))
    parser.add_argument("trace")
    parser.add_argument("--batch", type=int, help="the first one drawn (default: the middle one of the trace)")
    parser.add_argument("--count", type=int, default=1, help="batches drawn (default: 1)")
    options = parser.parse_args()
    with open(options.trace, encoding="utf-8") as file:
        trace = json.load(file)
    draw(trace, options.batch, options.count, sys.stdout)


if __name__ == "__main__":
    main()
