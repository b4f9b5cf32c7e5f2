#!/usr/bin/env python3
"""Trees in brackets as graphs with the label of the root: a node for each constituent with its label, leaves with their words, and an edge
from each to its parent, of type left or right.

    bench/recipes/tree_graphs.py TREES > GRAPHS
"""
import re
import sys


def add(tokens, nodes, edges):
    """The next subtree of the tokens as lines; the number of its root."""
    label, children, word = next(tokens), [], "*"
    while (token := next(tokens)) != ")":
        if token == "(":
            children.append(add(tokens, nodes, edges))
        else:
            word = token
    nodes.append(f"node {word} {label}")
    edges += (f"edge {child} {len(nodes)} {side}" for child, side in zip(children, ("left", "right")))
    return len(nodes)


def graph_of(line):
    nodes, edges, tokens = [], [], iter(re.findall(r"[()]|[^\s()]+", line))
    if next(tokens, None) == "(":
        add(tokens, nodes, edges)
    return [f"graph {nodes[-1].split()[-1]}", *nodes, *edges] if nodes else []


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in file:
            sys.stdout.writelines(text + "\n" for text in graph_of(line))


if __name__ == "__main__":
    main()
