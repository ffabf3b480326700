"""Arrays in device memory through the Python package, on the stand-in for the CUDA driver (fake_driver.cpp)."""

import ctypes
import os
import types
import unittest

import numpy as np

import moetier
from moetier import _abi
from package_test import H, E, K, inputs, layer, toy

int32, float32, uint8 = np.int32, np.float32, np.uint8  # the dtypes of this library of arrays
CUDA = 2
fake = ctypes.CDLL(os.environ["MOETIER_FAKE_DRIVER"])
fake.fake_log.restype = ctypes.c_char_p
fake.fake_pinned.restype = ctypes.c_size_t
fake.fake_add_memory.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
fake.fake_capture.argtypes = [ctypes.c_void_p, ctypes.c_int]
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class DeviceArray:
    """An array on a device of the stand-in driver. It knows DLPack and nothing else."""

    streams = []  # that an array was handed to, in order

    def __init__(self, array, device=0):
        self.memory = np.array(array, order="C")
        self.number = device
        fake.fake_add_memory(device, self.memory.ctypes.data, self.memory.nbytes)

    def __dlpack_device__(self):
        return (CUDA, self.number)

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        capsule = self.memory.__dlpack__()
        struct = _abi.DLTensor.from_address(pointer_of(capsule, b"dltensor"))
        struct.device_type, struct.device_id = CUDA, self.number
        return capsule


class TorchLike(DeviceArray):

    def new_empty(self, shape, dtype=None):
        return type(self)(np.full(shape, 77, dtype or self.memory.dtype), self.number)

    def __ne__(self, value):
        return type(self)(self.memory != value, self.number)


class Standard(DeviceArray):
    """As the array API standard has it."""

    dtype = float32

    @property
    def device(self):
        return self.number

    def __array_namespace__(self):
        return types.SimpleNamespace(
            int32=np.int32, float32=np.float32,
            empty=lambda shape, dtype, device: Standard(np.full(shape, 77, dtype), device))


class DeviceTest(unittest.TestCase):

    def setUp(self):
        fake.fake_reset()
        DeviceArray.streams.clear()
        tier = moetier.connect("tier:1")
        self.addCleanup(tier.close)
        self.tier = tier

    def session(self, **options):
        session = self.tier.session(**options)
        for worker in (1, 2, 3):
            toy.toy_worker_acts(worker, 0)
        return session

    def test_calls_come_from_a_device_and_go_back_to_it(self):
        x, ids, w = inputs(7)
        with self.session() as session, session.step(stream=9) as step:
            y = step.forward(2, TorchLike(x, 1), ids=TorchLike(ids, 1), weights=TorchLike(w, 1))
            z, used, weights = step.forward(3, Standard(x), ids=Standard(ids.astype(np.int64)), weights=Standard(w),
                                            routing=True)
        self.assertIsInstance(y, TorchLike)
        self.assertEqual(y.number, 1)
        np.testing.assert_allclose(y.memory, layer(x, ids, w), rtol=1e-5, atol=1e-5)
        self.assertIsInstance(z, Standard)
        np.testing.assert_allclose(z.memory, layer(x, ids, w), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(used.memory, ids)
        np.testing.assert_array_equal(weights.memory, w)
        self.assertEqual(DeviceArray.streams, [9] * 10)
        self.assertIn(b"stream 9: 1 x 280 bytes to cuda:1\nstream 9: synchronised\n", fake.fake_log())
        self.assertNotIn(b"stream 0", fake.fake_log())
        self.assertEqual(fake.fake_pinned(), 0)  # its session is closed

    def test_the_default_stream_is_the_legacy_one(self):
        x, ids, w = inputs(4)
        with self.session() as session, session.step() as step:
            out = TorchLike(np.zeros_like(x))
            self.assertIs(step.forward(2, TorchLike(x), ids=TorchLike(ids), weights=TorchLike(w), out=out), out)
        np.testing.assert_allclose(out.memory, layer(x, ids, w), rtol=1e-5, atol=1e-5)
        self.assertEqual(set(DeviceArray.streams), {1})
        self.assertIn(b"stream 0: synchronised", fake.fake_log())

    def test_the_output_may_be_hidden_itself(self):
        x, ids, w = inputs(4)
        hidden = TorchLike(x)
        with self.session() as session, session.step() as step:
            step.forward(2, hidden, ids=TorchLike(ids), weights=TorchLike(w), out=hidden)
        np.testing.assert_allclose(hidden.memory, layer(x, ids, w), rtol=1e-5, atol=1e-5)

    def test_flags_of_bad_rows_lie_on_the_device(self):
        x, _, _ = inputs(3)
        logits = np.zeros((3, E), np.float32)
        logits[1, 2] = np.nan
        with self.session(bad_rows="flag") as session, session.step() as step:
            step.forward(2, TorchLike(x), TorchLike(logits))
        self.assertIsInstance(step.bad_rows, TorchLike)
        self.assertEqual(step.bad_rows.memory.tolist(), [False, True, False])

    def test_mixed_places_are_refused_and_the_step_goes_on(self):
        x, ids, w = inputs(4)
        with self.session() as session, session.step() as step:
            with self.assertRaises(moetier.Invalid) as caught:
                step.forward(2, TorchLike(x), ids=ids, weights=TorchLike(w))
            self.assertEqual(str(caught.exception), "ids is in host memory; allowed: on cuda:0, as hidden")
            with self.assertRaises(moetier.Invalid) as caught:
                step.forward(2, TorchLike(x), ids=TorchLike(ids), weights=TorchLike(w), out=np.zeros_like(x))
            self.assertEqual(str(caught.exception), "output is in host memory; allowed: on cuda:0, as hidden")
            with self.assertRaises(moetier.Invalid) as caught:
                step.forward(3, DeviceArray(x), ids=TorchLike(ids), weights=TorchLike(w))
            self.assertEqual(str(caught.exception), "hidden is a DeviceArray in device memory; allowed: arrays with "
                             "new_empty or __array_namespace__")
            step.forward(3, TorchLike(x), ids=TorchLike(ids), weights=TorchLike(w))

    def test_a_ticket_left_behind_ends_with_its_step(self):
        x, ids, w = inputs(4)
        with self.session() as session:
            with self.assertRaises(KeyError):
                with session.step(stream=5) as step:
                    step.submit(2, TorchLike(x), ids=TorchLike(ids), weights=TorchLike(w))
                    raise KeyError("mine")
            with session.step() as step:
                y = step.forward(2, TorchLike(x), ids=TorchLike(ids), weights=TorchLike(w))
        np.testing.assert_allclose(y.memory, layer(x, ids, w), rtol=1e-5, atol=1e-5)

    def test_a_ticket_refused_on_a_captured_stream_ends_with_its_step(self):
        x, ids, w = inputs(4)
        with self.session() as session:
            with self.assertRaises(moetier.BadState) as caught:
                with session.step(stream=5) as step:
                    ticket = step.submit(2, TorchLike(x), ids=TorchLike(ids), weights=TorchLike(w))
                    fake.fake_capture(5, 1)
                    step.collect(ticket)
            self.assertEqual(str(caught.exception), "collect is not allowed here: the stream is being captured")
            self.assertEqual((step.report.status, step.report.calls), ("OK", 1))
            fake.fake_capture(5, 0)
            with session.step(stream=5) as step:
                y = step.forward(2, TorchLike(x), ids=TorchLike(ids), weights=TorchLike(w))
        np.testing.assert_allclose(y.memory, layer(x, ids, w), rtol=1e-5, atol=1e-5)

    def test_a_forward_whose_stream_is_captured_meanwhile_costs_only_its_call(self):
        x, ids, w = inputs(4)

        class Captures(TorchLike):

            def __dlpack__(self, stream=None):
                fake.fake_capture(5, 1)
                return super().__dlpack__(stream)
        with self.session() as session, session.step(stream=5) as step:
            with self.assertRaisesRegex(moetier.BadState, "the stream is being captured"):
                step.forward(2, TorchLike(x), ids=TorchLike(ids), weights=TorchLike(w), out=Captures(x))
            fake.fake_capture(5, 0)
            y = step.forward(3, TorchLike(x), ids=TorchLike(ids), weights=TorchLike(w))
        np.testing.assert_allclose(y.memory, layer(x, ids, w), rtol=1e-5, atol=1e-5)

    def test_a_failing_device_is_its_own_error(self):
        x, ids, w = inputs(4)
        with self.session() as session, session.step() as step:
            fake.fake_fail(b"cuMemcpyAsync", 1, 700)
            with self.assertRaises(moetier.DeviceError) as caught:
                step.forward(2, TorchLike(x), ids=TorchLike(ids), weights=TorchLike(w))
            self.assertEqual(str(caught.exception), "the device failed: CUDA_ERROR_ILLEGAL_ADDRESS in cuMemcpyAsync of "
                             "hidden from the device")
            step.forward(2, TorchLike(x), ids=TorchLike(ids), weights=TorchLike(w))

    def test_a_machine_without_devices_says_so(self):
        x, ids, w = inputs(4)
        fake.fake_set_devices(0)
        with self.session() as session, session.step() as step:
            with self.assertRaises(moetier.Unsupported) as caught:
                step.forward(2, TorchLike(x), ids=TorchLike(ids), weights=TorchLike(w))
            self.assertEqual(str(caught.exception), "device memory without a CUDA device (cuInit: "
                             "CUDA_ERROR_NO_DEVICE) is not enabled")
            step.forward(2, x, ids=ids, weights=w)


if __name__ == "__main__":
    unittest.main()
