#!/usr/bin/env python3
"""Golden losses of small language models, of one layer and of three, by torch.nn.LSTM.

    python3 tests/golden/lstm_lm.py > tests/golden/lstm_lm_golden.h

Zaremba, Sutskever and Vinyals, "Recurrent Neural Network Regularization" (2014), section 3, without dropout: from the
words before it the LSTM says every word but the first. The loss is the sum of the negative log
likelihoods over the batch's number of sentences.
"""
from golden import (EMBED, EXAMPLES, HIDDEN, WORDS, Random, c_sentence, header, lstm_layers, matrix, nll,
                    print_examples, print_golden, run_lstm, table, vector)



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
    header("lstm_lm")
    print_examples("golden_text", (f".sentence = {c_sentence(words)}" for words in sentences))
    print_golden("lstm-lm", tensors(1), loss_of(1), sentences, "golden_text", classes=WORDS)
    print_golden("lstm-lm", tensors(3), loss_of(3), sentences, "golden_text", name="lstm-lm-3-layers", classes=WORDS,
                 layers=3)


if __name__ == "__main__":
    main()
