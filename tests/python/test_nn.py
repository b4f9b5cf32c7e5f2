"""Compares vpps.nn with the same equations in PyTorch, in double precision: outputs, and gradients of inputs and of all parameters."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from small import refused

import vpps
from vpps import nn

packages = pytest.mark.packages
LENGTHS = [3, 1, 4, 0, 2]


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is missing: pip install torch")


def parameters(model, rng, spread=0.5):
    """Gives all parameters new values (some initial ones are zero) and returns them by name, for PyTorch."""
    for p in model.parameters:
        p.value = rng.uniform(-spread, spread, p.shape) + (p.name.endswith("weight") and "norm" in p.name)
    return {p.name: p.value for p in model.parameters}


def compare(torch, rng, model, inputs, apply, reference, tolerance=2e-5):
    """Compares outputs and gradients of apply(graph, nodes of each input), which returns nodes, and reference(parameters, inputs), which returns a
    tensor in double precision with a row for each node."""
    first = parameters(model, rng)
    trainer, graph = vpps.Trainer(model, vps=1, verify=True), model.graph()
    with graph:
        xs = [graph.inputs(x) for x in inputs]
        out = apply(graph, *xs)
        shape = out[0].shape[0]
        slopes = rng.standard_normal((len(out), shape)).astype(np.float32)
        loss = vpps.sum([vpps.dot(o, s) for o, s in zip(out, graph.inputs(slopes))])
        asked = [x for some in xs for x in some]
        got = trainer.backward(loss, values=out, gradients=asked)
        trainer.read_gradients()
    P = {k: torch.tensor(v, dtype=torch.float64, requires_grad=True) for k, v in first.items()}
    X = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in inputs]
    y = reference(P, *X)
    (y * torch.from_numpy(slopes).double()).sum().backward()

    def near(a, b, what):
        b = b.detach().numpy() if b is not None else np.zeros_like(a)
        np.testing.assert_allclose(np.asarray(a).reshape(b.shape), b, rtol=tolerance, atol=tolerance, err_msg=what)

    near(got.values, y, "outputs")
    of_inputs = iter(got.gradients)
    for x in X:
        near(np.stack([next(of_inputs) for _ in range(len(x))]), x.grad, "inputs")
    for p in model.parameters:
        near(p.gradient.values, P[p.name].grad, p.name)


def split(lengths):
    last = np.cumsum(lengths)
    return [range(b - n, b) for b, n in zip(last, lengths)]


# ---------------------------------------------------------------- sequences

def recurrence(torch, step, begin, lengths, reverse, n_states):
    """Returns a reference that runs `step` along sequences. start: for each state a tensor with a row for each sequence."""

    def reference(P, x, *start):
        h = [None] * len(x)
        for k, places in enumerate(split(lengths)):
            states = [s[k] for s in start] if start else [torch.full((n_states,), b, dtype=torch.float64) for b in begin]
            for i in reversed(places) if reverse else places:
                states = step(P, x[i], *states)
                h[i] = states[0]
        return torch.stack(h)

    return reference


def layer_norm_lstm(torch, P, x, h, c):
    def norm(k, y):
        return torch.nn.functional.layer_norm(y, y.shape, P[f"layernorm_{k}_l0.weight"], P[f"layernorm_{k}_l0.bias"])

    i, f, g, o = (norm("i", P["weight_ih_l0"] @ x) + norm("h", P["weight_hh_l0"] @ h)).chunk(4)
    c = norm("c", f.sigmoid() * c + i.sigmoid() * g.tanh())
    return o.sigmoid() * c.tanh(), c


def slstm(torch, P, x, h, c, n, m):
    i, f, z, o = (P["weight_ih_l0"] @ x + P["bias_ih_l0"] + P["weight_hh_l0"] @ h + P["bias_hh_l0"]).chunk(4)
    log_f = torch.nn.functional.logsigmoid(f)
    new = torch.maximum(log_f + m, i)
    i, f = (i - new).exp(), (log_f + m - new).exp()
    c, n = f * c + i * z.tanh(), f * n + i
    return o.sigmoid() * c / n, c, n, new


@packages
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("kind, step", [(nn.LayerNormLSTM, layer_norm_lstm), (nn.SLSTM, slstm)], ids=lambda x: x.__name__)
def test_recurrent(torch, rng, kind, step, reverse, given):
    """Tests cells that PyTorch does not have; test_torch_rnn.py tests the others in layers of PyTorch."""
    model = vpps.Model(1)
    layer = kind(model, 3, 5)
    inputs = [rng.standard_normal((sum(LENGTHS), 3))]
    if given:
        inputs += [rng.uniform(0.5, 1.5, (len(LENGTHS), 5)) for _ in layer.begin]
    compare(torch, rng, model, inputs,
            lambda g, x, *start: nn.chain(layer, x, LENGTHS, start=start or None, reverse=reverse).scattered(),
            recurrence(torch, lambda *a: step(torch, *a), layer.begin, LENGTHS, reverse, 5))


@packages
@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_names_and_first_values_are_pytorchs(torch, name):
    model = vpps.Model(3)
    getattr(nn, name)(model, 30, 40)
    theirs = getattr(torch.nn, name)(30, 40)
    assert [(p.name, p.shape) for p in model.parameters] == [(k, tuple(v.shape)) for k, v in theirs.named_parameters()]
    values = np.concatenate([p.value.reshape(-1) for p in model.parameters])
    assert np.abs(values).max() < 40**-0.5 and values.std() == pytest.approx(40**-0.5 / math.sqrt(3), rel=0.05)
    linear, mlp = vpps.Model(1), vpps.Model(1)
    nn.Linear(linear, 30, 40)
    nn.MLP(mlp, [6, 5, 4], dropout=0.5)
    assert [p.name for p in linear.parameters] == ["weight", "bias"] and np.abs(linear.parameter("bias").value).max() > 0.1
    there = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Linear(5, 4))
    assert [(p.name, p.shape) for p in mlp.parameters] == [(k, tuple(v.shape)) for k, v in there.named_parameters()]


def test_the_stabiliser_holds(rng):
    """Gates far from zero give no infinity, although e^300 is more than a float32 can hold."""
    model = vpps.Model(1)
    layer = nn.SLSTM(model, 2, 3)
    model.parameter("bias_ih_l0").value = np.repeat([300.0, -300.0, 0.3, 1.0], 3)
    graph, trainer = model.graph(), vpps.Trainer(model, vps=1)
    for sign in (1.0, -1.0):
        model.parameter("bias_ih_l0").value = np.repeat([sign * 300.0, -sign * 300.0, 0.3, 1.0], 3)
        with graph:
            h = trainer.forward(nn.chain(layer, rng.standard_normal((9, 2)), [9]).scattered())
        assert np.isfinite(h).all() and (np.abs(h) <= 1).all() and np.abs(h).min() > 1e-3


def test_inputs_of_all_kinds(rng):
    """Cells that take a table's entries, two inputs side by side, or a head's numbers give the same as from arrays."""
    model, words, labels = vpps.Model(1), rng.integers(9, size=10), rng.integers(2, size=10)
    E, S = model.add_lookup("E", 9, 4), model.add_matrix("S", 2, 3)
    of_table = nn.GRU(model, E, 3, "table", head=lambda c, h: c.push(vpps.cross_entropy(S @ h, c.pull_index())))
    of_rows, of_both = nn.GRU(model, 4, 3, "rows"), nn.GRU(model, (3, 4), 3, "both")
    of_row = nn.GRU(model, 7, 3, "row")
    for a, b in ((of_table, of_rows), (of_both, of_row)):
        for k in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            getattr(b, k).value = getattr(a, k).value
    graph, trainer = model.graph(), vpps.Trainer(model, vps=1)
    with graph:
        a, b = nn.chain(of_table, words, LENGTHS, indices=labels), nn.chain(of_rows, E.value[words], LENGTHS)
        h, same, losses = (trainer.forward(x) for x in (a.scattered(), b.scattered(), a.pushed()))
        wide = np.concatenate([h, E.value[words]], 1)
        c, d = nn.chain(of_both, (a, E.value[words]), LENGTHS), nn.chain(of_row, wide, LENGTHS)
        top, there = trainer.forward(c.scattered()), trainer.forward(d.scattered())
    scores = h @ S.value.T
    np.testing.assert_allclose(h, same, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(top, there, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(losses, np.log(np.exp(scores).sum(1)) - scores[np.arange(10), labels], rtol=1e-5)


# ---------------------------------------------------------------- trees

PARENTS = [4, -1, 1, 1, 7, 4, 1, -1, 9, -1]  # three trees: a root with three children, one with a chain and a fork, one with a child


@packages
def test_child_sum_tree_lstm(torch, rng):
    model = vpps.Model(1)
    layer = nn.ChildSumTreeLSTM(model, 3, 4)

    def reference(P, x):
        def state(k):
            children = [state(j) for j, p in enumerate(PARENTS) if p == k]
            s = sum((h for h, _ in children), torch.zeros(4, dtype=torch.float64))
            i, o, u = (P[f"W_{g}"] @ x[k] + P[f"U_{g}"] @ s + P[f"b_{g}"] for g in "iou")
            c = i.sigmoid() * u.tanh() + sum((P["W_f"] @ x[k] + P["U_f"] @ h + P["b_f"]).sigmoid() * c for h, c in children)
            return o.sigmoid() * c.tanh(), c

        return torch.stack([state(k)[0] for k in range(len(PARENTS))])

    compare(torch, rng, model, [rng.standard_normal((len(PARENTS), 3))], lambda g, x: nn.tree(layer, x, PARENTS).scattered(), reference)


@packages
def test_binary_tree_lstm(torch, rng):
    model = vpps.Model(1)
    layer = nn.BinaryTreeLSTM(model, 3, 4)
    parents = [5, 2, -1, 2, 5, 3, 3, -1]  # (1 ((0 4) 6)), parents before and after their children, and a leaf by itself
    leaves = [k for k in range(len(parents)) if k not in parents]

    def reference(P, x):
        def state(k):
            children = [state(j) for j, p in enumerate(parents) if p == k]
            if not children:
                i, o, u = (P[f"W_{g}"] @ x[leaves.index(k)] + P[f"b_{g}"] for g in "iou")
                c = i.sigmoid() * u.tanh()
            else:
                (l, c_l), (r, c_r) = children
                i, o, u, f_l, f_r = (P[f"U_{g}l"] @ l + P[f"U_{g}r"] @ r + P[f"b_{g[0]}"] for g in ("i_", "o_", "u_", "f_l", "f_r"))
                c = i.sigmoid() * u.tanh() + f_l.sigmoid() * c_l + f_r.sigmoid() * c_r
            return o.sigmoid() * c.tanh(), c

        return torch.stack([state(k)[0] for k in range(len(parents))])

    compare(torch, rng, model, [rng.standard_normal((len(leaves), 3))], lambda g, x: nn.tree(layer, x, parents).scattered(), reference)


def test_deep_trees(rng):
    """A chain of vertices given as a tree in a drawn order gives the same whatever the order."""
    n, model = 300, vpps.Model(1)
    layer = nn.ChildSumTreeLSTM(model, 2, 3)
    graph, trainer, x = model.graph(), vpps.Trainer(model, vps=1), rng.standard_normal((n, 2))
    place = rng.permutation(n)
    parents, drawn = np.full(n, -1), np.empty_like(x)
    parents[place[:-1]] = place[1:]
    drawn[place] = x
    with graph:
        a = trainer.forward(nn.tree(layer, drawn, parents).scattered())[place]
        b = trainer.forward(nn.tree(layer, x, np.append(np.arange(1, n), -1)).scattered())
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- graphs

N = 7
EDGES = np.array([[0, 1, 2, 3, 3, 0, 6, 5, 4, 2, 0], [1, 2, 0, 0, 3, 2, 5, 6, 5, 2, 1]])  # two graphs; loops, an edge twice, vertices without sources


def attention(torch, P, x, y, scores, heads):
    """Computes softmax and sum over an edge's sources as PyG does, with a loop added at each vertex in place of the loops that there are."""
    source, target = EDGES[:, EDGES[0] != EDGES[1]]
    source, target = np.append(source, range(N)), np.append(target, range(N))
    out = []
    for i in range(N):
        to = np.flatnonzero(target == i)
        a = scores(source[to], i).softmax(0)
        out.append((a[:, :, None] * y[source[to]]).sum(0).reshape(-1))
    return torch.stack(out) + P["bias"]


@packages
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("kind", [nn.GAT, nn.GATv2])
def test_attention(torch, rng, kind, heads):
    model = vpps.Model(1)
    layer = kind(model, 3, 4, heads=heads)
    leaky = torch.nn.LeakyReLU(0.2)

    def reference(P, x):
        def linear(k):
            return torch.nn.functional.linear(x, P[f"{k}.weight"], P.get(f"{k}.bias")).view(N, heads, 4)

        att = {k: P[k].view(heads, 4) for k in ("att", "att_src", "att_dst") if k in P}
        if kind is nn.GATv2:
            l, r = linear("lin_l"), linear("lin_r")
            return attention(torch, P, x, l, lambda j, i: (leaky(l[j] + r[i]) * att["att"]).sum(-1), heads)
        y = linear("lin")
        return attention(torch, P, x, y, lambda j, i: leaky((y[j] * att["att_src"]).sum(-1) + (y[i] * att["att_dst"]).sum(-1)), heads)

    compare(torch, rng, model, [rng.standard_normal((N, 3))], lambda g, x: nn.graph(layer, x, EDGES).scattered(), reference)


@packages
@pytest.mark.parametrize("trained", [False, True])
def test_gin(torch, rng, trained):
    model = vpps.Model(1)
    layer = nn.GIN(nn.MLP(model, [3, 6, 4], "nn"), eps=0.3, train_eps=trained)

    def reference(P, x):
        eps = P["eps"] if trained else 0.3
        y = (1 + eps) * x + torch.zeros_like(x).index_add(0, torch.tensor(EDGES[1]), x[EDGES[0]])
        linear = torch.nn.functional.linear
        return linear(linear(y, P["nn.0.weight"], P["nn.0.bias"]).relu(), P["nn.2.weight"], P["nn.2.bias"])

    compare(torch, rng, model, [rng.standard_normal((N, 3))], lambda g, x: nn.graph(layer, x, torch.tensor(EDGES)).scattered(), reference)


@packages
def test_ggnn_and_pooling(torch, rng):
    model = vpps.Model(1)
    layer, pooling = nn.GGNN(model, 3, 4, 2), nn.AttentionPooling(model, 4, "pool", nn=nn.Linear(model, 4, 5, "pool.nn"))
    batch = torch.tensor([1, 1, 1, 1, 0, 0, 0])
    linear = torch.nn.functional.linear

    def reference(P, x):
        h = torch.cat([x, torch.zeros(N, 1, dtype=x.dtype)], 1)
        for k in range(2):
            m = (h @ P[f"weight.{k}"].T)[EDGES[0]]
            m = torch.zeros_like(h).index_add(0, torch.tensor(EDGES[1]), m)
            h = torch.gru_cell(m, h, *(P[f"rnn.{name}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")))
        gate, y = linear(h, P["pool.gate_nn.weight"], P["pool.gate_nn.bias"]), linear(h, P["pool.nn.weight"], P["pool.nn.bias"])
        return torch.stack([(gate[batch == k].softmax(0) * y[batch == k]).sum(0) for k in range(2)])

    def apply(g, x):
        data = SimpleNamespace(x=x, edge_index=torch.tensor(EDGES), batch=batch, num_graphs=2)  # as torch_geometric's Batch
        return nn.pool(pooling, nn.graph(layer, data), data).scattered()

    compare(torch, rng, model, [rng.standard_normal((N, 3))], apply, reference)


# ---------------------------------------------------------------- what is empty, and what is wrong

def test_nothing(rng):
    model = vpps.Model(1)
    kinds = nn.LSTM, nn.ChildSumTreeLSTM, nn.BinaryTreeLSTM, nn.GATv2
    layers = [kind(model, 2, 3, kind.__name__) for kind in kinds]
    none, no_edges = np.empty((0, 2)), np.empty((2, 0), int)
    with model.graph():
        for v in (nn.chain(layers[0], none, []), nn.chain(layers[0], none, [0, 0]), nn.tree(layers[1], none, []), nn.tree(layers[2], none, []),
                  nn.graph(layers[3], none, no_edges)):
            assert len(v) == 0
        assert len(nn.graph(layers[3], np.ones((4, 2)), no_edges)) == 4
        assert len(nn.chain_and_ends(layers[0], none, [0, 0])[1]) == 2


def test_what_is_wrong(rng):
    model = vpps.Model(1)
    lstm, sums, binary = nn.LSTM(model, 2, 3, "lstm"), nn.ChildSumTreeLSTM(model, 2, 3, "sum"), nn.BinaryTreeLSTM(model, 2, 3, "binary")
    gat, pool = nn.GAT(model, 2, 3, "gat"), nn.AttentionPooling(model, 2, "pool")
    table = nn.GRU(model, model.add_lookup("E", 4, 2), 3, "table")
    x = np.ones((3, 2))
    wrong = [
        (lambda: nn.chain(lstm, x, [2, 2]), "x: 3 inputs; expected 4"), (lambda: nn.chain(lstm, x, [[3]]), "lengths of shape"),
        (lambda: nn.chain(lstm, x, [3], start=[x[:1]]), "start: 1 states; expected 1, a sequence each, of 2 kinds"),
        (lambda: nn.chain(lstm, x, [3], indices=[1]), "indices of shape"), (lambda: nn.chain(table, x, [3]), "numbers of type float64"),
        (lambda: nn.tree(sums, x, [1, 2, 0]), "below a cycle"), (lambda: nn.tree(sums, x, [0, -1, -1]), "below a cycle"),
        (lambda: nn.tree(sums, x, [3, -1, -1]), "parents: 3 at 0"), (lambda: nn.tree(sums, x, [-2, -1, -1]), "parents: -2 at 0"),
        (lambda: nn.tree(sums, x, np.array([2**64 - 1, 0, 0], np.uint64)), "parents: 18446744073709551615 at 0"),
        (lambda: nn.tree(sums, x, [1.0, -1, -1]), "array of float64"), (lambda: nn.tree(sums, x, [-1, -1]), "3 inputs; expected 2"),
        (lambda: nn.tree(binary, x, [1, -1, -1]), "vertex 1 has 1 children; expected 0 or 2"),
        (lambda: nn.tree(binary, x, [2, 2, -1]), "3 inputs; expected 2"), (lambda: nn.graph(gat, x, [[0, 3], [0, 0]]), "vertex 3"),
        (lambda: nn.graph(gat, x, [0, 1]), r"edges of shape \(2,\)"), (lambda: nn.graph(gat, x, [[-1], [0]]), "edges: -1"),
        (lambda: nn.pool(pool, x, [0, 1]), "batch of shape"), (lambda: nn.pool(pool, x, [0, 1, 2], n=2), "batch: graph 2"),
        (lambda: nn.MLP(model, [3], "mlp"), "sizes of 1 numbers"), (lambda: nn.GGNN(model, 4, 3, 1, "ggnn"), "at most hidden"), (lambda: nn.LSTM(model, 2, 3, "lstm"), "lstm.weight_ih_l0"),
    ]
    for call, message in wrong:
        with model.graph(), pytest.raises(vpps.ArgumentError, match=message):
            call()
    refused(TypeError, "inputs of type str", lambda: nn.LSTM(model, "x", 3))
    with pytest.raises(vpps.ShapeError), model.graph():
        nn.chain(lstm, np.ones((3, 4)), [3])
    refused(vpps.StateError, "", lambda: nn.chain(lstm, x, [3]))
