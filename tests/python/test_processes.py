"""Tests that two processes train one model over MPI as one process does, with a whole copy of each table or shared tables."""

import os
import shutil
import subprocess
import sys

import pytest

PROGRAM = """
import pathlib
import numpy as np
import vpps

def train(communicator, part, parts, shared):
    m = vpps.Model(1)
    m.shard_tables(communicator if shared else None)
    E, W = m.add_lookup("E", 7, 4), m.add_matrix("W", 3, 4)
    trainer = vpps.Trainer(m, lr=0.1, vps=1, communicator=communicator)
    rng, graph, losses = np.random.default_rng(1), m.graph(), []
    for step in range(6):
        words, labels = rng.integers(7, size=4), rng.integers(3, size=4)
        mine = range(part, 4, parts) if step != 3 else range(4) if part == 0 else ()
        with graph:
            terms = [vpps.cross_entropy(W @ E[words[i]], labels[i]) / 4 for i in mine]
            trainer.step(vpps.sum(terms)) if terms else trainer.idle_step(graph)
        losses.append(trainer.loss())
    with graph:
        losses.append(float(trainer.forward(vpps.sum_elements(E[5]))))
    trainer.forward_end()
    trainer.close()
    return np.array(losses + list(m.parameter("W").view().reshape(-1))), E

alone, table = train(None, 0, 1, False)
with vpps.Communicator() as c:
    assert c.size == 2
    for shared in (False, True):
        together, E = train(c, c.rank, 2, shared)
        np.testing.assert_allclose(together, alone, rtol=1e-5, atol=1e-6)
        own = table.value[c.rank::2] if shared else table.value  # of 7 entries 4 and 3
        for values in (E.value, E.view(), E.model.state_dict()["E"]):
            np.testing.assert_allclose(values, own, rtol=1e-5, atol=1e-6)
        E.value = 2 * own
        np.testing.assert_array_equal(E.view(), 2 * own)
    pathlib.Path(__file__).with_name(f"rank {c.rank}").touch()  # what both print may be mixed within a line
"""


def test_two_processes_train_as_one(tmp_path):
    launcher = shutil.which("mpirun.openmpi")
    if not launcher:
        pytest.skip("Open MPI is not installed")
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run([launcher, "--oversubscribe", "--bind-to", "none", "-n", "2", sys.executable, tmp_path / "program.py"],
                          capture_output=True, text=True, timeout=900, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.glob("rank *")) == ["rank 0", "rank 1"]
