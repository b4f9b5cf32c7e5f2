"""bench/peers.py: how it reads trees, and its worker that trains from Python."""
import json
import os
import re
import subprocess
import sys

BENCH = os.path.join(os.path.dirname(__file__), "..", "..", "bench")
sys.path.insert(0, BENCH)
import peers  # noqa: E402

TREES = "(3 (2 a) (1 (0 b) (1 a)))\n\n(2 (1 c) (0 b))\n"


def test_trees_are_read_in_post_order(tmp_path):
    file = tmp_path / "train.txt"
    file.write_text(TREES)
    first = [(2, 0, -1, -1), (0, 1, -1, -1), (1, 0, -1, -1), (1, -1, 1, 2), (3, -1, 0, 3)]
    assert peers.read_trees(file) == ([first, [(1, 2, -1, -1), (0, 1, -1, -1), (2, -1, 0, 1)]], 3)
    assert peers.read_trees(file, 1) == ([first], 2)


def test_a_rate_counts_what_was_trained():
    trained = []
    rate, last = peers.rate_of(lambda first, end: trained.append((first, end)), 10, 4, 0)
    assert trained == [(10, 14)] and last == 14 and rate > 0


def test_the_worker_answers_each_line(tmp_path):
    (tmp_path / "train.txt").write_text(TREES)
    done = subprocess.run([sys.executable, os.path.join(BENCH, "peers.py"), "vpps", "--data", str(tmp_path)], text=True,
                          input="1 0.01 bulk\n2 0.01 each\n1 0.01 bulk\n", stdout=subprocess.PIPE, check=True, timeout=100)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(a["batch"], a["way"]) for a in answers] == [(1, "bulk"), (2, "each"), (1, "bulk")]
    assert all(a["rate"] > 0 for a in answers)


def test_calls_are_timed():
    done = subprocess.run([sys.executable, os.path.join(BENCH, "peers.py"), "calls"], text=True, stdout=subprocess.PIPE, check=True, timeout=300)
    assert re.fullmatch(r"a vertex, each by a call: \d+ ns\na vertex, two calls for 16 trees: \d+ ns\na node, each by a call: \d+ ns\n", done.stdout)
