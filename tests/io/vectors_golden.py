#!/usr/bin/env python3
"""vectors_golden.py - writes small models of fastText's own program to tests/io/fasttext, and the vectors they give as a C header.

    pip install fasttext numpy; tests/io/vectors_golden.py > tests/io/vectors_golden.h

vectors_tests.c compares what is read of the models with these vectors.
"""
import os
import tempfile

import fasttext
import numpy

TEXT = "der h\u00e4user \u4e2d\u6587 the cat saw the dog and the cat ran to the dog\n" * 3
SIZE = 3
ASKED = ["the", "cat", "h\u00e4user", "\u4e2d\u6587", "</s>", "dogs", "unseen", "\u00e4", "x"]


def models(folder):
    plain = os.path.join(folder, "plain.txt")
    labelled = os.path.join(folder, "labelled.txt")
    open(plain, "w").write(TEXT)
    open(labelled, "w").write("".join(f"__label__{i % 2} {TEXT}" for i in range(4)))
    common = dict(dim=SIZE, epoch=0, thread=1, verbose=0, minCount=1)
    yield "skipgram", fasttext.train_unsupervised(plain, minn=2, maxn=4, bucket=13, **common)
    yield "plain_words", fasttext.train_unsupervised(plain, model="cbow", minn=0, maxn=0, bucket=0, **common)
    yield "supervised", fasttext.train_supervised(labelled, minn=1, maxn=2, bucket=7, **common)


def string(text):
    return '"' + "".join(f"\\x{b:02x}" for b in text.encode()) + '"'


print("/* vectors_golden.h - written by vectors_golden.py: the vectors that fastText gives with the models in tests/io/fasttext. */")
print("#pragma once\n\n/* clang-format off */")
print("enum { GOLDEN_SIZE = 3 };\n")
print("static const char *const golden_asked[] = {" + ", ".join(string(w) for w in ASKED) + "};\n")
with tempfile.TemporaryDirectory() as folder:
    rows = []
    random = numpy.random.default_rng(5)
    for name, model in models(folder):
        matrices = [model.get_input_matrix(), model.get_output_matrix()]
        model.set_matrices(*(random.uniform(-1, 1, m.shape).astype(numpy.float32) for m in matrices))
        path = os.path.join(os.path.dirname(__file__), "fasttext", name + ".bin")
        model.save_model(path)
        known = set(model.get_words(on_unicode_error="strict"))
        vectors = ", ".join("{" + ", ".join(f"{x:.9g}f" if "." in f"{x:.9g}" or "e" in f"{x:.9g}" else f"{x:.1f}f"
                                            for x in model.get_word_vector(w)) + "}" for w in ASKED)
        rows.append(f'    {{"{name}", {sum(w in known for w in ASKED)},\n     {{{vectors}}}}},')
print("\nstatic const struct golden_model {")
print("    const char *name; /* of the model's file in tests/io/fasttext */\n    uint32_t known; /* of the words */")
print(f"    float vectors[{len(ASKED)}][GOLDEN_SIZE];\n}} golden_models[] = {{")
print("\n".join(rows))
print("};\n/* clang-format on */")
