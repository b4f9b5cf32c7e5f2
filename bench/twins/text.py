"""A language model and a translator."""
import itertools

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence, pad_sequence

from .parts import END, NONE, Padding, fill, lstm, mask_of, numbers, read_lines, table, vocabulary


# ---------------------------------------------------------------- lstm-lm

class LanguageModel(nn.Module):
    """Embedding, an LSTM, after every word the next one, the sentence's end at last."""

    COMPILED = ("nll",)

    def __init__(self, o):
        super().__init__()
        sentences = read_lines(o, end=[END])
        known = vocabulary(itertools.chain(*sentences), o.min_count, keep=[END])
        self.examples = [torch.tensor(numbers([END, *words], known), device=o.device) for words in sentences]
        self.table, self.lstm, self.head = table(len(known), o.embed), lstm(o.embed, o.hidden), nn.Linear(o.hidden, len(known))

    def take(self, saved):
        saved.take(self.table.weight, "embedding")
        saved.take_lstm(self.lstm, "lstm")
        saved.take_linear(self.head, "s")

    def nll(self, h, words):
        return F.cross_entropy(self.head(h), words, reduction="sum")

    def eager(self, sentences):
        return sum(self.nll(self.lstm(self.table(words[:-1]))[0], words[1:]) for words in sentences) / len(sentences)

    def batched(self, sentences):
        mask = mask_of([words[1:] for words in sentences]).to(sentences[0].device)
        words = pad_sequence(sentences, batch_first=True)
        h, _ = self.lstm(self.table(words[:, :-1].t()))
        return self.nll(h.transpose(0, 1)[mask], words[:, 1:][mask]) / len(sentences)

    def buffers(self, sentences):
        p = Padding([words[:-1] for words in sentences])
        return p.values, p.at, fill(torch.cat([words[1:] for words in sentences]), NONE)

    def padded(self, words, at, said):
        return self.nll(self.lstm(self.table(words))[0].flatten(0, 1).index_select(0, at), said) / words.shape[1]


# ---------------------------------------------------------------- lstm-nmt

class Translator(nn.Module):
    """models/lstm_nmt.c with attention: all target words at once, for a word's attention is not read by the next one's step."""

    COMPILED = ("attend", "nll")

    def __init__(self, o):
        super().__init__()
        pairs = [*zip(read_lines(o), read_lines(o, 1, end=[END]))]
        source, target = (vocabulary(itertools.chain(*lines), o.min_count, keep=[END]) for lines in zip(*pairs))
        self.examples = [(torch.tensor(numbers(s, source), device=o.device), torch.tensor(numbers([END, *t], target), device=o.device))
                         for s, t in pairs]
        self.source, self.target = table(len(source), o.embed), table(len(target), o.embed)
        self.encoder, self.decoder = lstm(o.embed, o.hidden), lstm(o.embed, o.hidden)
        self.join = nn.Linear(2 * o.hidden, o.hidden, bias=False)
        self.head = nn.Linear(o.hidden, len(target))

    def take(self, saved):
        saved.take(self.source.weight, "source")
        saved.take(self.target.weight, "target")
        saved.take_lstm(self.encoder, "encoder")
        saved.take_lstm(self.decoder, "decoder")
        saved.take(self.join.weight, "W_a")
        saved.take_linear(self.head, "s")

    @staticmethod
    def attend(s, memory, mask=None):
        """The decoder's states beside what they read of the encoder's."""
        return torch.cat([F.scaled_dot_product_attention(s, memory, memory, attn_mask=mask, scale=1.0), s], -1)

    def nll(self, both, words):
        return F.cross_entropy(self.head(torch.tanh(self.join(both))), words, reduction="sum")

    def eager(self, pairs):
        losses = []
        for source, target in pairs:
            memory, last = self.encoder(self.source(source))
            s, _ = self.decoder(self.target(target[:-1]), last)
            losses.append(self.nll(self.attend(s[None], memory[None])[0], target[1:]))
        return sum(losses) / len(pairs)

    def batched(self, pairs):
        sources, targets = zip(*pairs)
        words = pack_sequence(sources, enforce_sorted=False)
        packed, last = self.encoder(words._replace(data=self.source(words.data)))
        memory, _ = pad_packed_sequence(packed, batch_first=True)
        read, said = (mask_of(x).to(memory.device) for x in (sources, [t[1:] for t in targets]))
        words = pad_sequence(targets, batch_first=True)
        s, _ = self.decoder(self.target(words[:, :-1].t()), last)
        both = self.attend(s.transpose(0, 1), memory, read[:, None, :])
        return self.nll(both[said], words[:, 1:][said]) / len(pairs)

    def buffers(self, pairs):
        sources, targets = zip(*pairs)
        p, q = Padding(sources), Padding([t[:-1] for t in targets])
        return p.values, p.ends, p.lengths, q.values, fill(q.sequence * q.steps + q.step), fill(torch.cat([t[1:] for t in targets]), NONE)

    def padded(self, source, ends, lengths, target, at, said):
        """A column of weights for "behind the end" keeps cells as they are there: it opens gates f, shuts gates i, to the last bit."""
        e, d = self.encoder, self.encoder.hidden_size
        read = torch.arange(len(source), device=at.device)[:, None] < lengths
        x = torch.cat([self.source(source), (~read[..., None]).to(self.join.weight.dtype)], 2)
        column = torch.cat([x.new_full((d, 1), -1e4), x.new_full((d, 1), 1e4), x.new_zeros(2 * d, 1)])
        weights = [torch.cat([e.weight_ih_l0, column], 1), e.weight_hh_l0, e.bias_ih_l0, e.bias_hh_l0]
        zeros = x.new_zeros(1, len(lengths), d)
        memory, _, c = torch.lstm(x, (zeros, zeros), weights, True, 1, 0.0, True, False, False)
        s, _ = self.decoder(self.target(target), (memory.flatten(0, 1).index_select(0, ends)[None], c))
        both = self.attend(s.transpose(0, 1), memory.transpose(0, 1), read.t()[:, None, :])
        return self.nll(both.flatten(0, 1).index_select(0, at), said) / len(lengths)
