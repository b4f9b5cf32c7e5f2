#!/usr/bin/env python3
"""Trains the Tree-LSTM here, evaluates it in PyTorch, trains it there, and evaluates it here: scores agree to 1e-5 both ways."""
import tempfile

import torch
from safetensors.torch import load_file, save_file
from tree_lstm import TreeLstm

import vpps
from vpps.data import Treebank, Trees


def scores_in_torch(w: dict[str, torch.Tensor], t: Trees) -> torch.Tensor:
    """Of each node of the trees: n x classes."""
    states: list[tuple[torch.Tensor, torch.Tensor]] = []
    for word, left, right in zip(t.word.tolist(), t.left.tolist(), t.right.tolist()):
        if left < 0:
            x = w["embedding"][word].view(-1)
            i, o, u = (w[f"W_{g}"] @ x + w[f"b_{g}"] for g in "iou")
            c = torch.sigmoid(i) * torch.tanh(u)
        else:
            (h_l, c_l), (h_r, c_r) = states[left], states[right]
            i, o, u = (w[f"U_{g}_l"] @ h_l + w[f"U_{g}_r"] @ h_r + w[f"b_{g}"] for g in "iou")
            f_l, f_r = (w[f"U_f_{g}l"] @ h_l + w[f"U_f_{g}r"] @ h_r + w["b_f"] for g in "lr")
            c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(f_l) * c_l + torch.sigmoid(f_r) * c_r
        states.append((torch.sigmoid(o) * torch.tanh(c), c))
    return torch.stack([h for h, _ in states]) @ w["W_s"].T + w["b_s"]


bank = Treebank().generate_listops(20, seed=1, max_leaves=30)
trees, model = bank.arrays(), vpps.Model(seed=1)
net, graph, file = TreeLstm(model, len(bank.vocab), bank.classes, 32, 48), model.graph(), tempfile.mkdtemp() + "/file"
trainer = vpps.Trainer(model, optimizer="adam", lr=0.01)
for turn in ("trained here", "trained in PyTorch"):
    for _ in range(20 if turn == "trained here" else 0):
        with graph:
            trainer.step(net.loss(trees))
    with graph:
        here = torch.from_numpy(trainer.forward(net.add(trees).pushed(0)))
    trainer.save(file)
    weights = {k: v.requires_grad_() for k, v in load_file(file).items() if "/" not in k}
    there = scores_in_torch(weights, trees)
    differ = float((here - there.detach()).abs().max())
    print(f"{turn}: scores differ by {differ:.1e} at most")
    assert differ < 1e-5
    torch.nn.functional.cross_entropy(there, torch.tensor(trees.label).long(), ignore_index=-1).backward()
    save_file({k: (v - v.grad).detach() for k, v in weights.items() if v.grad is not None}, file)
    trainer.load(file)
