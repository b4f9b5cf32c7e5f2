#!/usr/bin/env python3
"""Trees in brackets as sentences: the root's label, a tab, the words.

    bench/recipes/tree_sentences.py TREES > SENTENCES
"""
import re
import sys


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in file:
            tokens = re.findall(r"[()]|[^\s()]+", line)
            words = [word for word, after in zip(tokens, tokens[1:]) if after == ")" != word]
            if words:
                print(f"{tokens[1]}\t{' '.join(words)}")


if __name__ == "__main__":
    main()
