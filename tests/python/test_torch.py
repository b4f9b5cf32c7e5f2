"""Compares vpps.torch, which makes a graph of VPPS an nn.Module, with the same network in PyTorch."""

import copy
import io
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from small import refused

torch = pytest.importorskip("torch", reason="PyTorch is missing: pip install torch")

import torch.nn.utils.parametrizations  # noqa: E402
import torch.nn.utils.prune  # noqa: E402

import vpps.torch  # noqa: E402

pytestmark = pytest.mark.packages

IN, HIDDEN = 3, 5


def make(seed=1, dropout=0.0):
    """Returns a recurrent network over sequences that lie one after the other in x: (words of all sequences) x IN."""
    model = vpps.Model(seed)
    W, U, b = model.add_matrix("W", HIDDEN, IN), model.add_matrix("U", HIDDEN, HIDDEN), model.add_vector("b", HIDDEN, 0.1)

    @model.cell
    def turn(c):
        h = vpps.tanh(W @ c.pull(IN) + U @ c.gather(0, 0, HIDDEN) + b)
        c.scatter(h)
        c.push(vpps.dropout(h, dropout) if dropout else h)

    def function(x, lengths):
        g = vpps.current()
        before, ends = g.source(vpps.zeros(HIDDEN)).id + np.arange(sum(lengths)), np.cumsum(lengths)
        before[ends[:-1]] = before[0]
        v = g.apply(turn, pulls=x, children=before)
        return v.pushed(0), v[ends - 1].scattered(0)

    return model, function


def layer(seed=1, dropout=0.0, recipe=True, **options):
    model, function = make(seed, dropout)
    options = {"vps": 1, "verify": True, **options}
    return vpps.torch.Module(model, function, recipe=(make, (seed, dropout)) if recipe else None, **options)


class Twin(torch.nn.Module):
    """The same network by PyTorch's operations."""

    def __init__(self, of, dtype=torch.float64):
        super().__init__()
        for name, p in of.named_parameters():
            self.register_parameter(name, torch.nn.Parameter(p.detach().to(dtype).clone()))

    def forward(self, x, lengths):
        ends, outputs, at = [], [], 0
        for length in lengths:
            h = torch.zeros(HIDDEN, dtype=x.dtype)
            for i in range(length):
                h = torch.tanh(self.W @ x[at + i] + self.U @ h + self.b)
                outputs.append(h)
            at += length
            ends.append(h)
        return torch.stack(outputs), torch.stack(ends)


def near(a, b, tolerance=1e-5):
    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, check_dtype=False)


def same_gradients(a, b):
    near([p.grad for p in a.parameters()], [p.grad for p in b.parameters()])
    assert not any(p.grad is None for p in a.parameters())


@pytest.fixture
def data():
    torch.manual_seed(3)
    lengths = [3, 1, 4]
    return torch.randn(sum(lengths), IN), lengths


def loss_of(y, ends):
    return (y * torch.linspace(-1, 1, y.numel(), dtype=y.dtype).reshape(y.shape)).sum() + ends.square().sum()


def test_values_and_gradients_are_pytorchs(data):
    m = layer()
    twin = Twin(m)
    x, lengths = data
    for turn in range(2):  # gradients accumulate
        a, b = x.clone().requires_grad_(), x.double().clone().requires_grad_()
        loss_of(*m(a, lengths)).backward()
        loss_of(*twin(b, lengths=lengths)).backward()
        near(a.grad, b.grad)
        same_gradients(m, twin)
    with torch.no_grad():
        y, _ = m(x, lengths=lengths)
        near(y, twin(x.double(), lengths)[0])
        assert not y.requires_grad
    near(*[torch.nn.utils.clip_grad_norm_(n.parameters(), 0.1) for n in (m, twin)])
    same_gradients(m, twin)


def test_calls_interleave(data):
    """The engine keeps what backward needs for one call only: for the others backward runs forward again."""
    m, x, lengths = layer(), *data
    twin = Twin(m)
    outer = torch.nn.Linear(HIDDEN, IN)
    totals = []
    for n, o in ((m, outer), (twin, copy.deepcopy(outer).double())):
        a = x.to(n.W.dtype)
        y1, e1 = n(a, lengths)
        y2, e2 = n(o(y1), lengths)  # calls the module on what torch's layers make of its first output
        with torch.no_grad():
            n(a, [8])
        total = loss_of(y2, e2) + loss_of(y1, e1)
        total.backward()
        totals.append(total.detach())
    near(*totals, 1e-4)
    same_gradients(m, twin)


def test_the_engine_steps_in_place(data):
    m, x, lengths = layer(), *data
    twin = Twin(m, torch.float32)
    ours = vpps.torch.Optimizer(m, "adam", lr=0.05)
    theirs = torch.optim.Adam(twin.parameters(), lr=0.05)
    schedulers = [torch.optim.lr_scheduler.StepLR(o, 2, 0.5) for o in (ours, theirs)]
    saved = None

    def turn(n, o, s):
        o.zero_grad()
        for _ in range(2):
            loss_of(*n(x.clone().requires_grad_(), lengths)).backward()
        o.step()
        s.step()

    for k in range(6):
        for each in zip((m, twin), (ours, theirs), schedulers):
            turn(*each)
        if k == 2:
            saved = copy.deepcopy((m.state_dict(), ours.state_dict()))
    assert m.W.grad is None
    m.pull()
    near([*m.parameters()], [*twin.parameters()], 1e-4)
    again = layer(seed=2)
    o = vpps.torch.Optimizer(again, "adam", lr=0.05)
    again.load_state_dict(saved[0])
    o.load_state_dict(saved[1])
    s = torch.optim.lr_scheduler.StepLR(o, 2, 0.5, last_epoch=2)
    for _ in range(3):
        turn(again, o, s)
    near([*again.state_dict().values()], [*m.parameters()])
    y, _ = again(x, lengths)
    o.step()  # without gradients: nothing
    o.zero_grad()
    (y.sum()).backward()
    o.step()
    late = again(x, lengths)[0].sum()
    again(x, lengths)[0].sum().backward()
    o.step()
    refused(RuntimeError, "backward after Optimizer.step", late.backward)
    with torch.no_grad():
        again.W.mul_(2)
    refused(RuntimeError, "W was changed while the engine had newer values", again.pull, again.state_dict, lambda: again(x, lengths))


def test_gradients_of_inputs_alone_train_nothing(data):
    """torch.autograd.grad of an input leaves the gradients by which the engine's optimizer will step as they are."""
    m, x, lengths = layer(dropout=0.5), data[0].clone().requires_grad_(), data[1]
    o = vpps.torch.Optimizer(m, "sgd", lr=0.1)
    torch.manual_seed(5)
    y, _ = m(x, lengths)
    loss_of(*m(x, lengths)).backward()
    g, x.grad = x.grad, None
    torch.autograd.grad(m(x, lengths)[0].sum(), x)
    torch.autograd.grad(y.sum(), x)
    o.step()
    m2 = layer(dropout=0.5)
    o2 = vpps.torch.Optimizer(m2, "sgd", lr=0.1)
    torch.manual_seed(5)
    m2(x, lengths)
    loss_of(*m2(x, lengths)).backward()
    o2.step()
    near(x.grad, g)
    near(m.state_dict(), m2.state_dict(), 0)
    m3 = layer()
    m3.b.requires_grad_(False)
    y, _ = m3(x, lengths)
    o3 = vpps.torch.Optimizer(m3, "sgd", lr=0.1)  # after the call
    before = m3.W.detach().clone()
    y.sum().backward()
    o3.step()
    assert not torch.equal(m3.state_dict()["W"], before)
    refused(ValueError, "another group of parameters", lambda: o.add_param_group({"params": [torch.nn.Parameter(torch.zeros(2))]}))


def test_what_is_refused(data):
    m, x, lengths = layer(), *data
    loss = loss_of(*m(x, lengths))
    loss.backward(retain_graph=True)
    refused(RuntimeError, "backward twice through one call", loss.backward)
    a = x.clone().requires_grad_()
    refused(RuntimeError, "second derivative", lambda: torch.autograd.grad(loss_of(*m(a, lengths)), a, create_graph=True))
    for wrong in (x.double(), x.half(), x.to(torch.complex64)):
        refused(TypeError, "expected float32", lambda: m(wrong, lengths))
    refused(TypeError, "expected one on the CPU", lambda: m(x.to("meta"), lengths))
    refused(vpps.ShapeError, r"pull.*2 x 1.*3 x 1", lambda: m(x[:, :2], lengths))
    refused(vpps.ArgumentError, "input: a tensor that requires a gradient", lambda: vpps.torch.Module(vpps.Model(), lambda: vpps.input(m.b))())
    y = m(x, lengths)[0]
    y.register_hook(lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):  # between the halves
        y.sum().backward()
    refused(TypeError, "stay on the CPU", m.double)
    assert m.float().cpu() is m
    refused(TypeError, "returned int", lambda: vpps.torch.Module(vpps.Model(), lambda: 1)())
    plain = layer(recipe=False)
    for copied in (copy.deepcopy, lambda p: torch.save(p, io.BytesIO())):
        refused(TypeError, "recipe", lambda: copied(plain))
    loss_of(*m(x.t().contiguous().t(), lengths)).backward()  # works when all this is over, and with an input that is not contiguous


def test_dropout(data):
    m, x, lengths = layer(dropout=0.5), *data
    y = m(x, lengths)[0]
    z = m(x, lengths)[0]
    assert (y == 0).any() and (y != z).any()
    with torch.no_grad():
        assert (m(x, lengths)[0] == 0).any()
    torch.manual_seed(5)
    a = x.clone().requires_grad_()
    first = m(a, lengths)[0]
    m(x, lengths)  # takes the engine: the first call's backward runs forward again, with the same masks
    first.sum().backward()
    for reentrant in (True, False):
        torch.manual_seed(5)
        b = x.clone().requires_grad_()
        again = torch.utils.checkpoint.checkpoint(lambda t: m(t, lengths)[0], b, use_reentrant=reentrant)
        assert (again == first).all()
        again.sum().backward()
        near(a.grad, b.grad)
    m.eval()
    y = m(x, lengths)[0]
    assert (y != 0).all() and (y == m(x, lengths)[0]).all()
    for n, call in ((m, lambda: m(x, lengths)[0]), (twin := Twin(m), lambda: twin(x.double(), lengths)[0])):
        n.zero_grad()
        call().square().sum().backward()
    same_gradients(m, twin)
    m.train()
    assert (m(x, lengths)[0] == 0).any()


def test_states_copies_and_files(data):
    m, x, lengths = layer(), *data
    m.b.requires_grad_(False)
    with torch.no_grad():
        m.W.mul_(2)
        m.U.data = m.U.data * 0.5  # elsewhere in memory
    y = m(x, lengths)[0].detach()
    near(y, Twin(m)(x.double(), lengths)[0])
    file = io.BytesIO()
    torch.save(m, file)
    file.seek(0)
    others = [layer(seed=4), copy.deepcopy(m), torch.load(file, weights_only=False)]
    others[0].load_state_dict(m.state_dict())
    for other in others:
        assert (other(x, lengths)[0] == y).all()
    assert [p.requires_grad for p in others[1].parameters()] == [True, True, False]
    loss_of(*others[1](x, lengths)).backward()
    assert others[1].b.grad is None and others[1].W.grad is not None and m.W.grad is None


def test_hooks(data):
    m, x, lengths = layer(), *data
    seen = []
    m.register_forward_hook(lambda *_: seen.append("forward"))
    m.register_full_backward_hook(lambda *_: seen.append("backward"))
    m.W.register_hook(lambda g: g * 2)
    twin = Twin(m)
    loss_of(*m(x.requires_grad_(), lengths)).backward()
    loss_of(*twin(x.double(), lengths)).backward()
    near(m.W.grad, 2 * twin.W.grad)
    assert seen == ["forward", "backward"]


REPLACED = {
    "assigned": lambda m: setattr(m, "W", torch.nn.Parameter(m.W.detach() * 2)),
    "loaded": lambda m: m.load_state_dict({k: v * 2 for k, v in m.state_dict().items()}, assign=True),
    "normed": lambda m: torch.nn.utils.parametrizations.weight_norm(m, "W").parametrizations.W.original0.data.mul_(2),
    "pruned": lambda m: torch.nn.utils.prune.l1_unstructured(m, "W", 0.5)}


@pytest.mark.parametrize("replace", REPLACED.values(), ids=REPLACED)
def test_replaced_parameters_count(data, replace):
    x, lengths = data
    m = layer()
    twin = Twin(m)
    both = [(m, x), (twin, x.double())]
    first = [n(y, lengths)[0].sum() for n, y in both]  # uses the former parameters, which keep their values
    for n, _ in both:
        replace(n)
    results = [n(y, lengths) for n, y in both]
    near(results[0][0], results[1][0])
    for f, (y, ends) in zip(first, results):
        (f + loss_of(y, ends)).backward()
    same_gradients(m, twin)


def test_functional_calls(data):
    x, lengths = data
    m = layer()
    twin = Twin(m)
    slopes = []
    for n, y in ((m, x), (twin, x.double())):
        other = {k: (p.detach() * 0.5).requires_grad_() for k, p in n.named_parameters()}
        fast = {k: p * 3 for k, p in other.items()}  # parameters that are no leaves of autograd's graph, as in meta-learning
        losses = [n(y, lengths)[0].sum(), loss_of(*torch.func.functional_call(n, fast, (y, lengths))), n(y, lengths)[1].square().sum()]
        slopes.append(torch.autograd.grad(sum(losses), [*other.values(), *n.parameters()]))
        for k, p in n.named_parameters():
            near(p, 2 * other[k])
    near(*slopes)
    engine = vpps.torch.Optimizer(m)
    refused(RuntimeError, "W was replaced by another tensor", lambda: torch.func.functional_call(m, {"W": m.W * 2}, (x, lengths)))
    del engine
    m = layer()
    m.W = torch.nn.Parameter(torch.zeros(1, IN))
    with pytest.raises(vpps.ShapeError, match=r"W is a tensor of torch.float32 of shape \(1, 3\) on cpu; expected torch.float32, \(5, 3\)"):
        m(x, lengths)


def test_backward_repeats_the_call_as_it_was():
    """Backward of an earlier call builds the call's graph again, with the call's numbers and frozen parameters instead of the present ones."""
    model = vpps.Model(seed=1)
    E, b = model.add_lookup("E", 10, 3), model.add_vector("b", 3)

    @model.cell
    def look(c):
        c.scatter(vpps.tanh(E[c.pull_index()] + b))

    m = vpps.torch.Module(model, lambda i: vpps.current().apply(look, indices=i).scattered(), vps=1)
    for i in (torch.tensor([1, 2]), np.array([1, 2])):
        m.zero_grad()
        y = m(i)
        i[:] = 3
        m.b.requires_grad_(False)
        z = m(i)
        m.b.requires_grad_(True)
        (y.sum() + z.sum()).backward()
        assert m.E.grad.abs().sum(1).nonzero().flatten().tolist() == [1, 2, 3]
        near(m.b.grad, (1 - y.detach() ** 2).sum(0))


def test_arguments_of_all_kinds():
    model = vpps.Model(1)
    E = model.add_lookup("E", 7, IN)

    def function(ids, more, *, scale):
        g = vpps.current()
        words = [E[int(i)] for i in ids]
        return [vpps.sum(words) * scale, more["bias"][0] + more["bias"][1], g.input(np.eye(2))]

    for sparse in (False, True):
        m = vpps.torch.Module(model, function, sparse=sparse, vps=1)
        scale = torch.tensor(2.0, requires_grad=True)
        bias = [torch.ones(4, requires_grad=True), torch.ones(4)]
        out = m(torch.tensor([1, 5, 1]), {"bias": bias}, scale=scale)
        assert [tuple(o.shape) for o in out] == [(IN,), (4,), (2, 2)]
        (out[0].sum() + 3 * out[1].sum()).backward()
        assert (bias[0].grad == 3).all() and m.E.grad.is_sparse == sparse
        dense = m.E.grad.to_dense() if sparse else m.E.grad
        assert dense.sum(1).tolist() == [0, 4 * IN, 0, 0, 0, 2 * IN, 0]
        near(scale.grad, m.E.detach()[[1, 5, 1]].sum())
        m.trainer.close()


def test_two_modules_in_two_threads(data):
    x, lengths = data

    def work(seed):
        m = layer(seed=seed, verify=False)
        for _ in range(20):
            m.zero_grad()
            loss_of(*m(x, lengths)).backward()
        return m

    with ThreadPoolExecutor(2) as pool:
        for m in pool.map(work, (1, 2)):
            twin = Twin(m)
            loss_of(*twin(x.double(), lengths)).backward()
            same_gradients(m, twin)


def test_memory_stays_flat(data):
    """Runs 10,000 steps of a small module, and now and then calls that interleave, a call that is dropped, and a recurrent layer."""
    import resource

    model = vpps.Model(1)
    W = model.add_matrix("W", 2, 2)
    small, m, lstm = vpps.torch.Module(model, lambda x: vpps.tanh(W @ x), vps=1), layer(verify=False), vpps.torch.LSTM(IN, 2, vps=1)
    (x, lengths), peak = data, []
    for step in range(10000):
        small.zero_grad()
        small(x[0, :2]).sum().backward()
        if step % 20 == 0:
            y, z = m(x, lengths), m(x, lengths)
            (loss_of(*y) + loss_of(*z) + lstm(x)[0].sum()).backward()
            m(x, lengths)
        if step in (2000, 9999):
            peak.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    assert peak[1] - peak[0] < 4096, peak  # KiB


@pytest.mark.skipif(not vpps.torch._omp_pause, reason="PyTorch without OpenMP")
def test_threads_of_pytorch_end_before_the_engine_runs():
    def threads():
        return len(os.listdir("/proc/self/task"))

    most = torch.get_num_threads()
    torch.set_num_threads(2)
    layer, x, big = vpps.torch.LSTM(3, 4), torch.randn(6, 3), torch.randn(1 << 20)
    layer(x)[0].sum().backward()  # makes the engine start its threads
    begin = threads()
    y = layer(x)[0].sum()
    for call in (y.backward, lambda: layer(x), lambda: layer.eval()(x)):
        big.exp()
        assert threads() == begin + 1
        call()
        assert threads() == begin
    big.exp()
    child = os.fork()
    if not child:
        signal.alarm(30)
        try:
            layer(x)
        except vpps.StateError:
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0, "a forked child waits for threads that it does not have"
    torch.set_num_threads(most)
