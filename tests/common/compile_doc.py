#!/usr/bin/env python3
"""Compiles a document's ```c blocks. Each block becomes the body of a function that has a model `m`, a handle `h`, a graph `g` and a node `loss`, and
in which TRY returns when a call fails.

    compile_doc.py FILE.md -- CC FLAGS...
"""

import re
import subprocess
import sys

PREAMBLE = """
#include <math.h>
#include <vpps.h>
#define TRY(call)                                                                                                      \\
    do {                                                                                                               \\
        const vpps_status status_ = (call);                                                                            \\
        if (status_ != VPPS_OK) return status_;                                                                        \\
    } while (0)
vpps_node build_part(vpps_graph *g, int part);
vpps_node build_window(vpps_graph *g, int window, vpps_node *state);
enum { HIDDEN = 2, WINDOWS = 3 };
static const float zeros[HIDDEN];
vpps_param word_table(vpps_model *m);
vpps_node node_named(const char *name);
"""


def main():
    path, command = sys.argv[1], sys.argv[sys.argv.index("--") + 1 :]
    with open(path, encoding="utf-8") as file:
        blocks = re.findall(r"^```c\n(.*?)^```$", file.read(), re.M | re.S)
    bodies = [f"vpps_status block_{i}(vpps_model *m, vpps_handle *h, vpps_graph *g, vpps_node loss);\n"
              f"vpps_status block_{i}(vpps_model *m, vpps_handle *h, vpps_graph *g, vpps_node loss) {{\n(void)m, (void)h, (void)g, (void)loss;\n"
              f"{body}return VPPS_OK;\n}}\n" for i, body in enumerate(blocks)]
    run = subprocess.run([*command, "-fsyntax-only", "-xc", "-"], input=PREAMBLE + "".join(bodies), text=True, check=False)
    if run.returncode or not blocks:
        sys.exit(f"{path}: {len(blocks)} blocks, which do not compile")


if __name__ == "__main__":
    main()
