"""Tests Model.export_c: cells exported as C, compiled and called through ctypes, give what the trainer gives."""

import ctypes
import os
import subprocess

import numpy as np
from small import HIDDEN, WORDS, Small, refused

import vpps


def test_a_cell_in_c(tmp_path):
    net = Small(vps=1).train()
    net.step(net.draw(np.random.default_rng(1)))
    with net.graph:
        v = net.start(indices=[7])
        want = net.trainer.forward([net.turn(v, indices=[3]).scattered()])[0]
    net.model.export_c(tmp_path / "net.c", header=tmp_path / "net.h", weights=tmp_path / "net.bin", prefix="one")
    subprocess.run(["cc", "-std=c99", "-Wall", "-Werror", "-O1", "-shared", "-fPIC", "-o", tmp_path / "net.so", tmp_path / "net.c", "-lm"],
                   check=True)
    lib = ctypes.CDLL(str(tmp_path / "net.so"))
    weights = (tmp_path / "net.bin").read_bytes()
    room = ctypes.create_string_buffer(len(weights) + 64)
    at = ctypes.c_void_p((ctypes.addressof(room) + 63) // 64 * 64)
    ctypes.memmove(at, weights, len(weights))
    first, got = (ctypes.c_float * HIDDEN)(), (ctypes.c_float * HIDDEN)()
    assert lib.one_weights_fit(at, ctypes.c_size_t(len(weights))) == 1
    assert lib.one_start(at, ctypes.c_uint32(WORDS), first) == 1 and list(first) == [0] * HIDDEN
    assert lib.one_start(at, ctypes.c_uint32(7), first) == 0
    assert lib.one_turn(at, first, ctypes.c_uint32(3), got) == 0
    np.testing.assert_allclose(np.array(got), np.ravel(want), rtol=1e-6)


def test_files_are_replaced_as_a_whole(tmp_path):
    """A file is written beside the old one and takes its place, so that a full disk or a kill leaves the old one."""
    model, names = Small().model, ["net.c", "net.h", "net.bin"]
    paths = [tmp_path / n for n in names]
    for path in paths:
        path.write_text("old")
        os.link(path, tmp_path / f"{path.name} linked")
    model.export_c(paths[0], header=paths[1], weights=paths[2])
    assert all(path.read_bytes() != b"old" and (tmp_path / f"{path.name} linked").read_text() == "old" for path in paths)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*names, *(f"{n} linked" for n in names)])
    refused(vpps.FileError, "missing/net.c", lambda: model.export_c(tmp_path / "missing/net.c"))
    model.export_c("/dev/null")


def test_what_is_refused(tmp_path):
    model = Small().model
    refused(vpps.ArgumentError, "precision: 'fp16'; expected one of bf16, fp32, int8", lambda: model.export_c(tmp_path / "net.c", precision="fp16"))
    refused(vpps.ArgumentError, "prefix '1'; expected a C identifier", lambda: model.export_c(tmp_path / "net.c", prefix="1"))
    refused(vpps.ArgumentError, "no cells", lambda: vpps.Model().export_c(tmp_path / "net.c"))
    assert not (tmp_path / "net.c").exists()
