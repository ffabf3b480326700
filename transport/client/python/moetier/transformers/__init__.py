"""moetier.transformers: runs the MoE blocks of a Hugging Face transformers model on a moetier tier.

    import moetier, moetier.transformers, transformers

    model = transformers.AutoModelForCausalLM.from_pretrained(CHECKPOINT)
    with moetier.connect("tier:7400") as tier, tier.session(max_tokens=512) as session:
        with moetier.transformers.attach(model, session):   # experts leave this process, gates stay
            model.generate(**inputs)                        # leaving the block puts them back

attach() replaces the modules that hold routed experts, in place; gates, shared experts, norms and everything else of
the model stay and compute as before. load() makes a model whose experts are never read. One forward pass of the model
is one step of the session; longer inputs than its micro-batches hold take further steps. Rows lie in host memory or on
a CUDA device. The tier computes no gradients.

Importing this module patches nothing and loads neither torch nor transformers; it needs transformers 5.
Thread: a model's passes and its session's other calls are made by one thread at a time.
"""

from .families import model_types


def attach(model, session, *, gate="client", keep_experts=False):
    """Lets `session` compute the MoE layers of `model`; returns an Attachment.

    The session's tier must serve the checkpoint that the model was loaded from. gate="tier" leaves the gates to the
    tier as well, in a session opened with gate="tier". The experts' weights are freed; detach() then reads them from
    the model's checkpoint again. keep_experts=True keeps them in memory instead.
    Raises Unsupported for a model type that is not in model_types(), ModelMismatch if the tier serves another model,
    BadState if the model is attached already.
    """
    from . import attachment
    return attachment.attach(model, session, gate, keep_experts)


def load(checkpoint, session, *, gate="client", **options):
    """A model of the checkpoint's class, attached to `session`; its routed experts are never read or allocated.

    options go to from_pretrained(). The Attachment is attachment_of(model).
    """
    from . import loading
    return loading.load(checkpoint, session, gate, options)


def attachment_of(model):
    """The Attachment of a model, or None."""
    from . import attachment
    return attachment.attachment_of(model)


def detach(model, checkpoint=None):
    """Puts the experts of an attached model back: attachment_of(model).detach(checkpoint)."""
    from . import attachment
    attachment.require(model).detach(checkpoint)


__all__ = ["attach", "attachment_of", "detach", "load", "model_types"]
