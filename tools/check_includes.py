#!/usr/bin/env python3
"""Fails when a file includes against the order of folders, names what only the compiler of cells knows, or is in a circle of includes.

    tools/check_includes.py [FOLDER]     the one that holds src, include and models; without it this repository

What depends on what is declared here, and nowhere else. A file is its .c and its .h together: a circle is a chain of
includes that comes back to where it began. System headers do not count.
"""

import argparse
import os
import re
import sys

# What the files of a folder may include, besides each other; the lowest folder first.
MAY_INCLUDE = {
    "include": [],
    "models": ["include"],
    "src/base": ["include"],
    "src/interp_templates": [],  # is compiled by NVRTC, too, which sees no headers
    "src/io": ["include", "src/base"],
    "src/graph": ["include", "src/base"],
    "src/isa": ["include", "src/base", "src/graph"],
    "src/cell": ["include", "src/base", "src/graph", "src/isa"],
    "src/script": ["include", "src/base", "src/graph", "src/isa", "src/cell"],
    "src/script/verify": ["include", "src/base", "src/graph", "src/isa", "src/cell", "src/script"],
    "src/codegen": ["include", "src/base", "src/io", "src/interp_templates", "src/graph", "src/isa", "src/cell",
                    "src/script"],
    "src/export": ["include", "src/base", "src/graph", "src/isa", "src/cell"],
    "src/runtime": ["include", "src/base", "src/io", "src/graph", "src/isa", "src/cell", "src/script",
                    "src/script/verify", "src/codegen", "src/runtime/comm"],
    "src/runtime/comm": ["include", "src/base"],
    "src/runtime/cpu": ["include", "src/base", "src/graph", "src/isa", "src/cell", "src/script",
                        "src/codegen", "src/runtime", "src/runtime/comm"],
    "src/runtime/simt": ["include", "src/base", "src/io", "src/interp_templates", "src/codegen"],
    "src/runtime/gpu": ["include", "src/base", "src/interp_templates", "src/graph", "src/isa", "src/cell",
                        "src/script", "src/codegen", "src/runtime", "src/runtime/comm", "src/runtime/simt"],
    "src/cli/main": [],  # parts of a program that the command writes
}
# The command's folders, the lowest first; each may also include those before it.
COMMAND = ["common", "options", "input", "session", "output", "tasks", "commands"]
for i, name in enumerate(COMMAND):
    MAY_INCLUDE["src/cli/" + name] = ["include", "models", "src", *("src/cli/" + n for n in COMMAND[:i])]  # "src": all but the command's

# Where names between quotes are looked for, besides the file's own folder.
ROOTS = ["include", "src", "models"]

SUFFIXES = (".c", ".h", ".def", ".cuh")
INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')


def sources():
    for top in ("include", "models", "src"):
        for folder, _, names in sorted(os.walk(top)):
            yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(SUFFIXES))


def includes(path):
    """(line, included file) for every include of a file of this repository; None for one that is nowhere."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            places = [os.path.normpath(os.path.join(root, match[1])) for root in [os.path.dirname(path), *ROOTS]]
            yield number, match[1], next((place for place in places if os.path.isfile(place)), None)


def allowed(folder, other):
    declared = MAY_INCLUDE[folder]
    inside_src = other.startswith("src/") and not other.startswith("src/cli/")
    return other == folder or other in declared or ("src" in declared and inside_src)


def circles(graph):
    """The strongly connected parts of more than one file (Tarjan), each as a list."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph.get(node, {}):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(part) > 1:
                found.append(sorted(part))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def check():
    wrong, graph = [], {}
    for path in sources():
        folder = os.path.dirname(path)
        if folder not in MAY_INCLUDE:
            wrong.append(f"{path}:1: {folder} has no place in the order of folders (MAY_INCLUDE)")
            continue
        with open(path, encoding="utf-8") as file:  # devices and generators read programs (cell/program.h)
            if folder.startswith(("src/codegen", "src/runtime")) and re.search(r"\bvpps_cell_(arg|value|outer)\b", file.read()):
                wrong.append(f"{path}:1: {folder} may not name what only the passes of src/cell know: vpps_cell_arg, _value, _outer")
        for line, name, other in includes(path):
            if other is None:
                wrong.append(f'{path}:{line}: "{name}" is no file of this repository')
                continue
            if not allowed(folder, os.path.dirname(other)):
                wrong.append(f"{path}:{line}: {folder} may not include {other}")
            here, there = os.path.splitext(path)[0], os.path.splitext(other)[0]
            if here != there:
                graph.setdefault(here, {}).setdefault(there, f"{path}:{line}")
    for part in circles(graph):
        wrong.append(f"a circle of includes: {', '.join(part)}")
        for here in part:
            wrong += [f"    {where}: {there}" for there, where in graph[here].items() if there in part]
    return wrong


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", nargs="?", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    folder = p.parse_args().folder
    if not os.path.isdir(os.path.join(folder, "src")):
        p.error(f"{folder}: expected a folder that holds src, include and models")
    os.chdir(folder)
    sys.setrecursionlimit(10000)
    sys.exit("\n".join(check()) or 0)
