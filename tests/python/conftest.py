import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from vpps._vpps import lib

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(Path(__file__).parent))


class Recording:
    """Stands for the library, and notes the names of the library's functions that the package uses."""

    used: set = set()

    def __getattr__(self, name):
        self.used.add(name)
        return getattr(lib, name)


for module in list(sys.modules.values()):
    if module.__name__.startswith("vpps.") and module.__name__ != "vpps._vpps" and getattr(module, "lib", None) is lib:
        module.lib = Recording()


def pytest_collection_modifyitems(session, config, items):
    """Moves tests that look at what all tests did to the end, and leaves them out if only some tests are run."""
    last = [i for i in items if "functions_used" in getattr(i, "fixturenames", ())]
    items[:] = [i for i in items if i not in last]
    if config.args == ["tests/python"] and not config.option.keyword and config.option.markexpr in ("", "not packages"):
        items += last


@pytest.fixture
def functions_used():
    """Returns the names of the library's functions that were used so far."""
    return Recording.used


@pytest.fixture
def root():
    return ROOT


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.fixture(scope="session")
def build():
    """Returns the folder of what make has built."""
    return Path(os.environ.get("BUILD", ROOT / "build")).resolve()


@pytest.fixture
def python():
    """Returns a function that runs Python code in a process of its own and returns its output."""

    def run(code, *arguments, status=0):
        done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=900,
                              check=False)
        assert done.returncode == status, done.stderr
        return done.stdout

    return run
