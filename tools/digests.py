#!/usr/bin/env python3
"""Digests of what training computes, to show that a change keeps every bit.

    tools/digests.py --vpps build/vpps > before
    ... change, build ...
    tools/digests.py --vpps build/vpps | diff before -

A line for each network and setting: a hash of the losses of three batches, of the parameters and optimiser state after
them, and of the first batch's script as `vpps script` prints it (--no-scripts leaves that out, where the encoding
itself changes). Settings cover numbers of virtual processors, precisions, batching policies, waves, slices and groups,
accumulated gradients, plain C, and software SIMT (--simt).
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

SETTINGS = {
    "1vp": ["--vps", "1"],
    "2vp": ["--vps", "2"],
    "3vp": ["--vps", "3", "--dropout", "0.2"],
    "8vp": ["--vps", "8", "--watchdog-ms", "60000"],
    "groups": ["--vps", "4", "--groups", "2", "--waves", "2"],
    "slices": ["--vps", "2", "--slices", "2", "--optimizer", "momentum"],
    "accumulate": ["--vps", "2", "--gradients", "accumulate", "--optimizer", "adagrad"],
    "depth": ["--vps", "2", "--policy", "depth"],
    "ratio": ["--vps", "2", "--policy", "ratio"],
    "bf16": ["--vps", "2", "--precision", "bf16"],
    "bf16x3": ["--vps", "2", "--precision", "bf16x3"],
    "portable": ["--vps", "2", "--portable"],
    "verified": ["--vps", "2", "--verify", "--hidden", "20"],
}
SIZES = {None: ["--hidden", "36", "--embed", "20"], "mv-rnn": ["--hidden", "12"]}
SIMT = {
    "simt": ["--device", "simt", "--hidden", "20"],
    "simt-bf16": ["--device", "simt", "--hidden", "20", "--precision", "bf16"],
}


def run(command):
    """Runs a command; its output, or None where it failed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    return done.stdout if done.returncode == 0 else None


def short(data):
    return hashlib.sha256(data).hexdigest()[:12]


def tensors(path):
    """Hash of a checkpoint's tensors, without its metadata."""
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
        body = file.read()
    header.pop("__metadata__", None)
    digest = hashlib.sha256()
    for name in sorted(header):
        first, end = header[name]["data_offsets"]
        digest.update(name.encode() + b"\0" + body[first:end])
    return digest.hexdigest()[:12]


def known_options(vpps, command, network):
    text = "".join(run([vpps, command, network, option]) or "" for option in ("--help", "--help-engine"))
    return set(re.findall(r"^ +(?:-\w, )?(--[a-z0-9-]+)", text, re.M))


def those_of(options, known):
    """Of options with a value each, or none, those that a command knows."""
    kept, i = [], 0
    while i < len(options):
        n = 1 if i + 1 == len(options) or options[i + 1].startswith("--") else 2
        kept += options[i : i + n] if options[i] in known else []
        i += n
    return kept


def digest(vpps, network, name, setting, options):
    """The line of a network and setting."""
    sizes = ["--examples", "12", "--batch", "4", "--seed", "3", "--no-tuning"] + SIZES.get(network, SIZES[None])
    asked = sizes + setting
    with tempfile.TemporaryDirectory() as folder:
        log, save = os.path.join(folder, "log"), os.path.join(folder, "save")
        train = those_of(asked, known_options(vpps, "train", network))
        done = run([vpps, "train", network, "--quiet", "--max-batches", "3", "--eval-every", "0", "--log", log, "--save",
                    save] + train)
        if done is None:
            return f"{network} {name} failed"
        with open(log, encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        losses = [r["loss"] for r in records if r.get("event") == "batch"]
        if len(losses) != 3:
            return f"{network} {name} failed: {len(losses)} losses"
        line = f"{network} {name} losses {short(json.dumps(losses).encode())} tensors {tensors(save)}"
    if options.scripts:
        text = run([vpps, "script", network] + those_of(asked, known_options(vpps, "script", network)))
        line += f" script {short(text.encode()) if text is not None else 'failed'}"
    return line


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vpps", default="build/vpps", help="the command (%(default)s)")
    parser.add_argument("--simt", action="store_true", help="with software SIMT, too")
    parser.add_argument("--no-scripts", dest="scripts", action="store_false", help="losses and tensors only")
    parser.add_argument("--only", default="", help="networks and settings whose 'NETWORK SETTING' this pattern finds")
    options = parser.parse_args()
    listed = re.search(r"^Networks:\n(.*?)\n\n", run([options.vpps, "--help"]) or "", re.S | re.M)
    if not listed:
        sys.exit(f"digests.py: {options.vpps} --help lists no networks")
    networks = re.findall(r"^  ([a-z][a-z0-9-]*) ", listed.group(1), re.M)
    settings = SETTINGS | (SIMT if options.simt else {})
    jobs = [(n, s) for n in networks for s in settings if re.search(options.only, f"{n} {s}")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for line in pool.map(lambda j: digest(options.vpps, j[0], j[1], settings[j[1]], options), jobs):
            print(line, flush=True)


if __name__ == "__main__":
    main()
