"""Padded batches, in buffers that all batches of the same shapes share: what CUDA graphs need."""
import functools
import math

import torch

CYCLE = 2048  # the most batches that are trained, so that all buckets are known before anything is timed


def trained(net):
    return [p for p in net.parameters() if p.requires_grad]


def on_host(x):
    return x.cpu() if torch.is_tensor(x) else [on_host(y) for y in x] if isinstance(x, (list, tuple)) else x


class Buckets:
    """A function of a network's buffers, called with padded batches of examples. The buffers of a bucket, all batches of the same shapes, are
    made once."""

    def __init__(self, net, examples, function):
        self.net, self.examples, self.function, self.known = net, on_host(examples), function, {}
        self.device = next(net.parameters()).device

    def padded(self, first, last):
        """The batch's buffers one after the other, and their shapes."""
        parts = self.net.buffers(self.examples[first:last])
        return torch.cat([x.flatten() for x in parts]), tuple(x.shape for x in parts)

    def __call__(self, first, last):
        batch, shapes = self.padded(first, last)
        if shapes not in self.known:
            buffer = batch.to(self.device)
            views = [x.view(s) for x, s in zip(buffer.split([math.prod(s) for s in shapes]), shapes)]
            self.known[shapes] = buffer, self.capture(functools.partial(self.function, views))
        buffer, run = self.known[shapes]
        buffer.copy_(batch, non_blocking=True)
        return run()

    def capture(self, run):
        return run

    def cycle(self, batch):
        return min(max(len(self.examples) // batch, 1), CYCLE)

    def step(self, first, last):
        """Examples first to last, of those that make whole batches."""
        begin = first % (self.cycle(last - first) * (last - first))
        return self(begin, begin + last - first)

    def prepare(self, batch):
        """Trains each bucket's first batch three times: torch.compile captures the second time."""
        for first in range(0, self.cycle(batch) * batch, batch):
            for _ in range(0 if self.padded(first, first + batch)[1] in self.known else 3):
                self.step(first, first + batch)


class Graphs(Buckets):
    """The function is captured as a CUDA graph for each bucket. Its results are read before the next call. On the CPU, where no graph is
    captured, it is called."""

    pool = None

    def capture(self, run):
        if self.device.type != "cuda":
            return run
        self.pool = self.pool or torch.cuda.graph_pool_handle()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):  # libraries choose and allocate; what is trained is trained by it, too
                run()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            results = run()

        def replay():
            graph.replay()
            return results
        return replay


def train(net, rate, buffers):
    """A step of SGD without sparse tensors, whose sizes a graph cannot hold: the loss, and the gradient of each trained parameter; for a
    table the words, and the gradients of their rows."""
    looked = {}

    def keep(table, words, rows):
        looked[table.weight] = words[0].flatten(), rows.detach().requires_grad_()
        return looked[table.weight][1]

    hooks = [m.register_forward_hook(keep) for m in net.modules() if getattr(m, "sparse", False)]
    loss = net.padded(*buffers)
    for hook in hooks:
        hook.remove()
    results = []
    for p, g in zip(trained(net), torch.autograd.grad(loss, [looked[p][1] if p in looked else p for p in trained(net)])):
        results.append((looked[p][0], g.flatten(0, -2)) if p in looked else g)
        with torch.no_grad():
            p.index_add_(0, *results[-1], alpha=-rate) if p in looked else p.add_(g, alpha=-rate)
    return loss.detach(), results


def dense(net, loss, results):
    """The loss and the gradients."""
    return [loss, *(torch.zeros_like(p).index_add_(0, *g) if isinstance(g, tuple) else g for p, g in zip(trained(net), results))]
