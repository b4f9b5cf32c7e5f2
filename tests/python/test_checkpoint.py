"""Tests that checkpoints of the package can be read by safetensors.numpy, and the other way round."""

import json
import struct

import numpy as np
import pytest
from small import Small, refused

import vpps


def test_what_is_saved_is_read_by_safetensors(tmp_path, rng):
    net = Small(optimizer="adam").train()
    for _ in range(3):
        net.step(net.draw(rng))
    net.trainer.save(tmp_path / "a.safetensors", {"words": "a\nb", "π": "ü"})
    read = pytest.importorskip("safetensors.numpy").load_file(tmp_path / "a.safetensors")
    for name, values in net.model.state_dict().items():
        np.testing.assert_array_equal(read[name], values)
    assert any(name.startswith("optimizer.0/") for name in read)
    assert vpps.checkpoint_metadata(tmp_path / "a.safetensors", "words") == "a\nb"
    assert vpps.checkpoint_metadata(tmp_path / "a.safetensors", "π") == "ü"
    assert vpps.checkpoint_metadata(tmp_path / "a.safetensors", "none") is None


def test_what_safetensors_saves_is_loaded(tmp_path, rng):
    safetensors = pytest.importorskip("safetensors.numpy")
    from_net, to = Small(seed=1).train(), Small(seed=2).train()
    from_net.step(from_net.draw(rng))
    safetensors.save_file(from_net.model.state_dict(), tmp_path / "b.safetensors")
    to.trainer.load(tmp_path / "b.safetensors")
    np.testing.assert_array_equal(from_net.values(), to.values())
    third = Small(seed=3)
    third.model.load_state_dict(safetensors.load_file(tmp_path / "b.safetensors"))
    np.testing.assert_array_equal(from_net.values(), third.values())


def test_files_that_do_not_fit(tmp_path, rng):
    net = Small().train()
    before = net.values()
    (tmp_path / "bad").write_bytes(b"\x10\0\0\0\0\0\0\0{}")
    refused(vpps.FormatError, "bad: not a valid safetensors file", lambda: net.trainer.load(tmp_path / "bad"))
    refused(vpps.FileError, "missing: ", lambda: net.trainer.load(tmp_path / "missing"))
    refused(OSError, "", lambda: net.trainer.save(tmp_path / "no" / "folder"))
    header = json.dumps({"W": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    (tmp_path / "other").write_bytes(struct.pack("<Q", len(header)) + header + b"\0\0\0\0")
    refused(vpps.FormatError, "", lambda: net.trainer.load(tmp_path / "other"))
    refused(vpps.FormatError, r"missing \['C'.*unknown \['X'\]", lambda: net.model.load_state_dict({"X": np.zeros(1)}))
    values = net.model.state_dict()
    no_b = {name: v for name, v in values.items() if name != "b"}
    refused(vpps.FormatError, r"missing \['b'\], unknown \[\]", lambda: net.model.load_state_dict(no_b))
    for name, v, shape in (("b", 1, r"\(\)"), ("E", np.zeros((4, 3, 2)), r"\(4, 3, 2\)")):
        refused(vpps.FormatError, f"{name} has shape {shape}; expected", lambda: net.model.load_state_dict({**values, name: v}))
    values["W"] = values["W"].T
    refused(vpps.FormatError, r"W has shape \(5, 7\); expected \(7, 5\)", lambda: net.model.load_state_dict(values))
    refused(vpps.ArgumentError, "holds NUL", lambda: net.trainer.save(tmp_path / "d", {"a\0b": "c"}))
    np.testing.assert_array_equal(net.values(), before)
