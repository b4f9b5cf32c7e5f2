#!/usr/bin/env python3
"""Golden losses of small taggers, with and without characters and of two layers, by torch.nn.LSTM.

    python3 tests/golden/bilstm_tagger.py > tests/golden/bilstm_tagger.json

A bidirectional LSTM (Graves and Schmidhuber 2005) on the words' embeddings and a classifier with a hidden layer on both
directions' h; the tagger with characters spells rare words with two more LSTMs, whose last states together are the
word's embedding (Ling et al. 2015, section 3). Some words have no tag, and no loss. The loss is the sum of the negative
log likelihoods over the batch's number of sentences.
"""
import torch

from golden import (CLASSES, EMBED, EXAMPLES, HIDDEN, NO_WORD, WORDS, Random, golden, lstm_layers, lstm_tensors,
                    matrix, nll, run_lstm, sentence, table, vector, write)

MLP, CHARACTERS, CHARACTER_EMBED = 16, 12, 10
SPELL = EMBED // 2



def tensors(layers):
    return [
        table("embedding", WORDS, EMBED),
        *lstm_layers("forward", layers, EMBED, HIDDEN, directions=2),
        *lstm_layers("backward", layers, EMBED, HIDDEN, directions=2),
        matrix("W_h", MLP, 2 * HIDDEN),
        vector("b_h", MLP),
        matrix("W_s", CLASSES, MLP),
        vector("b_s", CLASSES),
    ]


CHARACTER_TENSORS = [
    *tensors(1),
    table("characters", CHARACTERS, CHARACTER_EMBED),
    *lstm_tensors("spell_forward", CHARACTER_EMBED, EMBED - SPELL),
    *lstm_tensors("spell_backward", CHARACTER_EMBED, SPELL),
]


def spell(p, characters):
    x = p["characters"][characters]
    _, (forward, _) = run_lstm(p, "spell_forward", x)
    _, (backward, _) = run_lstm(p, "spell_backward", x.flip(0))
    return torch.cat([forward[0], backward[0]])


def loss(p, sentence):
    words, tags, *spellings = sentence
    spellings = spellings[0] if spellings else [[]] * len(words)
    xs = torch.stack([spell(p, s) if s else p["embedding"][word] for word, s in zip(words, spellings)])
    h, _ = run_lstm(p, "forward", xs, backward="backward", layers=2 if "forward2.W_i" in p else 1)
    h = torch.tanh(h @ p["W_h"].T + p["b_h"])
    return nll(h @ p["W_s"].T + p["b_s"], tags)


def draw_sentence(random):
    words = random.ids(1 + random.below(12), WORDS)
    tags = [NO_WORD if i and random.below(8) == 0 else random.below(CLASSES) for i in range(len(words))]
    return words, tags


def draw_spelling(random):
    return random.ids(1 + random.below(7), CHARACTERS) if random.below(3) == 0 else []


def main():
    random = Random(2005)
    sentences = [draw_sentence(random) for _ in range(EXAMPLES)]
    spelled = [(words, tags, [draw_spelling(random) for _ in words]) for words, tags in sentences]
    write(({"sentence": sentence(words, tags), "spellings": spellings} for words, tags, spellings in spelled),
          golden("bilstm-tagger", tensors(1), loss, sentences, mlp=MLP),
          golden("bilstm-tagger", tensors(2), loss, sentences, name="bilstm-tagger-2-layers", mlp=MLP, layers=2),
          golden("bilstm-char-tagger", CHARACTER_TENSORS, loss, spelled, mlp=MLP, characters=CHARACTERS,
                 character_embed=CHARACTER_EMBED))


if __name__ == "__main__":
    main()
