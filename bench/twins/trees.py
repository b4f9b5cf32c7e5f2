"""Networks on trees and what trees give: Tree-LSTM, Tree-GRU, RvNN, time-delay networks; on dependency trees: Child-Sum Tree-LSTM."""
import itertools

import torch
from torch import nn
from torch.nn import functional as F

from .parts import Padding, read_dependencies, read_known_trees, read_sentences, table

# ---------------------------------------------------------------- tree-lstm

CLASSES = 5


class Trees(nn.Module):
    """Vertices have states, each n x hidden: h is the first one. leaves makes those of words, vertices those above children's
    states, n x 2 x hidden."""

    COMPILED = ("leaves", "vertices", "nll")
    read = staticmethod(read_known_trees)

    def __init__(self, o):
        super().__init__()
        self.examples, n_words, *n_labels = self.read(o)
        self.hidden, self.device = o.hidden, o.device
        self.table, self.classifier = table(n_words, o.embed), nn.Linear(o.hidden, *(n_labels or [CLASSES]))
        self.declare(o.embed, o.hidden)

    @staticmethod
    def matrix(rows, cols):
        return nn.Parameter(nn.init.xavier_uniform_(torch.empty(rows, cols)))

    def take(self, saved):
        saved.take(self.table.weight, "embedding")
        saved.take_linear(self.classifier, "s")

    def nll(self, h, labels):
        return F.cross_entropy(self.classifier(h), labels, reduction="sum", ignore_index=-1)

    def eager(self, trees):
        loss = 0
        for tree in trees:
            words = torch.tensor([word for _, word, left, _ in tree if left < 0], device=self.device)
            labels = torch.tensor([label for label, *_ in tree], device=self.device)
            x, states, n_leaves = self.table(words), [], 0
            for k, (_, _, left, right) in enumerate(tree):
                if left < 0:
                    states.append(self.leaves(x[n_leaves:n_leaves + 1]))
                    n_leaves += 1
                else:
                    states.append(self.vertices(*(torch.stack(both, 1) for both in zip(states[left], states[right]))))
                loss = loss + self.nll(states[k][0], labels[k:k + 1])
        return loss / len(trees)

    @staticmethod
    def levels(trees):
        """For every height: its vertices, each the number of its tree and its own; where their children's states are (left,
        right, left, ...); and which of the states at hand are still needed after it."""
        by_height = []
        for number, tree in enumerate(trees):
            height = []
            for k, (_, _, *children) in enumerate(tree):
                height.append(1 + max([height[c] for c in children]) if children and children[0] >= 0 else 0)
                if height[k] == len(by_height):
                    by_height.append([])
                by_height[height[k]].append((number, k))
        at_hand, levels = [], []
        for level, vertices in enumerate(by_height):
            if level == 0:
                levels.append((vertices, [], []))
                at_hand = vertices
                continue
            place = {vertex: i for i, vertex in enumerate(at_hand)}
            children = [place.pop((number, child)) for number, k in vertices for child in trees[number][k][2:]]
            levels.append((vertices, children, list(place.values())))
            at_hand = list(place) + vertices
        return levels

    def on_device(self, lists):
        """Tensors of lists of numbers, in one copy to the device."""
        return torch.tensor([*itertools.chain(*lists)]).to(self.device, non_blocking=True).split([len(x) for x in lists])

    def batched(self, trees):
        levels = self.levels(trees)
        labels = [trees[number][k][0] for vertices, _, _ in levels for number, k in vertices]
        words = [trees[number][k][1] for number, k in levels[0][0]]
        labels, words, *parts = self.on_device([labels, words, *(part for _, *level in levels[1:] for part in level)])
        states = new = self.leaves(self.table(words))
        all_h = [new[0]]
        for children, kept in zip(parts[::2], parts[1::2]):
            new = self.vertices(*(s.index_select(0, children).view(-1, 2, self.hidden) for s in states))
            states = tuple(torch.cat([s.index_select(0, kept), n]) for s, n in zip(states, new))
            all_h.append(new[0])
        return self.nll(torch.cat(all_h), labels) / len(trees)


class TreeLstm(Trees):
    """Gates of a leaf: i, o, u; of an inner vertex, from h of both children side by side: i, o, u, f_l, f_r. The biases of
    i, o and u are shared, and so is that of both f."""

    def declare(self, embed, hidden):
        self.leaf, self.inner = self.matrix(3 * hidden, embed), self.matrix(5 * hidden, 2 * hidden)
        self.bias, self.forget_bias = nn.Parameter(torch.zeros(3 * hidden)), nn.Parameter(torch.ones(hidden))

    def take(self, saved):
        super().take(saved)
        saved.take(self.leaf, "W_i", "W_o", "W_u")
        saved.take(self.inner, *(f"U_{gate}l U_{gate}r" for gate in ("i_", "o_", "u_", "f_l", "f_r")))
        saved.take(self.bias, "b_i", "b_o", "b_u")
        saved.take(self.forget_bias, "b_f")

    def leaves(self, x):
        i, o, u = torch.addmm(self.bias, x, self.leaf.t()).chunk(3, 1)
        c = torch.sigmoid(i) * torch.tanh(u)
        return torch.sigmoid(o) * torch.tanh(c), c

    def vertices(self, h, c):
        bias = torch.cat([self.bias, self.forget_bias, self.forget_bias])
        i, o, u, f_l, f_r = torch.addmm(bias, h.flatten(1), self.inner.t()).chunk(5, 1)
        c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(f_l) * c[:, 0] + torch.sigmoid(f_r) * c[:, 1]
        return torch.sigmoid(o) * torch.tanh(c), c


# ---------------------------------------------------------------- tree-gru, rvnn

class TreeGru(Trees):
    """Gates of a leaf: z, u; of an inner vertex: r_l, r_r, z_l, z_r, z; then u of what r_l and r_r let through. The biases of z
    and u are shared."""

    def declare(self, embed, hidden):
        self.leaf, self.gates, self.update = self.matrix(2 * hidden, embed), self.matrix(5 * hidden, 2 * hidden), self.matrix(hidden, 2 * hidden)
        self.gates_bias, self.update_bias = nn.Parameter(torch.zeros(5 * hidden)), nn.Parameter(torch.zeros(hidden))

    def take(self, saved):
        super().take(saved)
        gates = ("rl", "rr", "zl", "zr", "z")
        saved.take(self.leaf, "W_z", "W_u")
        saved.take(self.gates, *(f"U_{gate}_l U_{gate}_r" for gate in gates))
        saved.take(self.gates_bias, *(f"b_{gate}" for gate in gates))
        saved.take(self.update, "U_u_l U_u_r")
        saved.take(self.update_bias, "b_u")

    def leaves(self, x):
        bias = torch.cat([self.gates_bias[4 * self.hidden:], self.update_bias])
        z, u = torch.addmm(bias, x, self.leaf.t()).chunk(2, 1)
        return (torch.sigmoid(z) * torch.tanh(u),)

    def vertices(self, h):
        both = h.flatten(1)
        r, z_both, z = torch.sigmoid(torch.addmm(self.gates_bias, both, self.gates.t())).split([2 * self.hidden, 2 * self.hidden, self.hidden], 1)
        u = torch.tanh(torch.addmm(self.update_bias, r * both, self.update.t()))
        return ((z_both * both).view_as(h).sum(1) + z * u,)


class Recursive(Trees):
    """Leaves are words' embeddings."""

    def declare(self, embed, hidden):
        self.inner = nn.Linear(2 * hidden, hidden)

    def take(self, saved):
        super().take(saved)
        saved.take(self.inner.weight, "W_l W_r")
        saved.take(self.inner.bias, "b")

    def leaves(self, x):
        return (x,)

    def vertices(self, h):
        return (torch.tanh(self.inner(h.flatten(1))),)


class RvNN(Recursive):
    def declare(self, embed, hidden):
        super().declare(embed, hidden)
        self.leaf = nn.Linear(embed, hidden)

    def take(self, saved):
        super().take(saved)
        saved.take_linear(self.leaf, "leaf")

    def leaves(self, x):
        return (torch.tanh(self.leaf(x)),)


# ---------------------------------------------------------------- child-sum-tree-lstm

class ChildSum(Trees):
    """Gates i, o, u read a word and the sum of its dependents' h; gate f of each dependent reads the word and the dependent's h.
    Products of words are of all words at once. Children of a level lie one after the other; heads tells each one's head."""

    read = staticmethod(read_dependencies)

    def declare(self, embed, hidden):
        self.words = nn.Linear(embed, 4 * hidden)
        self.sums, self.each = self.matrix(3 * hidden, hidden), self.matrix(hidden, hidden)

    def take(self, saved):
        super().take(saved)
        for parameter, kind, gates in ((self.words.weight, "W", "iouf"), (self.words.bias, "b", "iouf"), (self.sums, "U", "iou"), (self.each, "U", "f")):
            saved.take(parameter, *(f"{kind}_{gate}" for gate in gates))

    def leaves(self, x):
        i, o, u, _ = x.chunk(4, 1)
        c = torch.sigmoid(i) * torch.tanh(u)
        return torch.sigmoid(o) * torch.tanh(c), c

    def vertices(self, x, heads, h, c):
        x, x_f = x.split([3 * self.hidden, self.hidden], 1)
        none = torch.zeros_like(x_f)
        i, o, u = torch.addmm(x, none.index_add(0, heads, h), self.sums.t()).chunk(3, 1)
        f = torch.sigmoid(torch.addmm(x_f.index_select(0, heads), h, self.each.t()))
        c = torch.sigmoid(i) * torch.tanh(u) + none.index_add(0, heads, f * c)
        return torch.sigmoid(o) * torch.tanh(c), c

    def eager(self, trees):
        loss = 0
        for tree in trees:
            labels, words = (torch.tensor([node[k] for node in tree], device=self.device) for k in (0, 1))
            states = []
            for k, (x, (_, _, *children)) in enumerate(zip(self.words(self.table(words)).split(1), tree)):
                below = (torch.cat(all_of) for all_of in zip(*(states[c] for c in children)))
                states.append(self.vertices(x, torch.zeros_like(labels[:len(children)]), *below) if children else self.leaves(x))
                loss = loss + self.nll(states[k][0], labels[k:k + 1])
        return loss / len(trees)

    def batched(self, trees):
        levels = self.levels(trees)
        nodes = [[trees[number][k] for number, k in vertices] for vertices, _, _ in levels]
        labels, words = ([node[k] for level in nodes for node in level] for k in (0, 1))
        heads = [[k for k, (_, _, *below) in enumerate(level) for _ in below] for level in nodes]
        labels, words, *parts = self.on_device([labels, words, *(part for h, (_, *level) in zip(heads, levels) for part in (h, *level))])
        states, all_h = (), []
        for x, heads, children, kept in zip(self.words(self.table(words)).split([len(level) for level in nodes]), *(parts[k::3] for k in range(3))):
            new = self.vertices(x, heads, *(s.index_select(0, children) for s in states)) if states else self.leaves(x)
            states = tuple(torch.cat([s.index_select(0, kept), n]) for s, n in zip(states, new)) if states else new
            all_h.append(new[0])
        return self.nll(torch.cat(all_h), labels) / len(trees)


# ---------------------------------------------------------------- td-rnn, td-lstm

class TimeDelay(Trees):
    """On sentences instead of trees: two neighbours become one, on every level, until one is left, which a classifier with a hidden
    layer gives the sentence's label."""

    read = staticmethod(read_sentences)

    def __init__(self, o):
        super().__init__(o)
        self.mlp = nn.Linear(o.hidden, o.hidden)

    def take(self, saved):
        super().take(saved)
        saved.take_linear(self.mlp, "h")

    def nll(self, h, labels):
        return super().nll(torch.tanh(self.mlp(h)), labels)

    def eager(self, sentences):
        return sum(self.batched([s]) for s in sentences) / len(sentences)

    @staticmethod
    def pairs(lengths):
        """For every level, vertices that have a right neighbour in their sentence, and those that are alone; and the sentences in
        the order of the latter."""
        ended, levels = [], []
        sentence = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
        while len(sentence):
            right, no = sentence[:-1] == sentence[1:], torch.tensor([False])
            left, right = torch.cat([right, no]), torch.cat([no, right])
            alone = (~left & ~right).nonzero()[:, 0]
            levels += [alone, left.nonzero()[:, 0]]
            ended.append(sentence[alone])
            sentence = sentence[left]
        return torch.cat(ended), levels

    def batched(self, sentences):
        words, labels = zip(*sentences)
        order, levels = self.pairs([len(w) for w in words])
        parts = [torch.tensor([*itertools.chain(*words)]), torch.tensor(labels)[order], *levels]
        words, labels, *levels = torch.cat(parts).to(self.device, non_blocking=True).split([len(x) for x in parts])
        states, last = self.leaves(self.table(words)), []
        for alone, left in zip(levels[::2], levels[1::2]):
            last.append(states[0].index_select(0, alone))
            if len(left):
                states = self.vertices(*(torch.stack([s.index_select(0, left), s.index_select(0, left + 1)], 1) for s in states))
        return self.nll(torch.cat(last), labels) / len(sentences)

    def buffers(self, sentences):
        words, labels = zip(*sentences)
        p = Padding([*map(torch.tensor, words)])
        return p.values, p.ends, torch.tensor(labels)

    def padded(self, words, ends, labels):
        """A sentence's vertex is the first one of the level that its length says."""
        states = [s.view(*words.shape, -1) for s in self.leaves(self.table(words.flatten()))]
        first = [states[0][0]]
        for n in range(len(words) - 1, 0, -1):
            made = self.vertices(*(torch.stack([s[:-1], s[1:]], 2).flatten(0, 1) for s in states))
            states = [s.view(n, len(labels), -1) for s in made]
            first.append(states[0][0])
        return self.nll(torch.cat(first).index_select(0, ends), labels) / len(labels)


class TdRnn(TimeDelay, Recursive):
    pass


class TdLstm(TimeDelay, TreeLstm):
    """By open forget gates c would double from level to level."""

    def declare(self, embed, hidden):
        super().declare(embed, hidden)
        nn.init.zeros_(self.forget_bias)
