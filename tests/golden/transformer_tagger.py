#!/usr/bin/env python3
"""Golden losses of small transformer taggers, of one layer and of two, by torch.nn.functional.

    python3 tests/golden/transformer_tagger.py > tests/golden/transformer_tagger.json

The encoder of Vaswani et al., "Attention Is All You Need" (2017), section 3, whose layers normalise what they read (Xiong et al. 2020):
layer_norm, scaled_dot_product_attention and gelu are PyTorch's own. Some words have no tag, and no loss. The loss
is the sum of the negative log likelihoods over the batch's number of sentences.
"""
import math

import torch
from torch.nn.functional import gelu, layer_norm, scaled_dot_product_attention

from bilstm_tagger import draw_sentence
from golden import (CLASSES, EXAMPLES, HIDDEN, WORDS, Random, Tensor, golden, layer_name, matrix, nll, sentence,
                    table, vector, write)

HEADS, FEED_FORWARD = 3, 32


def gain(name):
    return Tensor(name, (HIDDEN,), 0.5)


def layer_tensors(name):
    d, f = HIDDEN, FEED_FORWARD
    return [
        gain(f"{name}.gain_1"), vector(f"{name}.bias_1", d),
        matrix(f"{name}.W_q", d, d), vector(f"{name}.b_q", d), matrix(f"{name}.W_k", d, d),
        matrix(f"{name}.W_v", d, d), vector(f"{name}.b_v", d), matrix(f"{name}.W_o", d, d), vector(f"{name}.b_o", d),
        gain(f"{name}.gain_2"), vector(f"{name}.bias_2", d),
        matrix(f"{name}.W_1", f, d), vector(f"{name}.b_1", f), matrix(f"{name}.W_2", d, f), vector(f"{name}.b_2", d),
    ]


def tensors(layers):
    return [
        table("embedding", WORDS, HIDDEN),
        *(tensor for layer in range(layers) for tensor in layer_tensors(layer_name("layer", layer))),
        gain("gain"), vector("bias", HIDDEN),
        matrix("W_s", CLASSES, HIDDEN), vector("b_s", CLASSES),
    ]


def positions(n):
    p = torch.zeros(n, HIDDEN, dtype=torch.float64)
    for k in range(n):
        for i in range(0, HIDDEN, 2):
            p[k, i], p[k, i + 1] = math.sin(k / 10000**(i / HIDDEN)), math.cos(k / 10000**(i / HIDDEN))
    return p


def loss(p, sentence):
    words, tags = sentence
    x = math.sqrt(HIDDEN) * p["embedding"][words] + positions(len(words))

    def heads(z):
        return z.reshape(len(words), HEADS, HIDDEN // HEADS).transpose(0, 1)

    for name in ("layer", "layer2"):
        if f"{name}.W_q" not in p:
            continue
        w = {key.removeprefix(name + "."): value for key, value in p.items() if key.startswith(name + ".")}
        z = layer_norm(x, (HIDDEN,), w["gain_1"], w["bias_1"])
        a = scaled_dot_product_attention(heads(z @ w["W_q"].T + w["b_q"]), heads(z @ w["W_k"].T), heads(z @ w["W_v"].T + w["b_v"]))
        x = x + a.transpose(0, 1).reshape(len(words), HIDDEN) @ w["W_o"].T + w["b_o"]
        z = layer_norm(x, (HIDDEN,), w["gain_2"], w["bias_2"])
        x = x + gelu(z @ w["W_1"].T + w["b_1"]) @ w["W_2"].T + w["b_2"]
    return nll(layer_norm(x, (HIDDEN,), p["gain"], p["bias"]) @ p["W_s"].T + p["b_s"], tags)


def main():
    random = Random(2017)
    sentences = [draw_sentence(random) for _ in range(EXAMPLES)]
    write(({"sentence": sentence(words, tags)} for words, tags in sentences),
          *(golden("transformer-tagger", tensors(layers), loss, sentences, name=name, layers=layers, heads=HEADS,
                   feed_forward=FEED_FORWARD)
            for layers, name in ((1, "transformer-tagger"), (2, "transformer-tagger-2-layers"))))


if __name__ == "__main__":
    main()
