"""Networks on lattices: of characters, and arcs that are words among them."""
import itertools
import os

import torch
from peers import FILES
from recipes.lattice_text import lattices as lattices_of_ids
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from .parts import END, mask_of, numbers, read_lines, table, vocabulary
from .text import Translator
from .trees import Trees

WORDS = range(2, 9)  # lengths of words, in characters


def read_ids(o):
    """Lattices of ids, tags numbered in the order of their first occurrence as in VPPS; how many tags there are."""
    found = list(lattices_of_ids(os.path.join(o.data, FILES[o.network][0])))
    known = {tag: k for k, tag in enumerate(dict.fromkeys(tag for *_, tags in found for tag in tags[1:]))}
    return [(characters, arcs, numbers(tags, known)) for characters, arcs, tags in found], len(known)


def build(o):
    """Lattices of the source's characters and of its words among them; the words' numbers."""
    lines = read_lines(o)
    lexicon = {word: k for k, word in enumerate(dict.fromkeys(itertools.chain(*lines)))}
    return [([*text], [(end - n, end, text[end - n:end]) for end in range(len(text) + 1) for n in WORDS if n <= end and text[end - n:end] in lexicon])
            for text in map("".join, lines)], lexicon


class Lattices(nn.Module):
    """Vertices of all lattices of a batch by their node, each node at once; the longest lattices come first. A word's step is taken where
    it begins, with all that begin there, and carried along until it ends."""

    on_device = Trees.on_device

    def read_lattices(self, o, lattices, order_characters, order_words):
        """Examples with numbers instead of characters and words, and tables of these."""
        characters = vocabulary(order_characters(c for l in lattices for c in l[0]), o.min_count)
        words = vocabulary(order_words(word for l in lattices for *_, word in l[1]), o.min_count)
        self.examples = [(numbers(l[0], characters), [(*at, words.get(word, 0)) for *at, word in l[1]], *l[2:]) for l in lattices]
        self.device, self.characters, self.words = o.device, table(len(characters), o.embed), table(len(words), o.embed)

    @staticmethod
    def nodes(lengths, arcs):
        """Of sorted lattices, for every node: how many there are; of arcs that end there, which of the pending ones, and in which lattice
        each; which stay pending; of arcs that begin there, in which lattice each. And what arcs are of, in the order of their beginnings."""
        begins = [[] for _ in range(lengths[0] + 1)]
        for row, of_row in enumerate(arcs):
            for begin, end, x in of_row:
                begins[begin].append((row, end, x))
        pending, nodes = [], []
        for k, begin in enumerate(begins):
            ended, kept = ([i for i, (_, end, _) in enumerate(pending) if (end == k) == now] for now in (True, False))
            nodes.append((sum(n >= k for n in lengths), ended, [pending[i][0] for i in ended], kept, [row for row, *_ in begin]))
            pending = [pending[i] for i in kept] + begin
        return nodes, [x for begin in begins for *_, x in begin]

    def eager(self, lattices):
        return sum(self.batched([x]) for x in lattices) / len(lattices)


# ---------------------------------------------------------------- lattice-lstm

class LatticeLstm(Lattices):
    """models/lattice_lstm.c. Products of all characters and words at once."""

    COMPILED = ("step", "word", "join", "nll")

    def __init__(self, o):
        super().__init__()
        d, (lattices, n_tags) = o.hidden, read_ids(o)
        self.read_lattices(o, lattices, list, sorted)
        self.read, self.read_word, self.link = nn.Linear(o.embed, 4 * d), nn.Linear(o.embed, 3 * d), nn.Linear(o.embed, d)
        self.state, self.word_state, self.link_state = (nn.Linear(d, n * d, bias=False) for n in (4, 3, 1))
        self.head = nn.Linear(d, n_tags)

    def take(self, saved):
        for parameter, name in ((self.characters.weight, "characters"), (self.words.weight, "words")):
            saved.take(parameter, name)
        for x, h, kind, gates in ((self.read, self.state, "char", "ifou"), (self.read_word, self.word_state, "word", "ifu"), (self.link, self.link_state, "word", "l")):
            saved.take(x.weight, *(f"{kind}.W_{gate}" for gate in gates))
            saved.take(x.bias, *(f"{kind}.b_{gate}" for gate in gates))
            saved.take(h.weight, *(f"{kind}.U_{gate}" for gate in gates))
        saved.take_linear(self.head, "s")

    def step(self, x, h, c):
        """Gates i and o and the new u, and c where no word ends."""
        i, f, o, u = (x + self.state(h)).chunk(4, 1)
        i, o, u = torch.sigmoid(i), torch.sigmoid(o), torch.tanh(u)
        return i, o, u, i * u + torch.sigmoid(f) * c

    def word(self, x, h, c):
        i, f, u = (x + self.word_state(h)).chunk(3, 1)
        return torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(f) * c

    def join(self, i, u, c_words, x, rows):
        """A character and words that end with it, rows telling each word's character."""
        share, own = torch.exp(torch.sigmoid(x.index_select(0, rows) + self.link_state(c_words))), torch.exp(i)
        return (own * u).index_add(0, rows, share * c_words) / own.index_add(0, rows, share)

    def nll(self, h, tags):
        return F.cross_entropy(self.head(h), tags, reduction="sum")

    def batched(self, lattices):
        lattices = sorted(lattices, key=lambda x: -len(x[0]))
        characters, arcs, tags = zip(*lattices)
        nodes, words = self.nodes([*map(len, characters)], [[(begin + 1, end, x) for begin, end, x in of] for of in arcs])
        by_node = [[x[k] for x in of if k < len(x)] for of, first in ((characters, 0), (tags, 1)) for k in range(first, len(characters[0]) + first)]
        n = len(characters[0])
        parts = [[*itertools.chain(*by_node[:n])], [*itertools.chain(*by_node[n:])], words]
        for _, ended, rows, kept, begun in nodes[1:]:
            heads = sorted(set(rows))
            parts += ended, heads, [heads.index(row) for row in rows], kept, begun
        characters, tags, words, *lists = self.on_device(parts)
        x, sizes = self.characters(characters), [count for count, *_ in nodes[1:]]
        of_words = self.read_word(self.words(words)).split([len(begun) for *_, begun in nodes[1:]])
        h = c = x.new_zeros(sizes[0], self.head.in_features)
        pending, said = h[:0], []
        for k, (count, read, link, read_words) in enumerate(zip(sizes, self.read(x).split(sizes), self.link(x).split(sizes), of_words)):
            ended, heads, rows, kept, begun = lists[5 * k:5 * k + 5]
            i, o, u, c = self.step(read, h[:count], c[:count])
            if len(ended):
                few = (y.index_select(0, heads) for y in (i, u))
                c = c.index_copy(0, heads, self.join(*few, pending.index_select(0, ended), link.index_select(0, heads), rows))
            h = o * torch.tanh(c)
            pending = pending.index_select(0, kept)
            if len(begun):
                pending = torch.cat([pending, self.word(read_words, h.index_select(0, begun), c.index_select(0, begun))])
            said.append(h)
        return self.nll(torch.cat(said), tags) / len(lattices)


# ---------------------------------------------------------------- lattice-gru

class Gru(nn.Module):
    """Reset gates before the product, which is not nn.GRU: steps are taken one by one. All products of inputs are made at once."""

    def __init__(self, inputs, d):
        super().__init__()
        self.read, self.gates, self.update = nn.Linear(inputs, 3 * d), nn.Linear(d, 2 * d, bias=False), nn.Linear(d, d, bias=False)

    def take(self, saved, name):
        saved.take(self.read.weight, *(f"{name}.W_{gate}" for gate in "rzu"))
        saved.take(self.read.bias, *(f"{name}.b_{gate}" for gate in "rzu"))
        saved.take(self.gates.weight, f"{name}.U_r", f"{name}.U_z")
        saved.take(self.update.weight, f"{name}.U_u")

    def forward(self, x, h):
        d = h.shape[1]
        r, z = torch.sigmoid(x[:, :2 * d] + self.gates(h)).chunk(2, 1)
        return z * h + (1 - z) * torch.tanh(x[:, 2 * d:] + self.update(r * h))


class LatticeGru(Lattices):
    """models/lattice_gru.c."""

    COMPILED = ("step", "merge", "attend", "nll")
    step, attend, nll = staticmethod(Gru.forward), staticmethod(Translator.attend), Translator.nll

    def __init__(self, o):
        super().__init__()
        d, (lattices, lexicon) = o.hidden, build(o)
        targets = read_lines(o, 1, end=[END])
        known = vocabulary(itertools.chain(*targets), o.min_count, keep=[END])
        self.target = table(len(known), o.embed)
        targets = (torch.tensor(numbers([END, *t], known), device=o.device) for t in targets)
        self.read_lattices(o, [(*lattice, t) for lattice, t in zip(lattices, targets)], list, lambda x: sorted(x, key=lexicon.get))
        self.encode, self.decode, self.gate = Gru(o.embed, d), Gru(o.embed, d), nn.Linear(d, d)
        self.join, self.head = nn.Linear(2 * d, d, bias=False), nn.Linear(d, len(known))

    def take(self, saved):
        for name in ("characters", "words", "target"):
            saved.take(getattr(self, name).weight, name)
        self.encode.take(saved, "encoder")
        self.decode.take(saved, "decoder")
        saved.take(self.gate.weight, "encoder.U_g")
        saved.take(self.gate.bias, "encoder.b_g")
        saved.take(self.join.weight, "W_a")
        saved.take_linear(self.head, "s")

    def merge(self, h, rows, none):
        """States of arcs, rows telling each one's node."""
        gate = torch.sigmoid(self.gate(h))
        return none.index_add(0, rows, gate * h) / none.index_add(0, rows, gate)

    def batched(self, pairs):
        pairs = sorted(pairs, key=lambda x: -len(x[0]))
        characters, arcs, targets = zip(*pairs)
        all_arcs = [[*((k, k + 1, (0, c)) for k, c in enumerate(of)), *((begin, end, (1, word)) for begin, end, word in words)]
                    for of, words in zip(characters, arcs)]
        nodes, of_arcs = self.nodes([*map(len, characters)], all_arcs)
        kinds = [[x for kind, x in of_arcs if kind == wanted] for wanted in (0, 1)]
        seen, order = [0, len(kinds[0])], []
        for kind, _ in of_arcs:
            order.append(seen[kind])
            seen[kind] += 1
        of_characters, of_words, order, *lists = self.on_device([*kinds, order, *(part for _, *node in nodes for part in node)])
        x = torch.cat([self.characters(of_characters), self.words(of_words)])
        read = self.encode.read(x).index_select(0, order).split([len(begun) for *_, begun in nodes])
        h = x.new_zeros(len(pairs), self.head.in_features)
        pending, memory = h[:0], []
        for k, (count, *_) in enumerate(nodes):
            ended, rows, kept, begun = lists[4 * k:4 * k + 4]
            if k:
                h = self.merge(pending.index_select(0, ended), rows, x.new_zeros(count, h.shape[1]))
                memory.append(F.pad(h, (0, 0, 0, len(pairs) - count)))
            pending = pending.index_select(0, kept)
            if len(begun):
                pending = torch.cat([pending, self.step(self.encode, read[k], h.index_select(0, begun))])
        memory = torch.stack(memory, 1)
        mask, said = (mask_of(x).to(memory.device) for x in (characters, [t[1:] for t in targets]))
        h = memory[torch.arange(len(pairs), device=memory.device), mask.sum(1) - 1]
        words, states = pad_sequence(targets, batch_first=True), []
        for read in self.decode.read(self.target(words[:, :-1].t())):
            h = self.step(self.decode, read, h)
            states.append(h)
        both = self.attend(torch.stack(states, 1), memory, mask[:, None, :])
        return self.nll(both[said], words[:, 1:][said]) / len(pairs)
