"""The Python package against the C interface, on a tier inside the process (toy_library.cpp)."""

import ctypes
import os
import subprocess
import sys
import threading
import unittest
from unittest import mock

import numpy as np

import moetier
from moetier import _abi

H, E, K = 10, 8, 3
ANSWER, SILENT, LOST, STALE, REFUSE, DAMAGED = range(6)
toy = ctypes.CDLL(os.environ["MOETIER_LIBRARY"])


def expert(e, x):
    shifted = np.roll(x, -(1 + e))
    return x * np.float32(1 + 0.37 * e) - shifted * np.float32(0.21)


def layer(hidden, ids, weights):
    out = np.zeros_like(hidden)
    for t in range(len(hidden)):
        for j in range(ids.shape[1]):
            if ids[t, j] >= 0:
                out[t] += weights[t, j] * expert(ids[t, j], hidden[t])
    return out


def inputs(tokens, seed=0):
    random = np.random.default_rng(seed)
    hidden = random.standard_normal((tokens, H)).astype(np.float32)
    ids = np.stack([random.permutation(E)[:K] for _ in range(tokens)]).astype(np.int32).reshape(tokens, K)
    weights = random.random((tokens, K)).astype(np.float32)
    return hidden, ids, weights


class Foreign:
    """An array of some other library: it can do nothing but DLPack."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, stream=None):
        return self._array.__dlpack__()


class PackageTest(unittest.TestCase):

    def setUp(self):
        self.tier = moetier.connect("tier:1")
        self.addCleanup(self.tier.close)

    def session(self, **options):
        session = self.tier.session(**options)
        for worker in (1, 2, 3):
            toy.toy_worker_acts(worker, ANSWER)
        self.addCleanup(session.close)
        return session

    def collecting(self):
        """An event that is set once a thread is in the library's collect, with the turn of its session."""
        library = _abi.library()
        collect = library.moetier_collect
        began = threading.Event()

        def collects(*arguments):
            began.set()
            return collect(*arguments)
        patch = mock.patch.object(library, "moetier_collect", collects)
        patch.start()
        self.addCleanup(patch.stop)
        return began

    def test_tells_the_model(self):
        model = self.tier.model
        self.assertEqual((model.hidden_size, model.experts, model.top_k), (H, E, K))
        self.assertEqual(model.moe_layers, (0, 2, 3))
        self.assertEqual(model.model_type, "qwen3_moe")
        self.assertTrue(model.exact_allowed)

    def test_forward_by_ids_and_weights(self):
        x, ids, w = inputs(7)
        with self.session().step() as step:
            y = step.forward(layer=3, hidden=x, ids=ids, weights=w)
        self.assertIsInstance(y, np.ndarray)
        np.testing.assert_allclose(y, layer(x, ids, w), rtol=1e-5, atol=1e-5)
        self.assertEqual((step.report.status, step.report.calls, step.report.tokens), ("OK", 1, 7))

    def test_forward_by_logits_tells_the_routing(self):
        x, _, _ = inputs(5)
        logits = np.random.default_rng(5).standard_normal((5, E)).astype(np.float32)
        with self.session().step() as step:
            y, ids, w = step.forward(layer=2, hidden=x, logits=logits, routing=True)
        np.testing.assert_array_equal(ids, np.argsort(-logits, axis=1, kind="stable")[:, :K])
        np.testing.assert_allclose(w.sum(axis=1), 1, rtol=1e-6)
        np.testing.assert_allclose(y, layer(x, ids, w), rtol=1e-5, atol=1e-5)

    def test_submit_and_collect_of_several_micro_batches(self):
        a, b = inputs(4, 1), inputs(6, 2)
        with self.session(micro_batches=2).step() as step:
            first = step.submit(2, a[0], ids=a[1], weights=a[2])
            second = step.submit(2, b[0], ids=b[1].astype(np.int64), weights=b[2], micro_batch=1)
            out = np.empty((6, H), np.float32)
            self.assertIs(step.collect(second, out), out)
            y = step.collect(first)
        np.testing.assert_allclose(y, layer(*a), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(out, layer(*b), rtol=1e-5, atol=1e-5)

    def test_dlpack_in_and_out_without_a_copy(self):
        x, ids, w = inputs(4)
        out = np.zeros((4, H), np.float32)
        with self.session().step() as step:
            step.forward(2, Foreign(x), ids=Foreign(ids), weights=Foreign(w), out=Foreign(out))
        np.testing.assert_allclose(out, layer(x, ids, w), rtol=1e-5, atol=1e-5)

    def test_output_may_be_hidden_itself(self):
        x, ids, w = inputs(4)
        due = layer(x, ids, w)
        with self.session().step() as step:
            self.assertIs(step.forward(2, x, ids=ids, weights=w, out=x), x)
        np.testing.assert_allclose(x, due, rtol=1e-5, atol=1e-5)

    def test_bfloat16_is_a_uint16_array(self):
        x, ids, w = inputs(4)
        narrow = (x.view(np.uint32) >> 16).astype(np.uint16)
        wide = (narrow.astype(np.uint32) << 16).view(np.float32)
        with self.session().step() as step:
            y = step.forward(2, narrow, ids=ids, weights=w, dtype="bfloat16")
        self.assertEqual(y.dtype, np.uint16)
        np.testing.assert_allclose((y.astype(np.uint32) << 16).view(np.float32), layer(wide, ids, w), rtol=1e-2,
                                   atol=2e-2)

    def test_float16_and_strided_rows(self):
        x, ids, w = inputs(4)
        wide = np.zeros((4, 2 * H), np.float16)
        wide[:, :H] = x
        with self.session().step() as step:
            y = step.forward(2, wide[:, :H], ids=ids, weights=w)
        self.assertEqual(y.dtype, np.float16)
        np.testing.assert_allclose(y, layer(wide[:, :H].astype(np.float32), ids, w), rtol=1e-2, atol=1e-2)

    def test_no_tokens(self):
        x, ids, w = inputs(1)
        with self.session().step() as step:
            self.assertEqual(step.forward(2, x[:0], ids=ids[:0], weights=w[:0]).shape, (0, H))

    def assert_refused(self, error, text, function, *arguments, **options):
        with self.assertRaises(error) as caught:
            function(*arguments, **options)
        self.assertEqual(str(caught.exception), text)
        return caught.exception

    def test_bad_inputs_are_typed_errors_and_the_step_goes_on(self):
        x, ids, w = inputs(4)
        with self.session(max_tokens=8).step() as step:
            def refused(text, **change):
                call = {"layer": 2, "hidden": x, "ids": ids, "weights": w, **change}
                error = self.assert_refused(moetier.Invalid, text, step.forward, **call)
                self.assertEqual((error.status, error.code, error.retryable), ("INVALID", 10, False))
            refused("hidden has shape [4, 9]; expected [T, 10]", hidden=x[:, :9])
            refused("hidden has dtype float64; allowed: f32, f16 or bf16", hidden=x.astype(np.float64))
            refused("hidden has dtype uint16; give dtype=\"bfloat16\" if it holds bfloat16 bits",
                    hidden=x.astype(np.uint16))
            refused("the routing input is ids without weights; allowed: either logits or ids with weights",
                    weights=None)
            refused("the last stride of hidden is 2; allowed: 1: elements of a row lie side by side",
                    hidden=np.zeros((4, 2 * H), np.float32)[:, ::2])
            refused("9 tokens exceed the session's limit of 8", hidden=np.zeros((9, H), np.float32))
            refused("row 0 position 0 names expert 8; allowed: -1 (none) or 0 to 7", ids=np.full((4, K), 8, np.int32))
            refused("row 0 names expert 1 twice", ids=np.full((4, K), 1, np.int32))
            refused("layer 1 is not served; MoE layers: 0, 2 to 3", layer=1)
            refused("layer is -1; allowed: 0 to 65535", layer=-1)
            refused("hidden is a list; allowed: a NumPy array or an object with __dlpack__", hidden=[[1.0]])
            refused("arrays of dtype object cannot be passed", hidden=np.empty((4, H), object))
            refused("dtype is 'float8'; allowed: None or \"bfloat16\"", dtype="float8")
            refused("dtype=\"bfloat16\" needs a uint16 array, not float32", dtype="bfloat16")
            step.forward(2, x, ids=ids, weights=w)

    def test_a_wrong_output_costs_only_its_call(self):
        x, ids, w = inputs(4)
        read_only = np.zeros((4, H), np.float32)
        read_only.flags.writeable = False
        with self.session().step() as step:
            self.assert_refused(moetier.Invalid, "output has shape [3, 10]; expected [4, 10]", step.forward, 2, x,
                                ids=ids, weights=w, out=np.zeros((3, H), np.float32))
            self.assert_refused(moetier.Invalid, "out is a read-only array", step.forward, 3, x, ids=ids, weights=w,
                                out=read_only)
            step.forward(0, x, ids=ids, weights=w)

    def test_later_features_are_unsupported_by_name(self):
        self.assert_refused(moetier.Unsupported, "ack manual is not enabled", self.tier.session, ack="manual")
        for urgency in ("default", "decode", "prefill", "batch"):
            self.session(deadline_class=urgency).close()
        self.assert_refused(moetier.Invalid, "return_mode is 'sum'; allowed: partial, exact", self.tier.session,
                            return_mode="sum")
        self.assert_refused(moetier.Invalid, "tls key is null; allowed: the path of a PEM file", moetier.connect,
                            "tier:1", tls=moetier.Tls("cert", None, "ca"))
        moetier.connect("tier:1", tls=moetier.Tls("cert", "key", "ca")).close()
        x, ids, w = inputs(4)
        with self.session().step(stream=7) as step:
            self.assert_refused(moetier.Unsupported, "a stream for tensors in host memory is not enabled", step.submit,
                                2, x, ids=ids, weights=w)
        self.assert_refused(moetier.Invalid, "stream is -1; allowed: 0 to 18446744073709551615", self.session().step,
                            stream=-1)

    def test_failures_of_the_tier_are_their_own_classes(self):
        x, ids, w = inputs(16)
        session = self.session(call_deadline=0.003)
        toy.toy_worker_acts(2, SILENT)
        with self.assertRaises(moetier.Timeout) as caught:
            with session.step() as step:
                step.forward(2, x, ids=ids, weights=w)
        self.assertTrue(str(caught.exception).startswith("worker 2 is late in layer 2: "), str(caught.exception))
        self.assertEqual(caught.exception.reason, "worker_late")
        self.assertTrue(caught.exception.retryable)
        self.assertIsInstance(caught.exception, TimeoutError)
        self.assertEqual(step.report.status, "TIMEOUT")
        toy.toy_worker_acts(2, DAMAGED)
        session = self.session()
        toy.toy_worker_acts(2, DAMAGED)
        with self.assertRaises(moetier.Corrupt):
            with session.step() as step:
                try:
                    step.forward(2, x, ids=ids, weights=w)
                except moetier.Corrupt:
                    self.assert_refused(moetier.Skipped, "an earlier call of step 1 failed; replay the step",
                                        step.forward, 3, x, ids=ids, weights=w)
        toy.toy_worker_acts(2, ANSWER)
        with session.step(replay=True) as step:
            step.forward(2, x, ids=ids, weights=w)
        self.assertEqual(step.report.attempts, 2)

    def test_an_exception_in_a_step_leaves_the_session_usable(self):
        x, ids, w = inputs(4)
        session = self.session()
        with self.assertRaises(KeyError):
            with session.step() as step:
                step.submit(2, x, ids=ids, weights=w)
                raise KeyError("mine")
        with session.step() as step:
            step.forward(2, x, ids=ids, weights=w)

    def test_a_step_left_with_uncollected_tickets_says_so_and_the_next_one_works(self):
        x, ids, w = inputs(4)
        session = self.session(micro_batches=2)
        with self.assertRaises(moetier.BadState) as caught:
            with session.step() as step:
                first = step.submit(2, x, ids=ids, weights=w)
                second = step.submit(3, x, ids=ids, weights=w, micro_batch=1)
        self.assertEqual(str(caught.exception), "the step ended with uncollected tickets: %d (layer 2, micro-batch 0), "
                         "%d (layer 3, micro-batch 1); allowed: a step whose tickets were collected"
                         % (first.number, second.number))
        self.assertEqual((step.report.status, step.report.calls), ("OK", 2))
        with session.step() as step:
            y = step.forward(2, x, ids=ids, weights=w)
        np.testing.assert_allclose(y, layer(x, ids, w), rtol=1e-5, atol=1e-5)

    def test_an_uncollected_ticket_of_a_failed_call_ends_as_well(self):
        x, ids, w = inputs(16)
        session = self.session(call_deadline=0.003)
        toy.toy_worker_acts(2, SILENT)
        with self.assertRaisesRegex(moetier.BadState, "uncollected tickets: "):
            with session.step() as step:
                step.submit(2, x, ids=ids, weights=w)
        self.assertEqual(step.report.status, "TIMEOUT")
        toy.toy_worker_acts(2, ANSWER)
        with session.step(replay=True) as step:
            step.forward(2, x, ids=ids, weights=w, deadline=60)

    def test_a_ticket_refused_for_another_threads_call_is_still_there(self):
        x, ids, w = inputs(16)
        session = self.session(micro_batches=2, call_deadline=0.5)
        toy.toy_worker_acts(2, SILENT)
        under_way = self.collecting()
        ended = []

        def collect(step, ticket):
            try:
                step.collect(ticket)
            except moetier.Error as error:
                ended.append(error)
        with self.assertRaisesRegex(moetier.BadState, r"uncollected tickets: \d+ \(layer 2, micro-batch 1\);"):
            with session.step() as step:
                first = step.submit(2, x, ids=ids, weights=w)
                second = step.submit(2, x, ids=ids, weights=w, micro_batch=1)
                other = threading.Thread(target=collect, args=(step, first))
                other.start()
                under_way.wait()
                with self.assertRaisesRegex(moetier.BadState, "another thread is in a call of this session"):
                    step.collect(second)
        other.join()
        self.assertIsInstance(ended[0], moetier.Timeout)
        self.assertEqual((step.report.status, step.report.calls), ("TIMEOUT", 2))
        toy.toy_worker_acts(2, ANSWER)
        with session.step(replay=True) as step:
            step.forward(2, x, ids=ids, weights=w, deadline=60)

    def test_a_call_interrupted_when_it_was_just_submitted_ends_with_its_step(self):
        x, ids, w = inputs(4)
        session = self.session()
        library = _abi.library()
        submit = library.moetier_submit

        def interrupted(*arguments):
            self.assertEqual(submit(*arguments), _abi.OK)
            raise KeyboardInterrupt  # as a signal's handler does, as soon as Python runs again
        with self.assertRaises(KeyboardInterrupt):
            with session.step() as step, mock.patch.object(library, "moetier_submit", interrupted):
                step.submit(2, x, ids=ids, weights=w)
        self.assertEqual((step.report.status, step.report.calls), ("OK", 1))
        with session.step() as step:
            y = step.forward(2, x, ids=ids, weights=w)
        np.testing.assert_allclose(y, layer(x, ids, w), rtol=1e-5, atol=1e-5)

    def test_a_session_closes_while_the_coordinator_is_away(self):
        toy.toy_coordinator_away(1)
        self.addCleanup(toy.toy_coordinator_away, 0)
        with self.tier.session() as left:
            pass
        self.assertTrue(left.closed)
        self.tier.session().close()
        self.tier.session()
        self.tier.close()  # and with it its session
        self.assertTrue(self.tier.closed)

    def test_closed_handles_say_so(self):
        session = self.session()
        session.close()
        session.close()
        with self.assertRaises(moetier.BadState) as caught:
            session.stats
        self.assertEqual(str(caught.exception), "this session is closed")

    def test_stats_and_events(self):
        x, ids, w = inputs(4)
        session = self.session()
        with session.step() as step:
            step.forward(2, x, ids=ids, weights=w)
        self.assertEqual((session.stats.calls, session.stats.tokens, session.stats.failures), (1, 4, 0))
        granted = self.session(max_tokens=8, micro_batches=3)
        self.assertEqual((granted.stats.max_tokens, granted.stats.micro_batches), (8, 3))
        self.assertGreater(session.stats.max_tokens, 0)  # the tier's limit, where none was asked for
        self.assertEqual((granted.tier, granted.top_k, granted.gate, granted.shared_experts),
                         (self.tier, K, "client", "client"))
        self.assertIsNone(session.next_event())
        self.assertGreaterEqual(session.fileno(), 0)
        session.ack_generation(1)

    def test_nobody_to_connect_to(self):
        error = self.assert_refused(moetier.Unavailable, "the coordinator is not reached: nobody answers",
                                    moetier.connect, "elsewhere:1")
        self.assertEqual(error.reason, "coordinator_unreached")
        self.assertIsInstance(error, moetier.Error)

    def test_calls_let_other_threads_run(self):
        x, ids, w = inputs(16)
        session = self.session(call_deadline=0.3)
        toy.toy_worker_acts(2, SILENT)
        turns = []
        done = threading.Event()

        def count():
            while not done.wait(0.001):
                turns.append(1)
        counter = threading.Thread(target=count)
        counter.start()
        try:
            with self.assertRaises(moetier.Timeout):
                with session.step() as step:
                    step.forward(2, x, ids=ids, weights=w)
        finally:
            done.set()
            counter.join()
        self.assertGreater(len(turns), 5)

    def test_a_session_is_one_threads_at_a_time_and_closes_when_its_call_has_ended(self):
        x, ids, w = inputs(16)
        session = self.session(call_deadline=0.5)
        toy.toy_worker_acts(2, SILENT)
        ended = []

        def call():
            try:
                with session.step() as step:
                    step.forward(2, x, ids=ids, weights=w)
            except moetier.Error as error:
                ended.append(error)
        caller = threading.Thread(target=call)
        under_way = self.collecting()
        caller.start()
        under_way.wait()
        with self.assertRaises(moetier.BadState) as refused:
            session.stats
        self.assertEqual(str(refused.exception), "another thread is in a call of this session; allowed: one at a time")
        session.close()  # frees what that call works on
        caller.join()
        self.assertIsInstance(ended[0], moetier.Timeout)
        self.assertTrue(session.closed)
        with self.assertRaises(moetier.BadState):
            session.stats

    def test_a_service_closes_when_the_calls_of_another_thread_have_ended(self):
        for _ in range(50):
            tier = moetier.connect("tier:1")
            seen = []

            def look(tier=tier, seen=seen):
                try:
                    while True:
                        tier.session().close()
                except moetier.BadState as error:
                    seen.append(str(error))
            other = threading.Thread(target=look)
            other.start()
            tier.close()  # with a session of the other thread open, opening or closing
            other.join()
            self.assertEqual(seen, ["this service is closed"])

    def test_a_session_closes_when_nobody_looks_for_its_events_any_more(self):
        session = self.session()
        library = _abi.library()
        next_event, close = library.moetier_next_event, library.moetier_session_close
        looks, frees = threading.Event(), threading.Event()
        seen = []

        def looking(*arguments):
            looks.set()
            if frees.wait(0.3):  # the handle is known here, and the library has not been reached
                seen.append("freed under it")
                return _abi.OK
            return next_event(*arguments)

        def closing(handle):
            frees.set()
            return close(handle)

        def wait():
            try:
                seen.append(session.next_event(timeout=3600))
            except moetier.Cancelled as error:
                seen.append(str(error))
        other = threading.Thread(target=wait)
        with mock.patch.object(library, "moetier_next_event", looking), \
                mock.patch.object(library, "moetier_session_close", closing):
            other.start()
            looks.wait()
            session.close()
            other.join()
        self.assertEqual(seen, ["the session was closed meanwhile"])
        with self.assertRaisesRegex(moetier.BadState, "this session is closed"):
            session.next_event(timeout=3600)

    def test_events_end_a_wait_for_them_and_its_limit_does(self):
        session = self.session()
        self.assertIsNone(session.next_event(timeout=0.12))
        teller = threading.Timer(0.12, toy.toy_coordinator_lost)
        teller.start()
        self.assertEqual(session.next_event(timeout=3600).kind, "COORDINATOR_LOST")
        teller.join()

    def test_a_signals_handler_may_close_the_session_whose_call_it_interrupts(self):
        session = self.session()
        library = _abi.library()
        next_event = library.moetier_next_event

        def interrupted(*arguments):
            session.close()
            return next_event(*arguments)
        with mock.patch.object(library, "moetier_next_event", interrupted):
            with self.assertRaisesRegex(moetier.Invalid, "session is null"):
                session.next_event()

    def test_what_a_model_tells_outlives_its_service(self):
        use = self.tier._use

        def used_then_closed(call):
            told = use(call)
            self.tier.close()
            return told
        with mock.patch.object(self.tier, "_use", used_then_closed):
            model = self.tier.model
        self.assertEqual(model.moe_layers, (0, 2, 3))

    def test_what_c_would_cut_short_or_wrap_is_refused(self):
        for given in ({"tenant": "a\0b"}, {"tenant": 5}, {"tenant": "\udcff"}, {"model_fingerprint": 2**64},
                      {"model_fingerprint": -1}, {"model_fingerprint": "1"}, {"flight_file": 5},
                      {"flight_file": "a\0b"}, {"tls": 5}, {"tls": ("cert",)}, {"tls": ("a\0b", "key", "ca")}):
            with self.subTest(given=given), self.assertRaisesRegex(moetier.Invalid, "allowed: "):
                moetier.connect("tier:1", **given).close()
        with self.assertRaisesRegex(moetier.Invalid, "address is 'tier:1.x00'; allowed: a text without NUL"):
            moetier.connect("tier:1\0")
        with self.assertRaisesRegex(moetier.Invalid, "max_missing_weight is 'a'; allowed: a number"):
            self.tier.session(max_missing_weight="a")
        x, ids, w = inputs(2)
        with self.session().step() as step:
            with self.assertRaisesRegex(moetier.Invalid, "ticket is a int; allowed: a Ticket"):
                step.collect(5)
            with self.assertRaisesRegex(moetier.Invalid, "hidden gave no capsule by __dlpack__"):
                step.submit(2, type("Empty", (), {"__dlpack__": lambda self: 5})(), ids=ids, weights=w)

    def test_adapter_ids_that_are_none_are_named_as_given(self):
        x, ids, w = inputs(2)
        with self.session().step() as step:
            for given in (2**32, -2):
                with self.assertRaisesRegex(moetier.Invalid, "adapter_ids of row 1 is %d; allowed: -1 " % given):
                    step.submit(2, x, ids=ids, weights=w, adapter_ids=np.array([-1, given]))

    def test_importing_loads_nothing(self):
        code = ("import sys, moetier; moetier.transformers.model_types(); "
                "sys.exit(any('libmoetier' in line for line in open('/proc/self/maps')) or 'torch' in sys.modules)")
        self.assertEqual(subprocess.run([sys.executable, "-c", code], check=False).returncode, 0)


class ErrorTest(unittest.TestCase):

    def test_every_failing_status_has_its_class(self):
        from moetier.errors import error_for
        names = {3: "SKIPPED", 10: "INVALID", 11: "BAD_STATE", 12: "UNSUPPORTED", 13: "VERSION", 14: "MODEL_MISMATCH",
                 15: "DENIED", 20: "TIMEOUT", 21: "STALE_GENERATION", 22: "UNAVAILABLE", 23: "OVERLOADED",
                 24: "CANCELLED", 25: "SESSION_LOST", 30: "CORRUPT", 31: "DEVICE", 32: "NO_MEMORY", 39: "INTERNAL"}
        toy.moetier_status_name.restype = ctypes.c_char_p
        for code, name in names.items():
            error = error_for(code, "text", "why", True, 1500000000)
            self.assertIsInstance(error, moetier.Error)
            self.assertIsNot(type(error), moetier.Error)
            self.assertEqual((error.status, error.code), (name, code))
            self.assertEqual(toy.moetier_status_name(code).decode(), name)
            self.assertEqual((str(error), error.reason, error.retry_after), ("text", "why", 1.5))

    def test_a_status_of_a_newer_library_is_a_plain_error(self):
        from moetier.errors import error_for
        error = error_for(77, "text")
        self.assertIs(type(error), moetier.Error)
        self.assertEqual((error.status, error.code, error.retry_after), ("STATUS_77", 77, None))


if __name__ == "__main__":
    unittest.main()
