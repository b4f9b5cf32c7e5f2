"""Compares vpps.torch.Module with PyTorch in double precision: random cells in random networks."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is missing: pip install torch")

import vpps.torch  # noqa: E402

pytestmark = pytest.mark.packages

F = torch.nn.functional
# Operations by name: the number of arguments, and PyTorch's version for vectors.
OPS = {
    "tanh": (1, torch.tanh), "sigmoid": (1, torch.sigmoid), "relu": (1, torch.relu), "elu": (1, F.elu), "gelu_erf": (1, F.gelu),
    "negate": (1, torch.neg), "one_minus": (1, lambda x: 1 - x), "abs": (1, torch.abs), "softmax": (1, lambda x: x.softmax(0)),
    "log_softmax": (1, lambda x: x.log_softmax(0)), "centre": (1, lambda x: x - x.mean()), "layer_norm": (1, lambda x: F.layer_norm(x, x.shape)),
    "add": (2, torch.add), "sub": (2, torch.sub), "mul": (2, torch.mul), "max": (2, lambda a, b: torch.where(a >= b, a, b)),
    "min": (2, lambda a, b: torch.where(a <= b, a, b)), "dot": (2, lambda a, b: (a * b).sum()[None]),
    "squared_distance": (2, lambda a, b: (a - b).square().sum()[None]), "concat": (2, lambda a, b: torch.cat([a, b])),
}
SMALL = ("tanh", "sigmoid", "softmax")  # a cell's state is the result of one of these, so that nothing grows along a chain


class Drawn:
    """A drawn cell: operations on what it pulls and on its children's states, some followed by a matrix, which changes the number of rows."""

    def __init__(self, rng, kind):
        self.kind, self.rows, self.hidden = kind, int(rng.integers(1, 5)), int(rng.integers(1, 6))
        self.children = {"chain": 1, "tree": 2, "list": 0}[kind]
        sizes = [self.rows] + [self.hidden] * max(self.children, 1)  # of the values so far: the input, children's states or their sum
        self.steps = []  # (name, arguments, the matrix's shape or None, whether there is a bias)
        for _ in range(int(rng.integers(3, 10))):
            name = str(rng.choice(list(OPS)))
            a = int(rng.integers(len(sizes)))
            b = [int(rng.choice([i for i, n in enumerate(sizes) if n == sizes[a] or name == "concat"]))] if OPS[name][0] == 2 else []
            rows = 1 if name in ("dot", "squared_distance") else sizes[a] + sizes[b[0]] if name == "concat" else sizes[a]
            shape = (int(rng.integers(1, 6)), rows) if rng.integers(2) else None
            self.steps.append((name, [a, *b], shape, bool(rng.integers(2))))
            sizes.append(shape[0] if shape else rows)
        self.state, self.out = str(rng.choice(SMALL)), int(rng.integers(len(sizes)))
        self.last = int(rng.integers(len(sizes)))  # the value that the state is made of
        self.shapes = {}
        for k, (_, _, shape, bias) in enumerate(self.steps):
            if shape:
                self.shapes[f"W{k}"] = shape
                self.shapes.update({f"b{k}": shape[:1]} if bias else {})
        self.shapes["V"] = (self.hidden, sizes[self.last])

    def run(self, parameters, ops, values):
        """Runs the cell by the operations `ops`. Returns the output and the state."""
        for k, (name, arguments, shape, bias) in enumerate(self.steps):
            y = ops(name, [values[i] for i in arguments])
            if shape:
                y = parameters[f"W{k}"] @ y
                y = y + parameters[f"b{k}"] if bias else y
            values.append(y)
        return values[self.out], ops(self.state, [parameters["V"] @ values[self.last]])

    def in_vpps(self, rng):
        model = vpps.Model(int(rng.integers(1000)))
        P = {k: model.add_matrix(k, *s) if len(s) == 2 else model.add_vector(k, *s, 0.1) for k, s in self.shapes.items()}

        def ops(name, xs):
            return vpps.concat(xs) if name == "concat" else getattr(vpps, name)(*xs)

        @model.cell
        def cell(c):
            x = c.pull(self.rows)
            h = [vpps.sum(c.gather_list(0, self.hidden))] if self.kind == "list" else [c.gather(k, 0, self.hidden) for k in range(self.children)]
            out, state = self.run(P, ops, [x, *h])
            c.scatter(state)
            c.push(out)

        def function(x, below):
            g = vpps.current()
            first = g.next_vertex
            if self.kind == "list":
                begin, members = vpps.ragged(below)
                v = g.apply(cell, pulls=x, lists=[vpps.Members(begin, first + members)])
            else:
                none = g.source(vpps.zeros(self.hidden)).id if below else 0
                v = g.apply(cell, pulls=x, children=np.array([[none if i < 0 else none + 1 + i for i in row] for row in below], np.uint32))
            return v.pushed(0), v[len(v) - 1:].scattered(0)

        return model, function

    def in_torch(self, P, x, below):
        states, outs = [], []
        for row, of in zip(x, below):
            given = [states[i] if i >= 0 else row.new_zeros(self.hidden) for i in of]
            if self.kind == "list":
                given = [sum(given, row.new_zeros(self.hidden))]
            out, state = self.run(P, lambda name, xs: OPS[name][1](*xs), [row, *given])
            outs.append(out.reshape(-1))
            states.append(state)
        y = torch.stack(outs)
        return y if y.shape[1] > 1 else y[:, 0], states[-1][None] if self.hidden > 1 else states[-1]


def draw_below(rng, kind, n):
    """Draws the children of each of n vertices, from those before it; -1: no child."""
    if kind == "list":
        return [sorted(rng.choice(i, int(rng.integers(min(i, 3) + 1)), replace=False).tolist()) if i else [] for i in range(n)]
    return [[int(rng.integers(-1, i)) for _ in range(1 if kind == "chain" else 2)] for i in range(n)]


def try_one(seed, **options):
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    drawn = Drawn(rng, str(rng.choice(["chain", "tree", "list"])))
    model, function = drawn.in_vpps(rng)
    module = vpps.torch.Module(model, function, **options)
    for p in module.parameters():
        p.requires_grad_(bool(rng.integers(6)))
    before, turns = torch.nn.Linear(3, drawn.rows), int(rng.integers(1, 3))
    inputs = [(torch.randn(n, 3), draw_below(rng, drawn.kind, n)) for n in rng.integers(1, 7, turns)]
    if rng.integers(2):
        module.eval()
    asks = bool(rng.integers(3))  # whether the input needs a gradient
    sides = []
    for dtype in (torch.float64, torch.float32):
        ours = dtype == torch.float32
        P = {k: p if ours else p.detach().to(dtype).requires_grad_(p.requires_grad) for k, p in module.named_parameters()}
        first = {k: p.detach().to(dtype).clone().requires_grad_() for k, p in before.named_parameters()}
        total, values = torch.zeros((), dtype=dtype), []
        for x, below in inputs:  # several calls, then backward once for all of them
            y = torch.tanh(x.to(dtype) @ first["weight"].T + first["bias"])
            y = y if asks else y.detach()
            some = module(y, below) if ours else drawn.in_torch(P, y, below)
            values += [s.detach().double() for s in some]
            total = total + sum((torch.sin(s) * torch.linspace(-1, 1.5, s.numel(), dtype=dtype).reshape(s.shape)).sum() for s in some)
        if total.requires_grad:
            total.backward()
        sides.append((values, {**P, **first}))
    (want, theirs), (got, ours) = sides
    for a, b in zip(got, want):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)
    for name, p in theirs.items():
        q = ours[name]
        if name in module._parameters:
            assert (p.grad is None) == (q.grad is None), name
        if p.grad is not None:
            torch.testing.assert_close(q.grad.double(), p.grad, rtol=1e-3, atol=1e-4 * (1 + float(p.grad.abs().max())), msg=lambda m, n=name: f"{n}: {m}")
    module.trainer.close()


@pytest.mark.parametrize("part", range(8))
def test_random_networks(part):
    for seed in range(25 * part, 25 * part + 25):
        try:
            try_one(seed, vps=1 + seed % 3, verify=not seed % 4, no_tuning=True)
        except Exception as e:
            raise AssertionError(f"seed {seed}") from e


@pytest.mark.parametrize("seed", range(10))
def test_random_networks_under_simt(seed):
    try_one(seed + 1000, device="simt", vps=2)
