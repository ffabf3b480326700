"""load(): a model whose routed experts are never read. Its class is made once more with experts that have no
parameters, so that from_pretrained() finds no place for their tensors and leaves them in the file."""

import re

import transformers

from . import attachment
from .experts import AbsentExperts


def load(checkpoint, session, gate, options):
    config = options.pop("config", None) or transformers.AutoConfig.from_pretrained(checkpoint)
    family = attachment.family_of(config)
    kind = _class_of(config)
    model = _without_experts(kind, family).from_pretrained(checkpoint, config=config, **options)
    model.__class__ = kind
    model.eval()
    attachment.attach(model, session, gate, keep_experts=False)
    return model


def _class_of(config):
    for name in getattr(config, "architectures", None) or ():
        if hasattr(transformers, name):
            return getattr(transformers, name)
    return transformers.AutoModelForCausalLM._model_mapping[type(config)]


def _without_experts(kind, family):
    def made(self, *arguments, **options):
        kind.__init__(self, *arguments, **options)
        for place in attachment.places_of(self, family):
            attachment._put(self, place.path, AbsentExperts())
    quiet = list(getattr(kind, "_keys_to_ignore_on_load_unexpected", None) or ())
    # The name stays: transformers looks up by it how tensors of a checkpoint are called.
    return type(kind.__name__, (kind,), {
        "__module__": kind.__module__, "__init__": made,
        "_keys_to_ignore_on_load_unexpected": quiet + [r"(^|\.)" + re.escape("experts") + r"\."]})
