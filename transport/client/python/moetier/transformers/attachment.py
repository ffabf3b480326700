"""attach() and what undoes it: which modules of a model are its routed experts, whether the tier serves that model, and
the exchange of one for the other. Nothing is changed before everything was checked."""

import os
import re

import torch

from ..errors import BadState, Invalid, ModelMismatch, Unsupported
from . import families
from .experts import AbsentExperts, DenseTierExperts, TierExperts, TierGate
from .passes import Passes

_MARK = "_moetier_attachment"
_LAYER = re.compile(r"^(?P<owner>.*?)\.?(?P<list>[^.]+)\.(?P<layer>\d+)\.(?P<block>.*)$")


class Place:
    """Where the routed experts of one layer are in a model."""

    def __init__(self, path):
        found = _LAYER.match(path)
        if found is None:
            raise Unsupported("the experts at %s are in no numbered layer" % path, reason="model_unsupported")
        self.path = path
        self.owner = found["owner"]  # of the module that runs all layers
        self.layer = int(found["layer"])
        self.block, _, self.name = path.rpartition(".")


class Attachment:
    """An attached model. detach(), or the end of a `with` block, puts its own modules back."""

    def __init__(self, model, session, places, replaced, passes):
        self.model = model
        self.session = session
        self.layers = tuple(sorted(place.layer for place in places))
        self._places = places
        self._replaced = replaced  # path -> the module that was there, None if its weights are gone
        self._passes = passes
        owners = sorted({place.owner for place in places})
        self._hooks = []
        for owner in owners:
            module = model.get_submodule(owner)
            self._hooks.append(module.register_forward_pre_hook(passes.begin))
            self._hooks.append(module.register_forward_hook(passes.end, always_call=True))

    def detach(self, checkpoint=None):
        """Restores the model. Experts that were freed or never loaded are read again from `checkpoint`: by default the
        directory that the model came from. A failure leaves the model attached."""
        if getattr(self.model, _MARK, None) is not self:
            return
        back = dict(self._replaced)
        if any(module is None for module in back.values()):
            fresh = _fresh(self.model, checkpoint)
            like = next(self.model.parameters())
            for path, module in back.items():
                if module is None:
                    back[path] = fresh.get_submodule(path).to(like.device)
        for path, module in back.items():
            _put(self.model, path, module)
        for hook in self._hooks:
            hook.remove()
        delattr(self.model, _MARK)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.detach()


def attachment_of(model):
    return getattr(model, _MARK, None)


def require(model):
    attached = attachment_of(model)
    if attached is None:
        raise BadState("this model is not attached; allowed: one that attach() or load() returned", reason="sequence")
    return attached


def family_of(config):
    """The family of a transformers configuration."""
    names = [getattr(config, "model_type", None)]
    if hasattr(config, "get_text_config"):
        names.append(config.get_text_config().model_type)
    for name in names:
        family = families.family_of(name)
        if family is not None:
            return family
    raise Unsupported("model_type %s cannot be attached; allowed: %s" % (names[0], ", ".join(families.model_types())),
                      reason="model_unsupported")


def places_of(model, family):
    """Where the model's routed experts are, by layer."""
    kinds = (family.experts, TierExperts.__name__, AbsentExperts.__name__)
    places = [Place(path) for path, module in model.named_modules() if type(module).__name__ in kinds]
    if not places:
        import transformers
        raise Unsupported("this model has no module of the class %s (transformers %s); "
                          "allowed: models of transformers 5" % (family.experts, transformers.__version__),
                          reason="model_unsupported")
    return sorted(places, key=lambda place: place.layer)


def attach(model, session, gate, keep_experts):
    if not isinstance(model, torch.nn.Module) or not hasattr(model, "config"):
        raise Invalid("model is a %s; allowed: a transformers model" % type(model).__name__, reason="invalid_argument")
    if attachment_of(model) is not None:
        raise BadState("this model is attached already; allowed: detach() first", reason="sequence")
    family = family_of(model.config)
    places = places_of(model, family)
    _check_tier(model.config, family, places, session.tier.model)
    _check_session(family, session, gate)

    passes = Passes(session)
    kind = DenseTierExperts if family.form == "dense" else TierExperts
    replaced = {}
    for place in places:
        old = model.get_submodule(place.path)
        replaced[place.path] = old if keep_experts and not _is_empty(old) else None
        new = kind(place.layer, passes, gate == "client", session.top_k)
        new.train(old.training)
        _put(model, place.path, new)
        if gate == "tier":
            path = place.block + "." + family.gate
            replaced[path] = model.get_submodule(path)
            _put(model, path, TierGate())
    made = Attachment(model, session, places, replaced, passes)
    object.__setattr__(model, _MARK, made)
    return made


def _check_tier(config, family, places, served):
    if served.model_type not in family.model_types:
        raise ModelMismatch("the tier serves a model of the type %s; this model is of the type %s"
                            % (served.model_type, family.model_types[0]), reason="model_mismatch")
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    nested = getattr(text, "ffn_config", None)
    width = next((getattr(text, key) for key in families.LATENT_KEYS if getattr(text, key, None)), text.hidden_size)
    experts = next((getattr(c, key) for key in families.EXPERT_KEYS for c in (text, nested)
                    if isinstance(getattr(c, key, None), int)), served.experts)
    for name, here, there in (("hidden size", width, served.hidden_size),
                              ("number of experts", experts, served.experts),
                              ("MoE layers", [place.layer for place in places], list(served.moe_layers))):
        if here != there:
            raise ModelMismatch("the tier serves a %s of %s; this model has %s" % (name, there, here),
                                reason="model_mismatch")


def _check_session(family, session, gate):
    if gate not in ("client", "tier"):
        raise Invalid("gate is %r; allowed: client, tier" % (gate,), reason="invalid_argument")
    if gate == "tier" and session.gate != "tier":
        raise Invalid("gate is 'tier' in a session whose gate is the client's; allowed: a session with gate=\"tier\"",
                      reason="invalid_argument")
    if gate == "tier" and family.gate is None:
        raise Unsupported("gate tier is not enabled for %s; allowed: gate=\"client\"" % family.model_types[0],
                          reason="not_enabled")
    if session.shared_experts == "tier":
        raise Invalid("the session adds shared experts, which stay in the model; allowed: a session with"
                      " shared_experts=\"client\"", reason="invalid_argument")


def _is_empty(module):
    """Whether a module's weights were never loaded."""
    parameters = list(module.parameters())
    return not parameters or any(p.device.type == "meta" for p in parameters)


def _put(model, path, module):
    parent, _, name = path.rpartition(".")
    setattr(model.get_submodule(parent), name, module)


def _fresh(model, checkpoint):
    """The model once more, from its checkpoint, for the experts in it."""
    where = checkpoint or getattr(model.config, "_name_or_path", "")
    if not where or not os.path.isdir(where):
        raise Invalid("checkpoint is %r; allowed: the directory that the model was loaded from" % (where,),
                      reason="invalid_argument")
    return type(model).from_pretrained(where, dtype=next(model.parameters()).dtype)
