#!/usr/bin/env python3
"""Renders pictures with rsvg-convert and fails at the first picture that is broken.

    check_svg.py FILE.svg...

A picture is whole if it is XML, states its size, shows more than its background, and draws nothing outside its borders:
text that runs out of the picture would be cut off where it is shown.
"""

import re
import subprocess
import sys
from xml.etree import ElementTree

ZOOM = 4  # a picture is checked at a resolution that is so much lower
BORDER = 10 * ZOOM
LEAST = 4  # a picture's PNG is at least so many times as long as that of nothing; of a background alone: up to 2.3 times


def render(width, height, drawn):
    """Returns the PNG of what is drawn on a picture that has a border on each side."""
    svg = f"<svg xmlns='http://www.w3.org/2000/svg' width='{width + 2 * BORDER}' height='{height + 2 * BORDER}'>".encode()
    run = subprocess.run(["rsvg-convert", "-z", str(1 / ZOOM)], input=svg + drawn + b"</svg>", capture_output=True, check=False)
    if run.returncode or not run.stdout.startswith(b"\x89PNG"):
        raise ValueError(f"rsvg-convert: {run.stderr.decode(errors='replace').strip()}")
    return run.stdout


def check(path):
    with open(path, "rb") as file:
        svg = file.read()
    root = ElementTree.fromstring(svg)
    if root.tag != "{http://www.w3.org/2000/svg}svg":
        raise ValueError("it is no svg")
    width, height = (int(re.sub(r"px$", "", root.attrib[name])) for name in ("width", "height"))
    drawn = re.sub(rb"^.*?<svg\b", f"<svg x='{BORDER}' y='{BORDER}' overflow='visible'".encode(), svg, count=1, flags=re.S)
    # the borders of lines on the picture's edge may lie one rendered pixel outside
    inside = (f"<clipPath id='borders'><rect x='{BORDER - ZOOM}' y='{BORDER - ZOOM}' width='{width + 2 * ZOOM}' "
              f"height='{height + 2 * ZOOM}'/></clipPath><g clip-path='url(#borders)'>").encode() + drawn + b"</g>"
    whole = render(width, height, drawn)
    if whole != render(width, height, inside):
        raise ValueError("something is drawn outside its borders")
    if len(whole) < LEAST * len(render(width, height, b"")):
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
