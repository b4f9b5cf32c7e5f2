"""Layers in common use, recorded as cells of a model, and functions that apply them to arrays: `chain`, `tree`, `graph` and `pool`.

    model = vpps.Model(seed=1)
    E = model.add_lookup("E", 1000, 64)
    lstm = vpps.nn.LSTM(model, E, 128)                      # parameters with PyTorch's names and first values, and a cell
    with model.graph() as g:
        words = vpps.nn.chain(lstm, [5, 7, 9, 2], [3, 1])   # two sentences, of three words and of one: a vertex for each word
        scores = words.scattered()                          # their hidden states

`inputs` tells what a layer reads. If it is a number of rows, the functions' argument `x` is nodes, vertices, of which output 0 is read, or an
array of n x rows. If it is a tuple of such numbers, x is a tuple of these, which are concatenated. If it is a lookup table, x is the numbers
of its entries. The names of a layer's parameters begin with `name` and a dot; no two parameters of a model may have one name.

`head` is a function (recorder, h), called when the layer's cell is recorded, where h is the cell's output. It adds operations whose results
it pushes, such as scores and losses. Numbers that it pulls are given in `indices`: n x (how many it pulls)."""

from .graphs import GAT, GGNN, GIN, AttentionPooling, GATv2, graph, pool
from .layer import MLP, Layer, Linear
from .sequences import GRU, LSTM, RNN, SLSTM, LayerNormLSTM, Recurrent, ReluRNN, chain, chain_and_ends
from .trees import BinaryTreeLSTM, ChildSumTreeLSTM, tree

__all__ = ["GAT", "GGNN", "GIN", "GRU", "LSTM", "MLP", "RNN", "SLSTM", "AttentionPooling", "BinaryTreeLSTM", "ChildSumTreeLSTM", "GATv2", "Layer",
           "LayerNormLSTM", "Linear", "Recurrent", "ReluRNN", "chain", "chain_and_ends", "graph", "pool", "tree"]
