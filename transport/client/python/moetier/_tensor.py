"""Arrays of the caller as DLTensors, without a copy: NumPy arrays by their own pointers, everything else, in host
memory or on a CUDA device, by the capsule of its __dlpack__ (DLPack 0.6)."""

import ctypes
import sys

import numpy

from . import _abi
from .errors import Invalid

_CPU, _CUDA = 1, 2
_LEGACY_STREAM = 1  # what DLPack calls CUDA's null stream
_CODES = {"i": 0, "u": 1, "f": 2}
_BFLOAT = 4

_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class Tensor:
    """A DLTensor and what must live as long as it is used."""

    __slots__ = ("struct", "keep")

    def __init__(self, struct, keep):
        self.struct = struct
        self.keep = keep

    @property
    def pointer(self):
        return ctypes.pointer(self.struct)

    @property
    def shape(self):
        return tuple(self.struct.shape[i] for i in range(self.struct.ndim))

    @property
    def is_bfloat16(self):
        return self.struct.dtype.code == _BFLOAT

    @property
    def on_device(self):
        return self.struct.device_type == _CUDA


def _from_numpy(name, array, bfloat16):
    if bfloat16:
        if array.dtype.itemsize != 2:
            raise Invalid("dtype=\"bfloat16\" needs a uint16 array, not %s" % array.dtype, reason="invalid_dtype")
        dtype = _abi.DLDataType(_BFLOAT, 16, 1)
    elif array.dtype.name == "bfloat16":  # of the ml_dtypes package
        dtype = _abi.DLDataType(_BFLOAT, 16, 1)
    elif array.dtype.name == "uint16":
        raise Invalid("%s has dtype uint16; give dtype=\"bfloat16\" if it holds bfloat16 bits" % name,
                      reason="invalid_dtype")
    elif array.dtype.kind in _CODES and array.dtype.isnative:
        dtype = _abi.DLDataType(_CODES[array.dtype.kind], array.dtype.itemsize * 8, 1)
    else:
        raise Invalid("arrays of dtype %s cannot be passed" % array.dtype, reason="invalid_dtype")
    if any(stride % array.itemsize for stride in array.strides):
        raise Invalid("strides %s are not whole elements" % (array.strides,), reason="invalid_shape")
    n = array.ndim
    shape = (ctypes.c_int64 * n)(*array.shape)
    strides = (ctypes.c_int64 * n)(*(stride // array.itemsize for stride in array.strides))
    struct = _abi.DLTensor(data=array.ctypes.data, device_type=_CPU, device_id=0, ndim=n, dtype=dtype,
                           shape=shape, strides=strides, byte_offset=0)
    return Tensor(struct, (array, shape, strides))


def _capsule(value, stream):
    """The capsule of a foreign array; one on a device makes `stream` wait for what its own streams still do to it."""
    if hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] == _CUDA:
        return value.__dlpack__(stream=stream or _LEGACY_STREAM)
    return value.__dlpack__()


def tensor(name, value, dtype=None, writable=False, stream=None):
    """`value` as a Tensor; dtype="bfloat16" reads a 16-bit array as bfloat16."""
    if dtype not in (None, "bfloat16"):
        raise Invalid("dtype is %r; allowed: None or \"bfloat16\"" % (dtype,), reason="invalid_dtype")
    if isinstance(value, numpy.ndarray):
        if writable and not value.flags.writeable:
            raise Invalid("%s is a read-only array" % name, reason="invalid_argument")
        return _from_numpy(name, value, dtype == "bfloat16")
    if not hasattr(value, "__dlpack__"):
        raise Invalid("%s is a %s; allowed: a NumPy array or an object with __dlpack__" % (name, type(value).__name__),
                      reason="invalid_argument")
    capsule = _capsule(value, stream)
    try:
        address = _get_pointer(capsule, b"dltensor")
    except ValueError:
        raise Invalid("%s gave no capsule by __dlpack__; allowed: one of DLPack 0.6, unused" % name,
                      reason="invalid_argument") from None
    # A DLManagedTensor begins with its DLTensor. The capsule stays unconsumed: it frees itself after the call.
    return Tensor(_abi.DLTensor.from_address(address), (value, capsule))


def check_can_allocate(name, value):
    """Refuses an array on a device that offers no way to make another one beside it."""
    if not hasattr(value, "new_empty") and not hasattr(value, "__array_namespace__"):
        raise Invalid("%s is a %s in device memory; allowed: arrays with new_empty or __array_namespace__"
                      % (name, type(value).__name__), reason="invalid_argument")


def empty_beside(value, shape, dtype=None):
    """A new array on the device of `value`, of its dtype or the named one, by the library that made it."""
    if hasattr(value, "new_empty"):
        if dtype is None:
            return value.new_empty(shape)
        return value.new_empty(shape, dtype=getattr(sys.modules[type(value).__module__.partition(".")[0]], dtype))
    namespace = value.__array_namespace__()
    return namespace.empty(shape, dtype=value.dtype if dtype is None else getattr(namespace, dtype),
                           device=value.device)


def empty_like(value, shape, given):
    """A new array for an output like the input `value`: NumPy for NumPy, else by the library that made it."""
    if isinstance(value, numpy.ndarray):
        return numpy.empty(shape, value.dtype)
    if given.on_device:
        return empty_beside(value, shape)
    if hasattr(value, "new_empty"):
        return value.new_empty(shape)
    kinds = {(2, 32): numpy.float32, (2, 16): numpy.float16, (_BFLOAT, 16): numpy.uint16}
    return numpy.empty(shape, kinds.get((given.struct.dtype.code, given.struct.dtype.bits), numpy.float32))
