"""Forward passes of a model as steps of a session: a step begins with the pass's first MoE layer and ends with the
pass, whatever ends it. In a step each layer is called once per micro-batch; where a pass needs more calls of a layer,
since it is longer than the session's micro-batches together, further steps follow."""

import collections
import sys

import torch

from ..errors import Unsupported


class Passes:
    """The session's side of an attached model. Thread: the one that runs the model."""

    def __init__(self, session):
        self.session = session
        self.columns = session.tier.model.router_columns
        self.is_loading = False
        self._limit = session.stats.max_tokens
        self._micro_batches = session.stats.micro_batches
        self._inside = False
        self._step = None
        self._calls = collections.Counter()  # of each layer in this step

    # --- hooks of the module that runs all layers ---

    def begin(self, *_):
        self._end(KeyboardInterrupt, None, None)  # of a pass that was torn away from under us
        self._inside = True

    def end(self, *_):
        self._inside = False
        self._end(*sys.exc_info())

    def _end(self, *exception):
        step, self._step = self._step, None
        if step is not None:
            step.__exit__(*exception)

    # --- one layer ---

    def compute(self, layer, rows, ids=None, weights=None):
        """The layer's sum for `rows` [T, H], as a new tensor like them."""
        rows = rows.detach().contiguous()
        out = torch.empty_like(rows)
        if rows.shape[0] == 0:
            return out
        self._begin_step(rows)
        try:
            self._forward(layer, rows, ids, weights, out)
        finally:
            if not self._inside:  # a layer that is called by itself is a step by itself
                self._end(*sys.exc_info())
        return out

    def _begin_step(self, rows):
        if self._step is None:
            self._calls.clear()
            self._step = self.session.step(stream=_stream(rows)).__enter__()

    def _forward(self, layer, rows, ids, weights, out):
        """In pieces of what the session takes, with as many under way as it has micro-batches."""
        under_way = collections.deque()
        for at in range(0, rows.shape[0], self._limit):
            piece = slice(at, at + self._limit)
            if self._calls[layer] == self._micro_batches:
                self._collect(under_way)
                self._end(None, None, None)
                self._begin_step(rows)
            ticket = self._step.submit(layer, rows[piece], micro_batch=self._calls[layer],
                                       ids=None if ids is None else ids[piece],
                                       weights=None if weights is None else weights[piece].detach())
            self._calls[layer] += 1
            under_way.append((ticket, out[piece]))
        self._collect(under_way)

    def _collect(self, under_way):
        while under_way:
            self._step.collect(*under_way.popleft())


def _stream(rows):
    kind = rows.device.type
    if kind == "cpu":
        return None
    if kind == "cuda":
        return torch.cuda.current_stream(rows.device).cuda_stream
    raise Unsupported("rows on a device of the kind %s cannot be sent; allowed: cpu, cuda" % kind,
                      reason="not_enabled")
