#!/usr/bin/env python3
"""Renders pictures with rsvg-convert and fails at the first picture that is broken.

    check_svg.py FILE.svg...

A picture is whole if it is XML, states its size, shows more than its background, and draws nothing outside its borders:
text that runs out of the picture would be cut off where it is shown.
"""

import re
import struct
import subprocess
import sys
import zlib
from collections import Counter
from xml.etree import ElementTree

ZOOM = 4  # a picture is checked at a resolution that is so much lower
BORDER = 10 * ZOOM


def render(svg, *options):
    run = subprocess.run(["rsvg-convert", *options], input=svg, capture_output=True, check=False)
    if run.returncode or not run.stdout.startswith(b"\x89PNG"):
        raise ValueError(f"rsvg-convert: {run.stderr.decode(errors='replace').strip()}")
    return run.stdout


def size_of(png):
    return struct.unpack(">II", png[16:24])


def paeth(a, b, c):
    p = a + b - c
    pa, pb, pc = abs(p - a), abs(p - b), abs(p - c)
    return a if pa <= pb and pa <= pc else b if pb <= pc else c


def pixels(png):
    """Returns the rows of RGBA pixels of a PNG with 8 bits a channel (PNG specification, sections 5 and 9)."""
    width, height = size_of(png)
    channels = {2: 3, 6: 4}[png[25]]
    data, at = b"", 8
    while at < len(png):
        (n,) = struct.unpack(">I", png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            data += png[at + 8 : at + 8 + n]
        at += 12 + n
    data = zlib.decompress(data)
    stride, before, rows = width * channels, bytearray(width * channels), []
    for y in range(height):
        kind, row = data[y * (stride + 1)], bytearray(data[y * (stride + 1) + 1 : (y + 1) * (stride + 1)])
        for i in range(stride if kind else 0):
            left, corner = (row[i - channels], before[i - channels]) if i >= channels else (0, 0)
            row[i] = (row[i] + (0, left, before[i], (left + before[i]) // 2, paeth(left, before[i], corner))[kind]) & 255
        rows.append([tuple(row[i : i + channels]) + (255,) * (4 - channels) for i in range(0, stride, channels)])
        before = row
    return rows


def check(path):
    with open(path, "rb") as file:
        svg = file.read()
    root = ElementTree.fromstring(svg)
    if root.tag != "{http://www.w3.org/2000/svg}svg":
        raise ValueError("it is no svg")
    width, height = (int(re.sub(r"px$", "", root.attrib[name])) for name in ("width", "height"))
    inner = re.sub(rb"^.*?<svg\b", f"<svg x='{BORDER}' y='{BORDER}' overflow='visible'".encode(), svg, count=1, flags=re.S)
    svg = (f"<svg xmlns='http://www.w3.org/2000/svg' width='{width + 2 * BORDER}' height='{height + 2 * BORDER}'>".encode() + inner +
           b"</svg>")
    rows = pixels(render(svg, "-z", str(1 / ZOOM)))
    edge = BORDER // ZOOM
    for j, row in enumerate(rows):
        for i, pixel in enumerate(row):
            outside = min(i, j) < edge - 1 or i > len(row) - edge or j > len(rows) - edge
            if outside and pixel[3]:
                raise ValueError(f"something is drawn outside its borders, near {(i - edge) * ZOOM}, {(j - edge) * ZOOM}")
    counts = Counter(p for row in rows[edge:-edge] for p in row[edge:-edge])
    if len(counts) < 4 or counts.most_common(1)[0][1] > 0.995 * sum(counts.values()):
        raise ValueError("it is blank")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for path in sys.argv[1:]:
        try:
            check(path)
        except (ValueError, KeyError, OSError, ElementTree.ParseError) as error:
            sys.exit(f"{path}: {error}")


if __name__ == "__main__":
    main()
