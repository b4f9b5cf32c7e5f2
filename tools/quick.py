#!/usr/bin/env python3
"""Builds and runs the tests closest to what changed since the last commit, and trains one network.

    tools/quick.py [--list] [FILE...]        make quick

FILE names what changed, in place of what git says. A C test is close to the files that it is made of and includes, and to its
folder's; a script to the command's sources and the networks that its text names. A file counts for more the fewer tests have it.
The closest are taken until SECONDS of processor time are used up, by the times of their last run (BUILD/times, which
tools/run_tests.sh writes). --list prints them with their times.
"""
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

SECONDS = 30.0  # of processors: half on two cores, beside what is built
UNKNOWN = 2.0  # of a test that never ran
os.chdir(Path(__file__).resolve().parent.parent)
BUILD = os.environ.get("BUILD", "build")
ENGINE = tuple(f + "/" for f in re.search(r"^engine +\d+ +(.*)", Path("tools/budget.txt").read_text(), re.M)[1].split())


def git(*words):
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout.split()


def program_of(source):
    return f"{BUILD}/tests/" + source.removeprefix("tests/").removesuffix(".c").replace("/", "_")


def files_of_tests():
    """Returns test -> names: of a C test the files in the compiler's dependency files, of a script the words of its text."""
    tests = {}
    for source in map(str, Path("tests").glob("*/test_*.c")):
        near = [source, *(str(f) for f in Path(source).parent.glob("*.c") if not f.name.startswith("test_"))]
        listed = [Path(BUILD, "obj", f).with_suffix(".d") for f in near]
        tests[program_of(source)] = set(near).union(*(d.read_text().replace("\\", "").split() for d in listed if d.exists()))
    for script in Path("tests").glob("*/test_*.sh"):
        if script.parent.name == "build":  # minutes each
            tests[str(script)] = {str(script)}
            continue
        tests[str(script)] = {str(script), script.stem.removeprefix("test_").replace("_", "-"), *re.findall(r"[a-z][a-z0-9-]+", script.read_text())}
    return tests


def names_of(path):
    """What tests have instead of a source: its header, or the headers of its folder that it includes; in scripts, its name."""
    file = Path(path)
    header = str(file.with_suffix(".h"))
    names = {path, header}
    if path.startswith(("python/", "tests/python/")):
        return {path, "tests/python/test_python.sh"}
    if not path.startswith(ENGINE):
        names.add(file.stem.replace("_", "-"))
    if file.suffix == ".c" and file.exists() and not Path(header).exists():
        names |= {"src/" + h for h in re.findall(r'#include "([^"]+)"', file.read_text()) if Path("src/" + h).parent == file.parent}
    return names


def main():
    options = [a for a in sys.argv[1:] if a.startswith("-")]
    changed = [a for a in sys.argv[1:] if a not in options] or git("diff", "--name-only", "HEAD") + git("ls-files", "-o", "--exclude-standard")
    if options not in ([], ["--list"]):
        sys.exit(__doc__)
    tests, times = files_of_tests(), {}
    if Path(BUILD, "times").exists():
        times = {t: float(s) for t, s in (line.split() for line in Path(BUILD, "times").read_text().splitlines())}
    shared = Counter(f for files in tests.values() for f in files)
    score = Counter()
    for path in changed:
        folder = path.removeprefix("src/").removeprefix("tests/").split("/")[0]
        for test, files in tests.items():
            own = sum(1 / shared[n] for n in names_of(path) & files)
            near = f"tests/{folder}_" in test
            score[test] += own + near * (1 if own else 0.1)
    chosen, left = [], SECONDS
    for test, points in score.most_common():
        if points and (not chosen or times.get(test, UNKNOWN) <= left):
            chosen.append(test)
            left -= times.get(test, UNKNOWN)
    if options:
        print(*(f"{score[t]:6.2f}  {times.get(t, UNKNOWN):6.2f} s  {t}" for t in chosen), sep="\n")
        return 0
    programs = [t for t in chosen if not t.endswith(".sh")]
    make = os.environ.get("MAKE", "make")
    vpps = f"{BUILD}/vpps"
    environment = {**os.environ, "BUILD": BUILD, "VPPS": vpps}
    built = subprocess.run([make, "--no-print-directory", f"-j{os.cpu_count()}", "all", *programs], env=environment).returncode
    if built:
        return built
    failed = bool(chosen) and subprocess.run(["tools/run_tests.sh", *chosen], env=environment).returncode
    network = "train tree-lstm --device cpu --no-tuning --examples 200 --epochs 2 --hidden 32 --embed 32"
    return int(subprocess.run([vpps, *network.split()]).returncode or failed)


sys.exit(main())
