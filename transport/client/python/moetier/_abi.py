"""The C interface in ctypes: structs of moetier.h, the library, and its errors as exceptions. ctypes.CDLL lets go of
the interpreter's lock during every call."""

import ctypes
import os
import pathlib
import threading
from ctypes import POINTER, c_char, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_uint8, c_uint16, c_uint32
from ctypes import c_uint64, c_void_p

from .errors import error_for

VERSION = 1
OK, PENDING, DEGRADED, INTERNAL = 0, 1, 2, 39
LIBRARY = "libmoetier.so.1"


class DLDataType(ctypes.Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int), ("device_id", c_int), ("ndim", c_int),
                ("dtype", DLDataType), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class _Sized(ctypes.Structure):
    """Structs that start with their own size and version."""

    def __init__(self, **fields):
        super().__init__(size=ctypes.sizeof(self), version=VERSION, **fields)


def _sized(*fields):
    return [("size", c_uint32), ("version", c_uint32), *fields]


class Error(_Sized):
    _fields_ = _sized(("status", c_uint32), ("retryable", c_uint32), ("reason", c_char_p), ("text", c_char_p),
                      ("request_id", c_uint64), ("retry_after_ns", c_uint64))


class Tls(_Sized):
    _fields_ = _sized(("cert", c_char_p), ("key", c_char_p), ("ca", c_char_p), ("server_name", c_char_p))


class ServiceOptions(_Sized):
    _fields_ = _sized(("address", c_char_p), ("tenant", c_char_p), ("tls", POINTER(Tls)),
                      ("connect_timeout_ns", c_uint64), ("model_fingerprint", c_uint64), ("flight_file", c_char_p))


class ModelInfo(_Sized):
    _fields_ = _sized(("hidden_size", c_uint32), ("intermediate_size", c_uint32), ("experts", c_uint32),
                      ("top_k", c_uint32), ("layers_total", c_uint32), ("moe_layer_count", c_uint32),
                      ("moe_layers", POINTER(c_uint16)), ("fingerprint", c_uint64), ("epoch", c_uint64),
                      ("generation", c_uint64), ("workers", c_uint32), ("workers_live", c_uint32),
                      ("exact_allowed", c_uint32), ("routing_method", c_uint32), ("model_type", c_char * 32),
                      ("carrier", c_char * 32), ("backend", c_char * 64), ("router_columns", c_uint32),
                      ("shared_experts", c_uint32), ("adapters", c_uint32))


class SessionOptions(_Sized):
    _fields_ = _sized(("deadline_class", c_uint32), ("max_tokens", c_uint32), ("micro_batches", c_uint32),
                      ("top_k", c_uint32), ("return_mode", c_uint32), ("max_rows_per_chunk", c_uint32),
                      ("call_deadline_ns", c_uint64), ("step_deadline_ns", c_uint64), ("open_timeout_ns", c_uint64),
                      ("max_workers", c_uint32), ("dispatch_dtype", c_uint32), ("return_dtype", c_uint32),
                      ("gate", c_uint32), ("shared_experts", c_uint32), ("ack", c_uint32), ("bad_rows", c_uint32),
                      ("on_missing", c_uint32), ("max_missing_weight", c_double), ("low_latency", c_uint32),
                      ("dry_run", c_uint32), ("repeat_counts", POINTER(c_uint16)))


class StepOptions(_Sized):
    _fields_ = _sized(("replay", c_uint32), ("warmup", c_uint32), ("deadline_ns", c_uint64),
                      ("counts", POINTER(c_uint32)), ("counts_length", c_uint32), ("use_dp_padding", c_uint32))


class StepReport(_Sized):
    _fields_ = _sized(("status", c_uint32), ("attempts", c_uint32), ("step", c_uint64), ("generation", c_uint64),
                      ("calls", c_uint64), ("replays", c_uint64), ("tokens", c_uint64))


class Call(_Sized):
    _fields_ = _sized(("layer", c_uint16), ("micro_batch", c_uint16), ("repeat_idx", c_uint16),
                      ("repeat_count", c_uint16), ("hidden", POINTER(DLTensor)), ("logits", POINTER(DLTensor)),
                      ("ids", POINTER(DLTensor)), ("weights", POINTER(DLTensor)), ("deadline_ns", c_uint64),
                      ("token_ids", POINTER(DLTensor)), ("adapter_ids", POINTER(DLTensor)),
                      ("token_count", POINTER(DLTensor)), ("hidden_ready", c_void_p))


class Result(_Sized):
    _fields_ = _sized(("output", POINTER(DLTensor)), ("ids", POINTER(DLTensor)), ("weights", POINTER(DLTensor)),
                      ("accumulate", c_uint32), ("missing_weight", POINTER(DLTensor)), ("bad_rows", POINTER(DLTensor)))


class Event(_Sized):
    _fields_ = _sized(("kind", c_uint32), ("workers_live", c_uint32), ("epoch", c_uint64), ("generation", c_uint64))


class StatsSnapshot(_Sized):
    _fields_ = _sized(("steps", c_uint64), ("calls", c_uint64), ("tokens", c_uint64), ("failures", c_uint64),
                      ("replays", c_uint64), ("epoch", c_uint64), ("generation", c_uint64), ("workers", c_uint32),
                      ("workers_live", c_uint32), ("route_ns", c_uint64), ("pack_ns", c_uint64), ("wait_ns", c_uint64),
                      ("sum_ns", c_uint64), ("total_ns", c_uint64), ("late_returns", c_uint64),
                      ("max_tokens", c_uint32), ("micro_batches", c_uint32),
                      ("air_ns", c_uint64), ("held_ns", c_uint64))


class StatusWord(ctypes.Structure):
    _fields_ = [("status", c_uint32), ("attempt", c_uint16), ("layer", c_uint16), ("step", c_uint64),
                ("generation", c_uint64), ("repeat_idx", c_uint16), ("late_worker", c_uint16),
                ("missing_pairs", c_uint32), ("bytes_due", c_uint64), ("bytes_seen", c_uint64), ("age_ns", c_uint64),
                ("missing_weight", c_float), ("reserved", c_uint32)]


_SIGNATURES = {
    "moetier_abi_version": (c_uint32, []),
    "moetier_status_name": (c_char_p, [c_int]),
    "moetier_last_error": (POINTER(Error), []),
    "moetier_service_open": (c_int, [POINTER(ServiceOptions), POINTER(c_void_p)]),
    "moetier_service_info": (c_int, [c_void_p, POINTER(ModelInfo)]),
    "moetier_service_close": (c_int, [c_void_p]),
    "moetier_session_open": (c_int, [c_void_p, POINTER(SessionOptions), POINTER(c_void_p)]),
    "moetier_session_close": (c_int, [c_void_p]),
    "moetier_stats": (c_int, [c_void_p, POINTER(StatsSnapshot)]),
    "moetier_step_begin": (c_int, [c_void_p, POINTER(StepOptions), c_void_p]),
    "moetier_step_end": (c_int, [c_void_p, c_void_p, POINTER(StepReport)]),
    "moetier_submit": (c_int, [c_void_p, POINTER(Call), c_void_p, POINTER(c_uint64)]),
    "moetier_collect": (c_int, [c_void_p, c_uint64, POINTER(Result), c_void_p]),
    "moetier_missing": (c_int, [c_void_p, c_uint64, c_void_p, POINTER(c_size_t)]),
    "moetier_next_event": (c_int, [c_void_p, POINTER(Event), c_uint64]),
    "moetier_event_fd": (c_int, [c_void_p]),
    "moetier_ack_generation": (c_int, [c_void_p, c_uint64]),
    "moetier_status_words": (POINTER(StatusWord), [c_void_p, POINTER(c_size_t)]),
}

_lock = threading.Lock()
_loaded = None


def _candidates():
    named = os.environ.get("MOETIER_LIBRARY")
    if named:
        return [named]
    here = pathlib.Path(__file__).resolve().parent
    beside = [here / "_lib" / LIBRARY, here.parent.parent / LIBRARY]  # of the wheel, of a build or bundle
    return [str(path) for path in beside if path.exists()] + [LIBRARY]


def library():
    """libmoetier, loaded at the first use."""
    global _loaded
    with _lock:
        if _loaded is None:
            path = _candidates()[0]
            lib = ctypes.CDLL(path)
            for name, (result, arguments) in _SIGNATURES.items():
                function = getattr(lib, name)
                function.restype, function.argtypes = result, arguments
            if lib.moetier_abi_version() < VERSION:
                raise ImportError("%s has interface %d; this package needs %d"
                                  % (path, lib.moetier_abi_version(), VERSION))
            _loaded = lib
        return _loaded


def check(status):
    """Raises the thread's last error unless the status is OK; other good statuses are returned."""
    if status in (OK, PENDING, DEGRADED):
        return status
    error = last_error()
    raise error if error.code == status else error_for(status, "status %d" % status)


def last_error():
    """The exception of this thread's last failure."""
    shown = library().moetier_last_error()
    if not shown:
        return error_for(INTERNAL, "no error is known")
    error = shown.contents
    return error_for(error.status, error.text.decode(), error.reason.decode(), bool(error.retryable),
                     error.retry_after_ns)
