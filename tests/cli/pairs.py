"""Runs `vpps train` with two or three options at once, drawn by a seed: each must do what it does alone.

    pairs.py VPPS SEED DRAWS

An option that only says how a run is made or watched leaves the losses as they are; one that shapes training changes them, whatever else
is given; a run that stops after any batch and goes on ends with the bits of one that did not; and every file is there and whole.
"""
import json
import os
import random
import subprocess
import sys
import xml.etree.ElementTree

from runs import load

vpps, seed, draws = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
small = "--examples 60 --hidden 8 --embed 8 --batch 8 --vps 2 --epochs 2 --optimizer sgd --lr 0.1".split()

HOW = ["--plot=FILE.svg", "--trace=FILE.json", "--save-best=FILE.best", "--verify", "--vps=1", "--vps=3", "--caller=free", "--portable",
       "--no-tuning", "--waves=2", "--slices=2", "--policy=ratio", "--save-every=2", "--gradients=accumulate", "--pool-bytes=64M",
       "--eval-every=0", "--log-every=2", "--batch=4 --accumulate=2"]
SHAPES = ["--optimizer=momentum", "--optimizer=adagrad", "--optimizer=adam", "--optimizer=adamw", "--clip=0.05", "--weight-decay=0.05",
          "--label-smoothing=0.2", "--dropout=0.3", "--lr-schedule=cosine", "--lr-schedule=step", "--warmup=2", "--lr-decay=0.5",
          "--freeze=embedding", "--lr-of=embedding=0.3", "--precision=bf16", "--seed=5"]
CLASSIFIES = (["--train-accuracy"], ["--class-weights=balanced"])
NETWORKS = {"lstm-lm": ([], ["--layers=2"]), "lstm-lm-fixed": ([], ["--carry", "--steps=7"]), "tree-lstm": CLASSIFIES,
            "bilstm-tagger": (CLASSIFIES[0], CLASSIFIES[1] + ["--layers=2", "--crf"]), "bilstm-classifier": CLASSIFIES, "act": CLASSIFIES}
# Pairs that are not tried: they are refused together, draw different masks, or the one leaves nothing for the other to do.
NOT = [{"--crf", "--label-smoothing"}, {"--crf", "--class-weights"}, {"--crf", "--train-accuracy"}, {"--freeze", "--lr-of"},
       {"--lr-schedule", "--lr-decay"}, {"--dropout", "--batch"}, {"--verify", "--precision"}, {"--carry", "--batch"}, {"--eval-every", "--save-best"}]


def names(options):
    return [part.split("=")[0] for option in options for part in option.split()]


def train(name, network, options, more=()):
    """Trains, and returns the losses in the run's log by epoch and batch; None if the run is refused, with one line that says why."""
    for ending in ("jsonl", "ckpt", "svg", "json") + (("best",) if network else ()):  # a resumed run may find no epoch that is better
        if os.path.exists(f"{name}.{ending}"):
            os.remove(f"{name}.{ending}")
    words = [part.replace("FILE", name) for option in options for part in option.split()]
    done = subprocess.run([vpps, "train", *network, *words, *more, f"--save={name}.ckpt", f"--log={name}.jsonl", "--quiet"],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        assert done.returncode in (1, 2) and done.stderr.startswith("vpps"), (done.returncode, done.stderr)
        return None
    with open(f"{name}.jsonl", encoding="utf-8") as log:
        return {(o["epoch"], o["batch"]): o["loss"] for o in map(json.loads, log) if o["event"] == "batch"}


def near(a, b, options):
    """Whether two runs' losses agree at the batches that both logs have (at least one)."""
    bound = 3e-2 if "--precision" in names(options) else 2e-3
    both = a.keys() & b.keys()
    return both and all(abs(a[k] - b[k]) <= bound * abs(b[k]) for k in both)


def check_files(name, options):
    given = names(options)
    if "--plot" in given:
        xml.etree.ElementTree.parse(f"{name}.svg")
    if "--trace" in given:
        with open(f"{name}.json", encoding="utf-8") as file:
            assert json.load(file)["traceEvents"]
    if "--save-best" in given:
        assert load(f"{name}.best").keys() == load(f"{name}.ckpt").keys()


def check(draw):
    network = draw.choice(list(NETWORKS))
    how, shapes = (a + b for a, b in zip((HOW, SHAPES), NETWORKS[network]))
    options = draw.sample(how, draw.choice((0, 1, 1, 2))) + draw.sample(shapes, draw.choice((1, 1, 2)))
    given = names(options)
    if len(options) < 2 or len(set(given)) < len(given) or any(pair <= set(given) for pair in NOT):
        return check(draw)
    print(network, *options, flush=True)
    line = [network, *small]
    together = train("whole", line, options)
    if together is None:
        return None
    for option in options:
        others = train("less", line, [o for o in options if o is not option])
        if option in how:
            assert near(together, others, options), (option, together, others)
        else:
            assert any(together[k] != others[k] for k in together.keys() & others.keys()), (option, "changes nothing")
    whole = load("whole.ckpt")
    check_files("whole", options)
    stop = draw.randrange(1, 15)
    if "--steps" in given or network != "lstm-lm-fixed":
        stop = min(stop, 13)
    before = train("part", line, options, [f"--max-batches={stop}"])
    os.rename("part.ckpt", "stopped.ckpt")
    files = [o for o in options if "FILE" in o or o.startswith(("--log-every", "--save-every", "--verify", "--caller"))]
    after = train("part", [], files, ["--resume=stopped.ckpt"])
    assert {**before, **after} == together, (stop, before, after, together)
    assert load("part.ckpt") == whole, stop
    return check_files("part", options)


for number in range(draws):
    print(f"seed {seed + number}:", end=" ")
    check(random.Random(seed + number))
