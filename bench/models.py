#!/usr/bin/env python3
"""Trains every network at every batch size, and prints sentences a second as the papers do, beside the roofline.

    python3 bench/models.py [--networks A,B] [--batches 1,2,...] [--seconds S] [--rounds N] [--quick] [--json FILE]

Runs `vpps train` ($VPPS, default build/vpps) for about S seconds a figure, with the sizes of the literature and the
data sets in $VPPS_DATA (default ../shared/data); where one is missing, with generated data, and says so. SGD, fp32,
every core allowed. Networks and batch sizes take turns, round by round, so that a change of the machine's speed hits
all alike. Figures are medians of the rounds, with the lowest and the highest.

The roofline (Williams, Waterman and Patterson 2009): no machine trains faster than its multiply-adds allow the
operations of a sentence, nor than its memory allows the bytes of a batch. Both are counted from the graph (vpps_cost
in vpps.h says how; bytes are those of a machine that keeps nothing between two steps, so one whose caches keep the
weights may be above). The machine's two limits are measured in every round, by bench_peak, on all cores.

With PyTorch (--torch PYTHON, or in this Python), models_torch.py measures two of the networks in the same rounds.
"""
import argparse
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict

HERE = os.path.dirname(os.path.abspath(__file__))
BATCHES = [1, 2, 4, 8, 16, 32, 64, 128]

# A network's data, below $VPPS_DATA, with what its reader needs; and its sizes in the literature.
SST = ("sst", [])
WIKINER = ("wikiner", [])
PTB = ("ptb_lm", ["--min-count", "1"])
MULTI30K = ("multi30k", ["--source", "de", "--target", "en"])
LATTICES = ("lattice_ids", [])
COMPLETE = (None, ["--generate", "complete", "--leaves", "256", "--examples", "1000"])
WIDE = ["--hidden", "256", "--embed", "256"]
NETWORKS = {
    "tree-lstm": (SST, WIDE),
    "tree-lstm-2type": (SST, WIDE),
    "tree-gru": (SST, WIDE),
    "rvnn": (SST, ["--hidden", "512", "--embed", "512"]),
    "mv-rnn": (SST, ["--hidden", "64"]),
    "td-rnn": (SST, ["--hidden", "512"]),
    "td-lstm": (SST, WIDE),
    "tree-fc": (COMPLETE, ["--hidden", "256"]),
    "lstm-lm": (PTB, WIDE),
    "lstm-lm-fixed": (PTB, WIDE),
    "lstm-nmt": (MULTI30K, [*WIDE, "--attention"]),
    "bilstm-tagger": (WIKINER, [*WIDE, "--mlp", "256"]),
    "bilstm-char-tagger": (WIKINER, ["--hidden", "256", "--embed", "64"]),
    "lattice-lstm": (LATTICES, ["--hidden", "200", "--embed", "50"]),
    "lattice-gru": (MULTI30K, WIDE),
}
PEERS = {"tree-lstm": "sst/train.txt", "bilstm-tagger": "wikiner/train.txt"}


class Failure(Exception):
    pass


def tell(text):
    print(text, file=sys.stderr, flush=True)


def run(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Failure(f"{command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        told = next((line for line in lines if line.startswith("vpps")), lines[-1])
        raise Failure(f"{' '.join(command)}: {told}")
    return done.stdout


# ---------------------------------------------------------------- measuring

def command_of(o, name):
    """Arguments of a network's training, as they are run and as they are shown."""
    (folder, reading), sizes = NETWORKS.get(name, ((None, []), []))
    common = ["--optimizer", "sgd", "--lr", "0.001", "--seed", "1"]
    if folder and os.path.isdir(os.path.join(o.data, folder)):
        return (["train", name, "--data", os.path.join(o.data, folder), *reading, *sizes, *common],
                f"{name}: `--data $VPPS_DATA/{' '.join([folder, *reading, *sizes])}`")
    generating = [] if folder else reading
    missing = f" ({folder} is missing: generated data)" if folder else ""
    return (["train", name, *generating, *sizes, *common], f"{name}: `{' '.join([*generating, *sizes])}`{missing}")


def train(o, name, batch, n):
    command = [o.vpps, *command_of(o, name)[0], "--batch", str(batch), "--max-batches", str(n), "--epochs", "100000",
               "--eval-every", "0", "--json", "--quiet"]
    return json.loads(run(command).splitlines()[-1])


def batches_for(o, name, batch):
    """How many batches take o.seconds."""
    n = max(2, 16 // batch)
    while True:
        result = train(o, name, batch, n)
        if result["seconds"] > o.seconds / 8:
            return max(1, round(n * o.seconds / result["seconds"]))
        n *= 4


def figures_of(result):
    """Of one run: what the tables and the JSON file have."""
    batches, seconds = result["batches"], result["seconds"]
    wall_ms = 1e3 * seconds / batches
    build_ms = 1e-6 * result["build_ns_per_node"] * result["nodes"] / batches
    flops = result["flops_per_sentence"]
    return {
        "sentences_per_s": result["sentences_per_s"],
        "batch_ms": wall_ms,
        "device_ms": result["device_ms_per_batch"],
        "host_share": (build_ms + result["host_ms_per_batch"]) / wall_ms,
        "device_share": result["device_ms_per_batch"] / wall_ms,
        "build_ns_per_node": result["build_ns_per_node"],
        "script_ns_per_node": 1e6 * result["host_ms_per_batch"] * batches / result["nodes"],
        "nodes_per_sentence": result["nodes"] / result["sentences"],
        "mflop_per_sentence": 1e-6 * flops,
        "kb_per_sentence": 1e-3 * result["bytes_per_batch"] * batches / result["sentences"],
        "gflops": 1e-9 * flops * result["sentences_per_s"],
    }


def find_torch(o):
    """A Python that has PyTorch, or None."""
    for python in [o.torch] if o.torch else [sys.executable, "python3"]:
        try:
            run([python, "-c", "import torch"])
            return python
        except Failure as error:
            if o.torch:
                raise Failure(f"--torch {o.torch}: has no PyTorch") from error
    return None


def run_peers(o, python, peers, rates):
    for name in peers:
        tell(f"  PyTorch: {name}")
        try:
            lines = run([python, os.path.join(HERE, "models_torch.py"), "--network", name, "--data",
                         os.path.join(o.data, PEERS[name]), "--batches", ",".join(map(str, o.batches)), "--seconds",
                         str(o.seconds)])
        except Failure as error:
            tell(f"  {error}")
            continue
        for line in map(json.loads, lines.splitlines()):
            rates[name, line["mode"], line["batch"], line["threads"]].append(line["sentences_per_s"])


def measure(o):
    """Rounds of peaks, figures and peers; a network that fails is told, and left out from there on."""
    runs, peaks, peer_rates, failures = defaultdict(list), [], defaultdict(list), {}
    python = find_torch(o)
    peers = [n for n in o.networks if n in PEERS and python and os.path.isfile(os.path.join(o.data, PEERS[n]))]
    if not peers:
        tell("no peer: PyTorch or the data for it was not found")
    n_batches = {}
    for turn in range(o.rounds):
        peaks.append(json.loads(run([o.peak])))
        for name in o.networks:
            for batch in o.batches:
                key = name, batch
                if key in failures:
                    continue
                try:
                    if key not in n_batches:
                        n_batches[key] = batches_for(o, name, batch)
                    runs[key].append(figures_of(train(o, name, batch, n_batches[key])))
                    tell(f"  round {turn + 1}/{o.rounds}  {name}  batch {batch}  "
                         f"{runs[key][-1]['sentences_per_s']:.1f} sentences/s")
                except Failure as error:
                    failures[key] = str(error)
                    tell(f"  {error}")
        run_peers(o, python, peers, peer_rates)
    return runs, peaks, peer_rates, failures


# ---------------------------------------------------------------- results

def spread(values):
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def summarize(o, runs, peaks, peer_rates, failures):
    gflops, gbs = spread([x["gflops"] for x in peaks]), spread([x["gbs"] for x in peaks])
    results = []
    for (name, batch), rounds in runs.items():
        if (name, batch) in failures:
            continue
        row = {"network": name, "batch": batch, **{k: spread([x[k] for x in rounds]) for k in rounds[0]}}
        by_flops = 1e3 * gflops["median"] / row["mflop_per_sentence"]["median"]
        by_bytes = 1e6 * gbs["median"] / row["kb_per_sentence"]["median"]
        row["bound"] = min(by_flops, by_bytes)
        row["bound_by"] = "flops" if by_flops < by_bytes else "bytes"
        row["share_of_bound"] = row["sentences_per_s"]["median"] / row["bound"]
        results.append(row)
    peers = {}
    for (name, mode, batch, threads), rates in peer_rates.items():
        peer = {"network": name, "mode": mode, "batch": batch, "threads": threads, "sentences_per_s": spread(rates)}
        known = peers.get((name, mode, batch))
        if not known or known["sentences_per_s"]["median"] < peer["sentences_per_s"]["median"]:
            peers[name, mode, batch] = peer
    return {"processor": processor(), "threads": peaks[0]["threads"], "isa": peaks[0]["isa"], "rounds": o.rounds,
            "seconds": o.seconds, "gflops": gflops, "gbs": gbs, "results": results, "peers": list(peers.values()),
            "failures": [{"network": n, "batch": b, "message": m} for (n, b), m in failures.items()]}


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return re.search(r"^model name\s*: (.*)$", file.read(), re.M).group(1)
    except (OSError, AttributeError):
        return "unknown processor"


def number(x):
    """Three digits or all before the point."""
    if x == 0 or not math.isfinite(x):
        return f"{x:.0f}"
    return f"{x:,.{max(0, 2 - math.floor(math.log10(abs(x))))}f}"


def cell(x):
    return f"{number(x['median'])} ({number(x['low'])} - {number(x['high'])})"


def table(header, rows):
    print("| " + " | ".join(header) + " |")
    print("| --- |" + " ---: |" * (len(header) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def print_rates(o, by_key):
    print("Sentences a second: median (lowest - highest)\n")
    table(["network", *(f"batch {b}" for b in o.batches)],
          [[name, *(cell(by_key[name, b]["sentences_per_s"]) if (name, b) in by_key else "failed" for b in o.batches)]
           for name in o.networks])


def print_shares(o, by_key):
    print("Where the time goes, and the roofline. Host: building the graph and making the script.\n")
    shown = sorted({o.batches[0], o.batches[-1]})
    rows = [[name, str(b), *shares(by_key[name, b])] for name in o.networks for b in shown if (name, b) in by_key]
    table(["network", "batch", "batch ms", "device ms", "host share", "device share", "build ns a node",
           "script ns a node", "nodes a sentence", "MFLOP a sentence", "KB a sentence", "GFLOP/s", "bound, sentences/s",
           "by", "of the bound"], rows)


def shares(r):
    def of(key):
        return number(r[key]["median"])

    def percent(x):
        return f"{100 * x:.1f} %"

    return [of("batch_ms"), of("device_ms"), percent(r["host_share"]["median"]), percent(r["device_share"]["median"]),
            of("build_ns_per_node"), of("script_ns_per_node"), of("nodes_per_sentence"), of("mflop_per_sentence"),
            of("kb_per_sentence"), of("gflops"), number(r["bound"]), r["bound_by"], percent(r["share_of_bound"])]


def print_peers(o, peers, by_key):
    print("PyTorch on the same cores, with one thread or all, whichever is faster; in brackets, how many times as fast "
          "VPPS is\n")
    by_peer = {(p["network"], p["mode"], p["batch"]): p["sentences_per_s"]["median"] for p in peers}
    rows = []
    for name, mode in dict.fromkeys((p["network"], p["mode"]) for p in peers):
        row = [f"{name}, {mode}"]
        for b in o.batches:
            theirs, ours = by_peer[name, mode, b], by_key.get((name, b))
            ratio = f" ({ours['sentences_per_s']['median'] / theirs:.2f})" if ours else ""
            row.append(number(theirs) + ratio)
        rows.append(row)
    table(["network", *(f"batch {b}" for b in o.batches)], rows)


def print_report(o, summary):
    by_key = {(r["network"], r["batch"]): r for r in summary["results"]}
    print(f"{summary['processor']}, {summary['threads']} cores, {summary['isa']}. In the same rounds: multiply-adds "
          f"{cell(summary['gflops'])} GFLOP/s, memory (triad) {cell(summary['gbs'])} GB/s. Each figure: "
          f"{o.rounds} x about {o.seconds:g} s.\n")
    print_rates(o, by_key)
    print_shares(o, by_key)
    if summary["peers"]:
        print_peers(o, summary["peers"], by_key)
    print("Trained with `--optimizer sgd --lr 0.001 --seed 1` and\n")
    for name in o.networks:
        print(f"- {command_of(o, name)[1]}")


# ---------------------------------------------------------------- the run

def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--networks", metavar="A,B", help="only these")
    parser.add_argument("--batches", metavar="1,2,...")
    parser.add_argument("--seconds", type=float, help="of a run (2)")
    parser.add_argument("--rounds", type=int, help="runs of each figure (3)")
    parser.add_argument("--quick", action="store_true", help="batches 1 and 128, one round, 0.3 s: a trial")
    parser.add_argument("--json", metavar="FILE", help="write everything there")
    parser.add_argument("--torch", metavar="PYTHON", help="a Python with PyTorch (default: this one, if it has)")
    build = os.environ.get("BUILD", "build")
    parser.add_argument("--vpps", default=os.environ.get("VPPS", os.path.join(build, "vpps")), metavar="COMMAND")
    parser.add_argument("--peak", default=os.path.join(build, "bench", "bench_peak"), metavar="COMMAND")
    parser.add_argument("--data", default=os.environ.get("VPPS_DATA", "../shared/data"), metavar="DIR")
    o = parser.parse_args()
    o.seconds = o.seconds or (0.3 if o.quick else 2)
    o.rounds = o.rounds or (1 if o.quick else 3)
    try:
        o.batches = sorted({int(x) for x in o.batches.split(",")}) if o.batches else [1, 128] if o.quick else BATCHES
    except ValueError:
        parser.error(f"--batches {o.batches}: expected numbers with commas between them")
    if o.seconds <= 0 or o.rounds < 1 or o.batches[0] < 1:
        parser.error("--seconds, --rounds and --batches must be above 0")
    return o


def find_networks(o):
    """What the command lists, so that none is forgotten."""
    for command in (o.vpps, o.peak):
        if not shutil.which(command):
            raise Failure(f"{command} is missing: `make bench-models` builds it")
    listed = run([o.vpps, "--help"]).partition("Networks:\n")[2].partition("\n\n")[0]
    known = re.findall(r"^  (\S+)", listed, re.MULTILINE)  # a summary goes on in lines that are further in
    wanted = o.networks.split(",") if o.networks else known
    for name in wanted:
        if name not in known:
            raise Failure(f"--networks: {name} is not one of {', '.join(known)}")
    return wanted


def main():
    o = read_options()
    try:
        o.networks = find_networks(o)
        if o.json:
            open(o.json, "a", encoding="utf-8").close()  # what cannot be written fails before the measuring
        summary = summarize(o, *measure(o))
    except (Failure, OSError) as error:
        sys.exit(f"models.py: {error}")
    except KeyboardInterrupt:
        sys.exit("models.py: interrupted")
    print_report(o, summary)
    if o.json:
        with open(o.json, "w", encoding="utf-8") as file:
            json.dump(summary, file, indent=1)
            file.write("\n")
    return 1 if summary["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
