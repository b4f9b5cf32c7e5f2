#!/usr/bin/env python3
"""Golden losses of small language models, of one layer and of three, by torch.nn.LSTM.

    python3 tests/golden/lstm_lm.py > tests/golden/lstm_lm.json

Zaremba, Sutskever and Vinyals, "Recurrent Neural Network Regularization" (2014), section 3, without dropout: from the
words before it the LSTM says every word but the first. The loss is the sum of the negative log
likelihoods over the batch's number of sentences.
"""
from golden import (EMBED, EXAMPLES, HIDDEN, WORDS, Random, golden, lstm_layers, matrix, nll, run_lstm, sentence,
                    table, vector, write)



def tensors(layers):
    return [
        table("embedding", WORDS, EMBED),
        *lstm_layers("lstm", layers, EMBED, HIDDEN),
        matrix("W_s", WORDS, HIDDEN),
        vector("b_s", WORDS),
    ]


def loss_of(layers):
    def loss(p, sentence):
        h, _ = run_lstm(p, "lstm", p["embedding"][sentence[:-1]], layers=layers)
        return nll(h @ p["W_s"].T + p["b_s"], sentence[1:])

    return loss


def main():
    random = Random(2014)
    sentences = [random.ids(2 + random.below(11), WORDS) for _ in range(EXAMPLES)]
    write(({"sentence": sentence(words)} for words in sentences),
          golden("lstm-lm", tensors(1), loss_of(1), sentences, classes=WORDS),
          golden("lstm-lm", tensors(3), loss_of(3), sentences, name="lstm-lm-3-layers", classes=WORDS, layers=3))


if __name__ == "__main__":
    main()
