"""Errors of a tier: one exception class per failing status, all subclasses of Error."""


class Error(Exception):
    """A call failed. str() is one sentence that says what was given and what is allowed.

    status       "INVALID", "TIMEOUT", ...
    code         the status as a number
    reason       from a closed list: "invalid_expert", "worker_late", ...
    retryable    whether the same request may succeed later, unchanged
    retry_after  seconds to wait before that, or None
    """

    status = "UNKNOWN"
    code = -1

    def __init__(self, text, reason="", retryable=False, retry_after=None, code=None, status=None):
        super().__init__(text)
        self.reason = reason
        self.retryable = retryable
        self.retry_after = retry_after
        if code is not None:
            self.code = code
        if status is not None:
            self.status = status


class Skipped(Error):
    """An earlier call of this step failed and nothing was sent; run the step again with replay=True."""
    status, code = "SKIPPED", 3


class Invalid(Error, ValueError):
    """Argument, shape, dtype, id or bound; nothing was sent."""
    status, code = "INVALID", 10


class BadState(Error):
    """The order of calls is broken."""
    status, code = "BAD_STATE", 11


class Unsupported(Error):
    """The text says what lacks."""
    status, code = "UNSUPPORTED", 12


class VersionMismatch(Error):
    """Protocol or struct version."""
    status, code = "VERSION", 13


class ModelMismatch(Error):
    """The tier serves another model."""
    status, code = "MODEL_MISMATCH", 14


class Denied(Error):
    """Rights."""
    status, code = "DENIED", 15


class Timeout(Error, TimeoutError):
    """The deadline passed; the text names the late worker. Replay the step."""
    status, code = "TIMEOUT", 20


class StaleGeneration(Error):
    """A worker does not hold the generation. Replay the step."""
    status, code = "STALE_GENERATION", 21


class Unavailable(Error):
    """An expert has no live replica, or the tier does not serve yet."""
    status, code = "UNAVAILABLE", 22


class Overloaded(Error):
    """Credits, queue or admission; wait retry_after."""
    status, code = "OVERLOADED", 23


class Cancelled(Error):
    """Closed or aborted by the caller."""
    status, code = "CANCELLED", 24


class SessionLost(Error):
    """The lease lapsed; open a new session."""
    status, code = "SESSION_LOST", 25


class Corrupt(Error):
    """A checksum of rows or weights failed."""
    status, code = "CORRUPT", 30


class DeviceError(Error):
    """A device failed."""
    status, code = "DEVICE", 31


class NoMemory(Error, MemoryError):
    """The memory needed is over the limit; nothing was allocated."""
    status, code = "NO_MEMORY", 32


class InternalError(Error):
    """A bug of moetier."""
    status, code = "INTERNAL", 39


class Degraded(UserWarning):
    """Rows are usable but named (token, expert) pairs were left out."""


_BY_CODE = {
    cls.code: cls
    for cls in (Skipped, Invalid, BadState, Unsupported, VersionMismatch, ModelMismatch, Denied, Timeout,
                StaleGeneration, Unavailable, Overloaded, Cancelled, SessionLost, Corrupt, DeviceError, NoMemory,
                InternalError)
}


def error_for(code, text, reason="", retryable=False, retry_after_ns=0):
    """The exception of a status number; a number from a newer library becomes a plain Error."""
    cls = _BY_CODE.get(code, Error)
    retry_after = retry_after_ns / 1e9 if retry_after_ns else None
    return cls(text, reason=reason, retryable=retryable, retry_after=retry_after,
               code=code, status=None if code in _BY_CODE else "STATUS_%d" % code)
