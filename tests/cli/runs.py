"""What checkpoints and logs hold: for the conditions of tests (holds, in common.sh)."""
import json
import struct


def load(path):
    """A checkpoint's tensors, as bytes."""
    with open(path, "rb") as file:
        b = file.read()
    n = int.from_bytes(b[:8], "little")
    header = json.loads(b[8:8 + n])
    header.pop("__metadata__", None)
    return {k: b[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]] for k, v in header.items()}


def parameters(path):
    """Its tensors but the optimiser's state."""
    return {k: v for k, v in load(path).items() if "/" not in k}


def floats(b):
    return list(struct.unpack(f"<{len(b) // 4}f", b))


def apart(a, b):
    """The largest difference of two checkpoints' parameters."""
    a, b = parameters(a), parameters(b)
    assert a.keys() == b.keys()
    return max(abs(x - y) for k in a for x, y in zip(floats(a[k]), floats(b[k])))


def losses(path):
    """Of a log's batches."""
    with open(path, encoding="utf-8") as file:
        return [o["loss"] for o in map(json.loads, file) if o["event"] == "batch"]


def near(a, b):
    return len(a) == len(b) and all(abs(x - y) <= 1e-5 * abs(y) for x, y in zip(a, b))
