"""Networks that tag the words of sentences, or classify sentences."""
import itertools

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence, pad_sequence

from .parts import NONE, Padding, both_ways, fill, lstm, mask_of, numbers, read_lines, read_sentences, rounded, table, vocabulary

SPELLED = 64  # size of a character's embedding


# ---------------------------------------------------------------- bilstm-classifier

class Classifier(nn.Module):
    """Embedding, one LSTM each way, a label of what both end with."""

    COMPILED = ("nll",)

    def __init__(self, o):
        super().__init__()
        self.device = o.device
        sentences, n_words = read_sentences(o)
        labels = list(dict.fromkeys(label for _, label in sentences))
        self.examples = [(torch.tensor(words, device=o.device), labels.index(label)) for words, label in sentences]
        self.table, self.lstm = table(n_words, o.embed), lstm(o.embed, o.hidden, bidirectional=True)
        self.classifier = nn.Linear(2 * o.hidden, len(labels))

    def take(self, saved):
        saved.take(self.table.weight, "embedding")
        saved.take_lstm(self.lstm, "forward", "backward")
        saved.take_linear(self.classifier, "s")

    def nll(self, h, labels):
        return F.cross_entropy(self.classifier(h), labels, reduction="sum")

    def loss(self, ends, labels):
        """ends: both ways x sentences x hidden."""
        return self.nll(ends.transpose(0, 1).flatten(1), torch.tensor(labels).to(self.device, non_blocking=True))

    def eager(self, sentences):
        return sum(self.loss(self.lstm(self.table(words)[:, None])[1][0], [label]) for words, label in sentences) / len(sentences)

    def batched(self, sentences):
        words, labels = zip(*sentences)
        words = pack_sequence(words, enforce_sorted=False)
        return self.loss(self.lstm(words._replace(data=self.table(words.data)))[1][0], labels) / len(sentences)

    def buffers(self, sentences):
        words, labels = zip(*sentences)
        p = Padding(words)
        return p.values, p.turned, p.ends, torch.tensor(labels)

    def padded(self, words, turned, ends, labels):
        return self.nll(both_ways(self.lstm, self.table(words), turned, ends, ends), labels) / len(labels)


# ---------------------------------------------------------------- bilstm-tagger, bilstm-char-tagger

def read_tagged(o):
    """Sentences of WikiNER, each its words' numbers and its tags'; how many words and tags there are; and the words themselves."""
    sentences = [tuple(zip(*(token.rsplit("|", 1) for token in line))) for line in read_lines(o)]
    words = vocabulary((w for sentence, _ in sentences for w in sentence), o.min_count)
    tags = {tag: number for number, tag in enumerate(dict.fromkeys(t for _, of in sentences for t in of))}
    examples = [[torch.tensor(numbers(*x), device=o.device) for x in ((sentence, words), (of, tags))] for sentence, of in sentences]
    return examples, len(words), len(tags), [sentence for sentence, _ in sentences]


class Tagger(nn.Module):
    """Embedding, one LSTM each way, a hidden layer, a tag for every word."""

    COMPILED = ("nll",)

    def __init__(self, o):
        super().__init__()
        self.examples, n_words, n_tags, _ = read_tagged(o)
        self.table, self.lstm = table(n_words, o.embed), lstm(o.embed, o.hidden, bidirectional=True)
        self.head = nn.Sequential(nn.Linear(2 * o.hidden, o.hidden), nn.Tanh(), nn.Linear(o.hidden, n_tags))

    def take(self, saved):
        saved.take(self.table.weight, "embedding")
        saved.take_lstm(self.lstm, "forward", "backward")
        saved.take_linear(self.head[0], "h")
        saved.take_linear(self.head[2], "s")

    def nll(self, h, tags):
        return F.cross_entropy(self.head(h), tags, reduction="sum")

    def embed(self, words):
        return self.table(words)

    def embed_all(self, sentences):
        """Packed."""
        words = pack_sequence(sentences, enforce_sorted=False)
        return words._replace(data=self.table(words.data))

    def eager(self, sentences):
        return sum(self.nll(self.lstm(self.embed(words, *spelled))[0], tags) for words, tags, *spelled in sentences) / len(sentences)

    def batched(self, sentences):
        words, tags, *spelled = zip(*sentences)
        h, _ = self.lstm(self.embed_all(words, *spelled))
        return self.nll(h.data, pack_sequence(tags, enforce_sorted=False).data) / len(sentences)

    def buffers(self, sentences):
        words, tags, *_ = zip(*sentences)
        p = Padding(words)
        return p.values, p.turned, p.at, p.back, fill(torch.cat(tags), NONE)

    def padded(self, words, turned, at, back, tags, *spelled):
        return self.nll(both_ways(self.lstm, self.embed_padded(words, *spelled), turned, at, back), tags) / words.shape[1]

    def embed_padded(self, words):
        return self.table(words)


class CharacterTagger(Tagger):
    """The embedding of a word that is too rare for one of its own is what one LSTM each way over its characters ends with."""

    def __init__(self, o):
        super().__init__(o)
        *_, sentences = read_tagged(o)
        characters = vocabulary((c for word in dict.fromkeys(w for s in sentences for w in s) for c in word), 2)
        for example, sentence in zip(self.examples, sentences):
            rare = [word for word, number in zip(sentence, example[0].tolist()) if not number]
            example.append([torch.tensor(numbers(word, characters), device=o.device) for word in rare])
        self.characters, self.spelling = table(len(characters), SPELLED), lstm(SPELLED, o.embed // 2, bidirectional=True)

    def take(self, saved):
        super().take(saved)
        saved.take(self.characters.weight, "characters")
        saved.take_lstm(self.spelling, "spell_forward", "spell_backward")

    def embed(self, words, spelled):
        x = self.table(words)
        if spelled:
            x[words == 0] = torch.stack([self.spelling(self.characters(word))[1][0].flatten() for word in spelled])
        return x

    def embed_all(self, sentences, spelled):
        words, spelled = torch.cat(sentences), [*itertools.chain(*spelled)]
        x = self.table(words)
        if spelled:
            packed = pack_sequence(spelled, enforce_sorted=False)
            _, (ends, _) = self.spelling(packed._replace(data=self.characters(packed.data)))
            x[words == 0] = torch.cat([*ends], 1)
        return pack_sequence(x.split([len(s) for s in sentences]), enforce_sorted=False)

    def buffers(self, sentences):
        words, _, spelled = zip(*sentences)
        p, spelled = Padding(words), [*itertools.chain(*spelled)]
        rare = p.at[:len(p.step)][torch.cat(words) == 0]
        more = rounded(max(len(rare), 1)) - len(rare)
        c = Padding(spelled + [torch.tensor([0])] * more)
        return *super().buffers(sentences), F.pad(rare, (0, more), value=p.values.numel()), c.values, c.turned, c.ends

    def embed_padded(self, words, rare, characters, turned, ends):
        """Those that are no words go behind all words."""
        x = self.table(words)
        room = torch.cat([x.flatten(0, 1), x.new_zeros(1, x.shape[2])])
        spelled = both_ways(self.spelling, self.characters(characters), turned, ends, ends)
        return room.index_copy(0, rare, spelled)[:-1].view_as(x)


class FieldTagger(Tagger):
    """With a conditional random field (models/crf.c): the forward algorithm word by word, over all sentences."""

    COMPILED = ()  # torch.compile would unroll the loop over words once for each length

    def __init__(self, o):
        super().__init__(o)
        n = self.head[-1].out_features
        self.next, self.begin, self.end = (nn.Parameter(torch.zeros(*shape)) for shape in ((n, n), (n,), (n,)))

    def take(self, saved):
        super().take(saved)
        saved.take(self.next.t(), "crf.transitions")  # a table's matrices lie by columns
        saved.take(self.begin, "crf.begin")
        saved.take(self.end, "crf.end")

    def loss(self, e, tags, lengths):  # e: words x sentences x tags
        each, a = torch.arange(e.shape[1], device=e.device), self.begin + e[0]
        right = a[each, tags[0]] + self.end[tags[lengths - 1, each]]
        for k in range(1, e.shape[0]):
            here = lengths > k
            a = torch.where(here[:, None], torch.logsumexp(a[:, :, None] + self.next, 1) + e[k], a)
            right = right + here * (e[k, each, tags[k]] + self.next[tags[k - 1], tags[k]])
        return (torch.logsumexp(a + self.end, 1) - right).sum()

    def eager(self, sentences):
        return sum(self.batched([s]) for s in sentences) / len(sentences)

    def batched(self, sentences):
        words, tags = zip(*sentences)
        h, _ = self.lstm(self.embed_all(words))
        e, lengths = pad_packed_sequence(h._replace(data=self.head(h.data)))
        return self.loss(e, pad_sequence(tags), lengths.to(e.device)) / len(sentences)

    def buffers(self, sentences):
        words, tags = zip(*sentences)
        p = Padding(words)
        return p.values, p.turned, torch.arange(p.values.numel()), p.of(tags), p.lengths

    def padded(self, words, turned, all_places, tags, lengths):
        h = both_ways(self.lstm, self.table(words), turned, all_places, turned)
        return self.loss(self.head(h).view(*words.shape, -1), tags, lengths) / words.shape[1]


# ---------------------------------------------------------------- transformer-tagger

HEADS = 4


class Transformer(nn.Module):
    """One layer of models/transformer_tagger.c at its default sizes."""

    COMPILED = ("read", "attend", "nll")

    def __init__(self, o):
        super().__init__()
        self.examples, n_words, n_tags, _ = read_tagged(o)
        d = self.hidden = o.hidden
        self.table = table(n_words, d)
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(3))
        self.qkv, self.output = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.feed = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))
        self.head = nn.Linear(d, n_tags)
        longest = max(len(words) for words, _ in self.examples)
        angles = torch.arange(longest)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
        self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], 2).reshape(longest, d))

    def take(self, saved):
        for norm, name in zip(self.norms, ("layer.{}_1", "layer.{}_2", "{}")):
            saved.take(norm.weight, name.format("gain"))
            saved.take(norm.bias, name.format("bias"))
        saved.take(self.table.weight, "embedding")
        saved.take(self.qkv.weight, *(f"layer.W_{x}" for x in "qkv"))
        saved.tensors["zeros"] = torch.zeros(self.hidden)  # softmax does not see the keys' bias
        saved.take(self.qkv.bias, "layer.b_q", "zeros", "layer.b_v")
        for layer, x in ((self.output, "o"), (self.feed[0], "1"), (self.feed[2], "2")):
            saved.take(layer.weight, f"layer.W_{x}")
            saved.take(layer.bias, f"layer.b_{x}")
        saved.take_linear(self.head, "s")

    def read(self, words, positions):
        """What attention reads of words, and their queries, keys and values."""
        x = self.table(words) * self.hidden**0.5 + positions
        return x, self.qkv(self.norms[0](x))

    def attend(self, q, k, v, mask=None):
        """Of sentences x words x d."""
        heads = (x.unflatten(-1, (HEADS, -1)).transpose(1, 2) for x in (q, k, v))
        a = F.scaled_dot_product_attention(*heads, attn_mask=mask)
        return a.transpose(1, 2).flatten(2)

    def nll(self, x, a, tags):
        """Of words x d: what attention reads and what it says."""
        y = x + self.output(a)
        y = y + self.feed(self.norms[1](y))
        return F.cross_entropy(self.head(self.norms[2](y)), tags, reduction="sum")

    def eager(self, sentences):
        losses = []
        for words, tags in sentences:
            x, qkv = self.read(words, self.positions[:len(words)])
            a = self.attend(*qkv[None].chunk(3, 2))
            losses.append(self.nll(x, a[0], tags))
        return sum(losses) / len(sentences)

    def batched(self, sentences):
        """Words of all sentences one after the other but for attention, which is padded."""
        words, tags = zip(*sentences)
        mask = mask_of(words).to(self.positions.device)
        x, qkv = self.read(torch.cat(words), self.positions[:mask.shape[1]].expand(len(words), -1, -1)[mask])
        padded = x.new_zeros(*mask.shape, 3 * self.hidden)
        padded[mask] = qkv
        a = self.attend(*padded.chunk(3, 2), mask=mask[:, None, None, :])
        return self.nll(x, a[mask], torch.cat(tags)) / len(sentences)

    def buffers(self, sentences):
        """Words and their steps; the word at each place, for attention, and the place of each word; how long sentences are."""
        words, tags = zip(*sentences)
        p = Padding(words)
        place, word_at = p.sequence * p.steps + p.step, torch.zeros(len(words), p.steps, dtype=torch.long)
        word_at.view(-1)[place] = torch.arange(len(place))
        return fill(torch.cat(words)), fill(p.step), word_at, fill(place), p.lengths, fill(torch.cat(tags), NONE)

    def padded(self, words, step, word_at, at, lengths, tags):
        x, qkv = self.read(words, self.positions.index_select(0, step))
        mask = torch.arange(word_at.shape[1], device=at.device) < lengths[:, None]
        a = self.attend(*qkv.index_select(0, word_at.flatten()).view(*word_at.shape, -1).chunk(3, 2), mask=mask[:, None, None, :])
        return self.nll(x, a.flatten(0, 1).index_select(0, at), tags) / len(lengths)
