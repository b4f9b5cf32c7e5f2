#!/usr/bin/env python3
"""Times sentences through exported C (`vpps export --c --main`) on one core, beside `vpps predict` and, where PyTorch is installed, torch.jit.

    bench/c_export.py [--rounds N] [--sentences N] [--data DIR] [--cc COMMAND]

Tree-LSTM 256 on sentences of the Stanford Sentiment Treebank, and a BiLSTM tagger 256 of one layer on sentences of WikiNER, untrained: the
time does not depend on the weights' values. Of each program: the median over the rounds of its processor time a sentence, by the
difference of two runs, one with four times as many sentences, so that starting and reading the weights do not count. Programs take turns, so
that a busy machine slows all of them. Prints a Markdown table.
"""
import argparse
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("BUILD", "build"))
VPPS = os.environ.get("VPPS", str(BUILD / "vpps"))
SIZES = ["--hidden", "256", "--embed", "256", "--min-count", "20", "--epochs", "0", "--vps", "1", "--quiet", "--force"]
CASES = {"tree-lstm": ("sst/dev.txt", ["--train", "sst/train.txt"]), "bilstm-tagger": ("wikiner/dev.txt", ["--train", "wikiner/train.txt", "--mlp", "0"])}


def cpu_seconds(command, text):
    """The processor time of a process that reads the text."""
    with tempfile.TemporaryFile() as given:
        given.write(text)
        given.seek(0)
        child = subprocess.Popen(command, stdin=given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(map(str, command))} ended with status {status}")
    return used.ru_utime + used.ru_stime


def per_sentence(command, lines):
    short, long = (cpu_seconds(command, b"\n".join(lines * n) + b"\n") for n in (1, 5))
    return 1e3 * (long - short) / (4 * len(lines))


def torch_tagger(lines, classes):
    """A function that tags all lines once by torch.jit on one thread; None: there is no PyTorch."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)

    class Tagger(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words = torch.nn.Embedding(2000, 256)
            self.lstm = torch.nn.LSTM(256, 256, bidirectional=True)
            self.scores = torch.nn.Linear(512, classes)

        def forward(self, words):
            return self.scores(self.lstm(self.words(words))[0]).argmax(1)

    net = torch.jit.freeze(torch.jit.script(Tagger().eval()))
    sentences = [torch.randint(0, 2000, (len(line.split()),)) for line in lines]

    def run():
        with torch.inference_mode():
            start = time.process_time()
            for words in sentences:
                net(words)
            return 1e3 * (time.process_time() - start) / len(sentences)
    run()
    return run


def programs(o, work, network):
    """(name, command) of each program, after it was made; and the lines that it reads."""
    data, options = CASES[network]
    options = [str(pathlib.Path(o.data) / x) if x.endswith(".txt") else x for x in options]
    checkpoint = work / f"{network}.ckpt"
    subprocess.run([VPPS, "train", network, *options, *SIZES, "--save", checkpoint], check=True)
    made = []
    for precision in ("fp32", "bf16", "int8"):
        source, program = work / f"{network}-{precision}.c", work / f"{network}-{precision}"
        subprocess.run([VPPS, "export", "--model", checkpoint, "--c", source, "--main", "--precision", precision], check=True)
        subprocess.run([*o.cc.split(), "-std=c99", "-o", program, source, "-lm"], check=True)
        made.append((f"C, {precision}", [program]))
    for batch in (1, 32):
        made.append((f"vpps predict, --batch {batch}", [VPPS, "predict", "--model", checkpoint, "--vps", "1", "--batch", str(batch)]))
    lines = [line for line in (pathlib.Path(o.data) / data).read_bytes().splitlines() if line.strip()][:o.sentences]
    return made, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--data", default=os.environ.get("VPPS_DATA", str(ROOT.parent / "shared/data")))
    parser.add_argument("--cc", default="cc -O3 -march=native")
    o = parser.parse_args()
    print(f"{platform.processor() or platform.machine()}, {o.cc}, median (least) of {o.rounds} rounds, ms a sentence\n")
    print("| network | words | program | ms |\n| --- | ---: | --- | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        for network in CASES:
            made, lines = programs(o, pathlib.Path(folder), network)
            timed = [(name, lambda command=command: per_sentence(command, lines)) for name, command in made]
            torch = torch_tagger(lines, 9) if network == "bilstm-tagger" else None
            timed += [("torch.jit", torch)] if torch else []
            rounds = [[run() for _, run in timed] for _ in range(o.rounds)]
            words = statistics.mean((line.count(b"(") + 1) / 2 if network == "tree-lstm" else len(line.split()) for line in lines)
            for (name, _), times in zip(timed, zip(*rounds)):
                print(f"| {network} | {words:.1f} | {name} | {statistics.median(times):.3f} ({min(times):.3f}) |", flush=True)


if __name__ == "__main__":
    main()
