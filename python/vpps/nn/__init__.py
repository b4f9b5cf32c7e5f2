"""Cells that people use, recorded in a model, and what applies them to arrays: `chain`, `tree`, `graph` and `pool`.

    model = vpps.Model(seed=1)
    E = model.add_lookup("E", 1000, 64)
    lstm = vpps.nn.LSTM(model, E, 128)                      # parameters with PyTorch's names and first values, and a cell
    with model.graph() as g:
        words = vpps.nn.chain(lstm, [5, 7, 9, 2], [3, 1])   # two sentences, of three words and of one: a vertex for each word
        scores = words.scattered()                          # their hidden states

What a layer reads, `inputs`, is a number of rows, a tuple of such numbers, or a lookup table. For a number the functions take `x` as nodes,
as vertices, of which they read output 0, or as an array of n x rows; for a tuple as a tuple of these, which are concatenated; for a
table as the entries' numbers. `name` and a dot stand before the names of a layer's parameters; a model has each name once.

`head` is a function (recorder, h) that is recorded in the layer's cell, with what the cell says of its vertex, to push more: scores,
losses. Numbers that it pulls are given in `indices`: n x (how many it pulls)."""

from .graphs import GAT, GGNN, GIN, AttentionPooling, GATv2, graph, pool
from .layer import MLP, Layer, Linear
from .sequences import GRU, LSTM, RNN, SLSTM, LayerNormLSTM, Recurrent, ReluRNN, chain, chain_and_ends
from .trees import BinaryTreeLSTM, ChildSumTreeLSTM, tree

__all__ = ["GAT", "GGNN", "GIN", "GRU", "LSTM", "MLP", "RNN", "SLSTM", "AttentionPooling", "BinaryTreeLSTM", "ChildSumTreeLSTM", "GATv2", "Layer",
           "LayerNormLSTM", "Linear", "Recurrent", "ReluRNN", "chain", "chain_and_ends", "graph", "pool", "tree"]
