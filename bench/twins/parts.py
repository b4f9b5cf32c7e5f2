"""What the networks beside VPPS's share: data, tables, LSTMs, and the parameters of a checkpoint of `vpps train`."""
import collections
import json
import math
import os
import sys

import torch
from peers import FILES, read_trees
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

END = "<eos>"
NONE = -100  # a label that cross_entropy passes over

# ---------------------------------------------------------------- data


def vocabulary(words, least=1, keep=()):
    """The number of each word that occurs so often; 0, <unk>, is that of all others."""
    counts = collections.Counter(words)
    known = dict.fromkeys(["<unk>", *(w for w, n in counts.items() if n >= least or w in keep)])
    return {word: number for number, word in enumerate(known)}


def numbers(words, known):
    return [known.get(w, 0) for w in words]


def read_lines(o, which=0, end=()):
    """Lines of words, each with these words behind it."""
    with open(os.path.join(o.data, FILES[o.network][which]), "rb") as file:
        return [[*(w.decode() for w in line.split()), *end] for line in file if line.strip()]


def mask_of(sequences):
    """Of sequences x the longest one's places: is there one?"""
    lengths = torch.tensor([len(x) for x in sequences])
    return torch.arange(int(lengths.max())) < lengths[:, None]


def rounded(n):
    """A size as padded buffers have it: a multiple of 8; of an eighth to a sixteenth of itself, if that is more."""
    step = max(8, 1 << max(n.bit_length() - 4, 0))
    return -(-n // step) * step


def fill(x, value=0):
    """A list of numbers, up to a rounded size."""
    return F.pad(x, (0, rounded(len(x)) - len(x)), value=value)


class Padding:
    """Sequences padded to a rounded number of steps, steps x sequences. Places are numbers of elements in this order: at has those of all
    real elements, one sequence after the other, and back those that they have when each sequence is read from its end; ends those
    of each sequence's last element. turned has every place's element when sequences are turned around."""

    def __init__(self, sequences):
        self.lengths, n = torch.tensor([len(x) for x in sequences]), len(sequences)
        self.steps = rounded(int(self.lengths.max()))
        self.sequence, self.step = (torch.arange(self.steps) < self.lengths[:, None]).nonzero(as_tuple=True)
        self.at, self.back = self.place(self.step), self.place(self.lengths[self.sequence] - 1 - self.step)
        self.ends = (self.lengths - 1) * n + torch.arange(n)
        self.turned = torch.arange(self.steps * n)
        self.turned[self.at[:len(self.step)]] = self.back[:len(self.step)]
        self.values = self.of(sequences)

    def place(self, step):
        return fill(step * len(self.lengths) + self.sequence)

    def of(self, sequences):
        padded = pad_sequence(sequences)
        return F.pad(padded, (0, 0, 0, self.steps - len(padded)))


def read_known_trees(o):
    """Trees as read_trees has them, of words that occur often enough; how many words there are."""
    trees, _ = read_trees(os.path.join(o.data, FILES[o.network][0]))
    known = vocabulary((node[1] for tree in trees for node in tree if node[1] >= 0), o.min_count)
    return [[(label, known.get(word, 0) if word >= 0 else -1, *children) for label, word, *children in tree] for tree in trees], len(known)


def read_sentences(o):
    """What trees are of: words and the root's label; how many words there are."""
    trees, n_words = read_known_trees(o)
    return [([word for _, word, left, _ in tree if left < 0], tree[-1][0]) for tree in trees], n_words


def read_dependencies(o):
    """Sentences of CoNLL-U as trees, each its words with those below before them: (relation, word, dependent, ...); how many words and
    relations there are."""
    with open(os.path.join(o.data, FILES[o.network][0]), encoding="utf-8") as file:
        sentences = [[columns for line in text.split("\n") if (columns := line.split("\t"))[0].isdigit()] for text in file.read().split("\n\n")]
    known = vocabulary((columns[1] for sentence in sentences for columns in sentence), o.min_count)
    relations = {name: k for k, name in enumerate(dict.fromkeys(columns[7] for sentence in sentences for columns in sentence))}
    trees = []
    for sentence in filter(None, sentences):
        below, order = [[] for _ in range(len(sentence) + 1)], [0]
        for k, columns in enumerate(sentence, 1):
            below[int(columns[6])].append(k)
        for k in order:
            order += below[k]
        at = {k: place for place, k in enumerate(reversed(order))}
        trees.append([(relations[sentence[k - 1][7]], known.get(sentence[k - 1][1], 0), *(at[d] for d in below[k])) for k in reversed(order[1:])])
    return trees, len(known), len(relations)


# ---------------------------------------------------------------- parameters

def table(count, size):
    made = nn.Embedding(count, size, sparse=True)
    nn.init.uniform_(made.weight, -0.05, 0.05)
    return made


def lstm(inputs, hidden, **more):
    made = nn.LSTM(inputs, hidden, **more)
    for name, p in made.named_parameters():
        if name.startswith("bias_hh"):
            nn.init.zeros_(p).requires_grad_(False)
    return made


def both_ways(layer, x, turned, at, back):
    """What one LSTM each way says of padded sequences at these places (Padding)."""
    zeros, said = x.new_zeros(1, x.shape[1], layer.hidden_size), []
    for end, y, places in (("", x, at), ("_reverse", x.flatten(0, 1).index_select(0, turned).view_as(x), back)):
        weights = [getattr(layer, f"{kind}_l0{end}") for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        said.append(torch.lstm(y, (zeros, zeros), weights, True, 1, 0.0, True, False, False)[0].flatten(0, 1).index_select(0, places))
    return torch.cat(said, 1)


class Saved:
    """The tensors of a checkpoint of `vpps train`, each to be taken once."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            self.data = bytearray(file.read())
        self.metadata = self.header.pop("__metadata__")
        self.tensors = {name: torch.frombuffer(self.data, dtype=torch.float32, offset=t["data_offsets"][0], count=math.prod(t["shape"])).view(t["shape"])
                        for name, t in self.header.items() if not name.startswith("optimizer.")}

    def enlarge(self, path):
        """Adds noise to biases, which begin as zeros, and to tables, whose values are small, so that all of them matter, and writes
        the file for --init."""
        for name, tensor in self.tensors.items():
            if name.split(".")[-1][0] not in "WU":
                tensor.add_(torch.empty_like(tensor).uniform_(-0.5, 0.5))
        del self.metadata["vpps.checksum"]
        header = json.dumps({"__metadata__": self.metadata, **self.header}).encode()
        with open(path, "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header + self.data)

    def take(self, parameter, *rows):
        """Names of a row are those of tensors side by side."""
        value = torch.cat([torch.cat([self.tensors.pop(name) for name in row.split()], -1) for row in rows])
        if value.squeeze().shape != parameter.squeeze().shape:
            sys.exit(f"peers_torch: {', '.join(rows)}: {list(value.shape)} in VPPS, {list(parameter.shape)} here")
        parameter.data.copy_(value.view_as(parameter))

    def take_linear(self, layer, number):
        self.take(layer.weight, f"W_{number}")
        self.take(layer.bias, f"b_{number}")

    def take_lstm(self, layer, *ways):
        for way, end in zip(ways, ("", "_reverse")):
            for parameter, kind in (("weight_ih_l0", "W"), ("weight_hh_l0", "U"), ("bias_ih_l0", "b")):
                self.take(getattr(layer, parameter + end), *(f"{way}.{kind}_{gate}" for gate in "ifuo"))
