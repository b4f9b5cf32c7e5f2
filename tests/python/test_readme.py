"""Tests the trainer that README.md shows in Python: it has at most 30 lines, and the same losses as the one in C, to the last bit."""

import ctypes
import inspect
import os
import random
import re
import subprocess

import pytest

import vpps
from vpps._vpps import ffi, lib
from vpps.engine import ENUMS


def block(root, language):
    return re.search(rf"^```{language}\n(.*?)^```", (root / "README.md").read_text(), re.MULTILINE | re.DOTALL)[1]


def test_losses_are_those_in_c(root, build, tmp_path, capsys, monkeypatch):
    code = block(root, "python")
    assert len(code.splitlines()) <= 30
    source = block(root, "c")
    assert "loss %.4f" in source and "loss:.4f" in code
    (tmp_path / "trainer.c").write_text(source.replace("loss %.4f", "loss %.9g"))
    libraries = re.search(r"^LIBS\s*:= (.*)$", (root / "Makefile").read_text(), re.MULTILINE)[1].split()
    subprocess.run([os.environ.get("CC", "cc"), "-O2", f"-I{root}/include", str(tmp_path / "trainer.c"),
                    str(build / "libvpps.a"), *libraries, "-o", str(tmp_path / "trainer")], check=True)
    expected = subprocess.run([str(tmp_path / "trainer")], capture_output=True, text=True, check=True).stdout
    assert len(expected.splitlines()) == 6

    libc = ctypes.CDLL(None)
    libc.srand(1)  # the state in which a C program begins

    def randrange(a, b=None):
        return libc.rand() % a if b is None else a + libc.rand() % (b - a)

    monkeypatch.setattr(random, "randrange", randrange)
    exec(compile(code.replace("loss:.4f", "loss:.9g"), "README.md", "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize("name", ["README.md", "doc/python.md", "doc/library.md"])
def test_names_in_documents_exist(root, name):
    text = (root / name).read_text()
    of_torch = re.search(r"^__all__ = \[(.*)\]", (root / "python/vpps/torch.py").read_text(), re.MULTILINE)[1]  # no import: PyTorch may be missing
    for path in set(re.findall(r"\bvpps\.([a-zA-Z_]\w*(?:\.\w+)?)", text)):
        if path.startswith("torch"):
            assert path == "torch" or f'"{path[6:]}"' in of_torch, f"{name}: vpps.{path}"
            continue
        at = vpps
        for part in path.split("."):
            if part in ("h", "so", "py", "c", "pc", "md", "doctor") or at is None:
                break
            assert hasattr(at, part), f"{name}: vpps.{path}"
            at = getattr(at, part)


def test_the_documents_blocks_run(root, capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", (root / "doc/python.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 3
    exec(compile("".join(blocks), "doc/python.md", "exec"), {"__name__": "__main__"})
    *losses, shape = capsys.readouterr().out.splitlines()
    assert losses and all(0 < float(loss) < 2 for loss in losses) and shape == "(3, 32)"


def test_default_learning_rates_are_the_librarys(root, build):
    """The documents name the default learning rates in one sentence, the same everywhere, with optimizers of equal rates together."""
    of_rate: dict = {}
    for name, kind in ENUMS["optimizer"].items():
        of_rate.setdefault(f"{lib.vpps_default_lr(kind):g}", []).append(name)
    sentence = ", ".join(f"{rate} for {' and '.join(names)}" for rate, names in of_rate.items())
    helped = subprocess.run([str(build / "vpps"), "train", "tree-lstm", "--help"], text=True, capture_output=True, check=True).stdout
    texts = {name: (root / "doc" / name).read_text() for name in ("training.md", "python.md", "vpps.1")}
    for name, text in {**texts, "help": helped, "docstring": vpps.Trainer.__doc__}.items():
        plain = re.sub(r" (?=[,.])", "", " ".join(re.sub(r"`|^\.Cm ", "", text, flags=re.MULTILINE).split()))
        assert sentence in plain, f"{name}: expected {sentence}"
    assert f"without the latter {lib.vpps_default_lr(lib.VPPS_ADAM):g}, where" in (root / "doc/library.md").read_text()


def test_the_table_of_arguments_is_the_trainers(root):
    """The table in the document names every argument and its default, and the optimizers' own defaults as the library has them."""
    options = ffi.new("vpps_options *")
    assert lib.vpps_options_init(options, ffi.sizeof("vpps_options")) == 0
    found = {}
    table = (root / "doc/python.md").read_text().split("## A trainer's arguments")[1].split("\n## ")[0]
    for names, defaults in re.findall(r"^\| (`.*?) \| (.*?) \|", table, re.MULTILINE):
        found |= dict(zip(re.findall(r"`(\w+)`", names), re.split(r", ", defaults.replace("`", ""))))
    parameters = dict(inspect.signature(vpps.Trainer).parameters)
    del parameters["model"]
    assert found.keys() == parameters.keys() and found.pop("lr") == "by optimizer"
    for name, default in found.items():
        taken = parameters[name].default
        if taken is None and hasattr(options.optimizer, name):
            assert float(default) == pytest.approx(getattr(options.optimizer, name)), name
        else:
            assert eval(default) == taken, name
