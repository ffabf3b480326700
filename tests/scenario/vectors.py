"""The demo's MoE vectors: hidden rows, router logits and outputs of an independent implementation."""
import json
import pathlib
import struct

import numpy as np

PATH = pathlib.Path(__file__).resolve().parents[2] / "deploy" / "demo" / "vectors" / "moe_vectors.safetensors"
DOMAINS = ("scripture", "novel", "code")
LAYERS = range(4)


def read_safetensors(path):
    """All F32 tensors of a file by name, and its metadata."""
    data = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    entries = json.loads(data[8:8 + size])
    metadata = entries.pop("__metadata__", {})
    tensors = {}
    for name, entry in entries.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        kind = {"F32": np.float32, "I32": np.int32}[entry["dtype"]]
        tensors[name] = np.frombuffer(data[begin:end], kind).reshape(entry["shape"])
    return tensors, metadata


def load():
    """{(domain, layer): (hidden, logits, output)}"""
    tensors, _ = read_safetensors(PATH)
    return {(d, l): tuple(tensors[f"{d}.layer{l}.{part}"] for part in ("hidden", "logits", "output"))
            for d in DOMAINS for l in LAYERS}
