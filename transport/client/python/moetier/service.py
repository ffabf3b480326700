"""Services, sessions and steps: the objects of moetier.h with Python's manners."""

import collections
import contextlib
import ctypes
import numbers
import os
import threading
import time
import warnings

import numpy

from . import _abi
from ._tensor import check_can_allocate, empty_beside, empty_like, tensor
from .errors import (BadState, Cancelled, Degraded, Error, Invalid, NoMemory, Timeout, Unavailable, Unsupported,
                     VersionMismatch)

Model = collections.namedtuple(
    "Model", "model_type hidden_size intermediate_size experts top_k layers_total moe_layers fingerprint epoch "
             "generation workers workers_live exact_allowed routing_method carrier backend router_columns "
             "shared_experts adapters")
Event = collections.namedtuple("Event", "kind workers_live epoch generation")
Stats = collections.namedtuple("Stats", "steps calls tokens failures replays epoch generation workers workers_live "
                                        "route_ns pack_ns wait_ns sum_ns total_ns late_returns max_tokens "
                                        "micro_batches air_ns held_ns")
StepReport = collections.namedtuple("StepReport", "status attempts step generation calls replays tokens missing")
Tls = collections.namedtuple("Tls", "cert key ca server_name", defaults=(None,))
Tls.__doc__ = """Paths of PEM files: own certificate, its key, the authority of the coordinator's certificate; and the
name which that one must be of, where it is not the address's host."""

_CLASSES = {"default": 0, "decode": 1, "prefill": 2, "batch": 3}
_RETURN_MODES = {"partial": 0, "exact": 1}
_DTYPES = {"auto": 0, "float32": 1, "bfloat16": 2, "float16": 3, "float8": 4}
_SIDES = {"client": 0, "tier": 1}
_ACKS = {"auto": 0, "manual": 1}
_BAD_ROWS = {"reject": 0, "flag": 1}
_ON_MISSING = {"fail": 0, "degrade": 1, "wait": 2}
_EVENTS = {1: "GENERATION_READY", 2: "GENERATION_MOVED", 3: "MEMBERSHIP", 4: "SUSPECT", 5: "CREDITS", 6: "DRAIN",
           7: "EXPERTS_MISSING", 8: "COORDINATOR_LOST", 9: "COORDINATOR_BACK", 10: "RECAPTURE", 11: "SESSION_LOST",
           12: "OVERFLOW"}

_SLICE = 0.05  # seconds that close() waits at most for a thread that waits for events
_REFUSALS = (Invalid, BadState, Unsupported, VersionMismatch, NoMemory)  # of a collect; all else ends its call


def _pick(name, value, choices):
    try:
        return choices[value]
    except (KeyError, TypeError):
        raise Invalid("%s is %r; allowed: %s" % (name, value, ", ".join(choices)), reason="invalid_argument") from None


def _number(name, value, largest):
    if isinstance(value, bool) or not isinstance(value, (int, numpy.integer)) or not 0 <= value <= largest:
        raise Invalid("%s is %r; allowed: 0 to %d" % (name, value, largest), reason="invalid_argument")
    return int(value)


def _text(name, value, convert=str.encode):
    """Bytes for C, which would end a text at its first NUL."""
    try:
        given = convert(value)
    except (TypeError, ValueError):
        given = b"\0"
    if b"\0" in given:
        raise Invalid("%s is %r; allowed: a text without NUL" % (name, value), reason="invalid_argument")
    return given


def _real(name, value):
    if not isinstance(value, numbers.Real):
        raise Invalid("%s is %r; allowed: a number" % (name, value), reason="invalid_argument")
    return float(value)


def _nanoseconds(name, seconds):
    if seconds is None:
        return 0
    if not isinstance(seconds, numbers.Real) or not 0 <= seconds <= 1e9:
        raise Invalid("%s is %r; allowed: seconds from 0 to 1e9" % (name, seconds), reason="invalid_argument")
    return max(1, int(float(seconds) * 1e9))


def connect(address, tls=None, *, timeout=5.0, tenant=None, model_fingerprint=0, flight_file=None):
    """Connects to the coordinator at "host:port", inside TLS with a Tls, or at "unix:PATH"; returns a Service. When a
    call ends in Timeout, the newest waits of this connection are written to `flight_file` as JSON."""
    options = _abi.ServiceOptions(address=_text("address", str(address)),
                                  tenant=None if tenant is None else _text("tenant", tenant),
                                  connect_timeout_ns=_nanoseconds("timeout", timeout),
                                  model_fingerprint=_number("model_fingerprint", model_fingerprint, 2**64 - 1))
    if flight_file is not None:
        options.flight_file = _text("flight_file", flight_file, os.fsencode)
    if tls is not None:
        if not isinstance(tls, (tuple, list)) or not 3 <= len(tls) <= 4:
            raise Invalid("tls is a %s; allowed: a Tls" % type(tls).__name__, reason="invalid_argument")
        given = Tls(*tls)
        files = _abi.Tls()
        for field in ("cert", "key", "ca"):
            if getattr(given, field) is not None:
                setattr(files, field, _text("tls " + field, getattr(given, field), os.fsencode))
        if given.server_name is not None:
            files.server_name = _text("tls server_name", given.server_name)
        options.tls = ctypes.pointer(files)
    handle = ctypes.c_void_p()
    _abi.check(_abi.library().moetier_service_open(ctypes.byref(options), ctypes.byref(handle)))
    return Service(handle)


class _Handle:
    """A handle of the library: open until close(), which `with` calls."""

    _what = "handle"

    def __init__(self, handle):
        self._open_handle = handle
        self._process = os.getpid()
        self._users = []  # threads in a call that others may make at the same time, by ident
        self._idle = threading.Condition()

    @property
    def _handle(self):
        if self._open_handle is None:
            raise BadState("this %s is closed" % self._what, reason="sequence")
        return self._open_handle

    def _use(self, call):
        """call(handle), which _take_handle() waits for."""
        me = threading.get_ident()
        with self._idle:
            handle = self._handle
            self._users.append(me)
        try:
            return call(handle)
        finally:
            with self._idle:
                self._users.remove(me)
                self._idle.notify_all()

    def _take_handle(self):
        """The handle, which nobody uses any more, to be closed and emptied; None if it was taken before."""
        with self._idle:
            handle, self._open_handle = self._open_handle, None
            me = threading.get_ident()  # a signal's handler may come in the middle of a call
            while self._is_ours() and any(user != me for user in self._users):
                self._idle.wait()
        return handle

    def _is_ours(self):
        """Not in a forked child, where threads that hold a lock of ours do not exist any more."""
        return os.getpid() == self._process

    @property
    def closed(self):
        return self._open_handle is None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


class _Turn:
    """One thread's turn at a session, which the library leaves to its callers: `with` gives the open handle and refuses
    a second thread. The same thread may come again, as a signal's handler does."""

    __slots__ = ("_session", "_lock")

    def __init__(self, session):
        self._session = session
        self._lock = threading.RLock()

    def __enter__(self):
        if not self._lock.acquire(False):
            raise BadState("another thread is in a call of this session; allowed: one at a time", reason="sequence")
        try:
            return self._session._handle
        except BadState:
            self._lock.release()
            raise

    def __exit__(self, *exception):
        self._lock.release()

    @contextlib.contextmanager
    def waited(self):
        """The turn, open handle or not, once the call that is under way has ended. In a forked child nobody may be
        left to end it."""
        if not self._session._is_ours():
            yield
            return
        with self._lock:
            yield


class Service(_Handle):
    """A connection to a tier. Thread-safe. close() closes its open sessions first."""

    _what = "service"

    def __init__(self, handle):
        super().__init__(handle)
        self._sessions = []

    @property
    def model(self):
        """What the tier serves now, as a Model."""
        info = _abi.ModelInfo()

        def told(service):
            _abi.check(_abi.library().moetier_service_info(service, ctypes.byref(info)))
            return tuple(info.moe_layers[:info.moe_layer_count])  # they are the service's memory
        moe_layers = self._use(told)
        return Model(model_type=info.model_type.decode(), hidden_size=info.hidden_size,
                     intermediate_size=info.intermediate_size, experts=info.experts, top_k=info.top_k,
                     layers_total=info.layers_total, moe_layers=moe_layers, fingerprint=info.fingerprint,
                     epoch=info.epoch, generation=info.generation, workers=info.workers,
                     workers_live=info.workers_live, exact_allowed=bool(info.exact_allowed),
                     routing_method=info.routing_method, carrier=info.carrier.decode(), backend=info.backend.decode(),
                     router_columns=info.router_columns, shared_experts=info.shared_experts,
                     adapters=bool(info.adapters))

    def session(self, *, deadline_class="default", max_tokens=0, micro_batches=1, top_k=0, return_mode="partial",
                max_rows_per_chunk=0, call_deadline=None, step_deadline=None, open_timeout=None, max_workers=0,
                dispatch_dtype="auto", return_dtype="auto", gate="client", shared_experts="client", ack="auto",
                bad_rows="reject", on_missing="fail", max_missing_weight=0.0, low_latency=False, dry_run=False):
        """Opens a Session: a lease on the tier with buffers for max_tokens per micro-batch (0: the tier's limit).

        Deadlines are seconds. deadline_class: decode, prefill or batch, workers serve them in this order; default is
        the highest that the tenant may have, one above it raises Denied. What this version of the tier cannot do yet
        raises Unsupported.
        """
        u32 = 0xffffffff
        options = _abi.SessionOptions(
            deadline_class=_pick("deadline_class", deadline_class, _CLASSES),
            max_tokens=_number("max_tokens", max_tokens, u32),
            micro_batches=_number("micro_batches", micro_batches, u32), top_k=_number("top_k", top_k, u32),
            return_mode=_pick("return_mode", return_mode, _RETURN_MODES),
            max_rows_per_chunk=_number("max_rows_per_chunk", max_rows_per_chunk, u32),
            call_deadline_ns=_nanoseconds("call_deadline", call_deadline),
            step_deadline_ns=_nanoseconds("step_deadline", step_deadline),
            open_timeout_ns=_nanoseconds("open_timeout", open_timeout),
            max_workers=_number("max_workers", max_workers, u32),
            dispatch_dtype=_pick("dispatch_dtype", dispatch_dtype, _DTYPES),
            return_dtype=_pick("return_dtype", return_dtype, _DTYPES), gate=_pick("gate", gate, _SIDES),
            shared_experts=_pick("shared_experts", shared_experts, _SIDES), ack=_pick("ack", ack, _ACKS),
            bad_rows=_pick("bad_rows", bad_rows, _BAD_ROWS), on_missing=_pick("on_missing", on_missing, _ON_MISSING),
            max_missing_weight=_real("max_missing_weight", max_missing_weight), low_latency=int(bool(low_latency)),
            dry_run=int(bool(dry_run)))
        def opened(service):
            handle = ctypes.c_void_p()
            _abi.check(_abi.library().moetier_session_open(service, ctypes.byref(options), ctypes.byref(handle)))
            session = Session(handle, self, top_k, gate, shared_experts, bad_rows == "flag")
            self._sessions.append(session)
            return session
        top_k = top_k or self.model.top_k
        return self._use(opened)

    def close(self):
        handle = self._take_handle()
        if handle is None:
            return
        try:
            for session in list(self._sessions):
                session.close()
            _abi.check(_abi.library().moetier_service_close(handle))
        except Error:
            self._open_handle = handle
            raise
        handle.value = None  # for a call of this thread that a signal's handler closed under it


class Session(_Handle):
    """One attention service's lease. Its calls are made by one thread at a time: another one's raises BadState, and its
    close() waits for the call that is under way. Sessions never wait for each other.

    tier: its Service. top_k, gate, shared_experts: as it was opened.
    """

    _what = "session"

    def __init__(self, handle, service, top_k, gate, shared_experts, flags_bad_rows):
        super().__init__(handle)
        self.tier = service
        self.top_k = top_k
        self.gate = gate
        self.shared_experts = shared_experts
        self._flags_bad_rows = flags_bad_rows
        self._turn = _Turn(self)

    def step(self, *, stream=None, replay=False, deadline=None, warmup=False):
        """A step, begun by `with`. replay=True runs the last step again after a failed call.

        stream, for arrays in device memory: the CUDA stream, as an integer, that their rows are read and written
        behind; None is the legacy default stream. An array in host memory goes with None only.
        """
        return Step(self, stream, replay, deadline, warmup)

    @property
    def stats(self):
        """Counts since open and times of the last call, as Stats."""
        shown = _abi.StatsSnapshot()
        with self._turn as handle:
            _abi.check(_abi.library().moetier_stats(handle, ctypes.byref(shown)))
        return Stats(*(getattr(shown, field) for field in Stats._fields))

    def next_event(self, timeout=0.0):
        """The next Event, or None when none came within `timeout` seconds. Any thread; Cancelled when the session is
        closed meanwhile."""
        event = _abi.Event()
        until = time.monotonic() + (_nanoseconds("timeout", timeout) / 1e9 if timeout else 0)

        def look(session):
            limit = min(max(0, until - time.monotonic()), _SLICE)
            return _abi.check(_abi.library().moetier_next_event(session, ctypes.byref(event), int(limit * 1e9)))
        status = self._use(look)
        try:
            while status == _abi.PENDING and time.monotonic() < until:
                status = self._use(look)
        except BadState:
            if not self.closed:
                raise
            raise Cancelled("the session was closed meanwhile", reason="session_closed") from None
        if status == _abi.PENDING:
            return None
        return Event(_EVENTS.get(event.kind, str(event.kind)), event.workers_live, event.epoch, event.generation)

    def fileno(self):
        """A descriptor that is readable while events wait, for select and asyncio."""
        with self._turn as handle:
            descriptor = _abi.library().moetier_event_fd(handle)
        if descriptor < 0:
            raise _abi.last_error()
        return descriptor

    def ack_generation(self, generation):
        number = _number("generation", generation, 2**64 - 1)
        with self._turn as handle:
            _abi.check(_abi.library().moetier_ack_generation(handle, number))

    def close(self):
        with self._turn.waited():
            handle = self._take_handle()
            if handle is None:
                return
            status = _abi.library().moetier_session_close(handle)
            handle.value = None  # as the service's
            self.tier._sessions.remove(self)  # the service goes on closing when this is freed
            try:
                _abi.check(status)
            except (Unavailable, Timeout):
                # The coordinator is away and cannot be told. What is here was freed all the same, and the lease lapses
                # by itself, so there is nothing that the caller could do about it.
                pass


class Ticket:
    """One submitted call, to be collected once."""

    __slots__ = ("layer", "micro_batch", "_number", "_like", "_given", "_dtype", "_shape")

    def __init__(self, layer, micro_batch, like, given, dtype):
        self._number = ctypes.c_uint64()  # the library writes it: 0 until the call was taken
        self.layer = layer
        self.micro_batch = micro_batch
        self._like = like
        self._given = given
        self._dtype = dtype
        self._shape = given.shape

    @property
    def number(self):
        return self._number.value


class Step:
    """One forward pass through a model's MoE layers. The tier's generation and placement hold still inside it."""

    def __init__(self, session, stream, replay, deadline, warmup):
        self._session = session
        self._stream = None if stream is None else _number("stream", stream, 2**64 - 1)
        self._options = _abi.StepOptions(replay=int(bool(replay)), warmup=int(bool(warmup)),
                                         deadline_ns=_nanoseconds("deadline", deadline))
        self._open = {}  # Tickets to be collected, as keys: a dict keeps their order
        self.report = None  # a StepReport once the step has ended
        self.bad_rows = None  # bool [T] of the last collected call, in a session with bad_rows="flag"

    def __enter__(self):
        with self._session._turn as handle:
            _abi.check(_abi.library().moetier_step_begin(handle, ctypes.byref(self._options), None))
        return self

    def __exit__(self, kind, exception, traceback):
        with self._session._turn.waited():  # refused, the step would stay open
            if self._session.closed:
                return
            left = [ticket for ticket in list(self._open) if self._finish(ticket)]
            try:
                self._end()
            except Error:
                # An exception under way is the one to see, then that the caller forgot a ticket.
                if kind is None and not left:
                    raise
        if kind is None and left:
            raise BadState("the step ended with uncollected tickets: %s; allowed: a step whose tickets were collected"
                           % ", ".join("%d (layer %d, micro-batch %d)" % (ticket.number, ticket.layer,
                                                                          ticket.micro_batch) for ticket in left),
                           reason="sequence")

    def _finish(self, ticket):
        """Ends a call that nobody will collect any more: an outstanding one would keep the step open for ever. False
        if it was not outstanding. Requires: this thread's turn."""
        for stream in dict.fromkeys((self._stream, None)) if ticket.number else ():  # ours may be captured
            try:
                self._collect(ticket, None if ticket._given.on_device else numpy.empty(ticket._shape, numpy.float32),
                              False, stream)
                return True
            except _REFUSALS:
                continue
            except Error:
                return True
        self._open.pop(ticket, None)
        return False

    def _end(self):
        report = _abi.StepReport()
        with self._session._turn as handle:
            status = _abi.library().moetier_step_end(handle, None, ctypes.byref(report))
        self.report = StepReport(status=_abi.library().moetier_status_name(report.status).decode(),
                                 attempts=report.attempts, step=report.step, generation=report.generation,
                                 calls=report.calls, replays=report.replays, tokens=report.tokens, missing=())
        _abi.check(status)

    def submit(self, layer, hidden, logits=None, ids=None, weights=None, *, token_ids=None, adapter_ids=None,
               micro_batch=0, repeat_idx=0, repeat_count=1, dtype=None, deadline=None):
        """Sends one MoE layer's call and returns its Ticket.

        hidden [T, H]; then logits [T, E], or ids [T, k] (-1: no expert) with weights [T, k], or nothing in a session
        with gate="tier". token_ids [T] where the layer chooses experts by token; adapter_ids [T] (-1: none) name
        adapters. dtype="bfloat16" reads 16-bit hidden and logits as bfloat16. Inputs may change once this returns.
        All arrays of a call and its results lie in host memory or on one CUDA device; rows on a device are copied
        behind the step's stream, which this waits for.
        """
        given = tensor("hidden", hidden, dtype, stream=self._stream)
        if given.on_device:
            check_can_allocate("hidden", hidden)
        call = _abi.Call(layer=_number("layer", layer, 0xffff), micro_batch=_number("micro_batch", micro_batch, 0xffff),
                         repeat_idx=_number("repeat_idx", repeat_idx, 0xffff),
                         repeat_count=_number("repeat_count", repeat_count, 0xffff), hidden=given.pointer,
                         deadline_ns=_nanoseconds("deadline", deadline))
        keep = [given]
        for name, value in (("logits", logits), ("ids", ids), ("weights", weights), ("token_ids", token_ids),
                            ("adapter_ids", adapter_ids)):
            if value is None:
                continue
            is_bfloat16 = name == "logits" and dtype == "bfloat16" and getattr(value, "itemsize", 0) == 2
            keep.append(tensor(name, value, "bfloat16" if is_bfloat16 else None, stream=self._stream))
            setattr(call, name, keep[-1].pointer)
        ticket = Ticket(call.layer, call.micro_batch, hidden, given, dtype)
        self._open[ticket] = None  # before the call, since after it a signal's handler may raise
        try:
            with self._session._turn as handle:
                _abi.check(_abi.library().moetier_submit(handle, ctypes.byref(call), self._stream,
                                                         ctypes.byref(ticket._number)))
        except Error:
            self._open.pop(ticket)
            raise
        return ticket

    def collect(self, ticket, out=None, *, routing=False):
        """Waits for a ticket's rows and returns them: in `out`, or in a new array like hidden.

        routing=True returns (rows, ids, weights) with the experts as they were used. What lies on a device, out, ids,
        weights and bad_rows of a call from there, is written when this returns.
        """
        if not isinstance(ticket, Ticket):
            raise Invalid("ticket is a %s; allowed: a Ticket" % type(ticket).__name__, reason="invalid_argument")
        return self._collect(ticket, out, routing, self._stream)

    def _collect(self, ticket, out, routing, stream):
        if out is None:
            out = empty_like(ticket._like, ticket._shape, ticket._given)
        bfloat16 = ticket._given.is_bfloat16 and getattr(out, "itemsize", 0) == 2
        into = tensor("out", out, "bfloat16" if bfloat16 and isinstance(out, numpy.ndarray) else None, writable=True,
                      stream=stream)
        result = _abi.Result(output=into.pointer)
        keep = [into]
        tokens = ticket._shape[0]

        def wanted(field, shape, dtype):
            array = (empty_beside(ticket._like, shape, dtype) if ticket._given.on_device
                     else numpy.empty(shape, dtype))
            keep.append(tensor(field, array, stream=stream))
            setattr(result, field, keep[-1].pointer)
            return array
        if routing:
            picks = (tokens, self._session.top_k)
            ids, weights = wanted("ids", picks, "int32"), wanted("weights", picks, "float32")
        bad_rows = wanted("bad_rows", (tokens,), "uint8") if self._session._flags_bad_rows else None
        try:
            with self._session._turn as handle:
                status = _abi.check(_abi.library().moetier_collect(handle, ticket.number, ctypes.byref(result), stream))
        except _REFUSALS:
            raise  # the ticket is still to be collected
        except Error:
            self._open.pop(ticket, None)
            raise
        self._open.pop(ticket, None)
        self.bad_rows = None if bad_rows is None else bad_rows != 0
        if status == _abi.DEGRADED:
            warnings.warn("some experts are missing from these rows", Degraded, stacklevel=3)
        return (out, ids, weights) if routing else out

    def forward(self, layer, hidden, logits=None, ids=None, weights=None, *, token_ids=None, adapter_ids=None, out=None,
                micro_batch=0, repeat_idx=0, repeat_count=1, dtype=None, deadline=None, routing=False):
        """submit() and collect() in one."""
        ticket = self.submit(layer, hidden, logits, ids, weights, token_ids=token_ids, adapter_ids=adapter_ids,
                             micro_batch=micro_batch, repeat_idx=repeat_idx, repeat_count=repeat_count, dtype=dtype,
                             deadline=deadline)
        try:
            return self.collect(ticket, out, routing=routing)
        except Exception:
            if ticket in self._open:  # a wrong `out`, another thread's turn: nobody else has the ticket
                with self._session._turn.waited():
                    self._finish(ticket)
            raise
