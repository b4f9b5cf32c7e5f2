#!/usr/bin/env python3
"""Writes lattices of ids (the data of ED-Batch's benchmark: train.txt, dev.txt, test.txt) as VPPS reads lattices: lines of characters and
their tags, and a lexicon. Character k becomes chr(0x4e00 + k), and a word the characters below its arcs. In these data every arc of a word
has the same characters, and wherever these characters stand there is an arc of the word, so that the lattices stay the same.

    bench/recipes/lattice_text.py FROM TO [FILE...]     FROM, TO: folders; FILE: only these of FROM (default: all three)
"""
import os
import sys


def lattices(path):
    """Lattices of ids, each its characters, its arcs of words (where they begin, where they end, id), and the tags of its nodes; node k is
    after character k."""
    with open(path, encoding="utf-8") as file:
        numbers = map(int, file.read().split())
    for _ in range(next(numbers)):
        n = next(numbers)
        tags = [next(numbers) for _ in range(n)]
        arcs = [(next(numbers), k, next(numbers)) for k in range(n) for _ in range(next(numbers))]
        yield [x for begin, end, x in arcs if begin == end - 1], [arc for arc in arcs if arc[0] < arc[1] - 1], tags


def main(source, to, *names):
    words = {}
    os.makedirs(to, exist_ok=True)
    for name in names or ("train.txt", "dev.txt", "test.txt"):
        with open(os.path.join(to, name), "w", encoding="utf-8") as file:
            for characters, arcs, tags in lattices(os.path.join(source, name)):
                text = "".join(chr(0x4e00 + c) for c in characters)
                for begin, end, word in arcs:
                    if words.setdefault(word, text[begin:end]) != text[begin:end]:
                        sys.exit(f"{name}: word {word} has two spellings")
                file.write("".join(f"{c} {tag}\n" for c, tag in zip(text, tags[1:])) + "\n")
    with open(os.path.join(to, "lexicon"), "w", encoding="utf-8") as file:
        file.writelines(f"{words[word]}\n" for word in sorted(words))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
