"""Tests python -m vpps.doctor, which reports on the installation."""

import json
import subprocess
import sys

import vpps
from vpps import doctor


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "vpps.doctor", *arguments], capture_output=True, text=True, check=False)


def test_it_is_in_order():
    done = run()
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "all is in order", done
    assert vpps.__version__ in done.stdout and "device cpu" in done.stdout
    found = json.loads(run("--json").stdout)
    assert found["ok"] and {f["name"] for f in found["found"]} >= {"vpps", "library", "numpy", "device cpu", "device cuda"}


def test_what_is_wrong_is_told(monkeypatch, capsys):
    monkeypatch.setattr(doctor.vpps, "__version__", "9.9.9")
    assert doctor.main([]) == 1
    text = capsys.readouterr().out
    assert "! vpps" in text and "9.9.9" in text and "something is wrong" in text
