"""Checks the package on this machine: `python -m vpps.doctor [--json]` prints what it finds; exit status 1 means something is broken."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import sysconfig
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import vpps

from . import _vpps
from ._vpps import ffi, lib


def _device(device: str) -> str:
    """Trains a small recurrent network on `device`. Returns the report's line about the device; raises an exception if the loss falls too little."""
    model = vpps.Model(seed=1)
    rnn, out = vpps.nn.RNN(model, model.add_lookup("E", 5, 8), 8), model.add_matrix("O", 2, 8)
    trainer = vpps.Trainer(model, optimizer="adam", lr=0.02, device=device, no_tuning=True)
    graph, losses = model.graph(), []
    for _ in range(60):
        with graph:
            ends = vpps.nn.chain(rnn, [(word + k) % 5 for word in range(5) for k in range(3)], [3] * 5).scattered()[2::3]
            trainer.step(vpps.average([vpps.cross_entropy(out @ h, word % 2) for word, h in enumerate(ends)]))
        losses.append(trainer.loss())
    stats, first, last = trainer.stats(), losses[0], losses[-1]
    if not (np.isfinite(last) and last < 0.7 * first):
        raise RuntimeError(f"a small network does not learn: loss {first:.3f}, then {last:.3f}")
    return f"ready: {stats.precision_unit}, {stats.vps} virtual processors, learns (loss {first:.2f} to {last:.2f})"


def _version() -> str:
    header: str = ffi.string(lib.glue_version()).decode()
    if header != vpps.__version__:
        raise RuntimeError(f"compiled with the header of {header}, but the library is {vpps.__version__}")
    return vpps.__version__


def _package(name: str) -> str:
    try:
        module = __import__(name)
    except ImportError:
        return "not installed"
    return str(getattr(module, "__version__", "installed"))


def examine() -> list[dict[str, Any]]:
    """Examines the package. A finding has a name, a state, and `ok`: true, false, or None if something optional is not ready."""
    found: list[dict[str, Any]] = []

    def add(name: str, call: Callable[[], str], needed: bool = True) -> None:
        try:
            found.append({"name": name, "state": call(), "ok": True})
        except Exception as e:
            found.append({"name": name, "state": f"{type(e).__name__}: {e}" if needed else f"not ready: {e}",
                          "ok": False if needed else None})

    add("vpps", _version)
    add("library", lambda: os.path.realpath(str(_vpps.__file__)))
    add("python", lambda: f"{platform.python_implementation()} {platform.python_version()}, {sysconfig.get_platform()}")
    add("cores", lambda: str(len(os.sched_getaffinity(0))))
    for package in ("numpy", "cffi", "safetensors", "tensorboardX", "tqdm"):
        add(package, partial(_package, package))
    add("device cpu", lambda: _device("cpu"))
    add("device cuda", lambda: _device("cuda"), needed=False)
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m vpps.doctor", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    o = parser.parse_args(arguments)
    found = examine()
    ok = all(f["ok"] is not False for f in found)
    if o.json:
        print(json.dumps({"ok": ok, "found": found}, indent=1))
    else:
        for f in found:
            print(f"{'  ' if f['ok'] is not False else '! '}{f['name']:13} {f['state']}")
        print("all is in order" if ok else "something is wrong: see the lines with !")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
