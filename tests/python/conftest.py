import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def root():
    return ROOT


@pytest.fixture
def rng():
    return np.random.default_rng(1)


@pytest.fixture(scope="session")
def build():
    """The folder of what make has built."""
    return Path(os.environ.get("BUILD", ROOT / "build")).resolve()


@pytest.fixture
def python():
    """Runs a program of its own; its output."""

    def run(code, *arguments, status=0):
        done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, timeout=120,
                              check=False)
        assert done.returncode == status, done.stderr
        return done.stdout

    return run
