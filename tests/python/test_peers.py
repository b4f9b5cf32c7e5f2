"""Tests how bench/peers.py and peers_torch.py read trees, and their workers."""
import json
import os
import re
import subprocess
import sys

import pytest

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
                          input="1 0.01 bulk\n2 0.01 each\n1 0.01 bulk\n", stdout=subprocess.PIPE, check=True, timeout=900)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(a["batch"], a["way"]) for a in answers] == [(1, "bulk"), (2, "each"), (1, "bulk")]
    assert all(a["rate"] > 0 for a in answers)


def test_calls_are_timed():
    done = subprocess.run([sys.executable, os.path.join(BENCH, "peers.py"), "calls"], text=True, stdout=subprocess.PIPE, check=True, timeout=900)
    assert re.fullmatch(r"a vertex, each by a call: \d+ ns\na vertex, two calls for 16 trees: \d+ ns\na node, each by a call: \d+ ns\n", done.stdout)


def test_trees_become_sentences(tmp_path):
    (tmp_path / "trees").write_text("(3 (2 It) (1 (0 's) (1 -lovely-)))\n(0 no)\n")
    done = subprocess.run([sys.executable, f"{BENCH}/recipes/tree_sentences.py", str(tmp_path / "trees")], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "3\tIt 's -lovely-\n0\tno\n"


LINES = {"sst/train.txt": TREES.replace("\n\n", "\n") * 3 + "(4 (4 d) (2 c))\n", "wikiner/train.txt": "Ann|B runs|O\nBob|B sees|O Ann|B\n" * 3,
         "gum/gum.train.conllu": re.sub(r"(\S+) (.) (.) (.)", r"\1\t\2\t_\t_\t_\t_\t\3\t\4\t_\t_", """1 a 2 x\n2 b 0 y\n3 a 2 x
4 c 3 z\n5 b 2 w\n\n# two roots\n1-2 c _ _\n1 b 0 y\n2 a 0 x\n\n""") * 2,
         "ptb_lm/ptb.train.txt": "a b a\nc <unk>\nb\n", "multi30k/train.de": "ab b\ncd aba b\n" * 3, "multi30k/train.en": "d\ne f\n" * 3,
         "lattice_ids/train.txt": "3\n" + "4\n0 1 0 1\n0\n1 0 2\n2 1 0 0 1\n3 2 2 0 0 1 2\n\n3\n0 1 1\n0\n1 0 2\n2 1 0 0 1\n\n2\n0 1\n0\n1 0 1\n"}


def in_torch(network, folder, build, *options, ways="batched,eager"):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    for name in peers.FILES[network]:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(LINES[name])
    return subprocess.run([sys.executable, os.path.join(BENCH, "peers_torch.py"), "--network", network, "--data", str(folder),
                           "--vpps", str(build / "vpps"), "--ways", ways, "--", "--hidden", "8", *options],
                          input="".join(f"2 0.01 {way}\n" for way in ways.split(",")), capture_output=True, text=True, check=False, timeout=900)


PAIRS = ("--source", "de", "--target", "en", "--embed", "8")
OPTIONS = {"lstm-nmt": ("--attention", *PAIRS), "lattice-gru": (*PAIRS, "--min-count", "1"), "lstm-lm": ("--embed", "8", "--min-count", "1"),
           "td-rnn": (), "transformer-tagger": (), "bilstm-tagger": ("--embed", "8", "--mlp", "8"), "bilstm-char-tagger": ("--embed", "8", "--mlp", "8")}


@pytest.mark.parametrize("network", peers.FILES)
def test_torch_trains_the_network_of_vpps(network, tmp_path, build):
    if network.startswith("gat"):
        pytest.importorskip("torch_geometric")
    ways = ["batched", "eager", *(["graphs"] if network in peers.PADDED else [])]
    done = in_torch(network, tmp_path, build, *OPTIONS.get(network.split()[0], ("--embed", "8")), ways=",".join(ways))
    assert done.returncode == 0, done.stderr
    assert [(a["way"], a["rate"] > 0) for a in map(json.loads, done.stdout.splitlines())] == [(way, True) for way in ways]


def test_torch_must_train_the_network_of_vpps(tmp_path, build):
    done = in_torch("lstm-lm", tmp_path, build, *OPTIONS["lstm-lm"], "--layers", "2")
    assert done.returncode == 1 and "not the network of VPPS" in done.stderr


def test_trees_have_no_padded_way(tmp_path, build):
    done = in_torch("tree-lstm", tmp_path, build, "--embed", "8", ways="graphs")
    assert done.returncode == 1 and "batches of tree-lstm do not fit few shapes" in done.stderr


def test_graphs_train_as_steps_do():
    """Batches of one bucket share buffers; what is behind a shorter batch's end in them is not read."""
    torch = pytest.importorskip("torch")
    from twins.buckets import Graphs, train
    from twins.parts import fill, rounded

    class Sum(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.nn.Embedding(4, 1, sparse=True)
            self.table.weight.data.zero_()

        def buffers(self, examples):
            return fill(torch.cat(examples), -1), torch.zeros(len(examples), dtype=torch.long)

        def padded(self, words, each):
            return (self.table(words.clamp(min=0)) * (words >= 0)[:, None]).sum() / len(each)

    assert [rounded(n) for n in (0, 1, 8, 9, 127, 129, 300)] == [0, 8, 8, 16, 128, 144, 320]
    net = Sum()
    graphs = Graphs(net, [torch.tensor(x) for x in ([1, 1, 2], [1], [3], [0])], lambda buffers: train(net, 0.5, buffers))
    graphs.prepare(1)
    assert len(graphs.known) == 1 and net.table.weight.flatten().tolist() == [0, -3, -1.5, 0]
    graphs.step(4, 6)
    graphs.step(2, 4)
    graphs.step(0, 4)
    assert len(graphs.known) == 3 and net.table.weight.flatten().tolist() == [-0.375, -4.125, -1.875, -0.375]
