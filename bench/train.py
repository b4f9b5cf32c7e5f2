#!/usr/bin/env python3
"""Training speed: sentences a second of networks by batch size, as a share of the machine's peak, beside PyTorch and DyNet.

    python3 bench/train.py [--networks A,B|all] [--batches 1,16,128] [--rounds N] [--limit S] [--seconds S]
                           [--hidden N] [--device cuda] [--slow] [--details] [--with="OPTIONS"]... [--busy [N]] [--json FILE]
                           [--torch PYTHON] [--dynet PYTHON] [--python PYTHON]

Every network, way and batch size is measured in every round, one after the other, S seconds each, so that a change of the machine's
speed hits all alike. Printed: median (first - third quartile) of the rounds; ratios are medians of the rounds' ratios. The peak, on the
CPU, is that of fp32 multiply-adds with operands in registers on all cores (bench/peak.h), measured right before and after each figure. Each
network has the sizes of the literature and its data set in $VPPS_DATA (../shared/data unless set); without that, generated data. SGD,
fp32, every core.

Each way is a process that stays for all rounds, and warms up before each figure: bench_train for VPPS, peers_torch.py for PyTorch,
peers.py for DyNet and for VPPS from Python, both on the CPU alone. A peer is found in this Python or in the one that its option names;
one that is missing is told. PyTorch trains the networks of peers.FILES, with the same data, sizes and losses (twins/): before it is
measured, it must have the losses of VPPS in two batches from the same parameters. On a GPU the networks of peers.PADDED are measured with
CUDA graphs, too, and compiled with mode="reduce-overhead".

    --hidden N         hidden size and embedding, instead of the literature's; of the peers, PyTorch alone follows
    --device cuda      VPPS and PyTorch on a GPU
    --with="OPTIONS"   also measures every network with these options of `vpps train`; words like NAME=VALUE are its environment
    --busy [N]         beside N busy loops, which the system may move; without N, beside one bound to each core
    --slow             also the slow ways of the peers at every batch size: an operation a call, as one writes it first
"""
import argparse
import datetime
import functools
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from peers import FILES, PADDED, RECIPES

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("BUILD", "build")
VPPS = os.environ.get("VPPS", os.path.join(BUILD, "vpps"))

# A network's data, below $VPPS_DATA, with what its reader needs; and its sizes in the literature. A network that is not here has
# the command's defaults, and generated data.
WIDE = "--hidden 256 --embed 256"
NETWORKS = {
    "tree-lstm": ("sst", WIDE),
    "tree-lstm-2type": ("sst", WIDE),
    "tree-gru": ("sst", WIDE),
    "rvnn": ("sst", "--hidden 512 --embed 512"),
    "mv-rnn": ("sst", "--hidden 64"),
    "td-rnn": ("sst", "--hidden 512"),
    "td-lstm": ("sst", WIDE),
    "tree-fc": (None, "--generate complete --leaves 256 --examples 1000 --hidden 256"),
    "lstm-lm": ("ptb_lm", "--min-count 1 " + WIDE),
    "lstm-lm-fixed": ("ptb_lm", "--min-count 1 " + WIDE),
    "lstm-nmt": ("multi30k", f"--source de --target en {WIDE} --attention"),
    "bilstm-classifier": ("sst", WIDE),
    "bilstm-tagger": ("wikiner", WIDE + " --mlp 256"),
    "bilstm-char-tagger": ("wikiner", "--hidden 256 --embed 64"),
    "bilstm-tagger --crf": ("wikiner", WIDE + " --mlp 256"),
    "transformer-tagger": ("wikiner", "--hidden 256"),
    "gat": ("sst", WIDE),
    "gat-classifier": ("sst", WIDE),
    "child-sum-tree-lstm": ("gum", WIDE),
    "lattice-lstm": ("lattice_ids", "--hidden 200 --embed 50"),
    "lattice-gru": ("multi30k", "--source de --target en " + WIDE),
}
SMALL = ["tree-lstm", "bilstm-tagger", "lstm-lm", "lattice-lstm"]
COMMON = "--optimizer sgd --lr 0.001 --seed 1"
LOOPS = ["bilstm-tagger --crf"]  # torch.compile has nothing to compile in them: see peers_torch.py
# Ways of peers_torch.py that have processes of their own: one that fails takes no other with it. All but the first are for a GPU.
PADDED_WAYS = [("compiled", "batched, torch.compile"), ("reduced", "padded, torch.compile reduce-overhead"), ("graphs", "padded, CUDA graphs")]
SLOW_MOST = 16  # the slow ways' largest batch without --slow: they gain nothing from larger ones


class Failure(Exception):
    pass


def tell(text):
    print(text, file=sys.stderr, flush=True)


# ---------------------------------------------------------------- ways

class Worker:
    """A process that answers lines of "BATCH SECONDS WAY"."""

    def __init__(self, command, environment=()):
        self.command, self.environment, self.process = command, dict(environment), None

    def ask(self, batch, seconds, way):
        if not self.process:
            self.errors = tempfile.TemporaryFile(mode="w+")
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                            text=True, env={**os.environ, **self.environment})
        try:
            self.process.stdin.write(f"{batch} {seconds} {way}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        self.errors.seek(0)
        lines = self.errors.read().strip().splitlines()
        told = [line for line in lines if line.startswith("vpps")] or lines[-1:]
        raise Failure(told[0] if told else f"{self.command[0]}: exit status {self.process.wait()}")

    def close(self):
        if self.process:
            self.process.communicate()


class Way:
    def __init__(self, network, name, worker, way="", slow=False):
        self.network, self.name, self.worker, self.way, self.slow = network, name, worker, way, slow
        self.answers = {}  # by batch size: of each round


@functools.cache
def made_of(trees, recipe):
    """The trees of a file as graphs or sentences, in a file of the build folder."""
    path = os.path.join(BUILD, "bench", recipe.replace("tree_", "").replace(".py", ".txt"))
    with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
        subprocess.run([sys.executable, os.path.join(HERE, "recipes", recipe), trees], stdout=file, check=True)
    os.replace(file.name, path)
    return path


@functools.cache
def lattice_text_of(ids):
    """Lattices of ids as tagged characters and a lexicon, in a folder of the build folder."""
    path = os.path.join(BUILD, "bench", "lattice_text")
    subprocess.run([sys.executable, os.path.join(HERE, "recipes", "lattice_text.py"), ids, path, "train.txt"], check=True)
    return path


def sizes_of(o, name):
    options = NETWORKS[name][1] if name in NETWORKS else "" if o.hidden is None else WIDE
    return options if o.hidden is None else re.sub(r"--(hidden|embed|mlp) \d+", rf"--\1 {o.hidden}", options)


def options_of(o, name):
    """The data's and the network's options of `vpps train`."""
    folder, options = NETWORKS.get(name, (None, ""))[0], sizes_of(o, name)
    path = os.path.join(o.data, folder) if folder else None
    if path and not os.path.isdir(path):
        tell(f"{name}: {path} is missing: generated data")
        options = re.sub(r"--(source|target|min-count) \S+ ?", "", options)
        path = None
    elif path and name == "lattice-lstm":
        path = lattice_text_of(path)
        options = f"--lexicon {path}/lexicon {options}"
    elif name in RECIPES:
        path = made_of(os.path.join(path, "train.txt"), RECIPES[name])
    return [*(["--data", path] if path else []), *options.split(), *COMMON.split()]


def find_python(candidates, package, environment=(), also="pass"):
    """The first Python that has the package, and can do something else, and the package's version; or None."""
    code = f"import {package}; {also}; import importlib.metadata as m; print([d.version for d in m.distributions() " \
           f"if d.metadata['Name'].lower().startswith('{package}')][:1])"
    for python in filter(None, candidates):
        try:
            done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False,
                                  env={**os.environ, **dict(environment)})
        except OSError:
            continue
        if done.returncode == 0:
            found = re.search(r"\['(\d+\.\d+)", done.stdout)
            return python, found.group(1) if found else ""
    return None


def find_peers(o, networks):
    """Ways of the peers of these networks, and what is left out."""
    ways, left_out = [], []
    have = [n for n in networks if n in FILES and all(os.path.isfile(os.path.join(o.data, name)) for name in FILES[n])]
    package = {"PYTHONPATH": os.pathsep.join(filter(None, [os.path.join(BUILD, "python"), os.environ.get("PYTHONPATH")]))}
    mine, on_gpu = [sys.executable, "python3"], o.device == "cuda"
    places = {"torch": ("--torch", [o.torch] if o.torch else mine, {}, "torch.zeros(1, device='cuda')" if on_gpu else "pass")}
    if not on_gpu:
        places["vpps"] = ("--python", [o.python] if o.python else [os.path.join(BUILD, "python-env/bin/python"), *mine], package, "pass")
        places["dynet"] = ("--dynet", [o.dynet] if o.dynet else mine, {}, "pass")
    found = dict.fromkeys(("vpps", "torch", "dynet"))
    for name, (option, pythons, environment, also) in places.items():
        found[name] = find_python(pythons, name, environment, also) if have else None
        if have and not found[name]:
            left_out.append(f"{name} ({option} PYTHON names a Python that has it{', and a GPU' if on_gpu else ''})")
    sst = os.path.join(o.data, "sst")
    left_out += ["VPPS from Python and DyNet, which have hidden 256 alone"] if o.hidden is not None and not on_gpu else []
    if "tree-lstm" in have and found["vpps"] and o.hidden is None:
        worker = Worker([found["vpps"][0], os.path.join(HERE, "peers.py"), "vpps", "--data", sst], package)
        ways.append(Way("tree-lstm", "VPPS from Python", worker, "bulk"))
        ways.append(Way("tree-lstm", "VPPS from Python, a call for each vertex", worker, "each"))
    for network in have if found["torch"] else []:
        python, version = found["torch"]
        if network.startswith("gat") and not find_python([python], "torch_geometric"):
            left_out.append(f"torch_geometric, for {network} (beside torch)")
            continue
        command = [python, os.path.join(HERE, "peers_torch.py"), "--device", o.device, "--network", network, "--data", o.data]
        options = ["--", *sizes_of(o, network).split()]
        worker = Worker([*command, "--vpps", VPPS, *options])
        ways.append(Way(network, f"PyTorch {version}, batched by hand", worker, "batched"))
        for way, name in PADDED_WAYS if on_gpu and network in PADDED else PADDED_WAYS[:1]:
            if network not in LOOPS or way == "graphs":
                ways.append(Way(network, f"PyTorch {version}, {name}", Worker([*command, "--ways", way, *options]), way))
        if on_gpu and network not in PADDED:
            left_out.append(f"PyTorch's CUDA graphs for {network}: no two batches have levels of the same sizes")
        ways.append(Way(network, f"PyTorch {version}, as written", worker, "eager", slow=True))
    if "tree-lstm" in have and found["dynet"] and o.hidden is None:
        python, version = found["dynet"]
        worker = Worker([python, os.path.join(HERE, "peers.py"), "dynet", "--data", sst])
        ways.append(Way("tree-lstm", f"DyNet {version}, automatic batching", worker, "batching"))
        ways.append(Way("tree-lstm", f"DyNet {version}, as written", worker, "written", slow=True))
    return ways, left_out


def find_ways(o):
    ways = []
    for network in o.networks:
        for more in ["", *o.more]:
            words = shlex.split(more)
            variables = [w.split("=", 1) for w in words if re.match(r"[A-Z_]+=", w)]
            command = [o.bench_train, *network.split(), "--device", o.device, *options_of(o, network), *(w for w in words if not re.match(r"[A-Z_]+=", w))]
            ways.append(Way(network, f"VPPS {more}".strip(), Worker(command, variables)))
    peers, left_out = find_peers(o, o.networks)
    return sorted(ways + peers, key=lambda way: o.networks.index(way.network)), left_out


# ---------------------------------------------------------------- measuring

def busy_loops(n):
    code = "import os, sys; os.sched_setaffinity(0, map(int, sys.argv[1:]))\nwhile os.getppid() != 1: pass"
    cores = os.sched_getaffinity(0)
    return [subprocess.Popen([sys.executable, "-c", code, *map(str, own)]) for own in ([cores] * n if n else [[core] for core in cores])]


def measure(o, ways):
    """Every way's answers; a way that fails is told, and left out from there on."""
    failures, begin, last = {}, time.monotonic(), 0
    for turn in range(o.rounds + 1):  # the first one starts the workers, and does not count
        start = time.monotonic()
        if o.limit and turn > 1 and start - begin + last > o.limit:
            tell(f"{turn - 1} rounds: another one would end after {o.limit:g} s")
            break
        for way in ways:
            for batch in o.batches:
                if way in failures or (way.slow and not o.slow and batch > SLOW_MOST):
                    continue
                try:
                    answer = way.worker.ask(batch, o.seconds if turn else 0, way.way)
                    way.answers.setdefault(batch, []).extend([answer] if turn else [])
                except Failure as error:
                    failures[way] = str(error)
                    tell(f"{way.network}, {way.name}: left out: {error}")
        last = time.monotonic() - start
        tell(f"round {turn}/{o.rounds}" if turn else "ready")
    for way in ways:
        way.worker.close()
        if way in failures:
            way.answers = {}
    return [{"network": way.network, "way": way.name, "message": text} for way, text in failures.items()]


# ---------------------------------------------------------------- results

def spread(values):
    q1, median, q3 = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return {"median": median, "q1": q1, "q3": q3}


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        text = file.read()

    def of(name):
        found = re.search(rf"^{name}\s*: (.*)$", text, re.M)
        return found.group(1) if found else "?"

    return f"{of('model name')} (family {of('cpu family')}, model {of('model')}), {len(os.sched_getaffinity(0))} cores"


def commit():
    def git(*words):
        return subprocess.run(["git", "-C", os.path.dirname(HERE), *words], capture_output=True, text=True, check=False)

    if not shutil.which("git"):
        return "unknown"
    dirty = git("diff", "--quiet", "HEAD", "--", "src", "models", "bench", ":(exclude)bench/results").returncode
    return (git("rev-parse", "--short", "HEAD").stdout.strip() or "unknown") + ("+" if dirty else "")


def rows_of(ways):
    """A row for each way and batch size, with every figure's spread, and how many times as fast VPPS without --with is."""
    rows, base = [], {}
    for way in ways:
        for batch, answers in way.answers.items():
            row = {"network": way.network, "way": way.name, "batch": batch}
            for key, value in answers[0].items():
                row[key] = spread([a[key] for a in answers]) if isinstance(value, float) else value
            row["way"] = way.name
            if "peak_gflops" in row:
                row["share_of_peak"] = spread([a["gflops"] / a["peak_gflops"] for a in answers])
            if way.name == "VPPS":
                base[way.network, batch] = answers
            elif (way.network, batch) in base:
                pairs = zip(base[way.network, batch], answers)
                row["vpps_times_as_fast"] = statistics.median(a["rate"] / b["rate"] for a, b in pairs)
            rows.append(row)
    return rows


def shown(x):
    return f"{x:,.0f}" if x >= 100 else f"{x:.3g}"


def shown_spread(s, unit=""):
    return f"{shown(s['median'])}{unit} ({shown(s['q1'])} - {shown(s['q3'])})"


def fastest_peers(rows):
    """By network and batch size."""
    best = {}
    for row in rows:
        key = row["network"], row["batch"]
        if not row["way"].startswith("VPPS") and (key not in best or row["rate"]["median"] > best[key]["rate"]["median"]):
            best[key] = row
    return best


def cell(row, best=None):
    text = shown_spread(row["rate"])
    if "share_of_peak" in row:
        text += f", {100 * row['share_of_peak']['median']:.0f} %"
    if "vpps_times_as_fast" in row:
        times = f"{row['vpps_times_as_fast']:.2f} x"
        text += f", **{times}**" if row is best else f", {times}"
    return text


def print_table(header, rows, right):
    print("| " + " | ".join(header) + " |\n|" + " --- |" * (len(header) - right) + " ---: |" * right)
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def print_report(o, summary):
    rows = {(r["network"], r["way"], r["batch"]): r for r in summary["rows"]}
    peak = summary["peak_gflops"]
    busy = f"; beside {o.busy} busy loops" if o.busy else "" if o.busy is None else "; a busy loop on each core"
    print(f"{summary['machine']}; commit {summary['commit']}, {summary['date']}{busy}."
          + (f" Peak of multiply-adds: {shown_spread(peak)} GFLOP/s.\n" if peak else f" On a GPU ({o.device}).\n"))
    print(f"Training, sentences a second: median (quartiles) of {summary['rounds']} rounds of {o.seconds:g} s in turn; of VPPS, the share of "
          "the peak; of the others, how many times as fast VPPS is, in bold for the fastest peer\n")
    table, best = [], fastest_peers(summary["rows"])
    for network, way in dict.fromkeys((n, w) for n, w, _ in rows):
        first = not table or network not in {r[0] for r in table}
        table.append([network if first else "", way,
                      *(cell(rows[network, way, b], best.get((network, b))) if (network, way, b) in rows else "" for b in o.batches)])
    print_table(["network", "by", *(f"batch {b}" for b in o.batches)], table, len(o.batches))
    if o.details:
        print("Where a batch's time goes. Host: building the graph and making the script\n")
        columns = {"batch_ms": "ms", "device_ms": "device ms", **({"gap_ms": "gap ms"} if o.device == "cuda" else {}), "host_ms": "host ms",
                   "nodes": "nodes", "mflop_per_sentence": "MFLOP a sentence", "gflops": "GFLOP/s"}
        print_table(["network", "by", "batch", *columns.values(), "phases", "pool MB"],
                    [[n, w, str(b), *(shown(r[k]["median"]) for k in columns), str(r["phases"]), shown(r["pool_mb"]["median"])]
                     for (n, w, b), r in rows.items() if "gflops" in r], len(columns) + 2)
        for network in o.networks:
            print(f"- {network}: `vpps train {network} {' '.join(options_of(o, network))}`")
    for name in summary["left_out"]:
        print(f"Left out: {name}")
    print(furthest(summary["rows"]))


def furthest(rows):
    """A sentence: which row is furthest from the peak, and which is the least ahead of its fastest peer."""
    def of(row):
        return f"{row['network']}, batch {row['batch']}"

    said = []
    bound = [r for r in rows if r["way"] == "VPPS" and "share_of_peak" in r]
    peers = [r for r in rows if not r["way"].startswith("VPPS") and "vpps_times_as_fast" in r]
    if bound:
        row = min(bound, key=lambda r: r["share_of_peak"]["median"])
        said.append(f"furthest from its bound is {of(row)} ({100 * row['share_of_peak']['median']:.0f} % of the peak)")
    if peers:
        row = min(peers, key=lambda r: r["vpps_times_as_fast"])
        said.append(f"closest to a peer is {of(row)} ({row['vpps_times_as_fast']:.2f} times as fast as {row['way']})")
    text = "; ".join(said)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


# ---------------------------------------------------------------- the run

def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--networks", metavar="A,B", help=f"or all ({','.join(SMALL)})")
    parser.add_argument("--batches", metavar="1,2,...", default="1,16,128")
    parser.add_argument("--seconds", type=float, default=0.3, help="of a figure in a round (0.3)")
    parser.add_argument("--rounds", type=int, default=5, help="at most (5)")
    parser.add_argument("--limit", type=float, default=0, metavar="S", help="fewer rounds where all would take longer")
    parser.add_argument("--hidden", type=int, metavar="N", help="hidden size and embedding of every network")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--slow", action="store_true", help="also the slow ways of the peers at every batch size")
    parser.add_argument("--details", action="store_true", help="also where a batch's time goes")
    parser.add_argument("--with", dest="more", action="append", default=[], metavar="OPTIONS", help="also with these")
    parser.add_argument("--busy", type=int, nargs="?", const=0, metavar="N", help="beside N busy loops; without N, one on each core")
    parser.add_argument("--torch", metavar="PYTHON", help="a Python that has PyTorch")
    parser.add_argument("--dynet", metavar="PYTHON", help="a Python that has DyNet")
    parser.add_argument("--python", metavar="PYTHON", help="a Python that has vpps (build/python-env's, or this one)")
    parser.add_argument("--json", metavar="FILE", help="write everything there")
    parser.add_argument("--data", default=os.environ.get("VPPS_DATA", "../shared/data"), metavar="DIR")
    o = parser.parse_args()
    try:
        o.batches = sorted({int(x) for x in o.batches.split(",")})
    except ValueError:
        parser.error(f"--batches {o.batches}: expected numbers with commas between them")
    if o.seconds <= 0 or o.rounds < 1 or o.batches[0] < 1:
        parser.error("--seconds, --rounds and --batches must be above 0")
    return o


def find_networks(o):
    """What the command lists, so that none is forgotten."""
    o.bench_train = os.path.join(BUILD, "bench", "bench_train")
    try:
        text = subprocess.run([VPPS, "--help"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise Failure(f"{VPPS}: {error}; `make bench` builds it") from error
    known = re.findall(r"^  (\S+)", text.partition("Networks:\n")[2].partition("\n\n")[0], re.MULTILINE)
    wanted = known if o.networks == "all" else o.networks.split(",") if o.networks else SMALL
    for name in wanted:
        if name.split()[0] not in known:
            raise Failure(f"--networks: {name} is not one of {', '.join(known)}")
    return wanted


def main():
    o, loops = read_options(), []
    try:
        o.networks = find_networks(o)
        if o.json:
            open(o.json, "a", encoding="utf-8").close()  # what cannot be written fails before the measuring
        ways, left_out = find_ways(o)
        for name in left_out:
            tell(f"left out: {name}")
        loops = [] if o.busy is None else busy_loops(o.busy)
        failures = measure(o, ways)
    except (Failure, OSError) as error:
        sys.exit(f"train.py: {error}")
    except KeyboardInterrupt:
        sys.exit("train.py: interrupted")
    finally:
        for loop in loops:
            loop.kill()
    rows = rows_of(ways)
    rounds = max((len(answers) for way in ways for answers in way.answers.values()), default=0)
    peaks = [a["peak_gflops"] for way in ways for answers in way.answers.values() for a in answers if "peak_gflops" in a]
    summary = {"machine": machine(), "commit": commit(), "date": datetime.date.today().isoformat(), "command": shlex.join(sys.argv),
               "rounds": rounds, "seconds": o.seconds, "peak_gflops": spread(peaks) if peaks else None, "rows": rows,
               "left_out": left_out, "failures": failures}
    print_report(o, summary)
    if o.json:
        with open(o.json, "w", encoding="utf-8") as file:
            file.write(json.dumps(summary) + "\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
