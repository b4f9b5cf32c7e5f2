#!/usr/bin/env python3
"""Tests the tests by the mutants of list.txt: plants one fault at a time in a copy of the tree, builds it, and runs those that should notice.

A mutant is seen if one of its tests fails, unseen if all pass. Results are kept in BUILD/mutants/results: a mutant whose entry, file
and tests are as they were is not run again. The exit status is 0 if at least 95 % of the mutants that are not equivalent were seen.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import os
import pathlib
import queue
import shutil
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
LIST = pathlib.Path(__file__).with_name("list.txt")
WANTED_PERCENT = 95
BUILD_SECONDS = 1800
UNMUTATED_SECONDS = 600


class Mutant:
    """A mutant, from its entry in the list: `find` occurs once in `file` and is replaced by `replace`; `tests` are source files in tests/."""

    def __init__(self, name):
        self.name, self.what, self.file = name, "", ""
        self.find, self.replace, self.tests, self.equivalent = [], [], [], ""

    def faults(self):
        """Returns what is wrong with the entry, given the sources as they are now."""
        if not self.what or not self.file or not self.find or not (self.tests or self.equivalent):
            return ["expected `what`, `file`, `find`, and `test` or `equivalent`"]
        if not (TOP / self.file).is_file():
            return [f"there is no {self.file}"]
        count = (TOP / self.file).read_text().count("\n".join(self.find))
        faults = [] if count == 1 else [f"its text occurs {count} times in {self.file}, expected once"]
        return faults + [f"there is no tests/{t}" for t in self.tests if not (TOP / "tests" / t).is_file()]

    def digest(self, tests):
        """Returns a hash of the entry, the file and the tests: it changes if any of them does."""
        h = hashlib.sha256(repr((self.name, self.find, self.replace)).encode())
        for path in [self.file] + ["tests/" + t for t in tests]:
            h.update((TOP / path).read_bytes())
        return h.hexdigest()[:16]


def read_list():
    mutants, faults, names = [], [], set()
    for number, line in enumerate(LIST.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            mutants.append(Mutant(line[1:-1]))
            if line in names:
                faults.append(f"{LIST}:{number}: a second {line}")
            names.add(line)
            continue
        key, colon, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if not mutants or not colon:
            faults.append(f"{LIST}:{number}: expected [NAME] or KEY: VALUE")
        elif key in ("what", "file", "equivalent"):
            setattr(mutants[-1], key, value)
        elif key in ("find", "replace"):
            getattr(mutants[-1], key).append(value)
        elif key == "test":
            mutants[-1].tests += value.split()
        else:
            faults.append(f"{LIST}:{number}: unknown key {key}")
    for m in mutants:
        faults += [f"{m.name}: {fault}" for fault in m.faults()]
    return mutants, faults


def target_of(test):
    """Returns what has to be built for a test, and the program to run."""
    if test.endswith(".sh"):
        return ["all"] + (["bench-programs"] if test.startswith("build/") else []), "tests/" + test
    program = "build/tests/" + test[:-2].replace("/", "_")
    return [program], program


def left_out():
    """Returns the paths that a copy of the tree is without: what git ignores, except what was built, and the copies themselves."""
    ignored = subprocess.run(["git", "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"], cwd=TOP, check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    return {TOP / name for name in ignored.split("\0")} - {TOP, TOP / "build"} | {TOP / ".git", TOP / "build/mutants"}


class Worker:
    """A copy of the tree in which mutants are built and run, one after the other, with what was built there before."""

    def __init__(self, folder, original):
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        out = left_out()
        # With their times, by which make decides what to build.
        shutil.copytree(original, folder, symlinks=True, ignore=lambda at, names: [n for n in names if pathlib.Path(at, n) in out])

    def call(self, command, seconds):
        """Runs a command. Returns its exit status (124: it took too long) and its output."""
        env = {**os.environ, "BUILD": "build", "VPPS": "build/vpps", "MAKE": "make", "TEST_LIMIT": str(int(seconds))}
        env.pop("MAKEFLAGS", None)
        env.setdefault("VPPS_TEST_KERNELS", "all")  # kernels of all kinds, which make check-kernels tests, but make test does not
        env.setdefault("VPPS_DATA", str((TOP / "../shared/data").resolve()))
        p = subprocess.Popen(command, cwd=self.folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, start_new_session=True, text=True, errors="replace")
        try:
            out, _ = p.communicate(timeout=seconds + 30)
            return p.returncode, out
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, 9)
            return 124, p.communicate()[0]

    def build(self, tests):
        targets = sorted({t for test in tests for t in target_of(test)[0]})
        return self.call(["make", "--no-print-directory", "BUILD=build", *targets], BUILD_SECONDS)

    def test(self, test, seconds):
        return self.call(["tools/run_tests.sh", target_of(test)[1]], seconds)

    def run(self, mutant, seconds_of):
        """Returns the mutant's status, the test that noticed, and the tail of the test's output."""
        path = self.folder / mutant.file
        original = path.read_text()
        try:
            path.write_text(original.replace("\n".join(mutant.find), "\n".join(mutant.replace)))
            for test in mutant.tests:
                code, out = self.build([test])
                if code:
                    return "does not build", "", out
                code, out = self.test(test, 30 + 5 * seconds_of[test])
                if code:
                    return "seen", test, out
            return "unseen", "", ""
        finally:
            path.write_text(original)


def each(workers, items, work):
    """Calls work(worker, item) for every item, on a worker that is idle. Yields the items with what it returned, as they are done."""
    idle = queue.SimpleQueue()
    for w in workers:
        idle.put(w)

    def on_idle(item):
        worker = idle.get()
        try:
            return item, work(worker, item)
        finally:
            idle.put(worker)

    pool = concurrent.futures.ThreadPoolExecutor(len(workers))
    try:
        for done in concurrent.futures.as_completed([pool.submit(on_idle, item) for item in items]):
            yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)


class Results:
    def __init__(self, path, fresh):
        self.path, self.known = path, {}
        path.parent.mkdir(parents=True, exist_ok=True)
        if fresh:
            path.unlink(missing_ok=True)
        if path.exists():
            for line in path.read_text().splitlines():
                name, digest, status, test = line.split("\t")
                self.known[name] = (digest, status, test)

    def of(self, mutant):
        """Returns the status and the test, or None if something has changed since."""
        digest, status, test = self.known.get(mutant.name, ("", "", ""))
        tests = [test] if test else mutant.tests
        if not digest or not set(tests) <= set(mutant.tests) or digest != mutant.digest(tests):
            return None
        return status, test

    def add(self, mutant, status, test):
        digest = mutant.digest([test] if test else mutant.tests)
        self.known[mutant.name] = (digest, status, test)
        with self.path.open("a") as f:
            f.write(f"{mutant.name}\t{digest}\t{status}\t{test}\n")


def unmutated(jobs, mutants):
    """Builds the tree without a fault, copies it for every worker, and runs the tests.

    Returns the workers, the seconds that each test takes, and the tests that fail even so."""
    tests = sorted({t for m in mutants for t in m.tests})
    trees = TOP / "build/mutants"
    workers = [Worker(trees / "tree0", TOP)]
    code, out = workers[0].build(tests)
    if code:
        sys.exit(f"the tree does not build:\n{out[-2000:]}")
    workers += [Worker(trees / f"tree{i}", workers[0].folder) for i in range(1, jobs)]

    def timed(worker, test):
        start = time.monotonic()
        code, out = worker.test(test, UNMUTATED_SECONDS)
        return code, out, time.monotonic() - start

    seconds, broken = {}, set()
    for test, (code, out, seconds[test]) in each(workers, tests, timed):
        if code:
            broken.add(test)
            print(f"tests/{test} fails without a mutant:\n{out[-1500:]}", flush=True)
    return workers, seconds, broken


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*", metavar="NAME", help="mutants whose names begin so (default: all)")
    p.add_argument("--jobs", type=int, default=os.cpu_count(), help="mutants at a time (default: one a core)")
    p.add_argument("--fresh", action="store_true", help="run those with a result again")
    p.add_argument("--check", action="store_true", help="only check that every entry fits the tree")
    p.add_argument("--verbose", action="store_true", help="print the end of what the test said")
    a = p.parse_args()
    mutants, faults = read_list()
    if faults:
        sys.exit("\n".join(faults))
    if a.check:
        print(f"{len(mutants)} mutants fit the tree")
        return
    mutants = [m for m in mutants if not a.names or any(m.name.startswith(n) for n in a.names)]
    results = Results(TOP / "build/mutants/results", a.fresh)
    todo = [m for m in mutants if not m.equivalent and results.of(m) is None]
    if todo:
        workers, seconds, broken = unmutated(max(1, min(a.jobs, len(todo))), todo)
        for m in todo:
            m.tests = [t for t in m.tests if t not in broken]
        for m, (status, test, out) in each(workers, todo, lambda w, m: w.run(m, seconds)):
            results.add(m, status, test)
            print(f"{status:<8} {m.name:<36} {test}", flush=True)
            if a.verbose or status == "does not build":
                print("    " + "\n    ".join(out.splitlines()[-12:]), flush=True)
        for w in workers:
            shutil.rmtree(w.folder, ignore_errors=True)

    print()
    counts = collections.Counter()
    for m in mutants:
        status, test = ("equivalent", m.equivalent) if m.equivalent else results.of(m) or ("unseen", "")
        counts[status] += 1
        print(f"{status:<10} {m.name:<36} {test or m.what}")
    unequal = len(mutants) - counts["equivalent"]
    percent = 100 * counts["seen"] / max(1, unequal)
    print("\n" + ", ".join(f"{n} {s}" for s, n in sorted(counts.items())) + f": {percent:.1f} % of {unequal} seen")
    sys.exit(0 if percent >= WANTED_PERCENT else 1)


if __name__ == "__main__":
    main()
