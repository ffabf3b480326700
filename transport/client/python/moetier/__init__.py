"""moetier: calls the MoE layers of a model on a moetier tier.

    import moetier
    with moetier.connect("tier:7400") as tier, tier.session(max_tokens=256) as session:
        with session.step() as step:
            y = step.forward(layer=3, hidden=x, logits=router_logits)

Inputs are NumPy arrays or anything with __dlpack__, in host memory (no copy) or on a CUDA device (copied over pinned
memory behind the step's stream). bfloat16 in NumPy is a uint16 array and dtype="bfloat16". Failing calls raise a
subclass of moetier.Error. Importing this package loads nothing and patches nothing; connect() loads libmoetier.so.1:
from MOETIER_LIBRARY, from beside the package, or from the system.
"""

from . import transformers  # loads neither torch nor the library of that name
from .errors import (BadState, Cancelled, Corrupt, Degraded, Denied, DeviceError, Error, InternalError, Invalid,
                     ModelMismatch, NoMemory, Overloaded, SessionLost, Skipped, StaleGeneration, Timeout, Unavailable,
                     Unsupported, VersionMismatch)
from .service import Event, Model, Service, Session, Stats, Step, StepReport, Ticket, Tls, connect

__all__ = [
    "connect", "Service", "Session", "Step", "Ticket", "Tls", "Model", "Event", "Stats", "StepReport",
    "Error", "Degraded", "Skipped", "Invalid", "BadState", "Unsupported", "VersionMismatch", "ModelMismatch", "Denied",
    "Timeout", "StaleGeneration", "Unavailable", "Overloaded", "Cancelled", "SessionLost", "Corrupt", "DeviceError",
    "NoMemory", "InternalError", "transformers",
]
