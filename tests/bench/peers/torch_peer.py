"""Peer: torch's grouped matrix product, bf16. Gather, FC1, SwiGLU, FC2, weighted sum."""

import torch

import peer_kernels as pk
from bench_rows import rotated

FORMATS = ("bf16",)


def missing():
    """Why this peer cannot run here, or None."""
    if not (hasattr(torch, "_grouped_mm") or hasattr(torch.nn.functional, "grouped_mm")):
        return f"torch {torch.__version__} has no grouped_mm"
    return None


def version():
    return f"torch {torch.__version__}"


def seen(v):
    """Vectors as the products see them."""
    return v


class Layer:
    """One shape's weights; step() gives what one layer of a graph enqueues."""

    modes = ("grouped_mm",)

    def __init__(self, shape, form, generator):
        self.shape = shape
        h, i, e = shape.hidden, shape.intermediate, shape.experts
        self.fc1 = pk.random_bf16((e, 2 * i, h), generator)
        self.fc2 = pk.random_bf16((e, h, i), generator)
        self.product = getattr(torch.nn.functional, "grouped_mm", None) or torch._grouped_mm

    def expert(self, e):
        return self.fc1[e].float(), self.fc2[e].float()

    def prepare(self, rows_of_cases):
        """Nothing to compile."""

    def step(self, mode, x, ids, weights, layer, out):
        flat = torch.from_numpy(rotated(ids, layer, self.shape.experts)).reshape(-1)
        order = torch.argsort(flat, stable=True)
        place = torch.empty_like(order)
        place[order] = torch.arange(order.numel())
        place = place.to(torch.int32).reshape(ids.shape).cuda()
        rows = (order // self.shape.k).cuda()
        ends = torch.bincount(flat, minlength=self.shape.experts).cumsum(0).to(torch.int32).cuda()
        w = torch.from_numpy(weights).cuda()
        first, second = self.fc1.transpose(1, 2), self.fc2.transpose(1, 2)
        mid = torch.empty(order.numel(), self.shape.intermediate, dtype=torch.bfloat16, device="cuda")

        def enqueue():
            pk.swiglu(self.product(x[rows], first, offs=ends), mid)
            pk.weighted_sum(self.product(mid, second, offs=ends), place, w, out)

        return enqueue
