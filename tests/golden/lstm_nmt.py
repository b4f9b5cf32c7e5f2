#!/usr/bin/env python3
"""Golden losses of small translators, with and without attention, with input feeding, and of two layers, by torch.nn.LSTM.

    python3 tests/golden/lstm_nmt.py > tests/golden/lstm_nmt.json

Sutskever, Vinyals and Le, "Sequence to Sequence Learning with Neural Networks" (2014), section 2: the decoder
starts from the encoder's last state, each layer from that of its number, and says every word of the target but the first from those before it.
Attention is that of Luong, Pham and Manning, "Effective Approaches to Attention-based Neural Machine Translation"
(2015), section 3.1, eqs. 5, 7 and 8 with the score dot; input feeding is section 3.3's. The loss is the sum of the negative log
likelihoods over the batch's number of pairs.
"""
import torch

from golden import (EMBED, EXAMPLES, HIDDEN, WORDS, Random, golden, lstm_layers, matrix, nll, run_lstm, sentence,
                    table, vector, write)

TARGET_WORDS, END = 26, 0



def tensors(layers, fed=0):
    return [
        table("source", WORDS, EMBED),
        table("target", TARGET_WORDS, EMBED),
        *lstm_layers("encoder", layers, EMBED, HIDDEN),
        *lstm_layers("decoder", layers, EMBED + fed, HIDDEN),
        matrix("W_s", TARGET_WORDS, HIDDEN),
        vector("b_s", TARGET_WORDS),
    ]


ATTENTION = matrix("W_a", HIDDEN, 2 * HIDDEN)


def loss(p, pair):
    source, target = pair
    layers = 2 if "encoder2.W_i" in p else 1
    memory, state = run_lstm(p, "encoder", p["source"][source], layers=layers)
    h, _ = run_lstm(p, "decoder", p["target"][target[:-1]], state, layers=layers)
    if "W_a" in p:
        weights = torch.softmax(h @ memory.T, 1)  # weights of the source words, for each target word: eqs. 7 and 8
        h = torch.tanh(torch.cat([weights @ memory, h], 1) @ p["W_a"].T)  # eq. 5
    return nll(h @ p["W_s"].T + p["b_s"], target[1:])


def fed_loss(p, pair):
    """Returns the loss of a decoder with input feeding: at each word it reads the word's embedding and its own attention output for the preceding
    word."""
    source, target = pair
    memory, state = run_lstm(p, "encoder", p["source"][source], layers=1)
    said, logits = torch.zeros(HIDDEN, dtype=torch.float64), []
    for word in target[:-1]:
        x = torch.cat([p["target"][word], said])
        h, state = run_lstm(p, "decoder", x[None], state, layers=1)
        weights = torch.softmax(h @ memory.T, 1)
        said = torch.tanh(torch.cat([weights @ memory, h], 1) @ p["W_a"].T)[0]
        logits.append(p["W_s"] @ said + p["b_s"])
    return nll(torch.stack(logits), target[1:])


def draw_pair(random):
    """Draws a source and a target sentence of words other than END; the target also begins and ends with END."""
    source = random.ids(1 + random.below(10), WORDS)
    return source, [END, *(1 + word for word in random.ids(random.below(10), TARGET_WORDS - 1)), END]


def main():
    random = Random(2014)
    pairs = [draw_pair(random) for _ in range(EXAMPLES)]
    write(({"sentence": sentence(source), "target": sentence(target)} for source, target in pairs),
          golden("lstm-nmt", tensors(1), loss, pairs, classes=TARGET_WORDS),
          golden("lstm-nmt", [*tensors(1), ATTENTION], loss, pairs, name="lstm-nmt-attention", classes=TARGET_WORDS,
                 attention=1),
          golden("lstm-nmt", [*tensors(1, HIDDEN), ATTENTION], fed_loss, pairs, name="lstm-nmt-input-feeding",
                 classes=TARGET_WORDS, input_feeding=1),
          golden("lstm-nmt", [*tensors(2), ATTENTION], loss, pairs, name="lstm-nmt-2-layers", classes=TARGET_WORDS,
                 attention=1, layers=2))


if __name__ == "__main__":
    main()
