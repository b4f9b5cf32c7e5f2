#!/usr/bin/env python3
"""Runs the commands of a document's ```console blocks, in order, in this folder, and compares what they print.

    run_doc.py FILE.md

A line "$ COMMAND" is run; the lines up to the next one are what it must print, but for numbers and the width of gaps: they depend on
the machine. A line "..." stands for any lines, "..." inside a line for any text.
"""

import re
import subprocess
import sys


def plain(line):
    line = re.sub(r", [\d.]+ \w+ of start-up left out$", "", line)  # printed if start-up took a tenth of the run
    return re.sub(r"\s+", " ", re.sub(r"[\d.,]*\d", "N", line)).strip()


def pattern_of(expected):
    return "".join("(?:.*\n)*" if line == "..." else
                   ".*".join(re.escape(plain(part)) for part in line.split("...")) + "\n"
                   for line in expected.splitlines())


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        blocks = re.findall(r"^```console\n(.*?)^```$", file.read(), re.M | re.S)
    n = 0
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(blocks), re.M):
        n += 1
        run = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        shown = "".join(plain(line) + "\n" for line in run.stdout.splitlines())
        if run.returncode or not re.fullmatch(pattern_of(expected), shown):
            sys.exit(f"{sys.argv[1]}: $ {command}\nstatus {run.returncode}; expected\n{expected}but it printed\n{run.stdout}")
    if not n:
        sys.exit(f"{sys.argv[1]}: it has no commands")


if __name__ == "__main__":
    main()
