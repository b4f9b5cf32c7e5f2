"""Compares vpps.torch.LSTM, GRU and RNN with PyTorch's: outputs, and gradients of inputs, first states and parameters."""

import copy
import io
import re
import textwrap

import numpy as np
import pytest
from small import refused

torch = pytest.importorskip("torch", reason="PyTorch is missing: pip install torch")

from torch.nn.utils import rnn  # noqa: E402

import vpps.torch  # noqa: E402

pytestmark = pytest.mark.packages


def near(a, b, what, tolerance=1e-5):
    torch.testing.assert_close(a.double(), b.double(), rtol=tolerance, atol=tolerance, msg=lambda m: f"{what}: {m}")


def pair(kind, *arguments, seed=1, **options):
    """Returns a layer of PyTorch, in double precision, and ours with the same parameters."""
    torch.manual_seed(seed)
    theirs = getattr(torch.nn, kind)(*arguments, **options)
    ours = getattr(vpps.torch, kind).from_torch(theirs, vps=1, verify=True)
    return theirs.double(), ours


def parts(out, hx):
    """Returns all tensors of a layer's output and states."""
    y = out.data if isinstance(out, rnn.PackedSequence) else out.values() if out.is_nested else out
    return [y, *(hx if isinstance(hx, tuple) else [hx])]


def compare(theirs, ours, given, start, call):
    """Compares layers: call(layer, input, start) returns an output and states. The input is made from the tensor `given`."""
    results = []
    for layer, dtype in ((theirs, torch.float64), (ours, torch.float32)):
        x = given.to(dtype).requires_grad_()
        h = None if start is None else tuple(s.detach().to(dtype).requires_grad_() for s in start)
        got = parts(*call(layer, x, h if h is None or len(h) > 1 else h[0]))
        layer.zero_grad()
        loss = sum((g * torch.linspace(-1, 2, g.numel(), dtype=dtype).reshape(g.shape)).sum() for g in got)
        if loss.requires_grad:
            loss.backward()
        of = {f"output {k}": g for k, g in enumerate(got)}
        for name, v in [("input", x), *((f"state {k}", s) for k, s in enumerate(h or ())), *layer.named_parameters()]:
            of[f"gradient of {name}"] = torch.zeros_like(v) if v.grad is None else v.grad
        results.append(of)
    assert results[0].keys() == results[1].keys()
    for name, p in results[0].items():
        assert p.shape == results[1][name].shape
        near(results[1][name], p, name)


@pytest.mark.parametrize("seed", range(50))
def test_random_configurations(seed):
    rng = np.random.default_rng(seed)
    kind = ["LSTM", "GRU", "RNN"][seed % 3]
    o = {"num_layers": int(rng.integers(1, 4)), "bidirectional": bool(rng.integers(2)), "bias": bool(rng.integers(4)), "batch_first": bool(rng.integers(2))}
    if kind == "RNN" and rng.integers(2):
        o["nonlinearity"] = "relu"
    inputs, hidden, n = int(rng.integers(1, 6)), int(rng.integers(1, 7)), int(rng.integers(1, 6))
    theirs, ours = pair(kind, inputs, hidden, seed=seed, **o)
    lengths = torch.from_numpy(rng.integers(1, 8, n))
    longest = int(lengths.max())
    rows = o["num_layers"] * (2 if o["bidirectional"] else 1)
    start = None if rng.integers(2) else [torch.randn(rows, n, hidden) for _ in range(2 if kind == "LSTM" else 1)]
    form, first = ["padded", "lengths", "packed", "sorted", "nested", "flat", "single"][(seed // 3) % 7], o["batch_first"]
    if form == "sorted":
        lengths = lengths.sort(descending=True).values
    x = torch.randn(*((n, longest) if first else (longest, n)), inputs)
    if form == "single":
        x, start = torch.randn(longest, inputs), start and [s[:, 0] for s in start]

    def sequences(x):
        return [s[:k] for s, k in zip(x if first else x.transpose(0, 1), lengths)]

    def call(layer, x, h):
        if form in ("padded", "single"):
            return layer(x, h)
        if form in ("packed", "sorted"):
            return layer(rnn.pack_padded_sequence(x, lengths, first, form == "sorted"), h)
        if layer is theirs:
            out, h = layer(rnn.pack_padded_sequence(x, lengths, first, False), h)
            y = rnn.pad_packed_sequence(out, first)[0]
            return y if form == "lengths" else torch.cat(sequences(y)), h
        if form == "nested":
            out, h = layer(torch.nested.as_nested_tensor(sequences(x), layout=torch.jagged), h)
            assert out.is_nested and out.size(0) == n
            return out, h
        return layer(torch.cat(sequences(x)), h, lengths) if form == "flat" else layer(x, h, lengths=lengths)

    compare(theirs, ours, x, start, call)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_first_values_names_and_the_way_back(kind):
    torch.manual_seed(3)
    theirs = getattr(torch.nn, kind)(3, 4, 2, bidirectional=True)
    torch.manual_seed(3)
    ours = getattr(vpps.torch, kind)(3, 4, 2, bidirectional=True, vps=1)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert all((a == b).all() for a, b in zip(ours.parameters(), theirs.parameters()))
    ours.weight_hh_l1.requires_grad_(False)
    for back in (ours.eval().to_torch(), copy.deepcopy(ours).to_torch()):
        assert type(back) is type(theirs) and not back.weight_hh_l1.requires_grad and not back.training
        assert all((a == b).all() for a, b in zip(back.parameters(), theirs.parameters()))
    assert (ours.input_size, ours.hidden_size, ours.num_layers, ours.bidirectional) == (3, 4, 2, True) and "hidden_size=4" in repr(ours)
    file, x = io.BytesIO(), torch.randn(5, 2, 3)
    torch.save(ours, file)
    file.seek(0)
    near(torch.load(file, weights_only=False)(x)[0], theirs(x)[0], "saved")
    ours.flatten_parameters()


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_empty_and_short(kind):
    theirs, ours = pair(kind, 3, 4, 2, bidirectional=True)
    start = [torch.randn(4, 2, 4) for _ in range(2 if kind == "LSTM" else 1)]
    compare(theirs, ours, torch.randn(1, 2, 3), start, lambda layer, x, h: layer(x, h))
    x = torch.randn(5, 0, 3, requires_grad=True)
    ours.zero_grad()
    y, h = ours(x)
    there, g = theirs.float()(torch.randn(5, 0, 3))
    assert [a.shape for a in parts(y, h)] == [a.shape for a in parts(there, g)]
    y.sum().backward()
    assert x.grad.shape == x.shape and not any(p.grad.any() for p in ours.parameters())
    y, h = ours(torch.randn(5, 2, 3), tuple(start) if kind == "LSTM" else start[0], lengths=[0, 0])
    assert not y.any() and all((a == b).all() for a, b in zip(parts(y, h)[1:], start))
    y, h = ours(torch.randn(5, 2, 3), tuple(start) if kind == "LSTM" else start[0], lengths=[0, 3])
    assert not y[:, 0].any() and not y[3:].any() and all((a[:, 0] == b[:, 0]).all() for a, b in zip(parts(y, h)[1:], start))


def test_dropout_is_between_layers():
    torch.manual_seed(1)
    layer = vpps.torch.LSTM(3, 50, 2, dropout=0.5, bidirectional=True, vps=1)
    x = torch.randn(4, 6, 3)
    a, b = layer(x)[0], layer(x)[0]
    assert (a != b).any() and (a != 0).all()
    layer.eval()
    a, theirs = layer(x)[0], layer.to_torch()
    near(a, theirs(x)[0], "eval")
    compare(theirs.double(), layer, x, None, lambda of, x, h: of(x, h))
    alone = vpps.torch.GRU(3, 4, dropout=0.5, vps=1)
    assert (alone(x)[0] == alone(x)[0]).all()


def test_a_compiled_network_has_it():
    torch.manual_seed(1)
    layer, x = vpps.torch.LSTM(3, 4, vps=1), torch.randn(5, 2, 3)
    net = torch.nn.ModuleList([torch.nn.Linear(3, 3), layer])
    results = []

    def loss(x):
        return net[1](net[0](x).tanh())[0].square().sum()

    for call in (loss, torch.compile(loss, backend="eager")):
        net.zero_grad()
        call(x).backward()
        results.append([p.grad.clone() for p in net.parameters()])
    for a, b in zip(*results):
        near(a, b, "gradient")


def test_in_a_network_that_trains():
    """Trains an embedding, a packed LSTM and a Linear: our LSTM in place of PyTorch's trains in the same way."""
    torch.manual_seed(1)
    words, lengths = torch.randint(20, (6, 9)), torch.tensor([9, 1, 4, 7, 2, 5])
    embedding, head = torch.nn.Embedding(20, 5), torch.nn.Linear(8, 2)
    theirs = torch.nn.LSTM(5, 8, batch_first=True)
    ends = []
    for layer in (theirs, vpps.torch.LSTM.from_torch(theirs, vps=1)):
        net = torch.nn.ModuleList([copy.deepcopy(embedding), layer, copy.deepcopy(head)])
        optimizer = torch.optim.Adam(net.parameters(), lr=0.02)
        for _ in range(10):
            optimizer.zero_grad()
            _, (h, _) = net[1](rnn.pack_padded_sequence(net[0](words), lengths, True, False))
            loss = torch.nn.functional.cross_entropy(net[2](h[-1]), lengths % 2)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        ends.append(loss.detach())
    near(*ends, "loss", 1e-4)


def test_the_readmes_lines(root):
    block = re.search(r"^    import torch, vpps.torch\n.*?optimizer.step\(\)\n", (root / "README.md").read_text(), re.MULTILINE | re.DOTALL)[0]
    names = {}
    exec(textwrap.dedent(block), names)
    assert len(block.splitlines()) <= 10 and names["lstm"].weight_ih_l1.grad.any() and names["out"].data.shape == (128, 512)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_what_is_refused():
    LSTM = vpps.torch.LSTM
    layer, x = LSTM(3, 4, vps=1), torch.randn(5, 2, 3)
    zeros = torch.zeros(1, 2, 4)
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)])
    wrong = [
        (lambda: LSTM(3, 4, proj_size=2), "proj_size=2; expected 0"), (lambda: LSTM(3, 4, dtype=torch.float64), "expected torch.float32"),
        (lambda: LSTM(0, 4), "input_size=0"), (lambda: LSTM(3, 4.0), "hidden_size=4.0"), (lambda: LSTM(3, 4, 0), "num_layers=0"),
        (lambda: LSTM(3, 4, dropout=1.5), "dropout=1.5"), (lambda: vpps.torch.RNN(3, 4, nonlinearity="gelu"), "'tanh' or 'relu'"),
        (lambda: layer(x[..., :2]), "2 numbers a step; expected input_size, which is 3"), (lambda: layer(x[0, 0]), "two dimensions, or three"),
        (lambda: layer(x, zeros), "1 states; expected h_0 and c_0"), (lambda: layer(x, (zeros, zeros[:, :1])), r"c_0 of shape \(1, 1, 4\)"),
        (lambda: layer(x.double()), "expected float32"), (lambda: layer(x, (zeros.double(), zeros)), "expected float32"),
        (lambda: layer(x.to("meta")), "on meta"), (lambda: layer([x]), "expected a tensor or a PackedSequence"),
        (lambda: layer(x, lengths=[6, 1]), "expected 2 numbers up to 5"), (lambda: layer(x, lengths=[1]), "expected 2 numbers up to 5"),
        (lambda: layer(x[0], lengths=[2, 1]), r"lengths: \[2, 1\]; expected numbers whose sum is 2"), (lambda: layer(x, lengths=[1.5, 2]), "expected whole numbers"), (lambda: layer(nested), "layout=torch.jagged"),
        (lambda: layer(rnn.pack_sequence([x[:, 0]]), lengths=[5]), "beside a packed sequence"),
        (lambda: LSTM.from_torch(torch.nn.GRU(3, 4)), "GRU; expected torch.nn.LSTM"), (lambda: LSTM.from_torch(torch.nn.LSTM(3, 4, proj_size=2)), "proj_size=2"),
    ]
    for call, message in wrong:
        refused((vpps.Error, TypeError), message, call)
    layer(x)  # after all this
