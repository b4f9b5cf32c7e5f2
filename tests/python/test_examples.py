"""Tests that the examples in Python run, and reach the accuracy that they state: shorter runs here, full ones with VPPS_EXAMPLES=full."""

import ast
import importlib.util
import itertools
import json
import os
import re
import runpy
import subprocess
import sys

import numpy as np
import pytest

import vpps

FULL = os.environ.get("VPPS_EXAMPLES") == "full"


@pytest.fixture
def example(root, monkeypatch):
    """Returns a function that imports a module of examples/."""
    monkeypatch.syspath_prepend(str(root / "examples"))

    def load(name):
        spec = importlib.util.spec_from_file_location(name, root / "examples" / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def test_tree_lstm(example, tmp_path):
    short = ["--epochs", "2", "--examples", "200", "--hidden", "48", "--save", str(tmp_path / "a"), "--log-dir", str(tmp_path / "b")]
    reached = example("tree_lstm").main([] if FULL else short)
    assert reached > (0.87 if FULL else 0.75)
    if not FULL:
        assert vpps.checkpoint_metadata(tmp_path / "a", "vocabulary").startswith("<unk>")
        losses = [row["loss"] for row in vpps.metrics.read_csv(tmp_path / "b/metrics.csv")]
        assert len(losses) == 26 and losses[-1] < losses[0]


def test_tree_lstm_reads_the_stanford_trees(example, tmp_path):
    (tmp_path / "train").write_text("(3 (2 a) (3 good))\n(1 (2 a) (1 (1 bad) (2 film)))\n" * 8)
    assert example("tree_lstm").main(["--train", str(tmp_path / "train"), "--dev", str(tmp_path / "train"), "--epochs", "30",
                                      "--hidden", "16", "--batch", "4"]) == 1.0


def test_tree_lstm_is_that_of_the_command(example, build, tmp_path):
    """Since names and initial values are the same, a checkpoint that `vpps train` wrote gives the command's accuracy here. After fewer
    epochs, which forget gate goes with which child would not change the label of any node."""
    data = tmp_path / "data"
    data.mkdir()
    for part, seed in (("train", 1), ("dev", 2), ("test", 3)):
        bank = vpps.data.Treebank().generate_listops(60, seed=seed, max_leaves=15)
        (data / f"{part}.txt").write_text("".join(bank.text(i).strip() + "\n" for i in range(len(bank))))
    subprocess.run([str(build / "vpps"), "train", "tree-lstm", "--data", str(data), "--hidden", "24", "--embed", "24", "--epochs", "40",
                    "--optimizer", "adam", "--lr", "0.02", "--save", str(tmp_path / "c"), "--quiet", "--min-count", "1"], check=True, capture_output=True)
    told = json.loads(subprocess.run([str(build / "vpps"), "eval", "--model", str(tmp_path / "c"), "--test", str(data / "test.txt"), "--json"],
                                     check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    words = vpps.data.Vocab.from_text(vpps.checkpoint_metadata(tmp_path / "c", "vocabulary"))
    bank = vpps.data.Treebank().read(data / "test.txt")
    model = vpps.Model(seed=9)
    net = example("tree_lstm").TreeLstm(model, len(words), 10, 24, 24)
    trainer = vpps.Trainer(model)
    trainer.load(tmp_path / "c")
    trees = bank.arrays()
    mine = net.accuracy(model.graph(), trainer, trees.with_words(bank.vocab.map(words)))
    assert mine == pytest.approx(told["metrics"]["nodes"], abs=1e-6)


def test_tagger_crf(example):
    reached = example("tagger_crf").main([] if FULL else ["--epochs", "3", "--sentences", "600"])
    assert reached > (0.9 if FULL else 0.5)


def test_the_fields_loss_is_that_of_all_taggings(example, rng):
    """Compares the forward algorithm with the sum over all taggings, and Viterbi's tagging with the best of them."""
    module = example("tagger_crf")
    model, tags = vpps.Model(seed=1), 3
    net = module.Tagger(model, 7, tags, 5, 6)
    trainer = vpps.Trainer(model)
    net.T.value = rng.standard_normal((1, tags, tags)) * 2
    model.parameter("W_s").value = rng.standard_normal((tags, 12)) * 3
    T, graph = net.T.value[0], model.graph()
    sentences = [module.Sentence(rng.integers(7, size=n).astype(np.uint32), rng.integers(tags, size=n).astype(np.uint32))
                 for n in (1, 2, 5, 4)]
    with graph:
        emitted, begin, end = net.emissions(graph, sentences)
        emissions = trainer.forward(emitted.pushed(0))
    with graph:
        loss = trainer.value(net.loss(graph, sentences))
    found = net.tag(graph, trainer, sentences)
    losses = []
    for s, b, mine in zip(sentences, begin, found):
        scores = {}
        for path in itertools.product(range(tags), repeat=len(s.words)):
            scores[path] = sum(emissions[b + t, y] for t, y in enumerate(path)) + sum(T[y, x] for x, y in zip(path, path[1:]))
        total = np.log(sum(np.exp(np.float64(v)) for v in scores.values()))
        losses.append(total - scores[tuple(int(y) for y in s.tags)])
        assert tuple(mine) == max(scores, key=scores.get)
    assert loss == pytest.approx(np.mean(losses), rel=1e-4)


def conllu(rng, n):
    """Draws sentences of a small language, in which words depend on the noun that follows them, and nouns on the verb beside them."""
    lines = []
    for _ in range(n):
        rows = []
        for part in ("nsubj", "obj"):
            noun = len(rows) + 1 + int(rng.integers(3)) + 1
            words = ["the"] + [f"adj{rng.integers(5)}" for _ in range(noun - len(rows) - 2)]
            rows += [(w, "DET" if w == "the" else "ADJ", noun, "det" if w == "the" else "amod") for w in words]
            rows.append((f"noun{rng.integers(5)}", "NOUN", None, part))
            if part == "nsubj":
                verb = len(rows) + 1
                rows.append((f"verb{rng.integers(5)}", "VERB", 0, "root"))
        lines += [f"{i}\t{w}\t_\t{tag}\t_\t_\t{verb if head is None else head}\t{relation}\t_\t_\n"
                  for i, (w, tag, head, relation) in enumerate(rows, 1)] + ["\n"]
    return "".join(lines)


def test_transition_parser(example, rng, tmp_path):
    """Trains the parser on drawn sentences, and, if asked for and there, on the whole corpus."""
    for part, n in (("train", 200), ("dev", 40), ("test", 10)):
        (tmp_path / f"gum.{part}.conllu").write_text(conllu(rng, n))
    module = example("transition_parser")
    assert module.main(["--data", str(tmp_path), "--hidden", "16", "--epochs", "4", "--batch", "4"]) > 0.9
    corpus = os.path.join(os.environ.get("VPPS_DATA", "../shared/data"), "gum")
    if FULL and os.path.isdir(corpus):
        assert module.main(["--data", corpus]) > 0.86


def test_the_parsers_oracle(example):
    """Every tree of up to five words is either built by the oracle's moves, or has edges that cross."""
    module = example("transition_parser")
    for n in range(1, 6):
        for heads in itertools.product(range(n + 1), repeat=n):
            up = dict(enumerate(heads, 1))
            if any(0 not in above(up, k) for k in up):
                continue  # a cycle
            edges = [sorted(e) for e in up.items()]
            crosses = any(a < c < b < d for a, b in edges for c, d in edges)
            steps = module.oracle(module.Tree([0] * (n + 1), [0] * (n + 1), [0, *heads], [0] * (n + 1)))
            assert (steps is None) == crosses, heads
            assert crosses or len(steps) == 2 * n


def above(up, k):
    """Returns the words above word k, up to the root (or, in a cycle, until there are more than words)."""
    path = []
    while k and len(path) <= len(up):
        k = up[k]
        path.append(k)
    return path


def test_code_names(example, capsys):
    module = example("code_names")
    f = ast.parse('def getItem(self, n):\n    "Finds it."\n    return self.getItem(n - 1)').body[0]
    words, parents = module.flatten(f)
    assert module.words_of("getItem_HTTPServer2") == ["get", "item", "http", "server", "2"] and len(words) == len(parents)
    assert words == "function arguments arg self arg n Return Call Attribute Name self ? BinOp Name n Constant int".split()
    assert [words[p] for p in parents[1:]] == "function arguments arg arguments arg function Return Call Attribute Name Attribute Call BinOp Name BinOp Constant".split()
    reached = module.main([] if FULL else ["--functions", "250", "--epochs", "2"])
    losses = [float(x) for x in re.findall(r"loss (\S+)", capsys.readouterr().out)]
    assert len(reached) == 3 and all(0.45 * FULL <= r < 1 for r in reached.values())
    assert FULL or (len(losses) == 6 and all(b < a for a, b in zip(losses[::2], losses[1::2])))


@pytest.mark.packages
def test_recurrent_policy(example, root, monkeypatch, capsys):
    """Both ways to run a rollout agree; in full, training with either learns. Also runs the benchmark of both."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    module = example("recurrent_policy")
    theirs = torch.nn.LSTM(3, module.HIDDEN)
    ours, x, starts = vpps.torch.LSTM.from_torch(theirs, vps=1), torch.randn(9, 5, 3), torch.rand(9, 5) < 0.3
    state = tuple(torch.randn(1, 5, module.HIDDEN) for _ in range(2))
    torch.testing.assert_close(module.by_sequences(ours, x, starts, state), module.by_masks(theirs, x, starts, state))
    assert all(r > 0.9 if FULL else 0 <= r <= 1 for r in module.main([] if FULL else ["--updates", "2"]).values())
    monkeypatch.syspath_prepend(str(root / "bench"))
    monkeypatch.setattr(torch, "compile", lambda layer, **_: layer)
    importlib.import_module("layers").main(["--lengths", "12", "--batches", "2", "--hidden", "4", "--rounds", "1", "--seconds", "0"])
    shown = capsys.readouterr().out
    assert all(re.search(rf"{way} +[\d,]+ \(", shown) for way in ("vpps", "vpps-equal", "packed", "padded", "compiled", "masks"))


@pytest.mark.packages
def test_hugging_face(example, monkeypatch, tmp_path):
    pytest.importorskip("datasets", reason="Hugging Face's datasets is not installed")
    pytest.importorskip("tokenizers")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    assert example("hugging_face").main([] if FULL else ["--epochs", "2", "--rows", "1200"]) > (0.95 if FULL else 0.7)


def test_torch_and_back(root, monkeypatch, capsys):
    source = (root / "examples/evaluate_in_torch.py").read_text()
    code = [line for line in source.split('"""', 2)[2].splitlines() if line.strip()]
    assert len(code) <= 40
    pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.syspath_prepend(str(root / "examples"))
    runpy.run_path(str(root / "examples/evaluate_in_torch.py"))
    assert len(re.findall("differ by", capsys.readouterr().out)) == 2


def test_checkpoint_in_numpy(example, tmp_path):
    """Does what evaluate_in_torch.py does, in NumPy: the checkpoint's numbers and the network's equations give the same scores."""
    load = pytest.importorskip("safetensors.numpy").load_file
    bank = vpps.data.Treebank().generate_listops(5, seed=1, max_leaves=20)
    t, model = bank.arrays(), vpps.Model(seed=1)
    net, graph = example("tree_lstm").TreeLstm(model, len(bank.vocab), bank.classes, 12, 16), model.graph()
    trainer = vpps.Trainer(model, optimizer="adam", lr=0.02)
    for _ in range(10):
        with graph:
            trainer.step(net.loss(t))
    with graph:
        here = trainer.forward(net.add(t).pushed(0))
    trainer.save(tmp_path / "a")
    w, states = load(tmp_path / "a"), []

    def sigmoid(x):
        return 1 / (1 + np.exp(-x))

    for word, left, right in zip(t.word, t.left, t.right):
        if left < 0:
            x = w["embedding"][word].reshape(-1)
            i, o, u = (w[f"W_{g}"] @ x + w[f"b_{g}"] for g in "iou")
            c = sigmoid(i) * np.tanh(u)
        else:
            (h_l, c_l), (h_r, c_r) = states[left], states[right]
            i, o, u = (w[f"U_{g}_l"] @ h_l + w[f"U_{g}_r"] @ h_r + w[f"b_{g}"] for g in "iou")
            f_l, f_r = (w[f"U_f_{g}l"] @ h_l + w[f"U_f_{g}r"] @ h_r + w["b_f"] for g in "lr")
            c = sigmoid(i) * np.tanh(u) + sigmoid(f_l) * c_l + sigmoid(f_r) * c_r
        states.append((sigmoid(o) * np.tanh(c), c))
    there = np.stack([h for h, _ in states]) @ w["W_s"].T + w["b_s"]
    assert np.abs(here - there).max() < 1e-5


@pytest.mark.packages
def test_notebook(root, monkeypatch, tmp_path):
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    notebook = json.loads((root / "examples/curve_and_trace.ipynb").read_text())
    assert notebook["nbformat"] == 4 and all(not c.get("outputs") for c in notebook["cells"])
    monkeypatch.syspath_prepend(str(root / "examples"))
    monkeypatch.chdir(tmp_path)
    state = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), "curve_and_trace.ipynb", "exec"), state)
    assert len(pyplot.get_fignums()) == 2
    assert state["losses"][-10:].mean() < 0.5 * state["losses"][:10].mean()
    assert len(state["shown"]) > 20 and len(state["tracks"]) >= 2
    pyplot.close("all")
    sys.modules.pop("tree_lstm", None)
