"""Shared by the golden scripts: draws data without any library, makes initial values, trains, and writes the data files.

A script describes a network (its tensors and the loss of one example, in PyTorch) and draws examples; golden.py trains
it twice, with SGD and with Adam, and writes what test_golden.c needs to do the same: a JSON file.
Everything is computed in double precision from initial values rounded to single precision.
"""
import json
import math
from typing import NamedTuple

import torch

HIDDEN, EMBED, WORDS, CLASSES = 24, 20, 30, 5
EXAMPLES = 40
BATCH, BATCHES = 4, 20  # the same as in test_golden.c, like the optimisers' settings
NO_WORD = 2**32 - 1


# ---------------------------------------------------------------- data


class Random:
    """A 32-bit linear congruential generator: the data do not depend on any library's version."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 1664525 + 1013904223) % 2**32
        return (self.state >> 8) % n

    def ids(self, n, below):
        return [self.below(below) for _ in range(n)]


# ---------------------------------------------------------------- parameters


class Tensor(NamedTuple):
    name: str
    shape: tuple
    scale: float  # of the parameter's initial values
    table: bool = False  # whether each row is a parameter by itself


def table(name, count, size):
    return Tensor(name, (count, size), 0.5, True)


def matrix(name, rows, cols):
    return Tensor(name, (rows, cols), 0.3)


def vector(name, size):
    return Tensor(name, (size,), 0.1)


def lstm_tensors(name, inputs, hidden):
    return [tensor for gate in "ifou" for tensor in (matrix(f"{name}.W_{gate}", hidden, inputs),
                                                     matrix(f"{name}.U_{gate}", hidden, hidden),
                                                     vector(f"{name}.b_{gate}", hidden))]


def layer_name(name, layer):
    """Returns the prefix of the names of a layer's parameters: NAME, NAME2 or NAME3."""
    return name if layer == 0 else f"{name}{layer + 1}"


def lstm_layers(name, layers, inputs, hidden, directions=1):
    """Returns the tensors of `layers` LSTM layers, each of which reads the output of the one below (both directions' output, if there are two)."""
    return [tensor for layer in range(layers)
            for tensor in lstm_tensors(layer_name(name, layer), directions * hidden if layer else inputs, hidden)]


def lstm_weights(p, name, suffix):
    """Returns the tensors of lstm_tensors with the names and the order of torch.nn.LSTM (suffix "_l0") or LSTMCell (""). Their gates are i, f, g
    (here u), o. They have two biases: the second one is zero and not trained."""

    def stacked(kind):
        return torch.cat([p[f"{name}.{kind}_{gate}"] for gate in "ifuo"])

    bias = stacked("b")
    return {f"weight_ih{suffix}": stacked("W"), f"weight_hh{suffix}": stacked("U"),
            f"bias_ih{suffix}": bias, f"bias_hh{suffix}": torch.zeros_like(bias)}


def run_lstm(p, name, xs, state=None, backward=None, layers=1):
    """Runs torch.nn.LSTM on the rows of xs. Returns all h, and the last (h, c). `backward` is the name of a second LSTM, for the other direction."""
    hidden, inputs = p[f"{name}.W_i"].shape
    net = torch.nn.LSTM(inputs, hidden, layers, bidirectional=backward is not None, dtype=torch.float64)
    weights = {}
    for layer in range(layers):
        weights |= lstm_weights(p, layer_name(name, layer), f"_l{layer}")
        if backward:
            weights |= lstm_weights(p, layer_name(backward, layer), f"_l{layer}_reverse")
    return torch.func.functional_call(net, weights, (xs,) if state is None else (xs, state))


def nll(logits, labels):
    """Returns the sum of -log softmax(logits)[label] over the rows whose label is known."""
    labels = torch.tensor([-100 if label == NO_WORD else label for label in labels])
    return torch.nn.functional.cross_entropy(logits, labels, reduction="sum")


# ---------------------------------------------------------------- training


def initial(number, tensor):
    n = math.prod(tensor.shape)
    values = [tensor.scale * math.sin(0.37 * i + 0.0011 * i * i + number) for i in range(n)]
    return torch.tensor(values, dtype=torch.float32).double().reshape(tensor.shape).requires_grad_()


class SparseAdam:
    """Adam (Kingma and Ba 2015, algorithm 1), with lr 0.03. Unlike torch.optim.Adam it leaves rows of tables that a batch does not use, and their
    state, as they are. The number of the step counts all batches."""

    def __init__(self, parameters, tensors):
        self.parameters = parameters
        self.tables = [tensor.table for tensor in tensors]
        self.m = [torch.zeros_like(p) for p in parameters]
        self.v = [torch.zeros_like(p) for p in parameters]
        self.t = 0

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    @torch.no_grad()
    def step(self):
        self.t += 1
        for k, p in enumerate(self.parameters):
            if p.grad is None:
                continue
            used = p.grad.abs().sum(1) > 0 if self.tables[k] else slice(None)
            g = p.grad[used]
            self.m[k][used] = 0.9 * self.m[k][used] + 0.1 * g
            self.v[k][used] = 0.999 * self.v[k][used] + 0.001 * g * g
            mean = self.m[k][used] / (1 - 0.9**self.t)
            square = self.v[k][used] / (1 - 0.999**self.t)
            p[used] -= 0.03 * mean / (square.sqrt() + 1e-8)


def train(tensors, loss_of, examples, make_optimizer):
    p = {tensor.name: initial(number, tensor) for number, tensor in enumerate(tensors)}
    optimizer = make_optimizer(list(p.values()))
    result = []
    for batch in range(BATCHES):
        losses = [loss_of(p, examples[(batch * BATCH + k) % len(examples)]) for k in range(BATCH)]
        loss = torch.stack(losses).sum() / BATCH
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        result.append(loss.item())
    return result


# ---------------------------------------------------------------- data files


def sentence(words, tags=None):
    """Returns a sentence in the form of struct vpps_sentence."""
    return {key: value for key, value in (("words", words), ("tags", tags)) if value}


def golden(network, tensors, loss_of, examples, name=None, **config):
    """Trains on the examples. Returns the losses and all that VPPS needs for the same training. name: None for the network's."""
    return {
        "name": name or network, "network": network,
        "config": {"words": WORDS, "classes": CLASSES, "embed": EMBED, "hidden": HIDDEN} | config,
        "tensors": [[tensor.name, tensor.scale] for tensor in tensors],
        **{field: [float(f"{x:.12g}") for x in train(tensors, loss_of, examples, make)]
           for field, make in (("sgd", lambda p: torch.optim.SGD(p, lr=0.2)), ("adam", lambda p: SparseAdam(p, tensors)))},
    }


def write(examples, *goldens):
    """Prints a data file: its networks, and its examples (each a net_example with the names of its members), one in a line."""
    def lines(values):
        return ",\n".join(json.dumps(value) for value in values)
    print(f'{{"examples": [\n{lines(examples)}],\n"goldens": [\n{lines(goldens)}]}}')
