#!/usr/bin/env python3
"""Golden losses of a small language model, by torch.nn.LSTM.

    python3 tests/golden/lstm_lm.py > tests/golden/lstm_lm_golden.h

One layer, without dropout, as Zaremba, Sutskever and Vinyals, "Recurrent Neural Network Regularization" (2014), section
3 has many: from the words before it the LSTM says every word but the first. The loss is the sum of the negative log
likelihoods over the batch's number of sentences.
"""
from golden import (EMBED, EXAMPLES, HIDDEN, WORDS, Random, c_sentence, header, lstm_tensors, matrix, nll,
                    print_examples, print_golden, run_lstm, table, vector)

TENSORS = [
    table("embedding", WORDS, EMBED),
    *lstm_tensors("lstm", EMBED, HIDDEN),
    matrix("W_s", WORDS, HIDDEN),
    vector("b_s", WORDS),
]


def loss(p, sentence):
    h, _ = run_lstm(p, "lstm", p["embedding"][sentence[:-1]])
    return nll(h @ p["W_s"].T + p["b_s"], sentence[1:])


def main():
    random = Random(2014)
    sentences = [random.ids(2 + random.below(11), WORDS) for _ in range(EXAMPLES)]
    with header("lstm_lm"):
        print_examples("golden_text", (f".sentence = {c_sentence(words)}" for words in sentences))
        print_golden("lstm-lm", TENSORS, loss, sentences, "golden_text", classes=WORDS)


if __name__ == "__main__":
    main()
