"""Modules that stand where a transformers model had its own: the routed experts of a layer, on the tier, and a gate
that leaves its work to the tier."""

import warnings

import torch

from ..errors import Unsupported


class _Rows(torch.autograd.Function):
    """A forward pass that autograd sees: going back through it is a named error, not a wrong gradient."""

    @staticmethod
    def forward(ctx, hidden, weights, compute):
        return compute(hidden, weights)

    @staticmethod
    def backward(ctx, *gradients):
        raise Unsupported("the tier computes no gradients; allowed: passes under torch.no_grad()", reason="not_enabled")


class TierExperts(torch.nn.Module):
    """The routed experts of one layer. Called as the module that it replaced; it has no parameters."""

    def __init__(self, layer, passes, routes, session_top_k):
        super().__init__()
        self.layer = layer
        self.on_tier_gate = not routes
        self._passes = passes
        self._top_k = session_top_k

    def forward(self, hidden_states, top_k_index=None, top_k_weights=None):
        rows = hidden_states.reshape(-1, hidden_states.shape[-1])
        if self.on_tier_gate:
            out = _Rows.apply(rows, None, lambda x, _: self._passes.compute(self.layer, x))
        else:
            ids = top_k_index.reshape(-1, top_k_index.shape[-1]).to(torch.int64)
            weights = top_k_weights.reshape(ids.shape)
            out = _Rows.apply(rows, weights, lambda x, w: self._routed(x, ids, w))
        return out.view(hidden_states.shape)

    def _routed(self, rows, ids, weights):
        return self._passes.compute(self.layer, rows, *self._full_width(ids, weights.float()))

    def _full_width(self, ids, weights):
        """Ids that name no expert become -1; a layer that chooses fewer experts than the session sends -1 beside
        them."""
        ids = ids.masked_fill(ids >= self._passes.columns, -1)
        missing = self._top_k - ids.shape[-1]
        if missing > 0:
            ids = torch.nn.functional.pad(ids, (0, missing), value=-1)
            weights = torch.nn.functional.pad(weights, (0, missing))
        return ids.contiguous(), weights.contiguous()

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        if not self._passes.is_loading:
            warnings.warn("this state_dict lacks the routed experts, which are on a tier; detach() puts them back",
                          stacklevel=2)

    def extra_repr(self):
        return "layer=%d, gate=%s" % (self.layer, "tier" if self.on_tier_gate else "client")


class DenseTierExperts(TierExperts):
    """For blocks that hand each expert all tokens, scaled by its score, which is zero where it was not chosen: only
    rows with something in them travel. A zero row's result is zero, since these experts have no biases."""

    def forward(self, hidden_states):
        return _Rows.apply(hidden_states, None, self._dense)

    def _dense(self, rows, _):
        expert_rows = rows.shape[0] // self._passes.columns
        chosen = rows.ne(0).any(dim=-1).nonzero().squeeze(-1)
        ids = (chosen // max(1, expert_rows)).unsqueeze(-1)
        weights = torch.ones(ids.shape, dtype=torch.float32, device=rows.device)
        out = torch.zeros_like(rows)
        out[chosen] = self._passes.compute(self.layer, rows[chosen].contiguous(), *self._full_width(ids, weights))
        return out


class TierGate(torch.nn.Module):
    """A gate whose logits the tier computes: nothing here knows weights or ids."""

    def forward(self, *_, **__):
        return None, None, None


class AbsentExperts(torch.nn.Module):
    """What stands for experts that were never read, until their model is attached."""

    def forward(self, *_, **__):
        raise Unsupported("the experts of this layer were not loaded; allowed: a model that is attached",
                          reason="not_enabled")
