#!/usr/bin/env python3
"""Draws the compiled cells of `vpps cell --json`, or the first plan of `vpps plan --json`.

    vpps cell NETWORK --json | tools/model_svg.py > cell.svg
    vpps plan NETWORK --json | tools/model_svg.py > plan.svg

A cell is a list of its operations, stage by stage in the order in which they run. Beside the list, every input and every kept value is a
column: a line from the operation that makes the value to the last operation that reads it. A plan shows the words that one thread of
every virtual processor keeps, each matrix in a colour of its own. Without third-party modules; the same input gives the same bytes.
"""
import argparse
import json
import re
import sys
from html import escape

MARGIN, ROW, HEAD, GAP, COLUMN, LABEL = 16, 16, 22, 6, 13, 84  # pixels
LETTER, TITLE_LETTER = 6.7, 8.6  # widths in the monospaced font that a picture asks for
MOST_LETTERS = 64  # of an operation
COLOURS = {"eager": "#009e73", "main": "#0072b2", "lazy": "#d55e00", None: "#777777"}  # of Okabe and Ito's palette


def text(x, y, what, more=""):
    return f"<text x='{x:.1f}' y='{y:.1f}'{more}>{escape(what)}</text>"


def picture(width, height, body):
    return (f"<svg xmlns='http://www.w3.org/2000/svg' width='{width:.0f}' height='{height:.0f}' viewBox='0 0 {width:.0f} {height:.0f}' "
            "font-family='DejaVu Sans Mono, Menlo, Consolas, monospace' font-size='11' fill='#222'>\n"
            f"<rect width='{width:.0f}' height='{height:.0f}' fill='white'/>\n" + "\n".join(body) + "\n</svg>")


def cell_bands(cell):
    """What a cell does, in order: (heading, part, rows), a row being (name, text, note)."""
    def size(x):
        return f"{x['rows']} x {x['cols']}"

    outputs = {}
    for number, output in enumerate(cell["outputs"]):
        outputs.setdefault(output["value"], []).append(f"out{number}")
    reads = [(x["name"], f"{x['name']} = {x['from']}", size(x)) for x in cell["inputs"]]
    reads += [(x["table"], f"a row of {x['table']}", size(x)) for x in cell["lookups"]]
    if reads:
        yield "reads", None, reads
    for number, stage in enumerate(cell["stages"]):
        rows = [(o["value"], f"{o['value']} = {o['is']}",
                 ", ".join([size(o) + (" a member" if o["member"] else ""), *(["recomputed"] if o["recomputed"] else []),
                            *outputs.get(o["value"], [])])) for o in stage["operations"]]
        yield f"stage {number}: {stage['direction']} {stage['part']}, by {stage['split']}", stage["part"], rows
    if cell["gradients"]:
        yield ("gradients of parameters, when all vertices are done", None,
               [(None, x["is"], f"{x['rows']} x {x['cols']}") for x in cell["gradients"]])


def draw_cell(cell, top):
    """(lines of the picture, width, y of the end)"""
    bands = list(cell_bands(cell))
    rows = [row for _, _, band in bands for row in band]
    notes_x = MARGIN + 8 + max([24, *(min(len(row[1]), MOST_LETTERS) for row in rows)]) * LETTER + 14
    kept = [x["value"] for x in cell["kept"]["values"]]
    names = [row[0] for row in bands[0][2]] + kept if bands and bands[0][0] == "reads" else kept
    title = (f"{cell['name']}: {len(cell['stages'])} stage{'s' * (len(cell['stages']) != 1)}, a record of "
             f"{cell['kept']['words']} words a vertex")
    columns_x = max(notes_x + max([0, *(len(row[2]) for row in rows)]) * LETTER, MARGIN + len(title) * TITLE_LETTER) + 28
    width = columns_x + len(names) * COLUMN + MARGIN
    x_of = {name: columns_x + number * COLUMN for number, name in enumerate(names)}
    body = [text(MARGIN, top + 20, title, " font-size='14' font-weight='bold'")]
    y = top + LABEL
    for name in names:
        body.append(f"<text transform='translate({x_of[name] + 4:.1f} {y - 6:.1f}) rotate(-90)'>{escape(name[:12])}</text>")
    made, read, colour, marks = {}, {}, {}, []
    for heading, part, band in bands:
        body.append(f"<rect x='{MARGIN}' y='{y}' width='{width - 2 * MARGIN:.1f}' height='{HEAD + len(band) * ROW}' "
                    f"fill='{COLOURS.get(part)}' fill-opacity='0.1'/>")
        body.append(text(MARGIN + 8, y + 15, heading, f" font-weight='bold' fill='{COLOURS.get(part)}'"))
        y += HEAD
        for name, what, note in band:
            shown = what if len(what) <= MOST_LETTERS else what[:MOST_LETTERS - 3] + "..."
            body.append(text(MARGIN + 8, y + ROW - 4, shown).replace("</text>", f"<title>{escape(what)}</title></text>"))
            body.append(text(notes_x, y + ROW - 4, note))
            for other in set(re.findall(r"[\w.]+", what.split("=", 1)[-1])) & made.keys():
                read[other] = y + ROW / 2
                marks.append((other, y + ROW / 2))
            if name in x_of:
                made[name], colour[name] = y + ROW / 2, COLOURS.get(part)
            y += ROW
        y += GAP
    for name in filter(read.get, names):
        body.append(f"<path d='M{x_of[name]:.1f} {made[name]:.1f}V{read[name]:.1f}' stroke='{colour[name]}' stroke-width='3'>"
                    f"<title>{escape(name)}</title></path>")
    body += [f"<circle cx='{x_of[name]:.1f}' cy='{at:.1f}' r='2.5' fill='white' stroke='{colour[name]}'/>" for name, at in sorted(marks)]
    body += [f"<circle cx='{x_of[name]:.1f}' cy='{at:.1f}' r='4' fill='{colour[name]}'/>" for name, at in made.items()]
    return body, width, y + MARGIN


def draw_cells(cells):
    explanation = "A column is an input or a kept value; its line goes from the operation that makes it to the last one that reads it."
    body, y, width = [text(MARGIN, 24, explanation)], 44, 2 * MARGIN + len(explanation) * LETTER
    for cell in cells:
        lines, needed, y = draw_cell(cell, y)
        body, width = body + lines, max(width, needed)
    return picture(width, y, body)


def draw_plan(plan):
    left, across, per_word, across_legend = 70, 1056, 2, 264
    items = [(x.get("name", x.get("rows_of")), x["level"], x.get("words_of_thread", 0), x.get("transposed", False))
             for x in plan.get("fragments") or plan["matrices"]]
    colours = [f"hsl({360 * i / len(items):.0f},60%,{34 if item[3] else 55}%)" for i, item in enumerate(items)]
    body = [text(left, 26, f"{plan['machine']}: {plan['vps']} VPs of {plan['threads']} threads", " font-size='15' font-weight='bold'")]
    y = 64
    for level, title in (("registers", "words in registers of a thread"), ("shared", "words in shared memory, of a thread")):
        words = sum(item[2] for item in items if item[1] == level)
        if not words:
            continue
        body.append(text(left, y - 8, f"{title}: {words}"))
        bottom = y + words * per_word
        for (name, of, count, transposed), colour in zip(items, colours):
            if of == level:
                bottom -= count * per_word
                body.append(f"<rect x='{left}' y='{bottom}' width='{across}' height='{count * per_word}' fill='{colour}'>"
                            f"<title>{escape(name)}{', transposed' if transposed else ''}: {count}</title></rect>")
        y += words * per_word + 50
    for i, ((name, level, count, transposed), colour) in enumerate(zip(items, colours)):
        x, at = left + i % 4 * across_legend, y + i // 4 * 20
        body.append(f"<rect x='{x}' y='{at}' width='12' height='12' fill='{colour}'/>")
        label = name + (", transposed" if transposed else "") + (", not kept" if level not in ("registers", "shared") else "")
        body.append(text(x + 17, at + 10, label if len(label) <= 36 else label[:33] + "..."))
    return picture(left + across + 20, y + (len(items) // 4 + 1) * 20 + 30, body)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    try:
        data = json.load(sys.stdin)
        drawn = draw_cells(data["cells"]) if "cells" in data else draw_plan(data["plans"][0])
    except (ValueError, KeyError, TypeError, IndexError):
        sys.exit("model_svg.py: expected what vpps cell --json or vpps plan --json prints")
    print(drawn)


if __name__ == "__main__":
    main()
